"""Reads the text of a script without running it: what stands in it, what it reads, what it assigns.

The tokeniser knows strings, templates with their nested `${…}`, regular expressions and comments, so that a word in one
of those is never taken for code. It is not a parser: where a text cannot be read to its end it says so and leaves the
verdict to the engine. Whether a `/` begins a regular expression is decided by the token before it, and behind a `)`
or `}` by what opened it.

- `expand` turns the shorthand `function.NAME`, which is not JavaScript, into an expression that is undefined as a
  whole where NAME was not called.
- `reads` errs on the side of too much: a text that may reach names in ways that cannot be seen here reads everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

LOOKUP = "__parsing_tool_call"
"""The function of the surface that `function.NAME` is turned into a call of."""

SOURCES = {
    "common_data": ("common_data",),
    "variables": ("common_data",),
    "agents": ("agents",),
    "getAgent": ("agents",),
    "getToolCalls": ("agents",),
    "contexts": ("contexts",),
    "getContext": ("contexts",),
    "sub_workflow_result": ("sub_workflow_result",),
    "last_agent_response": ("last_agent_response",),
    "lastAgentResponse": ("last_agent_response",),
    "last_tool_calls": ("last_tool_calls",),
    "last_parsing_tool_calls": ("last_parsing_tool_calls",),
    "function": ("last_parsing_tool_calls",),
    LOOKUP: ("last_parsing_tool_calls",),
}
"""The names that a script can use, and the data that each is made of."""

EVERYTHING = frozenset(source for sources in SOURCES.values() for source in sources)
INDIRECT = frozenset({"evaluateExpression", "executionContext", "globalThis", "eval"})
SURFACE = frozenset(SOURCES) | INDIRECT | {"this"}

BEFORE_CONDITION = frozenset({"if", "while", "for", "with"})
KEYWORDS = BEFORE_CONDITION | {
    *("await", "case", "delete", "do", "else", "in", "instanceof"),
    *("new", "of", "return", "throw", "typeof", "void", "yield"),
}
BEFORE_BLOCK = frozenset({"", ";", "{", "}", ")", "=>", "else", "do", "try", "finally"})
CLOSES = {")": "(", "]": "[", "}": "{"}
ASSIGNMENTS = frozenset(f"{operator}=" for operator in ("", *"+-*/%&|^", "**", "<<", ">>", ">>>", "&&", "||", "??"))
STEPS = frozenset({"++", "--"})

_PLAIN = re.compile(
    r"""(?P<space>\s+|//[^\n\r\u2028\u2029]*|/\*.*?\*/)
      | (?P<name>\#?(?:[^\W\d]|\$|\\u[0-9a-fA-F]{4}|\\u\{[0-9a-fA-F]+\})
                 (?:[\w$\u200c\u200d]|\\u[0-9a-fA-F]{4}|\\u\{[0-9a-fA-F]+\})*)
      | (?P<number>(?:\d[\w]*(?:\.[\w]*)?|\.\d[\w]*)(?:(?<=[eE])[+-]\d[\w]*)?)
      | (?P<string>"(?:[^"\\\n\r]|\\(?:\r\n|.))*"|'(?:[^'\\\n\r]|\\(?:\r\n|.))*')
      | (?P<mark>\?\.(?!\d)|=>|\.\.\.|>>>=|\*\*=|<<=|>>=|>>>|&&=|\|\|=|\?\?=|===|!==|\*\*|<<|>>|&&|\|\||\?\?
                 |==|!=|<=|>=|\+\+|--|\+=|-=|\*=|%=|&=|\|=|\^=|[-+*%&|^!~<>=?:;,.(){}\[\]@])""",
    re.VERBOSE | re.DOTALL,
)
_REGULAR = re.compile(r"/(?![*/])(?:[^\\/\[\n\r]|\\[^\n\r]|\[(?:[^\]\\\n\r]|\\[^\n\r])*\])+/[\w$]*")
_DIVISION = re.compile(r"/=?")
_TEMPLATE = re.compile(r"[`}](?:[^`\\$]|\\.|\$(?!\{))*(?P<end>`|\$\{)", re.DOTALL)


class Token(NamedTuple):
    """A piece of a script that means something: comments and spaces are left out."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.text)


class Scan(NamedTuple):
    """The tokens of a text, whether these are all, and what is wrong with its brackets ("" where nothing is)."""

    tokens: tuple[Token, ...]
    is_whole: bool
    fault: str = ""


class _Open(NamedTuple):
    """An open bracket; `before_regular` says whether a regular expression may follow the bracket that closes it."""

    mark: str
    before_regular: bool


class _Scanner:
    """Walks through one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[Token] = []
        self.open: list[_Open] = []
        self.may_be_regular = True

    def scan(self) -> Scan:
        """All tokens, or those before the place where the text cannot be read any more."""
        at = 0
        while at < len(self.text):
            found = self._at(at)
            if found is None:
                return Scan(tuple(self.tokens), False)
            at += len(found.text)
            if found.kind == "space":
                continue
            fault = self._brackets(found)
            if fault:
                return Scan(tuple(self.tokens), False, fault)
            self.tokens.append(found)
        return Scan(tuple(self.tokens), True, f"{self.open[-1].mark} is never closed" if self.open else "")

    def _at(self, at: int) -> Token | None:
        first = self.text[at]
        if first == "`" or (first == "}" and self.open and self.open[-1].mark == "${"):
            pattern, kind = _TEMPLATE, "template"
        elif first == "/" and not self.text.startswith(("//", "/*"), at):
            pattern, kind = (_REGULAR, "regular") if self.may_be_regular else (_DIVISION, "mark")
        else:
            pattern, kind = _PLAIN, ""
        found = pattern.match(self.text, at)
        return Token(kind or found.lastgroup or "", found[0], at) if found else None

    def _brackets(self, token: Token) -> str:
        """Keep count of what is open, and of what a `/` would mean behind this token; what is wrong, if anything."""
        before = self.tokens[-1] if self.tokens else Token("", "", 0)
        if token.kind == "template":
            return self._template(token)
        if token.kind != "mark":
            self.may_be_regular = token.kind == "name" and token.text in KEYWORDS and before.text not in (".", "?.")
            return ""
        if token.text in ("(", "[", "{"):
            self.open.append(_Open(token.text, self._opens(token.text, before)))
            self.may_be_regular = True
            return ""
        if token.text in CLOSES:
            if not self.open or self.open[-1].mark != CLOSES[token.text]:
                return f"{token.text} closes nothing"
            self.may_be_regular = self.open.pop().before_regular
            return ""
        self.may_be_regular = token.text not in STEPS or self.may_be_regular
        return ""

    def _opens(self, mark: str, before: Token) -> bool:
        if mark == "(":
            return before.text in BEFORE_CONDITION
        return mark == "{" and before.text in BEFORE_BLOCK

    def _template(self, token: Token) -> str:
        if token.text[0] == "}":
            self.open.pop()
        if token.text.endswith("${"):
            self.open.append(_Open("${", False))
        self.may_be_regular = token.text.endswith("${")
        return ""


@lru_cache(maxsize=8192)
def scan(text: str) -> Scan:
    """The tokens of a script, as far as it can be read."""
    return _Scanner(text).scan()


def expand(text: str, tokens: tuple[Token, ...]) -> str:
    """The text with every `function.NAME` turned into the lookup of that call."""
    parts: list[str] = []
    at = 0
    for start, end, name in _shorthands(tokens):
        parts += [text[at:start], f"{LOOKUP}({name})?.function"]
        at = end
    return "".join([*parts, text[at:]])


def functions(text: str) -> frozenset[str]:
    """The names of the parsing tools that a script reads by `function.NAME`."""
    return frozenset(name[1:-1] for _, _, name in _shorthands(scan(text).tokens))


def reads(text: str) -> frozenset[str]:
    """The data that a script may read; all of it, where that cannot be told from the text."""
    tokens, is_whole, _ = scan(text)
    if not is_whole:
        return EVERYTHING
    found: set[str] = set()
    for token, after in zip(tokens, (*tokens[1:], Token("", "", 0)), strict=True):
        if token.kind == "regular":
            found |= {source for name in SOURCES if name in token.text for source in SOURCES[name]}
        elif token.kind == "name":
            if "\\" in token.text or token.text in INDIRECT or (token.text == "this" and after.text not in (".", "?.")):
                return EVERYTHING
            found |= set(SOURCES.get(token.text, ()))
    return frozenset(found)


def assigns(text: str) -> bool:
    """Whether an expression assigns to what it is given to read, such as `common_data.done = true`."""
    tokens = scan(text).tokens
    opened = openings(tokens)
    for place, token in enumerate(tokens):
        if token.kind == "mark" and token.text in ASSIGNMENTS | STEPS and _root(tokens, place - 1, opened) in SURFACE:
            return True
        if token.text in STEPS | {"delete"} and any(
            following.text in SURFACE for following in tokens[place + 1 : place + 2]
        ):
            return True
    return False


def _root(tokens: tuple[Token, ...], place: int, opened: Mapping[int, int]) -> str:
    """The name that a chain such as `a.b[c].d`, ending here, begins with; "" where it is a name of the script's own."""
    while place > 0:
        if tokens[place].text == "]":
            place = opened[place] - 1
        elif tokens[place - 1].text in (".", "?."):
            place -= 2
        else:
            break
    is_own = place > 0 and tokens[place - 1].text in ("const", "let", "var")
    return tokens[place].text if place >= 0 and not is_own else ""


def openings(tokens: tuple[Token, ...]) -> dict[int, int]:
    """Where the bracket stands that each closing bracket closes."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for place, token in enumerate(tokens):
        if token.text in ("(", "[", "{"):
            opened.append(place)
        elif token.text in CLOSES:
            found[place] = opened.pop()
    return found


def _shorthands(tokens: tuple[Token, ...]) -> Iterator[tuple[int, int, str]]:
    """Where each `function.NAME`, `function["NAME"]` or `this.function.NAME` begins and ends, and its quoted name."""
    for place, token in enumerate(tokens):
        if token.kind != "name" or token.text != "function":
            continue
        first = _first(tokens, place)
        if first is None:
            continue
        after = [*tokens[place + 1 : place + 4], *[Token("", "", 0)] * 3]
        if after[0].text in (".", "?.") and after[1].kind == "name":
            yield first, after[1].end, f'"{after[1].text}"'
        elif after[0].text == "[" and after[1].kind == "string" and after[2].text == "]":
            yield first, after[2].end, after[1].text


def _first(tokens: tuple[Token, ...], place: int) -> int | None:
    """Where the shorthand begins whose keyword stands here; None where `function` is some object's property."""
    if place == 0 or tokens[place - 1].text not in (".", "?."):
        return tokens[place].start
    if place > 1 and tokens[place - 2].text == "this" and (place == 2 or tokens[place - 3].text not in (".", "?.")):
        return tokens[place - 2].start
    return None
