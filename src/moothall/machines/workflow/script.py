"""What can be seen of a script without running it.

A script is cut into tokens: strings, templates, regular expressions and comments are known for what they are, so that
a word inside a string is no name. Nothing here parses; whether a script is JavaScript at all, an engine must say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from moothall.kernel.frozen import Frozen

PYTHON = "py:"
"""What a script begins with that is a registered function of Python."""

_PIECE = re.compile(
    r"(?P<space>\s+|//[^\n]*|/\*.*?\*/)"
    r"|(?P<string>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
    r"|(?P<name>[^\W\d][\w$]*|[$][\w$]*)"
    r"|(?P<number>\.?\d[\w.]*)"
    r"|(?P<sign>=>|[=!]==?|>>>=|\*\*=|<<=|>>=|&&=|\|\|=|\?\?=|<=|>=|[-+*/%&|^]=|\+\+|--|\?\.|&&|\|\||\?\?|\.\.\.|.)",
    re.DOTALL,
)
_REGEX = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/\w*")
_TEMPLATE = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*", re.DOTALL)
_ASSIGNING = frozenset(f"{sign}=" for sign in ("", *"+-*/%&|^", "**", "<<", ">>", ">>>", "&&", "||", "??")) | {
    "++",
    "--",
}
_BEFORE_REGEX = frozenset(("return", "typeof", "case", "in", "of", "new", "delete", "void", "do", "else", "throw"))
_TOOL_CALLS = frozenset(("getToolCalls", "last_tool_calls", "tool_calls"))


class Token(Frozen):
    """A piece of a script: a name, a string, a number, or a sign."""

    kind: str
    text: str


@lru_cache(maxsize=4096)
def tokens(script: str) -> tuple[Token, ...]:
    """The pieces of a script, without its blanks and comments; of a template what is evaluated in it."""
    return tuple(_tokens(script))


def _tokens(script: str) -> Iterator[Token]:
    at, last, depth = 0, Token("sign", ";"), 0
    templates: list[int] = []
    while at < len(script):
        if script[at] == "`" or (script[at] == "}" and templates and templates[-1] == depth):
            if script[at] == "}":
                templates.pop()
                yield Token("sign", "}")
            at = _TEMPLATE.match(script, at + 1).end()  # type: ignore[union-attr]
            if script.startswith("${", at):
                templates.append(depth)
                at, last = at + 2, Token("sign", "${")
            else:
                at, last = at + 1, Token("string", "")
            yield last
            continue
        if script[at] == "/" and not _ends_a_value(last) and (regex := _REGEX.match(script, at)):
            at, last = regex.end(), Token("string", "")
            yield last
            continue
        match = _PIECE.match(script, at)
        assert match is not None
        at = match.end()
        if match.lastgroup != "space":
            last = Token(match.lastgroup or "", match[0])
            depth += (last.text == "{") - (last.text == "}")
            yield last


def _ends_a_value(token: Token) -> bool:
    if token.kind == "name":
        return token.text not in _BEFORE_REGEX
    return token.kind != "sign" or token.text in (")", "]", "}")


def is_true(condition: str) -> bool:
    """Whether a condition always holds, at a glance."""
    return condition.strip() == "true"


def is_false(condition: str) -> bool:
    """Whether a condition never holds, at a glance."""
    return condition.strip() == "false"


def assigns(condition: str) -> bool:
    """Whether an expression assigns something outside of functions of its own."""
    found, blocks = tokens(condition), list[str]()
    for at, token in enumerate(found):
        if token.text in ("{", "${"):
            blocks.append(token.text)
        elif token.text == "}" and blocks:
            blocks.pop()
        elif token.text in _ASSIGNING and token.kind == "sign" and "{" not in blocks and not _is_default(found[at:]):
            return True
    return False


def _is_default(rest: tuple[Token, ...]) -> bool:
    """Whether an equals sign gives a parameter of an arrow function its default."""
    depth = 0
    for at, token in enumerate(rest):
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        if depth < 0:
            return token.text == ")" and [one.text for one in rest[at + 1 : at + 2]] == ["=>"]
    return False


def called_functions(script: str) -> tuple[str, ...]:
    """The parsing tools that a script reads as `function.NAME`."""
    found = tokens(script)
    names = (
        third.text
        for first, second, third in zip(found, found[1:], found[2:], strict=False)
        if first == Token("name", "function") and second.text in (".", "?.") and third.kind == "name"
    )
    return tuple(dict.fromkeys(names))


def reads_tool_calls(script: str) -> bool:
    """Whether a script looks at the calls of tools that a reply wants."""
    return any(token.kind == "name" and token.text in _TOOL_CALLS for token in tokens(script))


def mentions(script: str, name: str) -> bool:
    """Whether a name stands in a script, as a name or as a string."""
    return any(token.text.strip("\"'") == name for token in tokens(script) if token.kind in ("name", "string"))


def may_set(script: str, name: str) -> bool:
    """Whether a script may give a key of common_data a value."""
    found = tokens(script)
    for at, token in enumerate(found):
        if token.kind not in ("name", "string") or token.text.strip("\"'") != name:
            continue
        after = found[at + 1 : at + 3]
        if after[:1] == (Token("sign", "]"),):
            after = after[1:]
        is_property = at > 0 and found[at - 1].text in (".", "?.", "[")
        if not is_property or (after and after[0].text in _ASSIGNING):
            return True
    return False
