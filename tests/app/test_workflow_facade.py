"""Workflows from Python, by the names that the document gives to what executes them."""

import json
from pathlib import Path

import pytest

from moothall import Moothall, Refused
from moothall.workflow import WorkflowStateMachine, WorkflowTerms
from tests.app.test_workflow_runs import START, review, spoken, to, workflow
from tests.machines.workflows import of_the_seed

pytestmark = pytest.mark.anyio


async def coder(prompt: str) -> str:
    return "I boil water."


async def reviewer(prompt: str) -> object:
    return review(False, work_summary="tea")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the document's first workflow in one file, and another workflow in a second."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "coder_reviewer.json").write_text(of_the_seed()["coder_reviewer"])
    other = workflow(START, spoken("code", "coder", "common_data.task", to("stop")), workflow_name="alone")
    (tmp_path / "own" / "more.json").write_text(json.dumps([other]))
    return tmp_path / "own"


@pytest.mark.covers("W52")
async def test_a_workflow_that_was_loaded_is_executed_by_its_name(folder: Path) -> None:
    machine = WorkflowStateMachine(WorkflowTerms(agents={"coder": coder, "reviewer": reviewer}))
    assert machine.load_workflow_configs(folder) == ("coder_reviewer", "alone")
    assert machine.workflow_configs["coder_reviewer"]["input"]["name"] == "task_to_do"
    result = await machine.execute_workflow("coder_reviewer", "make tea", run_id="tea")
    assert (result.success, result.output, result.run_id) == (True, "tea", "tea")
    assert result.states_visited == ("start", "code", "review", "stop")
    assert machine.common_data["work_summary"] == "tea"


@pytest.mark.covers("W10", "W32", "W9", "W52", "W60")
async def test_agents_and_contexts_show_how_the_latest_run_left_them(folder: Path) -> None:
    async with Moothall() as hall:
        machine = WorkflowStateMachine(WorkflowTerms(agents={"coder": coder, "reviewer": reviewer}), hall=hall)
        machine.load_workflow_configs(folder)
        await machine.execute_workflow("coder_reviewer", "make tea")
    agent = machine.get_agent("reviewer")
    assert (agent.get_role(), agent.get_context_role(), agent.get_last_response()) == ("reviewer", "user", "")
    [call] = machine.get_tool_calls("reviewer")
    assert call["function"]["name"] == "review_work"
    assert agent.get_parsing_tool_calls() == (call,)
    assert machine.get_agent("coder").get_last_response() == "I boil water."
    context = machine.get_context("code_history")
    assert (context.max_length, context.agents) == (50000, ("coder", "reviewer"))
    assert [(said["role"], said["content"]) for said in context.messages][:2] == [
        ("user", "Perform following task: make tea"),
        ("assistant", "I boil water."),
    ]


async def test_without_a_path_the_workflows_are_known_that_can_be_run_by_name(folder: Path) -> None:
    assert "hierarchical_development" in WorkflowStateMachine().load_workflow_configs()


async def test_what_is_not_there_is_refused_with_what_is(folder: Path) -> None:
    machine = WorkflowStateMachine(WorkflowTerms(agents={"coder": coder}))
    with pytest.raises(Refused, match="no workflow 'alone' is loaded; there are: none; call load_workflow_configs"):
        await machine.execute_workflow("alone", "tea")
    with pytest.raises(Refused, match="there is no agent 'coder' yet; execute a workflow first"):
        machine.get_agent("coder")
    machine.load_workflow_configs(folder)
    await machine.execute_workflow("alone", "tea", run_id="one")
    with pytest.raises(Refused, match="run one has no context 'desk'; it has talk"):
        machine.get_context("desk")
