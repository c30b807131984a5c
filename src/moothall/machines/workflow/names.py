"""The names that scripts use: which of them nobody declares, which agents and fields they mean, what they set and read.

It reads tokens, not a syntax tree, and errs on the side of silence: a name counts as declared where anything in the
text may declare it, and a key of common_data counts as set where anything may set it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from moothall.machines.workflow.tokens import ASSIGNMENTS, STEPS, SURFACE, Token, openings, scan

NOTHING = Token("", "", 0)
DOTS = (".", "?.")
DECLARING = frozenset({"const", "let", "var"})
BEFORE_PARENTHESES = frozenset({"if", "while", "for", "switch", "with"})
BEFORE_KEY = frozenset({"{", ",", ";", "}", ""})
RESERVED = (
    DECLARING
    | BEFORE_PARENTHESES
    | {
        *(
            "arguments",
            "async",
            "await",
            "break",
            "case",
            "catch",
            "class",
            "continue",
            "debugger",
            "default",
            "delete",
        ),
        *("do", "else", "extends", "false", "finally", "function", "get", "in", "instanceof", "new", "null", "of"),
        *("return", "set", "static", "super", "this", "throw", "true", "try", "typeof", "void", "yield"),
    }
)
GLOBALS = frozenset(
    {
        *("AggregateError", "Array", "ArrayBuffer", "BigInt", "BigInt64Array", "BigUint64Array", "Boolean"),
        *("DataView", "Date", "Error", "EvalError", "Float32Array", "Float64Array", "Function", "Infinity"),
        *("Int16Array", "Int32Array", "Int8Array", "Iterator", "JSON", "Map", "Math", "NaN", "Number", "Object"),
        *("Promise", "Proxy", "RangeError", "ReferenceError", "Reflect", "RegExp", "Set", "String", "Symbol"),
        *("SyntaxError", "TypeError", "URIError", "Uint16Array", "Uint32Array", "Uint8Array", "Uint8ClampedArray"),
        *("WeakMap", "WeakSet", "atob", "btoa", "decodeURI", "decodeURIComponent", "encodeURI"),
        *("encodeURIComponent", "escape", "globalThis", "isFinite", "isNaN", "parseFloat", "parseInt", "undefined"),
        "unescape",
    }
)
"""What the engine itself brings; a test asks it."""
ONLY_READING = frozenset({"stringify", "keys", "values", "entries"})
DATA, VARIABLES = "common_data", "variables"


class Chain(NamedTuple):
    """A name and the properties behind it, such as `common_data.notes.length`, and what stands before and after."""

    parts: tuple[str, ...]
    before: tuple[str, str]
    after: Token
    argument: str
    """The text that it is called with first, where that is written out."""
    then: str = ""
    """The property that is read of what it gives, where it is called."""


def undeclared_names(text: str) -> tuple[str, ...]:
    """The names that a script uses and nobody declares, each once."""
    tokens, is_whole, fault = scan(text)
    if not is_whole or fault or _is_prose(tokens):
        return ()
    declared = _declared_names(tokens) | RESERVED | GLOBALS | SURFACE
    found = (token.text for at, token in enumerate(tokens) if token.kind == "name" and _is_read(tokens, at))
    return tuple(dict.fromkeys(name for name in found if name not in declared and "\\" not in name))


def _is_prose(tokens: tuple[Token, ...]) -> bool:
    """Whether two names stand side by side, as in a sentence and in no expression."""
    return any(
        first.kind == second.kind == "name" and not RESERVED & {first.text, second.text}
        for first, second in pairwise(tokens)
    )


def _at(tokens: tuple[Token, ...], place: int) -> Token:
    return tokens[place] if 0 <= place < len(tokens) else NOTHING


def _is_read(tokens: tuple[Token, ...], at: int) -> bool:
    """Whether a name stands for a value here, and not for a property, a key or a label."""
    before, after = _at(tokens, at - 1).text, _at(tokens, at + 1).text
    return (
        before not in (*DOTS, "break", "continue")
        and not (after == ":" and before in BEFORE_KEY)
        and tokens[at].text[0] != "#"
    )


def _declared_names(tokens: tuple[Token, ...]) -> set[str]:
    """The names that something in a script may declare, and those of which it asks whether they are there."""
    found: set[str] = set()
    opened = openings(tokens)
    closings = {start: end for end, start in opened.items()}
    for at, token in enumerate(tokens):
        before = _at(tokens, at - 1).text
        if token.text in DECLARING and before not in DOTS:
            found |= _pattern(tokens, at + 1, closings)
        elif token.kind == "name" and (before in ("function", "class", "typeof") or _at(tokens, at + 1).text == "=>"):
            found.add(token.text)
        elif token.kind == "name" and before == "," and _at(tokens, at + 1).text in ("=", ",", ";", "of", "in"):
            found |= {token.text} if any(other.text in DECLARING for other in tokens[:at]) else set()
        elif token.text == ")" and _at(tokens, at + 1).text in ("=>", "{"):
            first = opened[at]
            called = _at(tokens, first - 1)
            if _at(tokens, at + 1).text == "=>" or called.text not in BEFORE_PARENTHESES:
                found |= {other.text for other in tokens[first:at] if other.kind == "name"}
                found |= {called.text} if called.kind == "name" and _at(tokens, at + 1).text == "{" else set()
    return found


def _pattern(tokens: tuple[Token, ...], at: int, closings: Mapping[int, int]) -> set[str]:
    """The names that stand behind `const`: one, or those of a pattern."""
    return {token.text for token in tokens[at : closings.get(at, at) + 1] if token.kind == "name"}


def chains(text: str) -> Iterator[Chain]:
    """Every name of a script that stands for a value, with the properties behind it."""
    tokens, is_whole, fault = scan(text)
    if not is_whole or fault:
        return
    closings = {start: end for end, start in openings(tokens).items()}
    for at, token in enumerate(tokens):
        if token.kind != "name" or _at(tokens, at - 1).text in DOTS:
            continue
        parts, end = [token.text], at + 1
        while (step := _property(tokens, end)) is not None:
            parts.append(step[0])
            end = step[1]
        inside = _at(tokens, end + 1) if _at(tokens, end).text == "(" else NOTHING
        argument = inside.text[1:-1] if inside.kind == "string" and "\\" not in inside.text else ""
        before = _at(tokens, at - 2).text, _at(tokens, at - 1).text
        called = _property(tokens, closings[end] + 1) if inside is not NOTHING and end in closings else None
        yield Chain(tuple(parts), before, _at(tokens, end), argument, called[0] if called is not None else "")


def _property(tokens: tuple[Token, ...], at: int) -> tuple[str, int] | None:
    """The property that stands here, and where what is behind it begins."""
    if _at(tokens, at).text in DOTS and _at(tokens, at + 1).kind == "name":
        return tokens[at + 1].text, at + 2
    at += _at(tokens, at).text == "?."
    if _at(tokens, at).text == "[" and _at(tokens, at + 1).kind == "string" and _at(tokens, at + 2).text == "]":
        return tokens[at + 1].text[1:-1], at + 3
    return None


def _behind(chain: Chain) -> tuple[str, ...] | None:
    """What stands behind common_data in a chain; None where it is not in it."""
    parts = chain.parts
    if DATA in parts:
        parts = parts[parts.index(DATA) + 1 :]
    elif parts[0] == VARIABLES or parts[:2] == ("this", VARIABLES):
        parts = parts[parts.index(VARIABLES) + 1 :]
    else:
        return None
    return parts[1:] if parts[:1] == (VARIABLES,) else parts


def keys_read(text: str) -> tuple[str, ...]:
    """The keys of common_data that a script names, each once."""
    behind = (way for chain in chains(text) if (way := _behind(chain)))
    return tuple(dict.fromkeys(way[0] for way in behind))


def simple_key(text: str) -> str:
    """The key of common_data that an expression is, where it is nothing else; "" where it is more."""
    found = list(chains(text))
    behind = _behind(found[0]) if len(found) == 1 and len(scan(text).tokens) in (3, 5) else None
    return behind[0] if behind is not None and len(behind) == 1 else ""


def keys_set(text: str) -> frozenset[str] | None:
    """The keys of common_data that a script may set; None where it may be any."""
    tokens, is_whole, fault = scan(text)
    if not is_whole or fault:
        return None
    found: set[str] = set()
    for chain in chains(text):
        behind = _behind(chain)
        if behind is None:
            if chain.parts in (("this",), ("executionContext",)):
                found |= _every_word(tokens)
        elif not behind and chain.after.text == "[":
            return None
        elif not behind and not (chain.before[1] == "(" and chain.before[0] in ONLY_READING):
            found |= _every_word(tokens)
        elif len(behind) == 1 and (chain.after.text in ASSIGNMENTS | STEPS or chain.before[1] in STEPS):
            found.add(behind[0])
    if any(first.text in ("]", "}") and second.text == "=" for first, second in pairwise(tokens)):
        found |= _every_word(tokens)
    return frozenset(found)


def _every_word(tokens: tuple[Token, ...]) -> set[str]:
    return {token.text.strip("\"'") for token in tokens if token.kind in ("name", "string")}


def parts_read(text: str) -> tuple[tuple[str, str], ...]:
    """The decisions and the parts of them that a script reads as `function.TOOL.PART`."""
    chained = (chain.parts[1:] if chain.parts[0] == "this" else chain.parts for chain in chains(text))
    return tuple(dict.fromkeys((parts[1], parts[2]) for parts in chained if parts[:1] == ("function",) and parts[2:]))


def fields_read(text: str) -> tuple[tuple[str, str], ...]:
    """The parsing tools and the fields of their arguments that a script reads as `function.TOOL.arguments.FIELD`."""
    found = []
    for chain in chains(text):
        parts = chain.parts[1:] if chain.parts[0] == "this" else chain.parts
        if len(parts) > 3 and parts[0] == "function" and parts[2] == "arguments":
            found.append((parts[1], parts[3]))
    return tuple(dict.fromkeys(found))


def _naming_chains(text: str) -> Iterator[tuple[str, tuple[str, ...], Chain]]:
    """What of a script leads to agents or contexts: which of the two it is, its parts without `this`, and all of it."""
    for chain in chains(text):
        parts = chain.parts[1:] if chain.parts[0] in ("this", "executionContext") else chain.parts
        if parts and parts[0] in _NAMING:
            yield _NAMING[parts[0]], parts, chain


def parts_named(text: str) -> tuple[tuple[str, str], ...]:
    """The agents and contexts that a script names, each with which of the two it is."""
    found = []
    for what, parts, chain in _naming_chains(text):
        if parts[0] not in ("agents", "contexts"):
            found += [(what, chain.argument)] if chain.argument and len(parts) == 1 else []
        elif len(parts) > 1 and parts[1] not in ("get", "has", "keys", "values", "size"):
            found.append((what, parts[1]))
        elif parts[1:] == ("get",) and chain.argument:
            found.append((what, chain.argument))
    return tuple(dict.fromkeys(found))


def members_read(text: str) -> tuple[tuple[str, str, str], ...]:
    """What a script reads of agents and contexts: which of the two it is, its name where that is seen, and the member.

    The name is "" where a call gives the agent or context.
    """
    found = []
    for what, parts, chain in _naming_chains(text):
        if parts in (("getAgent",), ("getContext",), ("agents", "get"), ("contexts", "get")):
            found += [(what, "", chain.then)] if chain.then else []
        elif parts[0] in ("agents", "contexts") and len(parts) > 2:
            found.append((what, parts[1], parts[2]))
    return tuple(dict.fromkeys(found))


_NAMING = {
    "getAgent": "agent",
    "getToolCalls": "agent",
    "agents": "agent",
    "getContext": "context",
    "contexts": "context",
}
