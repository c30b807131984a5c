"""A debate, cut off at every point of every node, and gone on with by somebody else: no answered call is made again.

The debate has all there is: questions to a person with a follow-up, two rounds, summaries, a critic that always fails
(RETRY, then FALLBACK), a node from outside, rankings and a synthesis. The world outlives every process and refuses to
do anything again whose end is in the journal.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from moothall.app.kinds.bindings import Provided, bind
from moothall.errors import EffectFailed
from moothall.machines.debate import Node, Rule, debate_with, size_of
from moothall.machines.debate.definition import Summarization
from moothall.machines.debate.state import Debate
from moothall.runtime.hall import answer, questions
from moothall.stores.sqlite import SqliteStore
from tests.crashes.mortal import Life, Scenario, Stage, unmarked
from tests.machines.debates import ANN, BOB, CAT, begun
from tests.runtime.world import RUN
from tests.simulation.loop import VirtualLoop, complete

DATA = begun(
    interactiveClarifications=True,
    rounds=2,
    summarization=Summarization(threshold=20, maxLength=60),
)
MACHINE = debate_with(
    size_of(DATA),
    [Node("FactCheck")],
    [Rule("Refinement", "REFINEMENTS_COMPLETE", "FactCheck"), Rule("FactCheck", "CHECKED", "Evaluation")],
    "debate-with-facts",
)
NODES = {
    "Clarification",
    "ClarificationInput",
    "Summarization",
    "Proposal",
    "Critique",
    "Refinement",
    "FactCheck",
    "Evaluation",
    "Synthesis",
}


class Panel:
    """Agents that say the same to the same prompt, whoever asks and however often."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def agent(self, name: str) -> Any:
        async def reply(prompt: str) -> Any:
            self.log.append(f"{name}: {prompt}")
            if "Before it begins" in prompt:
                return {"questions": self.questions(name, prompt)}
            if "Propose a solution" in prompt:
                return {"text": f"{name} says so", "answer": "", "confidence": 60}
            if "You review" in prompt:
                if name == BOB:
                    raise EffectFailed("bob is ill", final=True)
                return {"reviews": [{"label": label, "text": f"{name} on {label}"} for label in "AB"]}
            if "Summarise the debate" in prompt:
                return {"text": f"{name} heard {len(prompt)} characters"}
            if "Rank these drafts" in prompt:
                return {"ranking": ["A", "B"]}
            if "Say how sure you are" in prompt:
                return {"confidence": 10 if "After round 1" in prompt else 90}
            if "Refine your own" in prompt:
                return {"text": f"{name} now says so", "confidence": 70}
            return {"description": "the way", "confidence": 80}

        return reply

    def questions(self, name: str, prompt: str) -> list[str]:
        if name == ANN and "How many?" not in prompt:
            return ["How many?"]
        return ["By when?"] if name == CAT and "How many?" in prompt and "By when?" not in prompt else []

    async def check(self, state: Any) -> Any:
        """The node from outside."""
        self.log.append(f"facts: round {state['round']}")
        return {"event": "CHECKED", "updated_context": {"round": state["round"]}}

    def scenario(self) -> Scenario:
        agents = {name: self.agent(name) for name in (ANN, BOB, CAT, "judge")} | {"node:FactCheck": self.check}
        return Scenario("debate", MACHINE, self.story, bind(MACHINE, Provided("", agents)), DATA, same=unmarked)

    async def story(self, life: Life) -> None:
        """Drive to the end; the person answers every form in the same way."""
        await life.opened()
        await life.driven()
        while asked := questions(life.hall.runs[RUN].head):
            fields = asked[0].effect.schema["required"]  # type: ignore[attr-defined]
            await answer(life.hall, RUN, {name: f"seven for {name}" for name in fields}, asked[0].key)
            await life.driven()
        debate = life.hall.runs[RUN].head.snapshot.data
        assert isinstance(debate, Debate)
        self.debate = debate


def lived(panel: Panel, file: Path, *deaths: int) -> tuple[list[list[str]], Stage]:
    """The points that some lives passed, of which all but the last died."""
    stage = Stage(panel.scenario(), lambda: SqliteStore(file, durability="normal"), VirtualLoop())

    async def tell() -> list[list[str]]:
        return [await stage.live(deadly) for deadly in (*deaths, 0)]

    return complete(stage.loop, tell()), stage


@pytest.mark.slow
@pytest.mark.covers("D3", "D4", "D13", "D28", "D31")
def test_who_dies_at_any_point_of_any_node_leaves_a_debate_that_ends_the_same_without_a_call_twice(
    empty: Path, tmp_path: Path, figure: list[str]
) -> None:
    [points], stage = lived(whole := Panel(), Path(shutil.copy(empty, tmp_path / "whole.db")))
    entered = {name for entry in stage.told[RUN] for name in entry["to"]}
    assert NODES | {"Complete"} <= entered
    assert [known.answer for known in whole.debate.clarifications] == ["seven for q1", "seven for q2"]
    died: set[str] = set()
    for point in range(1, len(points) + 1):
        _, stage = lived(panel := Panel(), Path(shutil.copy(empty, tmp_path / f"{point}.db")), point)
        where = f"died at point {point}, {points[point - 1]}"
        assert panel.debate.solution == whole.debate.solution, where
        assert panel.debate.clarifications == whole.debate.clarifications, where
        assert panel.debate.rounds == 2, where
        assert panel.debate.extra == {"FactCheck": {"round": 2}}, where
        again = Counter(stage.desk.asked.values())
        assert set(again) <= {1, 2}, where
        in_flight = again[2]
        assert in_flight <= 4, f"{where}: {in_flight} calls were made again; only those in flight may be"
        died |= {name for entry in stage.told[RUN] for name in entry["from"]}
    figure.append(f"a debate with all there is: {len(points)} points, {len(whole.log)} calls")
    assert died >= NODES
