"""`moothall.debate`: debates from Python are real, durable runs; nodes, rules and hooks of one's own belong to them."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from moothall import Moothall
from moothall.app.runs.replay import replay
from moothall.debate import (
    DEBATE_EVENTS,
    AgentConfig,
    Clarification,
    DebateConfig,
    DebateHooks,
    DebateNode,
    DebateTerms,
    NodeContext,
    NodeResult,
    NodeType,
    StateMachineOrchestrator,
    TransitionRule,
    resume,
    run_debate,
)
from moothall.errors import DefinitionError, Refused

PROBLEM = "Where should the till keep its sales?"
SCRIPT = Path(__file__).parents[2] / "examples" / "debate.json"
OPTIONS = {"answer": {"type": "choice", "options": ["SQLite", "PostgreSQL", "Redis"]}}
SCRIPTED = DebateTerms(f"scripted:{SCRIPT}")
PANEL = ("architect", "performance", "kiss")


def orchestrator(
    config: Mapping[str, Any] | None = None, terms: DebateTerms = SCRIPTED, **more: Any
) -> StateMachineOrchestrator:
    return StateMachineOrchestrator(PANEL, "judge", config={**OPTIONS, **(config or {})}, terms=terms, **more)


# tools of seats


async def tills(shop: str) -> int:
    return len(shop)


@pytest.mark.covers("D8", "D33")
def test_a_seat_has_tools_of_the_caller_and_looks_into_the_context_directory(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "now.txt").write_text("SQLite today")
    calls = [{"tool": "tills", "arguments": {"shop": "north"}}, {"tool": "read_file", "arguments": {"path": "now.txt"}}]
    value = {"text": "As it is.", "answer": "SQLite"}
    rules = [
        {"agent": "ada", "contains": ["Propose a solution", "SQLite today"], "value": value},
        {"agent": "ada", "contains": "Propose a solution", "calls": calls},
        {"contains": "Propose a solution", "value": value},
        {"contains": "Write the solution", "value": {"description": "SQLite.", "answer": "SQLite"}},
    ]
    (tmp_path / "script.json").write_text(json.dumps({"rules": rules}))
    terms = DebateTerms(f"scripted:{tmp_path / 'script.json'}", tools={"tills": tills})
    seats = (AgentConfig("ada", tools=("tills", "read_file"), toolCallLimit=2), "kiss")
    held = StateMachineOrchestrator(seats, config=OPTIONS, terms=terms, context_directory=tmp_path / "docs")
    result = asyncio.run(held.run_debate(PROBLEM))
    assert result.status == "done"
    assert [(use["agent"], use["tool"], use["end"]) for use in result.plain["tool_calls"]] == [
        ("ada", "tills", "returned"),
        ("ada", "read_file", "returned"),
    ]


# D33, D37: the orchestrator


@pytest.mark.covers("D33", "D37")
def test_a_debate_from_python_ends_with_a_solution_and_says_how_it_came_about() -> None:
    result = asyncio.run(orchestrator().run_debate(PROBLEM, debate_id="till"))
    assert (result.debate_id, result.status) == ("till", "done")
    assert result.solution is not None
    assert result.solution.answer == "SQLite"
    assert result.plain["events"][:4] == ["START", "ALL_CLEAR", "BEGIN_ROUND", "CONTEXTS_READY"]
    assert {agent["id"]: agent["flips"] for agent in result.plain["agents"]} == {
        "architect": 1,
        "performance": 2,
        "kiss": 0,
    }


@pytest.mark.covers("D33")
def test_the_short_way_in_runs_the_same_debate() -> None:
    result = run_debate(PROBLEM, agents=PANEL, config=OPTIONS, model=f"scripted:{SCRIPT}", debate_id="short")
    assert result.solution is not None
    assert (result.status, result.solution.answer) == ("done", "SQLite")


@pytest.mark.covers("D37", "D33")
def test_agents_and_judge_may_be_functions_of_ones_own() -> None:
    heard: list[str] = []

    async def ann(prompt: str) -> Any:
        heard.append(prompt)
        return {"text": "the way of ann", "answer": "", "confidence": 70} if "label" not in prompt else {"reviews": []}

    async def arbiter(prompt: str) -> Any:
        if "Write the solution" in prompt:
            return {"description": "the way", "confidence": 80}
        return {"confidence": 95}

    result = asyncio.run(StateMachineOrchestrator([ann], arbiter).run_debate("Which way?", "It rains."))
    assert result.solution is not None
    assert result.solution.description == "the way"
    assert "It rains." in heard[0]


def test_functions_are_not_one_model_and_a_model_plays_the_other_seats(capsys: pytest.CaptureFixture[str]) -> None:
    async def ann(prompt: str) -> Any:
        return {"reviews": []} if "label" in prompt else {"text": "a", "answer": "SQLite", "confidence": 70}

    async def bob(prompt: str) -> Any:
        return {"reviews": []} if "label" in prompt else {"text": "b", "answer": "SQLite", "confidence": 70}

    mixed = StateMachineOrchestrator([ann, bob, "kiss"], config=OPTIONS, terms=SCRIPTED)
    result = asyncio.run(mixed.run_debate(PROBLEM))
    assert result.plain["votes"]["counts"] == {"SQLite": 3}
    assert "share one model" not in capsys.readouterr().err


@pytest.mark.covers("D37")
def test_earlier_clarifications_are_told_to_everybody_and_not_asked_again() -> None:
    config = {"interactiveClarifications": True}
    asked = asyncio.run(
        orchestrator(config).run_debate(PROBLEM, clarifications={"How many tills write at the same time?": "one"})
    )
    assert asked.status == "done"
    assert asked.state.clarifications == (Clarification("q1", "user", "How many tills write at the same time?", "one"),)


@pytest.mark.covers("D34")
@pytest.mark.parametrize(
    "answers",
    [
        {"q1": "NA"},
        {"How many tills write at the same time?": "NA"},
        [Clarification("q1", "kiss", "How many tills write at the same time?", "NA")],
    ],
    ids=["by id", "by text", "as they were asked"],
)
def test_a_debate_waits_with_its_questions_and_goes_on_with_answers(answers: Any) -> None:
    debating = orchestrator({"interactiveClarifications": True})
    waiting = asyncio.run(debating.run_debate(PROBLEM, debate_id="asked"))
    assert (waiting.status, waiting.solution) == ("waiting", None)
    assert waiting.questions == (Clarification("q1", "kiss", "How many tills write at the same time?"),)
    done = asyncio.run(orchestrator({"interactiveClarifications": True}).resume("asked", answers))
    assert (done.status, done.state.clarifications[0].answer) == ("done", "NA")


def test_a_debate_in_memory_lasts_as_long_as_its_orchestrator() -> None:
    debating = orchestrator({"interactiveClarifications": True}, store="memory")
    assert asyncio.run(debating.run_debate(PROBLEM, debate_id="asked")).status == "waiting"
    assert asyncio.run(debating.resume("asked", {"q1": "NA"})).status == "done"


@pytest.mark.covers("D34")
def test_the_short_way_to_go_on_needs_no_configuration() -> None:
    asyncio.run(orchestrator({"interactiveClarifications": True}).run_debate(PROBLEM, debate_id="asked"))
    with pytest.raises(Refused, match="an empty text is not an answer"):
        resume("asked", {"q1": ""})
    done = resume("asked", {"q1": "one"})
    assert done.status == "done"


@pytest.mark.covers("D35", "D5")
def test_the_files_of_the_context_directory_are_recorded_with_their_digests(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "a.txt").write_text("tides")
    (folder / ".hidden").write_text("no")
    result = asyncio.run(orchestrator(context_directory=folder).run_debate(PROBLEM))
    [known] = result.state.files
    assert known.path == "inner/a.txt"
    assert len(known.sha256) == 64
    with pytest.raises(DefinitionError, match="there is no folder"):
        asyncio.run(orchestrator(context_directory=tmp_path / "none").run_debate(PROBLEM))


@pytest.mark.covers("D8", "D35")
@pytest.mark.parametrize(
    ("agents", "config", "why"),
    [
        ((), {}, "no agent is enabled"),
        (("kiss", "kiss"), {}, "two seats are called 'kiss'"),
        (("kis",), {}, "did you mean 'kiss'"),
        (("kiss",), {"rounds": 0}, "0 is too small"),
        (("kiss",), {"check": "spell"}, "no check is called 'spell'"),
        ((AgentConfig("a", enabled=False),), {}, "no agent is enabled"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anybody_is_asked(
    agents: Any, config: Mapping[str, Any], why: str
) -> None:
    with pytest.raises(DefinitionError, match=why):
        StateMachineOrchestrator(agents, config=config)


def test_an_empty_problem_is_refused() -> None:
    with pytest.raises(Refused, match="the problem is empty"):
        asyncio.run(orchestrator().run_debate(" "))


def test_without_any_model_the_stand_in_plays_and_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    result = asyncio.run(StateMachineOrchestrator(["kiss"], config=DebateConfig(rounds=1)).run_debate("x"))
    assert result.status == "done"
    assert "rehearsal stands in" in capsys.readouterr().err


def test_a_registered_check_that_rejects_the_leading_answer_opens_the_debate(tmp_path: Path) -> None:
    seen: list[str] = []

    async def is_safe(answer: str, problem: str) -> str:
        seen.append(answer)
        return "it forgets"

    script = tmp_path / "script.json"
    rules = json.loads(SCRIPT.read_text())["rules"]
    first = {"contains": "on your own", "value": {"text": "Redis", "answer": "Redis", "confidence": 90}}
    script.write_text(json.dumps({"rules": [first, *rules]}))
    terms = DebateTerms(f"scripted:{script}", checks={"safe": is_safe})
    result = asyncio.run(orchestrator({"check": "safe"}, terms).run_debate(PROBLEM))
    assert seen == ["Redis"]
    assert "CRITIQUES_COMPLETE" in result.plain["events"]


# D36: hooks


@pytest.mark.covers("D36")
def test_hooks_are_told_of_phases_messages_questions_rounds_and_the_end() -> None:
    told: list[tuple[Any, ...]] = []
    hooks = DebateHooks(
        on_phase=lambda node, event: told.append(("phase", node, event)),
        on_message=lambda agent, node, value: told.append(("message", agent, node)),
        on_question=lambda asked: told.append(("question", *(question.text for question in asked))),
        on_round=lambda done: told.append(("round", done.number)),
        on_end=lambda run, status: told.append(("end", run, status)),
    )
    config = {"interactiveClarifications": True}
    asyncio.run(orchestrator(config, hooks=hooks).run_debate(PROBLEM, debate_id="heard"))
    assert ("question", "How many tills write at the same time?") in told
    assert ("phase", "Clarification", "QUESTIONS_PENDING") in told
    asyncio.run(orchestrator(config, hooks=hooks).resume("heard", {"q1": "one"}))
    assert [entry[1] for entry in told if entry[0] == "round"] == [1, 2]
    assert told.count(("message", "kiss", "Critique")) == 2
    assert told[-1] == ("end", "heard", "done")
    phases = [entry[2] for entry in told if entry[0] == "phase"]
    assert set(phases) <= DEBATE_EVENTS.keys()
    assert phases[-1] == "COMPLETE"


@pytest.mark.covers("D36")
def test_a_hook_that_raises_does_not_harm_the_debate() -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("mine")

    result = asyncio.run(orchestrator(hooks=DebateHooks(on_phase=fail)).run_debate(PROBLEM))
    assert result.status == "done"


# D4, D28–D32: nodes and rules from outside


def fact_checked(
    execute: Any, folder: Path | None = None, hooks: DebateHooks | None = None
) -> StateMachineOrchestrator:
    terms = DebateTerms(
        f"scripted:{SCRIPT}",
        nodes=(DebateNode("FactCheck", execute),),
        rules=(
            TransitionRule(NodeType.PROPOSAL, "PROPOSALS_COMPLETE", "FactCheck", lambda c: c.state.round == 1),
            TransitionRule("FactCheck", "FACTS_CHECKED", NodeType.CRITIQUE),
            TransitionRule("FactCheck", "NO_USE", None),
        ),
    )
    return orchestrator(None, terms, hooks=hooks, context_directory=folder)


@pytest.mark.covers("D4", "D28", "D29", "D30", "D31")
def test_a_node_from_outside_gets_the_whole_context_and_its_event_leads_on(tmp_path: Path) -> None:
    seen: list[NodeContext] = []
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("tides")

    async def check(context: NodeContext) -> NodeResult:
        seen.append(context)
        return NodeResult("FACTS_CHECKED", {"doubts": ["Redis"]})

    result = asyncio.run(fact_checked(check, tmp_path / "docs").run_debate(PROBLEM))
    [context] = seen
    assert (context.config.rounds, context.judge.id) == (3, "judge")
    assert tuple(agent.id for agent in context.agents) == PANEL
    assert set(context.state.proposals) == set(PANEL)
    assert (context.prepared_contexts, context.context_directory) == ({}, tmp_path / "docs")
    assert context.files[0].path == "a.txt"
    assert result.state.extra["FactCheck"] == {"doubts": ["Redis"]}
    assert result.plain["states_visited"].count("FactCheck") == 1
    assert result.status == "done"


@pytest.mark.covers("D29", "D30")
def test_a_node_from_outside_gets_the_tracing_and_what_was_prepared_for_each_agent(tmp_path: Path) -> None:
    seen: list[NodeContext] = []

    async def look(context: NodeContext) -> NodeResult:
        seen.append(context)
        return NodeResult("LOOKED")

    async def ann(prompt: str) -> Any:
        if "Summarise the debate" in prompt:
            return {"text": "in short"}
        return {"reviews": []} if "label" in prompt else {"text": "the way of ann", "confidence": 70}

    async def arbiter(prompt: str) -> Any:
        return {"description": "the way", "confidence": 80}

    rules = (
        TransitionRule(NodeType.PROPOSAL, "PROPOSALS_COMPLETE", "Look"),
        TransitionRule("Look", "LOOKED", NodeType.CRITIQUE),
    )
    terms, log = DebateTerms(nodes=(DebateNode("Look", look),), rules=rules), f"log:{tmp_path / 'log'}"
    config = {"rounds": 2, "terminationCondition": {"type": "fixed"}, "summarization": {"threshold": 10}}
    debated = StateMachineOrchestrator([ann], arbiter, config=config, tracing=log, terms=terms)
    assert asyncio.run(debated.run_debate(PROBLEM)).status == "done"
    assert [context.tracing for context in seen] == [log, log]
    assert list(seen[1].prepared_contexts.values()) == ["in short"]


@pytest.mark.covers("D32")
def test_a_rule_from_outside_may_end_the_debate() -> None:
    async def give_up(context: NodeContext) -> NodeResult:
        return NodeResult("NO_USE")

    result = asyncio.run(fact_checked(give_up).run_debate(PROBLEM))
    assert result.plain["final_state"] == "Complete"
    assert "CRITIQUES_COMPLETE" not in result.plain["events"]


@pytest.mark.covers("D4", "D28")
def test_a_node_from_outside_is_not_done_again_on_replay_nor_after_a_stop() -> None:
    done: list[int] = []
    stops = iter((True, False))

    async def check(context: NodeContext) -> NodeResult:
        done.append(context.state.round)
        return NodeResult("FACTS_CHECKED")

    class Stopped(BaseException):
        """Ends the process, as Ctrl-C would."""

    def stop(node: str, event: str) -> None:
        if node == "FactCheck" and next(stops):
            raise Stopped

    debating = fact_checked(check)
    with pytest.raises(Stopped):
        asyncio.run(fact_checked(check, hooks=DebateHooks(on_phase=stop)).run_debate(PROBLEM, debate_id="cut"))
    assert done == [1]
    assert asyncio.run(debating.resume("cut")).status == "done"
    assert done == [1]

    async def replayed() -> Any:
        async with Moothall() as hall:
            return await replay(hall.store, "cut", debating.machine())

    found = asyncio.run(replayed())
    assert found.difference is None
    assert done == [1]


@pytest.mark.covers("D28")
@pytest.mark.parametrize(("name", "why"), [("Critique", "has a node Critique already"), ("a b", "cannot be a node")])
def test_a_node_needs_a_name_of_its_own(name: str, why: str) -> None:
    async def nothing(context: NodeContext) -> NodeResult:
        return NodeResult("START")

    with pytest.raises(DefinitionError, match=why):
        DebateNode(name, nothing)


@pytest.mark.covers("D6", "D31")
def test_the_events_of_the_document_are_known_by_name() -> None:
    assert {"START", "QUESTIONS_PENDING", "ALL_CLEAR", "RETRY", "FALLBACK", "FAILED"} <= DEBATE_EVENTS.keys()
    assert all(name == value for name, value in DEBATE_EVENTS.items())
