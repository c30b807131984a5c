"""Payments that are made at most once: behind a question, and at once."""

import os
from dataclasses import dataclass
from pathlib import Path

from moothall import Answered, Final, GaveUp, Machine, On, Returned, State, call, child, otherwise, question, tool, yes
from moothall.kernel.events import ChildDone


@dataclass(frozen=True)
class Order:
    what: str


def note(what: str) -> None:
    with Path(os.environ["LEDGER"]).open("a") as ledger:
        ledger.write(f"paid {what}\n")


async def pay(what: str, key: str) -> str:
    note(what)
    if os.environ.get("DIES"):
        os._exit(9)
    return "receipt"


PAYING = State("paying", enter=call(tool(pay, repeats="at-most-once"), "what"))
PAID = [On("paying", Returned, to="paid"), On("paying", GaveUp, to="unpaid")]
SHOP = Machine(
    "shop",
    data=Order,
    start="asking",
    states=[State("asking", enter=question("Pay for {what}?")), PAYING, Final("paid"), Final("unpaid")],
    moves=[On("asking", Answered, to="paying", when=yes), On("asking", otherwise, to="unpaid"), *PAID],
)
AT_ONCE = Machine("at-once", data=Order, states=[PAYING, Final("paid"), Final("unpaid")], moves=PAID)
PARENT = Machine(
    "parent",
    data=Order,
    states=[State("buying", enter=child(AT_ONCE, "what")), Final("bought"), Final("not")],
    moves=[On("buying", ChildDone, to="bought"), On("buying", GaveUp, to="not")],
)
