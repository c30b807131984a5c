"""Debates: agents that clarify, propose, critique, refine and agree."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from os.path import exists, realpath
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from moothall.app.kinds.bindings import Provided, bind_functions
from moothall.app.kinds.check import Check, Examined
from moothall.app.kinds.debate.compare import bought_vote
from moothall.app.kinds.debate.examine import examine_file
from moothall.app.kinds.debate.files import is_configuration, template
from moothall.app.kinds.debate.present import explain, result_of
from moothall.app.kinds.debate.progress import lines_of, standing_of
from moothall.app.kinds.debate.report import Told, sections_of
from moothall.app.kinds.debate.scores import present_scores
from moothall.app.kinds.document import YAML, is_definition, read_document
from moothall.app.kinds.functions import functions_in
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
from moothall.runtime.hall import Cast
from moothall.runtime.journal import RunId
from moothall.runtime.ports import Store

FUNCTIONS = "?functions="
"""What stands in a source before the functions that a debate was started with."""
LIVE = ("running", "waiting", "stuck")
_SIZE = re.compile(rf"{NAME}-(\d{{1,4}})x(\d{{1,4}})x(\d{{1,4}})x(\d{{1,4}})")


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
        sizes = _SIZE.fullmatch(name)
        return debate(Size(*map(int, sizes.groups()))) if sizes else None

    def beside(self, machine: Machine, name: str, kept: Any = None) -> Machine | None:
        """It starts no others."""
        return None

    def data(self, machine: Machine, given: Any) -> Any:
        """A debate about a problem, which is a text or a field of an object; it has to fit the machine's size."""
        if machine.data is Scoring:
            return given if isinstance(given, Scoring) else decode(Scoring, given, "input")
        if isinstance(given, Debate):
            return given
        plain = {"problem": given} if isinstance(given, str) else dict(given or {})
        configuration = plain.pop("configuration", None)
        begun = decode(Debate, plain, "input") if configuration is None else None
        begun = begun or replace(decode(Debate, plain, "input"), configuration=read_configuration(configuration))
        begun = begin(begun)
        if machine.name.startswith(NAME) and not _fits(size_of(begun), machine.name):
            raise Refused(f"{machine.name} is too small for this configuration; start {size_of(begun).name}")
        return begun

    def bind(self, machine: Machine, provided: Provided) -> Cast:
        """Its panel and its judge; a check and nodes are functions that the caller registers."""
        return bind_functions(machine, replace(provided, functions={**registered(machine), **provided.functions}))

    def lacking(self, machine: Machine, data: Any, given: Mapping[str, Any]) -> str:
        """Why a debate cannot go on: the function is not here that is to check answers."""
        name = data.configuration.debate.check if isinstance(data, Debate) else ""
        if not name or name in given or name in registered(machine):
            return ""
        return (
            f"debate.check names {name!r}, and no function of that name is registered; give it with --functions MODULE"
        )

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
        return sections_of(Told(data, await store.entries(run), costs, await bought_vote(store, run)))

    async def present(self, store: Store, machine: Machine, outcome: Outcome) -> Presented:
        """The solution for people, and for programs with all that defends it."""
        if isinstance(outcome.data, Scoring):
            return present_scores(outcome)
        result = await result_of(store, machine, outcome)
        if outcome.status in LIVE:
            return Presented(result, "", outcome.status)
        status = "failed" if outcome.states == ("Failed",) else outcome.status
        return Presented(result, explain(result), status)


KIND: Kind = DebateKind()


def with_functions(machine: Machine, functions: str) -> Machine:
    """A machine of its own that is found again with the functions of this module or file."""
    place = realpath(functions) if functions.endswith(".py") else functions
    functions_in(place)
    own = debate_with(_size_of(machine.name))
    remember(own, f"{machine.name}{FUNCTIONS}{quote(place)}")
    return own


def registered(machine: Machine) -> Mapping[str, Any]:
    """The functions that a debate was started with, by name."""
    return functions_in(unquote(source_of(machine).partition(FUNCTIONS)[2]))


def begin(begun: Debate) -> Debate:
    """A debate as it begins: the hash of what it is about decides every order that is left to chance."""
    text = json.dumps(encode((begun.problem, begun.context, begun.configuration, begun.files)), sort_keys=True)
    return replace(begun, digest=sha256(text.encode()).hexdigest())


def _fits(wanted: Size, name: str) -> bool:
    pairs = zip(encode(wanted).values(), encode(_size_of(name)).values(), strict=True)
    return all(needed <= size for needed, size in pairs)


def _size_of(name: str) -> Size:
    sizes = _SIZE.fullmatch(name)
    return Size(*map(int, sizes.groups())) if sizes else Size()
