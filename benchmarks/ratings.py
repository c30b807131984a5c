"""How well ratings find the better model from few duels, on recorded judgements of real debates.

    python benchmarks/ratings.py SHARED [--votes 200] [--models 8] [--resamples 200] [--json]

SHARED is the folder that holds `evals/debate-duels-2026`. Again and again, so many models are drawn that have enough
votes among them, and so many of these votes. Spearman's ρ is that of the rating against three yardsticks: the published
rating, the fit over every vote of all models, and the fit over all votes among those drawn (of which the drawn votes
are a part). The busiest models are measured beside it: most of them are almost equally strong. The panel of judges,
too: how often the side that a consensus weighted by the judges' record prefers is the one with the higher published
rating, against the unweighted one, with an interval over debates, beside the best single judge.
"""

import argparse
import csv
import gzip
import json
import random
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

from elo import nearest_rank, spearman

from moothall.machines.arena.consensus import Vote, consensus
from moothall.machines.arena.ratings import Rating, bradley_terry, elo, k_of


def judgements(folder: Path) -> list[dict[str, str]]:
    with gzip.open(folder / "judgments.csv.gz", "rt", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["winner"] in (row["pro"], row["con"])]


def live_ratings(duels: list[tuple[str, str]], k: float | None) -> dict[str, float]:
    """Elo over duels in order, with a constant K or the one that shrinks with games."""
    ratings: dict[str, float] = {}
    games: Counter[str] = Counter()
    for winner, loser in duels:
        mine, theirs = ratings.get(winner, 1200.0), ratings.get(loser, 1200.0)
        ratings[winner] = elo(mine, theirs, 1.0, k=k if k is not None else k_of(games[winner]))
        ratings[loser] = elo(theirs, mine, 0.0, k=k if k is not None else k_of(games[loser]))
        games.update((winner, loser))
    return ratings


def rank_correlations(rows: list[dict[str, str]], published: dict[str, float], options: argparse.Namespace) -> Any:
    rows = [row for row in rows if row["pro"] in published and row["con"] in published]
    busy = Counter(name for row in rows for name in (row["pro"], row["con"]))
    busiest = [name for name, _ in busy.most_common(options.models)]
    draw = random.Random(1)
    drawn = [eight(rows, sorted(busy), options, draw) for _ in range(options.resamples)]
    return {
        "drawn_models": resampled(rows, drawn, published, options.votes),
        "busiest_models": resampled(rows, [busiest] * options.resamples, published, options.votes),
    }


def eight(rows: list[dict[str, str]], names: list[str], options: argparse.Namespace, draw: random.Random) -> list[str]:
    """So many models, drawn until there are enough votes among them."""
    pairs = Counter((row["pro"], row["con"]) for row in rows)
    while True:
        models = draw.sample(names, options.models)
        if sum(pairs[first, second] for first in models for second in models) >= options.votes:
            return models


def resampled(
    rows: list[dict[str, str]], drawn: list[list[str]], published: dict[str, float], votes: int
) -> dict[str, Any]:
    """Median and 5th percentile of ρ over sets of models, so many votes drawn for each, by method and yardstick."""
    every = {name: fitted.rating for name, fitted in bradley_terry(map(duel_of, rows)).items()}
    draw = random.Random(2)
    rho: dict[str, list[float]] = {}
    counts = []
    for models in drawn:
        among = [row for row in rows if row["pro"] in models and row["con"] in models]
        counts.append(len(among))
        duels = [duel_of(row) for row in draw.sample(among, min(votes, len(among)))]
        found = {
            "bradley_terry": {name: fitted.rating for name, fitted in bradley_terry(duels).items()},
            "elo": live_ratings(duels, None),
            "elo_k16": live_ratings(duels, 16),
        }
        inside = {name: fitted.rating for name, fitted in bradley_terry(map(duel_of, among)).items()}
        for yardstick, truth in {"published": published, "every_vote": every, "votes_among_them": inside}.items():
            wanted = [truth.get(name, 1200.0) for name in models]
            for method, ratings in found.items():
                rated = [ratings.get(name, 1200.0) for name in models]
                rho.setdefault(f"{method} against {yardstick}", []).append(spearman(rated, wanted))
    return {
        "votes_among_them": statistics.median(counts),
        **{
            name: {"median": statistics.median(values), "p5": nearest_rank(values, 0.05)}
            for name, values in rho.items()
        },
    }


def duel_of(row: dict[str, str]) -> tuple[str, str]:
    """Winner and loser of a vote."""
    return row["winner"], row["con"] if row["winner"] == row["pro"] else row["pro"]


def panels(rows: list[dict[str, str]]) -> Any:
    """Judges as a panel over debates in order: does weighing them by their record find the stronger side more often?"""
    debates: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        debates.setdefault(row["debate"], []).append(row)
    return [group for group in debates.values() if len(group) >= 2]


def panel_gain(rows: list[dict[str, str]], published: dict[str, float]) -> Any:
    records: dict[str, Rating] = {}
    outcomes: list[tuple[bool, bool]] = []
    single: dict[str, list[bool]] = {}
    for group in panels(rows):
        pro, con = group[0]["pro"], group[0]["con"]
        if pro not in published or con not in published or published[pro] == published[con]:
            continue
        truth = published[pro] > published[con]
        votes = {
            row["judge"]: Vote(
                "analyst",
                row["judge"],
                "approve" if row["winner"] == pro else "reject",
                min(1.0, abs(float(row["margin_pro"])) / 5),
            )
            for row in group
        }
        weighted = consensus(votes.values(), ratings=records).value > 0.5
        unweighted = consensus(votes.values()).value > 0.5
        outcomes.append((weighted == truth, unweighted == truth))
        for judge, vote in votes.items():
            right = (vote.verdict == "approve") == truth
            single.setdefault(judge, []).append(right)
            before = records.get(judge, Rating())
            records[judge] = Rating(1200, before.games + 1, before.wins + right)
    draw = random.Random(2)
    gains = []
    for _ in range(1000):
        sample = draw.choices(outcomes, k=len(outcomes))
        gains.append(statistics.fmean(first - second for first, second in sample))
    best = max(
        (judge for judge in single if len(single[judge]) >= 100), key=lambda judge: statistics.fmean(single[judge])
    )
    return {
        "debates": len(outcomes),
        "weighted": statistics.fmean(first for first, _ in outcomes),
        "unweighted": statistics.fmean(second for _, second in outcomes),
        "gain": statistics.fmean(first - second for first, second in outcomes),
        "gain_low": nearest_rank(gains, 0.025),
        "gain_high": nearest_rank(gains, 0.975),
        "best_single": {"judge": best, "right": statistics.fmean(single[best]), "votes": len(single[best])},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("shared", type=Path)
    parser.add_argument("--votes", type=int, default=200)
    parser.add_argument("--models", type=int, default=8)
    parser.add_argument("--resamples", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    folder = options.shared / "evals" / "debate-duels-2026"
    if not folder.exists():
        print(f"{folder} is not here; nothing is measured")
        return
    rows = judgements(folder)
    with (folder / "published_bt.csv").open(encoding="utf-8") as file:
        published = {row["model"]: float(row["bt"]) for row in csv.DictReader(file)}
    result = {"rho": rank_correlations(rows, published, options), "panel": panel_gain(rows, published)}
    print(json.dumps(result) if options.json else json.dumps(result, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
