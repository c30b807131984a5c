"""What we ship for the tests of others: trials, walks, fakes, a clock, crashes."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from moothall import (
    Answered,
    Budget,
    DefinitionError,
    EffectFailed,
    Event,
    Expired,
    Final,
    GaveUp,
    Machine,
    On,
    Refused,
    Replied,
    Reply,
    Returned,
    State,
    answer,
    ask,
    call,
    days,
    hours,
    question,
    run,
    tool,
    yes,
)
from moothall.analysis.certify import Certificate
from moothall.testing import Fake, MemoryStore, TestClock, Trial, Walk, check, crash_everywhere


@dataclass(frozen=True)
class Offer:
    customer: str
    text: str = ""
    price: int = 0
    receipt: str = ""


@dataclass(frozen=True)
class Price:
    euros: int


class Withdrawn(Event):
    reason: str = ""


async def send(customer: str, text: str) -> str:
    raise AssertionError("a test would send a real letter")


OFFER = Machine(
    "offer",
    data=Offer,
    result=lambda offer: offer.receipt,
    states=[
        State("pricing", enter=ask("pricer", "What does {customer} pay?", reply=Price)),
        State("writing", enter=ask("clerk", "Write to {customer}: {price} euros")),
        State("approving", enter=question("Send this? {text}", within=days(2))),
        State("sending", enter=call(tool(send, repeats="at-most-once"), "customer", "text")),
        Final("sent"),
        Final("dropped"),
    ],
    moves=[
        On("pricing", Replied, to="writing", do=lambda offer, reply: replace(offer, price=reply.value.euros)),
        On("pricing", GaveUp, to="dropped"),
        On("writing", Replied, to="approving", do=lambda offer, reply: replace(offer, text=reply.text)),
        On("writing", GaveUp, to="dropped"),
        On("approving", Answered, to="sending", when=yes),
        On("approving", Answered, to="writing", at_most=2),
        On("approving", [Answered, Expired, Withdrawn], to="dropped"),
        On("sending", Returned, to="sent", do=lambda offer, returned: replace(offer, receipt=returned.value)),
        On("sending", GaveUp, to="dropped"),
    ],
)
AGENTS = {"pricer": Price(90), "clerk": ["Dear Ada", "My dear Ada"], "send": "sent"}


def test_a_trial_runs_a_machine_with_fakes_also_in_place_of_functions_of_the_table() -> None:
    trial = Trial(OFFER, agents=AGENTS)
    assert trial.run(Offer("Ada")).questions[0].prompt == "Send this? Dear Ada"
    assert trial.answer(True).unwrap() == "sent"
    trial.assert_path("pricing", "writing", "approving", "sending", "sent")
    assert trial.fake("send").calls == [{"customer": "Ada", "text": "Dear Ada"}]
    assert trial.fake("clerk").calls == ["Write to Ada: 90 euros"]


def test_a_script_gives_its_replies_in_order_and_says_when_it_has_no_more() -> None:
    trial = Trial(OFFER, agents=AGENTS)
    trial.run(Offer("Ada"))
    assert trial.answer(False).questions[0].prompt == "Send this? My dear Ada"
    assert trial.answer(False).states == ("dropped",)
    assert "clerk was called again, and its script has 2 replies; add one" in str(trial.journal)


def test_an_error_in_a_script_is_raised_and_a_function_is_asked() -> None:
    flaky = Fake(EffectFailed("busy"), lambda prompt: f"heard {prompt}")
    trial = Trial(OFFER, agents={**AGENTS, "clerk": flaky})
    assert trial.run(Offer("Ada")).data.text == "heard Write to Ada: 90 euros"
    assert len(flaky.calls) == 2


def test_time_passes_when_the_test_says_so() -> None:
    trial = Trial(OFFER, agents=AGENTS)
    trial.run(Offer("Ada"))
    assert trial.advance(hours(47)).status == "waiting"
    assert trial.advance(hours(1)).states == ("dropped",)
    trial.assert_path(..., "approving", "dropped")


def test_an_event_from_outside_and_a_cancel_reach_the_run() -> None:
    trial = Trial(OFFER, agents=AGENTS)
    trial.run(Offer("Ada"))
    assert trial.send(Withdrawn("no paper")).states == ("dropped",)
    trial.run(Offer("Bob"))
    assert trial.cancel().status == "cancelled"


def test_a_path_that_was_not_taken_fails_the_test_and_shows_the_one_that_was() -> None:
    trial = Trial(OFFER, agents=AGENTS)
    trial.run(Offer("Ada"))
    went = "the run went pricing → writing → approving"
    with pytest.raises(AssertionError, match=f"expected the path pricing → … → sent; {went}"):
        trial.assert_path("pricing", ..., "sent")


def test_a_trial_without_a_run_says_so() -> None:
    with pytest.raises(Refused, match="this trial has no run yet"):
        Trial(OFFER).answer(True)


def test_a_trial_reads_no_settings_and_writes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path))
    (tmp_path / "settings.toml").write_text("no settings at all")
    Trial(OFFER, agents=AGENTS).run(Offer("Ada"))
    assert [file.name for file in tmp_path.iterdir()] == ["settings.toml"]


def test_what_fakes_cost_is_not_paid_from_what_a_user_may_spend_in_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOOTHALL_HOME", str(tmp_path))
    (tmp_path / "settings.toml").write_text("daily_usd = 0.01\n")
    trial = Trial(OFFER, agents={**AGENTS, "clerk": Reply("Dear Ada", usage={"usd": 5.0})})
    assert trial.run(Offer("Ada")).spent["usd"] == 5.0
    assert not (tmp_path / "spent-today.json").exists()


def test_a_store_in_memory_lasts_over_several_calls() -> None:
    store = MemoryStore()
    agents: Any = {name: Fake.always(reply) for name, reply in (("pricer", Price(1)), ("clerk", "Hi"), ("send", "ok"))}
    waiting = run(OFFER, Offer("Ada"), agents=agents, store=store)
    assert answer(waiting.run, True, OFFER, agents=agents, store=store).result == "ok"


def test_a_walk_steps_a_machine_by_hand() -> None:
    walk = Walk(OFFER, Offer("Ada"))
    assert [effect.kind for effect in walk.wants] == ["ask.agent"]
    walk.reply(value={"euros": 90})
    assert walk.data.price == 90
    walk.reply("Dear Ada", agent="clerk")
    walk.answer(True)
    walk.give("sent")
    assert (walk.status, walk.data.receipt) == ("done", "sent")
    walk.assert_path("pricing", "writing", "approving", "sending", "sent")


def test_a_walk_takes_a_text_for_the_first_field_as_a_run_does() -> None:
    assert Walk(OFFER, "Ada").data == Offer("Ada")


def test_in_a_walk_questions_expire_effects_fail_and_events_come_from_outside() -> None:
    expired, failed, told = (Walk(OFFER, Offer("Ada")) for _ in range(3))
    for walk in (expired, told):
        walk.reply(value=Price(1))
        walk.reply("Hi")
    expired.advance(days(2))
    told.tell(Withdrawn())
    failed.give_up("closed", who="pricer")
    assert {walk.states for walk in (expired, failed, told)} == {("dropped",)}


def test_a_walk_refuses_what_nobody_waits_for() -> None:
    walk = Walk(OFFER, Offer("Ada"))
    with pytest.raises(Refused, match=r"no call.tool of send is open in pricing; open is: ask.agent"):
        walk.give("sent", tool="send")
    with pytest.raises(Refused, match=r"Price.euros: expected a whole number"):
        walk.reply(value={"euros": "many"})


def test_check_takes_a_machine_that_is_right_and_tells_its_bound() -> None:
    bound = check(OFFER)
    assert isinstance(bound, Certificate)
    assert bound.resources["ask.agent"] == 4


def test_check_fails_for_a_machine_that_is_wrong() -> None:
    lost = Machine("lost", states=[State("a"), State("b"), Final("c")], moves=[On("a", "go", to="c")])
    with pytest.raises(AssertionError, match="machine lost: b: "):
        check(lost)
    with pytest.raises(DefinitionError, match="bytes cannot be stored"):
        check(Machine("odd", data=bytes, states=[Final("c")], moves=[]))


def test_a_run_survives_a_crash_before_and_after_each_of_its_commits() -> None:
    clerk = Fake(EffectFailed("busy"), "Dear Ada", "My dear Ada")
    assert crash_everywhere(OFFER, Offer("Ada"), agents={**AGENTS, "clerk": clerk}, answers=[False, True]) >= 16


LEAK: list[str] = []


def forgetful(offer: Offer, reply: Replied) -> Offer:
    LEAK.append(reply.text)
    return replace(offer, text=" ".join(LEAK))


def test_a_machine_that_keeps_something_outside_its_data_does_not_survive_a_crash() -> None:
    machine = Machine(
        "leaky",
        data=Offer,
        states=[State("writing", enter=ask("clerk", "Write")), Final("done")],
        moves=[On("writing", Replied, to="done", do=forgetful)],
    )
    with pytest.raises(AssertionError, match=r"a crash before commit 1 changes the run: its data is .*Hi Hi"):
        crash_everywhere(machine, Offer("Ada"), agents={"clerk": "Hi"})


def test_a_clock_stands_still_unless_it_is_moved() -> None:
    clock = TestClock(100.0)
    clock.advance(5)
    assert clock.now() == 105.0
    with pytest.raises(ValueError, match="time does not go back"):
        clock.advance(-1)


def test_a_budget_may_be_given_to_one_run() -> None:
    assert Trial(OFFER, agents=AGENTS).run(Offer("Ada"), budget=Budget(calls=1)).status == "limited"
