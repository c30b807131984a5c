"""What a debate knows at each step, and the shapes of what its agents say.

Current drafts are here; what was said in earlier rounds stands in threads. Of a round only what is counted stays:
answers, agreement, who was missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Literal

from moothall.kernel.events import Event
from moothall.kernel.frozen import Frozen
from moothall.machines.debate.definition import AgentConfig, Configuration

Measure = Literal["", "agreement", "judge", "agreement and judge", "rubric"]
"""What a number stands for that ends a debate or does not."""
Sure = {"minimum": 0, "maximum": 100, "description": "How sure you are, from 0 to 100."}
"""What is said of a confidence to whoever is asked for one."""
Points = Annotated[Mapping[str, float], {"additionalProperties": {"type": "number", "minimum": 1, "maximum": 10}}]
HISTORY = "debate"
"""The thread with everything that the panel said."""


def _confident(value: float | None) -> None:
    if value is not None and not 0 <= value <= 100:
        raise ValueError(f"confidence is a number from 0 to 100, not {value:g}")


class Retry(Event):
    """The pause is over: a node asks those again that failed."""

    name = "RETRY"


class RoundTimeout(Event):
    """The time of a round is over."""

    name = "ROUND_TIMEOUT"
    round: int = 0


class Questions(Frozen):
    """What an agent wants to know before it begins; nothing where all is clear."""

    questions: tuple[str, ...] = ()


class Proposal(Frozen):
    """A draft of an agent: the text, the short answer where answers are counted, and how sure it says it is."""

    text: str
    answer: str = ""
    confidence: Annotated[float | None, Sure] = None

    def __post_init__(self) -> None:
        _confident(self.confidence)


class Review(Frozen):
    """What a critic says to one argument, which it knows by a label only."""

    label: str
    text: str


class Critique(Frozen):
    """All reviews of one critic."""

    reviews: tuple[Review, ...]


class Evaluation(Frozen):
    """What the judge says after a round: how far the panel agrees, and points of a rubric."""

    confidence: Annotated[float, Sure]
    reason: str = ""
    rubric: Points = field(default_factory=dict)

    def __post_init__(self) -> None:
        _confident(self.confidence)
        if any(not 1 <= points <= 10 for points in self.rubric.values()):
            raise ValueError("rubric points go from 1 to 10")


class Solution(Frozen):
    """The answer of the debate, as the judge writes it."""

    description: str
    tradeoffs: tuple[str, ...] = ()
    recommendations: tuple[str, ...] = ()
    confidence: Annotated[float | None, Sure] = None
    unmet_requirements: tuple[str, ...] = ()
    open_questions: tuple[str, ...] = ()
    minority: str = ""
    answer: str = ""

    def __post_init__(self) -> None:
        _confident(self.confidence)


class Summary(Frozen):
    """A history in short."""

    text: str


class Ranking(Frozen):
    """Drafts in the order of their worth, the best first, by their labels."""

    ranking: tuple[str, ...]


class Clarification(Frozen):
    """A question of an agent to the user, and the answer; "" where there is none yet."""

    id: str
    agent: str
    text: str
    answer: str = ""


class Said(Frozen):
    """A critique that an agent has to answer."""

    by: str
    of: str
    text: str


class Remark(Frozen):
    """Something that was said in a round, for the judge: by whom, what it was, and of whom it spoke."""

    by: str
    what: str
    round: int
    text: str
    of: str = ""


class Spoken(Frozen):
    """How long the record of a debate is."""

    messages: int = 0
    characters: int = 0


class Round(Frozen):
    """What is counted of a round that is over."""

    number: int
    answers: Mapping[str, str] = field(default_factory=dict)
    confidences: Mapping[str, float] = field(default_factory=dict)
    similarity: float = 0.0
    agreement: float = 0.0
    """What part of the whole panel gives the leading answer; for open answers how alike the texts are."""
    confidence: float | None = None
    """What the judge says, 0 to 100; None where it was not asked."""
    missing: tuple[str, ...] = ()
    moved_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Who changed its answer, and whose critics had argued for the new one."""
    abstained: Mapping[str, str] = field(default_factory=dict)
    """Who on the panel gave nothing that counts, and why."""


class Termination(Frozen):
    """Why the rounds ended: the reason, the number that was held against the threshold, and what it was."""

    reason: str = ""
    confidence: float | None = None
    threshold: float | None = None
    measure: Measure = ""
    agreement: float | None = None
    """What was measured of the last round, 0 to 100."""
    judged: float | None = None
    """How sure the judge was after it, 0 to 100."""


class FileDigest(Frozen):
    """A file that the panel was given."""

    path: str
    sha256: str


class Debate(Frozen):
    """A debate: the problem, the configuration, and all that has come of it so far."""

    problem: str
    context: str = ""
    configuration: Configuration = field(default_factory=Configuration)
    files: tuple[FileDigest, ...] = ()
    digest: str = ""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """Texts of prompt files that the configuration names, by path."""
    clarifications: tuple[Clarification, ...] = ()
    clarificationIterations: int = 0
    given_answers: Mapping[str, str] = field(default_factory=dict)
    """Answers that were brought along, by the question's text or its place."""
    round: int = 0
    rounds: int = 0
    """How many rounds were evaluated."""
    contexts: Mapping[str, str] = field(default_factory=dict)
    proposals: Mapping[str, Proposal] = field(default_factory=dict)
    drafts: Mapping[str, Proposal] = field(default_factory=dict)
    """The independent drafts of the first round."""
    critiques: tuple[Said, ...] = ()
    refinements: Mapping[str, Proposal] = field(default_factory=dict)
    spoken: Spoken = field(default_factory=Spoken)
    """How long the record of the debate is."""
    record: tuple[Remark, ...] = ()
    """What was said so far, as long as the judge needs no summary of it."""
    summarised: Mapping[str, Spoken] = field(default_factory=dict)
    """How long it was when each agent last summarised it."""
    history: tuple[Round, ...] = ()
    waiting: tuple[str, ...] = ()
    """The agents that this node asks and that have not come back."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Those of them that failed, and why."""
    retries: int = 0
    overtime: bool = False
    """Whether the time of this round is over."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Agents that take no part any more, and why."""
    carried: tuple[str, ...] = ()
    """Notes on who carried over what it had."""
    steering: tuple[str, ...] = ()
    rankings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    voters: tuple[str, ...] = ()
    """Who was asked to rank the drafts."""
    checks: Mapping[str, str] = field(default_factory=dict)
    """The answers that the registered check was asked about: why it rejects one, "" where it accepts it."""
    evaluation: Evaluation | None = None
    termination: Termination = field(default_factory=Termination)
    solution: Solution | None = None
    reason: str = ""
    is_answered: bool = True
    """False where a closed question ended without an answer."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What nodes from outside keep."""

    def __post_init__(self) -> None:
        if not self.problem.strip():
            raise ValueError("the problem is empty; say what is to be debated")

    @property
    def panel(self) -> tuple[AgentConfig, ...]:
        """The agents that take part now."""
        return tuple(agent for agent in self.configuration.panel if agent.id not in self.left_out)

    @property
    def check(self) -> str:
        """Why the registered check rejects the answer that led first; "" where it does not."""
        return next(iter(self.checks.values()), "")

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the agents that take part now."""
        return tuple(agent.id for agent in self.panel)

    def seat(self, name: str) -> AgentConfig:
        """The seat of this id."""
        judge = self.configuration.judge
        return judge if name == judge.id else next(agent for agent in self.configuration.agents if agent.id == name)
