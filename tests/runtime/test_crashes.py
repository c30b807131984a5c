"""A process that dies before or after any commit leaves a run that goes on as if nothing had happened."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from moothall.errors import Refused
from moothall.kernel.events import SharedRecord
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import On
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall, reopen
from moothall.runtime.journal import Entry, Head, Record, RunId
from moothall.runtime.ports import Lease, Store
from moothall.stores.memory import MemoryStore
from moothall.stores.sqlite import SqliteStore
from tests.runtime.world import RUN, Hands, begun, fan, hall_of, line

LINE = line("bread", "milk", "salt", "tea")
FAN = fan("a", "b", "c", "d", moves=[On("fetching", "error")])


class Died(BaseException):
    """The process is gone; nothing below the test may catch this."""


class MortalStore:
    """A store whose process dies before or after its k-th write."""

    def __init__(self, inner: Store, write: int, *, before: bool) -> None:
        self._inner, self._left, self._before = inner, write, before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def begin(self, record: Record, head: Head, entry: Entry, lease: Lease | None = None) -> None:
        self._die(before=True)
        await self._inner.begin(record, head, entry, lease)
        self._die(before=False)

    async def commit(
        self,
        run: RunId,
        head: Head,
        entry: Entry,
        lease: Lease | None = None,
        after: Lease | None = None,
        earlier: Sequence[Entry] = (),
        records: Sequence[SharedRecord] = (),
    ) -> None:
        self._die(before=True)
        await self._inner.commit(run, head, entry, lease, after, earlier, records)
        self._die(before=False)

    def _die(self, *, before: bool) -> None:
        if before:
            self._left -= 1
        if self._left < 0 or (self._left == 0 and before is self._before):
            raise Died


def mortal(inner: Store, write: int, *, before: bool) -> Store:
    return cast(Store, MortalStore(inner, write, before=before))


async def told(hall: Hall) -> list[tuple[Any, ...]]:
    """The journal without its times."""
    return [
        (entry["seq"], entry["cause"], entry["event"], entry["from"], entry["to"], entry["taken"], entry["effects"])
        for entry in await hall.store.entries(RUN)
    ]


async def whole(machine: Machine) -> list[tuple[Any, ...]]:
    """The journal of a run that nothing interrupted."""
    hall = hall_of(Hands())
    await begun(hall, machine)
    await drive(hall, RUN)
    return await told(hall)


async def interrupted(machine: Machine, hands: Hands, store: Store) -> None:
    """Begin and drive a run in a process that dies."""
    hall = hall_of(hands, store)
    try:
        await begun(hall, machine)
        await drive(hall, RUN)
    except Died:
        return
    pytest.fail("nobody died")


async def resumed(machine: Machine, hands: Hands, store: Store) -> Hall:
    """Go on in a new process; begin again where nothing was kept."""
    hall = hall_of(hands, store)
    try:
        await reopen(hall, RUN, machine)
    except Refused:
        await begun(hall, machine)
    await drive(hall, RUN)
    return hall


@pytest.mark.anyio
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize(("machine", "write"), [*((LINE, write) for write in range(1, 6)), (FAN, 1), (FAN, 2)])
async def test_a_run_that_died_at_any_write_ends_with_the_journal_of_one_that_did_not(
    machine: Machine, write: int, before: bool
) -> None:
    kept = MemoryStore()
    await interrupted(machine, Hands(), mortal(kept, write, before=before))
    hall = await resumed(machine, Hands(), kept)
    assert await told(hall) == await whole(machine)


@pytest.mark.anyio
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("write", range(1, 6))
async def test_what_was_committed_before_the_death_is_not_performed_again(write: int, before: bool) -> None:
    kept, first, second = MemoryStore(), Hands(), Hands()
    await interrupted(LINE, first, mortal(kept, write, before=before))
    committed = {entry["cause"] for entry in await kept.entries(RUN)}
    await resumed(LINE, second, kept)
    again = {context.key.removeprefix(f"{RUN}.") for _, context in second.calls}
    assert not committed & again
    repeated = Counter(first.asked) & Counter(second.asked)
    assert repeated.total() <= 1


@pytest.mark.anyio
async def test_a_run_that_dies_at_every_single_write_still_comes_home(tmp_path: Path) -> None:
    hands = Hands()
    deaths = 0
    while True:
        store = SqliteStore(tmp_path / "runs.db")
        try:
            hall = await resumed(LINE, hands, mortal(store, 1, before=False))
            break
        except Died:
            deaths += 1
        finally:
            store.close()
    assert deaths == 5
    assert hall.runs[RUN].head.snapshot.status == "done"
    assert hands.asked == ["bread", "milk", "salt", "tea"]
