"""JSON as bytes, as every store keeps it: what cannot be written is the author's mistake, what cannot be read ours."""

from __future__ import annotations

from typing import Any

import orjson

from moothall.errors import Broken, DefinitionError


def written(value: Any) -> bytes:
    """Plain JSON as bytes."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise DefinitionError(f"a value of the run cannot be stored as JSON: {error}") from error


def read(body: bytes) -> Any:
    """Plain JSON from bytes."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Broken(f"the store holds something that is no JSON: {error}") from error
