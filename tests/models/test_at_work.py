"""Models of providers at work in runs: every fault ends in the event that is documented for it."""

import asyncio
import json
from pathlib import Path

import pytest

from moothall import Budget, Final, Machine, Moothall, On, Replied, State, ask, otherwise
from moothall.app.config.settings import tell_once
from moothall.errors import EffectFailed
from moothall.stores.memory import MemoryStore
from tests.models.loopback import Fault, Said, Turn, loopback
from tests.models.stage import JUDGING, LOOKING, WRITING, Stage, Task, stage_at, write_settings
from tests.models.test_providers import LASTING, PASSING, told

pytestmark = pytest.mark.anyio
FALTERED, GAVE_UP, REPLIED = "effect.faltered", "error.effect", "replied"
GOOD = Said("", [("r", "final_reply", '{"good": true}')])
BAD = Said("", [("r", "final_reply", '{"good": "perhaps"}')])


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
async def test_a_fault_that_passes_is_tried_again_and_the_run_is_done(tmp_path: Path, fault: Turn) -> None:
    async with loopback(fault, Said("The sea rises.")) as served:
        stage = stage_at(served, tmp_path)
        head = await stage.run(WRITING, "tides")
    assert await stage.names("tides") == ["run.started", FALTERED, REPLIED]
    assert (head.snapshot.status, head.snapshot.data.text) == ("done", "The sea rises.")


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
async def test_a_fault_that_stays_is_tried_three_times_and_then_the_run_hears_of_it(
    tmp_path: Path, fault: Turn
) -> None:
    async with loopback(fault) as served:
        stage = stage_at(served, tmp_path)
        head = await stage.run(WRITING, "tides")
        assert len(served.asked) == 3
    assert await stage.names("tides") == ["run.started", FALTERED, FALTERED, GAVE_UP]
    last = (await stage.events("tides"))[-1]
    assert last["fault"] == "provider"
    assert last["reason"].endswith(", 3 attempts")
    assert head.snapshot.status == "failed"


@pytest.mark.parametrize(("turn", "words"), LASTING.values(), ids=LASTING.keys())
async def test_a_fault_that_would_last_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turn: Turn, words: str
) -> None:
    monkeypatch.setenv("A_KEY", "sk-wrong")
    async with loopback(turn) as served:
        stage = stage_at(served, tmp_path, 'key_from = "A_KEY"')
        await stage.run(WRITING, "tides")
        assert len(served.asked) == 1
    assert await stage.names("tides") == ["run.started", GAVE_UP]
    last = (await stage.events("tides"))[-1]
    assert words in last["reason"]
    assert last["fault"] == "provider"


async def test_an_address_that_wants_a_key_and_has_none_says_where_to_bind_it(tmp_path: Path) -> None:
    async with loopback(Fault(401, told("who are you"))) as served:
        stage = stage_at(served, tmp_path)
        await stage.run(WRITING, "tides")
    assert (
        "wants a key, and none is bound to it; bind one in settings.toml" in (await stage.events("tides"))[-1]["reason"]
    )


async def test_who_asks_to_be_left_alone_is_left_alone_for_so_long(tmp_path: Path) -> None:
    async with loopback(Fault(429, told("later"), (("retry-after", "17"),)), Said("ok")) as served:
        stage = stage_at(served, tmp_path)
        await stage.run(WRITING, "tides")
    assert (await stage.events("tides"))[1]["after"] == 17
    assert stage.clock.jumps == [17]


async def test_a_provider_that_never_answers_is_an_attempt_that_went_wrong(tmp_path: Path) -> None:
    async with loopback(Fault(hang=True), Said("ok")) as served:
        stage = stage_at(served, tmp_path, "timeout = 0.2")
        head = await stage.run(WRITING, "tides")
    assert await stage.names("tides") == ["run.started", FALTERED, REPLIED]
    assert head.snapshot.data.text == "ok"


async def test_a_value_of_the_wrong_type_is_shown_back_once(tmp_path: Path) -> None:
    async with loopback(BAD, GOOD) as served:
        stage = stage_at(served, tmp_path)
        head = await stage.run(JUDGING, "tides")
        again = json.dumps(served.asked[1].body["messages"])
    assert head.snapshot.data.good is True
    assert "perhaps" in again
    assert "This reply cannot be used: Verdict.good: expected true or false" in again
    assert await stage.names("tides") == ["run.started", FALTERED, REPLIED]


async def test_a_value_of_the_wrong_type_twice_is_a_failure(tmp_path: Path) -> None:
    async with loopback(BAD) as served:
        stage = stage_at(served, tmp_path)
        await stage.run(JUDGING, "tides")
        assert len(served.asked) == 2
    last = (await stage.events("tides"))[-1]
    assert last["name"] == GAVE_UP
    assert "the reply has the wrong shape" in last["reason"]


async def test_what_every_attempt_cost_is_charged(tmp_path: Path) -> None:
    async with loopback(BAD, GOOD) as served:
        head = await stage_at(served, tmp_path).run(JUDGING, "tides")
    assert head.spent == {"calls": 2, "tokens": 36}


async def test_an_attempt_that_the_budget_does_not_cover_is_not_made(tmp_path: Path) -> None:
    async with loopback(Fault(503)) as served:
        stage = stage_at(served, tmp_path)
        await stage.run(WRITING, "tides", {"calls": 2})
        assert len(served.asked) == 2
    assert (await stage.names("tides"))[-1] == "run.exhausted"


# An agent with tools


def calling(*calls: tuple[str, str, str]) -> Said:
    return Said("", calls)


async def turned(home: Path, *script: Turn) -> tuple[Stage, str, list[str]]:
    """A turn with this script: its stage, how its run ended, and the tools' results that the model saw at the end."""
    async with loopback(*script) as served:
        stage = stage_at(served, home)
        head = await stage.run(LOOKING, "Ys")
        seen = [message["content"] for message in served.asked[-1].body["messages"] if message["role"] == "tool"]
    return stage, head.snapshot.data.text or head.snapshot.reason, seen


async def test_a_tool_is_called_and_what_it_returned_is_seen(tmp_path: Path) -> None:
    _, text, seen = await turned(tmp_path, calling(("a", "look", '{"place": "Ys"}')), Said("Fog."))
    assert (text, seen) == ("Fog.", ["fog in Ys"])


async def test_a_tool_that_nobody_has_is_an_error_that_the_model_sees(tmp_path: Path) -> None:
    _, text, [seen] = await turned(tmp_path, calling(("a", "fly", "{}")), Said("Then not."))
    assert text == "Then not."
    assert "there is no tool 'fly'; there are look" in seen


async def test_calls_with_the_same_id_are_both_answered(tmp_path: Path) -> None:
    twice = calling(("a", "look", '{"place": "Ys"}'), ("a", "look", '{"place": "Oz"}'))
    _, text, seen = await turned(tmp_path, twice, Said("Fog everywhere."))
    assert text == "Fog everywhere."
    assert sorted(seen) == ["fog in Oz", "fog in Ys"]


async def test_arguments_that_are_no_json_are_shown_back(tmp_path: Path) -> None:
    _, text, _ = await turned(tmp_path, calling(("a", "look", '{"place')), Said("Sorry."))
    assert text == "Sorry."


async def test_arguments_that_are_no_json_twice_are_a_failure(tmp_path: Path) -> None:
    _, reason, _ = await turned(tmp_path, calling(("a", "look", '{"place')))
    assert "its reply cannot be used" in reason


async def test_arguments_that_do_not_fit_the_tool_are_a_failure_of_the_tool_that_the_model_sees(tmp_path: Path) -> None:
    _, text, [seen] = await turned(tmp_path, calling(("a", "look", '{"where": 3}')), Said("Hm."))
    assert text == "Hm."
    assert "look was not called: there is no argument 'where'; there are place" in json.loads(seen)["error"]


async def test_a_provider_that_fails_in_a_turn_fails_its_run_as_a_provider(tmp_path: Path) -> None:
    stage, reason, _ = await turned(tmp_path, Fault(401, told("who")))
    assert "wants a key" in reason
    assert (await stage.events("Ys"))[-1]["fault"] == "provider"


# What comes in is kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [("a\x00b", "a\x00b"), ("half \ud800", "half ?"), ("tide " * 2_000_000, "tide " * 2_000_000)],
    ids=["NUL", "surrogate", "ten megabytes"],
)
async def test_any_text_is_kept_by_the_run(tmp_path: Path, text: str, kept: str) -> None:
    async with loopback(Said(text)) as served:
        head = await stage_at(served, tmp_path).run(WRITING, "tides")
    assert head.snapshot.data.text == kept


async def test_a_chain_goes_on_with_the_next_model_within_one_attempt(tmp_path: Path) -> None:
    async with loopback(Fault(401, told("who"))) as first, loopback(Said("second")) as second:
        stage = Stage(f"openai:a@{first.address}|anthropic:b@{second.root}")
        head = await stage.run(WRITING, "tides")
    assert head.snapshot.data.text == "second"
    assert await stage.names("tides") == ["run.started", REPLIED]


async def test_a_provider_has_no_more_calls_at_once_than_its_settings_allow(tmp_path: Path) -> None:
    async with loopback(Said("ok")) as served:
        stage = stage_at(served, tmp_path, "at_once = 3")
        await asyncio.gather(*(stage.run(WRITING, f"t{number}") for number in range(24)))
        assert len(served.asked) == 24
        assert served.most <= 3


async def test_failures_of_a_provider_in_a_row_spare_it_the_calls_of_other_runs(tmp_path: Path) -> None:
    async with loopback(Fault(503, b'{"error": {"message": "out of memory"}}')) as served:
        stage = stage_at(served, tmp_path, "failures = 3", "rest = 1000")
        await stage.run(WRITING, "one")
        await stage.run(WRITING, "two")
        assert len(served.asked) == 3
    reason = (await stage.events("two"))[-1]["reason"]
    assert f"out of memory; {served.address} failed 3 times in a row and is left alone" in reason


def test_a_failure_is_passing_unless_it_says_otherwise() -> None:
    assert EffectFailed("x").final is False


ROUNDS = 50
ENDLESS = Machine(
    "endless",
    data=Task,
    states=[State("asking", enter=ask("writer", "Write about {topic}")), Final("over")],
    moves=[On("asking", Replied, to="asking", at_most=ROUNDS), On("asking", otherwise, to="over")],
)


@pytest.mark.parametrize("tokens", [100, 1_000])
async def test_a_budget_of_tokens_stops_a_run_whose_provider_reports_no_usage(
    tmp_path: Path, tokens: int, capsys: pytest.CaptureFixture[str]
) -> None:
    tell_once.cache_clear()
    async with loopback(Said("word " * 80, used=None)) as served:
        stage = stage_at(served, tmp_path)
        head = await stage.run(ENDLESS, "tides", {"tokens": tokens})
        assert 1 <= len(served.asked) <= tokens // 100
    assert head.snapshot.status == "limited"
    assert head.spent["tokens"] == head.spent["estimated"] >= tokens
    assert capsys.readouterr().err.count("does not report its usage") == 1


async def test_where_nothing_depends_on_it_nothing_is_estimated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with loopback(Said("word " * 80, used=None)) as served:
        head = await stage_at(served, tmp_path).run(WRITING, "tides", {"calls": 3})
    assert (head.snapshot.status, "tokens" in head.spent) == ("done", False)
    assert capsys.readouterr().err == ""


CHATTER = {
    "workflow_name": "chatter",
    "description": "Somebody talks without end.",
    "input": {"name": "topic", "type": "string"},
    "output": {"name": "text", "description": "what was said"},
    "contexts": [{"name": "talk", "starting_messages": [], "max_length": 50_000}],
    "agents": [{"agent_role": "coder", "context": "talk", "role": "assistant"}],
    "states": [
        {
            "name": "start",
            "agent": "coder",
            "input": "'Go on about ' + common_data.topic",
            "action": {"function": "sendUserMessage"},
            "transition": [
                {"target": "start", "condition": "last_agent_response !== 'enough'"},
                {"target": "stop", "condition": "true"},
            ],
        }
    ],
}


async def test_a_budget_of_tokens_stops_a_workflow_whose_provider_reports_no_usage(tmp_path: Path) -> None:
    (tmp_path / "chatter.json").write_text(json.dumps(CHATTER))
    async with loopback(Said("word " * 80, used=None)) as served:
        write_settings(tmp_path, f'[addresses."{served.address}"]')
        async with Moothall(MemoryStore(), listeners=()) as hall:
            outcome = await hall.run(
                str(tmp_path / "chatter.json"),
                "tides",
                model=f"openai:m@{served.address}",
                budget=Budget(tokens=1_000),
            )
        assert 1 <= len(served.asked) <= 10
    assert outcome.status == "limited"
    assert outcome.spent["tokens"] == outcome.spent["estimated"] >= 1_000


async def test_calls_of_a_minute_are_counted_by_the_store_for_all_who_share_it(tmp_path: Path) -> None:
    async with loopback(Said("The sea rises.")) as served:
        stage = stage_at(served, tmp_path, "per_minute = 3")
        await stage.run(WRITING, "one")
        await stage.run(WRITING, "two")
        assert await stage.store.take_turn(served.address, 3) == 0.0
        assert await stage.store.take_turn(served.address, 3) > 0.0
