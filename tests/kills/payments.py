"""A machine that takes a payment, which must not be taken twice, and packs what was paid for.

Every tool notes its calls in `receiver.log` beside this file, as something outside would see them.
"""

import asyncio
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

from moothall import Final, Machine, On, Returned, State, call, tool

LOG = Path(__file__).with_name("receiver.log")
PAUSE = float(os.environ.get("PAUSE", "0.02"))


@dataclass(frozen=True)
class Order:
    """What is sold, and what has been done for it."""

    what: str
    done: tuple[str, ...] = ()


def note(name: str, what: str, key: str) -> None:
    """Note a call, in one write that no other can come between."""
    line = json.dumps([name, what, key]) + "\n"
    descriptor = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, line.encode())
    os.close(descriptor)


async def look_up(what: str, key: str) -> str:
    await asyncio.sleep(PAUSE)
    return f"{what} found"


async def pay(what: str, key: str) -> str:
    note("pay", what, key)
    await asyncio.sleep(PAUSE)
    return f"{what} paid"


async def pack(what: str, key: str) -> str:
    note("pack", what, key)
    await asyncio.sleep(PAUSE)
    return f"{what} packed"


def add(order: Order, event: Returned) -> Order:
    return replace(order, done=(*order.done, event.value))


SHOP = Machine(
    "shop",
    data=Order,
    states=[
        State("looking", enter=call(tool(look_up, repeats="pure"), "what")),
        State("paying", enter=call(tool(pay, repeats="at-most-once"), "what")),
        State("packing", enter=call(pack, "what")),
        Final("sold"),
    ],
    moves=[
        On("looking", Returned, to="paying", do=add),
        On("paying", Returned, to="packing", do=add),
        On("packing", Returned, to="sold", do=add),
    ],
)
