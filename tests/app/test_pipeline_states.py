"""The state machine of the pipeline by hand: what may follow what, the figures, the report, the checkpoints.

The first four tests are those of the document that describes these classes; in the last of them the slowest state is
`validating`, because time and tokens belong to the state that was left.
"""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from moothall.errors import DefinitionError, EffectFailed, Refused
from moothall.kernel.codec import encode
from moothall.pipeline import (
    CheckpointManager,
    InvalidTransitionError,
    OrchestrationState,
    OrchestrationStateMachine,
    StateMetrics,
    StateTransition,
)

INITIALIZED, PLANNING, VALIDATING, IMPLEMENTING, JUDGING, SUCCEEDED, FAILED, BUDGET_EXHAUSTED = OrchestrationState


@pytest.mark.covers("P20")
def test_state_machine_transitions() -> None:
    sm = OrchestrationStateMachine()
    assert sm.can_transition_to(PLANNING)
    sm.transition(PLANNING)
    assert sm.current_state == PLANNING
    assert not sm.can_transition_to(SUCCEEDED)
    with pytest.raises(InvalidTransitionError):
        sm.transition(SUCCEEDED)


@pytest.mark.covers("P20")
def test_terminal_states() -> None:
    sm = OrchestrationStateMachine()
    sm.current_state = SUCCEEDED
    assert sm.is_terminal()
    assert not sm.can_transition_to(PLANNING)


@pytest.mark.covers("P20")
def test_metrics_tracking() -> None:
    sm = OrchestrationStateMachine()
    sm.transition(PLANNING, duration_seconds=10.5, tokens_consumed=500)
    metrics = sm.get_state_metrics(INITIALIZED)
    assert metrics.total_duration_seconds == 10.5
    assert metrics.total_tokens == 500
    assert metrics.visit_count == 1


@pytest.mark.covers("P20")
def test_bottleneck_analysis() -> None:
    sm = OrchestrationStateMachine()
    sm.transition(PLANNING, duration_seconds=5.0, tokens_consumed=100)
    sm.transition(VALIDATING, duration_seconds=1.0, tokens_consumed=0)
    sm.transition(IMPLEMENTING, duration_seconds=15.0, tokens_consumed=800)
    bottlenecks = sm.get_bottleneck_analysis()
    assert bottlenecks["slowest_state"]["state"] == "validating"
    assert bottlenecks["highest_token_state"]["state"] == "validating"


# what may follow what


@pytest.mark.covers("P7", "P4")
def test_the_table_leads_where_the_document_says_and_to_budget_exhausted_from_every_working_state() -> None:
    assert OrchestrationStateMachine.VALID_TRANSITIONS == {
        INITIALIZED: [PLANNING, FAILED],
        PLANNING: [VALIDATING, FAILED, BUDGET_EXHAUSTED],
        VALIDATING: [IMPLEMENTING, PLANNING, FAILED, BUDGET_EXHAUSTED],
        IMPLEMENTING: [JUDGING, FAILED, BUDGET_EXHAUSTED],
        JUDGING: [SUCCEEDED, IMPLEMENTING, PLANNING, FAILED, BUDGET_EXHAUSTED],
    }
    assert {SUCCEEDED, FAILED, BUDGET_EXHAUSTED} == OrchestrationStateMachine.TERMINAL_STATES


PAIRS = [(here, there) for here in OrchestrationState for there in OrchestrationState]
VALID = [(here, there) for here, targets in OrchestrationStateMachine.VALID_TRANSITIONS.items() for there in targets]
FINISHED = [pair for pair in PAIRS if pair[0] in OrchestrationStateMachine.TERMINAL_STATES]
ILLEGAL = [pair for pair in PAIRS if pair not in VALID and pair not in FINISHED]


def standing_in(state: OrchestrationState) -> OrchestrationStateMachine:
    sm = OrchestrationStateMachine()
    sm.current_state = state
    return sm


def test_every_pair_of_states_is_tried_below() -> None:
    assert (len(PAIRS), len(VALID), len(FINISHED), len(ILLEGAL)) == (64, 17, 24, 23)


@pytest.mark.parametrize(("here", "there"), VALID)
def test_a_pair_of_the_table_is_taken(here: OrchestrationState, there: OrchestrationState) -> None:
    sm = standing_in(here)
    assert sm.can_transition_to(there)
    assert sm.transition(there, {"why": 1}, "because", 2.5, 7) is True
    [made] = sm.history
    assert (made.from_state, made.to_state, made.context, made.reason) == (here, there, {"why": 1}, "because")
    assert (made.duration_seconds, made.tokens_consumed) == (2.5, 7)
    assert sm.current_state == there
    assert sm.iteration_count == (here == PLANNING)


@pytest.mark.parametrize(("here", "there"), ILLEGAL)
@pytest.mark.covers("P7", "P8")
def test_every_other_pair_is_refused_and_changes_nothing(here: OrchestrationState, there: OrchestrationState) -> None:
    sm = standing_in(here)
    before = encode(vars(sm))
    assert not sm.can_transition_to(there)
    with pytest.raises(InvalidTransitionError, match=f"Invalid transition: {here.value} → {there.value}. Valid "):
        sm.transition(there, reason="because")
    assert encode(vars(sm)) == before


@pytest.mark.parametrize(("here", "there"), FINISHED)
@pytest.mark.covers("P8")
def test_a_finished_one_warns_returns_false_and_stays(
    here: OrchestrationState, there: OrchestrationState, caplog: pytest.LogCaptureFixture
) -> None:
    sm = standing_in(here)
    before = encode(vars(sm))
    assert sm.transition(there) is False
    assert encode(vars(sm)) == before
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert f"terminal state {here.value} → {there.value}" in caplog.text


def test_a_refusal_is_an_error_of_the_house() -> None:
    assert issubclass(InvalidTransitionError, Refused)


@pytest.mark.covers("P10")
def test_a_transition_is_logged_with_its_figures(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "moothall.pipeline"):
        walked((PLANNING, 0.5, 3))
    assert caplog.messages == [
        "State transition: initialized → planning (iteration 0, duration: 0.50s, tokens: 3, reason: none)"
    ]


# counting


def walked(*steps: tuple[OrchestrationState, float, int]) -> OrchestrationStateMachine:
    sm = OrchestrationStateMachine()
    for state, seconds, tokens in steps:
        assert sm.transition(state, duration_seconds=seconds, tokens_consumed=tokens)
    return sm


LONG = (
    (PLANNING, 0.0, 0),
    (VALIDATING, 4.0, 400),
    (PLANNING, 1.0, 0),
    (VALIDATING, 2.0, 200),
    (IMPLEMENTING, 1.0, 0),
    (JUDGING, 9.0, 1000),
    (SUCCEEDED, 3.0, 100),
)


@pytest.mark.covers("P11")
def test_iterations_are_exits_from_planning() -> None:
    sm = OrchestrationStateMachine(max_iterations=2)
    counts = []
    for state, *_ in LONG:
        sm.transition(state)
        counts.append((sm.iteration_count, sm.exceeded_max_iterations()))
    assert counts == [(0, False), (1, False), (1, False), *[(2, True)] * 4]


def test_three_iterations_are_usual_and_the_number_can_be_set() -> None:
    sm = OrchestrationStateMachine()
    assert sm.max_iterations == 3
    sm.max_iterations = 0
    assert sm.exceeded_max_iterations()
    assert OrchestrationStateMachine(5).max_iterations == 5


def test_every_attribute_can_be_set_by_hand() -> None:
    sm = OrchestrationStateMachine()
    sm.current_state, sm.iteration_count, sm.history = JUDGING, 2, walked(*LONG[:2]).history
    assert sm.transition(SUCCEEDED)
    assert [one.to_state for one in sm.history] == [PLANNING, VALIDATING, SUCCEEDED]


def test_the_history_that_is_given_away_is_a_copy() -> None:
    sm = walked(*LONG)
    given = sm.get_transition_history()
    given.clear()
    assert len(sm.get_transition_history()) == 7


def test_a_reset_forgets_all_but_the_limit() -> None:
    sm = walked(*LONG)
    sm.max_iterations = 7
    sm.reset()
    assert (sm.current_state, sm.history, sm.iteration_count, sm.max_iterations) == (INITIALIZED, [], 0, 7)


# figures


@pytest.mark.covers("P10")
def test_the_figures_of_a_state_are_those_of_its_visits() -> None:
    assert walked(*LONG).get_state_metrics(PLANNING) == StateMetrics(
        state=PLANNING,
        visit_count=2,
        total_duration_seconds=6.0,
        total_tokens=600,
        avg_duration_seconds=3.0,
        avg_tokens=300.0,
        min_duration_seconds=2.0,
        max_duration_seconds=4.0,
    )


def test_a_state_that_was_never_left_has_no_shortest_visit_and_its_figures_are_json() -> None:
    metrics = OrchestrationStateMachine().get_state_metrics(JUDGING)
    assert metrics.min_duration_seconds is None
    assert json.loads(json.dumps(encode(metrics), allow_nan=False))["min_duration_seconds"] is None


def test_all_states_but_the_terminal_ones_have_figures() -> None:
    found = walked(*LONG).get_all_state_metrics()
    assert {state: one.visit_count for state, one in found.items()} == {
        INITIALIZED: 1,
        PLANNING: 2,
        VALIDATING: 2,
        IMPLEMENTING: 1,
        JUDGING: 1,
    }


@pytest.mark.covers("P11")
def test_the_totals_count_everything() -> None:
    assert walked(*LONG).get_total_metrics() == {
        "total_duration_seconds": 20.0,
        "total_tokens": 1700,
        "total_transitions": 7,
        "iteration_count": 2,
        "state_visits": {"initialized": 1, "planning": 2, "validating": 2, "implementing": 1, "judging": 1},
        "current_state": "succeeded",
    }


def test_the_most_common_transition_is_named() -> None:
    metrics = walked(*LONG).get_transition_metrics()
    assert metrics["most_common_transition"] == "planning → validating"
    assert (metrics["most_common_count"], metrics["unique_transitions"]) == (2, 6)
    assert metrics["transition_counts"]["validating → planning"] == 1


@pytest.mark.covers("P11")
def test_bottlenecks_are_averages_per_visit_and_per_iteration() -> None:
    assert walked(*LONG).get_bottleneck_analysis() == {
        "slowest_state": {
            "state": "implementing",
            "avg_duration_seconds": 9.0,
            "total_duration_seconds": 9.0,
            "visit_count": 1,
        },
        "highest_token_state": {"state": "implementing", "avg_tokens": 1000.0, "total_tokens": 1000, "visit_count": 1},
        "avg_duration_per_iteration": 10.0,
        "avg_tokens_per_iteration": 850.0,
    }


def test_before_anything_happened_there_is_nothing_to_tell() -> None:
    sm = OrchestrationStateMachine()
    assert sm.get_transition_metrics() == {
        "transition_counts": {},
        "most_common_transition": None,
        "most_common_count": 0,
        "unique_transitions": 0,
    }
    assert sm.get_bottleneck_analysis() == {
        "slowest_state": None,
        "highest_token_state": None,
        "avg_duration_per_iteration": 0.0,
        "avg_tokens_per_iteration": 0.0,
    }
    assert sm.format_metrics_report().endswith("\n--- State Visit Counts ---")


REPORT = """\
=== Orchestration Metrics Report ===

Final State: succeeded
Iterations: 2 / 3
Total Duration: 20.00s
Total Tokens: 1,700
Total Transitions: 7

--- State Visit Counts ---
  implementing: 1
  initialized: 1
  judging: 1
  planning: 2
  validating: 2

--- Bottleneck Analysis ---
Slowest State: implementing
  Avg Duration: 9.00s
  Total Duration: 9.00s
  Visits: 1

Highest Token State: implementing
  Avg Tokens: 1000
  Total Tokens: 1,000
  Visits: 1

--- Transition Patterns ---
Most Common: planning → validating (2x)
Unique Transitions: 6"""


@pytest.mark.covers("P11")
def test_the_report_reads_as_the_document_has_it() -> None:
    assert walked(*LONG).format_metrics_report() == REPORT


# checkpoints


@pytest.mark.covers("P15")
def test_nothing_is_loaded_where_nothing_was_saved(tmp_path: Path) -> None:
    assert CheckpointManager(tmp_path / "nowhere").load_state_machine() is None


@pytest.mark.parametrize("place", ["", "deep/down", "kept.json"])
@pytest.mark.covers("P15")
def test_a_state_machine_comes_back_with_its_contexts_and_its_limit(tmp_path: Path, place: str) -> None:
    sm = walked(*LONG[:-1])
    sm.max_iterations = 9
    sm.transition(FAILED, {"plan": {"steps": ["cut"]}}, "enough", 1.5, 3)
    CheckpointManager(tmp_path / place).save_state_machine(sm)
    found = CheckpointManager(str(tmp_path / place)).load_state_machine()
    assert found is not None
    assert vars(found) == vars(sm)
    assert found.history[-1] == StateTransition(
        JUDGING, FAILED, sm.history[-1].timestamp, {"plan": {"steps": ["cut"]}}, "enough", 1.5, 3
    )


def test_a_state_machine_that_came_back_goes_on(tmp_path: Path) -> None:
    CheckpointManager(tmp_path).save_state_machine(walked(*LONG[:-1]))
    found = CheckpointManager(tmp_path).load_state_machine()
    assert found is not None
    assert found.transition(SUCCEEDED, duration_seconds=3.0, tokens_consumed=100)
    assert found.format_metrics_report() == REPORT


def test_a_checkpoint_is_replaced_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    manager = CheckpointManager(tmp_path)
    manager.save_state_machine(walked(*LONG))
    manager.save_state_machine(walked(*LONG[:2]))
    assert [file.name for file in tmp_path.iterdir()] == ["state_machine.json"]
    found = manager.load_state_machine()
    assert found is not None
    assert found.current_state == VALIDATING


def test_what_cannot_be_written_leaves_the_checkpoint_as_it_was(tmp_path: Path) -> None:
    manager = CheckpointManager(tmp_path)
    manager.save_state_machine(walked(*LONG[:2]))
    sm = walked(*LONG[:1])
    sm.transition(VALIDATING, {"socket": object()})
    with pytest.raises(DefinitionError, match="cannot be stored"):
        manager.save_state_machine(sm)
    assert [file.name for file in tmp_path.iterdir()] == ["state_machine.json"]
    found = manager.load_state_machine()
    assert found is not None
    assert found.history[-1].context == {}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"current_state": "asleep"}', '{"py/object": "os.system"}'],
    ids=["empty", "cut", "list", "state", "code"],
)
def test_a_file_that_is_no_checkpoint_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "state_machine.json").write_text(text)
    with pytest.raises(Refused, match=r"state_machine\.json"):
        CheckpointManager(tmp_path).load_state_machine()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    manager: Any = CheckpointManager(tmp_path / "file" / "below")
    with pytest.raises(EffectFailed, match="cannot be written"):
        manager.save_state_machine(OrchestrationStateMachine())
