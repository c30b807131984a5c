"""What others wrote, in files, names, arguments, replies or journals, cannot steer a terminal; pipes keep results."""

import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moothall.app.values import printable
from moothall.cli.screen import CleanStream, tame
from tests.cli.process import moot
from tests.cli.terminal import terminal

EVIL = "\x1b]0;evil\x07\x1b[2J\r\x9b31m\u202egnp.exe\u200b\u2066\ufeff\x00\x08"
HARM = frozenset("\x1b\x07\x9b\u202e\u200b\u2066\ufeff\x00\x08")
PLAIN = {"NO_COLOR": "1", "TERM": "dumb"}
ARGUMENT = EVIL.replace("\x00", "")


def workflow(name: str = "evil") -> dict[str, object]:
    """A workflow file whose author wishes whoever looks at it ill."""
    return {
        "name": name,
        "description": f"description {EVIL}",
        "initialState": "start",
        "states": {
            f"start{EVIL}": {"agent": f"agent{EVIL}", "transitions": [{"target": f"nowhere{EVIL}", "condition": EVIL}]},
            "start": {"agent": "writer", "input": f"Hello {EVIL}", "transitions": [{"target": f"gone{EVIL}"}]},
        },
        f"key{EVIL}": EVIL,
    }


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with files that somebody else wrote."""
    (tmp_path / "workflows").mkdir()
    (tmp_path / "evil.json").write_text(json.dumps(workflow(f"evil{EVIL}")))
    (tmp_path / "torn.json").write_text(f'{{"name": "{ARGUMENT}')
    (tmp_path / "workflows" / "evil.json").write_text(json.dumps(workflow()))
    (tmp_path / "raising.py").write_text(f"raise ValueError({EVIL!r})\n")
    (tmp_path / "evil.py").write_text(
        "from moothall import *\n"
        f"async def writer(prompt): return {EVIL!r}\n"
        "ASKING = Machine('asking', states=[State('writing', enter=ask(writer, 'Go')),"
        f" State('asking', enter=question('Well? ' + {EVIL!r})), Final('over')],"
        " moves=[On('writing', Replied, to='asking'), On('asking', Answered, to='over')])\n"
        f"async def failing(prompt): raise ValueError({EVIL!r})\n"
        "FAILING = Machine('failing', states=[State('writing', enter=ask(failing, 'Go', attempts=1)), Final('over')],"
        " moves=[On('writing', Replied, to='over')])\n"
    )
    return tmp_path


LOOKS = {
    "check": ("check", "evil.json"),
    "check of a torn file": ("check", "torn.json"),
    "check of code": ("check", "raising.py"),
    "graph": ("graph", "evil.json"),
    "run": ("run", "evil.json", "--model", "rehearsal"),
    "a failing run": ("run", "evil.py:FAILING"),
    "a run that asks": ("run", "evil.py:ASKING", "--run-id", "asking"),
    "workflows": ("workflows",),
    "js": ("js", f"throw {json.dumps(EVIL)}"),
    "a value of js": ("js", json.dumps(EVIL)),
    "json of js": ("js", "--json", json.dumps(EVIL)),
    "an id": ("show", ARGUMENT),
    "an id to go on with": ("resume", ARGUMENT),
    "an id to begin": ("run", "evil.py:ASKING", "--run-id", ARGUMENT),
    "a file": ("run", f"{ARGUMENT}.json"),
    "an option": ("ls", f"--{ARGUMENT}"),
    "a number": ("run", "evil.py:ASKING", "--budget", f"usd={ARGUMENT}"),
    "a model": ("run", "evil.py:ASKING", "--model", ARGUMENT),
    "a report": ("report", ARGUMENT),
}


def is_harmless(text: str) -> bool:
    return not HARM & set(text) and "\r" not in text.replace("\r\n", "\n")


@pytest.mark.parametrize("arguments", LOOKS.values(), ids=LOOKS)
def test_nothing_that_others_wrote_steers_the_terminal_of_whoever_looks(
    place: Path, arguments: tuple[str, ...]
) -> None:
    with terminal(*arguments, home=place, more=PLAIN) as screen:
        said = screen.read_all()
    assert said.strip()
    assert is_harmless(said), repr(said)


def test_a_notice_is_harmless_in_a_file_too_and_a_result_is_as_it_is(place: Path) -> None:
    ran = moot("js", f"throw {json.dumps(EVIL)}", home=place)
    assert ran.stderr.strip()
    assert is_harmless(ran.stderr), repr(ran.stderr)
    assert json.loads(moot("js", json.dumps(EVIL), home=place).stdout) == EVIL


@pytest.mark.parametrize(
    "arguments", [("show", "asking"), ("ls",), ("watch", "asking"), ("report", "asking", "--format", "md")]
)
def test_a_journal_is_shown_without_what_could_steer(place: Path, arguments: tuple[str, ...]) -> None:
    moot("run", "evil.py:ASKING", "--run-id", "asking", home=place)
    with terminal(*arguments, home=place, more=PLAIN) as screen:
        if arguments[0] == "watch":
            screen.read_until("replied")
            screen.process.terminate()
        said = screen.read_all()
    assert "asking" in said
    assert is_harmless(said), repr(said)


def stream(*, is_for_people: bool) -> tuple[CleanStream, io.StringIO]:
    under = io.StringIO()
    return CleanStream(under, str, OSError, is_for_people=is_for_people), under


@given(st.lists(st.text(st.characters() | st.sampled_from(sorted(HARM)))))
def test_what_people_read_holds_nothing_that_steers_however_it_is_written(texts: list[str]) -> None:
    clean, under = stream(is_for_people=True)
    for text in texts:
        clean.write(text)
    clean.flush()
    shown = under.getvalue()
    assert is_harmless(shown)
    assert shown.count("\n") == "".join(texts).count("\n")


@given(st.text())
def test_a_pipe_gets_results_as_they_are(text: str) -> None:
    clean, under = stream(is_for_people=False)
    clean.write(text)
    clean.flush()
    assert under.getvalue() == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
        ("\x1b[31;8mhidden", "�[31;8mhidden"),
        ("\x1b[2K\rgone", "�[2K gone"),
        ("\x1b\x1b[0m", "�\x1b[0m"),
        ("a\tb\nc", "a\tb\nc"),
    ],
)
def test_of_all_sequences_only_our_own_colours_stay(text: str, shown: str) -> None:
    assert tame(text, colours=True) == shown
    assert "\x1b" not in tame(text, colours=False)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pay\u200dpal", "pay�pal"),
        ("👩\u200d🚀", "👩\u200d🚀"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("so\u00adft", "so�ft"),
    ],
)
def test_joiners_stay_where_they_join(text: str, shown: str) -> None:
    assert printable(text) == shown
