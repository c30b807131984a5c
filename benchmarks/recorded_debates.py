"""Recorded answers of real models, played through the shipped machine: vote, debate and gated.

    python benchmarks/recorded_debates.py ../shared/evals [--json]

`slm-debates`: every recorded debate with several agents runs through the whole machine, with a Model that answers from
the record: the first answers are the drafts, the later ones the refinements. Accuracy and characters (what is said, and
what an agent is shown of others), with a 95 % interval clustered by question. `mmlu-pro-panel`: the vote over panels of
3, 5 and 9 models, and how many independent voices they are worth.
"""

import argparse
import asyncio
import csv
import gzip
import json
import math
import random
import sys
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, get_args

from panel_runs import Draft, Panel, play
from worlds import rounded, spread, student

from moothall.machines.debate.definition import Answers, Protocol
from moothall.machines.debate.votes import effective_voices, normalise, tally

PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
SIZES = (3, 5, 9)
PANELS = 20
CHOICE = Answers("choice", ("A", "B", "C", "D"))
NUMBER = Answers("number")


def clustered(values: Sequence[float], clusters: Sequence[str]) -> dict[str, float]:
    """The mean and its 95 % interval where values of one cluster go together."""
    mean, sums = math.fsum(values) / len(values), defaultdict(list)
    for value, cluster in zip(values, clusters, strict=True):
        sums[cluster].append(value - mean)
    count = len(sums)
    squares = math.fsum(math.fsum(apart) ** 2 for apart in sums.values())
    error = math.sqrt(count / (count - 1) * squares) / len(values)
    reach = student(count - 1) * error
    return {"mean": mean, "low": mean - reach, "high": mean + reach, "n": len(values), "clusters": count}


def panel_of(row: dict[str, Any]) -> Panel:
    """The panel of a recorded debate."""

    def said(agent: int, number: int, others: object) -> Draft:
        answers, lengths = row["answers"][agent], row["chars"][agent]
        if number >= len(answers):
            return Draft("")
        return Draft(str(answers[number] or ""), characters=lengths[number])

    kinds = {"mmlu": CHOICE, "gsm": NUMBER}
    return Panel(kinds[row["task"]], {f"agent{at}": partial(said, at) for at in range(len(row["answers"]))})


async def play_all(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Every recorded debate, by every protocol."""
    found: dict[str, Any] = {}
    questions = [row["question"] for row in rows]
    for protocol in PROTOCOLS:
        right, characters = [], []
        for row in rows:
            panel = panel_of(row)
            played = await play(panel, protocol, rounds=2)
            right.append(float(played.answer != "" and played.answer == normalise(str(row["gold"]), panel.answers)))
            characters.append(float(played.characters))
        found[protocol] = {"accuracy": clustered(right, questions), "characters": clustered(characters, questions)}
    whole = found["debate"]["characters"]["mean"]
    for protocol in PROTOCOLS:
        found[protocol]["of_debate"] = found[protocol]["characters"]["mean"] / whole
    found["last_round"] = {"accuracy": clustered([_last(row) for row in rows], questions)}
    return found


def _last(row: dict[str, Any]) -> float:
    """Whether the vote over the last answers is right, for comparison: the machine pools all rounds."""
    kind = panel_of(row).answers
    last = tally(normalise(str(answers[-1] or ""), kind) for answers in row["answers"])
    return float(bool(last.leaders) and last.leaders[0] == normalise(str(row["gold"]), kind))


def panels(file: Path, seed: int = 0) -> dict[str, Any]:
    """The vote over panels of some models, and what they are worth."""
    with gzip.open(file, "rt", encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    models = list(rows[0])[4:]
    chance, found = random.Random(seed), {}
    for size in SIZES:
        votes, singles, voices, phis = [], [], [], []
        for _ in range(PANELS):
            chosen = chance.sample(models, size)
            answers = [{model: row[model] for model in chosen if row[model]} for row in rows]
            led = [tally(known.values()) for known in answers]
            votes.append(_share(rows, [one.leaders[0] if one.leaders else "" for one in led]))
            singles.append(sum(_share(rows, [row[model] for row in rows]) for model in chosen) / size)
            voices.append(effective_voices(answers))
            right = [{model: str(row[model] == row["answer"]) for model in chosen} for row in rows]
            phis.append(effective_voices(right))
        found[str(size)] = {
            "vote": spread(votes),
            "single": spread(singles),
            "effective_voices": spread(voices),
            "effective_voices_by_rightness": spread(phis),
        }
    return found


def _share(rows: Sequence[dict[str, str]], answers: Sequence[str]) -> float:
    return sum(answer == row["answer"] for row, answer in zip(rows, answers, strict=True)) / len(rows)


def main() -> None:
    """Measure, and print."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("folder", type=Path)
    cli.add_argument("--json", action="store_true", help="print the answer on one line")
    chosen = cli.parse_args()
    recorded, models = chosen.folder / "slm-debates/debates.jsonl.gz", chosen.folder / "mmlu-pro-panel/answers.csv.gz"
    if not recorded.exists() or not models.exists():
        sys.exit(f"skipped: {chosen.folder} has no slm-debates and mmlu-pro-panel")
    with gzip.open(recorded, "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if len(row["answers"]) > 1]
    answer = {
        "bench": "recorded_debates",
        "slm_debates": asyncio.run(play_all(rows)),
        "mmlu_pro_panel": panels(models),
    }
    print(json.dumps(rounded(answer), indent=None if chosen.json else 2))


if __name__ == "__main__":
    main()
