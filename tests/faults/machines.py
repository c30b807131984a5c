"""The file of machines that real commands walk through here; files in their folder steer them.

calls.log   every call, a line each: the run's name and the step
hold-N      while it is there, step N is under way
fill-N      names a file; step N fills the disk with it before it replies
die-NAME    the walk of this name brings its process down
"""

STEPS = 5
MACHINES = """
import asyncio, os
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from moothall import Answered, Expired, Final, Machine, On, Replied, State, ask, question

@dataclass(frozen=True)
class Walk:
    name: str
    got: tuple[str, ...] = ()

def fill(file):
    with open(file, "wb", buffering=0) as ballast:
        for size in (65536, 4096, 512, 1):
            try:
                while True:
                    ballast.write(bytes(size))
            except OSError:
                pass

async def step(prompt: str) -> str:
    with Path("calls.log").open("a") as log:
        log.write(prompt + "\\n")
    name, number = prompt.split()
    if Path(f"die-{name}").exists():
        os._exit(9)
    if Path(f"pause-{number}").exists():
        await asyncio.sleep(float(Path(f"pause-{number}").read_text()))
    while Path(f"hold-{number}").exists():
        await asyncio.sleep(0.01)
    if Path(f"fill-{number}").exists():
        fill(Path(f"fill-{number}").read_text())
    return prompt.upper()

def keep(walk, reply):
    return replace(walk, got=(*walk.got, reply.text))

NUMBERS = range(1, 6)
WALK = Machine("walk", data=Walk, result=lambda walk: " ".join(walk.got),
    states=[*(State(f"step_{n}", enter=ask(step, f"{{name}} {n}")) for n in NUMBERS), Final("home")],
    moves=[On(here, Replied, to=there, do=keep)
           for here, there in pairwise([*(f"step_{n}" for n in NUMBERS), "home"])])

SHORT = Machine("short", data=Walk,
    states=[State("step_1", enter=ask(step, "{name} 1")), Final("home")],
    moves=[On("step_1", Replied, to="home", do=keep)])

ASKED = Machine("asked", data=Walk,
    states=[State("asking", enter=question("Go on?", within=3600)), State("acting", enter=ask(step, "{name} 1")),
            Final("home"), Final("late")],
    moves=[On("asking", Answered, to="acting"), On("asking", Expired, to="late"),
           On("acting", Replied, to="home", do=keep)])

HURRIED = Machine("hurried", data=Walk,
    states=[State("asking", enter=question("Go on?", within=0.5)), State("acting", enter=ask(step, "{name} 1")),
            Final("home")],
    moves=[On("asking", Answered, to="home"), On("asking", Expired, to="acting"),
           On("acting", Replied, to="home", do=keep)])
"""
