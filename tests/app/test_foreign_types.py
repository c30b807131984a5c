"""A run whose data, replies and answers are of types that people have already."""

from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from moothall import Answered, Final, Machine, On, Replied, Returned, State, answer, ask, call, question, resume, run
from moothall.agents.secrets import Cleaner, Secret
from moothall.errors import Refused


class Urgency(StrEnum):
    LOW = "low"
    HIGH = "high"


class Ticket(BaseModel, frozen=True):
    text: str
    id: UUID = UUID(int=7)
    urgency: Urgency = Urgency.LOW
    refund: Decimal = Decimal(0)
    due: datetime | None = None
    attached: Path = Path("none")


class Judged(BaseModel):
    urgency: Urgency
    refund: Decimal


class Receipt(BaseModel):
    paid: Decimal
    at: datetime


async def judge(prompt: str) -> Judged:
    return Judged(urgency=Urgency.HIGH, refund=Decimal("12.50"))


async def pay(refund: str) -> Receipt:
    return Receipt(paid=Decimal(refund), at=datetime(2026, 1, 31, tzinfo=UTC))


def keep_verdict(ticket: Ticket, reply: Replied[Judged]) -> Ticket:
    return ticket.model_copy(update=dict(reply.value))


def keep_due(ticket: Ticket, answered: Answered[datetime]) -> Ticket:
    return ticket.model_copy(update={"due": answered.value})


def is_paid(ticket: Ticket, returned: Returned[Receipt]) -> bool:
    return returned.value.paid == ticket.refund


def table(agent: Any) -> Machine[Ticket, Ticket]:
    return Machine(
        "desk",
        data=Ticket,
        result=lambda ticket: ticket,
        states=[
            State("judging", enter=ask(agent, "Judge: {text}", reply=Judged)),
            State("planning", enter=question("When is {text} due?", datetime)),
            State("paying", enter=call(pay, "refund")),
            Final("paid"),
        ],
        moves=[
            On("judging", Replied, to="planning", do=keep_verdict),
            On("planning", Answered, to="paying", do=keep_due),
            On("paying", Returned, to="paid", when=is_paid),
        ],
    )


DESK = table(judge)


def test_data_replies_answers_and_returned_values_may_be_models() -> None:
    waiting = run(DESK, "It broke")
    assert waiting.data == Ticket(text="It broke", urgency=Urgency.HIGH, refund=Decimal("12.50"))
    assert waiting.questions[0].schema == {"type": "string", "format": "date-time"}
    with pytest.raises(Refused, match="expected a date and time"):
        answer(waiting.run, "soon", DESK)
    done = answer(waiting.run, "2026-02-01T09:00:00Z", DESK)
    assert done.unwrap().due == datetime(2026, 2, 1, 9, tzinfo=UTC)
    assert resume(done.run, DESK).data == done.data


def test_a_rehearsal_invents_what_fits_such_types() -> None:
    machine = table("judge")
    waiting = run(machine, "It broke", model="rehearsal")
    assert waiting.status == "waiting", waiting.reason
    assert isinstance(waiting.data.refund, Decimal)


def test_a_secret_in_a_model_or_a_path_is_replaced() -> None:
    cleaner = Cleaner([Secret("TOKEN", "hunter2hunter2")])
    ticket = Ticket(text="my key is hunter2hunter2", attached=Path("hunter2hunter2/a"))
    clean = cleaner(ticket)
    assert type(clean) is Ticket
    assert "hunter2" not in str(clean)
    assert cleaner(Ticket(text="nothing")) == Ticket(text="nothing")
