"""JSON as bytes, as every store keeps it: what cannot be written is the author's mistake, what cannot be read ours.

Long texts are taken out and kept once, by their digest; where they stood stays a short text that begins with a NUL.
A text of the run that begins with a NUL itself gets another in front, so that nothing can be mistaken.

What is read back is what `encode` makes of the values. Mostly orjson can write the values themselves, which is quicker.
It is more generous than we are, so what it wrote is looked at; where there is any doubt, the values are encoded first,
and written anew.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import Field, fields, is_dataclass
from functools import lru_cache
from typing import Any

import orjson

from moothall.errors import Broken, DefinitionError
from moothall.kernel.codec import encode
from moothall.kernel.frozen import rare_fields
from moothall.kernel.generated import defined
from moothall.stores.seals import without_note

LONG = 512
_MARK = "\x00"
_DIGESTS = re.compile(rb'\\u0000([0-9a-f]{32})"')


def to_bytes(value: Any) -> bytes:
    """Plain JSON as bytes."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise DefinitionError(f"a value of the run cannot be stored as JSON: {error}") from error


def pack(shape: dict[str, Any], texts: dict[str, bytes]) -> bytes:
    """The JSON of a shape as bytes; long texts go to `texts` and are referred to by their digest."""
    try:
        body = orjson.dumps(shape, default=_open_value, option=_AS_IT_IS)
    except orjson.JSONEncodeError:
        return _pack_carefully(shape, texts)
    return _pack_carefully(shape, texts) if _is_doubtful(body, len(body)) else body


def pack_pair(
    entry: dict[str, Any], head: dict[str, Any], texts: dict[str, bytes], apart: int = 0
) -> tuple[bytes, bytes]:
    """An entry and its head, each packed, in one go. So many bytes are `apart` in each: they were packed before."""
    try:
        both = orjson.dumps((entry, _CUT, head), default=_open_value, option=_AS_IT_IS)
        if _may_have_nan(both):
            shapes = _with_known_nulls(entry, "event"), _CUT, _with_known_nulls(head, "snapshot")
            both = orjson.dumps(shapes, default=_open_value, option=_AS_IT_IS)
    except orjson.JSONEncodeError:
        return _pack_carefully(entry, texts), _pack_carefully(head, texts)
    cut = both.find(b"\n")
    if _is_doubtful(both, max(cut, len(both) - cut) - apart):
        return _pack_carefully(entry, texts), _pack_carefully(head, texts)
    return both[1 : cut - 1], both[cut + 2 : -1]


def _with_known_nulls(shape: dict[str, Any], name: str) -> dict[str, Any]:
    """A shape in which None says that it is no NaN, where it stands in one of its parts: a run without data has it."""
    part = shape.get(name, {})
    for value in part.values():
        if value is None:
            return {**shape, name: {key: _NONE if inner is None else inner for key, inner in part.items()}}
    return shape


def _is_doubtful(body: bytes, longest: int) -> bool:
    """Whether a text is long, or begins with a NUL, or the writer may have taken something that is not JSON.

    It writes null for NaN, and a text for a UUID. (`part in body` would first take the part for a number, and make an
    error of that, each time.)
    """
    return (
        _may_have_nan(body)
        or body.find(b"\\u0000") >= 0
        or (body.find(b"-") >= 0 and _UUID.search(body) is not None)
        or (longest > LONG and _has_long_text(body))
    )


def _may_have_nan(body: bytes) -> bool:
    return body.find(b"null") >= 0 and body.count(b"null") > body.count(b"null ")


def _has_long_text(body: bytes) -> bool:
    """Whether a text may be long: many bytes without a quotation mark; or there is one inside a text, and who knows."""
    return body.find(b'\\"') >= 0 or max(map(len, body.split(b'"'))) > LONG


_AS_IT_IS = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATETIME
_NONE = orjson.Fragment(b"null ")
"""None in a field, with a blank behind it, so that it cannot be mistaken for a NaN."""
_CUT = orjson.Fragment(b"\n")
"""Stands between two shapes; inside one a line break is always escaped."""
_UUID = re.compile(rb"-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def _open_value(value: Any) -> Any:
    """What the writer does not know: one level of a dataclass, or whatever else can be encoded."""
    kind: Any = type(value)
    return _opener(kind)(value)


@lru_cache(maxsize=1024)
def _opener(kind: Any) -> Callable[[Any], Any]:
    if not is_dataclass(kind):
        return encode
    rare, every = rare_fields(kind), [field for field in fields(kind) if field.init]
    parts = ", ".join(f"{field.name!r}: {_part(field)}" for field in every if field.name not in rare)
    known: dict[str, Any] = {"_NONE": _NONE, **{f"default_{name}": default for name, default in rare.items()}}
    lines = [f"    if value.{name} != default_{name}: found[{name!r}] = value.{name}" for name in rare]
    source = ["def opener(value):", f"    found = {{{parts}}}", *lines, "    return found"]
    made: Callable[[Any], Any] = defined("\n".join(source), known)
    return made


def _part(field: Field[Any]) -> str:
    part = f"value.{field.name}"
    return f"_NONE if {part} is None else {part}" if field.default is None or field.type == "Any" else part


def _pack_carefully(shape: dict[str, Any], texts: dict[str, bytes]) -> bytes:
    """The same by way of `encode`; what was packed before stays as it is."""
    plain = {name: part if _is_packed(part) else encode(part) for name, part in shape.items()}
    return to_bytes(_shorten(plain, texts))


def _is_packed(part: Any) -> bool:
    return type(part) is list and bool(part) and type(part[0]) is orjson.Fragment


def digest_of(text: bytes) -> bytes:
    """The name of a long text."""
    return hashlib.blake2b(text, digest_size=16).digest()


def digests_in(body: bytes) -> set[bytes]:
    """The digests of the long texts that a body refers to."""
    return {bytes.fromhex(digest.decode()) for digest in _DIGESTS.findall(body)} if b"\\u0000" in body else set()


def _shorten(value: Any, texts: dict[str, bytes]) -> Any:
    if type(value) is str:
        if len(value) > LONG:
            if value not in texts:
                texts[value] = digest_of(value.encode())
            return _MARK + texts[value].hex()
        return _MARK + value if value.startswith(_MARK) else value
    if type(value) is list:
        return [_shorten(item, texts) for item in value]
    if type(value) is dict:
        return {key: _shorten(item, texts) for key, item in value.items()}
    return value


def read(body: bytes) -> Any:
    """Plain JSON from bytes."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Broken(f"the store holds something that is not JSON: {error}") from error


def unpack(body: bytes, text: Callable[[bytes], str]) -> Any:
    """Plain JSON from bytes, with its long texts back in their places."""
    value = read(without_note(body))
    return _restore_texts(value, text) if body.find(b"\\u0000") >= 0 else value


def _restore_texts(value: Any, text: Callable[[bytes], str]) -> Any:
    if type(value) is str and value.startswith(_MARK):
        return value[1:] if value.startswith(_MARK * 2) else text(bytes.fromhex(value[1:]))
    if type(value) is list:
        return [_restore_texts(item, text) for item in value]
    if type(value) is dict:
        return {key: _restore_texts(item, text) for key, item in value.items()}
    return value
