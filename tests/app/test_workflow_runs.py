"""What a run of a workflow does, rule by rule."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from moothall.agents.ports import Reply, Request
from moothall.agents.roles import shipped_roles
from moothall.analysis.certify import Certificate
from moothall.app.kinds.check import certificate
from moothall.app.kinds.workflow.definitions import definition_with_all_below, machine_stored
from moothall.app.kinds.workflow.kind import first_work_of
from moothall.errors import DefinitionError, EffectFailed, Refused
from moothall.machines.workflow.compiler import WorkflowMachine
from moothall.runtime.drive import drive
from moothall.runtime.hall import answer, begin, reopen
from moothall.runtime.journal import Head, Reader
from moothall.runtime.rebuild import compared
from moothall.stores.memory import MemoryStore
from tests.app.theatre import RUN, Plain, Prompter, calling, compiled, play, record_of, stage
from tests.machines.workflows import of_the_seed
from tests.runtime.world import PROCESSES

REVIEW = "function.review_work.arguments.improvement_needed"


def workflow(*states: Plain, agents: tuple[tuple[str, str], ...] = (("coder", "assistant"),), **more: Any) -> Plain:
    """A workflow with these states, all agents in one conversation."""
    return {
        "workflow_name": "trial",
        "description": "trial",
        "input": {"name": "task", "type": "string", "description": "what to do"},
        "output": {"name": "result", "type": "string", "description": "what was done"},
        "contexts": [{"name": "talk"}] if agents else [],
        "agents": [{"agent_role": name, "context": "talk", "role": role} for name, role in agents],
        "states": list(states),
        **more,
    }


def to(target: str, condition: str = "true", before: str = "") -> Plain:
    return {"target": target, "condition": condition, **({"before": before} if before else {})}


def scripted(name: str, script: str, *transitions: Plain) -> Plain:
    return {"name": name, "action": {"script": script}, "transition": list(transitions)}


def spoken(name: str, agent: str, given: str, *transitions: Plain, **more: Any) -> Plain:
    return {"name": name, "agent": agent, "input": given, "transition": list(transitions), **more}


START = {"name": "start", "transition": [to("code")]}
SAY = "() => { this.common_data.result = this.last_agent_response; }"


def review(needed: bool, **more: str) -> Reply:
    return calling("review_work", improvement_needed=needed, **more)


# the document's own


@pytest.mark.anyio
@pytest.mark.covers(
    "W29",
    "W62",
    "W49",
    "W47",
)
async def test_coder_and_reviewer_of_the_document_see_exactly_this(tmp_path: Path) -> None:
    machine = compiled(tmp_path, json.loads(of_the_seed()["coder_reviewer"]))
    again = calling("review_work", "Not yet.", "r1", improvement_needed=True, continue_message="add milk")
    good = calling("review_work", "", "r2", improvement_needed=False, work_summary="tea with milk")
    played = await play(machine, "make tea", Prompter(coder=["I boil water.", "I add milk."], reviewer=[again, good]))
    instruction = "review coder's work, provide continue_message or work_summary"
    called = '[reviewer called review_work({"improvement_needed": true, "continue_message": "add milk"})]'
    assert played.model.shown("coder") == [
        [("user", "Perform following task: make tea")],
        [
            ("user", "Perform following task: make tea"),
            ("assistant", "I boil water."),
            ("assistant", instruction),
            ("user", f"reviewer: Not yet.\n{called}"),
            ("user", "add milk"),
        ],
    ]
    assert played.model.shown("reviewer") == [
        [
            ("assistant", "Perform following task: make tea"),
            ("user", "coder: I boil water."),
            ("user", instruction),
        ],
        [
            ("assistant", "Perform following task: make tea"),
            ("user", "coder: I boil water."),
            ("user", instruction),
            ("assistant", "Not yet."),
            ("tool", '"noted"'),
            ("assistant", "add milk"),
            ("user", "coder: I add milk."),
            ("user", instruction),
        ],
    ]
    last = [one for one in played.model.requests if one.agent == "reviewer"][-1]
    assert last.messages[3]["calls"] == [
        {"tool": "review_work", "arguments": {"improvement_needed": True, "continue_message": "add milk"}, "id": "r1"}
    ]
    assert [tool.name for tool in last.tools] == ["review_work"]
    assert last.system == shipped_roles()["reviewer"]["systemMessage"]
    assert (played.result.success, played.result.output) == (True, "tea with milk")
    assert played.result.states_visited == ("start", "code", "review", "code", "review", "stop")
    assert played.result.final_state == "stop"


@pytest.mark.anyio
async def test_one_question_to_the_engine_does_for_a_state(tmp_path: Path) -> None:
    machine = compiled(tmp_path, json.loads(of_the_seed()["coder_reviewer"]))
    played = await play(machine, "x", Prompter(coder=["done"], reviewer=[review(False, work_summary="ok")]))
    assert [len(entry.get("answers", ())) for entry in played.entries] == [2, 1, 1]


@pytest.mark.anyio
async def test_a_journal_is_replayed_without_an_engine_and_says_the_same(tmp_path: Path) -> None:
    machine = compiled(tmp_path, json.loads(of_the_seed()["coder_reviewer"]))
    played = await play(machine, "x", Prompter(coder=["done"], reviewer=[review(False, work_summary="ok")]))
    reader = Reader(machine, played.hall.effects(RUN))
    assert compared(played.hall.runs[RUN].run, reader, played.entries) == played.head


# conditions, before, no match


@pytest.mark.anyio
async def test_only_the_transition_that_is_taken_does_its_before(tmp_path: Path) -> None:
    states = (
        START,
        scripted(
            "code",
            "common_data.n = 1",
            to("stop", "common_data.n > 5", "common_data.leak = 1"),
            to("stop", "common_data.n === 1", "common_data.result = 'right'"),
            to("stop", "true", "common_data.leak = 2"),
        ),
    )
    played = await play(compiled(tmp_path, workflow(*states, agents=())))
    assert played.result.output == "right"
    assert "leak" not in played.common


@pytest.mark.anyio
@pytest.mark.covers("W22")
async def test_a_condition_that_fails_names_state_transition_and_expression(tmp_path: Path) -> None:
    states = (START, scripted("code", "common_data.a = 1", to("stop", "false"), to("stop", "common_data.b.c === 1")))
    played = await play(compiled(tmp_path, workflow(*states, agents=())))
    assert played.result.status == "failed"
    assert "code, transition 2 to stop: condition `common_data.b.c === 1` failed: TypeError" in played.result.error


ASKING = spoken("code", "reviewer", "'look'", to("start", f"{REVIEW} === true"), to("stop", f"{REVIEW} === false", SAY))


@pytest.mark.anyio
@pytest.mark.covers("W19", "W39")
async def test_an_agent_that_did_not_call_what_a_condition_reads_is_asked_for_it_once(tmp_path: Path) -> None:
    machine = compiled(tmp_path, workflow(START, ASKING, agents=(("reviewer", "user"),)))
    played = await play(
        machine, "x", Prompter(reviewer=["It is fine.", calling("review_work", "Yes.", improvement_needed=False)])
    )
    assert (played.result.output, len(played.model.requests)) == ("Yes.", 2)
    asked = "Please call review_work: what happens next depends on it."
    assert played.model.shown("reviewer")[1] == [("user", "look"), ("assistant", "It is fine."), ("user", asked)]


@pytest.mark.anyio
async def test_a_call_that_a_condition_reads_is_a_decision_also_where_the_role_does_not_say_so(tmp_path: Path) -> None:
    state = spoken("code", "coder", "'look'", to("stop", "function.verdict.arguments.ok", SAY), to("start"))
    said = calling("verdict", "Fine.", ok=True)
    played = await play(compiled(tmp_path, workflow(START, state)), "x", Prompter(coder=[said]))
    assert (played.result.output, len(played.model.requests)) == ("Fine.", 1)


@pytest.mark.anyio
async def test_where_it_still_does_not_the_run_fails_and_names_conditions_and_values(tmp_path: Path) -> None:
    machine = compiled(tmp_path, workflow(START, ASKING, agents=(("reviewer", "user"),)))
    played = await play(machine, "x", Prompter(reviewer=["It is fine.", "Really."]))
    assert (played.result.status, len(played.model.requests)) == ("failed", 2)
    assert f"code: no transition can be taken: `{REVIEW} === true` is false" in played.result.error


@pytest.mark.anyio
@pytest.mark.parametrize("place", ["workflow", "state"])
async def test_on_no_match_stop_goes_to_stop(tmp_path: Path, place: str) -> None:
    state = scripted("code", "common_data.result = 'so far'", to("start", "common_data.never"))
    if place == "state":
        state["on_no_match"] = "stop"
    more = {"on_no_match": "stop"} if place == "workflow" else {}
    played = await play(compiled(tmp_path, workflow(START, state, agents=(), **more)))
    assert (played.result.status, played.result.output) == ("done", "so far")


@pytest.mark.anyio
async def test_on_no_match_stop_asks_nobody_again(tmp_path: Path) -> None:
    machine = compiled(tmp_path, workflow(START, ASKING, agents=(("reviewer", "user"),), on_no_match="stop"))
    played = await play(machine, "x", Prompter(reviewer=["It is fine."]))
    assert (played.result.status, len(played.model.requests)) == ("done", 1)


# tools

TOOLS = '''
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b

async def fail() -> None:
    raise ValueError("no way")

def shout(data):
    return data["task"].upper()

def is_loud(data):
    return data["task"].isupper()

def remember(data):
    data["seen"] = True
    data.pop("spare", None)
'''
LOOP = spoken(
    "code",
    "coder",
    "'calculate'",
    to("code", "this.getToolCalls('coder').length > 0"),
    to("stop", "true", SAY),
    action={"function": "sendUserMessage"},
)


@pytest.mark.anyio
@pytest.mark.covers("W38", "W27")
async def test_a_self_loop_because_of_tools_goes_on_without_saying_the_input_again_and_counts_no_visit(
    tmp_path: Path,
) -> None:
    machine = compiled(tmp_path, workflow(START, LOOP, variables={"max_iterations": 1}), functions=TOOLS)
    replies: list[str | Reply] = [
        calling("add", "Let me see.", "one", a=1, b=2),
        calling("add", "", "two", a=3, b=4),
        "It is 7.",
    ]
    played = await play(machine, "x", Prompter(coder=replies))
    assert (played.result.output, played.result.states_visited) == ("It is 7.", ("start", "code", "stop"))
    assert played.model.shown("coder")[2] == [
        ("user", "calculate"),
        ("assistant", "Let me see."),
        ("tool", "3"),
        ("assistant", ""),
        ("tool", "7"),
    ]
    assert [tool.name for tool in played.model.requests[0].tools] == ["add", "fail"]


@pytest.mark.anyio
async def test_a_state_whose_conditions_do_not_look_at_tools_goes_on_by_itself(tmp_path: Path) -> None:
    state = spoken("code", "coder", "'calculate'", to("stop", "true", SAY))
    machine = compiled(tmp_path, workflow(START, state), functions=TOOLS)
    played = await play(machine, "x", Prompter(coder=[calling("add", a=1, b=2), "It is 3."]))
    assert (played.result.output, len(played.model.requests)) == ("It is 3.", 2)


@pytest.mark.anyio
async def test_a_tool_that_fails_or_is_not_there_is_told_to_the_agent(tmp_path: Path) -> None:
    machine = compiled(tmp_path, workflow(START, LOOP), functions=TOOLS)
    both = Reply("", calls=(*calling("nothing", "", "n").calls, *calling("fail", "", "f").calls))
    played = await play(machine, "x", Prompter(coder=[both, "Well."]))
    errors = [one["error"] for one in played.model.requests[1].messages if one["role"] == "tool"]
    assert errors[0] == "there is no tool 'nothing'; there are add, fail"
    assert "no way" in errors[1]


@pytest.mark.anyio
async def test_rounds_of_tools_have_an_end(tmp_path: Path) -> None:
    machine = compiled(tmp_path, workflow(START, LOOP, max_tool_rounds=2), functions=TOOLS)
    played = await play(machine, "x", Prompter(coder=[calling("add", a=1, b=2)] * 9))
    assert (played.result.status, len(played.model.requests)) == ("limited", 3)
    assert played.result.error == "limit_exceeded: limit of 2 max_tool_rounds reached in code"


@pytest.mark.anyio
@pytest.mark.covers("W9")
async def test_what_one_agent_calls_the_others_read(tmp_path: Path) -> None:
    state = spoken("code", "coder", "'calculate'", to("look", "true"))
    look = spoken("look", "reviewer", "'look'", to("stop", "true", SAY))
    agents = (("coder", "assistant"), ("reviewer", "user"))
    machine = compiled(tmp_path, workflow(START, state, look, agents=agents), functions=TOOLS)
    replies = Prompter(coder=[calling("add", "Hm.", a=1, b=2), "It is 3."], reviewer=["Good."])
    played = await play(machine, "x", replies)
    assert played.model.shown("reviewer") == [
        [
            ("assistant", "calculate"),
            ("user", 'coder: Hm.\n[coder called add({"a": 1, "b": 2})]'),
            ("user", "[coder: add returned: 3]"),
            ("user", "coder: It is 3."),
            ("user", "look"),
        ]
    ]


@pytest.mark.anyio
@pytest.mark.covers("W10", "W50")
async def test_a_role_decides_which_tools_its_agent_has(tmp_path: Path) -> None:
    for role, expected in (
        ({"excludedTools": ["f*"]}, ["add"]),
        ({"includedTools": ["/^f/"]}, ["fail"]),
        ({"includedTools": []}, []),
    ):
        machine = compiled(tmp_path, workflow(START, LOOP), functions=TOOLS, roles={"coder": role})
        played = await play(machine, "x", Prompter(coder=["Done."]))
        assert [tool.name for tool in played.model.requests[0].tools] == expected


# conversations


@pytest.mark.anyio
@pytest.mark.covers("W17", "W32")
async def test_messages_can_be_added_and_a_conversation_cleared(tmp_path: Path) -> None:
    states = (
        START,
        spoken("code", "coder", "'remember this'", to("ask"), action={"function": "addUserMessage"}),
        spoken("ask", "coder", "'and now?'", to("clear")),
        {"name": "clear", "agent": "coder", "action": {"function": "clearConversation"}, "transition": [to("again")]},
        spoken("again", "coder", "'who are you?'", to("stop", "true", SAY)),
    )
    contexts = [
        {
            "name": "talk",
            "starting_messages": [{"role": "system", "content": "Rules."}, {"role": "user", "content": "Hi."}],
        }
    ]
    played = await play(compiled(tmp_path, workflow(*states, contexts=contexts)), "x", Prompter(coder=["yes", "me"]))
    assert played.model.shown("coder") == [
        [("system", "Rules."), ("user", "Hi."), ("user", "remember this"), ("user", "and now?")],
        [("system", "Rules."), ("user", "who are you?")],
    ]


@pytest.mark.anyio
@pytest.mark.covers("W18")
async def test_scripts_read_conversations_with_what_was_said_a_moment_ago(tmp_path: Path) -> None:
    states = (
        START,
        spoken("code", "coder", "'one'", to("add", "contexts.talk.messages.length === 2")),
        spoken("add", "coder", "'three'", to("count"), action={"function": "addUserMessage"}),
        scripted(
            "count",
            "common_data.result = this.getContext('talk').messages.map(m => m.role + ':' + m.content).join(' ')",
            to("stop"),
        ),
    )
    played = await play(compiled(tmp_path, workflow(*states)), "x", Prompter(coder=["two"]))
    assert played.result.output == "user:one assistant:two user:three"


@pytest.mark.anyio
async def test_scripts_read_the_results_of_all_tools_that_came_back_at_once(tmp_path: Path) -> None:
    talk = "common_data.result = contexts.talk.messages.map(m => m.role + ':' + m.content).join(' ')"
    state = spoken("code", "coder", "'add'", to("stop", "this.getToolCalls('coder').length === 2", talk))
    both = Reply("", calls=(*calling("add", "", "one", a=1, b=2).calls, *calling("add", "", "two", a=3, b=4).calls))
    played = await play(compiled(tmp_path, workflow(START, state), functions=TOOLS), "x", Prompter(coder=[both]))
    assert played.result.output == "user:add assistant: tool:3 tool:7"


@pytest.mark.anyio
async def test_reminder_and_examples_of_a_role_are_shown_and_not_kept(tmp_path: Path) -> None:
    role = {
        "systemMessage": "You write.",
        "reminder": "Be short.",
        "examples": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}],
    }
    states = (
        START,
        spoken("code", "coder", "'one'", to("more")),
        spoken("more", "coder", "'two'", to("stop", "true", SAY)),
    )
    played = await play(compiled(tmp_path, workflow(*states), roles={"coder": role}), "x", Prompter(coder=["a", "b"]))
    assert played.model.shown("coder")[1] == [
        ("user", "Hi"),
        ("assistant", "Ho"),
        ("user", "one"),
        ("assistant", "a"),
        ("user", "two\n\nBe short."),
    ]
    assert played.model.requests[0].system == "You write."


@pytest.mark.anyio
@pytest.mark.covers("W18")
async def test_names_of_files_in_the_wild_work(tmp_path: Path) -> None:
    states = (
        scripted("start", "common_data.x = 1; common_data.y = variables.x + 1;", to("code")),
        spoken(
            "code",
            "coder",
            "Please do it",
            to(
                "stop",
                "getToolCalls('coder').length === 0 && lastAgentResponse === 'ok'",
                "common_data.result = agents.coder.getLastResponse() + agents.get('coder').getRole() + variables.y",
            ),
        ),
    )
    played = await play(compiled(tmp_path, workflow(*states)), "x", Prompter(coder=["ok"]))
    assert played.result.output == "okcoder2"
    assert played.model.shown("coder") == [[("user", "Please do it")]]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("state", "where"),
    [
        (spoken("code", "coder", "common_data.nothing", to("stop")), "code, input"),
        ({"name": "code", "ask": {"question": "common_data.nothing"}, "transition": [to("stop")]}, "code, question"),
        (
            {
                "name": "code",
                "action": {"sub_workflow": "inner", "sub_workflow_input": {"task": "common_data.nothing"}},
                "transition": [to("stop")],
            },
            "code, input task of inner",
        ),
    ],
)
async def test_an_input_that_is_undefined_is_an_error_that_names_it(tmp_path: Path, state: Plain, where: str) -> None:
    played = await play(compiled(tmp_path, workflow(START, state), INNER))
    assert played.result.status == "failed"
    assert played.result.error.endswith(
        f"{where}: `common_data.nothing` failed: it is undefined: nothing has set it, or its name is misspelt"
    )


@pytest.mark.anyio
async def test_a_function_of_python_that_gives_none_for_an_input_is_an_error(tmp_path: Path) -> None:
    states = (START, spoken("code", "coder", "py:nothing", to("stop")))
    played = await play(compiled(tmp_path, workflow(*states), functions="def nothing(data):\n    return None\n"))
    assert "code, input: `py:nothing` failed: the function gave None" in played.result.error


@pytest.mark.anyio
async def test_an_input_that_gives_nothing_says_nothing(tmp_path: Path) -> None:
    played = await play(
        compiled(
            tmp_path,
            workflow(
                START,
                spoken("code", "coder", "null", to("more")),
                spoken("more", "coder", "({a: [1]})", to("stop", "true", SAY)),
            ),
        ),
        "x",
        Prompter(coder=["a", "b"]),
    )
    assert played.model.shown("coder") == [[], [("assistant", "a"), ("user", '{"a": [1]}')]]


# limits, input, output


@pytest.mark.anyio
@pytest.mark.covers("W46")
async def test_the_last_allowed_visit_completes_and_a_further_one_ends_the_run(tmp_path: Path) -> None:
    state = scripted(
        "code", "common_data.n = (common_data.n || 0) + 1; common_data.result = 'n' + common_data.n", to("code")
    )
    state["transition"].append(to("stop"))
    state["transition"][0]["condition"] = "common_data.n < 100"
    played = await play(compiled(tmp_path, workflow(START, state, agents=(), variables={"max_iterations": 3})))
    assert played.result.status == "limited"
    assert played.result.error == "limit_exceeded: limit of 3 visits reached in code"
    assert played.common["n"] == 3
    assert not played.result.success
    assert played.result.output == "n3"  # what there is by now is kept


LOOPING = scripted("loop", "common_data.n = (common_data.n || 0) + 1", to("loop", "common_data.n < 100"), to("stop"))
LIMITED = scripted("limited", "common_data.result = JSON.stringify(common_data.limit)", to("stop"))


@pytest.mark.anyio
@pytest.mark.parametrize("where", ["state", "workflow", "state before"])
async def test_a_limit_leads_where_the_state_or_the_workflow_says(tmp_path: Path, where: str) -> None:
    loop = {**LOOPING, "max_visits": 2, **({"on_limit": "limited"} if where == "state" else {})}
    more: Plain = {"on_limit": "limited"} if where == "workflow" else {}
    states = [START, loop, LIMITED]
    if where == "state before":
        back = {"name": "back", "on_limit": "limited", "transition": [to("loop")]}
        loop = {**loop, "transition": [to("back", "common_data.n < 100"), to("stop")]}
        states = [START, loop, back, LIMITED]
    states[0] = {**START, "transition": [to("loop")]}
    played = await play(compiled(tmp_path, workflow(*states, agents=(), **more)))
    assert (played.result.status, played.result.final_state) == ("done", "stop")
    assert json.loads(played.result.output) == {"state": "loop", "resource": "visits", "limit": 2}


@pytest.mark.anyio
async def test_a_budget_that_is_used_up_leads_where_on_limit_says(tmp_path: Path) -> None:
    chat = spoken("chat", "coder", "'go on'", to("chat"), to("stop"))
    chat["transition"][0]["condition"] = "last_agent_response !== 'never'"
    states = ({**START, "transition": [to("chat")]}, chat, LIMITED)
    budget: Plain = {"budget": {"calls": 2}, "on_limit": "limited"}
    played = await play(compiled(tmp_path, workflow(*states, **budget)), "x", Prompter(coder=["a", "b", "c"]))
    assert played.result.status == "done"
    assert json.loads(played.result.output)["resource"] == "calls"


@pytest.mark.anyio
async def test_a_run_that_ends_at_a_limit_gives_what_its_stop_would_read(tmp_path: Path) -> None:
    loop = scripted("start", "common_data.other = 'so far'", to("start", "common_data.task"), to("stop"))
    stop = {"name": "stop", "input": "this.common_data.other"}
    played = await play(compiled(tmp_path, workflow({**loop, "max_visits": 2}, stop, agents=())))
    assert (played.result.status, played.result.output) == ("limited", "so far")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("wanted", "given", "is_right"),
    [
        ("string", "'a'", True),
        ("string", "1", False),
        ("number", "1", True),
        ("object", "({a: 1})", True),
        ("object", "[1]", False),
        ("array", "[1]", True),
        ("boolean", "true", True),
        (None, "1", True),
        ("string", "null", True),
    ],
)
async def test_the_output_has_the_type_that_the_file_says(
    tmp_path: Path, wanted: str | None, given: str, is_right: bool
) -> None:
    output = {"name": "result", "description": "it"} | ({"type": wanted} if wanted else {})
    states = (scripted("start", "common_data.x = 1", to("stop")), {"name": "stop", "input": given})
    played = await play(compiled(tmp_path, workflow(*states, agents=(), output=output)))
    assert played.result.success is is_right, played.result.error
    if not is_right:
        assert f"the output 'result' is to be of type {wanted} and is of type" in played.result.error


@pytest.mark.anyio
async def test_a_run_that_was_kept_before_outputs_were_checked_goes_on_without_that(tmp_path: Path) -> None:
    states = (scripted("start", "common_data.x = 1", to("stop")), {"name": "stop", "input": "1"})
    machine = compiled(tmp_path, workflow(*states, agents=()))
    kept = json.loads(json.dumps(definition_with_all_below(machine)))
    assert kept["workflows"]["trial"].pop("rules") == {"checks_output": True, "is_tight": True}
    before = machine_stored(kept["workflows"]["trial"]["source"], kept)
    assert isinstance(before, WorkflowMachine)
    assert (await play(before)).result.output == 1


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("stop", "output"),
    [
        (None, "by name"),
        ({"name": "stop"}, "by name"),
        ({"name": "stop", "input": "common_data.other"}, "by input"),
        ({"name": "stop", "input": "1 + '1'"}, "11"),
        ({"name": "stop", "input": "common_data.none"}, None),
    ],
)
async def test_the_output_is_the_input_of_stop_else_what_bears_its_name(tmp_path: Path, stop: Any, output: Any) -> None:
    states = [scripted("start", "common_data.result = 'by name'; common_data.other = 'by input'", to("stop"))]
    played = await play(compiled(tmp_path, workflow(*states, *([stop] if stop else []), agents=())))
    assert (played.result.status, played.result.output) == ("done", output)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("type_", "given", "seen"),
    [
        ("string", "{}", "{}"),
        ("number", "4.5", 4.5),
        ("number", 3, 3),
        ("object", '{"a": 1}', {"a": 1}),
        ("array", [1], [1]),
    ],
)
@pytest.mark.covers("W24")
async def test_the_input_is_read_by_its_type(tmp_path: Path, type_: str, given: Any, seen: Any) -> None:
    parameter = {"name": "task", "type": type_, "description": "it"}
    states = (scripted("start", "common_data.result = common_data.task", to("stop")),)
    played = await play(compiled(tmp_path, workflow(*states, agents=(), input=parameter)), given)
    assert played.result.output == seen


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("type_", "given"),
    [
        *(("string", 3), ("string", None), ("object", [1]), ("array", "{}"), ("array", "[" * 5000 + "]" * 5000)),
        *(
            ("number", "three"),
            ("number", True),
            ("number", "NaN"),
            ("number", "1e999"),
            ("object", '{"a": 1, "a": 2}'),
        ),
    ],
)
async def test_an_input_of_another_type_is_refused_before_anything_happens(
    tmp_path: Path, type_: str, given: Any
) -> None:
    parameter = {"name": "task", "type": type_, "description": "it"}
    machine = compiled(tmp_path, workflow({"name": "start", "transition": [to("stop")]}, agents=(), input=parameter))
    with pytest.raises(Refused, match=f"trial takes 'task', an? {type_}"):
        await play(machine, given)


# sub-workflows

INNER = workflow(
    scripted("start", "common_data.result = 'did ' + common_data.task; common_data.secret = 1", to("stop")),
    agents=(),
    workflow_name="inner",
)


@pytest.mark.anyio
@pytest.mark.covers("W34", "W40", "W15")
async def test_a_sub_workflow_runs_alone_and_only_its_output_comes_back(tmp_path: Path) -> None:
    outer = workflow(
        scripted("start", "common_data.job = 'tea'", to("delegate")),
        {
            "name": "delegate",
            "action": {"sub_workflow": "inner", "sub_workflow_input": {"task": "common_data.job + '!'"}},
            "transition": [to("stop", "true", "() => { this.common_data.result = this.sub_workflow_result; }")],
        },
        agents=(),
    )
    played = await play(compiled(tmp_path, outer, INNER))
    assert played.result.output == "did tea!"
    assert set(played.common) == {"task", "job", "result"}
    assert [one.record.machine for one in await played.hall.store.runs()] == ["inner", "trial"]


@pytest.mark.anyio
async def test_a_sub_workflow_that_fails_fails_the_state_unless_it_says_what_then(tmp_path: Path) -> None:
    broken = {**INNER, "states": [scripted("start", "common_data.x.y = 1", to("stop"))]}
    state = {
        "name": "start",
        "action": {"sub_workflow": "inner", "sub_workflow_input": {"task": "'x'"}},
        "transition": [to("stop")],
    }
    played = await play(compiled(tmp_path, workflow(state, agents=()), broken))
    assert played.result.status == "failed"
    assert "child inner: failed: start, enter: start, script" in played.result.error
    caught = scripted(
        "caught",
        "common_data.result = common_data.error.state + ': ' + common_data.error.reason.slice(0, 11)",
        to("stop"),
    )
    played = await play(compiled(tmp_path, workflow({**state, "on_error": "caught"}, caught, agents=()), broken))
    assert played.result.output == "start: child inner"


# beyond the document


@pytest.mark.anyio
async def test_states_inside_a_state_are_entered_at_the_first_and_end_at_one_without_transition(tmp_path: Path) -> None:
    outer = {
        "name": "outer",
        "on_entry": "common_data.log = ['in']",
        "on_exit": "common_data.log.push('out')",
        "states": [
            {
                **scripted("one", "common_data.log.push('one')", to("two")),
                "on_exit": "common_data.log.push('left one')",
            },
            scripted("two", "common_data.log.push('two')", to("over")),
            {"name": "over"},
        ],
        "transition": [to("stop", "true", "common_data.result = common_data.log.join(' ')")],
    }
    states = (
        {"name": "start", "transition": [to("outer")]},
        outer,
        {"name": "stop", "input": "common_data.log.join(' ')"},
    )
    played = await play(compiled(tmp_path, workflow(*states, agents=())))
    assert played.result.output == "in one left one two out"
    assert played.result.states_visited == ("start", "outer", "one", "two", "over", "stop")


@pytest.mark.anyio
@pytest.mark.parametrize(("history", "second"), [("none", "one"), ("shallow", "two")])
async def test_with_history_a_state_goes_on_where_it_was_left(tmp_path: Path, history: str, second: str) -> None:
    def inner(name: str, target: str) -> Plain:
        return scripted(
            name, f"common_data.log.push('{name}')", to("break", "common_data.log.length === 2"), to(target)
        )

    outer = {
        "name": "outer",
        "states": [inner("one", "two"), inner("two", "over"), {"name": "over"}],
        "transition": [to("stop")],
        "history": history,
    }
    states = (
        scripted("start", "common_data.log = []", to("outer")),
        outer,
        scripted("break", "common_data.log.push('break')", to("outer")),
        {"name": "stop", "input": "common_data.log"},
    )
    played = await play(compiled(tmp_path, workflow(*states, agents=())))
    assert played.result.output[:4] == ["one", "two", "break", second]


def region(name: str, agent: str) -> Plain:
    keep = f"common_data.{name} = agents.{agent}.getLastResponse()"
    return {
        "name": name,
        "states": [
            spoken(f"{name} speaks", agent, f"'{name}?'", to(f"{name} over", "true", keep)),
            {"name": f"{name} over"},
        ],
    }


@pytest.mark.anyio
@pytest.mark.covers("W54")
async def test_parallel_states_work_at_once_and_join(tmp_path: Path) -> None:
    both = {
        "name": "both",
        "parallel": [region("left", "coder"), region("right", "reviewer")],
        "transition": [to("stop")],
    }
    states = (
        {"name": "start", "transition": [to("both")]},
        both,
        {"name": "stop", "input": "common_data.left + common_data.right"},
    )
    machine = compiled(tmp_path, workflow(*states, agents=(("coder", "assistant"), ("reviewer", "user"))))
    played = await play(machine, "x", Prompter(coder=["L"], reviewer=["R"]))
    assert played.result.output == "LR"


@pytest.mark.anyio
async def test_the_first_of_parallel_states_may_be_enough(tmp_path: Path) -> None:
    quick = {"name": "quick", "states": [scripted("go", "common_data.result = 'quick'", to("gone")), {"name": "gone"}]}
    both = {"name": "both", "join": "first", "parallel": [quick, region("slow", "coder")], "transition": [to("stop")]}
    states = ({"name": "start", "transition": [to("both")]}, both, {"name": "stop"})
    played = await play(compiled(tmp_path, workflow(*states)), "x", Prompter(coder=["late"]))
    assert (played.result.output, played.model.requests) == ("quick", [])


@pytest.mark.anyio
@pytest.mark.covers("W54")
async def test_an_error_leads_where_the_state_or_the_workflow_says(tmp_path: Path) -> None:
    caught = scripted("caught", "common_data.result = common_data.error.reason", to("stop"))
    states = (scripted("start", "common_data.nobody.knows()", to("stop")), caught, {"name": "stop"})
    for more in ({"on_error": "caught"}, {}):
        first = states[0] if more else {**states[0], "on_error": "caught"}
        played = await play(compiled(tmp_path, workflow(first, *states[1:], agents=(), **more)))
        assert "start, script: `common_data.nobody.knows()` failed: TypeError" in played.result.output


@pytest.mark.anyio
async def test_an_error_inside_a_state_leads_where_the_state_around_it_says(tmp_path: Path) -> None:
    inner = [scripted("inner", "common_data.nobody.knows()", to("over")), {"name": "over"}]
    outer = {"name": "outer", "states": inner, "transition": [to("stop")], "on_error": "caught"}
    caught = scripted("caught", "common_data.result = common_data.error.state", to("stop"))
    states = ({"name": "start", "transition": [to("outer")]}, outer, caught)
    played = await play(compiled(tmp_path, workflow(*states, agents=())))
    assert played.result.output == "outer"


@pytest.mark.anyio
async def test_functions_of_python_may_be_conditions_scripts_and_inputs(tmp_path: Path) -> None:
    states = (
        scripted("start", "py:remember", to("code", "py:is_loud"), to("code", "common_data.seen")),
        spoken("code", "coder", "py:shout", to("stop", "true", SAY)),
    )
    machine = compiled(tmp_path, workflow(*states, variables={"spare": 1}), functions=TOOLS)
    played = await play(machine, "tea", Prompter(coder=["done"]))
    assert played.model.shown("coder") == [[("user", "TEA")]]
    assert (played.common["seen"], "spare" in played.common) == (True, False)


@pytest.mark.anyio
async def test_a_function_of_python_that_nobody_registered_fails_by_name(tmp_path: Path) -> None:
    played = await play(compiled(tmp_path, workflow(scripted("start", "py:nothing", to("stop")), agents=())))
    assert "no function 'nothing' is registered" in played.result.error


@pytest.mark.anyio
async def test_a_function_of_python_that_ends_the_program_has_failed(tmp_path: Path) -> None:
    leaving = "def leave(data):\n    raise SystemExit(0)\n"
    states = (scripted("start", "py:leave", to("stop")),)
    played = await play(compiled(tmp_path, workflow(*states, agents=()), functions=leaving))
    assert "SystemExit: 0" in played.result.error


def test_a_file_with_errors_is_not_run(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"E_UNKNOWN_STATE /states/0/transition/0/target \(line 1\)"):
        compiled(tmp_path, workflow({"name": "start", "transition": [to("nowhere")]}, agents=()))


def test_the_definition_changes_with_texts_roles_and_contexts(tmp_path: Path) -> None:
    base = workflow(START, spoken("code", "coder", "'one'", to("stop", "true", SAY)))
    digests = set()
    for count, (more, roles) in enumerate(
        [
            ({}, None),
            ({"contexts": [{"name": "talk", "max_length": 5}]}, None),
            ({}, {"coder": {"systemMessage": "New."}}),
        ]
    ):
        (tmp_path / f"{count}").mkdir()
        digests.add(compiled(tmp_path / f"{count}", {**base, **more}, roles=roles).digest)
    (tmp_path / "same").mkdir()
    digests.add(compiled(tmp_path / "same", base).digest)
    assert len(digests) == 3


@pytest.mark.parametrize(
    ("changes", "roles", "is_same"),
    [
        ({"description": "other words"}, None, True),
        ({"states": [START, spoken("code", "coder", "'two'", to("stop", "true", SAY))]}, None, True),
        ({"contexts": [{"name": "talk", "starting_messages": [{"role": "user", "content": "Hi"}]}]}, None, True),
        ({}, {"coder": {"systemMessage": "New.", "reminder": "Mind."}}, True),
        ({"contexts": [{"name": "talk", "max_length": 5}]}, None, False),
        ({}, {"coder": {"excludedTools": ["sing"]}}, False),
        ({"states": [START, spoken("code", "coder", "'one'", to("stop", "1 < 2", SAY))]}, None, False),
        ({"states": [START, spoken("code", "coder", "py:one", to("stop", "true", SAY))]}, None, False),
        ({"variables": {"depth": 2}}, None, False),
    ],
)
def test_what_a_file_only_says_decides_nothing(tmp_path: Path, changes: Any, roles: Any, is_same: bool) -> None:
    base = workflow(START, spoken("code", "coder", "'one'", to("stop", "true", SAY)))
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
    before = compiled(tmp_path / "before", base)
    after = compiled(tmp_path / "after", {**base, **changes}, roles=roles)
    assert not after.is_defined_as(before.digest)
    assert after.decides_as(before.digest) == is_same


# waiting, and going on after a crash


@pytest.mark.anyio
async def test_a_question_waits_for_an_answer_of_its_shape_and_keeps_it(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {"go": {"type": "boolean"}, "why": {"type": "string"}},
        "required": ["go"],
    }
    asking = {
        "name": "start",
        "ask": {"question": "'Really ' + common_data.task + '?'", "schema": schema, "answer": "said", "who": "ada"},
        "transition": [to("stop", "common_data.said.go"), to("start")],
    }
    machine = compiled(tmp_path, workflow(asking, agents=(), output={"name": "said", "type": "object"}))
    played = await play(machine, "tea")
    [question] = played.result.questions
    assert (question.prompt, question.who, played.result.status) == ("Really tea?", "ada", "waiting")
    with pytest.raises(Refused, match="expected true or false"):
        await answer(played.hall, RUN, {"go": "yes"}, by="ada")
    await answer(played.hall, RUN, {"go": True}, by="ada")
    assert played.hall.runs[RUN].head.snapshot.data.output == {"go": True}


@pytest.mark.anyio
@pytest.mark.parametrize(("more", "status"), [({"on_error": "late"}, "done"), ({}, "failed")])
async def test_a_question_that_nobody_answers_in_time_is_an_error(tmp_path: Path, more: Plain, status: str) -> None:
    asking = {"name": "start", "ask": {"question": "Well?", "within": 0.01}, "transition": [to("stop")], **more}
    late = scripted("late", "common_data.result = 'late'", to("stop"))
    states = (asking, late) if more else (asking,)
    machine = compiled(tmp_path, workflow(*states, agents=()))
    hall = stage(machine, Prompter())
    await begin(hall, record_of(machine, hall.clock.now()), machine, first_work_of(machine, "x"))
    await hall.clock.wait_until(hall.clock.now() + 0.02)
    head = await drive(hall, RUN)
    assert head.snapshot.status == status
    assert "nobody answered in time" in (head.snapshot.reason or head.snapshot.data.common_data["error"]["reason"])


class Mute(Prompter):
    """A model that never says anything."""

    async def reply(self, request: Request) -> Reply:
        self.requests.append(request)
        await asyncio.Event().wait()
        raise AssertionError


@pytest.mark.anyio
async def test_a_state_that_waits_too_long_has_failed(tmp_path: Path) -> None:
    state = spoken("code", "coder", "'say something'", to("stop"), timeout=0.02, on_error="late")
    late = scripted("late", "common_data.result = common_data.error.reason", to("stop"))
    played = await play(compiled(tmp_path, workflow(START, state, late)), "x", Mute())
    assert played.result.output == "code: nothing came of it within 0.02 s"


class Broken(Prompter):
    """A model that is out of order."""

    async def reply(self, request: Request) -> Reply:
        self.requests.append(request)
        raise EffectFailed("out of order")


@pytest.mark.anyio
async def test_a_call_that_fails_is_tried_as_often_as_the_state_says(tmp_path: Path) -> None:
    state = spoken("code", "coder", "'say something'", to("stop"), retry={"attempts": 2})
    played = await play(compiled(tmp_path, workflow(START, state)), "x", Broken())
    assert (played.result.status, len(played.model.requests)) == ("failed", 2)
    assert "out of order, 2 attempts" in played.result.error


@pytest.mark.anyio
async def test_the_budget_of_a_file_stops_its_run(tmp_path: Path) -> None:
    looping = spoken("code", "coder", "'again'", to("code", "common_data.task"), to("stop"))
    played = await play(
        compiled(tmp_path, workflow(START, looping, budget={"calls": 2})), "x", Prompter(coder=["a"] * 9)
    )
    assert (played.result.status, played.result.usage["calls"]) == ("limited", 2)


class Mortal(Prompter):
    """A model at one of whose calls the driver of the run dies."""

    def __init__(self, dies_at: int, **lines: list[Any]) -> None:
        super().__init__(**lines)
        self.dies_at = dies_at
        self.driver: asyncio.Task[Head] | None = None

    async def reply(self, request: Request) -> Reply:
        if len(self.requests) == self.dies_at and self.driver is not None:
            self.driver.cancel()
            self.driver = None
            await asyncio.Event().wait()
        return await super().reply(request)


COUNTED = """
calls = []

async def note(what: str) -> str:
    calls.append(what)
    return str(len(calls))
"""


@pytest.mark.anyio
@pytest.mark.parametrize("dies_at", range(5))
async def test_a_run_that_dies_in_any_state_goes_on_without_repeating_what_was_done(
    tmp_path: Path, dies_at: int
) -> None:
    count = "common_data.n = (common_data.n || 0) + 1"
    working = {**LOOP, "transition": [LOOP["transition"][0], to("look", "true", count)]}
    looking = spoken(
        "look", "reviewer", "'look'", to("code", f"{REVIEW} === true"), to("stop", f"{REVIEW} === false", SAY)
    )
    plain = workflow(START, working, looking, agents=(("coder", "assistant"), ("reviewer", "user")))
    machine = compiled(tmp_path, plain, functions=COUNTED)
    said = [calling("note", "", "n1", what="first"), "one", "two"]
    model, store = Mortal(dies_at, coder=said, reviewer=[review(True), review(False)]), MemoryStore()
    hall = stage(machine, model, store)
    hall.owner = next(PROCESSES)
    await begin(hall, record_of(machine, hall.clock.now()), machine, first_work_of(machine, "x"))
    model.driver = asyncio.create_task(drive(hall, RUN))
    with pytest.raises(asyncio.CancelledError):
        await model.driver
    again = stage(machine, model, store)
    await reopen(again, RUN, machine)
    head = await drive(again, RUN)
    assert (head.snapshot.status, head.snapshot.data.common_data["n"]) == ("done", 2)
    keys = [request.key for request in model.requests]
    assert len(keys) == len(set(keys)) == 5
    results = [one["value"] for one in model.requests[-1].messages if one.get("tool") == "note"]
    assert results in ([], ["1"])
    entries = await store.entries(RUN)
    assert [entry["event"]["name"] for entry in entries].count("returned") == 1
    assert compared(again.runs[RUN].run, Reader(machine, again.effects(RUN)), entries) == head


# what a run can take


def rounds(tmp_path: Path, last: str, **more: Any) -> tuple[Certificate, WorkflowMachine]:
    """The certificate of a loop of two agents, three rounds long."""
    agents = (("coder", "assistant"), ("reviewer", "user"))
    states = (
        {**START, "transition": [to("code")]},
        spoken("code", "coder", "'write'", to("review"), **more),
        spoken("review", "reviewer", "'look'", to("stop", REVIEW), to("code", last)),
    )
    machine = compiled(tmp_path, workflow(*states, agents=agents, variables={"max_iterations": 3}))
    bound = certificate(machine)
    assert isinstance(bound, Certificate)
    return bound, machine


@pytest.mark.parametrize(
    ("last", "more", "once", "most"),
    [
        ("true", {}, 6, 18),
        (f"!{REVIEW}", {}, 6, 27),  # the reviewer may forget to call review_work, and is asked for it once per visit
        ("true", {"retry": {"attempts": 1}}, 6, 12),
        ("true", {"retry": {"attempts": 5}}, 6, 24),
    ],
)
def test_a_loop_of_two_agents_without_tools_has_a_tight_certificate(
    tmp_path: Path, last: str, more: Plain, once: int, most: int
) -> None:
    bound, _ = rounds(tmp_path, last, **more)
    assert (bound.once["calls"], bound.resources["calls"]) == (once, most)
    assert "call.tool" not in bound.resources


@pytest.mark.anyio
async def test_such_a_loop_takes_as_many_calls_as_its_certificate_says(tmp_path: Path) -> None:
    bound, machine = rounds(tmp_path, "true")
    no = calling("review_work", improvement_needed=False)
    played = await play(machine, "x", Prompter(coder=["a", "b", "c"], reviewer=[no, no, no]))
    assert played.result.status == "limited"
    assert played.result.usage["calls"] == bound.once["calls"]


@pytest.mark.anyio
async def test_an_agent_without_tools_does_not_go_on_after_calls_of_some_unless_the_run_began_under_the_old_rules(
    tmp_path: Path,
) -> None:
    machine = compiled(
        tmp_path,
        workflow({**START, "transition": [to("code")]}, spoken("code", "coder", "'x'", to("stop", "true", SAY))),
    )
    played = await play(machine, "x", Prompter(coder=[calling("dig", "I dig."), "Done."]))
    assert played.result.output == "I dig."
    kept = json.loads(json.dumps(definition_with_all_below(machine)))
    del kept["workflows"]["trial"]["rules"]
    before = machine_stored(kept["workflows"]["trial"]["source"], kept)
    assert isinstance(before, WorkflowMachine)
    played = await play(before, "x", Prompter(coder=[calling("dig", "I dig."), "Done."]))
    assert played.result.output == "Done."
