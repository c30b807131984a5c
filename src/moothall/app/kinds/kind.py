"""What a kind of machine is: how machines of one sort are found, given data, bound, started by others, and shown.

`Kind` is what a plain machine in Python needs; other kinds differ in some of it. `KINDS` is the only list of them.
A kind's module is imported when one of its machines is used, and has its kind as `KIND`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache
from importlib import import_module
from typing import Any

from moothall.agents.ask import AskAgent, CallTool, Tool
from moothall.agents.workspace import Policy
from moothall.app.report.projections.costs import Costs
from moothall.app.report.section import Section
from moothall.app.runs.news import Committed
from moothall.app.runs.outcome import Outcome
from moothall.errors import DefinitionError, Refused
from moothall.kernel.codec import decode, encode, schema
from moothall.kernel.effects import Effect, StartChild
from moothall.kernel.events import Event
from moothall.kernel.foreign import field_names
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Machine
from moothall.runtime.hall import Bindings
from moothall.runtime.journal import RunId
from moothall.runtime.ports import Store


class Listing(Frozen):
    """Where a kind is found, and whether its machines are found by other names than its own."""

    module: str
    looks: bool = False
    files: bool = False
    """Whether its machines are defined or configured in files."""
    help: str = ""
    """What its machine of the same name does, where people start that; "" where only others do."""
    late: bool = False
    """Whether a plain name is offered to others that look first: few names are its own, and it takes long to load."""
    told: bool = False
    """Whether its machines are told events from outside, and wait for them."""
    bad_outcomes: tuple[str, ...] = ()
    """Where one end is for all: the outcomes in a run's data, beside reason and rollback, that are bad ones."""
    approvals: Mapping[str, str] = field(default_factory=dict)
    """The states in which a person approves something or sends it back, and what the answer begins with that does."""
    tells_reason: bool = False
    """Whether a run's data say in `reason` why it came to a bad end."""
    rules: Mapping[str, str] = field(default_factory=dict)
    """The collections of records by which a whole store is ruled, and the command that writes each anew."""


PLAIN = "python"
"""The kind of machines that authors write in Python."""
KINDS = {
    "pipeline": Listing(
        "moothall.app.kinds.pipeline", help="plan, validate, implement and judge until it is good", tells_reason=True
    ),
    "turn": Listing("moothall.app.kinds.turn"),
    "assent": Listing("moothall.app.kinds.assent"),
    "debate": Listing(
        "moothall.app.kinds.debate",
        files=True,
        help="agents propose, critique and refine until they agree",
        tells_reason=True,
    ),
    "arena": Listing(
        "moothall.app.kinds.arena",
        files=True,
        help="a request is debated, voted on, carried out in a sandbox, audited",
        bad_outcomes=("blocked", "rolled_back", "aborted"),
        rules={"identity": "moot identity init --force"},
    ),
    "team": Listing(
        "moothall.app.kinds.team",
        looks=True,
        files=True,
        late=True,
        help="talk with personas who hand off and approve",
        approvals={"AwaitApproval": "!rework"},
    ),
    "workflow": Listing("moothall.app.kinds.workflow.kind", looks=True, files=True),
    "statechart": Listing("moothall.app.kinds.statechart", looks=True, late=True, told=True),
    PLAIN: Listing("moothall.app.kinds.python", looks=True),
}
"""Every kind of machine, by name. A machine that comes with the package is called as its kind, perhaps with a size
behind it; every other source is offered in this order to the kinds that look."""
DEFINED_IN_FILES = tuple(name for name, listing in KINDS.items() if listing.files)
DIGITS = 9
"""The most digits of the size of a built-in machine, as in `NAME-SIZE`."""


class Presented(Frozen):
    """The result of a run as a door shows it: for programs, for people, and whether the run came to a good end."""

    plain: Any
    text: str
    status: str
    fault: str | None = None
    """Whose fault a bad end is, where that is not for the last event to say."""


class Offer(Frozen):
    """A machine that a person can start by a name: its source, and what it does."""

    source: str
    help: str


class Line(Frozen):
    """A line that tells of a run while it goes on: what stands out, and the rest."""

    head: str
    text: str = ""


class Kind:
    """A kind of machine. What it does not say itself is as for a plain machine in Python."""

    name = PLAIN
    effects: Mapping[str, type[Effect]] = {AskAgent.kind: AskAgent, CallTool.kind: CallTool}
    """The effects of its machines that performers perform, by kind."""
    is_closed = False
    """Whether all agents that its machines ever ask are known beforehand."""
    takes_text = False
    """Whether a text that is given as input stays a text, also where it looks like JSON."""

    def find(self, source: str) -> Machine | None:
        """The machine at a source; None where the source is none of this kind."""
        return self.named(source)

    def named(self, name: str) -> Machine | None:
        """The machine that is known by this name alone, wherever one is; None where there is none."""
        return None

    def beside(self, machine: Machine, name: str, kept: Any = None) -> Machine | None:
        """The machine of this name that stands beside another; None where there is none.

        `kept` is what a check remembers for this kind.
        """
        return None

    def definition(self, machine: Machine) -> Mapping[str, Any]:
        """The definition of a machine as JSON, with those that it starts; empty where it is code."""
        return {}

    def restored(self, source: str, definition: Mapping[str, Any]) -> Machine:
        """The machine of a definition that was stored with a run, which began with it at this source."""
        raise NotImplementedError

    def examine(self, source: str, check: Any) -> Iterator[Any] | None:
        """What a check finds out about the files at a source; None where the source is not a file of this kind."""
        return None

    def like(self, source: str, other: str) -> str:
        """A source with what another of this kind was started with, where it names nothing itself."""
        return source

    def source_with(self, source: str, roles: str, functions: str) -> str | None:
        """A source with a file of roles and with functions; None where it is none of this kind, or takes none."""
        return None

    def data(self, machine: Machine, given: Any) -> Any:
        """A run's first data: the machine's own type, from a value, from JSON, or from a text for its first field."""
        kind = machine.data
        if kind is None:
            return encode(given)
        if isinstance(given, kind):
            return given
        if isinstance(given, str) and kind is not str:
            fields = field_names(kind)
            if not fields:
                raise Refused(f"{machine.name} takes a {kind.__name__}, not a text")
            given = {fields[0]: given}
        return decode(kind, {} if given is None else given, "input")

    def ended(self, effect: StartChild, output: Any) -> Event:
        """What a run hears that started another of this kind, when that has come to its end."""
        return effect.settled(output)

    def settled(self, effect: StartChild, value: Any) -> Event:
        """What that run hears where a person says what the other gave."""
        return effect.settled(value)

    def child_data(self, machine: Machine, given: Any) -> Any:
        """The first data of a run that another run starts, which gives fields by name."""
        return self.data(machine, given)

    def equipped(self, machine: Machine, tools: Sequence[Tool], policies: Mapping[str, Policy]) -> Machine:
        """The machine for a run whose agents have these tools, where that is another one."""
        return machine

    def with_tools(self, machine: Machine, data: Any, tools: Sequence[Tool], policies: Mapping[str, Policy]) -> Any:
        """What a run begins with whose agents have these tools, where its data know them."""
        return data

    def own_tools(self, machine: Machine) -> Sequence[Tool]:
        """The tools that come with a machine beside its table."""
        return ()

    def variant(self, machine: Machine, policies: Mapping[str, Policy]) -> Machine:
        """The machine that is started where these policies count."""
        return machine

    def under(self, given: Any, policies: Mapping[str, Policy], tools: Mapping[str, Tool]) -> Any:
        """What a run is given that another starts, where these policies count and these tools are there."""
        return given

    def save_name(self, machine: Machine) -> str:
        """How the save is called that is taken before a run."""
        return f"Run: {machine.name}"

    def own_saves(self, data: Any) -> Any:
        """The saves of the folder that a run with these plain data works in by itself; None where it has none."""
        return None

    def bind(self, machine: Machine, provided: Any) -> Bindings:
        """Who performs the effects of a run of this machine."""
        raise NotImplementedError

    def asked(self, machine: Machine) -> frozenset[str]:
        """The agents that have to be played: its table asks them by name."""
        raise NotImplementedError

    def lacking(self, machine: Machine, data: Any, given: Mapping[str, Any]) -> str:
        """Why a run cannot go on with what is here; "" where it can."""
        return ""

    def refusal(self, machine: Machine, data: Any, given: Mapping[str, Any]) -> str:
        """Why a run cannot begin with these data and functions, at whatever door; "" where it can."""
        return self.lacking(machine, data, given)

    def models(self, machine: Machine, data: Any, named: str, given: Mapping[str, Any]) -> Iterator[str]:
        """The models that its agents have besides the run's, of those for whom no function is given."""
        yield from ()

    def schema(self) -> Mapping[str, Any] | None:
        """The shape of the files that define or configure machines of this kind, as JSON Schema; None without any."""
        return None

    def resembles(self, content: Any) -> str:
        """What a file with this content is, where it looks like one of this kind, and how that is used; else ""."""
        return ""

    def template(self, name: str) -> str | None:
        """A file of this kind to begin with; None where there are no such files."""
        return None

    def way_to_run(self, file: str) -> str:
        """The command that runs what a file of this kind defines."""
        return f"moot run {file} 'some text'"

    def offers(self) -> Iterator[Offer]:
        """The machines of this kind that can be started by name from here."""
        if KINDS[self.name].help:
            yield Offer(self.name, KINDS[self.name].help)

    def form(self, machine: Machine) -> Mapping[str, Any]:
        """The shape of what a run of this machine is given, as JSON Schema; {} where anything will do."""
        return {} if machine.data is None else schema(machine.data)

    def filled_in(self, machine: Machine, given: Any) -> tuple[Machine, Any]:
        """The machine to start and its data, where a person has filled in its form."""
        return machine, given

    def folder(self, given: Any) -> str:
        """The folder that a run changes by itself whose form is filled in like this; "" where none is named."""
        return ""

    def hears(self, machine: Machine) -> bool:
        """Whether a person may type to a run of this machine."""
        return False

    async def hear(self, hall: Any, machine: Machine, run: RunId, line: str, by: str) -> str:
        """Do what a person with this name typed; what there is to say at once."""
        raise Refused(f"run {run} takes no typed text: {machine.name} takes answers and events")

    def notes(self, machine: Machine, outcome: Outcome) -> Iterator[str]:
        """What a person should know of how a run stands."""
        yield from ()

    async def figures(self, store: Store, run: str, machine: Machine) -> Mapping[str, Any]:
        """What is counted in runs of this kind and in no others, for their metrics."""
        return {}

    def figures_together(self, before: Mapping[str, Any], figures: Mapping[str, Any]) -> Mapping[str, Any]:
        """What is counted in several runs of this kind, with one more."""
        return {}

    def told(self, news: Committed, *, whole: bool = False) -> tuple[Line, ...] | None:
        """A step in the words of this kind, with whole texts or their beginnings; None: as the journal has it."""
        return None

    def standing(self, news: Committed) -> str:
        """How far a run has come, for a line that changes while it goes on; "" where nothing is to be said."""
        return ""

    async def sections(self, store: Store, run: RunId, data: Any, costs: Costs) -> tuple[Section, ...]:
        """What the report of a run has beside what every report has."""
        return ()

    async def overview(self, store: Store) -> tuple[Section, ...]:
        """What the figures of all runs have beside what they have of every machine."""
        return ()

    async def present(self, store: Store, machine: Machine, outcome: Outcome) -> Presented:
        """The result of a run for programs and for people."""
        result = outcome.result
        if result is None or outcome.status not in ("done", "limited"):
            return Presented(outcome, "", outcome.status)
        text = result if isinstance(result, str) else json.dumps(encode(result), ensure_ascii=False)
        return Presented(outcome, text, outcome.status)


def kinds_for(source: str) -> Iterator[Kind]:
    """The kinds that a source may be of: the one that it is called after, then those that look, in their order."""
    family = source.partition("?")[0].partition("-")[0]
    asked = [name for name in KINDS if KINDS[name].looks or name == family]
    is_name = "." not in source.partition("?")[0]

    def place(name: str) -> tuple[bool, bool, bool]:
        listing = KINDS[name]
        return name != family and listing.looks, name == PLAIN, is_name and listing.late

    return map(kind_named, sorted(asked, key=place))


def built_in(name: str) -> Machine | None:
    """The machine of this name that comes with the package; None where there is none."""
    family = name.partition("-")[0]
    listing = KINDS.get(family)
    return kind_named(family).named(name) if listing is not None and not listing.looks else None


@cache
def kind_named(name: str) -> Kind:
    """The kind of this name."""
    kind: Kind = import_module(KINDS[name].module).KIND
    return kind


def kind_of(machine: Machine) -> Kind:
    """The kind of a machine."""
    if machine.kind not in KINDS:
        raise DefinitionError(f"machine {machine.name} is of the kind {machine.kind!r}; there are {', '.join(KINDS)}")
    return kind_named(machine.kind)


def size_in(name: str, family: str) -> int | None:
    """The size of a built-in machine that is written `FAMILY` (0) or `FAMILY-SIZE`; None where it is another name."""
    if name == family:
        return 0
    size = name.removeprefix(f"{family}-")
    is_size = size != name and size.isascii() and size.isdigit() and len(size) <= DIGITS
    return int(size) if is_size else None
