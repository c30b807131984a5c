"""`moot debate` where something is wrong: a clear error before any call, or a fallback that the result names."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.ran import Moot, Ran

REFUSED, WRONG, FAILED, PROVIDER, WAITING, LIMIT = 2, 4, 1, 3, 5, 7
RULES: list[dict[str, Any]] = [
    {"contains": "Before it begins", "value": {"questions": ["How many?"]}},
    {"contains": "Propose a solution", "value": {"text": "One file.", "answer": "A", "confidence": 60}},
    {"contains": "You review", "value": {"reviews": [{"label": "A", "text": "Too short."}]}},
    {"contains": "Refine your own", "value": {"text": "One file, and a backup.", "answer": "A"}},
    {"contains": "Say how sure you are", "value": {"confidence": 90}},
    {"contains": "Summarise the debate", "value": {"text": "They talk."}},
    {"contains": "Rank these", "value": {"ranking": ["A", "B"]}},
    {"contains": "Write the solution", "value": {"description": "One file with a backup.", "confidence": 80}},
]


def scripted(*first: dict[str, Any], usage: int = 0) -> tuple[str, str]:
    """A model that says this first, and else what everybody says; its calls are noted."""
    rules = [*first, *RULES]
    if usage:
        rules = [{**rule, "usage": {"tokens": usage}} for rule in rules]
    Path("script.json").write_text(json.dumps({"rules": rules}))
    return "--model", "scripted:script.json,log=calls.log"


def calls() -> int:
    log = Path("calls.log")
    return len(log.read_text().splitlines()) if log.exists() else 0


def debated(moot: Moot, *more: str) -> Ran:
    return moot("debate", "Where to keep sales?", "--run-id", "till", "--json", *more)


def config(**debate: Any) -> tuple[str, str]:
    Path("config.json").write_text(json.dumps({"debate": debate}))
    return "-c", "config.json"


# before any call


@pytest.mark.covers("D8", "D22")
@pytest.mark.parametrize(
    ("plain", "why"),
    [
        ({"debate": {"rounds": 0}}, "/debate/rounds"),
        ({"debate": {"rounds": -1}}, "/debate/rounds"),
        ({"agents": [{"id": "a", "enabled": False}]}, "no agent is enabled"),
        ({"agents": []}, "/agents"),
        ({"debate": {"terminationCondition": {"threshold": 101}}}, "/debate/terminationCondition/threshold"),
        ({"debate": {"terminationCondition": {"threshold": -1}}}, "/debate/terminationCondition/threshold"),
        ({"debate": {"terminationCondition": {"type": "never"}}}, "/debate/terminationCondition/type"),
        ({"debate": {"timeoutPerRound": 0}}, "/debate/timeoutPerRound"),
        ({"debate": {"answer": {"type": "choice", "options": ["A"]}}}, "a choice needs two options"),
        ({"debate": {"check": "compiles", "answer": {"type": "number"}}}, "no function of that name is registered"),
        ({"agents": [{"id": "a"}, {"id": "a"}]}, "'a' is taken"),
        ({"agents": [{"id": "judge"}]}, "'judge' is taken"),
        ({"agents": [{"id": "a", "tools": ["read_file"]}]}, "no folder to look into; name one with --files DIR"),
        ({"agents": [{"id": "a", "tools": ["write_file"]}]}, "no folder to work in; name one with --workspace DIR"),
        ({"agents": [{"id": "a", "tools": ["dig"]}]}, "nothing here is called so; give it with --functions MODULE"),
        ({"judge": {"id": "j", "toolCallLimit": 1001}}, "1001 calls before one reply are too many; at most 1000"),
        ({"agents": [{"id": "a", "systemPromptPath": "missing.md"}]}, "missing.md cannot be read"),
        ({"agents": [{"id": "a", "summaryPromptPath": "missing.md"}]}, "missing.md cannot be read"),
        ({"agents": [{"id": "a", "role": "nobody"}]}, "nobody"),
        ({"rounds": "three"}, ""),
        ([], "a configuration is an object"),
    ],
)
def test_a_configuration_that_cannot_be_meant_is_refused_before_any_call(moot: Moot, plain: Any, why: str) -> None:
    Path("config.json").write_text(json.dumps(plain))
    ran = debated(moot, "-c", "config.json", *scripted())
    if why:
        assert (ran.code, calls()) == (WRONG, 0)
        assert why in ran.err
    else:
        assert "rounds" in ran.err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("-c", "missing.json"), "missing.json cannot be read"),
        (("--answers", "missing.json"), "missing.json cannot be read"),
        (("-a", "nobody"), "nobody"),
        (("-a", ","), "no agent is named"),
        (("--options", "A"), "a choice needs two options"),
    ],
)
def test_files_and_roles_that_are_missing_are_named_before_any_call(
    moot: Moot, arguments: tuple[str, ...], why: str
) -> None:
    ran = debated(moot, *arguments, *scripted())
    assert (ran.code, calls()) == (WRONG, 0)
    assert why in ran.err


def test_a_debate_that_is_run_as_any_machine_has_roles_that_somebody_knows(moot: Moot) -> None:
    agents = [{"id": "a", "name": "a", "role": "nobody"}, {"id": "b", "name": "b", "role": "kiss"}]
    given = {"problem": "Tea?", "configuration": {"agents": agents}}
    Path("given.json").write_text(json.dumps(given))
    ran = moot("run", "debate", "--input-json", "given.json", *scripted())
    assert (ran.code, calls()) == (WRONG, 0)
    assert "no role is called 'nobody'" in ran.err


@pytest.mark.parametrize("problem", ["", "   "])
def test_an_empty_problem_is_refused_before_any_call(moot: Moot, problem: str) -> None:
    Path("problem.txt").write_text(problem)
    ran = moot("debate", "-p", "problem.txt", *scripted())
    assert ran.code != 0
    assert "the problem is empty" in ran.err
    assert calls() == 0


def test_a_prompt_file_that_names_what_nobody_fills_is_refused_before_any_call(moot: Moot) -> None:
    Path("ask.md").write_text("Ask about {weather}.")
    Path("config.json").write_text(json.dumps({"agents": [{"id": "a", "clarificationPromptPath": "ask.md"}]}))
    ran = debated(moot, "-c", "config.json", *scripted())
    assert (ran.code, calls()) == (WRONG, 0)
    assert "{weather}" in ran.err


@pytest.mark.covers("D8")
def test_one_agent_debates_alone_with_a_warning_and_without_critiques(moot: Moot) -> None:
    ran = debated(moot, "-a", "kiss", *scripted())
    assert ran.code == 0
    assert "one agent debated alone: there were no critiques" in ran.err
    assert "CRITIQUES_COMPLETE" in ran.json["events"]
    assert calls() == 4


def test_a_panel_of_one_model_is_told_to_be_less_independent(moot: Moot) -> None:
    assert "all agents share one model" in debated(moot, *scripted()).err


# while it runs


@pytest.mark.covers("D27")
def test_an_agent_that_never_answers_well_is_left_out_and_named(moot: Moot) -> None:
    ill = {"agent": "kiss", "fail": "overloaded", "final": True}
    ran = debated(moot, *scripted(ill), *config(retries=0))
    assert ran.code == 0
    [kiss] = [agent for agent in ran.json["agents"] if agent["id"] == "kiss"]
    assert kiss["status"].startswith("left out: ")
    assert "overloaded" in kiss["status"]
    assert "FALLBACK" in ran.json["events"]


@pytest.mark.covers("D27", "D3")
def test_a_failure_that_passes_is_retried_and_costs_nobody_a_seat(moot: Moot) -> None:
    ill = {"agent": "kiss", "contains": "Propose", "fail": "overloaded", "final": True, "times": 1}
    ran = debated(moot, *scripted(ill))
    assert (ran.code, ran.json["events"].count("RETRY")) == (0, 1)
    assert all(agent["status"] == "took part" for agent in ran.json["agents"])
    assert Path("calls.log").read_text().count(" architect") == 4


@pytest.mark.covers("D27")
def test_a_debate_in_which_everybody_fails_ends_as_failed_and_says_why(moot: Moot) -> None:
    ran = debated(moot, *scripted({"fail": "overloaded", "final": True}), *config(retries=0))
    assert ran.code in (FAILED, PROVIDER)
    assert (ran.json["status"], ran.json["final_state"]) == ("failed", "Failed")
    assert "no agent is left" in ran.json["reason"]


@pytest.mark.parametrize("nonsense", ["what?", {"confidence": "very"}, {"confidence": 900}, []])
def test_a_judge_that_returns_nonsense_is_replaced_by_what_is_measured(moot: Moot, nonsense: Any) -> None:
    wild = {"agent": "judge", "contains": "Say how sure you are", "value": nonsense}
    ran = debated(moot, *scripted(wild), *config(retries=0, rounds=1))
    assert ran.code == 0
    assert any("the judge gave no evaluation" in note for note in ran.json["notes"])
    assert ran.json["solution"]["description"] == "One file with a backup."


def test_a_judge_that_writes_nonsense_is_replaced_by_the_best_proposal(moot: Moot) -> None:
    wild = {"agent": "judge", "contains": "Write the solution", "value": 7}
    ran = debated(moot, *scripted(wild), *config(retries=0, rounds=1))
    assert ran.code == 0
    assert ran.json["solution"]["description"] == "One file, and a backup."
    assert "the judge could not be had" in ran.json["solution"]["open_questions"][0]


def test_a_problem_of_a_megabyte_is_debated_or_refused_plainly(moot: Moot) -> None:
    Path("problem.txt").write_text("word " * 200_000)
    ran = moot("debate", "-p", "problem.txt", "-a", "kiss,architect", "-r", "1", "--json", *scripted())
    assert ran.code == 0
    assert ran.json["solution"]["description"] == "One file with a backup."


def test_an_answer_to_a_question_that_is_gone_changes_nothing_and_says_so(moot: Moot) -> None:
    assert debated(moot, "--clarify", *scripted(), "-a", "kiss").code == WAITING
    [question] = moot("resume", "till", "--json").json["questions"]
    assert moot("answer", "till", question["id"], "--json", '{"q1": "seven"}').code == 0
    assert "stands" in moot("answer", "till", question["id"], "--json", '{"q1": "eight"}').err
    assert moot("answer", "till", "--json", '{"q1": "eight"}').code != 0
    told = moot("resume", "till", "--json").json
    assert [known["answer"] for known in told["clarifications"]] == ["seven"]


@pytest.mark.parametrize("given", ['{"q9": "seven"}', '{"q1": ""}', '"seven"', "{}"])
def test_an_answer_that_answers_nothing_that_was_asked_is_refused(moot: Moot, given: str) -> None:
    assert debated(moot, "--clarify", *scripted(), "-a", "kiss").code == WAITING
    assert moot("answer", "till", "--json", given).code not in (0, WAITING)
    assert len(moot("resume", "till", "--json").json["questions"]) == 1


def test_a_budget_that_is_used_up_ends_with_the_best_so_far(moot: Moot) -> None:
    ran = debated(moot, *scripted(usage=100), "--budget", "tokens=700", "-r", "3")
    assert ran.code == LIMIT
    assert ran.json["status"] == "limited"
    assert ran.json["solution"]["description"].startswith("One file")
    assert "tokens" in ran.json["reason"]


# a person at the table


@pytest.mark.parametrize("event", ["COMPLETE", "FAILED", "CONSENSUS_REACHED", "RETRY", "START", "NONSENSE"])
def test_what_only_the_debate_itself_may_say_is_refused_from_outside(moot: Moot, event: str) -> None:
    assert debated(moot, "--clarify", *scripted(), "-a", "kiss").code == WAITING
    ran = moot("send", "till", event)
    assert ran.code != 0
    assert f"ClarificationInput does not accept {event}; it accepts answered, STEER" in ran.err


def test_a_person_steers_a_debate_that_waits(moot: Moot) -> None:
    assert debated(moot, "--clarify", *scripted(), "-a", "kiss").code == WAITING
    assert moot("send", "till", "STEER", "--text", "Keep it cheap.").code == WAITING
    assert moot("answer", "till", "--json", '{"q1": "seven"}').code == 0
    shown = moot("show", "till", "--json").json["entries"]
    asks = [
        effect["effect"]["arguments"]
        for entry in shown
        for effect in entry["effects"]
        if "template" in effect["effect"]
    ]
    assert any("Keep it cheap." in str(arguments.get("steering")) for arguments in asks)


# checks


def test_a_check_of_a_module_decides_and_is_there_again_after_a_stop(moot: Moot) -> None:
    Path("checks.py").write_text("async def compiles(answer: str, problem: str) -> bool:\n    return answer == 'B'\n")
    Path("config.json").write_text(
        json.dumps({"debate": {"answer": {"type": "choice", "options": ["A", "B"]}, "check": "compiles"}})
    )
    ran = debated(moot, "-c", "config.json", "--functions", "checks.py", "--clarify", *scripted())
    assert ran.code == WAITING
    fields = ran.json["questions"][0]["schema"]["required"]
    ran = moot("answer", "till", "--json", json.dumps(dict.fromkeys(fields, "NA")))
    assert ran.code == 0
    told = moot("resume", "till", "--json").json
    assert told["votes"]["checks"] == {"A": "the check rejects it"}
    assert "Critique" in told["states_visited"]
