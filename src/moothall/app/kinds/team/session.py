"""A person's session with a team: what is typed becomes an event of the run, or an answer from what the run knows.

Only what the person types, or a script of theirs, comes here. Nothing that an agent, a tool or a file says does.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from moothall.agents.ask import Tool
from moothall.app.config.models import is_offline
from moothall.app.config.settings import model_setting
from moothall.app.kinds.kind import kind_of
from moothall.app.kinds.source import child_machine, source_of
from moothall.app.kinds.team.files import machine_of, roster_of, source_of_team, team_file
from moothall.app.kinds.team.plan import save_plan
from moothall.app.kinds.team.present import (
    WIDTH,
    figures,
    indented,
    messages_of,
    result_of,
    speaker_name,
    state_tree,
    status_line,
    transcript_of,
    waiting_lines,
)
from moothall.app.kinds.team.questions import YES_NO, Numbers, answer_in, open_questions
from moothall.app.kinds.team.tools import made_workspace, own_use
from moothall.app.kinds.workflow.files import list_workflows
from moothall.app.runs.moothall import Moothall
from moothall.app.runs.outcome import Outcome, Question, outcome_of
from moothall.app.toolbox import Given
from moothall.errors import DefinitionError, Refused
from moothall.kernel.events import Event
from moothall.kernel.frozen import Frozen
from moothall.kernel.interpreter import accepts
from moothall.kernel.machine import Budget, Machine
from moothall.kernel.step import Snapshot
from moothall.machines.team.conversation import NAME
from moothall.machines.team.definition import USER_STATES, Approval, Autonomy
from moothall.machines.team.patterns import PATTERNS, pattern_input
from moothall.machines.team.state import (
    THREAD,
    TRANSITIONS,
    Approve,
    CallAgent,
    Command,
    Continue,
    Conversation,
    Handoff,
    Leave,
    Rework,
    StartLine,
    StartWorkflow,
    SwitchMode,
    SwitchTo,
    UserSaid,
    WantPlan,
)
from moothall.runtime.journal import Reader


class Verb(Frozen):
    """A command: what it takes, what it does, and the event that it makes, where it makes one."""

    usage: str
    help: str
    event: type[Command] | None = None


VERBS: Mapping[str, Verb] = {
    "approve": Verb("!approve", "approve what waits for you", Approve),
    "rework": Verb("!rework [WHY]", "send the work back", Rework),
    "handoff": Verb("!handoff AGENT", "hand work and approvals on", Handoff),
    "call_agent": Verb("!call_agent AGENT", "let somebody speak for one turn", CallAgent),
    "switch_to": Verb("!switch_to AGENT", "change who speaks, hand nothing over", SwitchTo),
    "continue": Verb("!continue", "let it go on", Continue),
    "simple": Verb("!simple", "go on as a line of phases", SwitchMode),
    "fsm": Verb("!fsm", "go on as a machine of personas", SwitchMode),
    "start": Verb("!start IDEA", "begin with an idea: ideation, planning, implementation", StartLine),
    "business": Verb("!business CONCEPT", "judge a concept: direction, finance, marketing", StartLine),
    "goals": Verb("!goals", "work out goals: direction, finance, marketing", StartLine),
    "workflow": Verb("!workflow [NAME INPUT]", "start a workflow or a pattern beside; alone: list them", StartWorkflow),
    "plan": Verb("!plan TEXT", "have a workflow drafted; it begins when you approve it", WantPlan),
    "save": Verb("!save NAME", "save the drafted plan, to start it again by name"),
    "answer": Verb("!answer [N] ANSWER", "answer what a call, a workflow or a debate asks"),
    "state": Verb("!state", "show where the conversation stands"),
    "history": Verb("!history [N]", "show what was said; with N go another way from turn N on"),
    "metrics": Verb("!metrics", "count turns, transitions and what was prepared"),
    "help": Verb("!help", "list what is accepted now"),
    "exit": Verb("!exit", "end the conversation", Leave),
}


class Chosen(Frozen):
    """What a person chose when a conversation began."""

    team: str = "studio"
    autonomy: Autonomy | None = None
    sample: bool = False
    model: str = ""
    budget: Budget | None = None
    run_id: str | None = None
    workspace: Given = None
    """The folder in which personas have the built-in tools, and into which files of a plan are written."""
    files: str = ""
    """The folder that files of a plan are written into where there is no workspace."""
    tools: tuple[Tool, ...] = ()
    """Tools of the person's own, with what is said of each."""
    summarise: bool | None = None
    """Whether a model sums up what was said; where that is not said, if one is there that is not offline."""


class Session:
    """One conversation, from a person's side. The machine decides; this only tells it what was typed, and by whom.

    Without a name it is whoever sits at the terminal.
    """

    def __init__(
        self, hall: Moothall, machine: Machine, run: str, agents: Mapping[str, Any] | None = None, by: str = ""
    ) -> None:
        self.hall, self.machine, self.run, self._agents, self._by = hall, machine, run, agents or None, by
        self.roster = roster_of(source_of(machine))
        self.outcome: Outcome | None = None
        self._numbers = Numbers()

    @property
    def source(self) -> str:
        """Where the prompts of the team are found."""
        found = team_file(source_of(self.machine))
        assert found is not None
        return found.source

    @classmethod
    async def begin(
        cls, hall: Moothall, chosen: Chosen, agents: Mapping[str, Any] | None = None, machine: Machine | None = None
    ) -> Session:
        """Begin a conversation; it waits for the first word."""
        machine = machine or machine_of(source_of_team(chosen.team))
        assert machine is not None
        approval = Approval(chosen.autonomy, chosen.autonomy) if chosen.autonomy else None
        place = made_workspace(chosen.workspace)
        files = place.folder or chosen.files
        begun = Conversation(autonomy=approval, sample=chosen.sample, now=time.time(), workspace=files)
        sums_up = plays_online(chosen.model) if chosen.summarise is None else chosen.summarise
        begun = replace(begun, summarise=sums_up, seed=chosen.run_id or secrets.token_hex(8))
        begun = replace(begun, uses=tuple(own_use(tool) for tool in chosen.tools) or None)
        session = cls(hall, machine, chosen.run_id or "", agents)
        session.outcome = await hall.run(
            machine,
            begun,
            agents=agents,
            model=chosen.model,
            budget=chosen.budget,
            run_id=chosen.run_id,
            workspace=place,
        )
        session.run = session.outcome.run
        return session

    @classmethod
    async def resume(cls, hall: Moothall, run: str = "", agents: Mapping[str, Any] | None = None) -> Session:
        """Come back to a conversation; without a name to the newest one. `go_on` lets it go on."""
        run = run or await newest(hall)
        source = (await hall.store.load(run)).record.source
        machine = machine_of(source)
        if machine is None:
            raise Refused(f"run {run} is not a conversation of a team")
        return cls(hall, machine, run, agents)

    async def go_on(self) -> Outcome:
        """Go on with what was under way when the conversation was left."""
        if self.outcome is None:
            self.outcome = await self.hall.resume(self.run, self.machine, agents=self._agents)
        return self.outcome

    async def refresh(self) -> Outcome:
        """How the conversation stands now, whoever moved it."""
        head = Reader(self.machine, kind_of(self.machine).effects).head((await self.hall.store.load(self.run)).head)
        below = await open_questions(self.hall.store, self.run)
        self.outcome = outcome_of(self.machine, self.run, head, below)
        return self.outcome

    async def new_questions(self) -> str:
        """What runs that were started here ask, and how that is answered; each question once."""
        asked = await open_questions(self.hall.store, self.run)
        return "\n".join(filter(None, map(self.shown_once, asked)))

    def shown_once(self, question: Question) -> str:
        """A question with the way to answer it; "" where it was shown before."""
        return self._numbers.shown(question) if self._numbers.is_new(question) else ""

    async def newest_lines(self, most: int = 6) -> str:
        """What was said last."""
        return "\n".join((await self._history()).splitlines()[-most:])

    async def look(self) -> Conversation:
        """How the conversation stands now."""
        data: Conversation = (await self.snapshot()).data
        return data

    async def snapshot(self) -> Snapshot:
        """Where the run stands now."""
        stored = await self.hall.store.load(self.run)
        return Reader(self.machine, kind_of(self.machine).effects).head(stored.head).snapshot

    async def type(self, line: str) -> str:
        """Do what a person typed; what there is to say at once, "" where the run will speak for itself."""
        line = line.strip()
        if not line:
            return ""
        if not line.startswith("!"):
            await self.say(line)
            return ""
        return await self.command(line)

    async def say(self, text: str) -> Outcome:
        """Say something to the team."""
        return await self._tell(UserSaid(text=text, at=time.time()))

    async def command(self, line: str) -> str:
        """Give a command, such as `!handoff CEO`."""
        name, _, rest = line.strip().removeprefix("!").partition(" ")
        verb, rest = VERBS.get(name.lower()), rest.strip()
        if verb is None:
            return f"there is no command !{name[:40]}; !help lists what is accepted now"
        looks: dict[str, Callable[[str], Any]] = {
            "state": self._state,
            "history": self._history,
            "metrics": self._metrics,
            "help": self._help,
            "save": self._save,
        }
        try:
            if name.lower() in looks:
                return str(await looks[name.lower()](rest))
            if name.lower() == "answer":
                return await self._answer_question(await open_questions(self.hall.store, self.run), rest)
            if name.lower() == "approve" and (asked := await self._calls_to_approve()):
                return await self._answer_question(asked, "yes")
            event = await self._event(name.lower(), rest)
            if isinstance(event, str):
                return event
            await self._tell(event)
        except (Refused, DefinitionError) as refusal:
            return str(refusal)
        return await self._answer(name.lower())

    async def _save(self, name: str) -> str:
        """Save the plan that waits for approval, or that was started last."""
        data = await self.look()
        started = (known.machine for known in reversed(tuple(data.beside.values())) if known.machine.endswith(".json"))
        path = data.proposed if data.proposed.endswith(".json") else next(started, "")
        if not path:
            return "there is no plan to save; !plan has one drafted"
        saved = await asyncio.to_thread(save_plan, path, name)
        return f"saved as {saved}; !workflow {name} starts it"

    async def _calls_to_approve(self) -> tuple[Question, ...]:
        """What asks for a yes below, where the conversation itself awaits none."""
        if (await self.look()).place in USER_STATES:
            return ()
        asked = await open_questions(self.hall.store, self.run)
        return tuple(question for question in asked if question.schema == YES_NO)

    async def _answer_question(self, asked: Sequence[Question], text: str) -> str:
        """Answer a question of something that was started here, and go on."""
        question, said = self._numbers.meant(asked, text)
        value = answer_in(question.schema, said)
        await self.hall.answer(
            question.run,
            value,
            question=question.id,
            machine=self.machine,
            agents=self._agents,
            by=self._by or question.who,
        )
        await self.refresh()
        return ""

    async def _answer(self, name: str) -> str:
        if name in ("simple", "fsm"):
            return f"the conversation goes on in the mode {name}; memory, approvals and files stay"
        return ""

    async def _event(self, name: str, rest: str) -> Event | str:
        now, kind = time.time(), VERBS[name].event
        assert kind is not None
        if name in ("handoff", "call_agent", "switch_to"):
            persona = self.persona(rest)
            if persona is None:
                return f"no persona is called {rest[:60]!r}; there are {format_names(self.roster.personas)}"
            return kind(text=persona, at=now)
        if name in ("start", "business") and not rest:
            return f"say what it is about, such as: {VERBS[name].usage}"
        if name in ("start", "business", "goals"):
            return StartLine(text=rest, at=now, line=name)
        if name == "workflow":
            return self._workflow(rest, now)
        if name == "plan":
            if not rest:
                return f"say what is to be planned, such as: {VERBS[name].usage}"
            return WantPlan(text=rest, at=now)
        text = name if kind is SwitchMode else rest
        return kind(text=text, at=now)

    def _workflow(self, rest: str, now: float) -> Event | str:
        name, _, given = rest.partition(" ")
        if not name:
            known = [f"{pattern.name}: {pattern.help}" for pattern in PATTERNS.values()]
            known += [f"{workflow.name}: {workflow.description}" for workflow in list_workflows()]
            return "\n".join(known)
        if name in PATTERNS:
            machine, fields = pattern_input(self.roster, self.source, PATTERNS[name], given.strip())
            return StartWorkflow(text=given.strip(), at=now, machine=machine, input=fields)
        fields = fields_of(child_machine(self.machine, name), given.strip())
        return StartWorkflow(text=given.strip(), at=now, machine=name, input=fields)

    def persona(self, name: str) -> str | None:
        """The persona that a person means: by id or by name, whatever the case."""
        plain = _plain(name)
        known = (persona for persona in self.roster.team.personas)
        return next((persona.id for persona in known if plain in (_plain(persona.id), _plain(persona.name))), None)

    async def _tell(self, event: Event) -> Outcome:
        self.outcome = await self.hall.send(self.run, event, machine=self.machine, agents=self._agents, by=self._by)
        return self.outcome

    async def _state(self, _: str = "") -> str:
        asked = await open_questions(self.hall.store, self.run)
        return "\n".join([state_tree(self.roster, await self.look()), *map(self._numbers.shown, asked)])

    async def status(self) -> str:
        """Where the conversation stands, in one line."""
        return status_line(self.roster, await self.look())

    async def _help(self, _: str = "") -> str:
        snapshot = await self.snapshot()
        lines = []
        is_asked = bool(await open_questions(self.hall.store, self.run))
        for name, verb in VERBS.items():
            if name == "answer" and not is_asked:
                continue
            if verb.event is None or accepts(self.machine, snapshot, verb.event(text="")):
                lines.append(f"{verb.usage:<24}{verb.help}")
        return "\n".join(line[:WIDTH] for line in (*lines, f"{'anything else':<24}is said to the team"))

    async def _history(self, rest: str = "") -> str:
        if rest:
            return await self._fork(rest)
        said = await messages_of(self.hall.store, self.run, THREAD)
        lines = [
            f"{message['number']:>3} {speaker_name(self.roster, message['by'])}: {indented(message['text'])}"
            for message in said
        ]
        lines += [f"branch: {run}" for run in await branches(self.hall, self.run)]
        lines = lines or ["nothing was said yet"]
        asked = await open_questions(self.hall.store, self.run)
        return "\n".join([*lines, *waiting_lines(self.roster, await self.look()), *map(self._numbers.shown, asked)])

    async def _fork(self, rest: str) -> str:
        """Go another way from a turn on; the run that was is kept."""
        if not (rest.isascii() and rest.isdigit()):
            return "write the number of a turn, such as: !history 3"
        entries = await self.hall.store.entries(self.run)
        at = next((entry["seq"] for entry in reversed(entries) if _is_turn(entry, int(rest))), None)
        if at is None:
            return f"there is no turn {rest}; !history lists them"
        before = self.run
        outcome = await self.hall.fork(self.run, self.machine, at=at, repeats=True, agents=self._agents)
        self.run, self.outcome = outcome.run, outcome
        return f"branch {outcome.run} goes on from turn {rest} of {before}; both are kept"

    async def _metrics(self, _: str = "") -> str:
        return "\n".join(f"{name}: {value}" for name, value in (await self.metrics()).items())

    async def metrics(self) -> dict[str, Any]:
        """Figures of the conversation."""
        return figures(await self.look(), await messages_of(self.hall.store, self.run, TRANSITIONS))

    async def result(self) -> dict[str, Any]:
        """The result for programs."""
        assert self.outcome is not None
        return {**await result_of(self.hall.store, self.roster, self.outcome), "metrics": await self.metrics()}

    async def transcript(self) -> str:
        """The conversation as Markdown."""
        return await transcript_of(self.hall.store, self.run, self.roster)


def plays_online(model: str) -> bool:
    """Whether a model plays that is asked over a network."""
    named = model or model_setting()
    return bool(named) and not is_offline(named)


def fields_of(machine: Machine, text: str) -> dict[str, Any]:
    """What a machine is given that starts with a text: its first field, or whatever its input is called."""
    if kind_of(machine).takes_text or machine.data is None:
        return {"input": text}
    return {next(iter(getattr(machine.data, "__dataclass_fields__", {"input": None}))): text}


async def newest(hall: Moothall) -> str:
    """The newest conversation of the store."""
    for summary in await hall.list():
        record = (await hall.store.load(summary.run)).record
        if not record.parent and (record.source == NAME or machine_of(record.source) is not None):
            return summary.run
    raise Refused("there is no conversation to come back to; `moot team` begins one")


async def branches(hall: Moothall, run: str) -> list[str]:
    """Runs that went another way from this one, or that this one came from."""
    found = []
    for summary in await hall.list():
        if summary.run == run:
            continue
        if await _origin(hall, summary.run) == run or await _origin(hall, run) == summary.run:
            found.append(summary.run)
    return found


async def _origin(hall: Moothall, run: str) -> str:
    entries = await hall.store.entries(run)
    forked = (entry["event"] for entry in entries if entry["event"].get("name") == "run.forked")
    return next((str(event.get("run", "")) for event in forked), "")


def _is_turn(entry: Mapping[str, Any], turn: int) -> bool:
    said = (append["message"] for append in entry.get("appends", ()) if append["thread"] == THREAD)
    return any(message.get("number") == turn and message.get("by") not in ("system", "user") for message in said)


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold().removesuffix("_state") if letter.isalnum())


def format_names(names: Mapping[str, Any]) -> str:
    """Some names, and how many more there are."""
    shown = list(names)[:20]
    return ", ".join(shown) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
