"""Machines with all that a journal can hold, whose every deed is noted by a receiver outside.

A test copies this file into its folder; the notes are in `received.log` there.
"""

import asyncio
import json
from dataclasses import dataclass, replace
from pathlib import Path

from moothall import (
    Alarm,
    Answered,
    Append,
    Budget,
    ChildDone,
    Event,
    Exhausted,
    Final,
    History,
    Machine,
    Move,
    On,
    Parallel,
    Replied,
    Reply,
    Returned,
    State,
    ToolCall,
    anywhere,
    ask,
    call,
    child,
    otherwise,
    question,
    tool,
)

LENGTHY = "The tide comes in and goes out again. " * 40


@dataclass(frozen=True)
class Order:
    """What is made, and what has been done for it."""

    what: str
    plan: str = ""
    done: tuple[str, ...] = ()


class Rang(Event):
    """The bell rang."""


def received(*deed: str) -> None:
    """Note a deed, as whoever receives it would."""
    with Path("received.log").open("a") as notes:
        notes.write(json.dumps(deed) + "\n")


def is_held() -> bool:
    """Whether payments are to be under way until somebody lets them go on."""
    return Path("hold").exists()


async def planner(prompt: str) -> str:
    received("planner", prompt)
    return LENGTHY + prompt


async def pilot(prompt: str) -> str | Reply:
    received("pilot", str(len(prompt)))
    if '"role": "tool"' in prompt:
        return "well"
    return Reply("first", calls=(ToolCall("measure", {"what": "depth"}), ToolCall("pay", {"what": "pilotage"})))


async def measure(what: str, key: str) -> str:
    received("measure", what)
    return f"{what} measured"


async def weigh(what: str, key: str) -> str:
    received("weigh", what)
    return f"{what} weighed"


async def order(what: str, key: str) -> str:
    received("order", what)
    return f"{what} ordered"


async def was_ordered(what: str, key: str) -> str | None:
    return None


async def pay(what: str, key: str) -> str:
    received("pay", what)
    while is_held():  # noqa: ASYNC110 another process lets it go on
        await asyncio.sleep(0.01)
    return f"{what} paid"


def add(made: Order, event: Returned) -> Order:
    return replace(made, done=(*made.done, event.value))


def noted(made: Order, reply: Replied) -> Move[Order]:
    return Move(replace(made, plan=reply.text), appends=(Append("talk", {"said": reply.text}),))


APPROVAL = Machine(
    "approval",
    data=Order,
    states=[
        State("drafting", enter=ask(planner, "draft {what}")),
        State("asking", enter=question("Make {what}?")),
        State("charging", enter=call(tool(pay, repeats="at-most-once"), "what")),
        Final("decided"),
    ],
    moves=[
        On("drafting", Replied, to="asking", do=noted),
        On("asking", Answered, to="charging"),
        On("charging", Returned, to="decided", do=add),
    ],
)

YARD = Machine(
    "yard",
    data=Order,
    budget=Budget(calls=50, seconds=36_000),
    states=[
        State("planning", enter=ask(planner, "plan {what}")),
        State("wondering", enter=question("For whom?", str)),
        State("approving", enter=child("approval", "what", budget=Budget(calls=9))),
        Parallel(
            "making",
            [
                State("left", [State("measuring", enter=call(measure, "what")), Final("measured")]),
                State("right", [State("weighing", enter=call(tool(weigh, repeats="pure"), "what")), Final("weighed")]),
            ],
        ),
        State("ordering", enter=call(tool(order, repeats="check-first", check=was_ordered), "what")),
        State("paying", enter=call(tool(pay, repeats="at-most-once"), "what")),
        State("sailing", enter=ask(pilot, "Sail {what}", tools=[tool(pay, repeats="at-most-once"), measure])),
        Final("made"),
    ],
    moves=[
        On("planning", Replied, to="wondering", do=noted),
        On("wondering", Answered, to="approving", do=lambda made, said: replace(made, plan=said.value)),
        On("approving", ChildDone, to="making"),
        On("measuring", Returned, to="measured", do=add),
        On("weighing", Returned, to="weighed", do=add),
        On("making", "done.state.making", to="ordering"),
        On("ordering", Returned, to="paying", do=add),
        On("paying", Returned, to="sailing", do=add),
        On("sailing", Replied, to="made"),
    ],
)

WATCH = Machine(
    "watch",
    data=Order,
    states=[
        State(
            "work",
            [
                State("measuring", enter=call(measure, "what")),
                State("asking", enter=question("Go on?", within=3600)),
                History("back", "measuring"),
            ],
        ),
        State("resting", enter=[Alarm(Rang(), 0.01), call(tool(order, repeats="idempotent"), "what")]),
        State("paying", enter=call(tool(pay, repeats="at-most-once"), "what")),
        Final("over"),
    ],
    moves=[
        On("measuring", Returned, to="asking", do=add),
        On("asking", Answered, to="resting", when=lambda made, said: bool(said.value), at_most=1),
        On("asking", otherwise, to="paying"),
        On("resting", Rang, to="back"),
        On("paying", Returned, to="over", do=add),
    ],
)

LOOP = Machine(
    "loop",
    data=Order,
    budget=Budget(calls=6),
    states=[
        State("writing", enter=ask(planner, "write {what}: {done}")),
        State("checking", enter=call(pay, "what")),
        Final("spent"),
    ],
    moves=[
        On("writing", Replied, to="checking"),
        On("checking", Returned, to="writing", do=add),
        On(anywhere, Exhausted, to="spent"),
    ],
)
