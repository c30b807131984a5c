"""Which way a run went: the states in which it came to rest, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import EllipsisType
from typing import Any

Steps = str | EllipsisType
"""A state, or `...` for any number of them. States that are active together are joined with " and "."""


def path_of(entries: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The path of a run, from its journal."""
    return without_repeats(" and ".join(entry["to"]) for entry in entries if "to" in entry)


def without_repeats(states: Iterable[str]) -> tuple[str, ...]:
    """States in order, each once as long as it lasts."""
    found: list[str] = []
    for state in states:
        if state and (not found or found[-1] != state):
            found.append(state)
    return tuple(found)


def require_path(path: Sequence[str], expected: Sequence[Steps]) -> None:
    """Fail the test if the run went another way."""
    if not _fits(tuple(path), tuple(expected)):
        wanted = " → ".join("…" if state is ... else state for state in expected)
        raise AssertionError(f"expected the path {wanted}; the run went {' → '.join(path) or 'nowhere'}")


def _fits(path: tuple[str, ...], expected: tuple[Steps, ...]) -> bool:
    if not expected:
        return not path
    if expected[0] is ...:
        return any(_fits(path[skipped:], expected[1:]) for skipped in range(len(path) + 1))
    return bool(path) and path[0] == expected[0] and _fits(path[1:], expected[1:])
