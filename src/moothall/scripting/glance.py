"""Answers what can be seen at a glance, without an engine: a place in the data, alone, compared or put into a text.

`function.judge.arguments.enough === true` and `common_data.round < 3` are most conditions that people write, and
`'Review this: ' + common_data.draft` is most inputs. Only what surely has one meaning is answered here: plain keys of
plain objects, whole numbers, texts without escapes. Whatever else it may be is a question to the engine. A test holds
these answers against the engine's.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from moothall.machines.workflow.tokens import Token, scan

INHERITED = frozenset(
    {
        *("__proto__", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "constructor"),
        *("hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "prototype", "toLocaleString", "toString"),
        *("valueOf", "variables"),
    }
)
EXACT, SHORT, LONGEST_TEXT = 2**53, 100, 100_000
LITERALS: Mapping[str, Any] = {"true": True, "false": False, "null": None}
MARKS = frozenset({"===", "!==", "<", ">", "<=", ">="})


class Glance(NamedTuple):
    """A condition: where it looks, and what it compares that with. `mark` is "!" where it only negates."""

    root: Literal["common_data", "function"]
    way: tuple[str, ...]
    mark: str = ""
    literal: Any = None


class _Missing:
    """What is undefined."""


MISSING = _Missing()


def answer_at_a_glance(text: str, scope: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the engine would say to a condition; None where it has to be asked."""
    glance = _glance(text)
    value = None if glance is None else _value(glance, scope)
    if glance is None or value is None:
        return None
    [found] = value
    if not glance.mark:
        return _reply(found)
    if glance.mark == "!":
        truth = _truth(found)
        return None if truth is None else {"holds": not truth, "value": not truth}
    holds = _compare(found, glance.mark, glance.literal)
    return None if holds is None else {"holds": holds, "value": holds}


def text_at_a_glance(text: str, scope: Mapping[str, Any]) -> str | None:
    """What the engine would say to a sum of texts and of places that hold texts; None where it has to be asked."""
    parts: list[str] = []
    for term in _terms(text):
        value = (term,) if isinstance(term, str) else _value(term, scope)
        if value is None or type(value[0]) is not str or not _is_well_formed(value[0]):
            return None
        parts.append(value[0])
    whole = "".join(parts)
    return whole if parts and len(whole) <= LONGEST_TEXT else None


@lru_cache(maxsize=1024)
def _terms(text: str) -> tuple[str | Glance, ...]:
    """The texts and places that a text adds up; none where it is anything else."""
    tokens, is_whole, fault = scan(text)
    if not is_whole or fault:
        return ()
    terms: list[str | Glance] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.kind == "string" and "\\" not in token.text:
            terms.append(token.text[1:-1])
            at += 1
        else:
            place, length = _place(tokens[at:])
            if place is None:
                return ()
            terms.append(place)
            at += length
        if at < len(tokens) and (tokens[at].text != "+" or at + 1 == len(tokens)):
            return ()
        at += 1
    return tuple(terms)


def _is_well_formed(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


@lru_cache(maxsize=4096)
def _glance(text: str) -> Glance | None:
    tokens, is_whole, fault = scan(text)
    if not is_whole or fault or not tokens:
        return None
    negates = tokens[0].text == "!"
    rest = tokens[1:] if negates else tokens
    place, at = _place(rest)
    if place is None:
        return None
    if at == len(rest):
        return place._replace(mark="!" if negates else "")
    literal = _literal(rest[at + 1]) if len(rest) == at + 2 and rest[at].text in MARKS and not negates else None
    return None if literal is None else place._replace(mark=rest[at].text, literal=literal[0])


def _place(tokens: tuple[Token, ...]) -> tuple[Glance | None, int]:
    """The place that is named at the beginning, None where it is not plain, and where its name ends."""
    names, at = _names(tokens)
    names = names[1:] if names[:1] == ["this"] else names
    if len(names) < 2 or INHERITED & set(names[1:]) or names[0] not in ("common_data", "function"):
        return None, at
    return Glance("function" if names[0] == "function" else "common_data", tuple(names[1:])), at


def _names(tokens: tuple[Token, ...]) -> tuple[list[str], int]:
    """The names of a chain at the beginning, and where it ends."""
    if tokens[:1] == () or tokens[0].kind != "name" or not tokens[0].text.isascii():
        return [], 0
    names, at = [tokens[0].text], 1
    while at + 1 < len(tokens) and tokens[at].text == "." and tokens[at + 1].kind == "name":
        names.append(tokens[at + 1].text)
        at += 2
    return names if all(name.isascii() and "\\" not in name for name in names) else [], at


def _literal(token: Token) -> tuple[Any] | None:
    if token.text in LITERALS:
        return (LITERALS[token.text],)
    if token.kind == "string" and "\\" not in token.text and token.text.isascii():
        return (token.text[1:-1],)
    if token.kind == "number" and token.text.isdecimal() and (token.text == "0" or token.text[0] != "0"):
        return (int(token.text),) if len(token.text) < 15 else None
    return None


def _value(glance: Glance, scope: Mapping[str, Any]) -> tuple[Any] | None:
    """What stands at a place, in a tuple; None where that is not plain."""
    way = glance.way
    place: Any = scope.get("common_data", {})
    if glance.root == "function":
        calls = scope.get("last_parsing_tool_calls", [])
        if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
            return None
        functions = [call.get("function") for call in calls]
        if not all(isinstance(function, dict) for function in functions):
            return None
        place = next((function for function in functions if function.get("name") == way[0]), MISSING)
        if place is MISSING:
            return (MISSING,)
        way = way[1:]
    for name in way:
        if type(place) is not dict:
            return None
        place = place.get(name, MISSING)
    is_number = type(place) is int and -EXACT < place < EXACT
    is_plain = place is MISSING or place is None or is_number or type(place) in (bool, str, dict, list)
    return (place,) if is_plain else None


def _truth(value: Any) -> bool | None:
    if type(value) in (dict, list):
        return True
    return value is not MISSING and bool(value)


def _reply(value: Any) -> dict[str, Any] | None:
    """What is said of a condition that is a place: whether it holds, and its value where that is short."""
    if value is MISSING:
        return {"holds": False}
    if type(value) is str and (len(value) > SHORT or not value.isascii()):
        return None
    holds = bool(_truth(value))
    return {"holds": holds, "value": holds if type(value) in (dict, list) else value}


def _compare(value: Any, mark: str, literal: Any) -> bool | None:
    if mark in ("===", "!=="):
        is_equal = type(value) is type(literal) and value == literal
        return is_equal == (mark == "===")
    if type(value) is not int or type(literal) is not int:
        return None
    return {"<": value < literal, ">": value > literal, "<=": value <= literal, ">=": value >= literal}[mark]
