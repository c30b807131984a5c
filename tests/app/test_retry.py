"""A run that ended badly goes on once it is mended, from the replies that are in its journal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from moothall import Budget, Final, GaveUp, Machine, On, Replied, Returned, State, ask, call, child, resume, run, tool
from moothall.agents.ports import Reply
from moothall.app.runs.moothall import shared_hall, wait_for
from moothall.app.runs.outcome import Outcome
from moothall.app.runs.replay import Replayed, replay
from moothall.errors import DefinitionError, Refused
from moothall.kernel.events import ChildDone

RUN = "trial"


@dataclass(frozen=True)
class Note:
    """What the machines of these tests write."""

    topic: str = "tides"
    texts: tuple[str, ...] = ()


@dataclass
class Trouble:
    """What is broken, and who was asked how often."""

    broken: bool = True
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def trouble() -> Trouble:
    return Trouble()


def keeping(trouble: Trouble) -> Callable[[Any, Any], Any]:
    def keep(note: Note, event: Any) -> Note:
        if trouble.broken:
            raise KeyError("text")
        return replace(note, texts=(*note.texts, event.text))

    return keep


def agent_of(trouble: Trouble, name: str) -> Any:
    async def agent(prompt: str) -> Reply:
        trouble.asked.append(name)
        return Reply(f"{name} on {prompt}", usage={"tokens": 10})

    agent.__name__ = name
    return agent


def line(trouble: Trouble, **more: Any) -> Machine:
    return Machine(
        "line",
        data=Note,
        states=[
            State("one", enter=ask(agent_of(trouble, "ada"), "{topic}")),
            State("two", enter=ask(agent_of(trouble, "bob"), "{topic}")),
            Final("written"),
        ],
        moves=[
            On("one", Replied, to="two", do=keeping(trouble)),
            On("two", Replied, to="written", do=keeping(trouble)),
        ],
        **more,
    )


def retry(run: str, machine: Machine, *, budget: Budget | None = None) -> Outcome:
    async def work() -> Outcome:
        async with shared_hall(None) as hall:
            return await hall.retry(run, machine, budget=budget)

    return wait_for(work())


def entries() -> list[Any]:
    async def work() -> list[Any]:
        async with shared_hall(None) as hall:
            return [*await hall.store.entries(RUN)]

    return wait_for(work())


def mended(trouble: Trouble, machine: Machine, **more: Any) -> Outcome:
    """How the run stands after a retry; its journal is decided again by the same machine."""
    trouble.broken = False
    outcome = retry(RUN, machine, **more)

    async def work() -> Replayed:
        async with shared_hall(None) as hall:
            return await replay(hall.store, RUN, machine)

    assert wait_for(work()).difference is None
    return outcome


def test_a_reply_that_is_in_the_journal_is_not_asked_for_again(trouble: Trouble) -> None:
    machine = line(trouble)
    failed = run(machine, Note(), run_id=RUN)
    assert failed.status == "failed"
    assert "KeyError: 'text' (in keep, " in failed.reason
    ended = mended(trouble, machine)
    assert (ended.status, trouble.asked) == ("done", ["ada", "bob"])
    assert ended.data.texts == ("ada on tides", "bob on tides")
    assert ended.spent == {"calls": 2, "tokens": 20}
    [note] = [entry for entry in entries() if entry["event"]["name"] == "run.retried"]
    assert note["event"]["entry"] == 1
    assert note["event"]["by"]


def test_a_retry_that_would_end_in_the_same_way_is_refused_and_leaves_nothing_behind(trouble: Trouble) -> None:
    machine = line(trouble)
    run(machine, Note(), run_id=RUN)
    before = entries()
    with pytest.raises(Refused, match="would be failed again: one on Replied: KeyError"):
        retry(RUN, machine)
    assert entries() == before
    assert trouble.asked == ["ada"]


def test_a_run_can_be_retried_again_and_again(trouble: Trouble) -> None:
    machine = line(trouble)
    run(machine, Note(), run_id=RUN)

    def breaks_later(note: Note, event: Any) -> Note:
        if event.agent == "bob" and trouble.broken:
            raise ValueError("no bob")
        return replace(note, texts=(*note.texts, event.text))

    moves = [On("one", Replied, to="two", do=breaks_later), On("two", Replied, to="written", do=breaks_later)]
    machine = Machine("line", data=Note, states=list(machine.states), moves=moves)
    assert retry(RUN, machine).status == "failed"
    assert mended(trouble, machine).status == "done"
    assert trouble.asked == ["ada", "bob"]


def test_of_a_fan_out_nobody_is_asked_again_whose_reply_is_in_the_journal(trouble: Trouble) -> None:
    keep = keeping(trouble)
    machine = Machine(
        "fan",
        data=Note,
        states=[
            State("asking", enter=[ask(agent_of(trouble, name), "{topic}") for name in ("ada", "bob")]),
            Final("all"),
        ],
        moves=[
            On("asking", Replied, to="all", do=keep, when=lambda note, event: len(note.texts) == 1),
            On("asking", Replied, do=keep),
        ],
    )
    assert run(machine, Note(), run_id=RUN).status == "failed"
    came_in = [entry["cause"] for entry in entries() if entry["event"]["name"] == "replied"]
    asked = len(trouble.asked)
    ended = mended(trouble, machine)
    assert sorted(ended.data.texts) == ["ada on tides", "bob on tides"]
    assert len(trouble.asked) == asked + 2 - len(came_in)


def test_a_run_that_reached_its_budget_goes_on_with_a_larger_one(trouble: Trouble) -> None:
    trouble.broken = False
    machine = line(trouble, budget=Budget(calls=1))
    assert run(machine, Note(), run_id=RUN).status == "limited"
    with pytest.raises(Refused, match="has no calls left; name a larger budget"):
        retry(RUN, machine)
    ended = mended(trouble, machine, budget=Budget(calls=5))
    assert (ended.status, trouble.asked, ended.spent["calls"]) == ("done", ["ada", "bob"], 2)


def test_what_the_world_did_not_do_is_tried_again(trouble: Trouble) -> None:
    async def shaky(prompt: str) -> str:
        trouble.asked.append("shaky")
        if trouble.broken:
            raise OSError("no line")
        return "hello"

    machine = Machine(
        "shaky",
        data=Note,
        states=[State("asking", enter=ask(shaky, "{topic}")), Final("heard")],
        moves=[On("asking", Replied, to="heard")],
    )
    assert run(machine, Note(), run_id=RUN).status == "failed"
    assert mended(trouble, machine).status == "done"
    assert trouble.asked == ["shaky"] * 4


def test_what_may_be_done_at_most_once_is_in_doubt_and_not_done_again(trouble: Trouble) -> None:
    async def pay(topic: str) -> str:
        trouble.asked.append("pay")
        raise OSError("no line")

    machine = Machine(
        "paying",
        data=Note,
        states=[State("paying", enter=call(tool(pay, repeats="at-most-once"), "topic")), Final("paid")],
        moves=[On("paying", Returned, to="paid")],
    )
    assert run(machine, Note(), run_id=RUN).status == "failed"
    waiting = mended(trouble, machine)
    assert waiting.status == "waiting"
    assert "it had begun, and ended in: pay: OSError: no line" in waiting.questions[0].prompt
    assert trouble.asked == ["pay"]


def test_a_row_that_is_added_for_a_failure_takes_it(trouble: Trouble) -> None:
    async def shaky(prompt: str) -> str:
        raise OSError("no line")

    states: list[State | Final] = [State("asking", enter=ask(shaky, "{topic}")), Final("heard"), Final("unheard")]
    moves = [On("asking", Replied, to="heard")]
    assert run(Machine("shaky", data=Note, states=states, moves=moves), Note(), run_id=RUN).status == "failed"
    handled = Machine("shaky", data=Note, states=states, moves=[*moves, On("asking", GaveUp, to="unheard")])
    assert mended(trouble, handled).states == ("unheard",)


def test_a_child_that_failed_is_retried_with_its_parent(trouble: Trouble) -> None:
    inner = line(trouble)
    parent = Machine(
        "parent",
        data=Note,
        states=[State("delegating", enter=child(inner, "topic")), Final("over")],
        moves=[On("delegating", ChildDone, to="over")],
    )
    assert run(parent, Note(), run_id=RUN).status == "failed"
    with pytest.raises(Refused, match=f"its parent went on without it; retry that one: {RUN}"):
        retry(f"{RUN}-0-0", parent)
    ended = mended(trouble, parent)
    assert (ended.status, trouble.asked) == ("done", ["ada", "bob"])


def test_a_run_that_is_stuck_goes_on_once_a_row_takes_its_last_event(trouble: Trouble) -> None:
    trouble.broken = False
    states = list(line(trouble).states)
    moves = [On("one", Replied, to="two", when=lambda note, event: False), On("two", Replied, to="written")]
    assert run(Machine("line", data=Note, states=states, moves=moves), Note(), run_id=RUN).status == "stuck"
    assert mended(trouble, line(trouble)).status == "done"
    assert trouble.asked == ["ada", "bob"]


def test_only_a_run_that_ended_badly_is_retried(trouble: Trouble) -> None:
    trouble.broken = False
    machine = line(trouble)
    run(machine, Note(), run_id=RUN)
    with pytest.raises(Refused, match="run trial is done; only a run that failed or reached a limit"):
        retry(RUN, machine)


def test_a_definition_that_would_have_gone_another_way_before_is_refused(trouble: Trouble) -> None:
    run(line(trouble), Note(), run_id=RUN)
    other = Machine(
        "line",
        data=Note,
        states=[State("one", enter=ask(agent_of(trouble, "eve"), "{topic}")), Final("written")],
        moves=[On("one", Replied, to="written")],
    )
    with pytest.raises(DefinitionError, match="cannot be retried under this definition"):
        retry(RUN, other)


def test_a_run_that_was_set_aside_goes_on_with_a_note(trouble: Trouble) -> None:
    async def waits(prompt: str) -> str:
        raise KeyboardInterrupt

    trouble.broken = False
    with pytest.raises(KeyboardInterrupt):
        run(line(trouble), Note(), agents={"ada": waits}, run_id=RUN)

    async def set_aside() -> None:
        async with shared_hall(None) as hall:
            await hall.store.set_aside(RUN, "it brought its worker down")

    wait_for(set_aside())
    assert mended(trouble, line(trouble)).status == "done"
    assert "run.retried" in [entry["event"]["name"] for entry in entries()]


def test_a_run_that_was_retried_is_the_same_after_a_reload(trouble: Trouble) -> None:
    machine = line(trouble)
    run(machine, Note(), run_id=RUN)
    ended = mended(trouble, machine)
    assert resume(RUN, machine) == ended


def test_a_run_that_was_set_aside_and_cannot_be_opened_stays_aside_for_the_same_reason(trouble: Trouble) -> None:
    async def waits(prompt: str) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(line(trouble), Note(), agents={"ada": waits}, run_id=RUN)

    async def set_aside() -> None:
        async with shared_hall(None) as hall:
            await hall.store.set_aside(RUN, "it brought its worker down")

    async def status() -> str:
        async with shared_hall(None) as hall:
            return (await hall.store.load(RUN)).status

    wait_for(set_aside())
    other = Machine("line", data=Note, states=[State("elsewhere"), Final("written")], moves=[])
    with pytest.raises(DefinitionError):
        retry(RUN, other)
    assert wait_for(status()) == "set aside: it brought its worker down"


def test_who_retried_a_run_is_in_its_journal(trouble: Trouble) -> None:
    machine = line(trouble)
    run(machine, Note(), run_id=RUN)
    trouble.broken = False

    async def work() -> Outcome:
        async with shared_hall(None) as hall:
            return await hall.retry(RUN, machine, by="ada")

    assert wait_for(work()).status == "done"
    assert [entry["event"]["by"] for entry in entries() if entry["event"]["name"] == "run.retried"] == ["ada"]
