"""JSON as bytes, as every store keeps it: what cannot be written is the author's mistake, what cannot be read ours.

Long texts are taken out and kept once, by their digest; where they stood stays a short text that begins with a NUL.
A text of the run that begins with a NUL itself gets another in front, so that nothing can be mistaken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import orjson

from moothall.errors import Broken, DefinitionError

LONG = 512
_MARK = "\x00"


def written(value: Any) -> bytes:
    """Plain JSON as bytes."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise _unwritable(error) from error


def _unwritable(error: orjson.JSONEncodeError) -> DefinitionError:
    return DefinitionError(f"a value of the run cannot be stored as JSON: {error}")


def packed(value: Any, texts: dict[str, bytes], apart: int = 0) -> bytes:
    """Plain JSON as bytes; long texts go to `texts` and are referred to by their digest.

    So many of the bytes are `apart`: fragments in which long texts have been looked for already.
    """
    try:
        body = orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise _unwritable(error) from error
    if len(body) - apart <= LONG and b"\\u0000" not in body:
        return body
    return written(_shortened(value, texts))


def digest_of(text: bytes) -> bytes:
    """The name of a long text."""
    return hashlib.blake2b(text, digest_size=16).digest()


def _shortened(value: Any, texts: dict[str, bytes]) -> Any:
    if type(value) is str:
        if len(value) > LONG:
            if value not in texts:
                texts[value] = digest_of(value.encode())
            return _MARK + texts[value].hex()
        return _MARK + value if value.startswith(_MARK) else value
    if type(value) is list:
        return [_shortened(item, texts) for item in value]
    if type(value) is dict:
        return {key: _shortened(item, texts) for key, item in value.items()}
    return value


def read(body: bytes) -> Any:
    """Plain JSON from bytes."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Broken(f"the store holds something that is no JSON: {error}") from error


def unpacked(body: bytes, text: Callable[[bytes], str]) -> Any:
    """Plain JSON from bytes, with its long texts back in their places."""
    value = read(body)
    return _lengthened(value, text) if b"\\u0000" in body else value


def _lengthened(value: Any, text: Callable[[bytes], str]) -> Any:
    if type(value) is str and value.startswith(_MARK):
        return value[1:] if value.startswith(_MARK * 2) else text(bytes.fromhex(value[1:]))
    if type(value) is list:
        return [_lengthened(item, text) for item in value]
    if type(value) is dict:
        return {key: _lengthened(item, text) for key, item in value.items()}
    return value
