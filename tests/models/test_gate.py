"""The gate before a provider: so many calls at once, and none for a while after too many failures in a row."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from moothall.agents.ports import Reply, Request
from moothall.errors import DefinitionError, EffectFailed
from moothall.models.gate import SOON, Gate, GatedModel, Measure
from moothall.models.purse import Purse
from tests.models.asking import request
from tests.runtime.clock import MovableClock

pytestmark = pytest.mark.anyio
MEASURE = Measure(at_once=2, failures=3, rest=30.0)


class Told:
    """A model that replies or fails as the test says, and waits where it is told to."""

    def __init__(self) -> None:
        self.failing: EffectFailed | None = None
        self.shut: asyncio.Event | None = None
        self.arrived = asyncio.Event()
        self.now = self.most = self.calls = 0
        self.usage: dict[str, float] = {}

    async def reply(self, request: Request) -> Reply:
        self.calls += 1
        self.now += 1
        self.most = max(self.most, self.now)
        self.arrived.set()
        try:
            if self.shut is not None:
                await self.shut.wait()
            if self.failing is not None:
                raise self.failing
            return Reply("ok", usage=self.usage)
        finally:
            self.now -= 1


class Countdown:
    """Counts for everybody, and lets calls wait as the test says."""

    def __init__(self, pauses: list[float]) -> None:
        self.pauses, self.asked = pauses, list[tuple[str, int]]()

    async def take_turn(self, name: str, per_minute: int) -> float:
        self.asked.append((name, per_minute))
        return self.pauses.pop(0)


class Stage:
    """A gated model with a clock that the test moves."""

    def __init__(self) -> None:
        self.clock = MovableClock()
        self.told = Told()
        self.model = GatedModel(self.told, Gate("http://there", MEASURE, self.clock.now))

    async def fails(self, times: int = 1, *, final: bool = False) -> None:
        """Be asked so many times and fail each time."""
        self.told.failing = EffectFailed("down", final=final)
        for _ in range(times):
            with pytest.raises(EffectFailed, match="down"):
                await self.model.reply(request())
        self.told.failing = None

    async def refused(self) -> EffectFailed:
        """Be asked and let nothing through."""
        calls = self.told.calls
        with pytest.raises(EffectFailed, match=r"failed [34] times in a row") as raised:
            await self.model.reply(request())
        assert self.told.calls == calls
        return raised.value


async def test_no_more_calls_at_once_than_the_measure_allows() -> None:
    stage = Stage()
    stage.told.shut = asyncio.Event()
    asking = [asyncio.create_task(stage.model.reply(request())) for _ in range(10)]
    await stage.told.arrived.wait()
    stage.told.shut.set()
    assert [reply.text for reply in await asyncio.gather(*asking)] == ["ok"] * 10
    assert stage.told.most == 2


async def test_failures_in_a_row_close_the_gate_and_it_says_until_when() -> None:
    stage = Stage()
    await stage.fails(3)
    assert (await stage.refused()).retry_after == 30
    stage.clock.move(10)
    failure = await stage.refused()
    assert (failure.retry_after, failure.final) == (20, False)


async def test_a_success_between_failures_starts_the_count_anew() -> None:
    stage = Stage()
    await stage.fails(2)
    await stage.model.reply(request())
    await stage.fails(2)
    assert (await stage.model.reply(request())).text == "ok"


async def test_a_request_that_is_refused_for_good_is_no_failure_of_the_provider() -> None:
    stage = Stage()
    await stage.fails(10, final=True)
    assert (await stage.model.reply(request())).text == "ok"


async def test_after_its_rest_one_call_finds_out_and_the_others_wait() -> None:
    stage = Stage()
    await stage.fails(3)
    stage.clock.move(30)
    stage.told.shut = asyncio.Event()
    probe = asyncio.create_task(stage.model.reply(request()))
    stage.told.arrived.clear()
    await stage.told.arrived.wait()
    assert (await stage.refused()).retry_after == SOON
    stage.told.shut.set()
    assert (await probe).text == "ok"
    assert (await stage.model.reply(request())).text == "ok"


async def test_a_call_that_finds_the_provider_still_down_closes_the_gate_again() -> None:
    stage = Stage()
    await stage.fails(3)
    stage.clock.move(30)
    await stage.fails(1)
    assert (await stage.refused()).retry_after == 30


async def test_a_cancelled_call_that_was_to_find_out_leaves_that_to_the_next() -> None:
    stage = Stage()
    await stage.fails(3)
    stage.clock.move(30)
    stage.told.shut = asyncio.Event()
    probe = asyncio.create_task(stage.model.reply(request()))
    stage.told.arrived.clear()
    await stage.told.arrived.wait()
    probe.cancel()
    await asyncio.gather(probe, return_exceptions=True)
    stage.told.shut = None
    assert (await stage.model.reply(request())).text == "ok"


async def test_no_more_calls_begin_within_a_minute_than_are_allowed() -> None:
    clock = MovableClock()
    gate = Gate("http://there", Measure(per_minute=2), clock.now)
    assert [gate.take_turn(), gate.take_turn()] == [0.0, 0.0]
    assert gate.take_turn() == 60.0
    clock.move(59.0)
    assert gate.take_turn() == 1.0
    clock.move(1.0)
    assert gate.take_turn() == 0.0


async def test_a_call_begins_by_the_count_of_all_who_share_one() -> None:
    """Two gates, as two processes have them, and one count."""
    told, turns = Told(), Countdown([0.0, 0.001, 0.0])
    for _ in range(2):
        gate = Gate("http://there", Measure(per_minute=7), MovableClock().now)
        assert (await GatedModel(told, gate).reply(replace(request(), turns=turns))).text == "ok"
    assert turns.asked == [("http://there", 7)] * 3
    assert not turns.pauses


async def test_without_a_measure_nobody_counts() -> None:
    turns = Countdown([])
    gate = Gate("http://there", Measure(), MovableClock().now)
    assert (await GatedModel(Told(), gate).reply(replace(request(), turns=turns))).text == "ok"
    assert not turns.asked


async def test_without_a_measure_calls_begin_at_once() -> None:
    gate = Gate("http://there", Measure(), MovableClock().now)
    assert [gate.take_turn() for _ in range(100)] == [0.0] * 100


async def test_what_a_day_may_cost_is_shared_by_all_and_comes_back_the_next_day(tmp_path: Path) -> None:
    clock, told = MovableClock(10 * 86_400 - 600.0), Told()
    told.usage = {"usd": 0.6}
    gate = Gate("http://there", MEASURE, clock.now)
    models = [GatedModel(told, gate, Purse(tmp_path / "spent.json", 1.0, clock.now)) for _ in range(2)]
    assert (await models[0].reply(request())).text == "ok"
    assert (await models[1].reply(request())).text == "ok"
    with pytest.raises(EffectFailed, match=r"usd 1.20 were spent today, and daily_usd .* allows 1.00") as refused:
        await models[0].reply(request())
    assert told.calls == 2
    assert refused.value.retry_after == 600.0
    clock.move(refused.value.retry_after)
    assert (await models[1].reply(request())).text == "ok"


async def test_what_a_failed_call_cost_is_paid_too(tmp_path: Path) -> None:
    clock, told = MovableClock(), Told()
    told.failing = EffectFailed("broke off", usage={"usd": 2.0})
    model = GatedModel(told, Gate("http://there", MEASURE, clock.now), Purse(tmp_path / "spent.json", 1.0, clock.now))
    with pytest.raises(EffectFailed, match="broke off"):
        await model.reply(request())
    with pytest.raises(EffectFailed, match=r"usd 2.00 were spent today"):
        await model.reply(request())


@pytest.mark.parametrize("content", ["{", "[]", '{"day": "x"}', "null"])
def test_a_damaged_purse_is_refused_and_not_taken_for_an_empty_one(tmp_path: Path, content: str) -> None:
    file = tmp_path / "spent.json"
    file.write_text(content)
    with pytest.raises(DefinitionError, match="is damaged; delete it"):
        Purse(file, 1.0, MovableClock().now).require_money()
