"""Folds of journals are right to the figure, and the same for a journal in one piece and in two."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moothall import Machine
from moothall.app.report.projections.costs import OWN, Bill, Players
from moothall.app.report.projections.flight import DROPPED, LATE
from moothall.app.report.projections.hierarchy import hierarchy_of
from moothall.app.report.projections.metrics import Metrics, merge_figures
from moothall.app.report.projections.transcript import transcript
from moothall.kernel.events import Named
from moothall.kernel.interpreter import start, transition
from moothall.kernel.step import Step
from tests.app.journals import BEGAN, DEEP, FLAT, Act, Telling, acts, folded, lived
from tests.kernel.machines import EVENTS, Count, Draft, drafts

MANY = settings(max_examples=150, deadline=None)
stories = st.lists(acts, max_size=30)
machines = st.sampled_from([FLAT, DEEP])
limits = st.sampled_from([{}, {}, {"calls": 6}])


def measured(machine: Machine, telling: Telling) -> Metrics:
    return folded(telling.entries, Metrics(hierarchy_of(machine), Players("some-model")))


# properties


@MANY
@given(machines, stories, limits)
def test_what_was_counted_is_what_the_runtime_charged(
    machine: Machine, story: list[Act], limits: Mapping[str, float]
) -> None:
    telling = lived(machine, story, limits)
    total, spent = measured(machine, telling).costs.total(), telling.head.spent
    assert total.tokens == spent.get("tokens", 0)
    assert total.usd == pytest.approx(spent.get("usd", 0))
    if not limits:
        assert total.calls == spent.get("calls", 0)
    else:  # a journal does not say that the next attempt was denied; if it is dropped, it counts as made
        assert total.calls >= spent.get("calls", 0)


@MANY
@given(machines, stories)
def test_the_tokens_of_all_states_are_the_tokens_of_the_journal(machine: Machine, story: list[Act]) -> None:
    telling = lived(machine, story)
    parted = max(entry["seq"] for entry in telling.entries if entry["event"]["name"] in ("run.started", "run.forked"))
    told = sum(entry["event"].get("usage", {}).get("tokens", 0) for entry in telling.entries[parted:])
    assert sum(one.bill.tokens for one in measured(machine, telling).states()) == told


@MANY
@given(machines, stories)
def test_costs_by_state_by_agent_and_by_model_have_one_total(machine: Machine, story: list[Act]) -> None:
    costs = measured(machine, lived(machine, story)).costs
    for part in ("state", "agent", "model"):
        bills = list(costs.by(part).values())
        assert sum(one.calls for one in bills) == costs.total().calls
        assert sum(one.tokens for one in bills) == costs.total().tokens
        assert sum(one.usd for one in bills) == pytest.approx(costs.total().usd)
        assert sum(one.unpriced for one in bills) == costs.total().unpriced


@MANY
@given(machines, stories)
def test_unknown_costs_are_never_less_than_none_nor_more_than_calls(machine: Machine, story: list[Act]) -> None:
    for bill in measured(machine, lived(machine, story)).costs.bills.values():
        assert 0 <= bill.unpriced <= bill.calls
        assert 0 <= bill.uncounted <= bill.calls


@MANY
@given(stories)
def test_the_states_of_a_flat_machine_take_the_time_from_the_first_entry_to_the_end(story: list[Act]) -> None:
    telling = lived(FLAT, story)
    metrics = measured(FLAT, telling)
    ends = [entry["at"] for entry in telling.entries if "status" in entry] or [telling.entries[-1]["at"]]
    began = max(entry["at"] for entry in telling.entries if entry["event"]["name"] in ("run.started", "run.forked"))
    assert sum(one.total for one in metrics.states()) == pytest.approx(ends[0] - began)
    assert metrics.seconds() == pytest.approx(ends[0] - began)
    assert sum(metrics.spent_on().values()) == pytest.approx(ends[0] - began)


@MANY
@given(machines, stories, st.integers(0, 40))
def test_a_fold_of_the_beginning_and_then_of_the_rest_is_the_fold_of_the_whole(
    machine: Machine, story: list[Act], cut: int
) -> None:
    entries, fresh = lived(machine, story).entries, Metrics(hierarchy_of(machine))
    assert folded(entries[cut:], folded(entries[:cut], fresh)) == folded(entries, fresh)


@MANY
@given(machines, stories)
def test_every_effect_has_one_span_and_what_is_open_is_what_is_in_flight(machine: Machine, story: list[Act]) -> None:
    telling, metrics, ended = lived(machine, story), Metrics(hierarchy_of(machine)), list[str]()
    for entry in telling.entries:
        metrics = metrics.after(entry)
        ended += [span.key for span in metrics.flight.ended]
    wanted = [one["key"] for entry in telling.entries for one in entry["effects"]]
    assert sorted([*ended, *metrics.flight.spans]) == sorted(wanted)
    assert set(metrics.flight.spans) == {one.key for one in telling.head.pending}


@MANY
@given(drafts(), st.lists(st.sampled_from(EVENTS), max_size=8))
def test_the_states_that_an_entry_left_are_those_that_the_kernel_left(draft: Draft, story: list[str]) -> None:
    machine = draft.machine()
    hierarchy, snapshot = hierarchy_of(machine), None
    for event in ("", *story):
        step = start(machine, Count()) if snapshot is None else transition(machine, snapshot, Named(event))
        assert isinstance(step, Step)
        if snapshot is not None:
            moved = hierarchy.moved({"from": snapshot.active, "to": step.snapshot.active, "taken": step.taken})
            stood = {machine.chart.places[one].name for one in machine.chart.around(snapshot.active)}
            entered = {state for microstep in step.microsteps for state in microstep.entered}
            assert set(moved.left) == step.left & stood
            assert set(moved.entered) | set(moved.passed) <= entered
        snapshot = step.snapshot


# tables


def test_visits_time_and_costs_of_a_flat_run() -> None:
    telling = Telling(FLAT)
    telling.after(2).reply("writer", {"tokens": 100, "usd": 0.01})
    telling.after(3).reply("critic", {"tokens": 10})
    telling.after(4).reply("writer", {"tokens": 200, "usd": 0.02})
    metrics = measured(FLAT, telling)
    found = {one.state: (one.visits, one.total, one.shortest, one.longest, one.average) for one in metrics.states()}
    assert found == {"drafting": (2, 6, 2, 4, 3), "reviewing": (2, 3, 0, 3, 1.5)}
    assert metrics.transitions == {("drafting", "reviewing"): 2, ("reviewing", "drafting"): 1}
    assert metrics.commonest() == (("drafting", "reviewing"), 2)
    assert metrics.costs.by("agent") == {"writer": Bill(2, 300, 0.03), "critic": Bill(1, 10, 0, unpriced=1)}
    assert metrics.costs.by("model") == {"some-model": Bill(3, 310, 0.03, unpriced=1)}
    slowest, hungriest = metrics.slowest(), metrics.hungriest()
    assert slowest is not None
    assert hungriest is not None
    assert (slowest.state, hungriest.state) == ("drafting", "drafting")


def test_the_last_visit_of_a_live_run_is_open_and_grows() -> None:
    telling = Telling(FLAT)
    telling.after(2).reply("writer")
    metrics = measured(FLAT, telling)
    drafting, reviewing = metrics.states(until=BEGAN + 12)
    assert (drafting.is_open, drafting.total) == (False, 2)
    assert (reviewing.is_open, reviewing.total, reviewing.longest) == (True, 10, 10)
    assert metrics.spent_on(BEGAN + 12)["working"] == 12
    assert metrics.seconds(BEGAN + 12) == 12


def test_waiting_for_people_is_told_apart_from_working() -> None:
    telling = Telling(FLAT)
    for who in ("writer", "critic", "writer", "critic", "writer", "critic"):
        telling.after(1).reply(who)
    telling.after(60).answer()
    metrics = measured(FLAT, telling)
    assert metrics.spent_on(BEGAN + 9_999) == {"working": 6, "waiting": 60, "time": 0, "nothing": 0}
    assert {one.state: one.waited for one in metrics.states() if one.waited} == {"approving": 60}
    assert metrics.seconds(BEGAN + 9_999) == 66


def test_attempts_that_failed_are_calls_and_the_span_covers_them() -> None:
    telling = Telling(FLAT)
    telling.after(1).falter("writer", {"tokens": 7})
    telling.after(1).falter("writer")
    telling.after(1).reply("writer", {"tokens": 50, "usd": 0.5})
    metrics = measured(FLAT, telling)
    assert metrics.costs.total() == Bill(3, 57, 0.5, unpriced=2, uncounted=1)
    (span,) = metrics.flight.ended
    assert (span.who, span.attempts, span.since, span.until) == ("writer", 3, BEGAN, BEGAN + 3)


def test_a_state_that_is_left_and_entered_again_in_one_step_is_visited_twice() -> None:
    telling = Telling(FLAT)
    for _ in range(3):
        telling.after(1).falter("writer")
    drafting = measured(FLAT, telling).states()[0]
    assert (drafting.state, drafting.visits, drafting.total) == ("drafting", 2, 3)
    unknown = folded(telling.entries, Metrics()).states()[0]
    assert (unknown.state, unknown.visits, unknown.total) == ("drafting", 1, 3)


def test_states_around_others_and_states_that_are_passed_through_are_visited_too() -> None:
    telling = Telling(DEEP)
    telling.after(5).reply("hare", {"tokens": 3})
    telling.after(2).reply("critic", {"tokens": 4})
    telling.after(3).answer()
    telling.after(1).reply("tortoise", {"tokens": 5})
    metrics = measured(DEEP, telling)
    found = {one.state: (one.visits, one.total, one.bill.tokens) for one in metrics.states()}
    assert found == {
        "racing": (2, 6, 8),
        "sorting": (2, 0, 0),
        "checking": (2, 5, 0),
        "left": (2, 5, 0),
        "reading": (2, 2, 4),
        "read": (1, 3, 0),
        "right": (2, 5, 0),
        "asking": (2, 5, 0),
        "asked": (1, 0, 0),
    }
    slowest = metrics.slowest()
    assert slowest is not None
    assert slowest.state == "racing"
    assert metrics.transitions[("reading", "read")] == 1


def test_without_its_machine_a_run_has_the_states_that_its_entries_name() -> None:
    telling = Telling(DEEP)
    telling.after(5).reply("hare")
    telling.after(2).reply("critic")
    names = [one.state for one in folded(telling.entries, Metrics()).states()]
    assert set(names) == {"racing", "reading", "asking", "read"}


def test_a_late_reply_costs_what_it_says_and_is_no_second_call() -> None:
    telling = Telling(DEEP)
    telling.after(5).reply("hare", {"tokens": 3, "usd": 0.1})
    before = measured(DEEP, telling)
    assert [(span.who, span.outcome) for span in before.flight.ended] == [("hare", "replied"), ("tortoise", DROPPED)]
    assert before.costs.by("agent")["tortoise"] == Bill(1, unpriced=1, uncounted=1)
    telling.after(9).late({"tokens": 40, "usd": 0.4})
    after = measured(DEEP, telling)
    assert after.costs.by("agent")["tortoise"] == Bill(1, 40, 0.4)
    assert {one.state: one.bill.tokens for one in after.states()}["racing"] == 43


def test_a_late_reply_after_the_end_costs_but_takes_no_time() -> None:
    telling = Telling(DEEP)
    telling.after(1).reply("hare")
    for _ in range(2):
        telling.after(1).reply("critic")
        telling.after(1).answer()
        telling.after(1).reply("hare")
    telling.after(1).reply("critic")
    telling.after(1).answer()
    assert not telling.is_live
    seconds = measured(DEEP, telling).seconds()
    telling.after(500).late({"tokens": 9})
    metrics = measured(DEEP, telling)
    assert metrics.seconds() == metrics.seconds(BEGAN + 10_000) == seconds == 9
    assert metrics.costs.total().tokens == 9
    assert not any(one.is_open for one in metrics.states())


def test_what_the_budget_denied_was_no_call() -> None:
    telling = lived(FLAT, [Act(0, "reply", {"tokens": 1}, 1.0)] * 4, {"calls": 2})
    assert measured(FLAT, telling).costs.total().calls == 2


def test_a_fork_is_measured_from_where_it_parts() -> None:
    telling = Telling(FLAT)
    telling.after(5).reply("writer", {"tokens": 100})
    telling.after(1000).part()
    telling.after(2).reply("critic", {"tokens": 7})
    metrics = measured(FLAT, telling)
    states = {one.state: (one.visits, one.total, one.bill.tokens) for one in metrics.states()}
    assert states == {"reviewing": (1, 2, 7), "drafting": (1, 0, 0)}
    assert metrics.transitions == {("reviewing", "drafting"): 1}
    assert (metrics.seconds(), metrics.entries) == (2, 4)
    (span,) = metrics.flight.ended
    assert (span.who, span.since, span.until) == ("critic", BEGAN + 1_005, BEGAN + 1_007)


def test_a_clock_that_goes_back_takes_no_time_away() -> None:
    telling = Telling(FLAT)
    telling.after(5).reply("writer")
    telling.after(-100).reply("critic")
    telling.after(200).reply("writer")
    assert {one.state: one.total for one in measured(FLAT, telling).states()} == {"drafting": 105, "reviewing": 0}


def test_only_so_many_dropped_effects_are_remembered() -> None:
    metrics = Metrics(hierarchy_of(DEEP))
    pattern = Telling(DEEP).entries[0]
    for seq in range(LATE + 50):
        effects = [{**one, "key": f"{seq}.{at}"} for at, one in enumerate(pattern["effects"])]
        again = {"seq": seq, "from": ["racing"], "to": ["racing"], "taken": ["racing/1"], "cause": "x"}
        metrics = metrics.after({**pattern, **again, "effects": effects})
    assert len(metrics.flight.late) == LATE
    assert len(metrics.flight.spans) == 2
    stray: Mapping[str, Any] = {"name": "replied", "agent": "hare", "text": "", "usage": {"tokens": 5}}
    late = {**pattern, "from": ["racing"], "to": ["racing"], "effects": [], "event": stray, "cause": "0.0"}
    assert metrics.after(late).costs.by("state")[""] == Bill(0, 5)


def test_functions_of_one_s_own_are_no_model() -> None:
    telling = Telling(FLAT)
    telling.reply("writer", {"tokens": 1})
    telling.reply("critic", {"tokens": 2})
    costs = folded(telling.entries, Metrics(players=Players("some-model", frozenset(("critic",))))).costs
    assert {name: bill.tokens for name, bill in costs.by("model").items()} == {"some-model": 1, OWN: 2}
    without = folded(telling.entries, Metrics()).costs
    assert set(without.by("model")) == {OWN}


def test_an_event_that_names_its_model_is_believed() -> None:
    telling = Telling(FLAT)
    telling.reply("writer", {"tokens": 1})
    entry = telling.entries[1]
    entries = [telling.entries[0], {**entry, "event": {**entry["event"], "model": "larger"}}]
    assert set(folded(entries, Metrics(players=Players("some-model"))).costs.by("model")) == {"larger"}


def test_a_late_reply_that_names_its_model_moves_the_call_there() -> None:
    telling = Telling(DEEP)
    telling.reply("hare", {"tokens": 1, "usd": 0.1})
    telling.late({"tokens": 2, "usd": 0.2})
    *before, late = telling.entries
    entries = [*before, {**late, "event": {**late["event"], "model": "larger"}}]
    costs = folded(entries, Metrics(hierarchy_of(DEEP), Players("some-model"))).costs
    assert costs.by("model") == {"larger": Bill(1, 2, 0.2), "some-model": Bill(1, 1, 0.1)}


def test_figures_of_several_runs_add_up() -> None:
    one, two = Telling(FLAT), Telling(FLAT)
    one.after(2).reply("writer", {"tokens": 1})
    two.after(5).reply("writer", {"tokens": 2})
    drafting, reviewing = merge_figures([*measured(FLAT, one).states(), *measured(FLAT, two).states()])
    assert (drafting.visits, drafting.total, drafting.shortest, drafting.longest) == (2, 7, 2, 5)
    assert drafting.bill.tokens == 3
    assert reviewing.is_open


def test_a_transcript_says_who_said_what_to_whom() -> None:
    telling = Telling(FLAT)
    telling.falter("writer")
    for who in ("writer", "critic", "writer", "critic", "writer", "critic"):
        telling.reply(who)
    telling.answer(by="")
    metrics, said = Metrics(), []
    for entry in telling.entries:
        said += [(one.who, one.whom, one.kind, one.text) for one in transcript(entry, metrics.flight)]
        metrics = metrics.after(entry)
    assert said[:4] == [
        ("the machine", "writer", "prompt", "Write."),
        ("writer", "the machine", "failure", "no line"),
        ("writer", "the machine", "reply", "writer says so"),
        ("the machine", "critic", "prompt", "Judge."),
    ]
    assert said[-2:] == [
        ("the machine", "a person", "question", "Publish?"),
        ("a person", "the machine", "answer", "true"),
    ]


def test_what_was_said_too_late_is_marked() -> None:
    telling = Telling(DEEP)
    telling.reply("hare")
    before = measured(DEEP, telling)
    telling.late()
    (said,) = transcript(telling.entries[-1], before.flight)
    assert (said.who, said.text, said.late) == ("tortoise", "too late", True)
