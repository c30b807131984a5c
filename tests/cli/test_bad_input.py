"""Whatever is given wrongly is answered in a sentence and an exit code, never in a traceback."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.ran import Moot, Ran

USAGE, DEFINITION, REFUSED, WAITING = 2, 4, 1, 5


def refused(ran: Ran, code: int) -> str:
    """The complaint of a command that must fail with this code and say nothing on stdout."""
    assert ran.code == code, ran.err
    assert ran.out == ""
    assert "Traceback" not in ran.err
    assert ran.err.strip()
    return ran.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("frobnicate",), "invalid choice: 'frobnicate'"),
        (("run",), "the following arguments are required: machine"),
        (("show",), "the following arguments are required: run"),
        (("run", "machines.py:LETTER", "a", "b"), "unrecognized arguments: b"),
        (("graph", "machines.py:LETTER", "--format", "png"), "invalid choice: 'png'"),
        (("ls", "--colour"), "unrecognized arguments: --colour"),
        (("run", "machines.py:LETTER", "Ada", "--budget", "lots"), "write it as usd=0.50,calls=20"),
        (("run", "machines.py:LETTER", "Ada", "--budget", "calls=many"), "write it as usd=0.50,calls=20"),
        (("run", "machines.py:LETTER", "Ada", "--budget", "euros=3"), "write it as usd=0.50,calls=20"),
        (("run", "machines.py:LETTER", "Ada", "--budget", "calls=-1"), "calls must be a number of at least 0, not -1"),
        (("run", "machines.py:LETTER", "Ada", "--budget", "usd=nan"), "usd must be a number of at least 0"),
        (("run", "machines.py:LETTER", "Ada", "--budget", ""), "write it as usd=0.50,calls=20"),
        (("run", "machines.py:LETTER", "Ada", "--budget", "usd=inf"), "usd must be a number"),
        (("run", "machines.py:LETTER", "Ada", "--budget", "calls=3,calls=4"), "calls is given twice"),
        (("run", "machines.py:LETTER", "Ada", "--budget", f"tokens={'9' * 20}"), "tokens is at most 2**53"),
        (("run", "machines.py:LETTER", "Ada", "--run-id", ""), "argument --run-id: it is empty"),
        (("run", "machines.py:LETTER", "Ada", "--store", " "), "argument --store: it is empty"),
        (("run", "machines.py:LETTER", "Ada", "--model", ""), "argument --model: it is empty"),
        (("run", "machines.py:LETTER", "--input-json", ""), "argument --input-json: it is empty"),
        (("run", "text.json", "Ada", "--functions", ""), "argument --functions: it is empty"),
        (("replay", "none", "--machine", ""), "argument --machine: it is empty"),
        (("report", "none", "--output", ""), "argument --output/-o: it is empty"),
        (("fork", "none", "--run-id", ""), "argument --run-id: it is empty"),
        (("ls", "--store", ""), "argument --store: it is empty"),
        (("doctor", "--store", ""), "argument --store: it is empty"),
        (("fork", "none", "--at", "-1"), "argument --at: a whole number of at least 0 and at most 9 digits, not '-1'"),
        (("fork", "none", "--at", "9" * 20), "argument --at: a whole number"),
        (("watch", "none", "--from", "-1"), "argument --from: a whole number of at least 0"),
        (("worker", "--most", "9" * 5000), "argument --most: a whole number of at least 1"),
        (("pipeline", "text", "--max-iterations", "-1"), "argument --max-iterations: a whole number of at least 0"),
        (("pipeline", "text", "--token-budget", "nan"), "argument --token-budget: a whole number of at least 0"),
        (("run", "machines.py:LETTER", "caf\udce9"), "argument input: it is not text in the encoding of this terminal"),
        (("answer", "none", "--text", "caf\udce9"), "argument --text: it is not text in the encoding of this terminal"),
        (("cancel", "none", "--reason", "caf\udce9"), "argument --reason: it is not text in the encoding"),
        (("pipeline", "caf\udce9"), "argument brief: it is not text in the encoding of this terminal"),
    ],
    ids=lambda value: ascii(" ".join(value)) if isinstance(value, tuple) else "",
)
def test_wrong_usage_exits_with_2(moot: Moot, arguments: tuple[str, ...], says: str) -> None:
    assert says in refused(moot(*arguments), USAGE)


@pytest.mark.parametrize("days", ["-1", "-0.5", "nan", "inf", "soon"])
def test_days_that_are_none_delete_nothing(moot: Moot, days: str) -> None:
    moot("run", "machines.py:LETTER", "Ada", "--run-id", "mine")
    ran = moot("prune", "--days", days, "--yes")
    assert f"argument --days: a number of at least 0, not {days!r}" in refused(ran, USAGE)
    assert [one["run"] for one in moot("ls", "--json").json] == ["mine"]


@pytest.mark.parametrize("command", ["run", "check", "graph"])
@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("none.py", "there is no file none.py"),
        ("none.py:X", "there is no file none.py"),
        ("machines.py:NONE", "machines.py has no machine 'NONE'; its machines are LETTER, NAMED"),
        ("machines.py", "name one as machines.py:NAME"),
        ("no.such.module:X", "there is no workflow or module 'no'"),
        (
            "coder_reviewr",
            "there is no workflow or module 'coder_reviewr'; a file is written FILE.py:NAME, and `moot wor",
        ),
        ("wanting:X", "wanting.py:1: ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("", "names no machine"),
        ("..:X", "names no module"),
        ("syntax.py", "syntax.py:2: SyntaxError"),
        ("raising.py", "raising.py:1: ZeroDivisionError"),
        ("running.py", "running.py starts a run while it is loaded; put that under"),
        ("binary.py", "binary.py"),
        ("machines.txt:X", "there is no workflow or module 'machines.txt'"),
    ],
)
def test_a_machine_that_cannot_be_found_exits_with_4(moot: Moot, command: str, source: str, says: str) -> None:
    Path("syntax.py").write_text("x = 1\nif x\n")
    Path("raising.py").write_text("1 / 0\n")
    Path("wanting.py").write_text("import nowhere_at_all\n")
    Path("running.py").write_text("from machines import *\nfrom moothall import run\nrun(LETTER, 'Ada')\n")
    Path("binary.py").write_bytes(b"\x00\xff\xfe")
    complaint = refused(moot(command, source), DEFINITION)
    assert complaint.startswith(f"moot {command}: ")
    assert says in complaint or source == "machines.txt:X"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((), "input: the field 'to' is missing"),
        (('{"to": 3}',), "input.to: expected a text, got 3"),
        (('{"to": "Ada", "cc": "Bob"}',), "input: unknown field 'cc'; known are to, text"),
        (("{half",), "the input begins with '{' and is not JSON: "),
        (("--input-json", "half.json"), "half.json is not JSON: "),
        (("--input-json", "binary.json"), "binary.json is not JSON: "),
        (("Ada", "--run-id", "a b"), "'a b' is not a run id; use letters, digits and dashes, at most 128"),
        (("Ada", "--run-id", "a" * 129), "is not a run id; use letters, digits and dashes, at most 128"),
        (("Ada", "--store", "sqlite:."), ". cannot be opened as a store: "),
        (("Ada", "--store", "sqlite:diary.db"), "diary.db cannot be opened as a store: file is not a database"),
        (("Ada", "--store", "sqlite:half.json/x.db"), "cannot be opened as a store: "),
    ],
    ids=str,
)
def test_input_and_stores_that_do_not_fit_exit_with_1_and_start_nothing(
    moot: Moot, given: tuple[str, ...], says: str
) -> None:
    Path("half.json").write_text('{"to": ')
    Path("binary.json").write_bytes(b"\xff\xfe")
    Path("diary.db").write_text("dear diary " * 99)
    assert says in refused(moot("run", "machines.py:LETTER", *given), REFUSED)
    assert moot("ls").out == "no runs yet\n"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--store", "postgres:x"), "'postgres:x' is not a store; write sqlite:FILE, postgresql://… or memory"),
        (("--store", "runs.db"), "'runs.db' is not a store; write sqlite:FILE, postgresql://… or memory"),
        (("--store", "sqlite::memory:"), "'sqlite::memory:' is not a store; write sqlite:FILE, postgresql://…"),
        (("--store", "sqlite:file:x?mode=memory"), "is not a store; write sqlite:FILE, postgresql://… or memory"),
        (("--model", "gpt"), "'gpt' is not a model; write rehearsal, scripted:FILE, openai:NAME"),
        (("--model", "scripted:none.json"), "none.json: the script cannot be read: No such file"),
        (("--model", "scripted:machines.py"), "machines.py: the script is not JSON"),
    ],
    ids=str,
)
def test_settings_that_mean_nothing_exit_with_4(moot: Moot, given: tuple[str, ...], says: str) -> None:
    assert says in refused(moot("run", "machines.py:NAMED", "Ada", *given), DEFINITION)


@pytest.mark.parametrize(
    "arguments", [("resume", "none"), ("show", "none"), ("report", "none"), ("answer", "none", "--yes")]
)
def test_an_unknown_run_exits_with_1_and_says_where_to_look(moot: Moot, arguments: tuple[str, ...]) -> None:
    complaint = refused(moot(*arguments), REFUSED)
    assert "there is no run 'none' in this store; `moot ls` shows what there is" in complaint


def test_a_run_id_that_is_taken_exits_with_1(moot: Moot) -> None:
    moot("run", "machines.py:LETTER", "Ada", "--run-id", "mine")
    assert "run mine exists already" in refused(moot("run", "machines.py:LETTER", "Bob", "--run-id", "mine"), REFUSED)


def test_a_result_that_cannot_be_made_is_the_author_s_mistake(moot: Moot) -> None:
    complaint = refused(moot("run", "machines.py:MISPRINTED", "Ada", "-q"), DEFINITION)
    assert (
        "machine misprinted, result: AttributeError: 'Letter' object has no attribute 'txt' (in <lambda>, " in complaint
    )
    assert "machines.py:57)" in complaint


def test_a_run_whose_file_is_gone_says_so_and_can_still_be_shown(moot: Moot) -> None:
    moot("run", "machines.py:SENT", "Ada", "--run-id", "mine")
    Path("machines.py").unlink()
    assert "there is no file" in refused(moot("answer", "mine", "--yes"), DEFINITION)
    assert moot("show", "mine").code == 0
    assert moot("report", "mine").code == 0


@pytest.mark.parametrize("head", ["{half", "{}", "[]", '{"snapshot": 3}'])
def test_a_damaged_head_is_said_and_made_anew_from_the_journal(moot: Moot, head: str) -> None:
    moot("run", "machines.py:LETTER", "Ada", "--run-id", "mine")
    before = moot("show", "mine", "--json").out
    damage(f"UPDATE runs SET head = x'{head.encode().hex()}'")
    assert "damaged" in moot("ls").out
    assert moot("resume", "mine").code == 0
    assert moot("show", "mine", "--json").out == before


@pytest.mark.parametrize("arguments", [("show", "mine"), ("resume", "mine"), ("report", "mine")])
def test_a_damaged_journal_is_told_in_a_sentence(moot: Moot, arguments: tuple[str, ...]) -> None:
    moot("run", "machines.py:LETTER", "Ada", "--run-id", "mine")
    damage("UPDATE runs SET head = x'7b'")
    damage("UPDATE entries SET body = replace(body, 'Ada', 'Eve')")
    refused(moot(*arguments), REFUSED)


def damage(statement: str) -> None:
    with closing(sqlite3.connect("home/moothall.db")) as db, db:
        db.execute(statement)
    db.close()


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("check", "base.py"), 4, "base.py"),
        (("check", "mute.py"), 4, "mute.py"),
        (("run", "machines.py:LETTER", "x", "--model", "scripted:deep.json"), 4, "deep.json"),
        (("pipeline", "x", "--checks", "deep.json"), 4, "deep.json"),
        (("check", f"{'a' * 5000}.py"), 4, "File name too long"),
        (("audit", "none", "--against", ""), 2, "is not a digest"),
        (("audit", "none", "--against", "nonsense"), 2, "is not a digest"),
        (("worker", "--most", "0"), 2, "at least 1"),
    ],
)
def test_what_is_hostile_gets_a_sentence(
    moot: Moot, arguments: tuple[str, ...], code: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MOOTHALL_DEBUG", raising=False)
    Path("base.py").write_text("class Gone(BaseException): pass\nraise Gone('bye')\n")
    Path("mute.py").write_text("class Mute(Exception):\n def __str__(self): raise ValueError('in str')\nraise Mute\n")
    Path("deep.json").write_text(DEEP)
    ran = moot(*arguments)
    assert ran.code == code
    assert says in ran.err
    assert "Traceback" not in ran.err


HOSTILE = """
import asyncio, sys
from moothall import Answered, Final, Machine, On, Replied, State, ask, question

async def quitter(prompt: str) -> str:
    await asyncio.gather(quit_in_a_task())

async def quit_in_a_task():
    await asyncio.sleep(0)
    sys.exit(0)

async def clerk(prompt: str) -> str:
    return prompt

def cut_off(data, reply):
    raise asyncio.CancelledError

def machine(name, agent, do=None):
    return Machine(name, data=dict, states=[State("writing", enter=ask(agent, "Write")), Final("written")],
        moves=[On("writing", Replied, to="written", do=do)])

QUITTING, CUT = machine("quitting", quitter), machine("cut", clerk, cut_off)
PATIENT = Machine("patient", data=dict, states=[State("asking", enter=question("Now?", within=1e18)), Final("over")],
    moves=[On("asking", Answered, to="over")])
"""


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("QUITTING", "moot run: something in a run ended the program (SystemExit: 0)"),
        ("CUT", "moot run: CancelledError"),
    ],
)
def test_a_run_that_ends_the_command_gets_a_sentence_and_is_not_called_done(moot: Moot, name: str, says: str) -> None:
    Path("hostile.py").write_text(HOSTILE)
    assert says in refused(moot("run", f"hostile.py:{name}", "{}", "--run-id", "cut-off"), REFUSED)
    assert moot("ls", "--json").json[0]["status"] == "running"


def test_a_deadline_after_the_last_year_is_shown_all_the_same(moot: Moot) -> None:
    Path("hostile.py").write_text(HOSTILE)
    ran = moot("run", "hostile.py:PATIENT", "{}", "--run-id", "late")
    assert (ran.code, "question 0.0 (until 100000000" in ran.err) == (5, True)
    assert "Now?" in moot("show", "late").out


def test_a_run_that_began_under_a_clock_without_a_calendar_is_listed_like_the_others(
    moot: Moot, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as wrong:
        wrong.setattr("time.time", lambda: 3e11)
        assert moot("run", "machines.py:SENT", "Ada", "--run-id", "odd").code == WAITING
    assert moot("run", "machines.py:LETTER", "Ada", "--run-id", "even").code == 0
    assert {one["run"]: one["began"] for one in moot("ls", "--json").json}["odd"] == "300000000000"
    assert moot("show", "odd").code == 0


def test_an_input_that_is_nested_too_deeply_is_refused(moot: Moot) -> None:
    deep = '{"to": ' + "[" * 100_000
    Path("deep.json").write_text(deep)
    says = refused(moot("run", "machines.py:LETTER", deep), REFUSED)
    assert "the input begins with '{' and is JSON that is nested too deeply" in says
    for given in (deep, "deep.json"):
        says = refused(moot("run", "machines.py:LETTER", "--input-json", given), REFUSED)
        assert says.endswith(" is JSON that is nested too deeply\n")
        assert len(says) < 150
