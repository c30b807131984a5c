"""Numbers as they are written: 0.6 is six tenths here, not the nearest float.

Votes and ratings come from replies and records, so every number is checked where it enters: it has to be a number,
finite and inside its range. What is wrong raises `BadValue` and names the value.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from moothall.errors import BadValue
from moothall.kernel.frozen import Frozen

LARGEST = Fraction(sys.float_info.max)


def exact_number(value: object, name: str, *, least: float | None = None, most: float | None = None) -> Fraction:
    """A number exactly as its decimal text says it; whatever is not finite or out of range is refused."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | Fraction):
        raise BadValue(f"{name} is {value!r}, which is not a number; give a number")
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        raise BadValue(f"{name} is {value}; give a finite number")
    exact = Fraction(repr(float(value))) if isinstance(value, float) else Fraction(value)
    if least is not None and exact < Fraction(repr(least)):
        raise BadValue(f"{name} is {value}; it is at least {least:g}")
    if most is not None and exact > Fraction(repr(most)):
        raise BadValue(f"{name} is {value}; it is at most {most:g}")
    return exact


def plain_number(value: object, name: str, *, least: float | None = None, most: float | None = None) -> float:
    """The same as the nearest float, checked alike: for sums that nobody compares with a boundary."""
    if type(value) is int and -(2**53) <= value <= 2**53:
        value = float(value)
    if (
        type(value) is float
        and math.isfinite(value)
        and (least is None or value >= least)
        and (most is None or value <= most)
    ):
        return value
    return nearest_float(exact_number(value, name, least=least, most=most))


def nearest_float(exact: Fraction) -> float:
    """The float nearest to an exact number; what is too large becomes the largest one."""
    return float(max(-LARGEST, min(LARGEST, exact)))


def clamp(exact: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """The number, or the end of the range that it lies beyond."""
    return max(low, min(high, exact))


def field_of(source: object, name: str, default: Any) -> Any:
    """A field of a mapping or of an object, or the default where it has none."""
    if not isinstance(source, Frozen) and isinstance(source, Mapping):
        return source.get(name, default)
    return getattr(source, name, default)


def list_of(source: object, name: str) -> tuple[object, ...]:
    """What is in a list or another iterable; anything else is refused."""
    if not isinstance(source, Iterable):
        raise BadValue(f"{name} are {source!r}, which is not a list; give a list")
    return tuple(source)


def mapping_of(source: object, name: str) -> Mapping[str, Any]:
    """A mapping, empty where there is none; anything else is refused."""
    if source is None:
        return {}
    if not isinstance(source, Mapping):
        raise BadValue(f"{name} are {source!r}, which is not a mapping; give one by name")
    return source


def names(text: str) -> frozenset[str]:
    """The words of a text as a set, for tables of names."""
    return frozenset(text.split())
