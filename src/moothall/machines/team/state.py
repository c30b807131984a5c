"""What a conversation of a team holds, the events that only the user's own typing makes, and the effects of a team.

Texts that grow stand in threads: `conversation` has what was said, `transitions` who handed to whom and why. The data
hold where the conversation stands: who speaks, what waits for approval, who is to speak again afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar, Literal

from moothall.agents.ask import AskAgent, ToolCall
from moothall.agents.memory import Memory
from moothall.kernel.effects import Effect
from moothall.kernel.events import SIGNED, Event
from moothall.kernel.frozen import Frozen
from moothall.machines.team.approvals import Chain
from moothall.machines.team.arbitration import Proposal
from moothall.machines.team.definition import Approval
from moothall.machines.team.warmth import Habits, Warmth
from moothall.machines.turn import Use

THREAD, TRANSITIONS = "conversation", "transitions"
ARBITRATION = "Arbitration"
BY_USER = "user"
Layer = Literal["user", "rules", "arbitration", "system"]
SYSTEM: Literal["system"] = "system"


# what only the user's own typing makes


class UserSaid(Event):
    """The user said something, at a time."""

    name = "USER_SAID"
    text: str = ""
    at: float = 0
    by: str = field(default="", kw_only=True, metadata=SIGNED)


class Command(Event):
    """The user gave a command: its argument, and when."""

    name = "COMMAND"
    text: str = ""
    at: float = 0
    by: str = field(default="", kw_only=True, metadata=SIGNED)


class Approve(Command):
    """What waits for the user is approved."""

    name = "COMMAND.approve"


class Rework(Command):
    """The user sends the work back, for a reason."""

    name = "COMMAND.rework"


class Handoff(Command):
    """The user hands work and approval chain to somebody."""

    name = "COMMAND.handoff"


class CallAgent(Command):
    """Somebody speaks for one turn, then it goes on as before."""

    name = "COMMAND.call_agent"


class SwitchTo(Command):
    """Somebody else speaks from now on; no work is handed over."""

    name = "COMMAND.switch_to"


class Continue(Command):
    """Whoever spoke last goes on."""

    name = "COMMAND.continue"


class SwitchMode(Command):
    """The conversation goes on as a line of phases (`simple`) or as a machine of personas (`fsm`)."""

    name = "COMMAND.mode"


class StartLine(Command):
    """A line of phases begins: `start`, `business` or `goals`, with what it is about behind it."""

    name = "COMMAND.line"
    line: str = "start"


class StartWorkflow(Command):
    """A workflow, a pattern or another machine begins beside the conversation, with a text as its input."""

    name = "COMMAND.workflow"
    machine: str = ""
    input: Any = None


class WantPlan(Command):
    """The user wants a workflow drafted from the conversation."""

    name = "COMMAND.plan"


class Leave(Command):
    """The conversation is over."""

    name = "COMMAND.exit"


COMMANDS = (
    Approve,
    Rework,
    Handoff,
    CallAgent,
    SwitchTo,
    Continue,
    SwitchMode,
    StartLine,
    StartWorkflow,
    WantPlan,
    Leave,
)


# effects of a team


class HooksCalled(Event):
    """Hooks were called; those that failed say why."""

    name = "hooks.called"
    failed: Mapping[str, str] = field(default_factory=dict)


class HookCall(Frozen):
    """A hook of a state that is entered or left."""

    hook: str
    state: str
    when: Literal["entry", "exit"]


class CallHooks(Effect):
    """Call hooks one after the other: those of states that are left, the inner first, then of those entered."""

    kind = "call.hooks"
    outcomes = (HooksCalled,)
    owned: ClassVar[bool] = False
    attempts: ClassVar[int] = 1
    calls: tuple[HookCall, ...] = ()
    speaker: str = ""

    def settled(self, value: Any) -> Event:
        return HooksCalled(value or {})


class FactRead(Event):
    """A source said what a fact is; or why it could not."""

    name = "fact.read"
    fact: str = ""
    value: Any = None
    source: str = ""
    at: float = 0
    problem: str = ""


class ReadFact(Effect):
    """Ask a source what a fact is."""

    kind = "read.fact"
    outcomes = (FactRead,)
    owned: ClassVar[bool] = False
    fact: str
    tool: str
    server: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def settled(self, value: Any) -> Event:
        return FactRead(self.fact, value, "a person's word")


class Summarise(AskAgent):
    """Have a stretch of the conversation summed up, whoever speaks meanwhile."""

    kind = "ask.summary"
    owned: ClassVar[bool] = False


class FileWritten(Event):
    """A file of the plan stands in the workspace; or why it does not."""

    name = "file.written"
    path: str = ""
    problem: str = ""


class WriteFile(Effect):
    """Write a file of the plan into the workspace, never outside."""

    kind = "write.file"
    outcomes = (FileWritten,)
    owned: ClassVar[bool] = False
    path: str
    text: str
    root: str = ""

    def settled(self, value: Any) -> Event:
        return FileWritten(self.path)


class WarmedUp(Event):
    """Personas are prepared, each since a time; or why one could not be, which harms nothing."""

    name = "personas.warmed"
    ready: Mapping[str, float] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)


class WarmUp(Effect):
    """Prepare personas while another speaks: render their prompts, open their models. Nobody is asked anything."""

    kind = "warm.personas"
    outcomes = (WarmedUp,)
    repeats = "pure"
    owned: ClassVar[bool] = False
    attempts: ClassVar[int] = 1
    personas: tuple[str, ...]
    source: str


class AskPlan(AskAgent):
    """Have a workflow drafted, whoever speaks meanwhile."""

    kind = "ask.plan"
    owned: ClassVar[bool] = False


class PlanChecked(Event):
    """A draft was checked: where it stands and how it looks, or what keeps it from being run."""

    name = "plan.checked"
    path: str = ""
    drawing: str = ""
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    id: str = ""


class CheckPlan(Effect):
    """Check a draft as `moot check` does, keep it in a file, and draw it. Nothing of it is run."""

    kind = "check.plan"
    outcomes = (PlanChecked,)
    owned: ClassVar[bool] = False
    plan: Mapping[str, Any]
    about: str = ""
    root: str = ""
    id: str = ""

    def settled(self, value: Any) -> Event:
        return PlanChecked(value, id=self.id)


# what a conversation holds


class Draft(Frozen):
    """A plan that is being drafted: what for, how often it was asked for, and what was wrong with it."""

    text: str
    tries: int = 1
    problems: str = ""
    number: int = 1


class Fact(Frozen):
    """What is known, from which source and since when."""

    value: Any
    source: str
    time: float


class Brief(Frozen):
    """What goes with the work when it is handed on."""

    goal: str = ""
    done: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()


class Wish(Frozen):
    """What the last reply directs, before anybody has decided."""

    event: str = ""
    proposals: tuple[Proposal, ...] = ()
    content: str = ""
    reason: str = ""
    confidence: float | None = None


class Decision(Frozen):
    """Who is next, who or what says so, in which layer, and why; those who lost, with their scores."""

    to: str
    by: str
    layer: Layer
    reason: str = ""
    event: str = ""
    losers: tuple[tuple[str, float], ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    approved: bool = False
    """Whether the user has let it pass: neither a limit nor an approval holds it up again."""


class Return(Frozen):
    """Somebody who was interrupted, and speaks again after one turn of another."""

    to: str
    by: str
    layer: Layer
    speaker: str = ""


class Repeat(Frozen):
    """How often in a row the same transition came without anything new in it."""

    digest: str
    count: int = 1


class LineStep(Frozen):
    """One step of a line of phases: who does what."""

    phase: str
    persona: str
    task: str


class Line(Frozen):
    """A line of phases under way: what it is about, the steps of this phase, how far it is, and what came of it."""

    name: str
    about: str
    phase: str
    steps: tuple[LineStep, ...]
    place: int = 0
    feedback: tuple[str, ...] = ()
    results: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()


class Beside(Frozen):
    """Something that was started beside the conversation: its machine, and how it ended ("" while it goes on)."""

    machine: str
    ended: str = ""


class Conversation(Frozen):
    """Where a conversation of a team stands."""

    seed: str = ""
    """What draws are made from, with the number of the turn: the run's id."""
    mode: Literal["fsm", "simple"] = "fsm"
    autonomy: Approval | None = None
    sample: bool = False
    now: float = 0
    speaker: str = ""
    """Who speaks, or spoke last."""
    place: str = "RespondToUser"
    """The state in which the conversation stands."""
    turn: int = 0
    asked: str = ""
    """The id of the ask that is under way."""
    calls: tuple[ToolCall, ...] = ()
    """Calls of tools that whoever speaks wants, and that have not come back."""
    rounds: int = 0
    """How often tools were called in this turn."""
    uses: tuple[Use, ...] | None = None
    """The tools of the run that personas name, and whether a person is asked before each is called."""
    wish: Wish = Wish()
    decided: Decision | None = None
    """A decision that comes before all others: of the user, or of the machine itself."""
    held: Decision | None = None
    """A decision that waits for the user's approval."""
    held_reply: bool = False
    """Whether it is the reply that waits for approval, not the transition."""
    flag: str = ""
    repair: str = ""
    repairs: int = 0
    reason: str = ""
    """Why the user has the word."""
    stack: tuple[str, ...] = ()
    returns: tuple[Return, ...] = ()
    fired: tuple[str, ...] = ()
    """Rules that have routed somebody since the user last spoke."""
    chain: Chain = Chain()
    reworks: int = 0
    brief: Brief | None = None
    memory: Memory = Memory()
    summarise: bool = False
    """Whether a model sums up; else that is done without one."""
    summing: int = 0
    """How many items are being summed up."""
    facts: Mapping[str, Fact] = field(default_factory=dict)
    reading: tuple[str, ...] = ()
    """Facts that sources are being asked for; nobody is routed before they are known."""
    visits: Mapping[str, int] = field(default_factory=dict)
    turns: int = 0
    """Turns since the user last spoke."""
    repeats: Mapping[str, Repeat] = field(default_factory=dict)
    chosen: Mapping[str, int] = field(default_factory=dict)
    """At which turn somebody was last chosen."""
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    """The words of the team's table that stood in the conversation when the turn began."""
    habits: Habits = Habits()
    """What a predictor has learned that learns."""
    warmth: Warmth = Warmth()
    warmed: int = 0
    used_warm: int = 0
    wasted: int = 0
    line: Line | None = None
    proposed: str = ""
    """A machine that somebody proposed; it begins when the user approves it."""
    proposed_input: Any = None
    proposed_by: str = ""
    draft: Draft | None = None
    drafts: int = 0
    """How many plans were asked for."""
    beside: Mapping[str, Beside] = field(default_factory=dict)
    failed_hooks: tuple[str, ...] = ()
    workspace: str = ""
    """The folder that files of a plan are written into."""
