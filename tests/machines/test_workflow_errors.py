"""What scripts see of the conversations after something went wrong: all that was said, once."""

from pathlib import Path
from typing import Any

import pytest

from moothall.agents.ports import Reply
from moothall.app.kinds.workflow.kind import first_work_of
from moothall.runtime.hall import begin, cancel
from tests.app.theatre import RUN, Plain, Prompter, calling, compiled, play, record_of, stage

TALK = "contexts.talk.messages.map(m => m.role + ':' + m.content)"
LOOK: Plain = {
    "name": "look",
    "action": {"script": f"common_data.result = {TALK}"},
    "transition": [{"target": "stop", "condition": "true"}],
}
FAILS = {"target": "stop", "condition": "common_data.no.no"}
REMINDER = "user:Please call review_work: what happens next depends on it."
TOOLS = '''
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b
'''


def workflow(*states: Plain) -> Plain:
    return {
        "workflow_name": "trial",
        "description": "trial",
        "input": {"name": "task", "type": "string", "description": "what to do"},
        "output": {"name": "result", "type": "array", "description": "what was said"},
        "contexts": [{"name": "talk"}],
        "agents": [{"agent_role": name, "context": "talk", "role": "assistant"} for name in ("coder", "reviewer")],
        "states": list(states),
    }


def asked(*transitions: Plain, agent: str = "coder", name: str = "start", **more: Any) -> Plain:
    return {
        "name": name,
        "agent": agent,
        "input": "'question'",
        "transition": list(transitions),
        "on_error": "look",
        **more,
    }


async def output_of(folder: Path, *states: Plain, **lines: list[str | Reply]) -> Any:
    """What a workflow of these states gives."""
    played = await play(compiled(folder, workflow(*states), functions=TOOLS), "x", Prompter(**lines))
    assert played.result.status == "done", played.result.error
    return played.result.output


SAID = ["user:question", "assistant:reply"]
ADDING = calling("add", "Let me see.", a=1, b=2)
ADDED = ["user:question", "assistant:Let me see.", "tool:3"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("failing", "lines", "seen"),
    [
        (asked(FAILS), ["reply"], SAID),
        (asked({"target": "stop", "condition": "true", "before": "common_data.no.no = 1"}), ["reply"], SAID),
        (asked({"target": "stop", "condition": "common_data.task === 'y'"}), ["reply"], SAID),
        (asked({**FAILS, "condition": "getToolCalls('coder').length && common_data.no.no"}), [ADDING], ADDED),
        (asked(FAILS), [ADDING, "reply"], [*ADDED, "assistant:reply"]),
        (asked(FAILS, action={"function": "addUserMessage"}), [], SAID[:1]),
    ],
    ids=["condition", "before", "no match", "after a tool", "after going on", "message added"],
)
async def test_the_target_of_an_error_sees_what_the_failed_state_said(
    tmp_path: Path, failing: Plain, lines: list[str | Reply], seen: list[str]
) -> None:
    assert await output_of(tmp_path, failing, LOOK, coder=list(lines)) == seen


@pytest.mark.anyio
async def test_the_target_of_an_error_sees_that_a_conversation_was_cleared(tmp_path: Path) -> None:
    first = asked({"target": "clear", "condition": "true"})
    clear = asked(FAILS, name="clear", action={"function": "clearConversation"})
    del clear["input"]
    assert await output_of(tmp_path, first, clear, LOOK, coder=["reply"]) == []


@pytest.mark.anyio
async def test_after_being_asked_once_in_vain_both_replies_are_seen(tmp_path: Path) -> None:
    condition = "function.review_work.arguments.improvement_needed"
    failing = asked({"target": "stop", "condition": condition}, agent="reviewer")
    said = await output_of(tmp_path, failing, LOOK, reviewer=["reply", "still not"])
    assert said == [*SAID, REMINDER, "assistant:still not"]


@pytest.mark.anyio
async def test_the_input_of_the_target_and_the_scripts_after_it_see_the_same(tmp_path: Path) -> None:
    last = "contexts.talk.messages[contexts.talk.messages.length - 1].content"
    talk = asked({"target": "look", "condition": "true"}, name="again", input=f"'You said: ' + {last}")
    said = await output_of(tmp_path, {**asked(FAILS), "on_error": "again"}, talk, LOOK, coder=["reply", "end"])
    assert said == [*SAID, "user:You said: reply", "assistant:end"]


@pytest.mark.anyio
async def test_an_error_after_an_error_loses_and_doubles_nothing(tmp_path: Path) -> None:
    add = asked(FAILS, name="add", input="'more'", action={"function": "addUserMessage"})
    said = await output_of(tmp_path, {**asked(FAILS), "on_error": "add"}, add, LOOK, coder=["reply"])
    assert said == [*SAID, "user:more"]


@pytest.mark.anyio
async def test_an_agent_that_cannot_reply_leaves_its_input_said_once(tmp_path: Path) -> None:
    failing = asked(FAILS, retry={"attempts": 1}, on_exit=f"common_data.left = {TALK}")
    played = await play(compiled(tmp_path, workflow(failing, LOOK)), "x", Prompter())
    assert (played.common["left"], played.result.output) == (SAID[:1], SAID[:1])


@pytest.mark.anyio
async def test_a_run_that_is_cancelled_leaves_its_states_with_the_input_said_once(tmp_path: Path) -> None:
    machine = compiled(tmp_path, workflow(asked(FAILS, on_exit=f"common_data.left = {TALK}"), LOOK))
    hall = stage(machine, Prompter())
    await begin(hall, record_of(machine, hall.clock.now()), machine, first_work_of(machine, "x"))
    await cancel(hall, RUN, "enough", "cancel-1")
    assert hall.runs[RUN].head.snapshot.data.common_data["left"] == SAID[:1]
