"""`moot pipeline`: every path with both offline models, what it prints, and what other commands make of its runs."""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from moothall.pipeline import AgentOrchestrator, JobConfig
from tests.cli.ran import Moot

PLAN, SHORT = {"summary": "a boat", "steps": ["cut", "glue"]}, {"summary": "a boat", "steps": ["cut"]}
CHECKS = [{"name": "steps", "expression": "plan.steps.length > 1", "feedback": "one step is no plan"}]
PASSED = ["planning", "validating", "implementing", "judging", "succeeded"]


def scripted(*scores: float, plans: Sequence[Mapping[str, Any]] = (PLAN,) * 5) -> tuple[str, str]:
    """Options for a model that says all this; the judge with these scores."""
    lines = {
        "planner": [{"value": plan, "usage": {"tokens": 100}} for plan in plans],
        "implementer": [{"text": f"boat {number}", "usage": {"tokens": 200}} for number in range(1, 6)],
        "judge": [{"value": {"score": score, "issues": ["it leaks"]}, "usage": {"tokens": 30}} for score in scores],
    }
    Path("script.json").write_text(json.dumps(lines))
    return "--model", "scripted:script.json"


def checked() -> tuple[str, str]:
    Path("checks.json").write_text(json.dumps(CHECKS))
    return "--checks", "checks.json"


def way(moot: Moot, run: str) -> list[str]:
    """The states that a run went through."""
    return [entry["to"][0] for entry in moot("show", run, "--json").json["entries"]]


# every path


@pytest.mark.parametrize(
    ("scores", "options", "ends", "path"),
    [
        ((8,), (), "succeeded", PASSED),
        ((6, 8), (), "succeeded", [*PASSED[:4], "implementing", "judging", "succeeded"]),
        ((4, 8), (), "succeeded", [*PASSED[:4], *PASSED]),
        ((4, 4, 4), (), "failed", [*PASSED[:4], *PASSED[:4], *PASSED[:4], "failed"]),
        ((6,), ("--max-iterations", "1"), "failed", [*PASSED[:4], "failed"]),
        ((), ("--max-iterations", "0"), "failed", ["failed"]),
        ((), ("--token-budget", "0"), "budget_exhausted", ["planning", "budget_exhausted"]),
        ((), ("--token-budget", "100"), "budget_exhausted", ["planning", "validating", "budget_exhausted"]),
        ((), ("--token-budget", "300"), "budget_exhausted", [*PASSED[:4], "budget_exhausted"]),
        ((6,), ("--token-budget", "330"), "budget_exhausted", [*PASSED[:4], "implementing", "budget_exhausted"]),
    ],
    ids=["passed", "soft", "hard", "failed", "once", "never", "planning", "validating", "judging", "implementing"],
)
def test_a_scripted_pipeline_takes_its_path_and_can_be_replayed(
    moot: Moot, scores: tuple[float, ...], options: tuple[str, ...], ends: str, path: list[str]
) -> None:
    ran = moot("pipeline", "a boat", *scripted(*scores), *options, "--run-id", "boat", "--json")
    assert (ran.code, ran.json["final_state"]) == ({"succeeded": 0, "budget_exhausted": 7}.get(ends, 1), ends)
    assert way(moot, "boat") == path
    assert moot("replay", "boat").code == 0


@pytest.mark.parametrize(
    ("plans", "most", "path"),
    [
        ((SHORT, PLAN), 3, ["planning", "validating", *PASSED]),
        ((SHORT, SHORT), 2, ["planning", "validating", "planning", "validating", "failed"]),
    ],
)
def test_a_plan_that_does_not_pass_the_checks_of_a_file_is_made_anew(
    moot: Moot, plans: Sequence[Mapping[str, Any]], most: int, path: list[str]
) -> None:
    options = (*scripted(9, plans=plans), *checked(), "--max-iterations", str(most))
    ran = moot("pipeline", "a boat", *options, "--run-id", "boat", "--json")
    assert way(moot, "boat") == path
    assert (ran.json["reason"] == "no attempt is left after 2: steps: one step is no plan") == (most == 2)
    assert moot("replay", "boat").code == 0


def test_rehearsal_reaches_every_loop_and_every_end_and_each_run_can_be_replayed(moot: Moot) -> None:
    wanted = {
        ("judging", "succeeded"),
        ("judging", "failed"),
        ("judging", "implementing"),
        ("judging", "planning"),
        ("validating", "planning"),
        ("validating", "failed"),
        ("planning", "budget_exhausted"),
        ("validating", "budget_exhausted"),
        ("implementing", "budget_exhausted"),
        ("judging", "budget_exhausted"),
    }
    options = ("--model", "rehearsal", *checked())
    for number in range(60):
        run, tokens = f"try-{number}", (None, 0, None, 100, None, 250, None, 400)[number % 8]
        budget = () if tokens is None else ("--token-budget", str(tokens))
        moot("pipeline", "a boat", *options, *budget, "--run-id", run, "--quiet")
        states = way(moot, run)
        found = set(pairwise(states)) & wanted
        if found:
            assert moot("replay", run).code == 0
        wanted -= found
        if not wanted:
            break
    assert not wanted


# what is printed


def test_the_result_has_the_final_state_the_score_and_the_implementation(moot: Moot) -> None:
    ran = moot("pipeline", "a boat", *scripted(6, 8.5), "--run-id", "boat")
    assert (ran.code, ran.out) == (0, "succeeded, score 8.5, 1 iteration\n\nboat 2\n")
    assert "judging → implementing  replied judge" in ran.err
    assert "boat is done (in succeeded, step 6, " in ran.err


def test_a_failure_prints_the_best_so_far_and_why(moot: Moot) -> None:
    ran = moot("pipeline", "a boat", *scripted(4, 6, 2))
    assert ran.code == 1
    reason = "no attempt is left after 3: the judge's score is 2 of 10; it leaks"
    assert ran.out == f"failed, score 6, 2 iterations: {reason}\n\nboat 2\n"


def test_where_nothing_was_made_the_plan_is_printed(moot: Moot) -> None:
    ran = moot("pipeline", "a boat", *scripted(), "--token-budget", "100")
    reason = "limit of 100 tokens reached in validating"
    assert ran.out == f"budget_exhausted, 1 iteration: {reason}\n\na boat\n\n1. cut\n2. glue\n"


def test_where_there_is_not_even_a_plan_only_the_end_is_printed(moot: Moot) -> None:
    ran = moot("pipeline", "a boat", *scripted(), "--max-iterations", "0", "-q")
    assert ran.out == "failed, 0 iterations: no attempt is allowed: max_iterations is 0\n"
    assert "is failed: no attempt is allowed: max_iterations is 0" in ran.err


def test_json_has_all_that_there_is_to_know(moot: Moot) -> None:
    ran = moot("pipeline", "a boat", *scripted(6, 8.5), "--run-id", "boat", "--json")
    verdicts = [{"score": 6, "issues": ["it leaks"]}, {"score": 8.5, "issues": ["it leaks"]}]
    assert ran.json == {
        "run": "boat",
        "status": "done",
        "final_state": "succeeded",
        "iterations": 1,
        "score": 8.5,
        "plan": PLAN,
        "implementation": "boat 2",
        "verdicts": verdicts,
        "reason": "",
        "usage": {"calls": 5, "tokens": 560},
    }


# what the other commands make of it


def test_a_pipeline_is_a_machine_like_any_other(moot: Moot) -> None:
    ran = moot("run", "pipeline", "a boat", *scripted(8), "--run-id", "boat")
    assert (ran.code, ran.out) == (0, "succeeded, score 8, 1 iteration\n\nboat 1\n")
    assert moot("run", "pipeline-1", "a boat", *scripted(6), "--json").json["final_state"] == "failed"


def test_a_run_that_failed_says_so_again_when_it_is_resumed(moot: Moot) -> None:
    first = moot("pipeline", "a boat", *scripted(6), "--max-iterations", "1", "--run-id", "boat")
    again = moot("resume", "boat")
    assert (again.code, again.out) == (first.code, first.out) == (1, first.out)


def test_more_can_be_said_of_the_job_as_json(moot: Moot) -> None:
    job = {"brief": "a boat", "inputs": {"wood": "oak"}, "pass_score": 9, "soft_fail_score": 8.5}
    ran = moot("run", "pipeline-1", json.dumps(job), *scripted(8.9), "--run-id", "boat", "--json")
    assert ran.json["final_state"] == "failed"
    [asked, *_] = moot("show", "boat", "--json").json["entries"][0]["effects"]
    assert asked["effect"]["arguments"]["inputs"] == {"wood": "oak"}


def test_check_finds_nothing_and_tells_the_most_that_it_can_cost(moot: Moot) -> None:
    ran = moot("check", "pipeline")
    assert (ran.code, ran.out) == (0, "bounded: at most 13 transitions, 3 tool calls, 9 calls (27 with every retry)\n")


@pytest.mark.parametrize("kind", ["mermaid", "tree", "dot", "json"])
def test_it_can_be_drawn(moot: Moot, kind: str) -> None:
    ran = moot("graph", "pipeline", "--format", kind)
    assert ran.code == 0
    assert all(state in ran.out for state in ("initialized", *PASSED, "failed", "budget_exhausted"))


def test_a_cancelled_pipeline_keeps_the_best_so_far(moot: Moot) -> None:
    async def judge(prompt: str) -> str:
        raise KeyboardInterrupt

    config = JobConfig(agents={"judge": judge}, model=scripted()[1], run_id="boat")
    with pytest.raises(KeyboardInterrupt):
        AgentOrchestrator(config).run("a boat")
    cancelled = moot("cancel", "boat", "--json").json
    assert (cancelled["status"], cancelled["result"]["implementation"]) == ("cancelled", "boat 1")
    resumed = moot("resume", "boat")
    assert (resumed.code, resumed.out) == (8, "failed, 1 iteration: asked for at the command line\n\nboat 1\n")


def test_a_fork_asks_models_again_without_a_question(moot: Moot) -> None:
    moot("pipeline", "a boat", *scripted(8), "--run-id", "boat")
    forked = moot("fork", "boat", "--at", "2", "--run-id", "ship")
    assert forked.code == 0
    assert "it asks" not in forked.err


def test_a_machine_of_the_users_that_has_the_same_name_is_shown_as_it_is(moot: Moot) -> None:
    Path("own.py").write_text(
        "from moothall import Final, Machine, On, State, always\n"
        "OWN = Machine('pipeline', states=[State('waiting'), Final('failed')],\n"
        "              moves=[On('waiting', always, to='failed')], result=lambda data: 'mine')\n"
    )
    ran = moot("run", "own.py")
    assert (ran.code, ran.out) == (0, "mine\n")


# what is wrong


@pytest.mark.parametrize(
    ("options", "code", "complaint"),
    [
        (("",), 1, "input: the brief is empty; say what is to be made"),
        (("a boat", "--max-iterations", "-1"), 2, "a whole number of at least 0 and at most 9 digits, not '-1'"),
        (("a boat", "--max-iterations", "9" * 10), 2, "at most 9 digits, not '9999999999'"),
        (("a boat", "--max-iterations", "many"), 2, "a whole number of at least 0 and at most 9 digits, not 'many'"),
        (("a boat", "--token-budget", "1.5"), 2, "a whole number of at least 0 and at most 9 digits, not '1.5'"),
        (("a boat", "--checks", "nowhere.json"), 4, "nowhere.json: the checks cannot be read"),
        (("a boat", "--model", "oracle"), 4, "'oracle' is not a model"),
        ((), 2, "the following arguments are required: brief"),
    ],
)
def test_bad_input_is_told_in_a_sentence(moot: Moot, options: tuple[str, ...], code: int, complaint: str) -> None:
    ran = moot("pipeline", *options)
    assert (ran.code, ran.out) == (code, "")
    assert complaint in ran.err


def test_a_check_that_goes_wrong_fails_the_run_with_its_name(moot: Moot) -> None:
    Path("checks.json").write_text('[{"name": "keel", "expression": "plan.keel.length > 1"}]')
    ran = moot("pipeline", "a boat", *scripted(), "--checks", "checks.json")
    assert ran.code == 1
    assert ran.out.startswith("failed, 1 iteration: check_plan: check 'keel', 'plan.keel.length > 1': TypeError")
