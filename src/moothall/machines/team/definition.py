"""What a team file says, as values; the names are those of the file.

A team is a tree of groups with personas in them. Whom a persona can reach is said by group and by capability, for the
whole team, for a group or for one persona, the closest counting; so a file of 500 personas is no longer than 500
entries. `Roster` looks the tree up: every lookup costs what it gives, and a persona that nobody asks for costs nothing.
`schema` describes the same as JSON Schema, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

from moothall.errors import BadValue
from moothall.kernel.codec import decode
from moothall.kernel.frozen import Frozen
from moothall.machines.team.directives import USER
from moothall.machines.team.schema import SHAPE
from moothall.machines.team.warmth import Tables
from moothall.machines.workflow.document import read

AWAIT_APPROVAL = "AwaitApproval"
SEND_BACK = "!rework"
"""What stands before the reason where a person sends back what waits for approval."""
USER_STATES = (USER, AWAIT_APPROVAL)
"""The states of a group that belongs to the user."""
SHIPPED = ("studio", "studio_small", "software")
EVERYBODY = "*"

Autonomy = Literal["manual", "review", "auto"]
Level = Literal["base", "smart", "fast"]


class Reach(Frozen):
    """Whom a persona may hand to: everybody in these groups, with one of these capabilities, or of these names."""

    groups: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    personas: tuple[str, ...] = ()


class Hooks(Frozen):
    """Names of functions that the user registered, called when a state is entered or left."""

    entry: str = ""
    exit: str = ""


class Approval(Frozen):
    """Who approves: the user each time (manual), the user where something is at stake (review), nobody (auto)."""

    transitions: Autonomy = "review"
    replies: Autonomy = "auto"


class Group(Frozen):
    """A state of the hierarchy: personas and groups inside, or the states in which the user has the word."""

    name: str
    description: str = ""
    personas: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()
    states: tuple[str, ...] = ()
    reach: Reach | None = None
    hooks: Hooks = Hooks()


class Persona(Frozen):
    """Somebody in the team: a prompt of its own, and where it is set a model, a level, tools and autonomy."""

    id: str
    name: str
    prompt: str
    capabilities: tuple[str, ...] = ()
    model: str = ""
    level: Level = "base"
    tools: tuple[str, ...] = ()
    reach: Reach | None = None
    accepts_user: bool = True
    hooks: Hooks = Hooks()
    autonomy: Approval | None = None


class FactTest(Frozen):
    """What a fact has to be for a rule to hold; several of these have to hold together."""

    fact: str
    is_: Any = None
    at_least: float | None = None
    at_most: float | None = None


class When(Frozen):
    """Conditions of a rule; all that are given have to hold. Of a list of words, one has to stand there."""

    context: tuple[str, ...] = ()
    action: tuple[str, ...] = ()
    speaker: tuple[str, ...] = ()
    facts: tuple[FactTest, ...] = ()


class Rule(Frozen):
    """Where the conditions hold, this persona is next; afterwards, if `back`, the one who was interrupted."""

    name: str
    when: When
    route: str
    back: bool = True
    description: str = ""


class Arbiter(Frozen):
    """How competing proposals are settled. `cooldown`: after how many turns a persona may be chosen again."""

    weights: Mapping[str, float] = field(default_factory=dict)
    blocking: bool = True
    cooldown: int = 0


class Warming(Frozen):
    """Tables by which the next persona is foreseen, by whom, and for how many turns a prepared one is kept."""

    dependencies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    keywords: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    keep_turns: int = 1
    predictor: Literal["seed", "learned"] = "seed"


class Source(Frozen):
    """A tool, where it is set one of an MCP server, that says what a fact is."""

    fact: str
    tool: str
    server: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)


class Remembering(Frozen):
    """How much the conversation keeps raw, in how many summaries, and how much of it a prompt shows."""

    compression_threshold: int = 5
    max_embeddings: int = 10
    prompt_characters: int = 2000


class Limits(Frozen):
    """What ends a conversation or asks the user, each with its own reason."""

    turns: int = 100
    visits: int = 30
    repeats: int = 3
    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None


class Team(Frozen):
    """A team as its file says."""

    team_name: str
    start: str
    groups: tuple[Group, ...]
    personas: tuple[Persona, ...]
    description: str = ""
    reach: Reach | None = None
    rules: tuple[Rule, ...] = ()
    arbitration: Arbiter = Arbiter()
    warming: Warming = Warming()
    sources: tuple[Source, ...] = ()
    memory: Remembering = Remembering()
    autonomy: Approval = Approval()
    limits: Limits = Limits()

    def tables(self) -> Tables:
        """What foreseeing the next persona needs."""
        ids = tuple(persona.id for persona in self.personas)
        return Tables(ids, self.warming.dependencies, self.warming.keywords)


class Roster:
    """A team looked up: who is where, and whom each persona can reach."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.personas = {persona.id: persona for persona in team.personas}
        self.order = {persona.id: place for place, persona in enumerate(team.personas)}
        self.paths = {
            member: path for path, group in _walk(team.groups, ()) for member in (*group.personas, *group.states)
        }
        self._groups = {group.name: group for _, group in _walk(team.groups, ())}
        self._capable: dict[str, list[str]] = {}
        for persona in team.personas:
            for capability in persona.capabilities:
                self._capable.setdefault(capability, []).append(persona.id)
        self._targets: dict[str, tuple[str, ...]] = {}

    def reach(self, persona: str) -> Reach:
        """What is said of whom this one can reach, by itself, its closest group, or the team; else everybody."""
        own = self.personas[persona].reach
        groups = (self._groups[name].reach for name in reversed(self.paths.get(persona, ())))
        return next((reach for reach in (own, *groups, self.team.reach) if reach is not None), Reach((EVERYBODY,)))

    def targets(self, persona: str) -> tuple[str, ...]:
        """Whom this one can hand to, in the order of the file."""
        if persona not in self._targets:
            reach = self.reach(persona)
            names = dict.fromkeys((*self._members(reach), *reach.personas))
            known = (name for name in names if name != persona and name in self.personas)
            self._targets[persona] = tuple(sorted(known, key=self.order.__getitem__))
        return self._targets[persona]

    def _members(self, reach: Reach) -> Iterator[str]:
        for name in reach.groups:
            if name == EVERYBODY:
                yield from self.personas
            elif name in self._groups:
                yield from (member for _, group in _walk((self._groups[name],), ()) for member in group.personas)
        for capability in reach.capabilities:
            yield from self._capable.get(capability, ())

    def group_hooks(self, name: str) -> Hooks:
        """The hooks of a group; none where it has none, or is not a group."""
        group = self._groups.get(name)
        return group.hooks if group is not None else Hooks()

    def tree(self) -> dict[str, Any]:
        """The hierarchy, as nested names; a persona and a state of the user are leaves."""
        return {group.name: _branch(group) for group in self.team.groups}


def _branch(group: Group) -> dict[str, Any]:
    leaves = dict.fromkeys((*group.personas, *group.states))
    return {**leaves, **{inner.name: _branch(inner) for inner in group.groups}}


def _walk(groups: tuple[Group, ...], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Group]]:
    for group in groups:
        path = (*above, group.name)
        yield path, group
        yield from _walk(group.groups, path)


def team_of(plain: Any) -> Team:
    """The team of a file that has been checked."""
    return decode(Team, _rename_is(SHAPE.cleaned(plain)), "team")


def _rename_is(plain: Any) -> Any:
    """The same with the `is` of a fact under the name that a field can have in Python."""
    rules = plain.get("rules", ()) if isinstance(plain, dict) else ()
    for rule in rules:
        tests = rule.get("when", {}).get("facts", ())
        rule["when"]["facts"] = [{("is_" if key == "is" else key): test[key] for key in test} for test in tests]
    return plain


@lru_cache
def shipped_text(name: str) -> bytes:
    """The file of a team that ships."""
    if name not in SHIPPED:
        raise BadValue(f"{name!r} is not a team that ships; there are {', '.join(SHIPPED)}")
    return files(__package__).joinpath(f"shipped/{name}.json").read_bytes()


@lru_cache
def shipped_team(name: str) -> Team:
    """A team that ships: `studio`, `studio_small` or `software`."""
    return team_of(read(shipped_text(name)).value)
