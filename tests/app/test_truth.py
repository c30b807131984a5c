"""What guards and moves see is the same live and after a reload; a tool that returned has done its work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import pytest

from moothall import Final, GaveUp, Machine, On, Returned, State, call, run, tool
from moothall.agents.ask import Tool
from moothall.kernel.codec import read_back


class Size(Enum):
    """How large something is."""

    SMALL = "small"
    LARGE = "large"


@dataclass(frozen=True)
class Item:
    """Something that is ordered."""

    name: str
    size: Size = Size.SMALL


@dataclass(frozen=True)
class Cart:
    """What a machine of these tests has seen."""

    what: str = "lamp"
    items: tuple[Item, ...] = ()
    first: Item | None = None
    seen: str = ""
    sizes: dict[str, Size] = field(default_factory=dict)
    anything: Any = None


async def item(what: str) -> Item:
    """One item."""
    return Item(what, Size.LARGE)


async def items(what: str) -> list[Item]:
    """Several items."""
    return [Item(what)]


async def pair(what: str) -> tuple[str, Size]:
    """Two things of different types."""
    return what, Size.LARGE


async def perhaps(what: str) -> Item | None:
    """An item, or nothing."""
    return None


async def plain(what: str) -> dict[str, Any]:
    """Plain JSON."""
    return {"name": what}


async def unsaid(what: str):  # type: ignore[no-untyped-def]
    """It does not say what it returns."""
    return Item(what)


def machine_of(called: Any, keep: Callable[[Cart, Returned], Cart]) -> Machine:
    return Machine(
        "cart",
        data=Cart,
        states=[State("calling", enter=call(called, "what")), Final("called"), Final("lost")],
        moves=[On("calling", Returned, to="called", do=keep), On("calling", GaveUp, to="lost", do=keep_reason)],
    )


def keep_reason(cart: Cart, event: GaveUp) -> Cart:
    return replace(cart, seen=event.reason)


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (item, Item("lamp", Size.LARGE)),
        (items, [Item("lamp")]),
        (pair, ("lamp", Size.LARGE)),
        (perhaps, None),
        (plain, {"name": "lamp"}),
        (unsaid, {"name": "lamp", "size": "small"}),
        (tool(item, repeats="at-most-once"), Item("lamp", Size.LARGE)),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
def test_a_move_sees_what_a_tool_says_it_returns(function: Any, value: Any) -> None:
    ended = run(machine_of(function, lambda cart, event: replace(cart, seen=repr(event.value))), Cart())
    assert (ended.states, ended.data.seen) == (("called",), repr(value))


def test_what_a_move_puts_into_the_data_is_what_would_be_read_back() -> None:
    def keep(cart: Cart, event: Returned) -> Cart:
        loose: Any = {"items": [Item("a")], "first": event.value, "sizes": {"a": "large"}, "anything": (Item("b"),)}
        return replace(cart, **loose)

    data = run(machine_of(unsaid, keep), Cart()).data
    assert data == Cart(
        items=(Item("a"),),
        first=Item("lamp"),
        sizes={"a": Size.LARGE},
        anything=[{"name": "b", "size": "small"}],
    )


def test_what_a_move_changes_in_place_is_what_would_be_read_back() -> None:
    def keep(cart: Cart, event: Returned) -> Cart:
        loose: Any = {"a": "large"}
        cart.sizes.update(loose)
        return cart

    assert run(machine_of(unsaid, keep), Cart()).data.sizes == {"a": Size.LARGE}


def test_the_data_that_a_run_begins_with_are_what_would_be_read_back() -> None:
    loose: Any = [Item("a")]
    assert run(machine_of(plain, lambda cart, event: cart), Cart(items=loose)).data.items == (Item("a"),)


def test_what_is_read_back_already_is_not_made_anew() -> None:
    cart = Cart(items=(Item("a"),), sizes={"a": Size.SMALL}, anything={"b": [1, None, 2.5]})
    assert read_back(Cart, cart) is cart
    changed = replace(cart, seen="it")
    assert read_back(Cart, changed, cart) is changed


def gives(value: Callable[[], Any]) -> Any:
    async def pay(what: str, key: str) -> Any:
        return value()

    return pay


def endless() -> Any:
    found: list[Any] = []
    found.append(found)
    return found


UNSTORABLE: dict[str, Callable[[], Any]] = {
    "an object": object,
    "bytes": lambda: b"receipt",
    "no number": lambda: float("nan"),
    "a number that is too large": lambda: 2**70,
    "a list that holds itself": endless,
}


@pytest.mark.parametrize("value", UNSTORABLE.values(), ids=UNSTORABLE.keys())
def test_a_tool_that_may_be_called_once_and_returned_what_cannot_be_stored_is_in_doubt(value: Any) -> None:
    ended = run(machine_of(tool(gives(value), repeats="at-most-once"), lambda cart, event: cart), Cart())
    assert (ended.status, ended.states) == ("waiting", ("calling",))
    [question] = ended.questions
    assert question.prompt.startswith("pay returned, but what it returned cannot be stored: ")


@pytest.mark.parametrize("repeats", ["pure", "idempotent"])
@pytest.mark.parametrize("value", UNSTORABLE.values(), ids=UNSTORABLE.keys())
def test_a_tool_that_can_be_called_again_gives_a_clear_error_for_what_cannot_be_stored(
    value: Any, repeats: Any
) -> None:
    ended = run(machine_of(tool(gives(value), repeats=repeats), lambda cart, event: cart), Cart())
    assert ended.states == ("lost",)
    assert ended.data.seen.startswith("pay: what it returned cannot be stored: ")


def test_a_tool_that_returns_something_else_than_it_says_is_told_so() -> None:
    async def pay(what: str) -> Item:
        return {"price": 3}  # type: ignore[return-value]

    assert "unknown field 'price'" in run(machine_of(pay, lambda cart, event: cart), Cart()).data.seen
    once: Tool = tool(pay, repeats="at-most-once")
    ended = run(machine_of(once, lambda cart, event: cart), Cart())
    assert ended.questions[0].prompt.startswith("pay returned, but not what it says it returns: ")
