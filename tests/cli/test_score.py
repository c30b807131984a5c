"""`moot score`: judges score the solutions of debates by a rubric, from 1 to 10, as a durable run."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import EXAMPLES
from tests.cli.ran import Moot

RUBRIC = {"criteria": ["correct", "clear"], "judges": [{"id": "ann", "role": "judge"}, {"id": "bob", "role": "judge"}]}


def given(agent: str, reason: str, **points: float) -> dict[str, Any]:
    """What a judge says."""
    listed = [{"criterion": name, "points": number} for name, number in points.items()]
    return {"agent": agent, "value": {"points": listed, "reason": reason}}


ANN, BOB = given("ann", "=1+1", correct=8, clear=6), given("bob", "good", Correct=7, other=1)


def debated(moot: Moot, *runs: str) -> None:
    for run in runs:
        options = ("--options", "SQLite,PostgreSQL,Redis", "--model", f"scripted:{EXAMPLES / 'debate.json'}")
        assert moot("debate", "Where?", *options, "--run-id", run, "-q").code == 0


def scored(moot: Moot, *arguments: str, rules: Any = (ANN, BOB), rubric: Any = None) -> Any:
    Path("rubric.json").write_text(json.dumps(rubric or RUBRIC))
    Path("judges.json").write_text(json.dumps(list(rules)))
    return moot("score", *arguments, "-c", "rubric.json", "--model", "scripted:judges.json")


def test_every_judge_scores_every_debate_and_the_mean_is_told(moot: Moot) -> None:
    debated(moot, "one", "two")
    ran = scored(moot, "one", "two", "--run-id", "scores")
    assert ran.code == 0
    assert "| run | correct | clear | score |" in ran.out
    assert "| one | 7.5 | 6 | 7 |" in ran.out
    assert moot("replay", "scores").code == 0
    assert moot("resume", "scores").out == ran.out


@pytest.mark.parametrize("form", ["json", "csv", "md"])
def test_scores_are_written_in_three_forms(moot: Moot, form: str) -> None:
    debated(moot, "one")
    scored(moot, "one", "-o", f"scores.{form}")
    text = Path(f"scores.{form}").read_text()
    if form == "json":
        [run] = json.loads(text)["runs"]
        assert (run["score"], run["criteria"]) == (7.0, {"correct": 7.5, "clear": 6.0})
        assert run["judges"]["bob"] == {"points": {"correct": 7.0}, "reason": "good"}
    elif form == "csv":
        assert text.splitlines()[:2] == ["run,judge,criterion,points,reason", "one,ann,correct,8,'=1+1"]
    else:
        assert "| one | 7.5 | 6 | 7 |" in text


def test_judges_see_the_solution_and_neither_its_run_nor_how_sure_anybody_is(moot: Moot) -> None:
    debated(moot, "one-that-is-named")
    scored(moot, "one-that-is-named", "--run-id", "scores")
    entries = moot("show", "scores", "--json").json["entries"]
    asked = entries[0]["effects"][0]["effect"]["arguments"]
    assert asked["solution"].startswith("Answer: SQLite\n\nKeep the sales in SQLite")
    assert "one-that-is-named" not in json.dumps(asked)
    assert "onfidence" not in json.dumps(asked)


def test_a_judge_that_fails_leaves_its_points_out_and_the_result_says_so(moot: Moot) -> None:
    debated(moot, "one")
    ran = scored(moot, "one", rules=(ANN, {"agent": "bob", "fail": "gone", "final": True}))
    assert ran.code == 0
    assert "| one | 8 | 6 | 7 |" in ran.out
    assert "Without its points: bob.1" in ran.out


def test_where_every_judge_fails_there_are_no_scores(moot: Moot) -> None:
    debated(moot, "one")
    ran = scored(moot, "one", rules=({"fail": "gone", "final": True},))
    assert (ran.code, "| one | none | none | none |" in ran.out) == (1, True)


@pytest.mark.parametrize(
    ("rubric", "code", "why"),
    [
        ({"criteria": []}, 4, "name at least one criterion"),
        ({"criteria": ["a"], "judges": [{"id": "x"}, {"id": "x"}]}, 4, "no judge twice"),
        ({"judges": []}, 4, "criteria is missing"),
        ([1], 4, "a rubric is an object"),
    ],
)
def test_a_rubric_that_cannot_be_meant_is_refused(moot: Moot, rubric: Any, code: int, why: str) -> None:
    debated(moot, "one")
    ran = scored(moot, "one", rubric=rubric)
    assert (ran.code, why in ran.err) == (code, True), ran.err


def test_only_debates_with_a_solution_are_scored(moot: Moot) -> None:
    moot("pipeline", "a boat", "--model", "rehearsal", "--run-id", "boat")
    ran = scored(moot, "boat")
    assert (ran.code, "run boat is not a debate" in ran.err) == (1, True)
    model = ("--model", f"scripted:{EXAMPLES / 'debate.json'}")
    moot("debate", "Where?", *model, "--clarify", "--run-id", "asks")
    assert "run asks has no solution yet; `moot resume asks`" in scored(moot, "asks").err
