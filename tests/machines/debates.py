"""A panel for debates in virtual time: it says what a test wants, fails or stays silent where it is told to."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from moothall.agents.ask import AskAgent, CallTool, Replied, Returned, render
from moothall.kernel.effects import AskPerson, Effect
from moothall.kernel.events import Event, GaveUp
from moothall.kernel.machine import Machine
from moothall.kernel.simulate import Simulation
from moothall.machines.debate import debate, size_of
from moothall.machines.debate.definition import (
    AgentConfig,
    Answers,
    Configuration,
    DebateConfig,
    TerminationCondition,
)
from moothall.machines.debate.state import (
    Critique,
    Debate,
    Evaluation,
    Proposal,
    Questions,
    Ranking,
    Review,
    Solution,
    Summary,
)

ANN, BOB, CAT = "ann", "bob", "cat"
CLOSED = Answers("choice", ("A", "B", "C"))
FIXED = TerminationCondition("fixed")
Key = tuple[str, str]
"""A template and an agent."""


def begun(*names: str, context: str = "", seats: Sequence[AgentConfig] = (), **chosen: Any) -> Debate:
    """A debate of these agents, with these options of `debate`."""
    agents = tuple(AgentConfig(name, name) for name in (names or (ANN, BOB, CAT)))
    configuration = Configuration((*agents, *seats), debate=DebateConfig(**chosen))
    return Debate("Which way?", context, configuration, digest="seed")


@dataclass
class Panel:
    """Who is asked, and what each says; a test lays its own replies over the plain ones."""

    replies: Mapping[Key, Sequence[Any]] = field(default_factory=dict)
    """By template and agent: what is said the first time, the second time, and ever after."""
    fails: Counter[Key] = field(default_factory=Counter)
    """How often each fails before it replies."""
    silent: set[Key] = field(default_factory=set)
    check: Callable[[str], Any] = lambda answer: True
    asked: list[AskAgent] = field(default_factory=list)
    people: list[AskPerson] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)

    def __call__(self, effect: Effect) -> Event | None:
        match effect:
            case AskAgent():
                return self.reply(effect)
            case CallTool():
                self.checked.append(effect.arguments["answer"])
                verdict = self.check(effect.arguments["answer"])
                if isinstance(verdict, GaveUp):
                    return replace(verdict, id=effect.id)
                return Returned(effect.tool, verdict, id=effect.id)
            case AskPerson():
                self.people.append(effect)
        return None

    def reply(self, ask: AskAgent) -> Event | None:
        ask = replace(ask, arguments={name: shown(value) for name, value in ask.arguments.items()})
        key = (ask.template, ask.agent)
        nth = self.count(*key)
        self.asked.append(ask)
        if key in self.silent:
            return None
        if self.fails[key] > 0:
            self.fails[key] -= 1
            return GaveUp(f"{ask.agent} is ill", "provider", id=ask.id)
        own = self.replies.get(key, ())
        value = own[min(nth, len(own) - 1)] if own else plain(ask)
        return Replied(ask.agent, "", value, ask.shape, id=ask.id)

    def count(self, template: str, agent: str = "") -> int:
        """How often an agent was asked in this way."""
        return sum(ask.template == template and agent in ("", ask.agent) for ask in self.asked)

    def asks(self, template: str, agent: str = "") -> list[AskAgent]:
        """How an agent was asked in this way."""
        return [ask for ask in self.asked if ask.template == template and agent in ("", ask.agent)]


def shown(argument: Any) -> str:
    """An argument as a prompt shows it."""
    return render("{it}", {"it": argument})


def plain(ask: AskAgent) -> Any:
    """What anybody says who was told nothing else."""
    match ask.template:
        case "clarify":
            return Questions()
        case "propose":
            return Proposal(f"draft of {ask.agent}", "A", 60)
        case "critique":
            labels = str(ask.arguments["labels"]).split(", ")
            return Critique(tuple(Review(label, f"{ask.agent} on {label}") for label in labels))
        case "refine":
            return Proposal(f"refinement of {ask.agent}", "A", 70)
        case "evaluate":
            return Evaluation(90, "they agree")
        case "summarise":
            return Summary(f"summary for {ask.agent}")
        case "rank":
            return Ranking(("A", "B"))
        case _:
            return Solution("the way", confidence=80)


def played(data: Debate, panel: Panel | None = None, machine: Machine | None = None) -> Simulation:
    """A debate as far as it goes without time."""
    return Simulation(machine or debate(size_of(data)), data, perform=panel or Panel())


def settled(data: Debate, panel: Panel | None = None, machine: Machine | None = None) -> Simulation:
    """A debate as far as it goes, with all the time that it takes; silence is awaited until the round is over."""
    simulation = played(data, panel, machine)
    simulation.settle()
    return simulation


def state(simulation: Simulation) -> Debate:
    """What the debate knows."""
    data = simulation.snapshot.data
    assert isinstance(data, Debate)
    return data


def path(simulation: Simulation) -> list[str]:
    """The states in the order in which they were entered."""
    return [name for step in simulation.steps for microstep in step.microsteps for name in microstep.entered]


def events(simulation: Simulation) -> list[str]:
    """The events of the debate's own that rows took, in order."""
    taken = [microstep for step in simulation.steps for microstep in step.microsteps if microstep.taken]
    return [microstep.event for microstep in taken if microstep.event.isupper()]


def proposals(answer: str, *later: str) -> list[Proposal]:
    """What an agent says from draft to draft."""
    return [Proposal(f"because of {given}", given) for given in (answer, *later)]
