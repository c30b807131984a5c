"""A machine that takes its time, so that a browser sees it go from state to state."""

import asyncio
import os
from dataclasses import dataclass, replace
from pathlib import Path

from moothall import Answered, Final, Machine, On, Replied, State, ask, question


@dataclass(frozen=True)
class Walk:
    place: str
    steps: int = 0


async def guide(prompt: str) -> str:
    """Waits for a file that the test makes, so that it decides when the walk goes on."""
    gate = Path(os.environ["MOOTHALL_HOME"]) / f"gate-{prompt.split()[-1]}"
    while not gate.exists():  # noqa: ASYNC110  # another process makes it
        await asyncio.sleep(0.02)
    return "on we go"


def count(walk: Walk, _: object) -> Walk:
    return replace(walk, steps=walk.steps + 1)


WALK = Machine(
    "walk",
    data=Walk,
    states=[
        State("climbing", enter=ask(guide, "step {steps}")),
        State("resting", enter=ask(guide, "step {steps}")),
        State("asking", enter=question("Go on to {place}?")),
        Final("there"),
    ],
    moves=[
        On("climbing", Replied, to="resting", do=count, at_most=50),
        On("resting", Replied, to="asking", do=count),
        On("asking", Answered, to="there"),
    ],
)

LOOP = Machine(
    "loop",
    data=Walk,
    states=[
        State("ping", enter=ask(guide, "step {steps}")),
        State("pong", enter=ask(guide, "step {steps}")),
        Final("end"),
    ],
    moves=[
        On("ping", Replied, to="pong", do=count, at_most=40),
        On("pong", Replied, to="ping", do=count, when=lambda walk, _: walk.steps < 39),
        On("pong", Replied, to="end"),
    ],
)
