"""How long a round of a debate takes against the longest chain of its calls, in virtual time.

    python benchmarks/debate_latency.py [--seeds 20] [--json]

Every call takes a time from a log-normal distribution (median 1 s, σ 0.5). A critique needs all drafts, a refinement
all critiques, the judge all refinements: the longest chain of a round is the sum of the slowest call of each node. The
shipped machine runs over its real runtime in a loop whose clock jumps; what is above 1 is the runtime's own waiting.
"""

import argparse
import asyncio
import json
import random
import selectors
from collections import defaultdict
from collections.abc import Callable, Coroutine
from typing import Any

from worlds import rounded, spread

from moothall import Moothall
from moothall.app.kinds.debate import begin
from moothall.machines.debate import debate, size_of
from moothall.machines.debate.definition import AgentConfig, Configuration, DebateConfig, Summarization
from moothall.machines.debate.state import Debate

PANELS = (3, 7, 20)
ROUNDS = 2
MEDIAN, SIGMA = 1.0, 0.5
LIMIT = 1.15
NODES = {
    "Propose a solution": "Proposal",
    "You review": "Critique",
    "Refine your own": "Refinement",
    "After round": "Evaluation",
}
SAID: dict[str, Any] = {
    "Proposal": {"text": "one way"},
    "Critique": {"reviews": [{"label": "A", "text": "no"}]},
    "Evaluation": {"confidence": 1},
}


class JumpingLoop(asyncio.SelectorEventLoop):
    """A loop that does not wait: where nobody is ready, its time jumps to the next timer."""

    def __init__(self) -> None:
        self.moment = 0.0
        super().__init__(_Impatient(lambda seconds: setattr(self, "moment", self.moment + seconds)))

    def time(self) -> float:
        return self.moment


class _Impatient(selectors.SelectSelector):
    def __init__(self, jump: Callable[[float], None]) -> None:
        super().__init__()
        self._jump = jump

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready and timeout:
            self._jump(timeout)
        return ready


class Times:
    """What every call takes, and when each round begins and ends."""

    def __init__(self, loop: JumpingLoop, seed: int) -> None:
        self.loop, self.chance = loop, random.Random(seed)
        self.slowest: defaultdict[tuple[int, str], float] = defaultdict(float)
        self.round, self.began = 1, 0.0
        self.ratios: list[float] = []

    def agent(self, name: str) -> Any:
        async def reply(prompt: str) -> Any:
            node = next((node for words, node in NODES.items() if words in prompt), "")
            seconds = MEDIAN * self.chance.lognormvariate(0, SIGMA)
            key = (self.round, node)
            self.slowest[key] = max(self.slowest[key], seconds)
            await asyncio.sleep(seconds)
            if node == "Evaluation":
                chain = sum(self.slowest[self.round, known] for known in NODES.values())
                self.ratios.append((self.loop.time() - self.began) / chain)
                self.round, self.began = self.round + 1, self.loop.time()
            if not node:
                return {"ranking": ["A"]} if "Rank these" in prompt else {"description": "the end"}
            return {"text": f"the way of {name}"} if node == "Refinement" else SAID[node]

        return reply


def ratios(agents: int, seed: int) -> list[float]:
    """How much longer than its longest chain each round of a debate took."""
    names = [f"agent{number}" for number in range(agents)]
    chosen = DebateConfig(rounds=ROUNDS, summarization=Summarization(enabled=False))
    panel = tuple(AgentConfig(name) for name in names)
    data = begin(Debate("Which way?", configuration=Configuration(panel, debate=chosen)))
    loop = JumpingLoop()
    times = Times(loop, seed)

    async def run() -> None:
        players = {name: times.agent(name) for name in (*names, "judge")}
        async with Moothall("memory", listeners=()) as hall:
            outcome = await hall.run(debate(size_of(data)), data, agents=players)
        assert outcome.status == "done", outcome.reason

    _complete(loop, run())
    return times.ratios


def _complete(loop: JumpingLoop, work: Coroutine[Any, Any, None]) -> None:
    try:
        loop.run_until_complete(work)
    finally:
        loop.close()


def main() -> None:
    """Measure, and print."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--seeds", type=int, default=20)
    cli.add_argument("--json", action="store_true", help="print the answer on one line")
    chosen = cli.parse_args()
    panels = {}
    for agents in PANELS:
        found = [ratio for seed in range(chosen.seeds) for ratio in ratios(agents, seed)]
        panels[str(agents)] = {"ratio": spread(found), "worst": max(found), "within": max(found) <= LIMIT}
    answer = {"bench": "debate_latency", "seeds": chosen.seeds, "rounds": ROUNDS, "limit": LIMIT, "panels": panels}
    print(json.dumps(rounded(answer), indent=None if chosen.json else 2))


if __name__ == "__main__":
    main()
