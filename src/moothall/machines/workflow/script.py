"""What the check and the compiler want to know of a script; nothing here runs or parses one."""

from __future__ import annotations

from collections.abc import Iterator

from moothall.machines.workflow.tokens import ASSIGNMENTS, CLOSES, Token, functions, openings, scan
from moothall.machines.workflow.tokens import assigns as assigns_to_surface

PYTHON = "py:"
"""What a script begins with that is a registered function of Python."""

LONGEST = 100_000
"""The most characters of a text that anybody looks at."""

_TOOL_CALLS = frozenset(("getToolCalls", "last_tool_calls", "tool_calls"))


def _tokens(script: str) -> tuple[Token, ...]:
    return scan(script).tokens if len(script) <= LONGEST else ()


def called_functions(script: str) -> frozenset[str]:
    """The parsing tools that a script reads as `function.NAME`."""
    return functions(script) if len(script) <= LONGEST else frozenset()


def is_true(condition: str) -> bool:
    """Whether a condition always holds, at a glance."""
    return condition.strip() == "true"


def is_false(condition: str) -> bool:
    """Whether a condition never holds, at a glance."""
    return condition.strip() == "false"


def assigns(condition: str) -> bool:
    """Whether an expression assigns something that outlives it."""
    found, blocks = _tokens(condition), 0
    for token, is_default in zip(found, _in_parameters(found), strict=True):
        blocks += (token.text == "{") - (token.text == "}")
        if not blocks and token.kind == "mark" and token.text in ASSIGNMENTS and not is_default:
            return True
    return assigns_to_surface(condition)


def _in_parameters(found: tuple[Token, ...]) -> Iterator[bool]:
    """For each token whether it stands in the parameters of a function, where an equals sign gives a default."""
    ends = {start: end for end, start in openings(found).items()}
    inside = [False]
    for at, token in enumerate(found):
        if token.text in CLOSES and len(inside) > 1:
            inside.pop()
        yield inside[-1]
        if token.text == "(":
            after = ends.get(at, len(found)) + 1
            inside.append(any(token.text in ("=>", "{") for token in found[after : after + 1]))
        elif token.text in ("[", "{"):
            inside.append(inside[-1])


def reads_tool_calls(script: str) -> bool:
    """Whether a script looks at the calls of tools that a reply wants."""
    return any(token.kind == "name" and token.text in _TOOL_CALLS for token in _tokens(script))


def words(script: str) -> frozenset[str]:
    """The names and strings that stand in a script."""
    return frozenset(_word(token) for token in _tokens(script))


def may_set(script: str, name: str) -> bool:
    """Whether a script may give a key of common_data a value."""
    found = _tokens(script)
    for at, token in enumerate(found):
        if _word(token) != name:
            continue
        after = [token.text for token in found[at + 1 : at + 3] if token.text != "]"]
        is_property = at > 0 and found[at - 1].text in (".", "?.", "[")
        if not is_property or (after and after[0] in ASSIGNMENTS):
            return True
    return False


def _word(token: Token) -> str:
    return token.text.strip("\"'") if token.kind in ("name", "string") else ""
