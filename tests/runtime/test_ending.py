"""Telling a run something from outside, and ending it."""

import pytest

from moothall.errors import Refused
from moothall.kernel.events import Cancelled, Event
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State, anywhere
from moothall.runtime.drive import drive
from moothall.runtime.hall import advance, cancel, tell
from moothall.runtime.journal import Reader
from moothall.runtime.rebuild import Difference, compared
from tests.runtime.world import RUN, Basket, Fetch, Fetched, Hands, begun, hall_of, happened, journal, keep, line


class Rained(Event):
    """It rained."""

    inches: float = 1.0


PICNIC = Machine(
    "picnic",
    data=Basket,
    states=[State("eating", enter=Fetch("bread")), State("packing", enter=Fetch("basket")), Final("home")],
    moves=[
        On("eating", Fetched, to="packing", do=keep),
        On("eating", Rained, to="packing"),
        On("packing", Fetched, to="home", do=keep),
        On(anywhere, Cancelled, to="packing", at_most=1),
    ],
)


@pytest.mark.anyio
async def test_an_accepted_event_from_outside_moves_the_run() -> None:
    hall = hall_of(Hands())
    await begun(hall, PICNIC)
    received = await tell(hall, RUN, Rained(2), "weather-1")
    assert received.received == "taken"
    assert hall.runs[RUN].head.snapshot.active == ("packing",)
    assert (await journal(hall))[-1]["event"] == {"name": "rained", "inches": 2}


@pytest.mark.anyio
async def test_the_same_command_twice_is_harmless() -> None:
    hall = hall_of(Hands())
    await begun(hall, PICNIC)
    first = await tell(hall, RUN, Rained(), "weather-1")
    again = await tell(hall, RUN, Rained(), "weather-1")
    assert (again.received, again.seq) == ("duplicate", first.seq)
    assert await happened(hall) == ["run.started", "rained"]


@pytest.mark.anyio
async def test_an_event_that_is_not_accepted_is_refused_with_what_is() -> None:
    hall = hall_of(Hands())
    await begun(hall, PICNIC)
    await tell(hall, RUN, Rained(), "weather-1")
    with pytest.raises(Refused, match=r"packing does not accept rained; it accepts fetched, run\.cancelled"):
        await tell(hall, RUN, Rained(), "weather-2")
    assert hall.runs[RUN].head.seq == 1


@pytest.mark.anyio
async def test_a_run_that_is_over_accepts_nothing_and_says_so() -> None:
    hall = hall_of(Hands())
    await begun(hall, PICNIC)
    await drive(hall, RUN)
    with pytest.raises(Refused, match="home does not accept rained; it accepts nothing: it is done"):
        await tell(hall, RUN, Rained(), "weather-1")


@pytest.mark.anyio
async def test_a_cancelled_run_ends_cancelled_with_the_reason_and_wants_nothing_more() -> None:
    hands = Hands()
    hall = hall_of(hands)
    await begun(hall, line("bread", "milk"))
    await cancel(hall, RUN, "the guests are ill", "stop-1")
    head = await drive(hall, RUN)
    assert (head.snapshot.status, head.snapshot.reason) == ("cancelled", "the guests are ill")
    assert head.pending == ()
    assert hands.calls == []


@pytest.mark.anyio
async def test_what_comes_after_the_end_says_how_the_run_had_ended() -> None:
    hall = hall_of(Hands())
    await begun(hall, line("bread", "milk"))
    await cancel(hall, RUN, "the guests are ill", "stop-1")
    assert (await advance(hall, RUN, (Fetched("bread"), "0.0"))).received == "ignored"
    assert (await journal(hall))[-1]["ignored"] == "its effect is no longer wanted: the run was already cancelled"


@pytest.mark.anyio
async def test_what_comes_after_its_state_was_left_says_so() -> None:
    hall = hall_of(Hands())
    await begun(hall, PICNIC)
    await tell(hall, RUN, Rained(), "weather-1")
    assert (await advance(hall, RUN, (Fetched("bread"), "0.0"))).received == "ignored"
    assert (await journal(hall))[-1]["ignored"].endswith("the state that wanted it was left")


@pytest.mark.anyio
async def test_a_journal_whose_ignored_event_was_explained_in_other_words_is_the_same() -> None:
    hall = hall_of(Hands())
    await begun(hall, line("bread"))
    await cancel(hall, RUN, "the guests are ill", "stop-1")
    await advance(hall, RUN, (Fetched("bread"), "0.0"))
    run, reader, entries = hall.runs[RUN].run, Reader(hall.runs[RUN].machine, hall.effects(RUN)), await journal(hall)
    before = [*entries[:-1], {**entries[-1], "ignored": "nobody wants it"}]
    assert compared(run, reader, before) == hall.runs[RUN].head
    taken = [*entries[:-1], {key: part for key, part in entries[-1].items() if key != "ignored"}]
    assert isinstance(found := compared(run, reader, taken), Difference)
    assert (found.seq, found.part) == (2, "ignored")


@pytest.mark.anyio
async def test_a_journal_whose_end_is_told_with_more_advice_today_is_the_same_and_another_end_is_not() -> None:
    def eat(basket: Basket, event: Fetched) -> Basket:
        raise ValueError("no bread; buy some")

    machine = Machine(
        "hungry",
        data=Basket,
        states=[State("eating", enter=Fetch("bread")), Final("home")],
        moves=[On("eating", Fetched, to="home", do=eat)],
    )
    hall = hall_of(Hands())
    await begun(hall, machine)
    head = await drive(hall, RUN)
    run, reader, entries = hall.runs[RUN].run, Reader(machine, hall.effects(RUN)), await journal(hall)
    told = entries[-1]["reason"].partition(" (in ")[0]
    bare = told.removesuffix("; buy some")
    assert bare != told
    assert compared(run, reader, [*entries[:-1], {**entries[-1], "reason": bare}]) == head
    for other in ("no milk", bare[:-1], f"{told}; or milk"):
        found = compared(run, reader, [*entries[:-1], {**entries[-1], "reason": other}])
        assert isinstance(found, Difference)
        assert found.part == "reason"


@pytest.mark.anyio
async def test_a_machine_with_a_row_for_it_is_cancelled_in_its_own_way() -> None:
    hall = hall_of(Hands())
    await begun(hall, PICNIC)
    await cancel(hall, RUN, "storm", "stop-1")
    assert hall.runs[RUN].head.snapshot.active == ("packing",)
    head = await drive(hall, RUN)
    assert (head.snapshot.status, head.snapshot.data) == ("done", Basket(("basket",)))


@pytest.mark.anyio
async def test_exit_moves_that_clean_up_are_performed_when_a_run_is_cancelled() -> None:
    machine = Machine(
        "tidy",
        data=Basket,
        states=[State("cooking", enter=Fetch("bread"), exit=Fetch("broom")), Final("home")],
        moves=[On("cooking", Fetched, to="home", do=keep)],
    )
    hands = Hands()
    hall = hall_of(hands)
    await begun(hall, machine)
    await cancel(hall, RUN, "fire", "stop-1")
    head = await drive(hall, RUN)
    assert head.snapshot.status == "cancelled"
    assert hands.finished == ["broom"]


@pytest.mark.anyio
async def test_an_event_that_no_row_takes_is_kept_and_changes_nothing() -> None:
    hall = hall_of(Hands())
    head = await begun(hall, line("bread"))
    received = await advance(hall, RUN, (Rained(), "weather-1"))
    entry = (await journal(hall))[-1]
    assert received.seq == 1
    assert (entry["taken"], entry["from"], entry["to"]) == ([], ["fetching_bread"], ["fetching_bread"])
    assert hall.runs[RUN].head.snapshot == head.snapshot
