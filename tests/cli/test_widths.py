"""Emoji, Chinese characters and combining marks take the columns that a terminal gives them.

The screen is pyte's. It measures every character for itself, as we do. Where a sequence has a joiner or a variation
selector it drops the rest of the piece that it is given, so that none of these are looked at here.
"""

import json
from pathlib import Path

import pyte
import pytest
from wcwidth import wcswidth

from moothall.cli.screen import columns_of, pad, shorten
from tests.cli.terminal import terminal
from tests.models.loopback import Begun, Said, loopback_aside

TEXTS = {
    "emoji": "🦀🐙 tide " * 40,
    "chinese": "潮汐表记录海水的涨落" * 20,
    "combining": "e\u0301a\u0308o\u0302 " * 60,
    "plain": "tides come and go " * 20,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("width", [1, 2, 10, 39, 40])
def test_a_text_that_is_cut_takes_no_more_columns_than_there_are_and_wastes_at_most_one(text: str, width: int) -> None:
    cut = shorten(text, width)
    assert cut.endswith("…")
    assert width - 1 <= wcswidth(cut) <= width


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("潮汐", 4), ("🦀", 2), ("e\u0301", 1), ("a…b", 3)])
def test_a_text_is_as_wide_as_a_terminal_shows_it(text: str, columns: int) -> None:
    assert columns_of(text) == columns
    assert wcswidth(pad(text, 10)) == wcswidth(pad(text, 10, left=True)) == 10


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("kind", TEXTS)
def test_the_lines_that_change_are_taken_back_whole_whatever_is_said(tmp_path: Path, kind: str, columns: int) -> None:
    shown = pyte.Screen(columns, 40)
    stream = pyte.Stream(shown)
    reply = Said(json.dumps({"text": TEXTS[kind], "answer": "x"}, ensure_ascii=False))
    with loopback_aside(Begun(reply, 2)) as served:
        model, size = f"openai:tides@{served.address}", {"COLUMNS": str(columns), "LINES": "40"}
        begin = ("debate", "Which till?", "-a", "architect,kiss", "--model", model, "--run-id", "mine")
        with terminal(*begin, home=tmp_path, more=size) as screen:
            screen.read_until("kiss …")
            screen.said, before = "", screen.said
            while screen.said.count("round 1 of 3") < 3:
                screen.read_more()
            screen.process.send_signal(2)
            stream.feed(before + screen.said.rpartition("\r\x1b[?7h")[0])
            rows = [row.rstrip() for row in shown.display if row.strip()]
            screen.read_all()
    live = [row for row in rows if row.startswith("       ")]
    assert [row.split()[0] for row in live] == ["round", "architect", "kiss"], rows
