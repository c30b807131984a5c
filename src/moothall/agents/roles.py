"""Roles: personas with a prompt, a level, tools and the shapes of what they decide.

A role comes from the library that ships with Moothall, each prompt a file of its own, or from a user's file of roles.
Every field is optional. A user's role is laid over the shipped one of the same name, field by field.

Tools are named exactly, with `*`, or as `/regular expression/flags`. A role either names the tools that it has, or
those that it has not.

Files of roles are also written for other programs. What is not known here is passed over with a word and a guess; a
role that cannot be read is wrong only where it is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import field, fields
from difflib import get_close_matches
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

from moothall.agents.ask import Level
from moothall.agents.patterns import check_entry, is_match
from moothall.errors import DefinitionError, Refused
from moothall.kernel.codec import decode
from moothall.kernel.frozen import Frozen

COMMENT = "$comment"
"""The key of a note for readers, which means nothing."""


class Example(Frozen):
    """Something that was said once, to show a model how it is meant."""

    role: Literal["user", "assistant", "system"]
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
            check_entry(entry)

    def may_use(self, tool: str) -> bool:
        """Whether the role has this tool."""
        if self.includedTools is not None:
            return any(is_match(entry, tool) for entry in self.includedTools)
        return not any(is_match(entry, tool) for entry in self.excludedTools)

    def idle_entries(self, tools: Iterable[str]) -> tuple[str, ...]:
        """The entries of its lists that match no tool that there is."""
        every = tuple(tools)
        entries = (*(self.includedTools or ()), *self.excludedTools)
        return tuple(entry for entry in entries if not any(is_match(entry, tool) for tool in every))


@lru_cache(maxsize=1)
def shipped_roles() -> Mapping[str, Mapping[str, Any]]:
    """The roles of the library, as role files write them."""
    folder = files("moothall.agents").joinpath("library")
    plain: dict[str, dict[str, Any]] = json.loads(folder.joinpath("roles.json").read_text(encoding="utf-8"))
    prompts = {name: folder.joinpath(f"{name}.md").read_text(encoding="utf-8").strip() for name in plain}
    return {name: {"systemMessage": prompts[name], **fields} for name, fields in plain.items()}


def roles(given: Mapping[str, Any], where: str = "the roles", used: Iterable[str] | None = None) -> Mapping[str, Role]:
    """The shipped roles with a user's laid over them; a mistake names the role and the field.

    Where it is said which roles are used, a mistake in another is none.
    """
    if not isinstance(given, Mapping):
        raise DefinitionError(f"{where}: expected an object of roles by name, got {type(given).__name__}")
    given = {name: role for name, role in given.items() if name != COMMENT}
    needed, found = None if used is None else frozenset(used), dict[str, Role]()
    plain = over_shipped({name: role for name, role in given.items() if isinstance(role, Mapping)})
    for name, role in {**given, **plain}.items():
        try:
            found[name] = decode(Role, tidy_role(name, role)[0], name)
        except (Refused, ValueError) as error:
            if needed is None or name in needed:
                raise DefinitionError(f"{where}: {error}") from error
    return found


def role_notes(given: Mapping[str, Any], used: Iterable[str] | None = None) -> list[str]:
    """What is passed over in a file of roles, and the roles in it that cannot be read and are not used."""
    needed = None if used is None else frozenset(used)
    notes = []
    for name, role in given.items():
        if name == COMMENT:
            continue
        try:
            plain, passed_over = tidy_role(name, role)
            decode(Role, plain, name)
            notes += passed_over
        except (Refused, ValueError) as error:
            if needed is not None and name not in needed:
                notes.append(f"{error}; the role is not used here")
    return notes


def tidy_role(name: str, plain: Any) -> tuple[Any, list[str]]:
    """A role without what other programs write into such files, and what that was."""
    if not isinstance(plain, Mapping):
        raise ValueError(f"{name}: expected an object, got {type(plain).__name__}")
    notes: list[str] = []
    found = _known_fields(plain, Role, name, notes)
    for key, tidy in (("parsingTools", _tidy_tool), ("examples", _tidy_example)):
        if isinstance(found.get(key), list | tuple):
            found[key] = [tidy(item, f"{name}.{key}[{at}]", notes) for at, item in enumerate(found[key])]
    return {key: value for key, value in found.items() if value is not None or key == "includedTools"}, notes


def _known_fields(plain: Mapping[str, Any], kind: type[Any], where: str, notes: list[str]) -> dict[str, Any]:
    """The fields that are known; of the others it is said what they may have meant."""
    known = {field.name: field.name.lower() for field in fields(kind)}
    for key in [str(key) for key in plain if key not in known and key != COMMENT]:
        close = get_close_matches(key[:64].lower(), known.values(), 1, 0.75)
        meant = next((name for name, low in known.items() if close and low == close[0]), "")
        notes.append(f"{where}: {key!r} is not known and passed over" + (f"; did you mean {meant!r}?" if meant else ""))
    return {key: value for key, value in plain.items() if key in known}


def _tidy_tool(tool: Any, where: str, notes: list[str]) -> Any:
    if not isinstance(tool, Mapping):
        return tool
    if "function" not in tool and "name" in tool:  # some write the function itself
        tool = {"function": tool}
    found = _known_fields(tool, ParsingTool, where, notes)
    if isinstance(found.get("function"), Mapping):
        shape = _known_fields(found["function"], Shape, f"{where}.function", notes)
        found["function"] = {key: value for key, value in shape.items() if value is not None}
    return found


def _tidy_example(example: Any, where: str, notes: list[str]) -> Any:
    """An example in words: what a model called and what came back is told as others are told of it."""
    if not isinstance(example, Mapping):
        return example
    role, text = example.get("role"), _words(example.get("content"))
    calls = [*(example.get("tool_calls") or ()), {"function": example.get("function_call")}]
    shapes = [
        call["function"] for call in calls if isinstance(call, Mapping) and isinstance(call.get("function"), Mapping)
    ]
    called = [f"[called {shape.get('name', 'a tool')}({_words(shape.get('arguments'))})]" for shape in shapes]
    if role in ("function", "tool"):
        notes.append(f"{where}: an example of role {role!r} is shown as what somebody says")
        role, text = "user", f"[{example.get('name') or 'the tool'} returned: {text}]"
    elif role == "developer":
        role = "system"
    others = [
        key for key in example if key not in ("role", "content", "name", "tool_calls", "function_call", "tool_call_id")
    ]
    notes += [f"{where}: {key!r} is not known and passed over" for key in others]
    return {"role": role, "content": "\n".join(filter(None, (text, *called)))}


def _words(content: Any) -> Any:
    """The text of a content, which some write in parts."""
    if isinstance(content, list | tuple):
        return "\n".join(str(part.get("text", "")) if isinstance(part, Mapping) else str(part) for part in content)
    if content is None or isinstance(content, str):
        return content or ""
    return json.dumps(content, ensure_ascii=False)


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
    return {**shipped_roles(), **{name: _over(shipped_roles().get(name, {}), fields) for name, fields in given.items()}}


def _over(below: Mapping[str, Any], fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """One role laid over another; who names the tools that it has no longer lacks what the other lacked."""
    kept = dict(below)
    if "includedTools" in fields:
        kept.pop("excludedTools", None)
    if "excludedTools" in fields:
        kept.pop("includedTools", None)
    return {**kept, **fields}
