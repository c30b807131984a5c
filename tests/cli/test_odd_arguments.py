"""Whatever is typed behind a command, it ends with a sentence and an exit code of the table, not with a fault."""

import argparse
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moothall.cli.main import COMMANDS, DEFINITION, ELSEWHERE, FAILED, USAGE, entrance, main
from moothall.errors import Refused
from moothall.kernel.codec import decode
from tests.cli.machines import MACHINES

ENDLESS = {"worker", "watch", "serve", "mcp", "sandbox"}
"""They go on until they are stopped, or run whatever they are given."""
FAULT = "MOOTHALL_DEBUG=1"
DEEP, HUGE = "[" * 50_000 + "]" * 50_000, "9" * 5_000
LONG = {"[deep]": DEEP, "[huge]": HUGE, "[long]": "a" * 5_000}
"""What stands for texts that nobody wants to read in an example."""
ODD = (
    "",
    " ",
    "-",
    "--",
    "@",
    "=",
    ",",
    ":",
    "\x1b[2J",
    "\ud800",
    "caf\udce9",
    "é" * 300,
    "[long]",
    "[deep]",
    "[huge]",
    "-[huge]",
    "1e999",
    "-1e999",
    "nan",
    "NaN",
    "Infinity",
    "-1",
    "0",
    str(2**63),
    str(2**64),
    "1e308",
    "0x10",
    "１２",
    "²",
    "null",
    "[]",
    "{}",
    '{"a": 1e999}',
    '{"a": "\\ud800"}',
    '{"to": [deep]}',
    '{"to": [huge]}',
    f'{{"to": {2**70}}}',
    "usd=1e999",
    "usd=[huge]",
    "usd=nan",
    "calls=-1",
    f"calls={2**70}",
    "tokens=1e400",
    "seconds=1e308",
    "usd=1,usd=2",
    "machines.py:LETTER",
    "machines.py:",
    "machines.py:SENT",
    "deep.json",
    "huge.json",
    "odd.json",
    "deep.toml",
    "mine",
    "asking",
    "rehearsal",
    "memory",
    "scripted:deep.json",
    "sqlite:",
    "sqlite:deep.json",
    "counters:99999999999",
    "counters:[huge]",
    "log:",
    "0.0",
    "0.[huge]",
    "[huge]d",
    "1e999d",
    f"{2**70}d",
    "9" * 20 + "w",
)


def actions_of(name: str) -> list[argparse.Action]:
    parser = argparse.ArgumentParser()
    entrance(name)(parser)
    return [action for action in parser._actions if action.dest != "help"]


WORDS = st.sampled_from(ODD) | st.text(max_size=20).filter(lambda text: "\0" not in text and "/" not in text)


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """A command with options of its own and odd words in all places."""
    name = draw(st.sampled_from(sorted(set(COMMANDS) - ENDLESS)))
    line = [name]
    for action in actions_of(name):
        if action.option_strings and not draw(st.integers(0, 3)):
            takes = action.nargs != 0
            line += [action.option_strings[0], *([str(draw(WORDS))] if takes else [])]
        elif not action.option_strings:
            line.append(draw(WORDS))
    return line


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Path]:
    """A folder with a run that is over, one that waits, and odd files; nothing of it is anywhere else."""
    for name in ("HOME", "MOOTHALL_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "MOOTHALL_ANCHORS"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.delenv("MOOTHALL_DEBUG", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "machines.py").write_text(MACHINES)
    (tmp_path / "deep.json").write_text(DEEP)
    (tmp_path / "deep.toml").write_text(f"a = {DEEP}")
    (tmp_path / "huge.json").write_text(f'{{"to": {HUGE}}}')
    (tmp_path / "odd.json").write_text('{"to": "\\ud800", "n": 1e999, "m": NaN}')
    main(["run", "machines.py:LETTER", "Ada", "--run-id", "mine"])
    main(["run", "machines.py:SENT", "Ada", "--run-id", "asking"])
    capsys.readouterr()
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)


def _spelt_out(word: str) -> str:
    for short, long in LONG.items():
        word = word.replace(short, long)
    return word


def check(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main([_spelt_out(word) for word in line])
    except SystemExit as ended:  # argparse says what is wrong, and leaves
        code = int(ended.code or 0)
    said = capsys.readouterr().err
    assert code in range(ELSEWHERE + 1), (line, said)
    assert FAULT not in said, (line, said)
    assert "Traceback" not in said, (line, said)


TYPED = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None)


@given(line=command_lines())
@settings(TYPED, max_examples=60)
def test_odd_arguments_end_in_a_sentence(place: Path, line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    check(line, capsys)


@pytest.mark.soak
@given(line=command_lines())
@settings(TYPED, max_examples=int(os.environ.get("MOOTHALL_ODD", "3000")))
def test_many_odd_arguments_end_in_a_sentence(place: Path, line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    check(line, capsys)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["import", "deep.json"], "the file is nested too deeply"),
        (["arena", "tidy up", "--workspace", HUGE], "is not a folder"),
        (["team", "-c", HUGE], "there is no team"),
        (["debate", "which?", "--files", HUGE], "there is no folder"),
        (["send", "mine", "go", "--telemetry", f"counters:{HUGE}"], "telemetry: 'counters:999"),
        (["audit", "caf\udce9"], "'caf\\udce9' is not text in the encoding of this terminal"),
        (["check", "\ud800"], "'\\ud800' is not text in the encoding of this terminal"),
        (["metrics", "--machine", "caf\udce9"], "'caf\\udce9' is not text in the encoding of this terminal"),
    ],
    ids=["deep", "workspace", "team", "folder", "port", "run", "file", "machine"],
)
def test_what_was_once_a_fault_is_a_sentence(
    place: Path, capsys: pytest.CaptureFixture[str], line: list[str], said: str
) -> None:
    try:
        code = main(line)
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code in (FAILED, USAGE, DEFINITION)
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("9" * 30, "has more than 64 bits"),
        (HUGE, "has more than 64 bits"),
        ("1e999", "is not a number of plain JSON"),
        ("NaN", "is not a number of plain JSON"),
        (DEEP, "nested too deeply"),
    ],
    ids=["a large number", "a huge number", "infinity", "nan", "depth"],
)
@pytest.mark.parametrize("way", ["input", "file", "answer"])
def test_what_no_journal_can_keep_is_refused_as_the_senders_mistake(
    place: Path, capsys: pytest.CaptureFixture[str], given: str, said: str, way: str
) -> None:
    (place / "given.json").write_text(f'{{"to": {given}}}')
    lines = {
        "input": ["run", "machines.py:LETTER", f'{{"to": {given}}}'],
        "file": ["run", "machines.py:LETTER", "--input-json", "given.json"],
        "answer": ["answer", "asking", "--json", f"[{given}]"],
    }
    assert main(lines[way]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**5_000], ids=["large", "small", "huge"])
@pytest.mark.parametrize("kind", [str, bool, list[int]])
def test_a_number_is_refused_where_none_was_expected_however_many_digits_it_has(kind: type, number: int) -> None:
    with pytest.raises(Refused, match="expected"):
        decode(kind, number)
