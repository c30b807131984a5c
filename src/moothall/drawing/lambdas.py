"""The text of a lambda, as it stands in its file: a short one says more than a name would."""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache
from types import CodeType
from typing import Any

LONGEST_LAMBDA = 48
"""Longer ones are drawn as λ."""
Place = tuple[int, int]
"""A line and a column."""


def lambda_text(function: Any) -> str:
    """What a lambda gives, as it is written; "" where that is long, or its file cannot be read."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return ""
    ends = [
        ((line, column), (last, end))
        for line, last, column, end in code.co_positions()
        if line is not None and last is not None and column is not None and end is not None and end > column
    ]
    if not ends:
        return ""
    begin, end = min(first for first, _ in ends), max(last for _, last in ends)
    text = " ".join(_bodies(code.co_filename).get(_around(code.co_filename, begin, end), "").split())
    return text if len(text) <= LONGEST_LAMBDA else ""


def _around(file: str, begin: Place, end: Place) -> tuple[Place, Place]:
    """The innermost body of a lambda around a place; the place itself where there is none."""
    bodies = [body for body in _bodies(file) if body[0] <= begin and end <= body[1]]
    return max(bodies, key=lambda body: (body[0], [-number for number in body[1]]), default=(begin, end))


@lru_cache(maxsize=64)
def _bodies(file: str) -> dict[tuple[Place, Place], str]:
    """The bodies of all lambdas in a file, by where they begin and end."""
    source = "".join(linecache.getlines(file))
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return {}
    bodies = (node.body for node in ast.walk(tree) if isinstance(node, ast.Lambda))
    return {
        ((body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)): (
            ast.get_source_segment(source, body) or ""
        )
        for body in bodies
    }
