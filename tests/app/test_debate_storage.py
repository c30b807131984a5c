"""What a long debate costs to keep and to tell: a message is stored once, and what is sent per round stops growing."""

import asyncio
import json
import random
import re
import sqlite3
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from moothall.app.kinds.debate import begin
from moothall.app.runs.moothall import Moothall
from moothall.machines.debate import debate, size_of
from moothall.machines.debate.definition import AgentConfig, Configuration, DebateConfig, Summarization
from moothall.machines.debate.state import Debate

ROUNDS, AGENTS = 5, 7
NAMES = tuple(f"agent{number}" for number in range(AGENTS))
WORDS = [f"word{number}" for number in range(3_000)]


class Talkers:
    """Agents that say something new and long each time; a summary is 40 % of what it is of, and at most so long."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.said: dict[str, str] = {}
        self.sent: defaultdict[tuple[str, int], int] = defaultdict(int)
        self.round = 1

    def text(self, tag: str, length: int) -> str:
        chance, text = random.Random(tag), f"<{tag}>"
        while len(text) < length:
            text += " " + chance.choice(WORDS)
        self.said[tag] = text[:length]
        return text[:length]

    def agent(self, name: str) -> Any:
        async def reply(prompt: str) -> Any:
            tag, kind = f"{name}-{len(self.said)}", _kind(prompt)
            self.sent[kind, self.round] += len(prompt)
            match kind:
                case "propose" | "refine":
                    return {"text": self.text(f"{kind}-{tag}", 2_000), "confidence": 60}
                case "critique":
                    match = re.search(r"each label \((.*?)\)", prompt)
                    assert match is not None
                    labels = match[1].split(", ")
                    return {
                        "reviews": [{"label": label, "text": self.text(f"c-{tag}-{label}", 600)} for label in labels]
                    }
                case "summarise":
                    return {"text": self.text(f"s-{tag}", min(int(0.4 * len(prompt)), self.most))}
                case "rank":
                    return {"ranking": ["A"]}
                case "evaluate":
                    self.round += 1
                    return {"confidence": 1}
            return {"description": "the end"}

        return reply


def _kind(prompt: str) -> str:
    begins = {
        "Propose a solution": "propose",
        "You review": "critique",
        "Refine your own": "refine",
        "Summarise the debate": "summarise",
        "Rank these": "rank",
        "After round": "evaluate",
    }
    return next((kind for words, kind in begins.items() if words in prompt), "synthesise")


@pytest.fixture(scope="module")
def talked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Talkers, Path]:
    file = tmp_path_factory.mktemp("long") / "long.db"
    talkers = Talkers(Summarization().maxLength)
    panel = tuple(AgentConfig(name) for name in NAMES)
    data = begin(Debate("Which way?", configuration=Configuration(panel, debate=DebateConfig(rounds=ROUNDS))))

    async def run() -> None:
        agents = {name: talkers.agent(name) for name in (*NAMES, "judge")}
        async with Moothall(f"sqlite:{file}", listeners=()) as hall:
            outcome = await hall.run(debate(size_of(data)), data, agents=agents)
        assert outcome.status == "done"

    asyncio.run(run())
    return talkers, file


@pytest.mark.unreplayed
def test_a_debate_of_five_rounds_and_seven_agents_stores_each_message_once(
    talked: tuple[Talkers, Path], figure: list[str]
) -> None:
    talkers, file = talked
    with sqlite3.connect(file) as store:
        kept = [_as_text(body) for (body,) in store.execute("SELECT body FROM texts")]
        entries = [_as_text(body) for (body,) in store.execute("SELECT body FROM entries")]
    raw = [text for text in kept if text.startswith("{")]
    once = Counter(tag for text in kept if not text.startswith("{") for tag in re.findall(r"<([\w-]+)>", text))
    assert set(once) == set(talkers.said)
    assert set(once.values()) == {1}
    assert not any(f"<{tag}>" in entry for tag in talkers.said for entry in entries)
    new = sum(map(len, talkers.said.values()))
    figure.append(
        f"{len(talkers.said)} messages of {new:,} characters: {sum(map(len, kept)) - sum(map(len, raw)):,} stored as "
        f"messages, {sum(map(len, raw)):,} more as the replies they came in; {sum(map(len, entries)):,} of journal"
    )


def _as_text(body: Any) -> str:
    text = body.decode() if isinstance(body, bytes) else str(body)
    return json.loads(text) if text.startswith('"') else text


@pytest.mark.unreplayed
@pytest.mark.covers("D17")
def test_what_is_sent_in_a_round_stops_growing(talked: tuple[Talkers, Path], figure: list[str]) -> None:
    talkers, _ = talked
    for kind in ("critique", "refine", "summarise"):
        sent = [talkers.sent[kind, number] for number in range(1, ROUNDS + 1)]
        figure.append(f"characters sent per round, {kind}: {', '.join(f'{amount:,}' for amount in sent)}")
        assert max(sent[2:]) <= 1.02 * max(sent[1], sent[2])
