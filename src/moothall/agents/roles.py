"""Roles: personas with a prompt, a level, tools and the shapes of what they decide.

A role comes from the library that ships with Moothall, each prompt a file of its own, or from a user's file of roles.
Every field is optional. A user's role is laid over the shipped one of the same name, field by field.

Tools are named exactly, with `*`, or as `/regular expression/`. A role either names the tools that it has, or those
that it has not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from difflib import get_close_matches
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

from moothall.agents.ask import Level
from moothall.errors import DefinitionError, Refused
from moothall.kernel.codec import decode
from moothall.kernel.frozen import Frozen


class Example(Frozen):
    """Something that was said once, to show a model how it is meant."""

    role: Literal["user", "assistant"]
    content: str


class Shape(Frozen):
    """What a role may decide, as a function that it calls: its name, what it means, and the schema of its arguments."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


class ParsingTool(Frozen):
    """A decision as role files write it down."""

    function: Shape
    type: Literal["function"] = "function"


class Role(Frozen):
    """A persona. The names of its fields are those of role files."""

    systemMessage: str = ""
    level: Level = "base"
    reminder: str = ""
    examples: tuple[Example, ...] = ()
    includedTools: tuple[str, ...] | None = None
    excludedTools: tuple[str, ...] = ()
    parsingTools: tuple[ParsingTool, ...] = ()
    rehearsal: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.includedTools is not None and self.excludedTools:
            raise ValueError("it names includedTools and excludedTools; name one of them")
        for entry in (*(self.includedTools or ()), *self.excludedTools):
            _pattern(entry)

    def may_use(self, tool: str) -> bool:
        """Whether the role has this tool."""
        if self.includedTools is not None:
            return any(_pattern(entry).fullmatch(tool) for entry in self.includedTools)
        return not any(_pattern(entry).fullmatch(tool) for entry in self.excludedTools)

    def idle_entries(self, tools: Iterable[str]) -> tuple[str, ...]:
        """The entries of its lists that match no tool that there is."""
        every = tuple(tools)
        entries = (*(self.includedTools or ()), *self.excludedTools)
        return tuple(one for one in entries if not any(_pattern(one).fullmatch(tool) for tool in every))


@lru_cache(maxsize=1024)
def _pattern(entry: str) -> re.Pattern[str]:
    """What an entry of a list of tools matches."""
    if len(entry) > 2 and entry.startswith("/") and entry.endswith("/"):
        try:
            return re.compile(f"(?s:.*(?:{entry[1:-1]}).*)")
        except re.error as error:
            raise ValueError(f"{entry!r} is no regular expression: {error}") from error
    return re.compile(".*".join(map(re.escape, entry.split("*"))))


@lru_cache(maxsize=1)
def shipped() -> Mapping[str, Mapping[str, Any]]:
    """The roles of the library, as role files write them."""
    folder = files("moothall.agents").joinpath("library")
    plain: dict[str, dict[str, Any]] = json.loads(folder.joinpath("roles.json").read_text(encoding="utf-8"))
    prompts = {name: folder.joinpath(f"{name}.md").read_text(encoding="utf-8").strip() for name in plain}
    return {name: {"systemMessage": prompts[name], **fields} for name, fields in plain.items()}


def roles(given: Mapping[str, Any], where: str = "the roles") -> Mapping[str, Role]:
    """The shipped roles with a user's laid over them; a mistake names the role and the field."""
    if not isinstance(given, Mapping):
        raise DefinitionError(f"{where}: expected an object of roles by name, got {type(given).__name__}")
    for name, fields in given.items():
        if not isinstance(fields, Mapping):
            raise DefinitionError(f"{where}: {name}: expected an object, got {type(fields).__name__}")
    try:
        return {name: decode(Role, fields, name) for name, fields in over_shipped(given).items()}
    except (Refused, ValueError) as error:
        raise DefinitionError(f"{where}: {error}") from error


@lru_cache(maxsize=1)
def _library() -> Mapping[str, Role]:
    return roles({}, "the library")


def library_role(name: str) -> Role:
    """The role of the library that has this name."""
    return role_of(name, _library())


def role_of(name: str, known: Mapping[str, Role]) -> Role:
    """The role of this name, or a word to who misspelt it."""
    if name not in known:
        guess = get_close_matches(name, known, 1)
        meant = f"did you mean {guess[0]!r}?" if guess else f"there are {', '.join(sorted(known))}"
        raise DefinitionError(f"no role is called {name!r}; {meant}")
    return known[name]


def over_shipped(given: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    """The shipped roles with others laid over them, as role files write them."""
    return {**shipped(), **{name: _over(shipped().get(name, {}), fields) for name, fields in given.items()}}


def _over(below: Mapping[str, Any], fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """One role laid over another; who names the tools that it has no longer lacks what the other lacked."""
    kept = dict(below)
    if "includedTools" in fields:
        kept.pop("excludedTools", None)
    if "excludedTools" in fields:
        kept.pop("includedTools", None)
    return {**kept, **fields}
