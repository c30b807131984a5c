"""Who should be next: the shipped arbiter, as it is and after labels, against simple ones and a fitted regression.

    python benchmarks/arbitration.py FILE [--seeds 20] [--json]

Worlds and measures are those of the simulated worlds' description.
"""

import asyncio
import json
import math
import random
import tempfile
from collections.abc import Callable
from dataclasses import replace
from operator import mul
from pathlib import Path
from typing import Any, NamedTuple

import worlds

from moothall import Moothall
from moothall.app.kinds.team.session import Chosen, Session
from moothall.kernel.codec import encode
from moothall.machines.team.arbitration import Proposal, arbitrate
from moothall.machines.team.preference import Label, fit, logit

SITUATIONS = 50
"""How many situations of the first seed also go through the whole machine."""
CRITERIA = ("urgency", "dependency", "user_intent", "confidence")


class Situation(NamedTuple):
    """Who speaks, who proposes, who should be next, who came first."""

    current: str
    proposals: tuple[Proposal, ...]
    right: str
    first: str


Chooser = Callable[[Situation], str]


def situation(world: dict[str, Any], rng: random.Random) -> Situation:
    current = rng.choice(world["personas"])
    others = [persona for persona in world["personas"] if persona != current]
    agents = rng.sample(others, rng.randint(*world["proposals"]))
    drawn = [draw_proposal(world, current, agent, order, rng) for order, agent in enumerate(agents)]
    needs = [need for _, need, _ in drawn]
    right = needs.index(max(needs))
    if rng.random() < world["label_noise"]:
        right = rng.choice([index for index in range(len(drawn)) if index != right])
    haste = [eager for _, _, eager in drawn]
    proposals = tuple(proposal for proposal, _, _ in drawn)
    return Situation(current, proposals, agents[right], agents[haste.index(max(haste))])


def draw_proposal(
    world: dict[str, Any], current: str, agent: str, order: int, rng: random.Random
) -> tuple[Proposal, float, float]:
    """A proposal as it is reported, how much it is needed, and how early it comes."""
    true = {name: rng.betavariate(*world["criterion"]) for name in CRITERIA[:3]}
    true["dependency"] *= 0.89
    blocks = rng.random() < world["blocking_share"]
    if blocks:
        true["dependency"] = rng.uniform(0.92, 1)
    need = sum(world["weights"][name] * value for name, value in true.items())
    need += world["prior_weight"] * world["prior"][current][agent] + rng.gauss(0, world["need_noise"])
    eager = world["eagerness"] * need - math.log(-math.log(rng.random() or 1e-12))
    told = {name: value + rng.gauss(0, world["report_noise"]) for name, value in true.items()}
    told["dependency"] = max(told["dependency"], 0.9) if blocks else min(told["dependency"], 0.89)
    hollow = rng.random() < world["hollow"]
    if hollow:
        told = {name: rng.uniform(0.3, 1) * (0.89 if name == "dependency" else 1) for name in told}
    told["urgency"] += world["shouters"].get(agent, 0)
    if not blocks and rng.random() < world["false_blocking"]:
        told["dependency"] = rng.uniform(0.9, 1)
    seen = {name: round(min(max(value, 0), 1), 2) for name, value in told.items()}
    confidence = round(rng.betavariate(*world["confidence_hollow" if hollow else "confidence_sound"]), 2)
    proposal = Proposal(agent, seen["urgency"], seen["dependency"], seen["user_intent"], confidence, order)
    return proposal, need + (world["blocking_bonus"] if blocks else 0), eager


def best_by(name: str) -> Chooser:
    return lambda case: max(case.proposals, key=lambda proposal: getattr(proposal, name)).agent


def learned(cases: list[Situation]) -> Chooser:
    preference = fit([Label(case.current, case.proposals, case.right) for case in cases])
    return lambda case: preference.arbitrate(case.current, case.proposals).winner


def fitted(cases: list[Situation], personas: list[str]) -> Chooser:
    """The strong baseline: a conditional logit over everything that is known."""
    counts: dict[tuple[str, str], list[int]] = {}
    for case in cases:
        for proposal in case.proposals:
            row = counts.setdefault((case.current, proposal.agent), [0, 0])
            row[0] += proposal.agent == case.right
            row[1] += 1

    def features(case: Situation, proposal: Proposal, is_own: bool) -> tuple[float, ...]:
        right, times = counts.get((case.current, proposal.agent), (0, 0))
        frequency = (right - (is_own and proposal.agent == case.right) + 0.5) / (times - is_own + 1)
        criteria = (proposal.urgency, proposal.dependency, proposal.user_intent)
        return (
            *criteria,
            proposal.confidence,
            float(proposal.dependency >= 0.9),
            *(proposal.confidence * value for value in criteria),
            frequency,
            *(float(proposal.agent == persona) for persona in personas),
        )

    choices = []
    for case in cases:
        rows = tuple(features(case, proposal, True) for proposal in case.proposals)
        choices.append((rows, [proposal.agent for proposal in case.proposals].index(case.right)))
    beta = logit(choices, ridge=1.0)

    def choose(case: Situation) -> str:
        sums = [sum(map(mul, features(case, proposal, False), beta)) for proposal in case.proposals]
        return case.proposals[sums.index(max(sums))].agent

    return choose


def accuracies(world: dict[str, Any], rng: random.Random) -> dict[str, float]:
    train = [situation(world, rng) for _ in range(world["train"])]
    test = [situation(world, rng) for _ in range(world["test"])]

    def share(choose: Chooser, cases: list[Situation]) -> float:
        return sum(choose(case) == case.right for case in cases) / len(cases)

    single = max(CRITERIA, key=lambda name: share(best_by(name), train))
    methods: dict[str, Chooser] = {
        "fixed": lambda case: arbitrate(case.proposals, blocking=False).winner,
        "fixed_blocking": lambda case: arbitrate(case.proposals).winner,
        "learned_50": learned(train[:50]),
        "learned_200": learned(train[:200]),
        "learned_600": learned(train[:600]),
        "first_come": lambda case: case.first,
        "random": lambda case: rng.choice(case.proposals).agent,
        "best_single": best_by(single),
        "fitted": fitted(train, world["personas"]),
    }
    return {name: share(choose, test) for name, choose in methods.items()}


def team_name(name: str) -> str:
    """A persona as a team file may call it."""
    return f"p_{name.lower()}"


def team_of(world: dict[str, Any]) -> dict[str, Any]:
    """The personas of a world as a team in which nobody but arbitration decides."""
    personas = [team_name(name) for name in world["personas"]]
    return {
        "team_name": "world",
        "start": personas[0],
        "groups": [
            {"name": "ALL", "personas": personas},
            {"name": "USER_INTERACTION", "states": ["RespondToUser", "AwaitApproval"]},
        ],
        "personas": [{"id": name, "name": name, "prompt": "ceo.md"} for name in personas],
        "autonomy": {"transitions": "auto", "replies": "auto"},
        "limits": {"visits": 10 * SITUATIONS},
    }


async def chosen_by_machine(world: dict[str, Any], cases: list[Situation], team: Path) -> list[str]:
    """Whom the whole machine gives the word in each situation: whoever speaks has the proposals in its reply."""
    left, winners = list(cases), []

    def player(name: str) -> Callable[[str], Any]:
        async def reply(prompt: str) -> dict[str, Any]:
            if asked and asked[0] == name:
                case = left.pop(0)
                asked.clear()
                named = (replace(proposal, agent=team_name(proposal.agent), order=0) for proposal in case.proposals)
                proposals = [encode(proposal) for proposal in named]
                return {"content": f"situation {len(left)}", "proposals": proposals}
            winners.append(name)
            return {"content": f"{name} at {len(left)}"}

        return reply

    asked: list[str] = []
    async with Moothall("memory", listeners=()) as hall:
        players = {team_name(name): player(team_name(name)) for name in world["personas"]}
        session = await Session.begin(hall, Chosen(str(team), summarise=False), players)
        for case in cases:
            asked.append(team_name(case.current))
            await session.type(f"!switch_to {asked[0]}")
    return winners


def is_machine_equal(world: dict[str, Any]) -> bool:
    """Whether the first situations come out the same in the whole machine, which knows the order of the team file."""
    rng, order = random.Random(f"{world['id']}/0"), {name: at for at, name in enumerate(world["personas"])}
    cases = [situation(world, rng) for _ in range(SITUATIONS)]
    pure = [
        arbitrate([replace(proposal, order=order[proposal.agent]) for proposal in case.proposals]).winner
        for case in cases
    ]
    with tempfile.TemporaryDirectory() as folder:
        team = Path(folder) / "world.json"
        team.write_text(json.dumps(team_of(world)))
        return asyncio.run(chosen_by_machine(world, cases, team)) == [team_name(name) for name in pure]


def measure_world(world: dict[str, Any], seeds: int) -> dict[str, Any]:
    rows = [accuracies(world, random.Random(f"{world['id']}/{seed}")) for seed in range(seeds)]
    compared: dict[str, Callable[[dict[str, float], str], float]] = {
        "lift": lambda row, name: row[name] / row["first_come"] - 1,
        "of_fitted": lambda row, name: row[name] / row["fitted"],
        "over_single": lambda row, name: row[name] - row["best_single"],
    }
    return {
        "id": world["id"],
        "regime": world["regime"],
        "machine_equal": is_machine_equal(world),
        "accuracy": {name: worlds.spread([row[name] for row in rows]) for name in rows[0]},
        **{
            key: {name: worlds.spread([of(row, name) for row in rows]) for name in ("fixed_blocking", "learned_200")}
            for key, of in compared.items()
        },
    }


def measure(file: list[Any], seeds: int) -> dict[str, Any]:
    """All worlds of a file."""
    return {"worlds": [measure_world(world, seeds) for world in file]}


if __name__ == "__main__":
    worlds.main("arbitration", measure, __doc__)
