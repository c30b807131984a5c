"""Values to plain JSON and back, guided by types alone.

There is one codec and it writes no type names: what a value is, the reader must already know. Nothing is
imported by name and everything read back is checked, so a stored file can be wrong but never do harm.
`decode(type, encode(value)) == value` for dataclasses, enums, literals, unions, lists, tuples, frozensets,
mappings whose keys are texts, the JSON scalars, and the types of `foreign`: models of pydantic, dates, decimals, paths.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import lru_cache
from inspect import signature
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from moothall.errors import DefinitionError, MoothallError, Refused
from moothall.kernel.foreign import Written, is_model, model_misfit, model_schema, write_model, written_as
from moothall.kernel.frozen import rare_fields
from moothall.kernel.generated import defined

T = TypeVar("T")
Encoder = Callable[[Any], Any]
Decoder = Callable[[Any], Any]
_SCALARS: frozenset[Any] = frozenset((str, int, bool, type(None)))
_TEXTS = frozenset((str,))


def encode(value: Any) -> Any:
    """Plain JSON for a value: dicts, lists, strings, numbers, booleans and None."""
    kind: Any = type(value)
    if kind in _SCALARS:
        return value
    if kind is dict:
        if _TEXTS.issuperset(map(type, value)) and _SCALARS.issuperset(map(type, value.values())):
            return value.copy()
        found = {}
        for key, item in value.items():
            found[key if type(key) is str else _key(key)] = item if type(item) in _SCALARS else encode(item)
        return found
    if kind is list or kind is tuple:
        return [item if type(item) in _SCALARS else encode(item) for item in value]
    if kind is float:
        if not math.isfinite(value):
            raise DefinitionError(f"{value} has no place in JSON; use None where a number is missing")
        return value
    return _encoder(kind)(value)


@lru_cache(maxsize=1024)
def _encoder(kind: Any) -> Encoder:
    if is_dataclass(kind) and not is_model(kind):
        return _encode_fields(kind)
    if issubclass(kind, Enum):
        return _encode_rarer
    if is_model(kind):
        return write_model
    written = written_as(kind)
    return _encode_rarer if written is None else _encode_text(written)


def _encode_text(written: Written) -> Encoder:
    def encoder(value: Any) -> str:
        try:
            return written.write(value)
        except ValueError as error:
            raise DefinitionError(str(error)) from error

    return encoder


def _encode_fields(kind: Any) -> Encoder:
    """An encoder for one dataclass, written out field by field."""
    known: dict[str, Any] = {"_SCALARS": _SCALARS, "encode": encode}
    rare, every = rare_fields(kind), [item.name for item in _given(kind)]
    parts = ", ".join(
        f"{name!r}: _{place} if type(_{place} := value.{name}) in _SCALARS else encode(_{place})"
        for place, name in enumerate(every)
        if name not in rare
    )
    if not rare:
        made: Encoder = defined(f"def encoder(value): return {{{parts}}}", known)
        return made
    known |= {f"default_{name}": default for name, default in rare.items()}
    lines = [f"    if value.{name} != default_{name}: found[{name!r}] = encode(value.{name})" for name in rare]
    return defined("\n".join(["def encoder(value):", f"    found = {{{parts}}}", *lines, "    return found"]), known)  # type: ignore[no-any-return]


def _encode_rarer(value: Any) -> Any:
    if isinstance(value, Enum):
        return encode(value.value)
    if isinstance(value, frozenset | set):
        return sorted((encode(item) for item in value), key=repr)
    if isinstance(value, Mapping):
        return {_key(key): encode(item) for key, item in value.items()}
    for scalar in (bool, int, float, str):
        if isinstance(value, scalar):
            return encode(scalar(value))
    raise DefinitionError(
        f"a {type(value).__name__} cannot be stored; a run's data are dataclasses, models, lists, dicts, texts, numbers"
    )


def _key(key: object) -> str:
    plain = encode(key)
    if type(plain) is not str:
        raise DefinitionError(f"the key {key!r} cannot be stored: JSON objects have strings as keys")
    return plain


def _given(kind: Any) -> tuple[Field[Any], ...]:
    """The fields that a dataclass is made from; those that it works out itself are not stored."""
    return tuple(item for item in fields(kind) if item.init)


def decode(kind: type[T], value: Any, where: str = "") -> T:
    """The value of this type that some JSON stands for, or a refusal that names the place."""
    untyped: Any = kind
    try:
        found: T = _decoder(untyped)(value)
    except _Misfit as misfit:
        raise misfit.refusal(where or getattr(kind, "__name__", str(kind))) from misfit.__cause__
    return found


def decoder(kind: Any) -> Callable[[Any, str], Any]:
    """`decode` for one type, where it is used again and again."""
    inner = _decoder(kind)

    def decoded(value: Any, where: str) -> Any:
        try:
            return inner(value)
        except _Misfit as misfit:
            raise misfit.refusal(where) from misfit.__cause__

    return decoded


class _Misfit(Exception):
    """A value is not what its type says. The place inside is put together on the way out, where it is of use."""

    def __init__(self, reason: str) -> None:
        self.path = ""
        self.reason = reason

    def refusal(self, where: str) -> Refused:
        """The refusal of a value, with the place inside it."""
        return Refused(f"{where}{self.path}: {self.reason}")


def _unexpected(wanted: str, value: Any) -> _Misfit:
    try:
        shown = repr(value)
    except (ValueError, RecursionError):  # a number with too many digits to be written, or too many lists in each other
        shown = f"a very large {type(value).__name__}"
    return _Misfit(f"expected {wanted}, got {shown if len(shown) < 60 else shown[:57] + '...'}")


@lru_cache(maxsize=1024)
def _decoder(kind: Any) -> Decoder:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any or kind is object or isinstance(kind, TypeVar):
        return _as_it_is
    if kind in _SCALAR_DECODERS:
        return _SCALAR_DECODERS[kind]
    if origin is Union or origin is types.UnionType:
        return _decode_union(arguments)
    if origin is Literal:
        return _decode_literal(arguments)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _decode_enum(kind)
    if is_model(kind):
        return _decode_model(kind)
    if is_dataclass(kind):
        return _decode_dataclass(kind)  # type: ignore[arg-type]
    if (written := written_as(kind)) is not None:
        return _decode_text(kind, written)
    return _decode_collection(kind, origin or kind, arguments)


def _as_it_is(value: Any) -> Any:
    return value


def _scalar(wanted: type, name: str) -> Decoder:
    def decoder(value: Any) -> Any:
        if type(value) is wanted:
            return value
        raise _unexpected(name, value)

    return decoder


def _decode_float(value: Any) -> float:
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return value
    raise _unexpected("a number", value)


_SCALAR_DECODERS: dict[Any, Decoder] = {
    str: _scalar(str, "a text"),
    int: _scalar(int, "a whole number"),
    bool: _scalar(bool, "true or false"),
    type(None): _scalar(type(None), "null"),
    float: _decode_float,
}


def _decode_union(arguments: tuple[Any, ...]) -> Decoder:
    choices = tuple(_decoder(argument) for argument in arguments)
    wanted = " or ".join(getattr(argument, "__name__", str(argument)) for argument in arguments)
    scalars = _scalars_first(arguments)

    def decoder(value: Any) -> Any:
        if type(value) in scalars:
            return value
        misfits = []
        for choice in choices:
            try:
                return choice(value)
            except _Misfit as misfit:
                misfits.append(misfit)
        deeper = [misfit for misfit in misfits if misfit.path]
        raise deeper[0] if deeper else _unexpected(wanted, value)

    return decoder


def _scalars_first(arguments: tuple[Any, ...]) -> frozenset[type]:
    """The scalars that no earlier choice of a union could take for something else."""
    found = set()
    for argument in arguments:
        if argument in _SCALARS:
            found.add(argument)
        elif argument is not float and (is_model(argument) or not is_dataclass(argument)):
            break
    return frozenset(found)


def _decode_literal(choices: tuple[Any, ...]) -> Decoder:
    def decoder(value: Any) -> Any:
        for choice in choices:
            if type(choice) is type(value) and choice == value:
                return value
        raise _unexpected("one of " + ", ".join(map(repr, choices)), value)

    return decoder


def _decode_enum(kind: type[Enum]) -> Decoder:
    members = [(encode(member.value), member) for member in kind]

    def decoder(value: Any) -> Any:
        for plain, member in members:
            if type(plain) is type(value) and plain == value:
                return member
        raise _unexpected("one of " + ", ".join(repr(plain) for plain, _ in members), value)

    return decoder


def _decode_model(kind: Any) -> Decoder:
    def decoder(value: Any) -> Any:
        try:
            return kind.model_validate(value)
        except ValueError as error:
            misfit = _Misfit("")
            misfit.path, misfit.reason = model_misfit(error)
            raise misfit from error

    return decoder


def _decode_text(kind: Any, written: Written) -> Decoder:
    def decoder(value: Any) -> Any:
        try:
            return written.read(kind, value)
        except (TypeError, ValueError) as error:
            raise _unexpected(written.wanted, value) from error

    return decoder


def require_storable(kind: Any, where: str, around: tuple[Any, ...] = ()) -> None:
    """Refuse a type that has no place in JSON, and name the field that has it."""
    if isinstance(kind, str):
        raise DefinitionError(f"{where}: {kind!r} is the name of a type; write the type itself")
    if is_dataclass(kind) and not is_model(kind):
        for name, hint in _parts(kind).items() if kind not in around else ():
            require_storable(hint, f"{where}.{name}", (*around, kind))
            _require_default(kind, name, hint, where)
        return
    _require_apart(kind, where)
    _require_keys(kind, where)
    for argument in get_args(kind) if get_origin(kind) is not Literal else ():
        if argument is not Ellipsis:
            require_storable(argument, where, around)
    try:
        _decoder(kind)
    except DefinitionError as error:
        raise DefinitionError(f"{where}: {error}") from error


def _require_default(kind: Any, name: str, hint: Any, where: str) -> None:
    """Refuse a field whose own default would not be read back."""
    default = next(item.default for item in _given(kind) if item.name == name)
    if default is MISSING:
        return
    try:
        decode(hint, encode(default))
    except MoothallError as error:
        shown = getattr(hint, "__name__", str(hint))
        remedy = f"write {shown} | None" if default is None else "give it a default of its type"
        raise DefinitionError(f"{where}.{name}: its default {default!r} is not of type {shown}; {remedy}") from error


def _require_apart(kind: Any, where: str) -> None:
    """Refuse a choice between types that are the same text or number in JSON: nobody could tell which it was."""
    if get_origin(kind) not in (Union, types.UnionType):
        return
    choices = get_args(kind)
    texts = [choice for choice in choices if choice is str or written_as(choice) is not None]
    numbers = [choice for choice in choices if choice in (int, float)]
    is_decimal = any(written.schema.get("anyOf") for choice in texts if (written := written_as(choice)))
    if len(texts) > 1 or (is_decimal and numbers):
        names = " or ".join(choice.__name__ for choice in (*texts, *numbers))
        raise DefinitionError(f"{where}: {names} cannot be told apart in JSON; choose one of them")


def _require_keys(kind: Any, where: str) -> None:
    """Refuse a mapping whose keys are no texts."""
    origin, arguments = get_origin(kind), get_args(kind)
    if not (isinstance(origin, type) and issubclass(origin, Mapping)) or not arguments:
        return
    key = arguments[0]
    is_text = key in (str, Any) or isinstance(key, TypeVar) or written_as(key) is not None
    if isinstance(key, type) and issubclass(key, Enum):
        is_text = all(type(encode(member.value)) is str for member in key)
    if get_origin(key) is Literal:
        is_text = all(type(choice) is str for choice in get_args(key))
    if not is_text:
        name = getattr(key, "__name__", str(key))
        raise DefinitionError(f"{where}: JSON objects have texts as keys, not {name}; use str, or a tuple of pairs")


def is_json(kind: Any) -> bool:
    """Whether values of a type are plain JSON, so that reading them back changes nothing."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal or kind in (*_SCALARS, float, Any, object, dict, list):
        return True
    plain = origin in (Union, types.UnionType, list, dict)
    return plain and all(map(is_json, arguments))


def _parts(kind: Any) -> dict[str, Any]:
    """The fields that a dataclass is made from, with their types."""
    try:
        hints = get_type_hints(kind)
    except NameError as error:
        raise DefinitionError(
            f"{kind.__name__}: the type {error.name!r} of a field cannot be found; define it at the top of its module"
        ) from error
    return {item.name: hints[item.name] for item in _given(kind)}


def _decode_dataclass(kind: type) -> Decoder:
    parts = _parts(kind)
    required = frozenset(_required(kind))
    plain = {name: _plain(hint) for name, hint in parts.items()}
    decoders: dict[str, Decoder] = {}
    read = _read_fields(kind, plain, decoders)

    def decoder(value: Any) -> Any:
        if type(value) is not dict:
            raise _unexpected(f"an object with the fields of {kind.__name__}", value)
        if not decoders:
            decoders.update({name: _decoder(hint) for name, hint in parts.items()})
        if not required <= value.keys() <= decoders.keys():
            if unknown := value.keys() - decoders.keys():
                raise _Misfit(f"unknown field {min(unknown)!r}; known are {', '.join(decoders) or 'none'}")
            raise _Misfit(f"the field {min(required - value.keys())!r} is missing")
        try:
            return read(value)
        except (TypeError, ValueError) as error:  # the class itself objects
            raise _Misfit(str(error)) from error

    return decoder


def _read_fields(kind: Any, plain: Mapping[str, frozenset[type]], decoders: Mapping[str, Decoder]) -> Decoder:
    """What makes a dataclass of the values of its fields, written out field by field."""
    known: dict[str, Any] = {"kind": kind, "plain": plain, "decoders": decoders, "_Misfit": _Misfit, "_first": _first}
    parts = _given(kind)
    in_order = [item for item in parts if not item.kw_only] + [item for item in parts if item.kw_only]
    if [item.name for item in in_order] == list(signature(kind).parameters):
        read = ", ".join(_read_field(item, plain[item.name], known) for item in in_order)
    else:  # it takes more than its fields, or takes them in its own way
        read = "**{name: _ if type(_) in plain[name] else decoders[at := name](_) for name, _ in value.items()}"
    made: Decoder = defined(
        f"def reading(value):\n    try: return kind({read})\n"
        "    except _Misfit as misfit: raise _first(misfit, at, value, plain, decoders)",
        known,
    )
    return made


def _read_field(item: Field[Any], plain: frozenset[type], known: dict[str, Any]) -> str:
    """The argument for one field; what it calls by name becomes known."""
    name = item.name
    known[f"plain_{name}"], known[f"default_{name}"] = plain, item.default
    read = f"_ if type(_ := value[{name!r}]) in plain_{name} else decoders[at := {name!r}](_)"
    if item.default_factory is not MISSING:
        known[f"make_{name}"] = item.default_factory
        read = f"({read}) if {name!r} in value else make_{name}()"
    elif item.default is not MISSING:
        read = f"({read}) if {name!r} in value else default_{name}"
    return f"{name}={read}" if item.kw_only else read


def _first(
    misfit: _Misfit,
    at: str,
    value: dict[str, Any],
    plain: Mapping[str, frozenset[type]],
    decoders: Mapping[str, Decoder],
) -> _Misfit:
    """The misfit of the field that the value names first, given that of one; what misfits inside is read only once."""
    for name, item in value.items():
        if name == at:
            break
        try:
            if type(item) not in plain[name]:
                decoders[name](item)
        except _Misfit as earlier:
            at, misfit = name, earlier
            break
    misfit.path = f".{at}{misfit.path}"
    return misfit


def _plain(kind: Any) -> frozenset[type]:
    """The types of the values that stand for themselves where this type is wanted."""
    if kind is Any or isinstance(kind, TypeVar):
        return _SCALARS
    if get_origin(kind) in (Union, types.UnionType):
        return _scalars_first(get_args(kind))
    return _SCALARS & {kind}


def _required(kind: Any) -> list[str]:
    return [item.name for item in _given(kind) if item.default is MISSING and item.default_factory is MISSING]


def _decode_collection(kind: Any, origin: Any, arguments: tuple[Any, ...]) -> Decoder:
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _decode_mapping(*map(_decoder, arguments or (str, Any)))
    if origin is tuple and kind is not tuple and arguments[-1:] != (Ellipsis,):
        return _decode_fixed(tuple(_decoder(argument) for argument in arguments))
    make = _SEQUENCES.get(origin)
    if make is None:
        name = kind.__name__ if isinstance(kind, type) else kind
        raise DefinitionError(
            f"{name} cannot be stored; use dataclasses, lists, tuples, dicts, strings, numbers, enums, dates, UUIDs, "
            "paths and pydantic models"
        )
    return _decode_sequence(make, _decoder(arguments[0] if arguments else Any))


def _decode_sequence(make: Callable[[Any], Any], inner: Decoder) -> Decoder:
    def decoder(value: Any) -> Any:
        if type(value) is not list:
            raise _unexpected("a list", value)
        found: list[Any] = []
        try:
            for item in value:
                found.append(inner(item))
        except _Misfit as misfit:
            misfit.path = f"[{len(found)}]{misfit.path}"
            raise
        try:
            return make(found)
        except TypeError as error:  # a set of what cannot be in one
            raise _Misfit(str(error)) from error

    return decoder


_SEQUENCES: dict[Any, Callable[[Any], Any]] = {
    list: list,
    tuple: tuple,
    Sequence: tuple,
    frozenset: frozenset,
    set: set,
}


def _decode_mapping(name: Decoder, inner: Decoder) -> Decoder:
    is_anything = name is _SCALAR_DECODERS[str] and inner is _as_it_is

    def decoder(value: Any) -> Any:
        if type(value) is not dict:
            raise _unexpected("an object", value)
        if not value or (is_anything and _TEXTS.issuperset(map(type, value))):
            return dict(value)
        found, key, fits = {}, "", False
        try:
            for key, item in value.items():
                fits = False
                named = name(key)
                fits = True
                found[named] = inner(item)
        except _Misfit as misfit:
            misfit.path = f".{key}{misfit.path}" if fits else ", key"
            raise
        return found

    return decoder


def _decode_fixed(inner: tuple[Decoder, ...]) -> Decoder:
    def decoder(value: Any) -> Any:
        if type(value) is not list or len(value) != len(inner):
            raise _unexpected(f"a list of {len(inner)}", value)
        found: list[Any] = []
        try:
            for decode_item, item in zip(inner, value, strict=True):
                found.append(decode_item(item))
        except _Misfit as misfit:
            misfit.path = f"[{len(found)}]{misfit.path}"
            raise
        return tuple(found)

    return decoder


def read_back(kind: Any, value: Any, before: Any = None) -> Any:
    """A value as it would be read back if it were stored: itself where that makes no difference.

    What it shares with an earlier value, which was read back, is not looked at again, unless it is that value: a move
    may have changed it in place. What cannot be stored or read stays as it is: whoever stores or reads it says so.
    """
    earlier = None if value is before else before
    try:
        return value if _is_stable(kind)(value, earlier) else decode(kind, encode(value))
    except (MoothallError, RecursionError):
        return value


Stable = Callable[[Any, Any], bool]
"""Whether a value is the same before and after it is stored, given an earlier value of which that is known."""


@lru_cache(maxsize=1024)
def _is_stable(kind: Any) -> Stable:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any or kind is object or isinstance(kind, TypeVar):
        return _is_json
    if kind in _SCALARS or (isinstance(kind, type) and issubclass(kind, Enum)):
        return lambda value, _: type(value) is kind
    if kind is float:
        return lambda value, _: type(value) is float or type(value) is int
    if origin is Literal:
        return lambda value, _: type(value) in _SCALARS
    if origin is Union or origin is types.UnionType:
        return _is_stable_choice(arguments)
    if is_model(kind):  # it may have been changed without being checked: only reading it tells
        return lambda value, before: False
    if is_dataclass(kind):
        return _has_stable_fields(kind)
    if (written := written_as(kind)) is not None:
        return lambda value, _: written.is_same(kind, value)
    if isinstance(origin or kind, type) and issubclass(origin or kind, Mapping):
        return _is_stable_mapping(*(arguments or (str, Any)))
    if origin is tuple and arguments[-1:] != (Ellipsis,):
        parts = tuple(map(_is_stable, arguments))
        return lambda value, _: (
            type(value) is tuple
            and len(value) == len(parts)
            and all(part(item, None) for part, item in zip(parts, value, strict=True))
        )
    return _is_stable_sequence(_SEQUENCES.get(origin or kind), arguments[0] if arguments else Any)


def _is_json(value: Any, _: Any = None) -> bool:
    kind = type(value)
    if kind in _SCALARS or kind is float:
        return True
    if kind is dict:
        return _TEXTS.issuperset(map(type, value)) and _are_json(value.values())
    return kind is list and _are_json(value)


def _are_json(values: Any) -> bool:
    return _SCALARS.issuperset(map(type, values)) or all(map(_is_json, values))


def _is_stable_choice(arguments: tuple[Any, ...]) -> Stable:
    """Of several types that are no scalars any may be read: only reading it tells which."""
    scalars = _scalars_first(arguments)
    others = [argument for argument in arguments if argument not in scalars]
    other = _is_stable(others[0]) if len(others) == 1 else lambda value, before: False
    return lambda value, before: type(value) in scalars or other(value, before)


def _has_stable_fields(kind: Any) -> Stable:
    """Every move comes by here: the fields are looked at one by one, and most of them are scalars."""
    parts, known = _parts(kind), dict[str, Any]({"kind": kind, "is_stable_part": _is_stable_part})
    tests = ["type(value) is kind"]
    for number, (name, hint) in enumerate(parts.items()):
        known[f"hint{number}"] = hint
        if hint in _SCALARS:
            tests.append(f"(type(value.{name}) is hint{number} or value.{name} is getattr(before, {name!r}, None))")
        else:
            tests.append(f"is_stable_part(hint{number}, value.{name}, getattr(before, {name!r}, None))")
    source = f"""def is_stable(value, before):
    if type(before) is not kind:
        before = None
    return {" and ".join(tests)}
"""
    is_stable: Stable = defined(source, known)
    return is_stable


def _is_stable_part(hint: Any, part: Any, earlier: Any) -> bool:
    """Whether a field is stable; its type is looked up now and not before, because a type may hold itself."""
    return part is earlier or _is_stable(hint)(part, earlier)


def _is_stable_mapping(name: Any, inner: Any) -> Stable:
    is_part_stable = _is_stable(inner)

    def is_stable(value: Any, _: Any) -> bool:
        if name is not str or type(value) is not dict or not _TEXTS.issuperset(map(type, value)):
            return False
        return all(is_part_stable(item, None) for item in value.values())

    return is_stable


def _is_stable_sequence(make: Any, inner: Any) -> Stable:
    is_part_stable = _is_stable(inner)
    alike = frozenset((inner,)) & _SCALARS

    def is_stable(value: Any, _: Any) -> bool:
        if type(value) is not make:
            return False
        return bool(alike and alike.issuperset(map(type, value))) or all(is_part_stable(item, None) for item in value)

    return is_stable


def schema(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a type, as models and people are shown it.

    What a class checks of a field beyond its type can be said there too: `Annotated[float, {"minimum": 0}]`.
    """
    return _schema(kind, ())


def _schema(kind: Any, around: tuple[Any, ...]) -> dict[str, Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in _SCHEMAS:
        return dict(_SCHEMAS[kind])
    if origin is Union or origin is types.UnionType:
        return {"anyOf": [_schema(argument, around) for argument in arguments]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"enum": [encode(member.value) for member in kind]}
    if is_model(kind):
        return model_schema(kind)
    if is_dataclass(kind):
        return _dataclass_schema(kind, around)  # type: ignore[arg-type]
    if (written := written_as(kind)) is not None:
        return dict(written.schema)
    if isinstance(origin or kind, type) and issubclass(origin or kind, Mapping):
        return {"type": "object", "additionalProperties": _schema(arguments[1] if arguments else Any, around)}
    if origin is tuple and arguments[-1:] != (Ellipsis,):
        return {"type": "array", "prefixItems": [_schema(argument, around) for argument in arguments], "items": False}
    if (origin or kind) in _SEQUENCES:
        return {"type": "array", "items": _schema(arguments[0] if arguments else Any, around)}
    return {}


def _dataclass_schema(kind: type, around: tuple[Any, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "title": kind.__name__}
    if kind in around:  # a type that contains itself is described once, and named below
        return found
    hints, annotated = get_type_hints(kind), get_type_hints(kind, include_extras=True)
    found["properties"] = {
        item.name: {**_schema(hints[item.name], (*around, kind)), **_rules(annotated[item.name])}
        for item in _given(kind)
    }
    found["additionalProperties"] = False
    return found | ({"required": required} if (required := _required(kind)) else {})


def _rules(hint: Any) -> dict[str, Any]:
    """What an annotation of a field adds to the schema of its type."""
    said = hint.__metadata__ if get_origin(hint) is Annotated else ()
    return {key: rule for part in said if isinstance(part, Mapping) for key, rule in part.items()}


_SCHEMAS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Any: {},
}
