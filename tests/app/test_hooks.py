"""Whoever wants to know is told that a run waits. It never harms or delays the run."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from moothall import Answered, DefinitionError, Final, Machine, On, Outcome, Parallel, State, question
from moothall.app.notify.hook import OnWait, Patience
from moothall.app.runs.begin import Terms, begin
from moothall.app.runs.resume import answer, resume
from moothall.stores.memory import MemoryStore
from tests.app.around import context_over
from tests.app.listening import WRITES_DOWN, command, hanging, listening, refusing

PROMPT = Patience(answer=5, command=5, tries=3, pause=0.01, end=10)
HASTY = Patience(answer=0.2, command=0.3, tries=2, pause=0.01, end=10)

ONE = Machine(
    "one",
    states=[
        State("asking", enter=question("Well?", within=60)),
        State("more", enter=question("More?", str)),
        Final("over"),
    ],
    moves=[On("asking", Answered, to="more"), On("more", Answered, to="over")],
)
TWO = Machine(
    "two",
    states=[
        Parallel(
            "both",
            [
                State("left", [State("first", enter=question("Left?")), Final("lefted")]),
                State("right", [State("second", enter=question("Right?")), Final("righted")]),
            ],
        ),
        Final("over"),
    ],
    moves=[
        On("first", Answered, to="lefted"),
        On("second", Answered, to="righted"),
        On("both", "done.state.both", to="over"),
    ],
)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


class Told:
    """A setting with a hook, and the notices of that hook."""

    def __init__(self, target: str, patience: Patience = PROMPT) -> None:
        self.notices: list[str] = []
        self.hook = OnWait(target, self.notices.append, patience)
        self.context = context_over(MemoryStore(), self.hook)

    async def run(self, machine: Machine = ONE) -> Outcome:
        return await begin(self.context, machine, None, Terms("mine"))

    async def answer(self, machine: Machine, value: Any, asked: str) -> Outcome:
        return await answer(self.context, "mine", value, question=asked, machine=machine)


@pytest.mark.anyio
async def test_an_address_gets_the_run_and_its_question_as_json() -> None:
    with listening() as server:
        told = Told(server.url)
        outcome = await told.run()
        told.hook.finish()
    [asked] = outcome.questions
    assert server.got == [
        {
            "run": "mine",
            "machine": "one",
            "status": "waiting",
            "states": ["asking"],
            "questions": [{"id": "0.0", "prompt": "Well?", "schema": {"type": "boolean"}, "due": asked.due, "who": ""}],
        }
    ]
    assert (server.paths, server.types) == (["/hook?token=secret"], ["application/json; charset=utf-8"])
    assert told.notices == []


@pytest.mark.anyio
async def test_a_command_gets_the_same_on_stdin_without_a_shell(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "$HOME; told & more"
    told = Told(command(tmp_path, WRITES_DOWN, str(written)))
    await told.run()
    told.hook.finish()
    assert json.loads(written.read_text())["questions"][0]["prompt"] == "Well?"
    assert (told.notices, capfd.readouterr().out) == ([], "")


@pytest.mark.anyio
async def test_each_question_is_told_once_whatever_else_happens_to_the_run() -> None:
    with listening() as server:
        told = Told(server.url)
        await told.run(TWO)
        await resume(told.context, "mine", TWO)
        await told.answer(TWO, True, "0.0")
        await told.answer(TWO, True, "0.1")
        told.hook.finish()
    assert [[one["id"] for one in got["questions"]] for got in server.got] == [["0.0", "0.1"]]


@pytest.mark.anyio
async def test_the_next_question_of_a_run_is_told_as_well() -> None:
    with listening() as server:
        told = Told(server.url)
        await told.run()
        await told.answer(ONE, True, "0.0")
        told.hook.finish()
    prompts = sorted(one["prompt"] for got in server.got for one in got["questions"])
    assert prompts == ["More?", "Well?"]


@pytest.mark.anyio
async def test_a_new_process_may_tell_an_open_question_again() -> None:
    with listening() as server:
        first = Told(server.url)
        await first.run(TWO)
        first.hook.finish()
        second = Told(server.url)
        second.context = context_over(first.context.store, second.hook)
        await second.answer(TWO, True, "0.0")
        second.hook.finish()
    assert [[one["id"] for one in got["questions"]] for got in server.got] == [["0.0", "0.1"], ["0.1"]]


@pytest.mark.anyio
async def test_a_server_in_trouble_is_tried_three_times() -> None:
    with listening(503, 429) as server:
        told = Told(server.url)
        await told.run()
        told.hook.finish()
    assert (len(server.got), told.notices) == (3, [])


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("codes", "times", "says"),
    [
        ((500, 502, 503), 3, "it answers 503, 3 attempts"),
        ((404,), 1, "it answers 404"),
        ((302,), 1, "it answers 302"),
    ],
)
async def test_a_server_that_declines_becomes_one_notice(codes: tuple[int, ...], times: int, says: str) -> None:
    with listening(*codes) as server:
        told = Told(server.url)
        assert (await told.run()).status == "waiting"
        told.hook.finish()
        name = server.url.partition("/hook")[0]
    assert told.notices == [f"{name} was not told that a run waits: {says}"]
    assert len(server.got) == times


@pytest.mark.anyio
async def test_where_nobody_listens_the_run_goes_on_and_no_secret_is_told() -> None:
    url = refusing()
    told = Told(url)
    assert (await told.run()).status == "waiting"
    assert (await told.answer(ONE, True, "0.0")).status == "waiting"
    assert (await told.answer(ONE, "fine", "1.0")).status == "done"
    told.hook.finish()
    name = url.partition("/hook")[0]
    assert told.notices == [f"{name} was not told that a run waits: Connection refused, 3 attempts"] * 2


@pytest.mark.anyio
async def test_a_server_that_never_answers_becomes_a_notice() -> None:
    with hanging() as url:
        told = Told(url, HASTY)
        await told.run()
        told.hook.finish()
    assert [note.partition(": ")[2] for note in told.notices] == ["it does not answer in time, 2 attempts"]


@pytest.mark.anyio
async def test_a_server_that_never_answers_delays_neither_the_run_nor_for_long_the_end() -> None:
    with hanging() as url:
        told = Told(url, Patience(answer=60, end=0.1))
        before = time.monotonic()
        await told.run()
        await told.answer(ONE, True, "0.0")
        assert time.monotonic() - before < 5
        told.hook.finish()
        assert time.monotonic() - before < 10
    assert len(told.notices) == 1
    assert told.notices[0].endswith("it takes too long, and the command ends")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("import sys; sys.exit('no\\x1b[31mpost\\ntoday')", "it exits with 1: today"),
        ("import sys; sys.exit(7)", "it exits with 7"),
        ("import os; os.kill(os.getpid(), 9)", "it exits with -9"),
    ],
)
async def test_a_command_that_fails_becomes_one_notice(tmp_path: Path, program: str, says: str) -> None:
    told = Told(command(tmp_path, program, "--token", "secret"))
    assert (await told.run()).status == "waiting"
    told.hook.finish()
    [note] = told.notices
    assert note.endswith(f" was not told that a run waits: {says}")
    assert "secret" not in note


@pytest.mark.anyio
async def test_a_command_that_does_not_exist_becomes_one_notice() -> None:
    told = Told("/no/such/pigeon --token secret")
    assert (await told.run()).status == "waiting"
    told.hook.finish()
    assert told.notices == [
        "pigeon was not told that a run waits: it cannot be started: No such file or directory",
    ]


FORKING = """
import subprocess, sys, time
child = subprocess.Popen(["sleep", "3600"])
open(sys.argv[1], "w").write(str(child.pid))
time.sleep(float(sys.argv[2]))
"""


@pytest.mark.anyio
@pytest.mark.parametrize(("seconds", "notices"), [(0, 0), (3600, 1)], ids=["in time", "too late"])
async def test_nothing_that_a_command_started_is_left_behind(tmp_path: Path, seconds: float, notices: int) -> None:
    noted = tmp_path / "child"
    told = Told(command(tmp_path, FORKING, str(noted), str(seconds)), Patience(command=5 if seconds == 0 else 1.5))
    await told.run()
    told.hook.finish()
    assert len(told.notices) == notices
    assert is_over(int(noted.read_text()))


@pytest.mark.anyio
async def test_a_command_that_is_still_at_work_at_the_end_is_stopped_with_all_it_started(tmp_path: Path) -> None:
    noted = tmp_path / "child"
    told = Told(command(tmp_path, FORKING, str(noted), "3600"), Patience(end=2))
    await told.run()
    told.hook.finish()
    assert told.notices[0].endswith("it takes too long, and the command ends")
    assert is_over(int(noted.read_text()))


def is_over(process: int) -> bool:
    """Whether a process is gone, or only waits to be buried."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("http://", "must be http(s)://HOST/…"),
        ("https:///path", "must be http(s)://HOST/…"),
        ("http://me:secret@host/", "without a password"),
        ("http://host:none/", "is not valid: "),
        ("say 'hello", "cannot be read: No closing quotation"),
        ("  ", "is empty"),
    ],
)
def test_what_is_neither_address_nor_command_is_refused_at_once(target: str, says: str) -> None:
    with pytest.raises(DefinitionError) as error:
        OnWait(target, print)
    assert says in str(error.value)


def test_without_a_question_the_end_waits_for_nothing() -> None:
    hook = OnWait("http://127.0.0.1:9/", print, Patience(end=3600))
    before = time.monotonic()
    hook.finish()
    assert time.monotonic() - before < 1


@pytest.mark.anyio
async def test_many_waiting_runs_are_all_told() -> None:
    with listening() as server:
        told = Told(server.url)
        for number in range(20):
            await begin(told.context, ONE, None, Terms(f"run-{number}"))
        told.hook.finish()
    assert sorted(got["run"] for got in server.got) == sorted(f"run-{number}" for number in range(20))
