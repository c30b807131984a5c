"""Support triage: a ticket is sorted, a refund waits for a person and is paid once, everything else is answered."""

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from moothall import (Answered, Budget, Expired, Final, GaveUp, Machine, On, Replied, Returned, State, YesNo,
                      ask, call, hours, otherwise, question, run, tool, yes)


class Subject(StrEnum):
    REFUND = "refund"
    QUESTION = "question"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Ticket:
    text: str
    customer: str = "somebody"
    subject: Subject = Subject.UNCLEAR
    amount: Decimal = Decimal(0)
    reply: str = ""
    paid: datetime | None = None


@dataclass(frozen=True)
class Sorted:
    subject: Subject
    amount: Decimal = Decimal(0)


@dataclass(frozen=True)
class Receipt:
    amount: Decimal
    at: datetime


async def sorter(prompt: str) -> Sorted:  # your model goes here
    if "money" in prompt:
        return Sorted(Subject.REFUND, Decimal("12.50"))
    return Sorted(Subject.QUESTION if "?" in prompt else Subject.UNCLEAR)


async def clerk(prompt: str) -> str:
    return "The tides are in the table on page 3."


async def refund(customer: str, amount: str, key: str) -> Receipt:  # the key is the same if the call is repeated
    return Receipt(Decimal(amount), datetime.fromisoformat("2026-01-31T12:00:00+00:00"))


def keep_subject(ticket: Ticket, reply: Replied[Sorted]) -> Ticket:
    return replace(ticket, subject=reply.value.subject, amount=reply.value.amount)


def keep_reply(ticket: Ticket, reply: Replied) -> Ticket:
    return replace(ticket, reply=reply.text)


def keep_words(ticket: Ticket, answered: Answered[str]) -> Ticket:
    return replace(ticket, reply=answered.value)


def keep_receipt(ticket: Ticket, returned: Returned[Receipt]) -> Ticket:
    return replace(ticket, paid=returned.value.at, reply=f"We have sent you {returned.value.amount} euros.")


def refuse(ticket: Ticket, event: Answered | Expired | GaveUp) -> Ticket:
    return replace(ticket, reply="We are sorry, we cannot refund this.")


def is_refund(ticket: Ticket, reply: Replied[Sorted]) -> bool:
    return reply.value.subject is Subject.REFUND


def is_question(ticket: Ticket, reply: Replied[Sorted]) -> bool:
    return reply.value.subject is Subject.QUESTION


TRIAGE = Machine(
    "triage", data=Ticket, budget=Budget(usd=0.10), result=lambda ticket: ticket.reply,
    states=[
        State("sorting",   enter=ask(sorter, "What is this about? {text}", reply=Sorted)),
        State("answering", enter=ask(clerk, "Answer: {text}")),
        State("approving", enter=question("Refund {amount} euros to {customer}? {text}", YesNo, within=hours(24))),
        State("paying",    enter=call(tool(refund, repeats="at-most-once"), "customer", "amount")),
        State("deciding",  enter=question("What do we say to {customer}? {text}", str)),
        Final("closed"),
    ],
    moves=[
        On("sorting",   Replied,   to="approving", do=keep_subject, when=is_refund),
        On("sorting",   Replied,   to="answering", do=keep_subject, when=is_question),
        On("sorting",   otherwise, to="deciding"),
        On("sorting",   GaveUp,    to="deciding"),
        On("answering", Replied,   to="closed",    do=keep_reply),
        On("answering", GaveUp,    to="deciding"),
        On("approving", Answered,  to="paying",    when=yes),
        On("approving", otherwise, to="closed",    do=refuse),
        On("paying",    Returned,  to="closed",    do=keep_receipt),
        On("paying",    GaveUp,    to="deciding"),
        On("deciding",  Answered,  to="closed",    do=keep_words),
    ],
)

if __name__ == "__main__":
    print(run(TRIAGE, "When is high tide?").unwrap())
