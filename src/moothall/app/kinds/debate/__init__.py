"""Debates: agents that clarify, propose, critique, refine and agree."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from os.path import exists, realpath
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from moothall.agents.ask import ASKS, Tool
from moothall.agents.roles import library_role
from moothall.agents.workspace import BUILT_IN, READS
from moothall.app.kinds.bindings import Provided, bind_functions
from moothall.app.kinds.check import Check, Examined
from moothall.app.kinds.debate.compare import bought_vote
from moothall.app.kinds.debate.examine import examine_file
from moothall.app.kinds.debate.files import choice_of, is_configuration, panel_of, template
from moothall.app.kinds.debate.present import explain, result_of
from moothall.app.kinds.debate.progress import lines_of, standing_of
from moothall.app.kinds.debate.report import Told, sections_of
from moothall.app.kinds.debate.scores import present_scores
from moothall.app.kinds.debate.tools import tool_uses
from moothall.app.kinds.document import YAML, is_definition, read_document
from moothall.app.kinds.functions import functions_in, tools_in
from moothall.app.kinds.kind import Kind, Line, Presented, size_in
from moothall.app.kinds.python import PythonKind
from moothall.app.kinds.source import remember, source_of
from moothall.app.report.projections.costs import Costs
from moothall.app.report.section import Section
from moothall.app.runs.news import Committed
from moothall.app.runs.outcome import Outcome
from moothall.errors import DefinitionError, Refused
from moothall.kernel.codec import decode, encode
from moothall.kernel.machine import Machine
from moothall.machines.debate import NAME, Size, debate, debate_with, size_of
from moothall.machines.debate.definition import SHAPE, read_configuration
from moothall.machines.debate.score import FAMILY as SCORES
from moothall.machines.debate.score import MOST as MOST_ASKS
from moothall.machines.debate.score import Scoring, scoring
from moothall.machines.debate.state import Debate
from moothall.runtime.hall import Bindings
from moothall.runtime.journal import RunId
from moothall.runtime.ports import Store

FUNCTIONS = "?functions="
"""What stands in a source before the functions that a debate was started with."""
LIVE = ("running", "waiting", "stuck")
FORM: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "problem": {"type": "string", "title": "Problem", "format": "text", "description": "what is to be debated"},
        "context": {"type": "string", "title": "Context", "format": "text", "description": "what they should know"},
        "panel": {"type": "string", "title": "Panel", "description": "roles, such as architect, security, kiss"},
        "rounds": {"type": "integer", "title": "Rounds", "minimum": 1, "maximum": 20, "description": "at most"},
        "options": {"type": "string", "title": "Options", "description": "such as yes, no; else the answer is open"},
    },
    "required": ["problem"],
}
"""What a person fills in who starts a debate."""
_SIZE = re.compile(rf"{NAME}-(\d{{1,4}})x(\d{{1,4}})x(\d{{1,4}})x(\d{{1,4}})(?:x(\d{{1,4}})({ASKS})?)?")


class DebateKind(PythonKind):
    """The debate, in as many rounds and with as many agents as its name says."""

    name = NAME

    def find(self, source: str) -> Machine | None:
        """The machine that is called so, with the functions that it was started with."""
        name, _, functions = source.partition(FUNCTIONS)
        machine = self.named(name)
        return with_functions(machine, unquote(functions)) if machine is not None and functions else machine

    def named(self, name: str) -> Machine | None:
        """The machine of the size that its name says."""
        if name == NAME:
            return debate()
        if (asks := size_in(name, SCORES)) is not None:
            return scoring(asks) if 1 <= asks <= MOST_ASKS else None
        return debate(_size_of(name)) if _SIZE.fullmatch(name) else None

    def beside(self, machine: Machine, name: str, kept: Any = None) -> Machine | None:
        """It starts no others."""
        return None

    def data(self, machine: Machine, given: Any) -> Any:
        """A debate about a problem, which is a text or a field of an object; it has to fit the machine's size."""
        if machine.data is Scoring:
            return given if isinstance(given, Scoring) else decode(Scoring, given, "input")
        if isinstance(given, Debate):
            return given
        begun = read_debate({"problem": given} if isinstance(given, str) else given or {})
        if machine.name.startswith(NAME) and not _fits(size_of(begun), machine.name):
            raise Refused(f"{machine.name} is too small for this configuration; start {size_of(begun).name}")
        return begun

    def form(self, machine: Machine) -> Mapping[str, Any]:
        """The problem, and how long and by whom it is debated."""
        return FORM if machine.data is Debate else super().form(machine)

    def filled_in(self, machine: Machine, given: Any) -> tuple[Machine, Any]:
        """The debate of a form, in the size that it needs."""
        if machine.data is not Debate or not isinstance(given, Mapping):
            return machine, given
        if given.keys() - FORM["properties"].keys():
            begun = read_debate(given)
            return debate(size_of(begun)), begun
        panel, options = str(given.get("panel") or ""), str(given.get("options") or "")
        plain = {"debate": {"rounds": given["rounds"]}} if given.get("rounds") is not None else {}
        configuration = read_configuration(plain)
        if panel.strip():
            configuration = replace(configuration, agents=panel_of(panel))
        if options.strip():
            configuration = replace(configuration, debate=replace(configuration.debate, answer=choice_of(options)))
        try:
            begun = Debate(
                str(given.get("problem") or ""), context=str(given.get("context") or ""), configuration=configuration
            )
        except ValueError as error:
            raise Refused(str(error)) from error
        return debate(size_of(begun)), begin(begun)

    def bind(self, machine: Machine, provided: Provided) -> Bindings:
        """Its panel and its judge; a check and nodes are functions that the caller registers."""
        return bind_functions(machine, replace(provided, functions={**debate_functions(machine), **provided.functions}))

    def own_tools(self, machine: Machine) -> Sequence[Tool]:
        """The tools among the functions that it was started with."""
        return tools_in(functions_of(machine))

    def lacking(self, machine: Machine, data: Any, given: Mapping[str, Any]) -> str:
        """Why a debate cannot go on: a function is not here that is to check answers, or a tool of an agent."""
        if not isinstance(data, Debate):
            return ""
        name = data.configuration.debate.check
        if name and name not in given and name not in debate_functions(machine):
            why = f"debate.check names {name!r}, and no function of that name is registered"
            return f"{why}; give it with --functions MODULE"
        here = {*given, *(tool.name for tool in self.own_tools(machine))}
        wanted = ((seat.id, tool) for seat in data.configuration.tool_seats for tool in seat.tools)
        return next((_missing(seat, tool) for seat, tool in wanted if tool not in here), "")

    def refusal(self, machine: Machine, data: Any, given: Mapping[str, Any]) -> str:
        """Why a debate cannot begin: also, an agent that is not a function has a role that nobody knows."""
        seats = (data.configuration.judge, *data.configuration.panel) if isinstance(data, Debate) else ()
        try:
            for seat in seats:
                if seat.id not in given and not seat.person:
                    library_role(seat.role)
        except DefinitionError as error:
            return str(error)
        return self.lacking(machine, data, given)

    def models(self, machine: Machine, data: Any, named: str, given: Mapping[str, Any]) -> Iterator[str]:
        """Those of the seats and of the judge."""
        if isinstance(data, Debate):
            seats = (data.configuration.judge, *data.configuration.panel)
            yield from (seat.played_by for seat in seats if seat.played_by and not seat.person and seat.id not in given)

    def schema(self) -> Mapping[str, Any] | None:
        """The shape of a configuration."""
        return SHAPE.plain

    def examine(self, source: str, check: Check) -> Iterator[Examined] | None:
        """What is wrong with a configuration, and what a debate of its size can cost; None where a file is none."""
        if source.endswith(YAML) and not exists(source):
            raise DefinitionError(f"there is no file {source}")
        if not is_definition(source):
            return None
        document = read_document(Path(source))
        is_broken = source.endswith(YAML) and bool(document.problems)
        return iter((examine_file(Path(source), check),)) if is_broken or is_configuration(document.value) else None

    def resembles(self, content: Any) -> str:
        """The configuration of a debate."""
        return f"the configuration of a debate, for `moot {NAME} -c FILE`" if is_configuration(content) else ""

    def template(self, name: str) -> str | None:
        """A configuration to begin with."""
        return template(name)

    def way_to_run(self, file: str) -> str:
        """The command that debates with a configuration."""
        return f"moot {NAME} -c {file} 'a problem'"

    def notes(self, machine: Machine, outcome: Outcome) -> Iterator[str]:
        """A panel that is one model, or one agent alone."""
        data = outcome.data
        if not isinstance(data, Debate) or outcome.status in LIVE:
            return
        panel = data.configuration.panel
        if len(panel) == 1:
            yield "one agent debated alone: there were no critiques"
        elif len({agent.played_by for agent in panel}) == 1:
            yield "all agents share one model: they are less independent than they look"

    def told(self, news: Committed, *, whole: bool = False) -> tuple[Line, ...] | None:
        """Who said what, and where the debate went."""
        return lines_of(news, whole=whole) if isinstance(news.head.snapshot.data, Debate) else None

    def standing(self, news: Committed) -> str:
        """The round, the node, and how far all agree."""
        return standing_of(news) if isinstance(news.head.snapshot.data, Debate) else ""

    async def sections(self, store: Store, run: RunId, data: Any, costs: Costs) -> tuple[Section, ...]:
        """Why the answer is what it is."""
        if not isinstance(data, Debate):
            return ()
        entries = await store.entries(run)
        uses = await tool_uses(store, run, entries)
        return sections_of(Told(data, entries, costs, await bought_vote(store, run), uses))

    async def present(self, store: Store, machine: Machine, outcome: Outcome) -> Presented:
        """The solution for people, and for programs with all that defends it."""
        if isinstance(outcome.data, Scoring):
            return present_scores(outcome)
        result = await result_of(store, machine, outcome)
        if outcome.status in LIVE:
            return Presented(result, "", outcome.status)
        return Presented(result, explain(result), outcome.status, None if outcome.data.is_answered else "")


KIND: Kind = DebateKind()


def read_debate(given: Mapping[str, Any]) -> Debate:
    """A debate as it begins, from JSON: the fields of its data, with a configuration as files have it."""
    plain = dict(given)
    configuration = plain.pop("configuration", None)
    begun = decode(Debate, plain, "input")
    return begin(begun if configuration is None else replace(begun, configuration=read_configuration(configuration)))


def with_functions(machine: Machine, functions: str) -> Machine:
    """A machine of its own that is found again with the functions of this module or file."""
    place = realpath(functions) if functions.endswith(".py") else functions
    functions_in(place)
    own = debate_with(_size_of(machine.name))
    remember(own, f"{machine.name}{FUNCTIONS}{quote(place)}")
    return own


def functions_of(machine: Machine) -> str:
    """The module or file with the functions that a debate was started with; "" where there is none."""
    return unquote(source_of(machine).partition(FUNCTIONS)[2])


def debate_functions(machine: Machine) -> Mapping[str, Any]:
    """The functions that a debate was started with, by name."""
    return functions_in(functions_of(machine))


def _missing(seat: str, tool: str) -> str:
    """Why an agent does not have a tool here, and where it would come from."""
    if tool in READS:
        return f"{seat} has the tool {tool}, and there is no folder to look into; name one with --files DIR"
    if tool in BUILT_IN:
        return f"{seat} has the tool {tool}, and there is no folder to work in; name one with --workspace DIR"
    return f"{seat} has the tool {tool!r}, and nothing here is called so; give it with --functions MODULE"


def begin(begun: Debate) -> Debate:
    """A debate as it begins: the hash of what it is about decides every order that is left to chance."""
    text = json.dumps(encode((begun.problem, begun.context, begun.configuration, begun.files)), sort_keys=True)
    return replace(begun, digest=sha256(text.encode()).hexdigest())


def _fits(wanted: Size, name: str) -> bool:
    pairs = zip(encode(wanted).values(), encode(_size_of(name)).values(), strict=True)
    return all(needed <= size for needed, size in pairs)


def _size_of(name: str) -> Size:
    if (sizes := _SIZE.fullmatch(name)) is None:
        return Size()
    rounds, agents, iterations, retries, calls = (int(number or 0) for number in sizes.groups()[:5])
    return Size(rounds, agents, iterations, retries, calls, bool(sizes[6]))
