"""Functions that are written as text, one for each class: the only place where text of ours becomes code.

What is done at every step for each field of a value (fill it, encode it, look into it) costs less when it is written
out field by field than in a loop over the fields. The text is made of our own words and of the names of fields, which
Python has accepted as names; whatever else the function needs, a default or a decoder, is given as `known` and never
as text.
"""

from __future__ import annotations

from typing import Any


def defined(source: str, known: dict[str, Any]) -> Any:
    """The function that a text defines; it sees what is known by then, and what becomes known later."""
    exec(source, known)
    return known[source.partition("(")[0].removeprefix("def ")]
