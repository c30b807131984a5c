"""Temporal pumps the runs of a PostgreSQL store; the server is a real one, and what it remembers is counted."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from moothall import Moothall
from moothall.app.kinds.source import find
from moothall.app.runs.news import News, Noticed
from moothall.app.runs.worker import Duty, work
from moothall.kernel.machine import Machine
from moothall.runtime import hall as halls
from moothall.runtime.ports import LEASE
from moothall.stores.postgresql import PostgresStore
from tests.cli.process import hired
from tests.temporal import TemporalServer, served

pytestmark = [pytest.mark.slow, pytest.mark.anyio, pytest.mark.unreplayed("the machines lie in a folder of the test")]
PATIENCE = 60.0
TOKENS = 209_000
CALLS = 100
CANCEL = 0.5
"""So soon is a cancel to be heard of where it is at work, in seconds."""
CHARACTERS = 4
"""How many characters count as a token."""


@pytest.fixture(scope="module")
def temporal() -> Iterator[TemporalServer]:
    """A Temporal server."""
    with served() as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the machines in it, where nothing else is set."""
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path))
    shutil.copy(Path(__file__).with_name("machines.py"), tmp_path)
    return tmp_path


class Office:
    """A store, a worker that may be at it, and what the worker said."""

    def __init__(self, hall: Moothall, address: str, folder: Path, engine: str) -> None:
        self.hall, self.address, self.folder, self.engine = hall, address, folder, engine
        self.said: list[str] = []
        hall.listen(self._hear)

    def _hear(self, news: News) -> None:
        if isinstance(news, Noticed):
            self.said.append(news.text)

    def machine(self, name: str) -> Machine:
        """A machine of the folder."""
        machine: Machine = find(f"{self.folder / 'machines.py'}:{name}")
        return machine

    def calls(self, name: str) -> list[str]:
        """What was done outside."""
        log = self.folder / "calls.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line.partition(" ")[2] for line in lines if line.partition(" ")[0] == name]

    @asynccontextmanager
    async def worked(self, most: int = 100) -> AsyncIterator[None]:
        """A worker is at work meanwhile."""
        stop = asyncio.Event()
        working = asyncio.create_task(work(self.hall.context(), stop, Duty(most, engine=self.engine)))
        try:
            yield
        finally:
            stop.set()
            await asyncio.wait_for(working, PATIENCE)

    def hire(self) -> subprocess.Popen[bytes]:
        """Start a worker process; what it says goes to `worker.log`."""
        return hired(self.folder, self.address, *(("--engine", self.engine) if self.engine else ()))

    @contextmanager
    def worker(self) -> Iterator[Callable[[], str]]:
        """A worker process is at work meanwhile; what it has said."""
        process = self.hire()
        try:
            yield (self.folder / "worker.log").read_text
        finally:
            process.terminate()
            process.wait(PATIENCE)

    async def answer(self, run: str, value: Any) -> None:
        """Answer a question without going on."""
        hall = self.hall.context().hall
        with halls.visiting(hall, run):
            await hall.open(run)
            await halls.answer(hall, run, value)
            await halls.let_go_unless_driven(hall, run)

    async def status(self, run: str) -> str:
        """How a run is."""
        return (await self.hall.store.load(run)).status

    async def wait_for(self, run: str, status: str) -> None:
        """Wait until a run is so."""

        async def has() -> bool:
            return await self.status(run) == status

        await wait_until(has)

    async def happened(self, run: str) -> list[str]:
        """The names of a run's events."""
        return [entry["event"]["name"] for entry in await self.hall.store.entries(run)]


async def wait_until(done: Callable[[], Awaitable[bool]]) -> None:
    until = time.monotonic() + PATIENCE
    while not await done():
        assert time.monotonic() < until, "it does not come to that"
        await asyncio.sleep(0.02)


@pytest.fixture
async def office(folder: Path, database: str, temporal: TemporalServer) -> AsyncIterator[Office]:
    """A store whose runs Temporal pumps."""
    async with Moothall(database, listeners=()) as hall:
        yield Office(hall, database, folder, temporal.engine)


async def workflows(office: Office, temporal: TemporalServer, run: str) -> list[tuple[str, int, int]]:
    """The workflows that a run had, each with its end, its events and the bytes of its history; the oldest first."""
    assert isinstance(office.hall.store, PostgresStore)
    name = f"moothall-{await office.hall.store.name()}-{run}"
    client = await Client.connect(temporal.address)
    found = [known async for known in client.list_workflows(f"WorkflowId = '{name}'")]
    seen = []
    for known in sorted(found, key=lambda known: known.start_time):
        events = (await client.get_workflow_handle(name, run_id=known.run_id).fetch_history()).events
        assert known.status is not None
        seen.append((known.status.name, len(events), sum(event.ByteSize() for event in events)))
    return seen


async def wait_for_workflows(office: Office, temporal: TemporalServer, run: str, ends: list[str]) -> None:
    """Wait until the workflows of a run have ended so; what Temporal lists is a moment late."""

    async def have() -> bool:
        return [end for end, _, _ in await workflows(office, temporal, run)] == ends

    await wait_until(have)


async def test_a_hundred_calls_with_209_000_tokens_leave_a_history_of_kilobytes(
    office: Office, temporal: TemporalServer, figure: list[str]
) -> None:
    text = "tide " * (TOKENS * CHARACTERS // CALLS // 5)
    async with office.worked():
        await office.hall.submit(office.machine("READ"), {"text": text, "times": CALLS}, run_id="long")
        await office.wait_for("long", "done")
        await wait_for_workflows(office, temporal, "long", ["CONTINUED_AS_NEW", "COMPLETED"])
    asked = [int(size) for size in office.calls("read")]
    assert len(asked) == CALLS
    assert sum(asked) >= TOKENS * CHARACTERS - CALLS * 5
    sizes = [size for _, _, size in await workflows(office, temporal, "long")]
    figure.append(f"{CALLS} calls, {sum(asked) // CHARACTERS:,} tokens: {sum(sizes) / 1000:.0f} KB of history in all")
    assert sum(sizes) < 1_000_000


async def test_a_workflow_closes_while_a_person_is_asked_and_the_answer_starts_another(
    office: Office, temporal: TemporalServer
) -> None:
    async with office.worked():
        await office.hall.submit(office.machine("DRAFT"), {"text": "hello"}, run_id="asked")
        await wait_for_workflows(office, temporal, "asked", ["COMPLETED"])
        assert (await office.status("asked"), office.calls("post")) == ("live", ["hello"])
        await office.answer("asked", True)
        await office.wait_for("asked", "done")
        await wait_for_workflows(office, temporal, "asked", ["COMPLETED", "COMPLETED"])
    assert office.calls("post") == ["hello", "hello"]


async def test_a_time_that_has_come_starts_a_workflow_and_none_waits_for_it(
    office: Office, temporal: TemporalServer
) -> None:
    async with office.worked():
        await office.hall.submit(office.machine("WAIT"), {"text": "hello"}, run_id="timed")
        assert await workflows(office, temporal, "timed") == []
        await office.wait_for("timed", "done")
        await wait_for_workflows(office, temporal, "timed", ["COMPLETED"])
    assert await office.happened("timed") == ["run.started", "expired"]


async def test_a_cancel_stops_what_is_under_way(
    office: Office, temporal: TemporalServer, database: str, figure: list[str]
) -> None:
    async with office.worked(), Moothall(database, listeners=()) as other:
        await office.hall.submit(office.machine("BROOD"), {"text": "egg"}, run_id="long")
        await wait_until(lambda: has_called(office, "brood"))
        began = time.monotonic()
        await other.cancel("long", "enough")
        await wait_until(lambda: has_called(office, "stopped"))
        ended = time.monotonic()
    assert await office.status("long") == "cancelled"
    figure.append(f"a cancel reached the performer {ended - began:.2f} s after it was said")
    assert ended - began < CANCEL


async def has_called(office: Office, name: str, times: int = 1) -> bool:
    return len(office.calls(name)) >= times


async def submit_work(office: Office, tenant: str, runs: int) -> None:
    """Leave runs of a tenant to the workers."""
    for number in range(runs):
        await office.hall.submit(office.machine("WORK"), {"text": f"{tenant} {number}"}, tenant=tenant)


@pytest.mark.parametrize("is_late", [False, True], ids=["beside them", "while they are under way"])
async def test_five_runs_of_a_small_tenant_among_sixty_of_a_large_one_are_among_the_first_fifteen(
    office: Office, figure: list[str], *, is_late: bool
) -> None:
    begun = 0
    await submit_work(office, "large", 60)
    if not is_late:
        await submit_work(office, "small", 5)
    async with office.worked(most=3):
        if is_late:
            await wait_until(lambda: has_called(office, "work", 5))
            begun = len(office.calls("work"))
            await submit_work(office, "small", 5)
        await wait_until(lambda: has_called(office, "work", begun + 30))
    places = [place - begun for place, name in enumerate(office.calls("work"), 1) if name.startswith("small")]
    figure.append(
        f"five runs of a small tenant, {begun} of the large one begun before: in places {places} from then on"
    )
    assert len(places) == 5
    assert max(places) <= 15


async def test_a_worker_that_stands_still_is_replaced_long_before_its_lease_is_over_and_a_live_one_is_not(
    office: Office, figure: list[str]
) -> None:
    workers = [office.hire(), office.hire()]
    try:
        await office.hall.submit(office.machine("NAP"), {"text": "live"}, run_id="live")
        await office.wait_for("live", "done")
        await office.hall.submit(office.machine("NAP"), {"text": "stalled"}, run_id="stalled")
        await wait_until(lambda: has_called(office, "nap", 2))
        first, second = (line.split() for line in office.calls("nap"))
        assert (first[1], second[1]) == ("live", "stalled")
        stalled = next(worker for worker in workers if str(worker.pid) == second[0])
        stalled.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        await wait_until(lambda: has_called(office, "nap", 3))
        taken = time.monotonic() - began
        stalled.send_signal(signal.SIGCONT)
        await office.wait_for("stalled", "done")
    finally:
        for worker in workers:
            worker.send_signal(signal.SIGCONT)
            worker.terminate()
        for worker in workers:
            worker.wait(PATIENCE)
    figure.append(f"a worker that stood still was replaced after {taken:.1f} s")
    assert len({line.split()[0] for line in office.calls("nap")[1:]}) == 2
    assert len(office.calls("nap")) == 3
    assert await office.happened("stalled") == ["run.started", "returned"]
    assert taken < LEASE / 2


async def test_a_temporal_that_is_killed_or_forgets_everything_loses_no_run(folder: Path, database: str) -> None:
    with served() as temporal:
        async with Moothall(database, listeners=()) as hall:
            office = Office(hall, database, folder, temporal.engine)
            async with office.worked():
                reading = {"text": "tide", "times": 60}
                for number, is_forgotten in enumerate((False, True)):
                    await hall.submit(office.machine("READ"), reading, run_id=f"read-{number}")
                    before = len(office.calls("read"))
                    await wait_until(lambda before=before: has_called(office, "read", before + 5))  # type: ignore[misc]
                    temporal.kill()
                    if is_forgotten:
                        temporal.forget()
                    temporal.start()
                    await office.wait_for(f"read-{number}", "done")
                    assert await office.happened(f"read-{number}") == ["run.started"] + ["replied"] * 60
            assert len(office.calls("read")) == 120


ANSWERED = 'On("asking", Answered, to="posting"),'
ADOPTED = ["run.started", "answered", "run.adopted", "returned"]
CHANGES: dict[str, tuple[str, str, list[str]]] = {
    "other words": ('question("Post it?")', 'question("Shall I post it?")', ADOPTED),
    "the same steps": (ANSWERED, f'{ANSWERED} On("asking", "expired", to="posted"),', ADOPTED),
    "other steps": (ANSWERED, ANSWERED.replace("posting", "posted"), ["run.started", "answered"]),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("engine", ["own", "temporal"])
async def test_a_definition_that_changes_while_a_run_waits_counts_as_it_does_on_one_machine(
    folder: Path, database: str, temporal: TemporalServer, engine: str, change: str
) -> None:
    old, new, happened = CHANGES[change]
    address, named = (f"sqlite:{folder / 'runs.db'}", "") if engine == "own" else (database, temporal.engine)
    async with Moothall(address, listeners=()) as hall:
        office = Office(hall, address, folder, named)
        await hall.submit(office.machine("ASK"), {"text": "hello"}, run_id="asked")
        await office.answer("asked", True)
        file = folder / "machines.py"
        file.write_text(file.read_text().replace(old, new))
        with office.worker() as said:

            async def is_over() -> bool:
                return "is left alone" in said() or await office.status("asked") != "live"

            await wait_until(is_over)
            told = said()
    assert await office.happened("asked") == happened
    assert office.calls("post") == (["hello"] if happened is ADOPTED else [])
    assert ("entry 1 differs in 'to': it says [\"posting\"]" in told) is (happened is not ADOPTED)
    assert "Traceback" not in told
