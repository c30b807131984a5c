"""A question is answered once, however many answer it at once; what is no answer changes nothing."""

import asyncio
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from moothall.agents.ask import question
from moothall.errors import MoothallError, Refused
from moothall.kernel.events import Answered, Event, Expired, Named
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall, answer, begin, reopen, tell
from moothall.runtime.journal import Record
from moothall.runtime.ports import Context, Performer
from moothall.stores.sqlite import SqliteStore
from tests.cli.ran import Moot
from tests.faults.place import RUN, Place, check_whole, told, wait_for
from tests.runtime.clock import MovableClock
from tests.runtime.world import Basket, Fetch, Fetched, hall_of, keep

pytestmark = pytest.mark.slow

ANSWERS, PROCESSES = 100, 8
KEY = "0.0"
ASKED = Machine(
    "asked",
    data=Basket,
    states=[
        State("asking", enter=question("How many?", int, within=60)),
        State("fetching", enter=Fetch("bread")),
        Final("home"),
        Final("late"),
    ],
    moves=[
        On("asking", Answered, to="fetching", do=lambda basket, event: Basket((str(event.value),))),
        On("asking", Expired, to="late"),
        On("fetching", Fetched, to="home", do=keep),
    ],
)


async def waiting(file: Path) -> None:
    """A run that asks."""
    store = SqliteStore(file)
    hall = hall_of(performing([]), store, MovableClock())
    await begin(hall, Record(RUN, ASKED.name, ASKED.digest, 1_000.0), ASKED, Basket())
    store.close()


def performing(calls: list[str]) -> Any:
    async def fetch(effect: Fetch, context: Context) -> Event:
        calls.append(context.key)
        return Fetched(effect.what)

    return fetch


async def answered(file: Path, number: int, asked: str | None, crowd: "Crowd") -> str:
    """Open the run, wait until all have it open, answer, and go on, as one of many would; how that was received."""
    store = SqliteStore(file)
    performers = {Fetch.kind: Performer(Fetch, performing(crowd.calls))}
    hall = Hall(store, MovableClock(), performers, owner=f"elsewhere:1:{number}")
    try:
        await reopen(hall, RUN, ASKED)
        crowd.there.wait()
        received = (await answer(hall, RUN, number, asked)).received
        if received == "taken":
            await drive(hall, RUN)
    except Refused as refusal:
        return str(refusal)
    finally:
        store.close()
    return received


class Crowd:
    """Those who answer at once, and the calls that follow."""

    def __init__(self) -> None:
        self.there = threading.Barrier(ANSWERS, timeout=30)
        self.calls: list[str] = []

    def answer(self, file: Path, asked: str | None) -> Counter[str]:
        """How each of them was received."""
        with ThreadPoolExecutor(ANSWERS) as threads:
            work = [threads.submit(asyncio.run, answered(file, one, asked, self)) for one in range(ANSWERS)]
            return Counter(one.result() for one in work)


@pytest.mark.parametrize("question", [KEY, None], ids=["by its id", "the only one"])
def test_of_a_hundred_answers_at_once_one_is_taken(tmp_path: Path, question: str | None, figure: list[str]) -> None:
    file = tmp_path / "runs.db"
    asyncio.run(waiting(file))
    crowd = Crowd()
    received = crowd.answer(file, question)
    assert received["taken"] == 1
    assert received.total() == ANSWERS
    others = {word for word in received if word != "taken"}
    assert others <= {"duplicate", f"run {RUN} is done; it accepts no answer", f"run {RUN}: no question is open"}
    assert crowd.calls == [f"{RUN}.1.0"]
    entries = Place(tmp_path).entries(file=file)
    check_whole(entries)
    assert [entry["event"]["name"] for entry in entries] == ["run.started", "answered", "fetched"]
    figure.append(f"{ANSWERS} answers at once: {dict(received)}, 1 effect")


def test_of_eight_commands_that_answer_at_once_one_is_taken(place: Place, figure: list[str]) -> None:
    assert place.moot("run", "machines.py:ASKED", "ada", "--run-id", RUN).returncode == 5
    place.hold(1)
    commands = [place.start("answer", RUN, KEY, "--yes") for _ in range(PROCESSES)]
    wait_for(lambda: sum(one.poll() is not None for one in commands) == PROCESSES - 1, "the end of all but one")
    place.let(1)
    said = [command.communicate(timeout=30)[1] for command in commands]
    assert not any("Traceback" in one for one in said)
    assert sum("asking → acting" in one for one in said) == 1
    duplicates = sum("this question was answered before; the first answer stands" in one for one in said)
    assert duplicates == PROCESSES - 1
    entries = place.entries()
    check_whole(entries)
    assert [entry["event"]["name"] for entry in entries] == ["run.started", "answered", "replied"]
    assert place.calls() == ["ada 1"]
    figure.append(
        f"{PROCESSES} `moot answer` at once: 1 taken, {duplicates} told that it was answered before, 1 effect"
    )


WRONG: list[tuple[Any, str | None, str]] = [
    ("seven", None, "the answer: expected a whole number, got 'seven'"),
    (7.5, None, "the answer: expected a whole number, got 7.5"),
    (True, None, "the answer: expected a whole number, got True"),
    (None, KEY, "the answer: expected a whole number, got None"),
    ([7], KEY, "the answer: expected a whole number"),
    ({"value": 7}, KEY, "the answer: expected a whole number"),
    (7, "9.9", f"run {RUN} has no question '9.9'; open questions are 0.0 (How many?)"),
    (7, "", f"run {RUN} has no question ''"),
    (7, "start", f"run {RUN} has no question 'start'"),
    (7, "0.0 ", f"run {RUN} has no question '0.0 '"),
]


@pytest.mark.anyio
async def test_what_is_no_answer_is_refused_and_changes_nothing(tmp_path: Path, figure: list[str]) -> None:
    await waiting(tmp_path / "runs.db")
    store = SqliteStore(tmp_path / "runs.db")
    hall = hall_of(performing([]), store, MovableClock())
    before = await store.entries(RUN)
    for value, asked, complaint in WRONG:
        await reopen(hall, RUN, ASKED)
        with pytest.raises(MoothallError) as refusal:
            await answer(hall, RUN, value, asked)
        assert isinstance(refusal.value, Refused)
        assert str(refusal.value).startswith(complaint)
        assert await store.entries(RUN) == before
    store.close()
    figure.append(f"{len(WRONG)} answers of the wrong shape or to no question: all refused, journal unchanged")


@pytest.mark.anyio
async def test_late_answers_leave_nothing_but_that_the_time_was_over(tmp_path: Path) -> None:
    await waiting(tmp_path / "runs.db")
    store, clock = SqliteStore(tmp_path / "runs.db"), MovableClock(1_061.0)
    for asked in (None, KEY, KEY, None):
        hall = hall_of(performing([]), store, clock)
        await reopen(hall, RUN, ASKED)
        with pytest.raises(Refused, match=r"the time to answer question 0\.0 is over|it accepts no answer"):
            await answer(hall, RUN, 7, asked)
        assert [entry["event"]["name"] for entry in await store.entries(RUN)] == ["run.started", "expired"]
    store.close()


def test_wrong_and_late_answers_at_the_command_line_end_with_a_sentence(place: Place, here: Moot) -> None:
    assert here("run", "machines.py:ASKED", "ada", "--run-id", RUN).code == 5
    before = told(place.entries())
    for arguments, complaint in (
        (("--text", "perhaps"), "the answer: expected true or false, got 'perhaps'"),
        (("--json", "{}"), "the answer: expected true or false, got {}"),
        (("9.9", "--yes"), f"run {RUN} has no question '9.9'; open questions are 0.0 (Go on?)"),
    ):
        ran = here("answer", RUN, *arguments)
        assert (ran.code, ran.out, ran.err) == (1, "", f"moot answer: {complaint}\n")
        assert told(place.entries()) == before
    assert here("answer", "nobody", "--yes").err.startswith("moot answer: there is no run 'nobody' in this store")


def test_who_answers_too_late_does_not_hold_the_run_that_it_will_not_drive(place: Place, here: Moot) -> None:
    assert here("run", "machines.py:HURRIED", "ada", "--run-id", RUN).code == 5
    wait_for(lambda: time.time() > place.entries()[0]["effects"][0]["due"], "the deadline")
    ran = here("answer", RUN, "--yes")
    assert ran.code == 1
    assert ran.err.endswith(f"moot answer: run {RUN}: the time to answer question 0.0 is over\n")
    assert place.row()["owner"] is None


@pytest.mark.parametrize(
    "arguments", [("show", "\udcff"), ("answer", "\udcff", "--yes"), ("answer", RUN, "\udcff", "--no")]
)
def test_a_name_that_is_no_text_is_a_mistake_of_the_command_line(here: Moot, arguments: tuple[str, ...]) -> None:
    assert here("run", "machines.py:ASKED", "ada", "--run-id", RUN).code == 5
    ran = here(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert "'\\udcff' is not text in the encoding of this terminal; write UTF-8" in ran.err


@pytest.mark.anyio
@pytest.mark.parametrize(
    "cause",
    [
        "c0ffee",
        "7f3c",
    ],
)
async def test_an_event_from_outside_is_taken_whatever_its_id(tmp_path: Path, cause: str) -> None:
    machine = Machine(
        "told", data=Basket, states=[State("waiting"), Final("over")], moves=[On("waiting", "hurried", to="over")]
    )
    store = SqliteStore(tmp_path / "runs.db")
    hall = hall_of(performing([]), store, MovableClock())
    await begin(hall, Record(RUN, machine.name, machine.digest, 1_000.0), machine, Basket())
    try:
        assert (await tell(hall, RUN, Named("hurried"), cause)).received == "taken"
    finally:
        store.close()
