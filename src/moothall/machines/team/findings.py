"""Everything that is wrong with a team file, found without running anything.

First its shape, then what the shape cannot say: names that nobody has, personas that are nowhere or in two places,
weights that would carry a score beyond 1, personas that cannot be reached. Each rule passes over what has the wrong
shape, which has been told already, so that one mistake does not hide another. Every finding has the place where it
stands, why it is one, what to do, and where a name is close to a known one, which.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from moothall.machines.schema import format_value
from moothall.machines.team.arbitration import DEFAULT_WEIGHTS
from moothall.machines.team.definition import EVERYBODY, Roster, team_of
from moothall.machines.team.schema import SHAPE
from moothall.machines.workflow.document import Document, Problem, escape_key

Plain = Mapping[str, Any]


def findings(document: Document, *, has_prompt: Callable[[str], bool] | None = None) -> tuple[Problem, ...]:
    """All findings about a team file, in the order of its lines. `has_prompt` knows which prompt files there are."""
    found = list(document.problems)
    if not any(problem.code in _UNREAD for problem in document.problems):
        found += (replace(problem, line=document.line(problem.pointer)) for problem in _of(document.value, has_prompt))
    return tuple(sorted(found, key=lambda problem: (problem.line, problem.pointer)))


_UNREAD = frozenset(("E_JSON", "E_YAML", "E_ENCODING", "E_LIMIT_SIZE", "E_LIMIT_DEPTH"))


def _of(team: Any, has_prompt: Callable[[str], bool] | None) -> Iterator[Problem]:
    if not isinstance(team, dict):
        yield _error("E_TYPE", "", "a team is an object", "write { … }")
        return
    shape = tuple(SHAPE.misfits(team))
    yield from shape
    view = _View(team)
    for rule in (_ids, _places, _starts, _reaches, _rules, _tables, _weights):
        yield from rule(view)
    for pointer, persona in view.personas:
        if has_prompt is not None and (name := _text(persona, "prompt")) and not has_prompt(name):
            yield _error(
                "E_PROMPT", f"{pointer}/prompt", f"there is no file {format_value(name)}", "write the prompt there"
            )
    if not any(problem.level == "error" for problem in (*shape, *view.told)):
        yield from _unreachable(view)


class _View:
    """The parts of a team with their pointers, as far as they have the right shape, and what has been told of them."""

    def __init__(self, team: Plain) -> None:
        self.team = team
        self.personas = list(_objects(team, "personas", ""))
        self.groups = list(self._all_groups(team, ""))
        self.ids = {name for _, persona in self.personas if (name := _text(persona, "id"))}
        self.group_names = {name for _, group in self.groups if (name := _text(group, "name"))}
        self.capabilities = {name for _, persona in self.personas for name in _texts(persona, "capabilities")}
        self.told: list[Problem] = []

    def _all_groups(self, around: Plain, pointer: str) -> Iterator[tuple[str, Plain]]:
        for place, group in _objects(around, "groups", pointer):
            yield place, group
            yield from self._all_groups(group, place)

    def error(self, code: str, pointer: str, why: str, remedy: str) -> Problem:
        """A finding that keeps the team from being built."""
        self.told.append(_error(code, pointer, why, remedy))
        return self.told[-1]

    def stranger(self, name: str, pointer: str, what: str, known: Collection[str]) -> Problem:
        """Nobody has this name."""
        close = get_close_matches(name[:64], list(known), 1)
        remedy = f"did you mean {close[0]!r}?" if close else f"write the name of a {what} of this file"
        return self.error(f"E_UNKNOWN_{what.upper()}", pointer, f"there is no {what} {format_value(name)}", remedy)


def _ids(view: _View) -> Iterator[Problem]:
    for parts, key, what in ((view.personas, "id", "persona"), (view.groups, "name", "group")):
        seen = set[str]()
        for pointer, part in parts:
            name = _text(part, key)
            if name and name in seen:
                why = f"two {what}s are called {format_value(name)}"
                yield view.error("E_DUP_NAME", f"{pointer}/{key}", why, "rename one of them")
            seen.add(name)


def _places(view: _View) -> Iterator[Problem]:
    """Every persona stands in exactly one group."""
    place: dict[str, str] = {}
    for pointer, group in view.groups:
        for index, name in enumerate(_texts(group, "personas")):
            here = f"{pointer}/personas/{index}"
            if name not in view.ids:
                yield view.stranger(name, here, "persona", view.ids)
            elif name in place:
                why = f"{name} is in this group and at {place[name]}"
                yield view.error("E_TWO_GROUPS", here, why, "keep one of them")
            place.setdefault(name, here)
    for pointer, persona in view.personas:
        name = _text(persona, "id")
        if name and name not in place:
            yield view.error("E_NO_GROUP", f"{pointer}/id", f"{name} is in no group", "add it to one")
    if view.groups and not any(_texts(group, "states") for _, group in view.groups):
        why = "no group has RespondToUser and AwaitApproval, so the user cannot have the word"
        yield view.error(
            "E_NO_USER", "/groups", why, 'add {"name": "USER_INTERACTION", "states": ["RespondToUser", …]}'
        )


def _starts(view: _View) -> Iterator[Problem]:
    start = _text(view.team, "start")
    if start and start not in view.ids:
        yield view.stranger(start, "/start", "persona", view.ids)


def _reaches(view: _View) -> Iterator[Problem]:
    for pointer, part in (("", view.team), *view.groups, *view.personas):
        reach = part.get("reach")
        if not isinstance(reach, dict):
            continue
        here = f"{pointer}/reach"
        for index, name in enumerate(_texts(reach, "groups")):
            if name not in view.group_names and name != EVERYBODY:
                yield view.stranger(name, f"{here}/groups/{index}", "group", view.group_names)
        for index, name in enumerate(_texts(reach, "personas")):
            if name not in view.ids:
                yield view.stranger(name, f"{here}/personas/{index}", "persona", view.ids)
        for index, name in enumerate(_texts(reach, "capabilities")):
            if name not in view.capabilities:
                close = get_close_matches(name[:64], list(view.capabilities), 1)
                remedy = f"did you mean {close[0]!r}?" if close else "give it to a persona, or remove it here"
                why = f"no persona has the capability {format_value(name)}"
                yield Problem("warning", "W_NOBODY_CAN", f"{here}/capabilities/{index}", why, remedy)


def _rules(view: _View) -> Iterator[Problem]:
    seen = set[str]()
    sources = {_text(source, "fact") for _, source in _objects(view.team, "sources", "")}
    for pointer, rule in _objects(view.team, "rules", ""):
        name, route, when = _text(rule, "name"), _text(rule, "route"), rule.get("when")
        if name and name in seen:
            yield view.error(
                "E_DUP_NAME", f"{pointer}/name", f"two rules are called {format_value(name)}", "rename one"
            )
        seen.add(name)
        if route and route not in view.ids:
            yield view.stranger(route, f"{pointer}/route", "persona", view.ids)
        if not isinstance(when, dict):
            continue
        if not any(key in when and when[key] for key in ("context", "action", "speaker", "facts")):
            yield view.error("E_ALWAYS", f"{pointer}/when", "it would hold always", "write a condition")
        for index, speaker in enumerate(_texts(when, "speaker")):
            if speaker not in view.ids:
                yield view.stranger(speaker, f"{pointer}/when/speaker/{index}", "persona", view.ids)
        for place, test in _objects(when, "facts", f"{pointer}/when"):
            yield from _fact_problems(view, place, test, sources)


def _fact_problems(view: _View, pointer: str, test: Plain, sources: Collection[str]) -> Iterator[Problem]:
    if "fact" in test and not {"is", "at_least", "at_most"} & test.keys():
        remedy = "write is, at_least or at_most"
        yield view.error("E_NO_TEST", pointer, "it does not say what the fact has to be", remedy)
    # A fact may also be set by the user or a tool, so that only a near name is suspicious.
    fact = _text(test, "fact")
    if fact not in sources and (close := get_close_matches(fact[:64], list(sources), 1)):
        why = f"no source gives {format_value(fact)}"
        yield Problem("warning", "W_NO_SOURCE", f"{pointer}/fact", why, f"did you mean {close[0]!r}?")


def _tables(view: _View) -> Iterator[Problem]:
    warming = view.team.get("warming")
    if not isinstance(warming, dict):
        return
    for key in ("dependencies", "keywords"):
        table = warming.get(key)
        for name, personas in table.items() if isinstance(table, dict) else ():
            here = f"/warming/{key}/{escape_key(name)}"
            if key == "dependencies" and name not in view.ids:
                yield view.stranger(name, here, "persona", view.ids)
            for index, persona in enumerate(personas if isinstance(personas, list) else ()):
                if isinstance(persona, str) and persona not in view.ids:
                    yield view.stranger(persona, f"{here}/{index}", "persona", view.ids)


def _weights(view: _View) -> Iterator[Problem]:
    arbitration = view.team.get("arbitration")
    weights = arbitration.get("weights") if isinstance(arbitration, dict) else None
    if not isinstance(weights, dict):
        return
    numbers = {**DEFAULT_WEIGHTS, **{key: value for key, value in weights.items() if key in DEFAULT_WEIGHTS}}
    if all(type(value) in (int, float) for value in numbers.values()) and sum(numbers.values()) > 1 + 1e-9:
        why = f"the weights add up to {sum(numbers.values()):.4g}; scores would leave 0 to 1"
        remedy = "lower them; a weight that is left out keeps its default (.3, .4, .3, 0, 0)"
        yield view.error("E_WEIGHTS", "/arbitration/weights", why, remedy)


def _unreachable(view: _View) -> Iterator[Problem]:
    """Personas to whom nobody can hand. Who is reached is collected group by group, not pair by pair."""
    team = team_of(view.team)
    roster = Roster(team)
    routes = {rule.route for rule in team.rules}
    reached, seen, open_ones = {team.start, *routes}, set[Any](), [team.start, *routes]
    while open_ones:
        persona = open_ones.pop()
        reach = roster.reach(persona)
        if reach in seen:
            continue
        seen.add(reach)
        # Two personas with the same reach differ only in themselves, and both are reached by now.
        fresh = [target for target in roster.targets(persona) if target not in reached]
        reached.update(fresh)
        open_ones += fresh
    for pointer, entry in view.personas:
        if entry["id"] not in reached:
            why = f"no persona that can speak hands over to {entry['id']}; only the user can call it"
            yield Problem("warning", "W_UNREACHABLE", f"{pointer}/id", why, "add it to a reach, or remove it")


def _objects(around: Plain, key: str, pointer: str) -> Iterator[tuple[str, Plain]]:
    items = around.get(key)
    for index, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, dict):
            yield f"{pointer}/{key}/{index}", item


def _text(around: Plain, key: str) -> str:
    value = around.get(key)
    return value if isinstance(value, str) else ""


def _texts(around: Plain, key: str) -> list[str]:
    values = around.get(key)
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []


def _error(code: str, pointer: str, why: str, remedy: str) -> Problem:
    return Problem("error", code, pointer, why, remedy)
