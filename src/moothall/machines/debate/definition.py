"""A debate's configuration, as values with the names of the file, and the shape of that file.

Defaults: three agents, three rounds, consensus at 80 of 100. Thresholds and confidences go from 0 to 100.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal

from moothall.agents.ask import ASKS, TURN, as_tool
from moothall.errors import DefinitionError, Refused
from moothall.kernel.codec import decode
from moothall.kernel.frozen import Frozen
from moothall.machines.schema import Shape, choice, count, flag, inner, number, objects, shape, text, texts
from moothall.machines.workflow.document import Problem

Ending = Literal["fixed", "convergence", "quality"]
Protocol = Literal["debate", "vote", "gated"]
AnswerType = Literal["open", "choice", "number"]
Lost = Literal["carry", "leave", "fail"]

ROLES = ("architect", "performance", "kiss", "security", "testing", "datamodeling", "generalist")
MOST_AGENTS = 50
MOST_CALLS = 1000


class Summarization(Frozen):
    """When and how an agent's history is summarised."""

    enabled: bool = True
    threshold: int = 5_000
    maxLength: int = 2_500
    method: Literal["length-based"] = "length-based"
    promptPath: str = ""


class AgentConfig(Frozen):
    """One seat of the panel, or the judge. A seat without a model is played by the run's."""

    id: str
    name: str = ""
    role: str = "generalist"
    model: str = ""
    provider: str = ""
    temperature: float | None = None
    systemPromptPath: str = ""
    summaryPromptPath: str = ""
    clarificationPromptPath: str = ""
    enabled: bool = True
    tools: tuple[str, ...] = ()
    toolCallLimit: int = 10
    summarization: Summarization | None = None
    fallback: tuple[str, ...] = ()
    person: bool = False

    @property
    def has_tools(self) -> bool:
        """Whether it may have tools called before it replies."""
        return bool(self.tools) and not self.person

    @property
    def played_by(self) -> str:
        """The model's name as a run takes it; "" where the run's own plays."""
        return f"{self.provider}:{self.model}" if self.provider and self.model else self.model


class TerminationCondition(Frozen):
    """What ends a debate before its rounds are used up."""

    type: Ending = "convergence"
    threshold: float = 80


class Answers(Frozen):
    """What an answer is: free, one of some options, or a number."""

    type: AnswerType = "open"
    options: tuple[str, ...] = ()

    @property
    def is_closed(self) -> bool:
        """Whether answers can be counted."""
        return self.type != "open"


class DebateConfig(Frozen):
    """How a debate runs."""

    rounds: int = 3
    terminationCondition: TerminationCondition = field(default_factory=TerminationCondition)
    interactiveClarifications: bool = False
    clarificationsMaxIterations: int = 3
    clarificationsMaxPerAgent: int = 5
    summarization: Summarization = field(default_factory=Summarization)
    timeoutPerRound: float = 300_000
    protocol: Protocol | Literal[""] = ""
    answer: Answers = field(default_factory=Answers)
    check: str = ""
    retries: int = 1
    fallback: Lost = "carry"
    rubric: tuple[str, ...] = ()

    @property
    def chosen_protocol(self) -> Protocol:
        """The protocol that is set; else a vote that debates where no majority holds, or for open answers a debate."""
        return self.protocol or ("gated" if self.answer.is_closed else "debate")


def turn_machine(calls: int, *, asks: bool) -> str:
    """The machine of a turn with so many calls: one round more, in which an agent is told that there are none left."""
    return f"{TURN}{calls + 1}{ASKS if asks else ''}"


DEFAULT_AGENTS = tuple(AgentConfig(role, role, role) for role in ("architect", "performance", "kiss"))
JUDGE = AgentConfig("judge", "judge", "judge")


class Configuration(Frozen):
    """A whole configuration: the panel, the judge, and how the debate runs."""

    agents: tuple[AgentConfig, ...] = DEFAULT_AGENTS
    judge: AgentConfig = JUDGE
    debate: DebateConfig = field(default_factory=DebateConfig)

    @property
    def panel(self) -> tuple[AgentConfig, ...]:
        """The seats that are taken."""
        return tuple(agent for agent in self.agents if agent.enabled)

    @property
    def tool_seats(self) -> tuple[AgentConfig, ...]:
        """The seats, with the judge's, that may have tools called."""
        return tuple(seat for seat in (*self.panel, self.judge) if seat.has_tools)

    @property
    def most_calls(self) -> int:
        """The most calls of tools that anybody may have before one reply; 0 where nobody has any."""
        return max((seat.toolCallLimit for seat in self.tool_seats), default=0)

    @property
    def asks(self) -> bool:
        """Whether a tool is among them before which a person is asked."""
        return any(as_tool(name).policy == "ask" for seat in self.tool_seats for name in seat.tools)


_SUMMARIZATION = shape(
    "When and how history is summarised.",
    (),
    {
        "enabled": flag("Whether it is. True by default."),
        "threshold": count("From how many characters on; 5,000 by default.", 0),
        "maxLength": count("The most characters of a summary; 2,500 by default."),
        "method": choice("How; length-based.", "length-based"),
        "promptPath": text("A file with the prompt."),
    },
)
_AGENT = shape(
    "A seat of the panel.",
    ("id",),
    {
        "id": text("Its id, which no other seat has.", "^[A-Za-z][A-Za-z0-9_-]*$"),
        "name": text("How people call it."),
        "role": text(f"Its role: {', '.join(ROLES)}, judge, or one of your own roles."),
        "model": text("The model that plays it; the run's own by default."),
        "provider": text("The provider of that model, such as openai."),
        "temperature": number("How freely it speaks, 0 to 2.", 0, 2),
        "systemPromptPath": text("A file with what it is told about itself."),
        "summaryPromptPath": text("A file with the prompt of its summaries."),
        "clarificationPromptPath": text("A file with the prompt of its questions."),
        "enabled": flag("Whether it takes part. True by default."),
        "tools": texts("The tools that it may use."),
        "toolCallLimit": count(f"The most calls of tools before one reply, up to {MOST_CALLS}; 10 by default."),
        "summarization": inner("Summarization", "When and how its history is summarised."),
        "fallback": texts("Models that play it where its own fails."),
        "person": flag("Whether a person sits there."),
    },
)
SHAPE = Shape(
    "Moothall debate",
    "Configuration",
    {
        "Configuration": shape(
            "A debate: who takes part, who judges, and how it runs.",
            (),
            {
                "$schema": text("The address of this schema, for editors."),
                "agents": objects("Agent", "The panel; architect, performance and kiss by default."),
                "judge": inner("Agent", "Who evaluates and writes the solution; not on the panel."),
                "debate": inner("Debate", "How it runs."),
            },
        ),
        "Agent": _AGENT,
        "Summarization": _SUMMARIZATION,
        "Termination": shape(
            "What ends a debate before its rounds are used up.",
            (),
            {
                "type": choice(
                    "fixed: nothing. convergence: agreement. quality: the judge's rubric.",
                    "fixed",
                    "convergence",
                    "quality",
                ),
                "threshold": number("From which confidence on, 0 to 100; 80 by default.", 0, 100),
            },
        ),
        "Answer": shape(
            "What an answer is.",
            (),
            {
                "type": choice("open, one of some options, or a number.", "open", "choice", "number"),
                "options": texts("The options of a choice."),
            },
        ),
        "Debate": shape(
            "How a debate runs.",
            (),
            {
                "rounds": count("The most rounds; 3 by default."),
                "terminationCondition": inner("Termination", "What ends it earlier."),
                "interactiveClarifications": flag("Whether agents may ask the user first. False by default."),
                "clarificationsMaxIterations": count("How often they may; 3 by default.", 0),
                "clarificationsMaxPerAgent": count("Questions of one agent each time; 5 by default.", 0),
                "summarization": inner("Summarization", "When and how histories are summarised."),
                "timeoutPerRound": number(
                    "Milliseconds; then missing agents carry over what they had. 300,000 by default.", 1
                ),
                "protocol": choice("debate, vote, or gated: a vote first.", "debate", "vote", "gated"),
                "answer": inner("Answer", "What an answer is; open by default."),
                "check": text("The name of a registered function that accepts or rejects an answer."),
                "retries": count("How often a node asks those again that failed; 1 by default.", 0),
                "fallback": choice("What becomes of an agent that failed.", "carry", "leave", "fail"),
                "rubric": texts("What quality means: criteria that the judge scores from 1 to 10."),
            },
        ),
    },
)


def read_configuration(plain: Any, where: str = "the configuration") -> Configuration:
    """A configuration from JSON; what cannot be meant is refused with the place and the remedy."""
    wrong = [problem for problem in findings(plain) if problem.level == "error"]
    if wrong:
        first = wrong[0]
        raise DefinitionError(f"{where}: {first.pointer or '/'}: {first.why}; {first.remedy}")
    try:
        return decode(Configuration, SHAPE.cleaned(plain), where)
    except (Refused, ValueError) as error:
        raise DefinitionError(f"{where}: {error}") from error


def findings(plain: Any) -> Iterator[Problem]:
    """Everything that is wrong with a configuration: its shape, then what the shape cannot say."""
    if not isinstance(plain, Mapping):
        yield Problem("error", "E_TYPE", "", "a configuration is an object", "write { … }")
        return
    misfits = tuple(SHAPE.misfits(plain))
    yield from misfits
    if any(problem.level == "error" for problem in misfits):
        return
    agents = plain.get("agents")
    if agents is not None:
        yield from _panel_findings(agents)
    yield from _limit_findings(plain)
    debate = plain.get("debate", {})
    answer = debate.get("answer", {})
    if answer.get("type") == "choice" and len(answer.get("options", ())) < 2:
        yield Problem("error", "E_OPTIONS", "/debate/answer/options", "a choice needs two options", "name them")
    if answer.get("options") and answer.get("type") != "choice":
        yield Problem(
            "error", "E_OPTIONS", "/debate/answer/options", "only a choice has options", 'write "type": "choice"'
        )


def _limit_findings(plain: Mapping[str, Any]) -> Iterator[Problem]:
    seats = [(f"/agents/{index}", agent) for index, agent in enumerate(plain.get("agents") or ())]
    for pointer, seat in (*seats, ("/judge", plain.get("judge") or {})):
        if (limit := seat.get("toolCallLimit", 0)) > MOST_CALLS:
            why = f"{limit} calls before one reply are too many"
            yield Problem("error", "E_LIMIT", f"{pointer}/toolCallLimit", why, f"at most {MOST_CALLS}")


def _panel_findings(agents: list[Mapping[str, Any]]) -> Iterator[Problem]:
    seen = set[str]()
    for index, agent in enumerate(agents):
        if agent["id"] in seen or agent["id"] == "judge":
            yield Problem("error", "E_DUP_NAME", f"/agents/{index}/id", f"{agent['id']!r} is taken", "rename one")
        seen.add(agent["id"])
        if agent.get("tools") and agent.get("person"):
            why, remedy = "a person has no tools", "leave `tools` out"
            yield Problem("warning", "W_NO_TOOLS", f"/agents/{index}/tools", why, remedy)
    enabled = sum(agent.get("enabled", True) for agent in agents)
    if not enabled:
        yield Problem("error", "E_NOBODY", "/agents", "no agent is enabled", "enable at least one, better three")
    elif enabled == 1:
        yield Problem(
            "warning", "W_ALONE", "/agents", "one agent debates alone", "there will be no critiques; add others"
        )
    if enabled > MOST_AGENTS:
        yield Problem("error", "E_LIMIT", "/agents", f"{enabled} agents are too many", f"at most {MOST_AGENTS}")


def with_tools(configuration: Configuration, tools: Sequence[str]) -> Configuration:
    """The same, in which everybody on the panel has these tools, too."""
    seats = tuple(
        seat if seat.person else replace(seat, tools=tuple(dict.fromkeys((*seat.tools, *tools))))
        for seat in configuration.agents
    )
    return replace(configuration, agents=seats)


def with_seat(configuration: Configuration, name: str) -> Configuration:
    """The same with a seat for a person."""
    seat = AgentConfig(name, name, "generalist", person=True)
    return replace(configuration, agents=(*configuration.agents, seat))
