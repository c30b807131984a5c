"""Values: classes whose fields stand in their body and never change.

`class Ask(Frozen): script: Any` is a dataclass to everyone who asks (`fields`, `replace`, `match`), and it is frozen.
Equality, hash, text and refusal of changes are written once here, and `__init__` fills the instance in one go, so
that such a class costs less at import, and a value half the time to make, of what a frozen dataclass costs. (Writing
into `self.__dict__` key by key is quicker still, but then every field takes three times as long to read.) Runs are
made of these values.

What is made at every step is `slotted` besides: it has a slot for each field instead of a dictionary, which is quicker
to make, to read and to throw away. It is filled while it still belongs to an open class with the same slots, where
the interpreter may write straight into them, and closed by giving it its own class.

A place that makes values of one class at every step calls its `maker`: a function of all fields, none left to its
default, that gives the same value. The interpreter enters a function within its own loop, but a class only by way of
`type`, which takes longer than it takes to fill the fields. With classes in their places a step of the kernel
took 6 % longer (3.78 µs instead of 3.56), one through the runtime 7 % (25.4 and 23.8), a durable one 3 % (97.9, 95.3).

    make_wanted = maker(Wanted)     # once, below the class
    make_wanted(effect, owner)      # at every step; equal to Wanted(effect, owner)

A field with `metadata=RARE` is stored only where it is not at its default, so that a class can gain fields and what is
stored of it stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from typing import Any, ClassVar, NoReturn, ParamSpec, TypeVar, cast, dataclass_transform

from moothall.kernel.generated import defined

RARE = {"rare": True}
"""The metadata of a field that is stored only where it is not at its default."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Frozen:
    """A value: equal to another of its class with equal fields."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    __rare__: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "__dataclass_fields__" not in vars(cls):
            dataclass(init=False, eq=False, repr=False)(cls)
            cls.__init__ = _initialiser(cls)  # type: ignore[method-assign]
            cls.__rare__ = rare_fields(cls)

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


def rare_fields(cls: Any) -> dict[str, Any]:
    """The fields of a dataclass that are stored only where they are not at their default, each with that."""
    found = [part for part in fields(cls) if part.metadata.get("rare")]
    return {part.name: _default(part) for part in found}


def _default(part: Field[Any]) -> Any:
    return part.default if part.default_factory is MISSING else part.default_factory()


def stored_fields(value: Frozen) -> dict[str, Any]:
    """The fields of a value that are stored of it, by name."""
    contents = value.__dict__
    if rare := value.__rare__:
        contents = contents.copy()
        for name, default in rare.items():
            if contents[name] == default:
                del contents[name]
    return contents


P = ParamSpec("P")
T = TypeVar("T", bound=Frozen)


def slotted(cls: type[T]) -> type[T]:
    """The same class of values with slots, for those that are made at every step; it has no subclasses."""
    names = [part.name for part in fields(cls)]
    left_out = {*names, "__init__", "__dict__", "__weakref__"}
    body = {name: value for name, value in vars(cls).items() if name not in left_out}
    opened = type(cls.__name__, (), {"__slots__": names})
    known: dict[str, Any] = {"_open": opened}
    new = defined(f"def __new__({_parameters(cls, 'cls', known)}):\n{_filled_slots(cls, _values(cls))}", known)
    new.__qualname__ = f"{cls.__qualname__}.__new__"
    shown = ", ".join(f"{name!r}: self.{name}" for name in names)
    contents = defined(f"def contents(self): return {{{shown}}}", {})
    body |= {"__slots__": (), "__new__": new, "__dict__": property(contents)}
    body |= {"__reduce__": _reduced, "__init_subclass__": _refuse_subclass}
    made: type[T] = type(cls.__name__, (opened, *cls.__bases__), body)
    known["_closed"] = made
    return made


def maker(cls: Callable[P, T]) -> Callable[P, T]:
    """The class as a function of all its fields, for places that make its values at every step."""
    kind: Any = cls
    given = {part.name: part.name for part in fields(kind)}
    opened = _open_class(kind)
    if opened is None:
        known = {"_new": object.__new__, "_fill": _dictionary(kind).__set__, "_closed": kind}
        body = f"    self = _new(_closed)\n{_filled_dictionary(kind, given)}    return self\n"
    else:
        known = {"_open": opened, "_closed": kind}
        body = _filled_slots(kind, given)
    return cast(Callable[P, T], defined(f"def make({_signature(kind, given)}):\n{body}", known))


def _open_class(cls: type[Frozen]) -> type | None:
    """The class in which slotted values of this one are filled; None where it is not slotted."""
    first = cls.__bases__[0]
    return None if issubclass(first, Frozen) else first


def _filled_slots(cls: type[Frozen], values: dict[str, str]) -> str:
    """The lines that fill an open value, close it and give it back."""
    filled = "".join(f"    self.{name} = {value}\n" for name, value in values.items())
    return f"    self = _open()\n{filled}    self.__class__ = _closed\n{_checked(cls)}    return self\n"


def _filled_dictionary(cls: type[Frozen], values: dict[str, str]) -> str:
    """The lines that fill a value with a dictionary."""
    filled = ", ".join(f"{name!r}: {value}" for name, value in values.items())
    return f"    _fill(self, {{{filled}}})\n{_checked(cls)}"


def _checked(cls: type[Frozen]) -> str:
    """The line in which a value checks its own fields; none where its class does not."""
    return "    self.__post_init__()\n" if hasattr(cls, "__post_init__") else ""


def _dictionary(cls: type[Frozen]) -> Any:
    """The descriptor of the dictionary that its values keep their fields in."""
    return next(vars(ancestor)["__dict__"] for ancestor in cls.__mro__ if "__dict__" in vars(ancestor))


def _reduced(value: Frozen) -> tuple[Any, ...]:
    """How a value is copied: made anew from what it contains."""
    return _remade, (type(value), value.__dict__)


def _remade(cls: type[Frozen], contents: dict[str, Any]) -> Frozen:
    return cls(**contents)


def _refuse_subclass(cls: type) -> NoReturn:
    raise TypeError(f"{cls.__name__} is a subclass of slotted values, and they have none")


def _initialiser(cls: type[Frozen]) -> Callable[..., None]:
    """`__init__` for its fields: parameters with their defaults, one dictionary of all values, `__post_init__`."""
    known: dict[str, Any] = {"_fill": _dictionary(cls).__set__}
    parameters = _parameters(cls, "self", known)
    try:
        made: Callable[..., None] = defined(
            f"def __init__({parameters}):\n{_filled_dictionary(cls, _values(cls))}", known
        )
    except SyntaxError as error:
        raise TypeError(f"{cls.__name__}: a field without a default stands below one that has one") from error
    made.__qualname__ = f"{cls.__qualname__}.__init__"  # whoever passes the wrong arguments reads it
    return made


def _parameters(cls: type[Frozen], first: str, known: dict[str, Any]) -> str:
    """The parameters for its fields, behind a first one; their defaults become known."""
    known["_MISSING"] = MISSING
    return f"{first}, {_signature(cls, {part.name: _parameter(part, known) for part in fields(cls)})}"


def _signature(cls: type[Frozen], parameters: dict[str, str]) -> str:
    """Parameters by the names of their fields, in the order in which they are passed."""
    plain = [parameters[part.name] for part in fields(cls) if not part.kw_only]
    by_name = [parameters[part.name] for part in fields(cls) if part.kw_only]
    return ", ".join([*plain, *(["*", *by_name] if by_name else [])])


def _parameter(part: Field[Any], known: dict[str, Any]) -> str:
    if part.default_factory is not MISSING:
        known[f"_make_{part.name}"] = part.default_factory
        return f"{part.name}=_MISSING"
    if part.default is MISSING:
        return part.name
    known[f"_default_{part.name}"] = part.default
    return f"{part.name}=_default_{part.name}"


def _values(cls: type[Frozen]) -> dict[str, str]:
    """What is written into each field, given the parameters."""
    return {part.name: _value(part) for part in fields(cls)}


def _value(part: Field[Any]) -> str:
    if part.default_factory is MISSING:
        return part.name
    return f"_make_{part.name}() if {part.name} is _MISSING else {part.name}"
