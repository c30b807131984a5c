"""Nobody sees what would sway it: drafts are blind, critics know labels only, nobody rates itself."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moothall.agents.ask import AskAgent
from moothall.machines.debate.moves import labels_for, member
from moothall.machines.debate.state import Critique, Evaluation, Proposal, Ranking, Review
from moothall.machines.debate.votes import labels, shuffle
from tests.machines.debates import ANN, BOB, CAT, CLOSED, Panel, begun, played, state

NAMES = ("zeno", "quill", "xavier", "yves")
SURE = 73.0


def panel() -> Panel:
    replies = {("propose", name): [Proposal(f"way {number}", "A", SURE)] for number, name in enumerate(NAMES)}
    refined = {("refine", name): [Proposal(f"new way {number}", "A", SURE)] for number, name in enumerate(NAMES)}
    reviews = {("critique", name): [Critique(tuple(Review(label, "too long") for label in "ABC"))] for name in NAMES}
    judged = {("evaluate", "judge"): [Evaluation(11, "the verdict of the judge"), Evaluation(99)]}
    return Panel({**replies, **refined, **reviews, **judged})


def text(ask: AskAgent) -> str:
    return "\n".join(str(value) for value in ask.arguments.values())


def test_drafts_are_blind() -> None:
    known = panel()
    played(begun(*NAMES), known)
    for ask in known.asks("propose"):
        assert "way" not in text(ask).replace("Which way?", "")
        assert not ask.windows
        assert not ask.thread


@pytest.mark.parametrize("template", ["critique", "refine", "rank", "evaluate", "synthesise", "summarise"])
def test_nobody_is_shown_names_confidences_or_verdicts(template: str) -> None:
    known = panel()
    played(begun(*NAMES, rounds=2), known)
    for ask in known.asks(template):
        shown = text(ask)
        assert not any(name in shown for name in NAMES)
        assert "73" not in shown
        assert "verdict" not in shown


def test_nobody_rates_itself() -> None:
    known = panel()
    played(begun(*NAMES, rounds=1), known)
    for number, name in enumerate(NAMES):
        for template in ("critique", "rank"):
            [ask] = known.asks(template, name)
            assert f"way {number}" not in ask.arguments["arguments"]
            assert ask.arguments["arguments"].count("way ") == 3


def test_the_record_knows_members_by_number_and_not_by_name() -> None:
    simulation = played(begun(*NAMES, rounds=1), panel())
    said = [append.message for step in simulation.steps for append in step.appends]
    assert len(said) == 4 + 4 * 3 + 4
    assert {message["by"].split(" (")[0] for message in said} == {f"member {number}" for number in (1, 2, 3, 4)}
    assert {member(state(simulation), name) for name in NAMES} == {f"member {number}" for number in (1, 2, 3, 4)}


def test_every_reviewer_has_an_order_of_its_own_which_the_seed_decides() -> None:
    data = begun(*(f"agent{number}" for number in range(9)))
    orders = {name: tuple(labels_for(data, name, data.ids).values()) for name in data.ids}
    assert len(set(orders.values())) > 5
    assert orders == {name: tuple(labels_for(data, name, data.ids).values()) for name in data.ids}
    other = type(data)(data.problem, configuration=data.configuration, digest="another seed")
    assert orders != {name: tuple(labels_for(other, name, other.ids).values()) for name in other.ids}


def test_a_review_reaches_the_one_whom_the_reviewer_knew_by_its_label() -> None:
    known = Panel()
    simulation = played(begun(), known)
    for remark in state(simulation).critiques:
        match = re.fullmatch(rf"{remark.by} on (\w)", remark.text)
        assert match is not None
        [ask] = known.asks("critique", remark.by)
        shown = dict(re.findall(r"\[(\w)\]\n(.+)", ask.arguments["arguments"]))
        assert shown[match[1]] == f"draft of {remark.of}"


def test_a_ranking_is_read_with_the_labels_that_its_author_saw() -> None:
    known = Panel({("rank", ANN): [Ranking(("B", "A", "Z"))]})
    simulation = played(begun(), known)
    [ask] = known.asks("rank", ANN)
    shown = dict(re.findall(r"\[(\w)\]\ndraft of (\w+)", ask.arguments["arguments"]))
    assert state(simulation).rankings[ANN] == (shown["B"], shown["A"])


def test_drafts_are_not_ranked_where_answers_are_counted() -> None:
    known = Panel()
    played(begun(ANN, BOB, CAT, answer=CLOSED, protocol="debate"), known)
    assert known.count("rank") == 0


@given(st.lists(st.text(min_size=1, max_size=5), unique=True, max_size=12), st.text(max_size=8))
def test_an_order_loses_nobody_and_does_not_depend_on_the_order_given(names: list[str], seed: str) -> None:
    order = shuffle(names, seed)
    assert sorted(order) == sorted(names)
    assert shuffle(names[::-1], seed) == order


def test_labels_go_on_after_the_alphabet() -> None:
    assert labels(28)[25:] == ("Z", "AA", "AB")
    assert len(set(labels(1_000))) == 1_000
