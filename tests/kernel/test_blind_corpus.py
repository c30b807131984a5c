"""The checker against a corpus that was written without knowledge of it: see `blind_machines`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moothall.analysis.certify import Certificate, Unbounded, certify
from moothall.analysis.verify import Finding, verify
from moothall.kernel.events import Named
from moothall.kernel.interpreter import start, transition
from moothall.kernel.machine import Machine
from moothall.kernel.step import Step
from tests.kernel.blind_machines import BROKEN, COUNTED, GOOD, GRANDPARENT, KID, PARENT, Broken, Counted, Good
from tests.kernel.machines import EVENTS, Count, Draft, drafts

# The corpus' words for kinds of defects, and the checker's codes for them.
CODES = {
    "unreachable": ("unreachable",),
    "never-done": ("never-done",),
    "dead-end": ("dead-end",),
    "shadowed": ("shadowed",),
    "no-path-to-final": ("no-end",),
    "no-otherwise": ("no-otherwise",),
    "unbounded-cycle": ("unbounded-cycle", "paced-cycle"),
    "eventless-cycle": ("eventless-cycle",),
    "unhandled-failure": ("unhandled-failure",),
    "contested-write": ("contested-key",),
    "undeclared-writes": ("undeclared-writes",),
}
# The cycles that turn only when a person sends something each time; the checker has a code of its own for them.
PACED = {"restart_from_anywhere", "pause_and_resume", "internal_is_no_visit", "long_way_round"}
CYCLES = [case for case in BROKEN if any(defect.kinds == ("unbounded-cycle",) for defect in case.defects)]


def test_the_corpus_has_every_kind_of_defect_and_no_machine_twice() -> None:
    kinds = Counter(kind for case in BROKEN for defect in case.defects for kind in defect.kinds)
    machines = [
        *(case.machine for case in BROKEN),
        *(case.machine for case in GOOD),
        *(case.machine for case in COUNTED),
    ]
    names = Counter(machine.name for machine in machines)
    assert set(kinds) == set(CODES)
    assert [name for name, times in names.items() if times > 1] == []
    assert (len(BROKEN) >= 36, len(GOOD) >= 20, len(COUNTED) >= 12) == (True, True, True)


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.machine.name)
def test_a_defect_is_reported_where_it_is(case: Broken) -> None:
    found = verify(case.machine)
    for defect in case.defects:
        codes = _codes(defect.kinds)
        hits = [one for one in found if one.code in codes and _places(one) & set(defect.at)]
        assert hits, f"{case.why}; expected {defect}, found:\n{_shown(found)}"


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.machine.name)
def test_a_broken_machine_is_blamed_for_nothing_else(case: Broken) -> None:
    allowed = _codes(kind for defect in case.defects for kind in defect.kinds) | _codes(case.also)
    extra = [one for one in verify(case.machine) if one.code not in allowed]
    assert not extra, f"{case.why}; nothing else is wrong, but found:\n{_shown(extra)}"


@pytest.mark.parametrize("case", CYCLES, ids=lambda case: case.machine.name)
def test_a_cycle_is_an_error_unless_a_person_turns_it(case: Broken) -> None:
    cycles = {(one.level, one.code) for one in verify(case.machine) if one.code in CODES["unbounded-cycle"]}
    paced = case.machine.name in PACED
    assert cycles == {("warning", "paced-cycle") if paced else ("error", "unbounded-cycle")}


@pytest.mark.parametrize("case", CYCLES, ids=lambda case: case.machine.name)
def test_a_cycle_without_a_bound_has_no_certificate(case: Broken) -> None:
    answer = certify(case.machine)
    assert isinstance(answer, Unbounded)
    states = {place for defect in case.defects for place in defect.at}
    assert states & {step.partition("/")[0] for step in answer.cycle}, answer


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case.machine.name)
def test_a_good_machine_is_blamed_for_nothing(case: Good) -> None:
    found = verify(case.machine)
    assert not found, _shown(found)


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case.machine.name)
def test_a_good_machine_has_a_certificate(case: Good) -> None:
    assert isinstance(certify(case.machine, case.children), Certificate)


@pytest.mark.parametrize("case", COUNTED, ids=lambda case: case.machine.name)
def test_a_certificate_is_the_maximum_that_was_counted_by_hand(case: Counted) -> None:
    answer = _certified(case.machine, dict(case.children))
    assert (answer.transitions, answer.resources.get("ask.agent", 0), answer.exact) == (
        case.transitions,
        case.asks,
        True,
    )
    assert {name: answer.resources.get(name) for name in case.other} == pytest.approx(dict(case.other))


def test_certificates_compose_over_three_generations() -> None:
    kid = _certified(KID, {})
    parent = _certified(PARENT, {"kid": kid})
    grandparent = _certified(GRANDPARENT, {"parent": parent})
    totals = [(one.transitions, one.resources["ask.agent"], one.exact) for one in (kid, parent, grandparent)]
    assert totals == [(2, 2, True), (7, 5, True), (8, 5, True)]


def test_a_child_of_which_nothing_is_known_leaves_no_certificate() -> None:
    answer = certify(PARENT)
    assert isinstance(answer, Unbounded)
    assert "kid" in answer.why


def test_a_certificate_is_no_more_exact_than_those_of_its_children() -> None:
    answer = _certified(GRANDPARENT, {"parent": Certificate(9, {"ask.agent": 9}, False)})
    assert (answer.transitions, answer.resources["ask.agent"], answer.exact) == (10, 9, False)


@given(drafts(), st.lists(st.sampled_from(EVENTS), max_size=12))
def test_what_is_said_never_to_happen_does_not_happen(draft: Draft, names: list[str]) -> None:
    machine = draft.machine()
    places = {(one.code, one.place) for one in verify(machine)}
    same = Counter(str(row) for row in machine.chart.rows)
    never = {row.id for row in machine.chart.rows if ("shadowed", str(row)) in places and same[str(row)] == 1}
    step = start(machine, Count())
    for name in (*names, None):
        assert isinstance(step, Step)
        assert never.isdisjoint(step.taken)
        for entered in (state for microstep in step.microsteps for state in microstep.entered):
            assert ("unreachable", entered) not in places
        if name is None or step.snapshot.status != "live":
            return
        step = transition(machine, step.snapshot, Named(name))


def _codes(kinds: Iterable[str]) -> set[str]:
    return {code for kind in kinds for code in CODES[kind]}


def _certified(machine: Machine, children: dict[str, Certificate]) -> Certificate:
    answer = certify(machine, children)
    assert isinstance(answer, Certificate), answer
    return answer


def _places(finding: Finding) -> set[str]:
    """The states that a finding is placed at; of a row, its state."""
    return {part.partition("/")[0] for part in re.split(r"[,\s]+", finding.place) if part}


def _shown(found: tuple[Finding, ...] | list[Finding]) -> str:
    return "\n".join(f"  {one.level} {one.code} {one.place}: {one.why}" for one in found) or "  nothing"
