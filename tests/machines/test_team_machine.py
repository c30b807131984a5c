"""The machine of a team: its tree, its size, and what holds of its approvals whatever happens."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moothall.agents.ask import AskAgent
from moothall.analysis.verify import endless, verify
from moothall.app.kinds.team.files import PERSONA, Prompts
from moothall.kernel.interpreter import start, transition
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import State
from moothall.kernel.step import Step
from moothall.machines.team.approvals import Chain, digest_of
from moothall.machines.team.conversation import team_machine
from moothall.machines.team.definition import Group, Persona, Roster, Team, shipped_team
from moothall.machines.team.state import Conversation, UserSaid


def tree_of(states: Any) -> dict[str, Any]:
    return {state.name: tree_of(state.states) if state.states else None for state in states if isinstance(state, State)}


def machine_of(team: Team) -> Machine:
    return team_machine(team, "team", "studio")


@pytest.mark.covers("T1", "T10", "T11", "T12", "T3")
def test_the_groups_and_personas_of_the_studio_are_nested_states() -> None:
    tree = tree_of(machine_of(shipped_team("studio")).states)
    assert tree == {
        "STRATEGIC": {"ceo": None, "cfo": None, "cmo": None},
        "CREATIVE": {
            "creative_partner": None,
            "CONCEPT": {"concept_artist": None},
            "DESIGN": {"game_designer": None},
            "ART_DIRECTION": {"art_director": None},
        },
        "TECHNICAL": {"lead_engineer": None, "project_manager": None},
        "USER_INTERACTION": {"RespondToUser": None, "AwaitApproval": None},
        "Arbitration": None,
    }


@pytest.mark.covers("T65")
def test_the_small_team_has_four_personas_and_the_states_of_the_user() -> None:
    tree = tree_of(machine_of(shipped_team("studio_small")).states)
    leaves = {name for inside in tree.values() for name in inside or ()}
    assert leaves >= {"ceo", "cfo", "creative_partner", "RespondToUser", "AwaitApproval"}


@pytest.mark.parametrize("name", ["studio", "studio_small", "software"])
def test_a_shipped_team_goes_round_without_the_user_only_so_often(name: str) -> None:
    machine = machine_of(shipped_team(name))
    assert endless(machine) is None
    assert [finding for finding in verify(machine) if finding.level == "error"] == []


def large(size: int) -> Team:
    """A team of many personas in groups of ten."""
    personas = tuple(Persona(f"p{number}", f"Person {number}", "ceo.md") for number in range(size))
    groups = tuple(
        Group(f"G{first}", personas=tuple(persona.id for persona in personas[first : first + 10]))
        for first in range(0, size, 10)
    )
    return Team("large", "p0", groups, personas)


@pytest.mark.covers("T3", "T87")
def test_ten_times_the_personas_need_ten_times_the_rows() -> None:
    small, big = machine_of(large(50)), machine_of(large(500))
    assert len(small.moves) - 50 == len(big.moves) - 500
    assert len(big.chart.places) < 11 * len(small.chart.places)


@pytest.mark.covers("T28", "T87")
def test_a_turn_in_a_team_of_500_touches_only_whoever_speaks() -> None:
    machine = machine_of(large(500))
    begun = start(machine, Conversation())
    assert isinstance(begun, Step)
    step = transition(machine, begun.snapshot, UserSaid(text="Go", at=1.0))
    assert isinstance(step, Step)
    [wanted] = [known.effect for known in step.effects if isinstance(known.effect, AskAgent)]
    assert (wanted.agent, step.snapshot.active) == ("p0", ("p0",))
    assert len(json.dumps(step.snapshot.data.visits)) < 20


@pytest.mark.covers("T28")
def test_the_prompt_of_a_persona_is_read_when_it_is_asked_for() -> None:
    prompts = Prompts({"speak": "x"})
    assert prompts.loaded == {}
    assert "You are the CEO" in prompts[f"{PERSONA}studio:ceo"]
    assert list(prompts.loaded) == [f"{PERSONA}studio:ceo"]
    assert "nothing" not in prompts


@pytest.mark.covers("T25")
def test_hooks_are_those_of_what_is_left_and_entered_and_not_of_what_is_around_both() -> None:
    from moothall.machines.team.definition import Hooks
    from moothall.machines.team.floor import Floor

    team = shipped_team("studio")
    hooks = Hooks("in", "out")
    groups = tuple(replace(group, hooks=hooks) for group in team.groups)
    personas = tuple(replace(persona, hooks=hooks) for persona in team.personas)
    floor = Floor(Roster(replace(team, groups=groups, personas=personas)), "studio")
    told = [(call.when, call.state) for call in floor._hook_calls("ceo", "cfo")]
    assert told == [("exit", "ceo"), ("entry", "cfo")]
    told = [(call.when, call.state) for call in floor._hook_calls("ceo", "lead_engineer")]
    assert told == [("exit", "ceo"), ("exit", "STRATEGIC"), ("entry", "TECHNICAL"), ("entry", "lead_engineer")]


# approvals

NAMES = ("a", "b", "c", "d")
steps = st.lists(
    st.one_of(
        st.tuples(st.just("made"), st.sampled_from(NAMES), st.sampled_from("xyz"), st.sampled_from((*NAMES, ""))),
        st.tuples(st.just("approved"), st.sampled_from(NAMES), st.sampled_from(NAMES), st.just("")),
        st.tuples(st.just("sent_back"), st.sampled_from(NAMES), st.just(""), st.just("")),
    ),
    max_size=30,
)


def after(chain: Chain, step: tuple[str, str, str, str]) -> Chain:
    what, first, second, third = step
    if what == "made":
        return chain.made(first, second, third)
    return chain.approved(first, second) if what == "approved" else chain.sent_back(first)


@pytest.mark.covers("T49")
@given(steps)
def test_no_approval_survives_a_change_of_what_it_approved(taken: list[tuple[str, str, str, str]]) -> None:
    chain = Chain()
    for step in taken:
        chain = after(chain, step)
        for known in chain.approvals:
            work = chain.work_of(known.author)
            assert work is not None
            assert work.digest == known.digest


@pytest.mark.covers("T49")
@given(steps, st.sampled_from(NAMES))
def test_rework_voids_the_approvals_of_that_work_and_of_what_is_based_on_it_alone(
    taken: list[tuple[str, str, str, str]], author: str
) -> None:
    chain = Chain()
    for step in taken:
        chain = after(chain, step)
    void = {author, *chain.dependents(author)}
    kept = {known for known in chain.approvals if known.author not in void}
    assert set(chain.sent_back(author).approvals) == kept


def test_the_same_text_on_another_basis_is_another_work() -> None:
    assert digest_of("x", "one") != digest_of("x", "other")
    chain = Chain().made("a", "idea").made("b", "design", "a").approved("c", "b")
    assert chain.made("b", "design", "a").approvals == chain.approvals
    assert chain.made("a", "another idea").approvals == ()
