"""Hundreds of calls, three in ten of them with a fault: every run ends right, or says why it could not.

`make soak` makes ten thousand of them.
"""

import asyncio
import itertools
import logging
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from moothall.agents.ask import AskAgent
from tests.models.loopback import Asked, Cut, Fault, Said, Turn, loopback
from tests.models.stage import JUDGING, LOOKING, WRITING, Stage, stage_at
from tests.models.test_providers import LASTING, PASSING, told

pytestmark = pytest.mark.slow

SHARE = 0.3
AT_ONCE = 32
SETTINGS = ("timeout = 2", f"at_once = {AT_ONCE}", "failures = 1000000000")
FAULTS: tuple[Turn, ...] = (
    *PASSING.values(),
    *(turn for turn, _ in LASTING.values()),
    Fault(429, told("later"), (("retry-after", "30"),)),
    Fault(503, told("later"), (("retry-after", "soon"),)),
    Said("", [("a", "fly", "{}")]),
    Said("", [("a", "look", '{"pla')]),
    Said("", [("a", "look", '{"place": "x"}'), ("a", "look", '{"place": "y"}')]),
    Said("", [("r", "final_reply", '{"good": "perhaps"}')]),
    Said("half \ud800 a character"),
    Said("no value at all", used=None),
)
RARE: tuple[Turn, ...] = (Fault(hang=True), Said("tide " * 20_000))


@dataclass
class Moody:
    """A provider that does its part seven times out of ten."""

    chance: random.Random
    faults: int = 0
    by_topic: Counter[str] = field(default_factory=Counter)

    def __call__(self, asked: Asked) -> Turn:
        prompt = asked.body["messages"][0]["content"]
        self.by_topic[prompt.rpartition(" ")[2]] += 1
        right = self._right(asked.body)
        if self.chance.random() >= SHARE:
            return right
        self.faults += 1
        kinds = RARE if self.chance.random() < 0.02 else (*FAULTS, Cut(right, self.chance.randrange(200)))
        return self.chance.choice(kinds)

    def _right(self, body: dict[str, Any]) -> Said:
        tools = [tool["function"]["name"] for tool in body.get("tools", ())]
        if "response_format" in body:
            return Said('{"good": true}')
        if tools and not any(message["role"] == "tool" for message in body["messages"]):
            return Said("", [("a", "look", '{"place": "Ys"}')])
        return Said("right")


WRITTEN = frozenset(
    ("right", *(fault.text.replace("\ud800", "?") for fault in (*FAULTS, *RARE) if isinstance(fault, Said)))
)


async def runs(stage: Stage, served: Any, calls: int) -> list[str]:
    """Runs of three machines, many at once, until the provider was asked so often. What is done is done right."""
    numbers, topics = itertools.count(), list[str]()
    machines = itertools.cycle((WRITING, JUDGING, LOOKING))

    async def one_after_the_other() -> None:
        while len(served.asked) < calls:
            topic = f"t{next(numbers)}"
            topics.append(topic)
            machine = next(machines)
            end = (await stage.run(machine, topic)).snapshot
            if end.status == "done":
                assert end.data.good if machine is JUDGING else end.data.text in WRITTEN

    await asyncio.gather(*(one_after_the_other() for _ in range(AT_ONCE)))
    return topics


async def reasons_to_object(stage: Stage) -> list[str]:
    """Everything about the runs, and those that they started, that is not as documented."""
    found = []
    for stored in await stage.store.runs():
        run, status = stored.record.run, stored.status
        events = await stage.events(run)
        faltered = Counter(
            entry["cause"].partition("-")[0]
            for entry in await stage.store.entries(run)
            if entry["event"]["name"] == "effect.faltered"
        )
        if any(times >= AskAgent.attempts for times in faltered.values()):
            found.append(f"{run}: more attempts than allowed: {faltered}")
        last = next(event for event in reversed(events) if event["name"] != "effect.delivered")
        if status == "failed" and not (last["name"] == "error.effect" and last["reason"]):
            found.append(f"{run}: failed with {last}")
        if status not in ("done", "failed"):
            found.append(f"{run}: {status}")
        found += [f"{run}: {event['reason']}" for event in events if "Traceback" in str(event.get("reason", ""))]
    return found


async def trial(home: Path, calls: int, seed: int, caplog: pytest.LogCaptureFixture) -> list[str]:
    """So many calls; everything that is not as it should be, and the figures on the screen."""
    began = time.monotonic()
    moody = Moody(random.Random(seed))
    stray: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: stray.append(context))
    with caplog.at_level(logging.ERROR):
        async with loopback(moody) as served:
            stage = stage_at(served, home, *SETTINGS)
            topics = await runs(stage, served, calls)
            asked = len(served.asked)
    ends = Counter([(await stage.store.load(topic)).status for topic in topics])
    objections = await reasons_to_object(stage)
    seconds = time.monotonic() - began
    print(f"\nseed {seed}: {asked} calls, {moody.faults} faults, {len(topics)} runs: {dict(ends)}, {seconds:.0f} s")
    assert ends["done"] > len(topics) / 2
    assert moody.faults > asked * SHARE * 0.8
    return [*objections, *map(str, stray), *(record.getMessage() for record in caplog.records)]


@pytest.mark.anyio
async def test_a_few_hundred_calls(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert await trial(tmp_path, 400, 7, caplog) == []


@pytest.mark.soak
@pytest.mark.anyio
async def test_ten_thousand_calls(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert await trial(tmp_path, 10_000, random.randrange(2**32), caplog) == []
