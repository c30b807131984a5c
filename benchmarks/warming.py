"""Whom to prepare while another speaks: the shipped predictor against the rule of the document and two simple ones.

    python benchmarks/warming.py FILE [--seeds 20] [--json]

Worlds and measures are those of the simulated worlds' description: saved time as a share of what a predictor that
knows the next persona would save, warmings wasted per turn, hits, and how much faster answers come than without.
"""

import asyncio
import json
import random
import tempfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import worlds

from moothall import Moothall
from moothall.app.kinds.team.session import Chosen, Session
from moothall.machines.team.warmth import Handoff, Learned, Prediction, Predictor, SeedRule, Tables, Warmth

HANDOFFS = 100
"""How many handoffs of the first seed also go through the whole machine."""


class Turn(NamedTuple):
    """One turn of a world."""

    number: int
    speaker: str
    words: frozenset[str]
    next: str
    factor: float
    speaking: float
    answering: float


def turns(world: dict[str, Any], rng: random.Random) -> Iterator[Turn]:
    personas, keywords = world["personas"], world["keywords"]
    modes, shares = zip(*world["mix"].items(), strict=True)
    speaker = rng.choice(personas)
    for number in range(world["past"] + world["turns"]):
        words = {word for word in keywords if rng.random() < world["keyword_rate"]}
        mode = rng.choices(modes, shares)[0]
        if mode == "context":
            if not led_to(keywords, words, speaker):
                words.add(rng.choice([word for word in keywords if led_to(keywords, (word,), speaker)]))
            coming = rng.choice(led_to(keywords, words, speaker))
        elif mode == "dependency" and world["dependencies"].get(speaker):
            coming = rng.choice(world["dependencies"][speaker])
        elif mode == "rest":
            coming = rng.choice([persona for persona in personas if persona != speaker])
        else:
            changed = number >= world["past"] and world["habit_after"] is not None
            row = (world["habit_after"] if changed else world["habit"])[speaker]
            coming = rng.choices(list(row), list(row.values()))[0]
        factor = rng.lognormvariate(0, world["prepare_spread"])
        speaking = world["speak_ms"][0] * rng.lognormvariate(0, world["speak_ms"][1])
        answering = world["answer_ms"][0] * rng.lognormvariate(0, world["answer_ms"][1])
        yield Turn(number, speaker, frozenset(words), coming, factor, speaking, answering)
        speaker = coming


def led_to(keywords: dict[str, list[str]], words: Collection[str], speaker: str) -> list[str]:
    return sorted({persona for word in words for persona in keywords[word] if persona != speaker})


class Nobody:
    """Prepares nobody."""

    def predict(self, speaker: str, words: Collection[str]) -> tuple[Prediction, ...]:
        return ()

    def observed(self, handoff: Handoff) -> "Nobody":
        return self


@dataclass
class MostFrequent:
    """Prepares whoever came next most often so far."""

    counts: dict[str, dict[str, int]] = field(default_factory=dict)

    def predict(self, speaker: str, words: Collection[str]) -> tuple[Prediction, ...]:
        row = self.counts.get(speaker, {})
        return (Prediction(max(row, key=row.__getitem__), 1.0),) if row else ()

    def observed(self, handoff: Handoff) -> "MostFrequent":
        row = self.counts.setdefault(handoff.speaker, {})
        row[handoff.next] = row.get(handoff.next, 0) + 1
        return self


def play(world: dict[str, Any], story: list[Turn], predictor: Predictor | None) -> dict[str, float]:
    """The sums over the measured turns; without a predictor the next persona is known."""
    warmth = Warmth(world["keep_turns"])
    sums = dict.fromkeys(("saved", "wasted", "hit", "response"), 0.0)
    for turn in story:
        known = (Prediction(turn.next, 1.0),)
        warmth = warmth.began(known if predictor is None else predictor.predict(turn.speaker, turn.words))
        since = next((warm.since for warm in warmth.warm if warm.persona == turn.next), None)
        preparing = world["prepare_ms"][turn.next] * turn.factor
        left = preparing if since is None else max(0.0, preparing - turn.speaking) if since == warmth.turn else 0.0
        warmth, wasted = warmth.handed(turn.next)
        if turn.number >= world["past"]:
            sums["saved"] += preparing - left
            sums["wasted"] += wasted
            sums["hit"] += since is not None
            sums["response"] += left + turn.answering
        if predictor is not None:
            predictor = predictor.observed(Handoff(turn.speaker, turn.words, turn.next, wasted))
    return sums


def team_of(world: dict[str, Any], start: str) -> dict[str, Any]:
    """The personas of a world as a team that learns whom to prepare."""
    return {
        "team_name": "world",
        "start": start,
        "groups": [
            {"name": "ALL", "personas": world["personas"]},
            {"name": "USER_INTERACTION", "states": ["RespondToUser", "AwaitApproval"]},
        ],
        "personas": [{"id": name, "name": name, "prompt": "ceo.md"} for name in world["personas"]],
        "warming": {
            "predictor": "learned",
            "keep_turns": world["keep_turns"],
            "keywords": world["keywords"],
            "dependencies": world["dependencies"],
        },
        "autonomy": {"transitions": "auto", "replies": "auto"},
        "limits": {"turns": 2 * HANDOFFS, "visits": 2 * HANDOFFS},
    }


def warmed_by_function(world: dict[str, Any], story: list[Turn]) -> list[set[str]]:
    """Who is warm in each turn, by the functions alone."""
    warmth, shown = Warmth(world["keep_turns"]), list[set[str]]()
    predictor: Predictor = Learned(Tables(tuple(world["personas"]), world["dependencies"], world["keywords"]))
    for turn in story:
        warmth = warmth.began(predictor.predict(turn.speaker, turn.words))
        shown.append({warm.persona for warm in warmth.warm})
        warmth, wasted = warmth.handed(turn.next)
        predictor = predictor.observed(Handoff(turn.speaker, turn.words, turn.next, wasted))
    return shown


async def warmed_by_machine(world: dict[str, Any], story: list[Turn], team: Path) -> list[set[str]]:
    """Who is warm in each turn of a conversation in which everybody hands on as the world says."""
    left, shown = list(story), list[set[str]]()

    def player(name: str) -> Callable[[str], Any]:
        async def reply(prompt: str) -> dict[str, Any]:
            turn = left.pop(0)
            assert turn.speaker == name
            shown.append({warm.persona for warm in (await session.look()).warmth.warm})
            if not left:
                return {"content": "Done."}
            content = f"Turn {turn.number}: {' '.join(sorted(left[0].words))}"
            return {"content": content, "transition": "HANDOFF_TO_AGENT", "next_agent": turn.next}

        return reply

    async with Moothall("memory", listeners=()) as hall:
        players = {name: player(name) for name in world["personas"]}
        session = await Session.begin(hall, Chosen(str(team), summarise=False), players)
        await session.say(f"Begin: {' '.join(sorted(story[0].words))}")
    return shown


def is_machine_equal(world: dict[str, Any]) -> bool:
    """Whether the same personas are warm in the first turns of the whole machine."""
    text = json.dumps({name: world[name] for name in world if name != "id"})
    for name in world["personas"]:
        text = text.replace(json.dumps(name), json.dumps(f"p_{name.lower()}"))  # as a team file may call them
    named = json.loads(text)
    story = list(turns(named, random.Random(f"{world['id']}/0")))[:HANDOFFS]
    with tempfile.TemporaryDirectory() as folder:
        team = Path(folder) / "world.json"
        team.write_text(json.dumps(team_of(named, story[0].speaker)))
        return asyncio.run(warmed_by_machine(named, story, team)) == warmed_by_function(named, story)


def measure_world(world: dict[str, Any], seeds: int) -> dict[str, Any]:
    tables = Tables(tuple(world["personas"]), world["dependencies"], world["keywords"])
    figures: dict[str, dict[str, list[float]]] = {}
    for seed in range(seeds):
        story = list(turns(world, random.Random(f"{world['id']}/{seed}")))
        cases: dict[str, Predictor | None] = {
            "none": Nobody(),
            "perfect": None,
            "habit_top1": MostFrequent(),
            "seed": SeedRule(tables),
            "moothall": Learned(tables),
        }
        sums = {case: play(world, story, predictor) for case, predictor in cases.items()}
        for case, got in sums.items():
            values = {
                "of_perfect": got["saved"] / sums["perfect"]["saved"],
                "wasted": got["wasted"] / world["turns"],
                "hit": got["hit"] / world["turns"],
                "faster": 1 - got["response"] / sums["none"]["response"],
            }
            for key, value in values.items():
                figures.setdefault(case, {}).setdefault(key, []).append(value)
    cases_of = {case: {key: worlds.spread(values) for key, values in rows.items()} for case, rows in figures.items()}
    return {"id": world["id"], "regime": world["regime"], "machine_equal": is_machine_equal(world), "cases": cases_of}


def measure(file: list[Any], seeds: int) -> dict[str, Any]:
    """All worlds of a file."""
    return {"worlds": [measure_world(world, seeds) for world in file]}


if __name__ == "__main__":
    worlds.main("warming", measure, __doc__)
