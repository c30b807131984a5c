"""Seeded walks through workflows in virtual time: whatever engine, agents and people say, no move breaks."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from moothall.agents.ask import AskAgent, CallTool, Replied, Returned, ToolCall
from moothall.agents.roles import roles
from moothall.kernel.codec import decode, encode
from moothall.kernel.effects import AskPerson, Effect, StartChild
from moothall.kernel.events import Answered, Event, Expired, GaveUp
from moothall.kernel.simulate import Simulation
from moothall.kernel.step import Answer, Failed, Value
from moothall.machines.turn import Use
from moothall.machines.workflow.compiler import first_work, machine_of
from moothall.machines.workflow.definition import Workflow
from moothall.machines.workflow.schema import clean

SHIPPED = Path(__file__).parents[2] / "src" / "moothall" / "machines" / "workflow" / "shipped"
FILES = [json.loads(path.read_text()) for path in sorted(SHIPPED.glob("*.json"))]
ON = [{"target": "both", "condition": "true"}]
LEFT = [
    {"target": "left over", "condition": "contexts.talk.messages.length > 3"},
    {"target": "left", "condition": "getToolCalls('coder').length > 0"},
    {"target": "asking", "condition": "function.review_work.arguments.a"},
]
RIGHT = [{"target": "right over", "condition": "function.review_work.arguments.improvement_needed"}]
PARALLEL = {
    "workflow_name": "parallel",
    "input": {"name": "task", "type": "string"},
    "output": {"name": "result", "type": "string"},
    "contexts": [{"name": "talk"}],
    "agents": [
        {"agent_role": "coder", "context": "talk", "role": "assistant"},
        {"agent_role": "reviewer", "context": "talk", "role": "user"},
    ],
    "states": [
        {"name": "start", "transition": ON},
        {
            "name": "both",
            "history": "deep",
            "on_error": "clearing",
            "parallel": [
                {
                    "name": "one",
                    "states": [
                        {"name": "left", "agent": "coder", "input": "'x'", "timeout": 5, "transition": LEFT},
                        {"name": "left over"},
                    ],
                },
                {
                    "name": "other",
                    "states": [
                        {"name": "right", "agent": "reviewer", "on_exit": "common_data.z = 1", "transition": RIGHT},
                        {"name": "right over", "on_entry": "common_data.q = 1"},
                    ],
                },
            ],
            "transition": [
                {"target": "stop", "condition": "common_data.k1"},
                {"target": "asking", "condition": "true"},
            ],
        },
        {"name": "asking", "ask": {"question": "'?'", "within": 3}, "on_error": "clearing", "transition": ON},
        {"name": "clearing", "agent": "coder", "action": {"function": "clearConversation"}, "transition": ON},
    ],
}
OURS = ("Error: ", "`emits`", "it gave", "microsteps")
"""What a reason says where a move broke, and not the author's script."""


class Anybody:
    """An engine, agents, tools and people that say anything that fits."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)

    def evaluate(self, script: Any, scope: Any) -> Answer:
        json.dumps(scope)
        if self.chance.random() < 0.02:
            return Failed("the engine broke down")
        tried: list[Any] = []
        for index, choice in enumerate(script["choices"]):
            luck = self.chance.random()
            if luck < 0.02:
                return Value({"index": None, "conditions": [*tried, {"reason": "bad"}], "then": []})
            if choice["condition"] == "true" or luck < 0.5:
                then = [self.text(script["kind"]) for script in choice["then"]]
                return Value({"index": index, "conditions": [*tried, {"value": True}], "then": then})
            tried.append(self.chance.choice(({}, {"value": False})))
        return Value({"index": None, "conditions": tried, "then": []})

    def text(self, kind: str) -> dict[str, Any]:
        if kind != "script":
            return self.chance.choice(({}, {"value": "text"}, {"value": {"a": [1]}}))
        changes = {f"k{self.chance.randint(0, 3)}": self.chance.choice((1, "a", None, [1]))}
        return {"value": {"set": changes, "removed": self.chance.choice(([], ["k1"]))}}

    def end(self, effect: Effect) -> Event:
        """One of the events in which an effect may end."""
        if self.chance.random() < 0.05:
            return GaveUp("lost", id=getattr(effect, "id", ""))
        match effect:
            case AskAgent(agent=agent):
                names = ("add", "review_work", "task_approval", "nothing")
                number = self.chance.choice((0, 0, 1, 2, 20))
                calls = [ToolCall(self.chance.choice(names), {"a": 1}, f"c{at}") for at in range(number)]
                return Replied(agent, "said", calls=tuple(calls))
            case CallTool(tool=tool, id=id):
                return Returned(tool, 3, id=id)
            case AskPerson():
                return self.chance.choice((Answered(True), Expired()))
            case StartChild():
                return effect.settled("output")
        raise AssertionError(effect)


@pytest.mark.parametrize("seed", range(120))
def test_a_walk_ends_in_words_of_the_workflow_and_every_snapshot_is_json(seed: int) -> None:
    anybody = Anybody(seed)
    workflow = decode(Workflow, clean(anybody.chance.choice([*FILES, PARALLEL, PARALLEL])), "file")
    machine = machine_of(workflow, roles({}), [Use("add")])
    walk = Simulation(machine, first_work(workflow, "x"), evaluate=anybody.evaluate)
    for _ in range(60):
        if not walk.live or not walk.open:
            break
        wanted = anybody.chance.choice(walk.open)
        walk.answer(wanted, anybody.end(wanted.effect))
        assert (
            decode(type(walk.snapshot.data), json.loads(json.dumps(encode(walk.snapshot.data)))) == walk.snapshot.data
        )
        if anybody.chance.random() < 0.1:
            walk.settle()
    assert not [word for word in OURS if word in walk.snapshot.reason], walk.snapshot.reason
