"""Types that people have already are stored, read back and described: models, dates, decimals, UUIDs, enums, paths."""

import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum, StrEnum
from pathlib import Path, PurePosixPath
from typing import Any, Literal
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from moothall.errors import DefinitionError, Refused
from moothall.kernel.codec import decode, encode, read_back, require_storable, schema
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final
from moothall.kernel.schema import misfits


class Mood(StrEnum):
    CALM = "calm"
    CROSS = "cross"


class Size(Enum):
    SMALL = 1
    LARGE = 2


class Line(BaseModel):
    what: str
    price: Decimal = Decimal("0.10")
    parts: "list[Line]" = []


class Order(BaseModel):
    number: int = Field(alias="order_number", ge=1)
    placed: datetime
    lines: list[Line] = []


@dataclass(frozen=True)
class Ticket:
    id: UUID
    opened: datetime
    due: date
    price: Decimal
    attached: Path
    mood: Mood
    size: Size
    order: Order
    by_mood: dict[Mood, Decimal]
    closed: datetime | None = None


NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
ORDER = Order(order_number=3, placed=NOON, lines=[Line(what="pen", parts=[Line(what="cap")])])
TICKET = Ticket(
    UUID(int=7),
    NOON,
    NOON.date(),
    Decimal("12.50"),
    Path("a/b.txt"),
    Mood.CROSS,
    Size.LARGE,
    ORDER,
    {Mood.CALM: Decimal(1)},
)


def test_a_value_of_such_types_is_plain_json_and_comes_back_as_it_was() -> None:
    plain = encode(TICKET)
    assert plain["opened"] == "2026-01-31T12:00:00+00:00"
    assert plain["price"] == "12.50"
    assert plain["attached"] == "a/b.txt"
    assert plain["order"]["order_number"] == 3
    assert plain["by_mood"] == {"calm": "1"}
    assert decode(Ticket, plain) == TICKET
    assert not misfits(schema(Ticket), plain)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (datetime, st.datetimes() | st.datetimes(timezones=st.just(UTC))),
        (date, st.dates()),
        (time, st.times()),
        (Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
        (UUID, st.uuids()),
        (Size, st.sampled_from(Size)),
        (PurePosixPath, st.from_regex(r"[a-z/.]{1,9}", fullmatch=True).map(PurePosixPath)),
    ],
)
def test_encode_and_decode_are_inverse(kind: Any, values: Any) -> None:
    @given(values)
    def check(value: Any) -> None:
        again = decode(kind, encode(value))
        assert (again, type(again)) == (value, type(value))
        assert not misfits(schema(kind), encode(value))

    check()


@pytest.mark.parametrize(
    ("kind", "given", "reason"),
    [
        (
            datetime,
            "yesterday",
            r"datetime: expected a date and time such as '2026-01-31T12:00:00\+00:00', got 'yesterday'",
        ),
        (datetime, 12, "expected a date and time"),
        (Decimal, "many", "expected a decimal number such as '12.50', got 'many'"),
        (Decimal, "NaN", "expected a decimal number"),
        (Decimal, True, "expected a decimal number"),
        (UUID, "7", "expected a UUID, got '7'"),
        (Path, None, "expected a path, got None"),
        (
            Order,
            {"order_number": 0, "placed": "2026-01-31"},
            r"Order.order_number: Input should be greater than or equal",
        ),
        (
            Order,
            {"order_number": 1, "placed": NOON.isoformat(), "lines": [{}]},
            r"Order.lines\[0\].what: Field required",
        ),
        (Order, "one pen", "Order: Input should be a valid dictionary"),
        (dict[Mood, int], {"merry": 1}, "key: expected one of 'calm', 'cross'"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(kind: Any, given: Any, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        decode(kind, given)


def test_a_decimal_may_come_as_a_number() -> None:
    assert decode(Decimal, 0.1) == Decimal("0.1")
    assert decode(Decimal, 12) == Decimal(12)


def test_the_schema_of_a_model_refers_to_nothing_outside_it() -> None:
    described = schema(Order)
    assert "$" not in str(described)
    line = described["properties"]["lines"]["items"]
    assert line["properties"]["what"]["type"] == "string"
    assert line["properties"]["parts"]["items"] == {"type": "object", "title": "Line"}


def test_data_are_the_same_live_and_read_back() -> None:
    unchecked = ORDER.model_copy(update={"number": "4"})
    assert read_back(Order, unchecked).number == 4
    zoned = NOON.astimezone(ZoneInfo("Europe/Berlin"))
    assert read_back(datetime, zoned).tzinfo == datetime.fromisoformat(zoned.isoformat()).tzinfo
    assert read_back(datetime, NOON) is NOON
    assert read_back(Ticket, TICKET) == TICKET


@dataclass(frozen=True)
class Unset:
    draft: str = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Odd:
    draft: int = "none"  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (Unset, "machine m: data.draft: its default None is not of type str; write str | None"),
        (Odd, "machine m: data.draft: its default 'none' is not of type int; give it a default of its type"),
        (dict[int, str], "machine m: data: JSON objects have texts as keys, not int; use str, or a tuple of pairs"),
        (dict[Size, str], "have texts as keys, not Size"),
        (dict[Literal[1, 2], str], "have texts as keys"),
        (list[str | datetime], "str or datetime cannot be told apart in JSON; choose one of them"),
        (Path | UUID, "Path or UUID cannot be told apart"),
        (Decimal | int, "Decimal or int cannot be told apart"),
        (object(), "cannot be stored; use dataclasses, lists"),
    ],
)
def test_data_that_cannot_work_are_refused_with_the_remedy(data: Any, reason: str) -> None:
    machine: Machine = Machine("m", data=data, states=[Final("done")], moves=[])
    with pytest.raises(DefinitionError) as refusal:
        machine.require_types()
    assert reason in str(refusal.value)


def test_a_model_in_place_of_its_class_is_refused() -> None:
    with pytest.raises(DefinitionError, match="write data=Order, the class itself"):
        Machine("m", data=ORDER, states=[Final("done")], moves=[])  # type: ignore[arg-type]


def test_what_can_be_stored_is_not_refused() -> None:
    for kind in (Ticket, Order, dict[UUID, int], dict[Literal["a"], int], Decimal | None, list[datetime]):
        require_storable(kind, "data")


def test_a_decimal_that_is_no_number_has_no_place() -> None:
    with pytest.raises(DefinitionError, match="NaN has no place in JSON"):
        encode(Decimal("NaN"))


def test_neither_pydantic_nor_what_type_checkers_read_is_imported_by_those_who_do_not_use_it() -> None:
    loaded = "{'pydantic', 'typing_extensions'} & set(sys.modules)"
    code = f"import sys; from moothall import Machine, run, On, ask, Outcome; import moothall.testing; print({loaded})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
