"""The checker against the table of machines: what is wrong is found where it is, and nothing else."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moothall.analysis.certify import Certificate, Unbounded, certify
from moothall.analysis.verify import verify
from moothall.kernel.events import Named
from moothall.kernel.interpreter import start, transition
from moothall.kernel.machine import Machine
from moothall.kernel.step import Step
from tests.kernel.checked.table import BROKEN, COUNTED, GRANDPARENT, KID, PARENT, SOUND
from tests.kernel.checked.words import Broken, Counted, Good
from tests.kernel.machines import EVENTS, Count, Draft, drafts

WARNINGS = {"paced-cycle", "no-otherwise", "unhandled-failure", "undeclared-writes"}
CYCLES = [case for case in BROKEN if {"unbounded-cycle", "paced-cycle"} & {code for code, _ in case.findings}]


def test_every_code_is_tried_on_several_machines_and_no_machine_twice() -> None:
    tried = Counter(code for case in BROKEN for code, _ in case.findings)
    machines = [case.machine for case in BROKEN] + [case.machine for case in SOUND] + [case.machine for case in COUNTED]
    names = Counter(machine.name for machine in machines)
    assert min(tried.values()) >= 2
    assert [name for name, times in names.items() if times > 1] == []


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.machine.name)
def test_what_is_wrong_is_found_and_nothing_else(case: Broken) -> None:
    assert {(finding.code, finding.place) for finding in verify(case.machine)} == case.findings, case.why


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.machine.name)
def test_a_finding_says_how_bad_it_is_and_what_to_do(case: Broken) -> None:
    found = verify(case.machine)
    for finding in found:
        if finding.code != "no-end":
            assert finding.level == ("warning" if finding.code in WARNINGS else "error")
        assert finding.why
        assert finding.remedy
    assert [finding.level for finding in found] == sorted(finding.level for finding in found), "errors come first"


def test_a_cycle_is_named_in_full() -> None:
    [case] = [case for case in BROKEN if case.machine.name == "drafting and reviewing for ever"]
    [finding] = verify(case.machine)
    assert finding.why == "drafting → reviewing → drafting: no row has at_most and no state has max_visits"


@pytest.mark.parametrize("case", CYCLES, ids=lambda case: case.machine.name)
def test_a_cycle_without_a_bound_has_no_certificate(case: Broken) -> None:
    answer = certify(case.machine)
    assert isinstance(answer, Unbounded)
    places = {place.partition(" on ")[0] for code, place in case.findings if code in ("unbounded-cycle", "paced-cycle")}
    assert places & {step.partition("/")[0] for step in answer.cycle}, answer


@pytest.mark.parametrize("case", SOUND, ids=lambda case: case.machine.name)
def test_a_good_machine_is_blamed_for_nothing_and_has_a_certificate_if_it_is_bounded(case: Good) -> None:
    assert verify(case.machine) == ()
    assert isinstance(certify(case.machine, case.children), Certificate) == case.bounded


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


def _certified(machine: Machine, children: dict[str, Certificate]) -> Certificate:
    answer = certify(machine, children)
    assert isinstance(answer, Certificate), answer
    return answer
