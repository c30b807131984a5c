"""The workflows of the document against a provider on this machine, through its real SDK."""

import json
from pathlib import Path
from typing import Any

import pytest

from moothall import Budget, run
from moothall.app.kinds.source import find
from moothall.models.providers import BEGINNING
from tests.machines.workflows import of_the_seed
from tests.models.loopback import Asked, Said, loopback_aside

TASK = "Perform following task: make tea"
INSTRUCTION = "review coder's work, provide continue_message or work_summary"
AGAIN = {"improvement_needed": True, "continue_message": "add milk"}


def review(id: str, **arguments: Any) -> Said:
    return Said("", [(id, "review_work", json.dumps(arguments))])


def plain(message: dict[str, Any]) -> tuple[str, Any]:
    """A message as the provider got it: its role, and its text or its calls."""
    calls = [
        (one["function"]["name"], json.loads(one["function"]["arguments"])) for one in message.get("tool_calls", ())
    ]
    return message["role"], calls or message["content"]


def files(folder: Path) -> Path:
    for name, text in of_the_seed().items():
        (folder / f"{name}.json").write_text(text)
    return folder


@pytest.mark.covers("W9", "W10", "W19", "W26", "W29", "W39", "W47", "W49", "W53", "W59", "W62")
def test_coder_and_reviewer_talk_through_a_provider_as_the_document_says(tmp_path: Path) -> None:
    script = (
        Said("I boil water."),
        review("r1", **AGAIN),
        Said("I add milk."),
        review("r2", improvement_needed=False, work_summary="tea with milk"),
    )
    machine = find(str(files(tmp_path) / "coder_reviewer.json"))
    with loopback_aside(*script) as provider:
        outcome = run(machine, "make tea", model=f"openai:any@{provider.address}", store="memory")
    assert (outcome.status, outcome.result, outcome.spent["calls"]) == ("done", "tea with milk", 4)
    shown = [[plain(one) for one in asked.body["messages"]] for asked in provider.asked]
    called = f"[reviewer called review_work({json.dumps(AGAIN)})]"
    systems = [messages[0] for messages in shown]
    assert [role for role, _ in systems] == ["system"] * 4
    assert systems[0] == systems[2] != systems[1] == systems[3]
    assert [messages[1:] for messages in shown] == [
        [("user", TASK)],
        [("user", BEGINNING), ("assistant", TASK), ("user", f"coder: I boil water.\n\n{INSTRUCTION}")],
        [
            ("user", TASK),
            ("assistant", f"I boil water.\n\n{INSTRUCTION}"),
            ("user", f"{called}\n\nadd milk"),
        ],
        [
            ("user", BEGINNING),
            ("assistant", TASK),
            ("user", f"coder: I boil water.\n\n{INSTRUCTION}"),
            ("assistant", [("review_work", AGAIN)]),
            ("tool", "noted"),
            ("assistant", "add milk"),
            ("user", f"coder: I add milk.\n\n{INSTRUCTION}"),
        ],
    ]
    offered = [[tool["function"]["name"] for tool in asked.body.get("tools", ())] for asked in provider.asked]
    assert offered == [[], ["review_work"], [], ["review_work"]]
    assert all(asked.body.get("tool_choice", "auto") == "auto" for asked in provider.asked)


@pytest.mark.covers("W30", "W49", "W15", "W34", "W40")
def test_the_hierarchy_of_the_document_runs_through_a_provider_with_its_sub_workflow_alone(tmp_path: Path) -> None:
    def reply(asked: Asked) -> Said:
        last = asked.body["messages"][-1]["content"]
        if last.endswith(INSTRUCTION):
            return review("r", improvement_needed=False, work_summary="built")
        return Said(f"<{last[:20]}>")

    machine = find(str(files(tmp_path) / "hierarchical_development.json"))
    with loopback_aside(reply) as provider:
        outcome = run(machine, "a shop", model=f"openai:any@{provider.address}", store="memory")
    assert outcome.status == "done"
    assert outcome.data.common_data["implementation_result"] == "built"
    assert outcome.result == "<Final review: Requir>"
    lengths = [len(asked.body["messages"]) for asked in provider.asked]
    assert lengths == [2, 2, 2, 4, 4, 4]


def test_an_agent_that_is_told_nothing_new_is_still_asked(tmp_path: Path) -> None:
    workflow = {
        "workflow_name": "quiet",
        "description": "d",
        "input": {"name": "task", "type": "string", "description": "t"},
        "output": {"name": "said", "type": "string", "description": "o"},
        "contexts": [{"name": "talk"}],
        "agents": [{"agent_role": "coder", "context": "talk", "role": "assistant"}],
        "states": [
            {"name": "start", "agent": "coder", "transition": [{"target": "stop", "condition": "true"}]},
            {"name": "stop", "input": "last_agent_response"},
        ],
    }
    (tmp_path / "quiet.json").write_text(json.dumps(workflow))
    with loopback_aside(Said("well")) as provider:
        outcome = run(find(str(tmp_path / "quiet.json")), "x", model=f"openai:any@{provider.address}", store="memory")
    assert outcome.result == "well"


def test_a_decision_of_the_wrong_shape_is_shown_back_once(tmp_path: Path) -> None:
    script = (
        Said("I boil water."),
        review("r1", improvement_needed="perhaps"),
        review("r2", improvement_needed=False, work_summary="tea"),
    )
    machine = find(str(files(tmp_path) / "coder_reviewer.json"))
    with loopback_aside(*script) as provider:
        outcome = run(machine, "make tea", model=f"openai:any@{provider.address}", store="memory")
    assert (outcome.status, outcome.result) == ("done", "tea")
    *_, called, told = map(plain, provider.asked[2].body["messages"])
    assert called == ("assistant", [("review_work", {"improvement_needed": "perhaps"})])
    assert "review_work.improvement_needed is of type boolean, not 'perhaps'; call it again" in told[1]


def test_a_decision_of_the_wrong_shape_is_not_shown_back_twice(tmp_path: Path) -> None:
    script = (Said("I boil water."), review("r1", improvement_needed="perhaps"))
    machine = find(str(files(tmp_path) / "coder_reviewer.json"))
    with loopback_aside(*script) as provider:
        outcome = run(machine, "make tea", model=f"openai:any@{provider.address}", store="memory")
    assert (outcome.status, len(provider.asked)) == ("failed", 3)


@pytest.mark.parametrize(("name", "status"), [("coder_reviewer", "limited"), ("hierarchical_development", "failed")])
def test_a_token_budget_stops_agents_of_a_server_that_reports_no_usage(tmp_path: Path, name: str, status: str) -> None:
    def reply(asked: Asked) -> Said:
        reviews = asked.body["messages"][-1]["content"].endswith(INSTRUCTION)
        said = review("r", **AGAIN) if reviews else Said("I boil water.")
        return Said(said.text, said.calls, used=None)

    machine = find(str(files(tmp_path) / f"{name}.json"))
    with loopback_aside(reply) as provider:
        model = f"openai:any@{provider.address}"
        outcome = run(machine, "make tea", model=model, store="memory", budget=Budget(tokens=4000))
    assert (outcome.status, "tokens" in outcome.reason) == (status, True), outcome.reason
    assert outcome.spent["estimated"] == outcome.spent["tokens"]
