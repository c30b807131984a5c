"""What holds for every machine, every snapshot and every event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moothall.kernel.chart import COMPOUND, HISTORY, PARALLEL, ROOT
from moothall.kernel.codec import decode, encode
from moothall.kernel.events import Named
from moothall.kernel.interpreter import accepts, possible, start, transition
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Guard
from moothall.kernel.step import Answer, Ask, Snapshot, Step, Value
from tests.kernel.algorithm import Naive, TooLong
from tests.kernel.machines import EVENTS, Count, Draft, Remainder, drafts

stories = st.lists(st.sampled_from(EVENTS), max_size=8)
MANY = settings(max_examples=300, deadline=None)


def told(machine: Machine, events: Sequence[str], *, forgetful: bool = False) -> list[Step]:
    """The steps of a run that is told these events; a forgetful one keeps no plan from one event to the next."""
    steps: list[Step] = []
    for event in ("", *events):
        if forgetful:
            machine.chart.candidates.clear()
            machine.chart.choices.clear()
            machine.chart.beginning.plan = None
        step = transition(machine, steps[-1].snapshot, Named(event)) if steps else start(machine, Count())
        assert isinstance(step, Step)
        steps.append(step)
    return steps


@MANY
@given(drafts(), stories)
def test_the_same_input_gives_an_equal_step(draft: Draft, story: list[str]) -> None:
    assert told(draft.machine(), story) == told(draft.machine(), story)


@settings(max_examples=150, deadline=None)
@given(drafts(rows=15), st.lists(st.sampled_from(EVENTS), min_size=6, max_size=12))
def test_every_step_is_the_one_of_the_algorithm_read_naively(draft: Draft, story: list[str]) -> None:
    machine = draft.machine()
    naive = Naive(draft, machine.max_microsteps)
    for number, step in enumerate(told(machine, story)):
        try:
            naive.tell(story[number - 1]) if number else naive.begin()
        except TooLong:
            assert step.snapshot.status == "failed"
            return
        found = step.snapshot
        assert step.microsteps == tuple(naive.microsteps)
        assert set(found.active) == {spot.node.name for spot in naive.active if spot.is_atomic}
        assert (found.data, found.status == "live") == (naive.data, naive.running)


@MANY
@given(drafts(), stories)
@pytest.mark.slow
def test_what_the_interpreter_remembers_changes_nothing(draft: Draft, story: list[str]) -> None:
    machine = draft.machine()
    assert told(machine, story * 2) == told(machine, story * 2, forgetful=True)


@MANY
@given(drafts(), stories)
@pytest.mark.slow
def test_an_event_that_no_row_names_changes_nothing(draft: Draft, story: list[str]) -> None:
    machine = draft.machine()
    snapshot = told(machine, story)[-1].snapshot
    if accepts(machine, snapshot, "nobody.knows"):
        return
    step = transition(machine, snapshot, Named("nobody.knows"))
    assert isinstance(step, Step)
    assert (step.snapshot, step.microsteps, step.effects) == (snapshot, (), ())


@MANY
@given(drafts(), stories)
@pytest.mark.slow
def test_the_configuration_is_always_legal(draft: Draft, story: list[str]) -> None:
    machine = draft.machine()
    for step in told(machine, story):
        assert is_legal(machine, step.snapshot.active)


def is_legal(machine: Machine, active: tuple[str, ...]) -> bool:
    """Every active state has its parent, a compound one exactly one child, a parallel one all of them."""
    places = machine.chart.places
    inside: set[int] = {ROOT}
    for name in active:
        index = machine.chart.by_name[name]
        while index > ROOT:
            inside.add(index)
            index = places[index].parent
    for index in inside:
        place = places[index]
        children = [child for child in place.children if child in inside]
        if place.kind == HISTORY or (place.kind == COMPOUND and len(children) != 1):
            return False
        if place.kind == PARALLEL and children != place.children:
            return False
    leaves = [places[index].name for index in sorted(inside) if not places[index].children]
    return list(active) == leaves


@MANY
@given(drafts(), stories)
@pytest.mark.slow
def test_encode_and_decode_of_a_snapshot_are_inverse(draft: Draft, story: list[str]) -> None:
    for step in told(draft.machine(), story):
        plain = encode(step.snapshot)
        found = decode(Snapshot, {**plain, "data": decode(Count, plain["data"])})
        assert found == step.snapshot


@MANY
@given(drafts(), stories)
def test_only_possible_events_are_accepted_and_taken(draft: Draft, story: list[str]) -> None:
    machine = draft.machine()
    for step in told(machine, story):
        snapshot = step.snapshot
        named = possible(machine, snapshot)
        for event in EVENTS:
            prefixes = {".".join(event.split(".")[: length + 1]) for length in range(event.count(".") + 1)} | {"*"}
            assert accepts(machine, snapshot, event) == bool(prefixes & set(named))


def scripted(guard: Any) -> Guard | None:
    return guard.scripted() if isinstance(guard, Remainder) else guard


def answered(machine: Machine, snapshot: Snapshot, event: Named) -> tuple[Step, list[Answer]]:
    """A step, and the answers that it took: each script is evaluated when it is met."""
    answers: list[Answer] = []
    while isinstance(step := transition(machine, snapshot, event, answers), Ask):
        by, rest = step.script
        answers.append(Value(step.scope % by == rest))
    return step, answers


@MANY
@given(drafts(), stories)
def test_scripts_decide_as_plain_guards_do_and_answers_are_positional_and_replayable(
    draft: Draft, story: list[str]
) -> None:
    plain, asking = draft.machine(), draft.machine(scripted)
    for before, event, expected in zip(told(plain, story), story, told(plain, story)[1:], strict=False):
        if before.snapshot.status != "live":
            break
        step, answers = answered(asking, before.snapshot, Named(event))
        assert (step.snapshot, step.microsteps) == (expected.snapshot, expected.microsteps)
        assert step.answers == tuple(answers)
        assert transition(asking, before.snapshot, Named(event), answers) == step
        for known in range(len(answers)):
            assert isinstance(transition(asking, before.snapshot, Named(event), answers[:known]), Ask)
