"""Machines for runs that others pump. What their agents and tools do is noted in `calls.log` beside this file."""

import asyncio
import os
from dataclasses import dataclass, replace
from pathlib import Path

from moothall import Answered, Budget, Final, Machine, On, Replied, Returned, State, ask, call, question, tool

LOG = Path(__file__).with_name("calls.log")


@dataclass(frozen=True)
class Reading:
    """A long text that is read again and again."""

    text: str
    times: int
    read: int = 0


@dataclass(frozen=True)
class Letter:
    """What a person is asked about."""

    text: str


def note(line: str) -> None:
    """Note a call, in one write that no other can come between."""
    descriptor = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


async def reader(prompt: str) -> str:
    note(f"read {len(prompt)}")
    return f"I have read {len(prompt)} characters."


async def post(text: str) -> str:
    note(f"post {text}")
    return "posted"


async def brood(text: str) -> str:
    note(f"brood {text}")
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        note(f"stopped {text}")
        raise
    return "hatched"


async def nap(text: str) -> str:
    note(f"nap {os.getpid()} {text}")
    await asyncio.sleep(4.0)
    return "awake"


async def work(text: str) -> str:
    note(f"work {text}")
    await asyncio.sleep(0.05)
    return "worked"


def count(reading: Reading, _: Replied[None]) -> Reading:
    return replace(reading, read=reading.read + 1)


READ = Machine(
    "read",
    data=Reading,
    budget=Budget(calls=200),
    states=[State("reading", enter=ask(reader, "Read this: {text}")), Final("over")],
    moves=[
        On("reading", Replied, to="over", when=lambda reading, _: reading.read + 1 >= reading.times, do=count),
        On("reading", Replied, to="reading", do=count),
    ],
)
ASK = Machine(
    "ask",
    data=Letter,
    states=[State("asking", enter=question("Post it?")), State("posting", enter=call(post, "text")), Final("posted")],
    moves=[On("asking", Answered, to="posting"), On("posting", Returned, to="posted")],
)
DRAFT = Machine(
    "draft",
    data=Letter,
    states=[
        State("drafting", enter=call(post, "text")),
        State("asking", enter=question("Once more?")),
        State("posting", enter=call(post, "text")),
        Final("posted"),
    ],
    moves=[
        On("drafting", Returned, to="asking"),
        On("asking", Answered, to="posting"),
        On("posting", Returned, to="posted"),
    ],
)
WAIT = Machine(
    "wait",
    data=Letter,
    states=[State("waiting", enter=question("Post it?", within=1.0)), Final("late"), Final("answered")],
    moves=[On("waiting", Answered, to="answered"), On("waiting", "expired", to="late")],
)
BROOD = Machine(
    "brood",
    data=Letter,
    states=[State("brooding", enter=call(tool(brood, repeats="pure"), "text")), Final("over")],
    moves=[On("brooding", Returned, to="over")],
)
NAP = Machine(
    "nap",
    data=Letter,
    states=[State("napping", enter=call(tool(nap, repeats="pure"), "text")), Final("over")],
    moves=[On("napping", Returned, to="over")],
)
WORK = Machine(
    "work",
    data=Letter,
    states=[State("working", enter=call(work, "text")), Final("over")],
    moves=[On("working", Returned, to="over")],
)
