"""What a crash may repeat, tool by tool: a cursed thing kills the process in the middle of each, and is paid once."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from moothall import Final, GaveUp, Machine, On, Returned, State, call, run, tool

WORLD = Path("world.txt")  # what the world outside has seen: a line for every deed


@dataclass(frozen=True)
class Order:
    what: str
    receipt: str = ""


def seen(deed: str, key: str) -> bool:
    return WORLD.exists() and f"{deed} {key}" in WORLD.read_text().splitlines()

def do(deed: str, key: str, what: str) -> str:
    is_first = not seen(deed, key)
    with WORLD.open("a") as world:
        world.write(f"{deed} {key}\n")
    if is_first and what.startswith("a cursed"):
        os._exit(9)  # as a power cut would: it was done, and nobody heard of it
    return f"{what}: {deed}"

async def reserve(what: str, key: str) -> str:  # idempotent: the warehouse takes a key that it knows for the same order
    return do("reserved", key, what)

async def pay(what: str, key: str) -> str:  # at most once: the bank would take the money again
    return do("paid", key, what)

async def send(what: str, key: str) -> str:  # check first: the post can be asked
    return do("sent", key, what)

async def was_sent(what: str, key: str) -> str | None:
    return f"{what}: sent" if seen("sent", key) else None


SHOP = Machine(
    "shop", data=Order, result=lambda order: order.receipt,
    states=[
        State("reserving", enter=call(reserve, "what")),
        State("paying",    enter=call(tool(pay, repeats="at-most-once"), "what")),
        State("sending",   enter=call(tool(send, repeats="check-first", check=was_sent), "what")),
        Final("sent"), Final("unpaid"),
    ],
    moves=[
        On("reserving", Returned, to="paying"),
        On("paying",    Returned, to="sending", do=lambda order, event: replace(order, receipt=event.value)),
        On("paying",    GaveUp,   to="unpaid"),
        On("sending",   Returned, to="sent"),
    ],
)

if __name__ == "__main__":
    print(run(SHOP, Order("a lamp")).result)
