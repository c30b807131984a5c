"""Values: classes whose fields stand in their body and never change.

`class Ask(Frozen): script: Any` is a dataclass to everyone who asks (`fields`, `replace`, `match`), and it is frozen.
Equality, hash, text and refusal of changes are written once here, and `__init__` fills the instance in one go, so
that such a class costs less at import, and a value half the time to make, of what a frozen dataclass costs. (Writing
into `self.__dict__` key by key is quicker still, but then every field takes three times as long to read.) Runs are
made of these values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from typing import Any, ClassVar, NoReturn, dataclass_transform


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Frozen:
    """A value: equal to another of its class with equal fields."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(init=False, eq=False, repr=False)(cls)
        cls.__init__ = _initialiser(cls)  # type: ignore[method-assign]

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        return self.__dict__ == other.__dict__ if type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({inner})"


def _initialiser(cls: type[Frozen]) -> Callable[..., None]:
    """`__init__` for its fields: parameters with their defaults, one dictionary of all values, `__post_init__`."""
    known: dict[str, Any] = {"_fill": Frozen.__dict__["__dict__"].__set__, "_MISSING": MISSING}
    parts = fields(cls)
    plain = [_parameter(part, known) for part in parts if not part.kw_only]
    by_name = [_parameter(part, known) for part in parts if part.kw_only]
    parameters = ", ".join(["self", *plain, *(["*", *by_name] if by_name else [])])
    values = ", ".join(f"{part.name!r}: {_value(part)}" for part in parts)
    then = "; self.__post_init__()" if hasattr(cls, "__post_init__") else ""
    try:
        exec(f"def __init__({parameters}):\n    _fill(self, {{{values}}}){then}", known)
    except SyntaxError as error:
        raise TypeError(f"{cls.__name__}: a field without a default stands below one that has one") from error
    made: Callable[..., None] = known["__init__"]
    return made


def _parameter(part: Field[Any], known: dict[str, Any]) -> str:
    if part.default_factory is not MISSING:
        known[f"_make_{part.name}"] = part.default_factory
        return f"{part.name}=_MISSING"
    if part.default is MISSING:
        return part.name
    known[f"_default_{part.name}"] = part.default
    return f"{part.name}=_default_{part.name}"


def _value(part: Field[Any]) -> str:
    if part.default_factory is MISSING:
        return part.name
    return f"_make_{part.name}() if {part.name} is _MISSING else {part.name}"
