"""Stands in front of a store: whatever the port names goes through one place.

The methods are found in the port itself, so that a new one is not forgotten. What is not known to read only is taken
for a write.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from inspect import iscoroutinefunction, signature
from typing import Any

from moothall.runtime.ports import Store

READS = frozenset(
    ("load", "runs", "entries", "thread", "find", "due", "suspects", "owners", "seq", "audit", "anchored")
)
READS |= {"wait_for_work", "records", "outbox", "behind", "strays"}
METHODS = {
    name: tuple(signature(method).parameters)[1:]
    for port in Store.__mro__
    for name, method in vars(port).items()
    if iscoroutinefunction(method)
}
"""Every async method of the port, with the names of what it takes."""
WRITES = frozenset(METHODS) - READS
Given = Mapping[str, Any]


class StoreShim:
    """A store behind a store; subclass it and say what happens `around` each call."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    async def around(self, name: str, given: Given, call: Callable[[], Awaitable[Any]]) -> Any:
        """What happens when this method is called."""
        return await call()

    @property
    def crowd(self) -> int:
        return self.inner.crowd

    @crowd.setter
    def crowd(self, number: int) -> None:
        self.inner.crowd = number

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def _through(name: str, names: tuple[str, ...]) -> Callable[..., Awaitable[Any]]:
    async def method(self: StoreShim, *args: Any, **named: Any) -> Any:
        given = {**dict(zip(names, args, strict=False)), **named}
        return await self.around(name, given, lambda: getattr(self.inner, name)(*args, **named))

    return method


for _name, _names in METHODS.items():
    setattr(StoreShim, _name, _through(_name, _names))
