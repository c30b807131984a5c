"""What a debate asks for over a wire, what it makes of replies that it cannot read, and what it says of them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from moothall.debate import AgentConfig, run_debate
from tests.cli.ran import Moot, Ran
from tests.models.debaters import FAILS, OPTIONS, PROBLEM, Call, Debaters, agreeable, closed, debaters

SEATS = ("ann", "bob", "cat")
FAILED = 1
SENTENCE = "I would not take SQLite for this, whatever others say."


def debated(moot: Moot, panel: Debaters, *more: str, seats: tuple[str, ...] = SEATS, **debate: Any) -> Ran:
    return moot("debate", PROBLEM, *panel.configure("c.json", seats, **debate), "--run-id", "till", *more)


def draft(answer: str, **more: Any) -> dict[str, Any]:
    return {"text": "because", "answer": answer, **more}


def voting(**answers: Any) -> Any:
    """Everybody drafts and refines to the same answer, whatever it is; the rest is agreeable."""

    def speak(call: Call) -> Any:
        if call.node in ("propose", "refine") and call.seat in answers:
            reply = answers[call.seat]
            return draft(reply) if isinstance(reply, str) else reply
        return agreeable(call)

    return speak


# the schema of a request


def test_the_schema_of_each_request_has_its_options_and_its_labels(moot: Moot) -> None:
    with debaters(agreeable) as panel:
        assert debated(moot, panel, protocol="debate", **closed()).code == 0
    for node in ("propose", "refine"):
        assert len(panel.of(node)) == 3
        for call in panel.of(node):
            assert call.schema["properties"]["answer"]["enum"] == list(OPTIONS)
            assert {"text", "answer"} <= set(call.schema["required"])
    for call in panel.of("critique"):
        assert call.labels() == ["A", "B"]
        assert re.findall(r"^\[(\w)\]$", call.words, re.M) == ["A", "B"]
    assert panel.of("synthesise")[0].schema["properties"]["answer"]["enum"] == ["SQLite"]


@pytest.mark.covers("D23")
@pytest.mark.parametrize("points", [7, 70])
def test_words_and_schema_name_one_scale_for_confidence_and_one_for_points(moot: Moot, points: int) -> None:
    def speak(call: Call) -> Any:
        given = {"confidence": 85, "rubric": {"clear": points}}
        return given if call.node == "evaluate" else agreeable(call)

    with debaters(speak) as panel:
        ended = {"type": "quality", "threshold": 60}
        debated(moot, panel, "--rounds", "1", protocol="debate", rubric=["clear"], terminationCondition=ended)
    for call in (*panel.of("propose"), *panel.of("refine"), *panel.of("evaluate"), *panel.of("synthesise")):
        assert (asked := call.schema["properties"]["confidence"])["minimum"] == 0
        assert asked["maximum"] == 100
        assert re.search(r"how sure you are,? \(?(from )?0 to 100", call.words)
        assert "0 to 10 " not in call.role
    judged = panel.of("evaluate")
    assert judged[0].schema["properties"]["rubric"]["additionalProperties"]["maximum"] == 10
    assert "from 1 to 10 as rubric: clear" in judged[0].words
    assert [call.is_repair for call in judged] == ([False] if points == 7 else [False, True])


def test_a_judge_who_decides_a_tie_may_name_its_leaders_only(moot: Moot) -> None:
    tied = voting(ann="SQLite", bob="Redis")
    with debaters(
        lambda call: {"description": "D", "answer": "redis"} if call.seat == "judge" else tied(call)
    ) as panel:
        ran = debated(moot, panel, "--json", seats=SEATS[:2], protocol="vote", **closed())
    assert panel.of("synthesise")[0].schema["properties"]["answer"]["enum"] == ["Redis", "SQLite"]
    assert (ran.code, ran.json["solution"]["answer"]) == (0, "Redis")
    assert "CONSENSUS_REACHED" not in ran.json["events"]


def test_who_ranks_drafts_may_name_their_labels_only(moot: Moot) -> None:
    with debaters(agreeable) as panel:
        assert debated(moot, panel, rounds=1).code == 0
    assert [call.labels() for call in panel.of("rank")] == [["A", "B"]] * 3


def test_a_number_is_asked_for_as_one_and_a_sentence_about_numbers_is_none(moot: Moot) -> None:
    with debaters(voting(ann="42", bob="from 3 to 42", cat="42.0")) as panel:
        ran = debated(moot, panel, "--json", protocol="vote", answer={"type": "number"})
    assert "[0-9]" in panel.of("propose")[0].schema["properties"]["answer"]["pattern"]
    assert (ran.json["votes"]["counts"], ran.json["votes"]["abstained"]) == ({"42": 2}, 1)


# what cannot be read is asked for once more


def test_an_answer_that_is_no_option_is_asked_for_once_more_by_name(moot: Moot) -> None:
    def speak(call: Call) -> Any:
        if call.node == "propose" and call.seat == "bob" and not call.is_repair:
            return draft(SENTENCE)
        return agreeable(call)

    with debaters(speak) as panel:
        ran = debated(moot, panel, "--json", protocol="vote", **closed())
    first, second = panel.of("propose", "bob")
    assert "answer: expected one of 'SQLite', 'PostgreSQL', 'Redis', got 'I would not take" in second.back
    assert not first.is_repair
    assert (ran.json["agreement"], ran.json["abstentions"]) == (100, [])


def test_a_sentence_that_contains_an_option_is_no_vote_for_it(moot: Moot) -> None:
    with debaters(voting(ann="SQLite", bob=SENTENCE, cat=SENTENCE)) as panel:
        ran = debated(moot, panel, "--json", protocol="vote", **closed())
    assert len(panel.of("propose", "bob")) == 2
    assert (ran.json["votes"]["counts"], ran.json["agreement"]) == ({"SQLite": 1}, pytest.approx(33.33))
    assert [known["agent"] for known in ran.json["abstentions"]] == ["bob", "cat"]


def test_in_a_turn_with_tools_an_answer_that_is_no_option_is_asked_for_once_more_too(moot: Moot) -> None:
    Path("docs").mkdir()
    Path("docs/a.txt").write_text("one till")
    with debaters(voting(bob=SENTENCE)) as panel:
        ran = debated(moot, panel, "--json", "--files", "docs", protocol="vote", **closed())
    first, second = panel.of("propose", "bob")
    assert first.schema["properties"]["answer"]["enum"] == list(OPTIONS)
    assert "answer: expected one of 'SQLite', 'PostgreSQL', 'Redis', got 'I would not take" in second.back
    assert ran.json["votes"]["counts"] == {"SQLite": 2}
    assert [known["agent"] for known in ran.json["abstentions"]] == ["bob"]


# everybody is in the denominator


@pytest.mark.covers("D1", "D21")
@pytest.mark.parametrize("protocol", ["debate", "vote", "gated"])
def test_one_readable_answer_of_three_is_no_consensus(moot: Moot, protocol: str) -> None:
    with debaters(voting(ann="SQLite", bob="", cat=draft(SENTENCE, confidence=90))) as panel:
        ran = debated(moot, panel, protocol=protocol, rounds=1, **closed())
        told = moot("report", "till", "--format", "md").out
    assert "CONSENSUS_REACHED" not in ran.err
    assert "round 1: agreement 33 of 100" in ran.err
    assert "abstained: bob, cat" in ran.err
    assert "- bob (draft): it gave no answer" in ran.out
    assert "- cat (draft): its answer is not one of SQLite, PostgreSQL, Redis: I would not" in ran.out
    assert "Abstained, and counted as part of the panel" in told
    assert "bob (draft): it gave no answer" in told


def test_an_agent_whose_model_fails_abstains(moot: Moot) -> None:
    with debaters(voting(ann="SQLite", bob=FAILS, cat=FAILS)) as panel:
        ran = debated(moot, panel, "--json", protocol="vote", **closed())
    assert ran.json["agreement"] == pytest.approx(33.33)
    assert [known["agent"] for known in ran.json["abstentions"]] == ["bob", "cat"]
    assert ran.json["votes"]["abstained"] == 2


def test_a_gate_weighs_who_abstains_like_the_others_on_average(moot: Moot) -> None:
    answers = {"ann": draft("SQLite", confidence=80), "bob": draft("Redis", confidence=40), "cat": draft("")}
    with debaters(voting(**answers)) as panel:
        ran = debated(moot, panel, "--json", protocol="gated", rounds=1, **closed())
    # 80 of 80 + 40 + 60 is no majority: the gate opens, and the round says the same
    assert panel.of("critique")
    assert ran.json["votes"]["share"] == pytest.approx(80 / 180, abs=1e-4)
    assert ran.json["agreement"] == pytest.approx(33.33)


def test_the_vote_of_equal_budget_tells_who_abstained(moot: Moot) -> None:
    def speak(call: Call) -> Any:
        is_vote = call.seat == "cat" and len(panel.of("synthesise")) > 0
        return draft("") if is_vote else agreeable(call)

    with debaters(speak) as panel:
        ran = debated(moot, panel, "--compare", protocol="debate", rounds=1, **closed())
    assert re.search(r"Their vote is SQLite \(\d\d % of them, \d abstained\), the same as the debate", ran.err)


# no answer


@pytest.mark.parametrize("protocol", ["debate", "vote", "gated"])
def test_a_closed_debate_in_which_nobody_chooses_fails_without_an_answer(moot: Moot, protocol: str) -> None:
    with debaters(voting(ann="", bob=SENTENCE, cat="none")) as panel:
        ran = debated(moot, panel, protocol=protocol, rounds=1, **closed())
        told = debated(moot, panel, "--json", "--run-id", "other", protocol=protocol, rounds=1, **closed())
        page = moot("report", "till", "--format", "html").out
    assert ran.code == told.code == FAILED
    assert ran.out.startswith("No answer: nobody chose an option")
    assert told.json["status"] == "failed"
    assert told.json["reason"].startswith("no answer: ")
    assert (told.json["solution"] or {"answer": ""})["answer"] == ""
    assert "CONSENSUS_REACHED" not in told.json["events"]
    assert "There is none: nobody chose an option" in page
    assert moot("ls", "--json").json[0]["status"] == "failed"


def test_a_program_is_told_that_there_is_no_answer(home: Path, tmp_path: Path) -> None:
    with debaters(voting(ann="", bob="none")) as panel:
        seats = [AgentConfig(name, model=f"openai:{name}@{panel.address}") for name in SEATS[:2]]
        judge = AgentConfig("judge", model=f"openai:judge@{panel.address}")
        config = {**closed(), "protocol": "vote"}
        result = run_debate(PROBLEM, agents=seats, judge=judge, config=config, store=f"sqlite:{tmp_path / 'runs.db'}")
    assert (result.status, result.solution) == ("failed", None)
    assert result.plain["reason"].startswith("no answer: nobody chose an option; ann: it gave no answer")


# reviews


@pytest.mark.covers("D20")
def test_reviews_under_unknown_labels_are_asked_for_once_more_and_then_told_as_lost(moot: Moot) -> None:
    def speak(call: Call) -> Any:
        if call.node == "critique" and call.seat == "ann":
            return {"reviews": [{"label": "bob", "text": "Nonsense."}, {"label": "A", "text": "It is good."}]}
        return agreeable(call)

    with debaters(speak) as panel:
        ran = debated(moot, panel, protocol="debate", rounds=1, **closed())
        notes = moot("report", "till", "--format", "md").out
    _, second = panel.of("critique", "ann")
    assert "reviews.label: expected one of 'A', 'B', got 'bob'" in second.back
    assert "a review by ann was lost: no argument is called 'bob'" in notes
    critiques = [call.words.partition("Critiques of it:")[2] for call in panel.of("refine")]
    assert sum("1 of 2 critiques are missing" in text for text in critiques) == 1
    assert not any("There are none." in text for text in critiques)
    assert ran.code == 0


def test_where_all_reviews_are_lost_a_refinement_is_not_told_that_there_are_none(moot: Moot) -> None:
    def speak(call: Call) -> Any:
        lost = {"reviews": [{"label": "Z", "text": "Nonsense."}]}
        return lost if call.node == "critique" else agreeable(call)

    with debaters(speak) as panel:
        debated(moot, panel, protocol="debate", rounds=1, **closed())
    assert len(panel.of("critique")) == 6
    for call in panel.of("refine"):
        assert "2 of 2 critiques are missing: they did not come or could not be read." in call.words


# what ended it, and what nobody stated


def apart(call: Call) -> Any:
    """A panel whose proposals have hardly a word in common."""
    words = {"ann": "files disk copy", "bob": "memory network speed", "cat": "paper pencil drawer copy"}
    return {"text": words[call.seat]} if call.node in ("propose", "refine") else agreeable(call)


def test_an_open_debate_says_by_what_it_ended_and_what_was_measured(moot: Moot) -> None:
    with debaters(apart) as panel:
        ran = debated(moot, panel)
        found = moot("report", "till", "--format", "md").out
        page = moot("report", "till", "--format", "html").out
    measured = re.search(r"round 1: agreement (\d+) of 100", ran.err)
    assert measured is not None
    assert 0 < int(measured[1]) < 30
    ended = r"ended by the judge's confidence of 90 of 100 \(threshold 80, measured agreement [\d.]+\)"
    assert re.search(ended, ran.out)
    assert re.search(ended.replace("ended by", "by"), found)
    assert "ended by agreement" not in ran.out
    chart = page.partition("<figcaption>Agreement</figcaption>")[2].partition("</figure>")[0]
    width = float(re.findall(r'class="work"[^>]* width="([\d.]+)"', chart)[0])
    room = 1000 / 2 - 190 - 90
    assert width == pytest.approx(room * int(measured[1]) / 100, abs=room / 100)


def test_a_confidence_that_nobody_stated_is_not_stated(moot: Moot) -> None:
    with debaters(lambda call: {"description": "So."} if call.node == "synthesise" else apart(call)) as panel:
        ran = debated(moot, panel, "-o", "x.json")
        report = moot("report", "till", "--format", "md").out
    assert "Confidence not stated, after 1 round" in ran.out
    assert "Confidence: not stated." in report
    written = json.loads(Path("x.json").read_text())
    assert written["solution"]["confidence"] is None
    assert written["state"]["drafts"]["ann"]["confidence"] is None
    assert written["termination"]["agreement"] == written["agreement"] < 30


# what the judge writes from


@pytest.mark.covers("D26")
def test_the_judge_writes_from_the_critiques_and_the_earlier_rounds_too(moot: Moot) -> None:
    numbers = {"propose": iter(range(9)), "refine": iter(range(9))}

    def speak(call: Call) -> Any:
        if call.node in numbers:
            return {"text": f"{call.node} number {next(numbers[call.node])} of {call.seat}"}
        if call.node == "critique":
            return {"reviews": [{"label": label, "text": f"{call.seat} minds {label}"} for label in call.labels()]}
        return {"confidence": 10} if call.node == "evaluate" else agreeable(call)

    with debaters(speak) as panel:
        assert debated(moot, panel, rounds=2, summarization={"enabled": True}).code == 0
    assert not panel.of("summarise")
    words = panel.of("synthesise")[0].words
    assert all(f"propose number {number} of" in words for number in range(3))
    assert all(words.count(f"refine number {number} of") == 1 for number in range(6))
    assert sum(words.count(f"{seat} minds ") for seat in SEATS) == 12
    assert "Round 1:" in words
    assert "Round 2:" in words
    assert re.search(r"\[A\] said of \[B\]:", words)
    names = words.partition("Problem:")[2]
    assert not re.search(r"\[(ann|bob|cat)\]", names)


def test_a_judge_of_a_vote_is_shown_the_drafts_alone(moot: Moot) -> None:
    with debaters(agreeable) as panel:
        debated(moot, panel, protocol="vote", **closed())
    assert "What was said on the way" not in panel.of("synthesise")[0].words
