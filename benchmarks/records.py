"""What a step that writes a record costs beside one that does not.

    python benchmarks/records.py [--steps 2000] [--rounds 5]

Measures the processor time of a step on SQLite through the runtime, best of some rounds in turns: of a machine whose
effect is performed at once and changes nothing, and of one whose effect is a record, read once and then written at
every step. The ratio should not exceed 1.5.
"""

import argparse
import asyncio
import os
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from moothall import Final, Machine, On, RecordsWritten, SharedRecord, State, WriteRecords, emitting
from moothall.app.runs.context import SystemClock
from moothall.kernel.effects import Effect
from moothall.kernel.events import Event
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall, begin
from moothall.runtime.journal import Record
from moothall.runtime.ports import Performer
from moothall.stores.sqlite import SqliteStore

VALUE = {"rating": 1500.0, "games": 12, "by": "tournament"}


class Rated(Event):
    name = "rated"
    versions: tuple[int, ...] = ()


class Rate(Effect):
    """The same as a record, to be thought about and not to be written."""

    kind = "rate"
    outcomes = (Rated,)
    records: tuple[SharedRecord, ...]


@dataclass(frozen=True, slots=True)
class Count:
    limit: int
    n: int = 0


def machine(effect: type[Effect], event: type[Event]) -> Machine:
    @emitting(effect)
    def write(count: Count, _: object) -> Effect:
        return effect((SharedRecord("ratings", "ann", {**VALUE, "games": count.n}, count.n),))

    def more(count: Count, written: Event) -> Count:
        return replace(count, n=written.versions[0])

    return Machine(
        f"counting {effect.kind}",
        data=Count,
        states=[State("writing", enter=write), Final("end")],
        moves=[
            On("writing", event, to="end", when=lambda count, _: count.n + 1 >= count.limit, do=more),
            On("writing", event, to="writing", do=more),
        ],
    )


async def rate(effect: Rate, context: object) -> Rated:
    return Rated(tuple(record.version + 1 for record in effect.records))


async def cpu(counting: Machine, steps: int) -> float:
    """The processor time of a step, in microseconds."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        store = SqliteStore(Path(folder) / "runs.db", b"key")
        hall = Hall(store, SystemClock(), {Rate.kind: Performer(Rate, rate)})
        record = Record("one", counting.name, counting.digest, hall.clock.now())
        await begin(hall, record, counting, Count(steps))
        before = time.process_time()
        head = await drive(hall, "one")
        spent = time.process_time() - before
        assert head.snapshot.data.n == steps, head.snapshot
        store.close()
    return 1e6 * spent / steps


def main() -> None:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--steps", type=int, default=2_000)
    cli.add_argument("--rounds", type=int, default=5)
    chosen = cli.parse_args()
    plain, writing = machine(Rate, Rated), machine(WriteRecords, RecordsWritten)
    rounds = [[asyncio.run(cpu(kind, chosen.steps)) for kind in (plain, writing)] for _ in range(chosen.rounds)]
    without, with_record = (min(column) for column in zip(*rounds, strict=True))
    print("| step | CPU µs |\n|---|---:|")
    print(f"| writes no record | {without:.0f} |\n| writes a record | {with_record:.0f} |")
    print(f"| ratio | {with_record / without:.2f} |")


if __name__ == "__main__":
    main()
