"""A machine with everything that a crash can hit: an agent, tools of each kind, a child that asks a person, retries.

Every tool notes its calls in `receiver.log` beside this file, as something outside would see them. A receiver that
honours keys takes a call with a known key for the same call.
"""

import asyncio
import json
from dataclasses import dataclass, replace
from pathlib import Path

from moothall import (
    Answered,
    Budget,
    ChildDone,
    EffectFailed,
    Final,
    Machine,
    On,
    Parallel,
    Replied,
    Returned,
    State,
    ask,
    call,
    child,
    question,
    tool,
)

FOLDER = Path.cwd()
PAUSE = 0.02


@dataclass(frozen=True)
class Order:
    """What is made, and what has been done for it."""

    what: str
    plan: str = ""
    paid: str = ""
    done: tuple[str, ...] = ()


def received(name: str, key: str) -> list[str]:
    """Note a call and give the keys of all calls of this tool so far."""
    log = FOLDER / "receiver.log"
    with log.open("a") as notes:
        notes.write(json.dumps([name, key]) + "\n")
    return [noted for tool, noted in map(json.loads, log.read_text().splitlines()) if tool == name]


async def planner(prompt: str) -> str:
    await asyncio.sleep(PAUSE)
    return f"a plan for {prompt}"


async def measure(what: str, key: str) -> str:
    received("measure", key)
    await asyncio.sleep(PAUSE)
    return f"{what} measured"


async def store(what: str, key: str) -> str:
    received("store", key)
    await asyncio.sleep(PAUSE)
    return f"{what} stored"


async def order(what: str, key: str) -> str:
    received("order", key)
    await asyncio.sleep(PAUSE)
    return f"{what} ordered"


async def was_ordered(what: str, key: str) -> str | None:
    log = FOLDER / "receiver.log"
    known = log.exists() and ["order", key] in [json.loads(line) for line in log.read_text().splitlines()]
    return f"{what} ordered" if known else None


async def pay(what: str, key: str) -> str:
    received("pay", key)
    await asyncio.sleep(PAUSE)
    return f"{what} paid"


async def polish(what: str, key: str) -> str:
    if len(received("polish", key)) == 1:
        raise EffectFailed("the cloth is wet", retry_after=0.05)
    await asyncio.sleep(PAUSE)
    return f"{what} polished"


def add(made: Order, event: Returned) -> Order:
    return replace(made, done=(*made.done, event.value))


APPROVAL = Machine(
    "approval",
    data=Order,
    states=[
        State("drafting", enter=ask(planner, "{what}")),
        State("asking", enter=question("Make {what}?")),
        Final("decided"),
    ],
    moves=[
        On("drafting", Replied, to="asking", do=lambda made, reply: replace(made, plan=reply.text)),
        On("asking", Answered, to="decided"),
    ],
)

WORKSHOP = Machine(
    "workshop",
    data=Order,
    budget=Budget(calls=50, seconds=3600),
    states=[
        State("approving", enter=child("approval", "what", budget=Budget(calls=9))),
        Parallel(
            "making",
            [
                State("left", [State("measuring", enter=call(measure, "what")), Final("measured")]),
                State("right", [State("storing", enter=call(tool(store, repeats="pure"), "what")), Final("stored")]),
            ],
        ),
        State("ordering", enter=call(tool(order, repeats="check-first", check=was_ordered), "what")),
        State("paying", enter=call(tool(pay, repeats="at-most-once"), "what")),
        State("polishing", enter=call(polish, "what")),
        Final("made"),
    ],
    moves=[
        On("approving", ChildDone, to="making", do=lambda made, ended: replace(made, plan=ended.data["plan"])),
        On("measuring", Returned, to="measured", do=add),
        On("storing", Returned, to="stored", do=add),
        On("making", "done.state.making", to="ordering"),
        On("ordering", Returned, to="paying", do=add),
        On("paying", Returned, to="polishing", do=lambda made, event: replace(made, paid=event.value)),
        On("polishing", Returned, to="made", do=add),
    ],
)
