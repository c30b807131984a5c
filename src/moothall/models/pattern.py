"""A text that matches a regular expression, for stand-ins that have to keep to a schema."""

from __future__ import annotations

import random
import re
import string
from re import _parser as grammar
from typing import Any

ALPHABET = string.ascii_lowercase + string.digits + string.ascii_uppercase + " _-.:/"
MORE = 3
"""How many more of something there may be than there have to be, where a pattern sets no end."""


def matching_text(pattern: str, chance: random.Random) -> str | None:
    """A text that matches a pattern; None where it takes more than choosing letters to find one."""
    try:
        text = _written(grammar.parse(pattern), chance)
    except (re.error, KeyError, IndexError):
        return None
    return text if re.search(pattern, text) else None


def _written(parts: Any, chance: random.Random) -> str:
    return "".join(_part_text(str(operation), argument, chance) for operation, argument in parts)


def _part_text(operation: str, argument: Any, chance: random.Random) -> str:
    match operation:
        case "LITERAL":
            return chr(argument)
        case "IN" | "NOT_LITERAL" | "ANY":
            allowed = [letter for letter in ALPHABET if _allows(operation, argument, letter)]
            return chance.choice(allowed)
        case "MAX_REPEAT" | "MIN_REPEAT":
            least, most, inner = argument
            times = chance.randint(least, min(most, least + MORE))
            return "".join(_written(inner, chance) for _ in range(times))
        case "SUBPATTERN":
            return _written(argument[-1], chance)
        case "BRANCH":
            return _written(chance.choice(argument[1]), chance)
        case "AT":
            return ""
        case _:
            raise KeyError(operation)


def _allows(operation: str, argument: Any, letter: str) -> bool:
    if operation == "ANY":
        return True
    if operation == "NOT_LITERAL":
        return bool(ord(letter) != argument)
    is_negated = str(argument[0][0]) == "NEGATE"
    return is_negated != any(_contains(str(name), part, letter) for name, part in argument if str(name) != "NEGATE")


def _contains(name: str, part: Any, letter: str) -> bool:
    if name == "LITERAL":
        return bool(ord(letter) == part)
    if name == "RANGE":
        return bool(part[0] <= ord(letter) <= part[1])
    classes = {"DIGIT": r"\d", "WORD": r"\w", "SPACE": r"\s"}
    name = str(part).removeprefix("CATEGORY_")
    is_in = re.fullmatch(classes[name.removeprefix("NOT_")], letter) is not None
    return is_in != name.startswith("NOT_")
