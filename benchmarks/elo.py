"""Who is good, learned from noisy outcomes: the worlds of an elo.json, decided and rated by the shipped functions.

    python benchmarks/elo.py FILE [--seeds 50] [--json]

Every game is decided by `consensus` and moves ratings by `settled_ratings`, as in the machine. Beside the three ways to
count votes stand `unrated` (role weights without ratings) and `best_single` (whoever was right most often in the first
half of the games, alone in the second). `machine_equal` says whether the first 50 games of seed 0 come out the same
when the whole machine plays them.
"""

import argparse
import bisect
import json
import math
import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elo_machine import Game, says_the_same

from moothall.machines.arena.consensus import Consensus, Vote, consensus
from moothall.machines.arena.ratings import Rating, Settled, settled_ratings

MACHINE_GAMES = 50
STUDENT = (
    12.71,
    4.30,
    3.18,
    2.78,
    2.57,
    2.45,
    2.36,
    2.31,
    2.26,
    2.23,
    2.20,
    2.18,
    2.16,
    2.14,
    2.13,
    2.12,
    2.11,
    2.10,
    2.09,
)


def summary(values: Sequence[float]) -> dict[str, float]:
    """The mean and its 95 % interval (Student)."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return {"mean": mean, "low": mean, "high": mean, "n": len(values)}
    factor = STUDENT[len(values) - 2] if len(values) - 2 < len(STUDENT) else 1.96 + 2.5 / (len(values) - 1)
    half = factor * statistics.stdev(values) / math.sqrt(len(values))
    return {"mean": mean, "low": mean - half, "high": mean + half, "n": len(values)}


def ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share their mean rank."""
    ordered = sorted(values)
    return [(bisect.bisect_left(ordered, value) + 1 + bisect.bisect_right(ordered, value)) / 2 for value in values]


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's ρ; 0 where one side is constant."""
    left, right = ranks(first), ranks(second)
    if len(set(left)) < 2 or len(set(right)) < 2:
        return 0.0
    return statistics.correlation(left, right)


def nearest_rank(values: Sequence[float], share: float) -> float:
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def sigmoid(value: float) -> float:
    return 1.0 / (1.0 + math.exp(-value))


class World:
    """One seed of one world: its candidates with their ratings, and what the panels said."""

    def __init__(self, world: dict[str, Any], seed: int) -> None:
        self.world = world
        self.draw = random.Random(f"{world['id']}/{seed}")
        self.ratings: dict[str, Rating] = {}
        self.by_kind: dict[str, dict[str, Rating]] = {kind: {} for kind in world["kinds"]}
        self.right: dict[str, list[bool]] = {"weighted": [], "unrated": [], "unweighted": [], "majority": []}
        self.single: dict[str, tuple[list[bool], list[bool]]] = {
            candidate["name"]: ([], []) for role in world["roles"].values() for candidate in role
        }
        self.kinds = list(world["kinds"])
        self.shares = list(world["kinds"].values())
        self.late = any(candidate["from_game"] for role in world["roles"].values() for candidate in role)

    def play(self, number: int) -> Game:
        """One game: what was voted, what the panel reached, and what was learned, if anything."""
        draw, world = self.draw, self.world
        kind = draw.choices(self.kinds, self.shares)[0]
        difficulty = draw.gauss(world["difficulty"]["mean"], world["difficulty"]["sd"])
        chosen = {}
        for role, candidates in world["roles"].items():
            there = [one for one in candidates if one["from_game"] <= number] if self.late else candidates
            chosen[role] = there[int(draw.random() * len(there))]
        quality = {role: sigmoid(candidate["skill"][kind] - difficulty) for role, candidate in chosen.items()}
        good = draw.random() < 0.1 + 0.85 * quality["solution"]
        votes = [self.vote(role, candidate, quality[role], good) for role, candidate in chosen.items()]
        reached = consensus(votes, ratings=self.ratings)
        is_late = 2 * number >= world["games"]
        for vote in votes:
            self.single[vote.agent][is_late].append((vote.verdict == "approve") == good)
        if is_late:
            self.count(votes, reached, good)
        return votes, reached, self.learn(votes, reached, good, kind)

    def vote(self, role: str, candidate: dict[str, Any], quality: float, good: bool) -> Vote:
        habit = candidate["habit"]
        if role == "solution" or habit == "always-approve":
            approves = True
        elif habit == "always-veto":
            approves = False
        else:
            approves = good == (self.draw.random() < 0.5 + 0.48 * quality)
        mean = 0.55 + 0.35 * quality if approves == good else 0.75 - 0.25 * quality
        mean = mean if habit == "honest" else 0.95
        weight = self.world["confidence_concentration"]
        confidence = self.draw.betavariate(mean * weight, (1 - mean) * weight)
        return Vote(role, candidate["name"], "approve" if approves else "reject", confidence)

    def count(self, votes: list[Vote], reached: Consensus, good: bool) -> None:
        pro = sum(vote.confidence for vote in votes if vote.verdict == "approve")
        whole = sum(vote.confidence for vote in votes)
        approvals = sum(vote.verdict == "approve" for vote in votes)
        self.right["weighted"].append((reached.value >= 0.6) == good)
        self.right["unrated"].append((consensus(votes).value >= 0.6) == good)
        self.right["unweighted"].append((pro / whole >= 0.6) == good)
        self.right["majority"].append((approvals / len(votes) >= 0.6) == good)

    def learn(self, votes: list[Vote], reached: Consensus, good: bool, kind: str) -> Settled | None:
        """What is observed of the plan moves the ratings: its outcome, or what a person says who looked at it."""
        draw, world = self.draw, self.world
        if reached.veto is None and reached.value >= 0.6:
            settled = Settled(good != (draw.random() < world["outcome_noise"]), "outcome")
        elif draw.random() < world["review"]:
            settled = Settled(good != (draw.random() < world["review_noise"]), "person", reached.veto or "")
        else:
            return None
        self.ratings.update(settled_ratings(votes, settled, self.ratings)[0])
        if world["regime"] == "kinds":
            self.by_kind[kind].update(settled_ratings(votes, settled, self.by_kind[kind])[0])
        return settled

    def best_single(self) -> float:
        """How often the agent was right in the second half that was right most often in the first."""
        early = {name: statistics.fmean(first) for name, (first, last) in self.single.items() if first and last}
        return statistics.fmean(self.single[max(early, key=lambda name: early[name])][1])

    def rho(self, role: str, ratings: dict[str, Rating], kind: str = "") -> float:
        """Spearman's ρ of rating against skill inside a role, of one kind or of all."""
        candidates = [one for one in self.world["roles"][role] if not one["habit"].startswith("always-")]
        shares = self.world["kinds"]
        skills = [
            one["skill"][kind] if kind else sum(share * one["skill"][name] for name, share in shares.items())
            for one in candidates
        ]
        return spearman([ratings.get(one["name"], Rating()).elo for one in candidates], skills)

    def special(self) -> list[tuple[str, str, float, bool, float]]:
        """Candidates with a habit: rating, whether above the median of the role's others, and rank."""
        rows = []
        for candidates in self.world["roles"].values():
            elos = {one["name"]: self.ratings.get(one["name"], Rating()).elo for one in candidates}
            for one in candidates:
                habit = one["habit"] if one["habit"] != "honest" else "newcomer" if one["from_game"] else ""
                if habit:
                    mine = elos[one["name"]]
                    others = [elo for name, elo in elos.items() if name != one["name"]]
                    rank = 1 + sum(elo > mine for elo in others)
                    rows.append((one["name"], habit, mine, mine > statistics.median(others), rank))
        return rows


def run_world(world: dict[str, Any], seeds: int) -> dict[str, Any]:
    """All seeds of a world, in the shape that the worlds' README asks for."""
    rho: dict[str, dict[int, list[float]]] = {
        role: {checkpoint: [] for checkpoint in world["checkpoints"]} for role in world["roles"]
    }
    rho_kind: dict[str, dict[str, list[float]]] = {
        role: {kind: [] for kind in world["kinds"]} for role in world["roles"]
    }
    names = ("weighted", "unrated", "unweighted", "majority", "gain", "best_single")
    shares: dict[str, list[float]] = {name: [] for name in names}
    special: dict[tuple[str, str], list[tuple[float, bool, float]]] = {}
    for seed in range(seeds):
        state = World(world, seed)
        for number in range(world["games"]):
            state.play(number)
            if number + 1 in world["checkpoints"]:
                for role in rho:
                    rho[role][number + 1].append(state.rho(role, state.ratings))
        for role in rho_kind:
            for kind in rho_kind[role]:
                rho_kind[role][kind].append(state.rho(role, state.by_kind[kind], kind))
        for name, right in state.right.items():
            shares[name].append(statistics.fmean(right))
        shares["gain"].append(shares["weighted"][-1] - shares["unweighted"][-1])
        shares["best_single"].append(state.best_single())
        for name, habit, rating, above, rank in state.special():
            special.setdefault((name, habit), []).append((rating, above, rank))
    return {
        "id": world["id"],
        "regime": world["regime"],
        "machine_equal": machine_equal(world),
        "rho": {role: {str(at): spread(values) for at, values in rows.items()} for role, rows in rho.items()},
        "rho_kind": {role: {kind: spread(values) for kind, values in rows.items()} for role, rows in rho_kind.items()}
        if world["regime"] == "kinds"
        else None,
        "consensus": {name: summary(values) for name, values in shares.items()},
        "special": [
            {
                "agent": name,
                "habit": habit,
                "rating": summary([row[0] for row in rows]),
                "above_start": statistics.fmean(row[0] > 1200 for row in rows),
                "above_median": statistics.fmean(row[1] for row in rows),
                "mean_rank": statistics.fmean(row[2] for row in rows),
            }
            for (name, habit), rows in special.items()
        ],
    }


def machine_equal(world: dict[str, Any]) -> bool:
    """Whether the first games of seed 0 come out the same when the whole machine plays them."""
    state = World(world, 0)
    games = [state.play(number) for number in range(MACHINE_GAMES)]
    return says_the_same(games, state.ratings)


def spread(values: Sequence[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "p5": nearest_rank(values, 0.05)}


def run_file(path: Path, seeds: int) -> dict[str, Any]:
    """All worlds of a file."""
    start = time.process_time()
    worlds = [run_world(world, seeds) for world in json.loads(path.read_text())]
    spent = time.process_time() - start
    return {"bench": "elo", "file": str(path), "seeds": seeds, "cpu_seconds": spent, "worlds": worlds}


def show(result: dict[str, Any]) -> None:
    for world in result["worlds"]:
        last = {role: list(rows.values())[-1] for role, rows in world["rho"].items()}
        told = ", ".join(f"{role} {row['median']:.2f} / {row['p5']:.2f}" for role, row in last.items())
        counted = world["consensus"]
        gain = counted["gain"]
        ways = ("weighted", "unrated", "unweighted", "majority", "best_single")
        right = ", ".join(f"{name} {counted[name]['mean']:.3f}" for name in ways)
        equal = "" if world["machine_equal"] else " (THE MACHINE SAYS OTHERWISE)"
        print(f"{world['id']} {world['regime']}{equal}: ρ median / 5th percentile: {told}")
        print(f"  right: {right}; gain {gain['mean']:+.4f} ({gain['low']:+.4f} to {gain['high']:+.4f})")
        for row in world["special"]:
            print(f"  {row['agent']} ({row['habit']}): above the median in {row['above_median']:.0%} of seeds")
    print(f"{result['cpu_seconds']:.0f} s of processor time")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    result = run_file(options.file, options.seeds)
    if options.json:
        print(json.dumps(result))
    else:
        show(result)


if __name__ == "__main__":
    main()
