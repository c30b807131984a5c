"""Values: classes whose fields stand in their body and never change.

`class Ask(Frozen): script: Any` is a frozen dataclass. Equality, hash and text are written once here instead of
being generated for each class, which halves what the classes cost when the package is imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, dataclass_transform


@dataclass_transform(frozen_default=True)
class Frozen:
    """A value: equal to another of its class with equal fields."""

    __dataclass_fields__: dict[str, Any]

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, eq=False, repr=False)(cls)

    def __eq__(self, other: object) -> bool:
        return self.__dict__ == other.__dict__ if type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({inner})"
