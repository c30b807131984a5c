"""Panels that answer closed questions: the worlds of a panels.json, by vote, debate and gated.

    python benchmarks/panels.py FILE [--seeds 20] [--questions 200] [--json]

The shipped functions of the machine count, gate and check all questions. The first ones of seed 0 also go through the
whole machine with a simulated Model and the same draws, and must come out the same: `machine_equal` (vote and gated).
"debate" is two rounds of critique and refinement and a vote over the last answers, as the worlds define it. A tie is
decided by the judge, who knows no better here: the first of the leading answers in the order of their names, which is
chance, since the right one has any name. The regime where we lose: `debate-helps` without a check, where a majority is
often wrong and a debate would have mended it (`worse` names the cells).
"""

import argparse
import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from panel_runs import Draft, Panel, play
from worlds import rounded, spread

from moothall.machines.debate.definition import Answers
from moothall.machines.debate.votes import Ballot, elect, holds, next_to_check, tally

ROUNDS = 2
AGREED = 0.8
"""The machine's default: from which agreement on a debate ends."""
WHOLE = 20
"""So many questions of a world go through the whole machine."""
World = Mapping[str, Any]


class Said(NamedTuple):
    """An agent's answer, and how sure it says it is (0–100)."""

    answer: str
    confidence: float


class Question:
    """One question of a world: every draw that any protocol may need, each from a seed of its own."""

    def __init__(self, world: World, seed: str) -> None:
        self.world, self.seed = world, seed
        chance = random.Random(f"{seed}/drafts")
        self.options = tuple("ABCDEFGHIJ"[: world["options"]])
        self.right = chance.choice(self.options)
        self.wrong = [option for option in self.options if option != self.right]
        self.drafts = self._drafts(chance)

    def _drafts(self, chance: random.Random) -> list[Said]:
        accuracy = self.world["accuracy"]
        if chance.random() < self.world["correlation"]:
            is_right = chance.random() < sum(accuracy) / len(accuracy)
            shared = self.right if is_right else chance.choice(self.wrong)
            return [self._sure(shared, chance) for _ in accuracy]
        answers = [self.right if chance.random() < p else chance.choice(self.wrong) for p in accuracy]
        return [self._sure(answer, chance) for answer in answers]

    def _sure(self, answer: str, chance: random.Random) -> Said:
        shape = self.world["confidence_right" if answer == self.right else "confidence_wrong"]
        return Said(answer, round(100 * chance.betavariate(*shape), 3))

    def refined(self, agent: int, number: int, own: str, others: Sequence[str]) -> Said:
        """What an agent says after it has seen the others' answers."""
        chance = random.Random(f"{self.seed}/{agent}/{number}")
        share = sum(answer == self.right for answer in others) / len(others)
        draw, answer = chance.random(), own
        wrong = Counter(answer for answer in others if answer != self.right)
        if own != self.right and draw < self.world["persuade_right"] * share:
            answer = self.right
        elif own == self.right and wrong and draw < self.world["persuade_wrong"] * (1 - share):
            answer = min(wrong, key=lambda option: (-wrong[option], option))
        return self._sure(answer, chance)

    def accepts(self, answer: str) -> bool:
        """What the external check says to an answer; the same each time."""
        check = self.world["check"]
        draw = random.Random(f"{self.seed}/check/{answer}").random()
        return draw < check["sensitivity"] if answer == self.right else draw >= check["specificity"]

    def rounds(self) -> list[list[Said]]:
        """The drafts, and what is said after each round of a debate."""
        found = [self.drafts]
        for number in range(1, ROUNDS + 1):
            answers = [said.answer for said in found[-1]]
            found.append(
                [
                    self.refined(agent, number, own, [*answers[:agent], *answers[agent + 1 :]])
                    for agent, own in enumerate(answers)
                ]
            )
        return found


class Decided(NamedTuple):
    """What a protocol answers, and what it cost."""

    answer: str
    tokens: float


def vote(question: Question) -> Decided:
    """The vote over the drafts."""
    costs, agents = question.world["tokens"], len(question.drafts)
    counted = tally(said.answer for said in question.drafts)
    return Decided(counted.leaders[0], agents * costs["draft"] + costs["judge"])


def debated(question: Question) -> Decided:
    """The vote over the last answers of two rounds."""
    counted = tally(said.answer for said in question.rounds()[-1])
    return Decided(counted.leaders[0], vote(question).tokens + ROUNDS * _round_cost(question))


def gated(question: Question) -> Decided:
    """A vote weighed by confidence first; a debate where none holds, or where the check rejects every answer.

    The debate ends as debates do: the judge, who knows no better than the count, is asked after each round.
    """
    ballots, checks = _ballots(question.drafts), dict[str, str]()
    tokens, check = vote(question).tokens, question.world["check"]
    while check and (answer := next_to_check(ballots, checks)):
        checks[answer] = "" if question.accepts(answer) else "it is rejected"
        tokens += check["tokens"]
    if not holds(ballots, checks):
        for said in question.rounds()[1:]:
            ballots = [*ballots, *_ballots(said)]
            tokens += _round_cost(question) + question.world["tokens"]["judge"]
            if tally(one.answer for one in said).share >= AGREED:
                break
    return Decided(elect(ballots, checks).leaders[0], tokens)


def _ballots(said: Sequence[Said]) -> list[Ballot]:
    return [Ballot(one.answer, max(one.confidence, 1.0)) for one in said]


def _round_cost(question: Question) -> float:
    costs, agents = question.world["tokens"], len(question.drafts)
    return float(agents * ((agents - 1) * costs["critique"] + costs["refinement"]))


PROTOCOLS: dict[str, Callable[[Question], Decided]] = {"vote": vote, "debate": debated, "gated": gated}


def panel_of(question: Question) -> Panel:
    """A question as a panel that the whole machine can ask."""
    names = [f"agent{at:02}" for at in range(len(question.drafts))]
    said: dict[str, str] = {}

    def draft(agent: int, number: int, others: Mapping[str, str]) -> Draft:
        name = names[agent]
        now = (
            question.drafts[agent]
            if number == 0
            else question.refined(agent, number, said[name], [others[other] for other in names if other != name])
        )
        said[name] = now.answer
        return Draft(now.answer, now.confidence)

    check = question.accepts if question.world["check"] else None
    drafts = {name: partial(draft, at) for at, name in enumerate(names)}
    return Panel(Answers("choice", question.options), drafts, check)


async def is_equal(world: World, seed: str, questions: int) -> bool:
    """Whether the whole machine answers as the functions do, and makes as many calls as they are charged for."""
    for number in range(questions):
        question = Question(world, f"{seed}/{number}")
        for protocol in ("vote", "gated"):
            played = await play(panel_of(question), protocol, ROUNDS)
            costs, agents = world["tokens"], len(question.drafts)
            tokens = agents * costs["draft"] + costs["judge"] + played.reviews * costs["critique"]
            tokens += played.refinements * costs["refinement"] + played.judgements * costs["judge"]
            tokens += played.checks * world["check"]["tokens"] if world["check"] else 0
            if Decided(played.answer, tokens) != PROTOCOLS[protocol](question):
                return False
    return True


def measure(world: World, seeds: int, questions: int) -> dict[str, Any]:
    """A world: accuracy and tokens per question of every protocol, over seeds."""
    found: dict[str, Any] = {"id": world["id"], "regime": world["regime"]}
    found["machine_equal"] = asyncio.run(is_equal(world, f"{world['id']}/0", min(WHOLE, questions)))
    results: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in PROTOCOLS}
    for seed in range(seeds):
        asked = [Question(world, f"{world['id']}/{seed}/{number}") for number in range(questions)]
        for name, protocol in PROTOCOLS.items():
            decided = [(protocol(question), question.right) for question in asked]
            results[name][0].append(sum(one.answer == right for one, right in decided) / questions)
            results[name][1].append(sum(one.tokens for one, _ in decided) / questions)
    return found | {
        name: {"accuracy": spread(right), "tokens": spread(cost)} for name, (right, cost) in results.items()
    }


def totals(worlds: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All worlds together: the mean, the share of debate's tokens, and in how many gated is within two points."""

    def mean(name: str, what: str) -> float:
        return sum(world[name][what]["mean"] for world in worlds) / len(worlds)

    best = [max(world[name]["accuracy"]["mean"] for name in ("vote", "debate")) for world in worlds]
    near = sum(world["gated"]["accuracy"]["mean"] >= other - 0.02 for world, other in zip(worlds, best, strict=True))
    return {
        **{name: mean(name, "accuracy") for name in PROTOCOLS},
        "gated_of_debate_tokens": mean("gated", "tokens") / mean("debate", "tokens"),
        "gated_within_2_points": near,
        "of": len(worlds),
        "worse": [
            world["id"]
            for world, other in zip(worlds, best, strict=True)
            if world["gated"]["accuracy"]["mean"] < other - 0.02
        ],
    }


def main() -> None:
    """Measure, and print."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("file", type=Path)
    cli.add_argument("--seeds", type=int, default=20)
    cli.add_argument("--questions", type=int, default=200)
    cli.add_argument("--json", action="store_true", help="print the whole answer on one line")
    chosen = cli.parse_args()
    start = time.process_time()
    worlds = [measure(world, chosen.seeds, chosen.questions) for world in json.loads(chosen.file.read_text("utf-8"))]
    frame = {"bench": "panels", "file": chosen.file.name, "seeds": chosen.seeds}
    answer = {**frame, "cpu_seconds": time.process_time() - start, "worlds": worlds, "totals": totals(worlds)}
    print(json.dumps(rounded(answer), indent=None if chosen.json else 2))


if __name__ == "__main__":
    main()
