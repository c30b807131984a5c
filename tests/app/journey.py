"""A run with all that a report can tell: a retry, regions, a question, a child, an agent with tools.

Its clock jumps, so every figure is known beforehand.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from moothall import (
    Answered,
    ChildDone,
    Done,
    Final,
    Machine,
    On,
    Parallel,
    Replied,
    Reply,
    State,
    ToolCall,
    ask,
    child,
    question,
)
from moothall.app.kinds.bindings import Provided, bind
from moothall.app.runs.context import family_of
from moothall.errors import EffectFailed
from moothall.runtime.drive import drive
from moothall.runtime.hall import Hall, Observer, answer, begin, reopen
from moothall.runtime.journal import Record, RunId
from moothall.runtime.ports import Store
from tests.runtime.clock import HastyClock
from tests.runtime.world import PROCESSES

RUN = "journey"
clock = HastyClock()
lines: dict[str, list[Any]] = {}


async def _said(who: str, seconds: float) -> Any:
    await clock.wait_until(clock.now() + seconds)
    said = lines[who].pop(0)
    if isinstance(said, Exception):
        raise said
    return said


async def writer(prompt: str) -> Any:
    return await _said("writer", 5)


async def critic(prompt: str) -> Any:
    return await _said("critic", 3)


async def scribe(prompt: str) -> Any:
    return await _said("scribe", 2)


async def guide(prompt: str) -> Any:
    return await _said("guide", 4)


async def weather(city: str) -> str:
    await clock.wait_until(clock.now() + 1)
    return f"rain in {city}"


NOTE = Machine(
    "note",
    states=[State("noting", enter=ask(scribe, "Note it.")), Final("noted")],
    moves=[On("noting", Replied, to="noted")],
)

JOURNEY = Machine(
    "journey",
    states=[
        State("drafting", enter=ask(writer, "Write.")),
        Parallel(
            "checking",
            [
                State("left", [State("reading", enter=ask(critic, "Read.")), Final("read")]),
                State("right", [State("asking", enter=question("Is it true?")), Final("asked")]),
            ],
        ),
        State("delegating", enter=child(NOTE)),
        State("guiding", enter=ask(guide, "Plan.", tools=[weather])),
        Final("over"),
    ],
    moves=[
        On("drafting", Replied, to="checking"),
        On("reading", Replied, to="read"),
        On("asking", Answered, to="asked"),
        On("checking", Done, to="delegating"),
        On("delegating", ChildDone, to="guiding"),
        On("guiding", Replied, to="over"),
    ],
)


def usage(tokens: float, usd: float | None = None) -> Mapping[str, float]:
    return {"tokens": tokens} if usd is None else {"tokens": tokens, "usd": usd}


async def as_far_as_the_question(store: Store, machine: Machine = JOURNEY, observers: Sequence[Observer] = ()) -> Hall:
    """The journey up to its question; with another machine, one that was changed since."""
    clock.__init__()  # type: ignore[misc]
    lines.update(
        writer=[
            EffectFailed("no line", retry_after=10, usage=usage(7)),
            Reply("A draft.", usage=usage(100, 0.01)),
        ],
        critic=[Reply("Good.", usage=usage(20, 0.02))],
        scribe=[Reply("Noted.", usage=usage(30, 0.03))],
        guide=[
            Reply(calls=(ToolCall("weather", {"city": "Oslo"}),), usage=usage(4)),
            Reply("Pack a coat.", usage=usage(6)),
        ],
    )
    hall = Hall(store, clock, {}, list(observers), owner=next(PROCESSES))

    async def open_run(run: RunId) -> None:
        found, troupe = await family_of(store, (await store.load(run)).record, {}, machine)
        hall.bind(run, bind(found, troupe))
        await reopen(hall, run, found)

    hall.opener = open_run
    hall.bind(RUN, bind(machine, Provided()))
    record = Record(RUN, machine.name, machine.digest, clock.now(), "tests.app.journey:JOURNEY")
    await begin(hall, record, machine, None)
    await drive(hall, RUN)
    return hall


async def to_the_end(hall: Hall) -> None:
    """The rest of the journey: the answer comes after a minute."""
    await clock.wait_until(clock.now() + 60)
    await answer(hall, RUN, True, by="ada")
    for _ in range(4):
        await drive(hall, RUN)
