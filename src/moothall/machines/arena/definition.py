"""An arena's configuration, as values with the names of the file, and the shape of that file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, Literal

from moothall.errors import DefinitionError, Refused
from moothall.kernel.codec import decode
from moothall.kernel.frozen import Frozen
from moothall.machines.arena.consensus import BANDS, ROLE_WEIGHTS
from moothall.machines.arena.identity import Locks
from moothall.machines.arena.plan import AGENTS
from moothall.machines.schema import Shape, choice, inner, number, shape, text
from moothall.machines.workflow.document import Problem

DAY = 86_400.0
LONGEST_TASK = 120.0


class Player(Frozen):
    """Who plays an agent, where that is not left to the run."""

    model: str = ""
    temperature: float | None = None


class Configuration(Frozen):
    """How an arena runs; what is left out is as the rules say."""

    bands: Literal["seed", "cautious"] = "seed"
    weights: Mapping[str, float] = field(default_factory=dict)
    identity: Locks = Locks()
    agents: Mapping[str, Player] = field(default_factory=dict)
    deadline: float = DAY
    timeout: float = LONGEST_TASK


SHAPE = Shape(
    "A configuration of the arena",
    "Arena",
    {
        "Arena": shape(
            "How an arena runs.",
            (),
            {
                "bands": choice("seed, or cautious: from 0.6 to 0.75 a person decides. seed by default.", *BANDS),
                "weights": inner("Weights", "What a vote counts by its role."),
                "identity": inner("Locks", "What has to hold before anything else is touched."),
                "agents": inner("Agents", "Who plays which agent; the run's model plays the others."),
                "deadline": number("Seconds that a person has to decide; a day by default. No answer means no.", 0),
                "timeout": number("Seconds that a task may take; 120 by default.", 0.1),
            },
        ),
        "Weights": shape(
            "The weight of each role.",
            (),
            {role: number(f"{weight:g} by default.") for role, weight in ROLE_WEIGHTS.items()},
        ),
        "Locks": shape(
            "What is locked; what is left out is not.",
            (),
            {
                "cloud_project": text("The cloud project, as GOOGLE_CLOUD_PROJECT names it."),
                "database": text("The database, as MONGODB_DATABASE or DATABASE_URL names it."),
                "workspace": text("The folder that is worked in, as an absolute path."),
                "operator": text("Who runs this."),
            },
        ),
        "Agents": shape("The agents by name.", (), {name: inner("Player", f"Plays the {name}.") for name in AGENTS}),
        "Player": shape(
            "Who plays an agent.",
            (),
            {
                "model": text("A model, such as openai:NAME."),
                "temperature": number("How freely it speaks."),
            },
        ),
    },
)


def findings(plain: Any) -> Iterator[Problem]:
    """Everything that is wrong with a configuration."""
    if not isinstance(plain, Mapping):
        yield Problem("error", "E_TYPE", "", "a configuration is an object", "write { … }")
        return
    yield from SHAPE.misfits(plain)
    weights = plain.get("weights")
    if isinstance(weights, Mapping) and weights and not any(weights.get(role, 1) for role in ROLE_WEIGHTS):
        yield Problem("error", "E_WEIGHTS", "/weights", "no vote counts", "give a role a weight above 0")


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
