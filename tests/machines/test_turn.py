"""An agent with tools takes its turn as a machine: asking, calling, asking, until it has replied."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from moothall.agents.ask import AskAgent, CallTool, Replied, Returned, ToolCall, Unusable, ask
from moothall.analysis.verify import verify
from moothall.errors import DefinitionError
from moothall.kernel.codec import decode, encode
from moothall.kernel.effects import Effect
from moothall.kernel.events import Event, GaveUp
from moothall.kernel.interpreter import start, transition
from moothall.kernel.step import Step
from moothall.machines.turn import CALLS, THREAD, Turn, Use, said_in_the_end, turn

ASK = AskAgent("guide", "Plan a trip to {to}", {"to": "Oslo"}, "Plan", timeout=20)
TOOLS = (Use("weather"), Use("book", "at-most-once", 30.0))
WEATHER = ToolCall("weather", {"city": "Oslo"}, "w1")
BOOK = ToolCall("book", {"hotel": "Bristol"}, "b1")
REPLY = Replied("guide", "Pack a coat.", {"days": 3}, "Plan")


def wants(*calls: ToolCall, text: str = "") -> Replied:
    """A reply that wants tools called."""
    return Replied("guide", text, calls=calls)


def taken(*events: Event, rounds: int = 3, tools: Sequence[Use] = TOOLS) -> list[Step]:
    """The steps of a turn in which these things happen."""
    machine, steps = turn(rounds), list[Step]()
    for event in (None, *events):
        given = start(machine, Turn(ASK, tuple(tools))) if event is None else None
        step = given or transition(machine, steps[-1].snapshot, event or REPLY)
        assert isinstance(step, Step)
        steps.append(step)
    return steps


def wanted(step: Step) -> list[Effect]:
    return [wanted.effect for wanted in step.effects]


def said(*steps: Step) -> list[Any]:
    """What stands in the thread."""
    appends = [append for step in steps for append in step.appends]
    assert {append.thread for append in appends} <= {THREAD}
    return [append.message for append in appends]


def asked(step: Step) -> bool:
    """Whether a step asks the agent, and does nothing else."""
    return [type(effect) for effect in wanted(step)] == [AskAgent]


# asking


def test_the_agent_is_asked_the_question_with_its_tools_and_the_thread() -> None:
    (first,) = taken()
    assert wanted(first) == [
        AskAgent("guide", "Plan a trip to {to}", {"to": "Oslo"}, "Plan", THREAD, ("weather", "book"), timeout=20)
    ]


def test_a_reply_without_calls_ends_the_turn() -> None:
    *_, last = taken(REPLY)
    assert (last.snapshot.status, last.snapshot.active) == ("done", ("replied",))
    assert last.snapshot.output == {"end": "replied", "text": "Pack a coat.", "value": {"days": 3}}


# calling


def test_each_call_is_an_effect_of_its_own_with_the_kind_and_the_time_of_its_tool() -> None:
    *_, calling = taken(wants(WEATHER, BOOK))
    assert calling.snapshot.active == ("calling",)
    assert wanted(calling) == [
        CallTool("weather", {"city": "Oslo"}, "w1"),
        CallTool("book", {"hotel": "Bristol"}, "b1", repeats="at-most-once", timeout=30.0),
    ]


def test_the_agent_is_asked_again_when_the_last_of_its_tools_is_back_and_not_before() -> None:
    steps = taken(wants(WEATHER, BOOK), Returned("book", "room 7", id="b1"), Returned("weather", -3, id="w1"))
    assert wanted(steps[2]) == []
    assert asked(steps[3])
    assert steps[3].snapshot.active == ("asking",)


def test_everything_that_is_said_stands_in_the_thread_in_its_order() -> None:
    steps = taken(
        wants(WEATHER, BOOK, text="Let me see."),
        Returned("book", "room 7", id="b1"),
        Returned("weather", {"low": -3}, id="w1"),
    )
    assert said(*steps) == [
        {"role": "assistant", "text": "Let me see.", "calls": encode([WEATHER, BOOK])},
        {"role": "tool", "id": "b1", "tool": "book", "value": "room 7"},
        {"role": "tool", "id": "w1", "tool": "weather", "value": {"low": -3}},
    ]
    assert steps[-1].snapshot.threads[THREAD].count == 3


def test_a_tool_that_failed_is_shown_to_the_agent_and_does_not_end_the_turn() -> None:
    steps = taken(wants(WEATHER, BOOK), GaveUp("no room", id="b1"), Returned("weather", 1, id="w1"))
    assert said(steps[2]) == [{"role": "tool", "id": "b1", "tool": "book", "error": "no room"}]
    assert asked(steps[3])


@pytest.mark.parametrize("tool", ["wether", "", "guide", "weather "])
def test_a_tool_that_the_agent_does_not_have_is_answered_with_those_that_it_has(tool: str) -> None:
    steps = taken(wants(ToolCall(tool, {}, "x1"), WEATHER))
    assert wanted(steps[1]) == [CallTool("weather", {"city": "Oslo"}, "w1")]
    assert said(steps[1])[1] == {
        "role": "tool",
        "id": "x1",
        "tool": tool,
        "error": f"there is no tool {tool!r}; there are book, weather",
    }


def test_where_no_call_can_be_made_the_agent_is_asked_again_at_once() -> None:
    steps = taken(wants(ToolCall("nothing", {}, "x1"), ToolCall("nowhere", {}, "x2")))
    assert asked(steps[1])
    assert [message.get("error", "") != "" for message in said(steps[1])] == [False, True, True]


def test_calls_beyond_the_most_of_a_turn_are_answered_with_an_error_over_all_rounds() -> None:
    machine, calls = turn(4), [replace(WEATHER, id=f"w{number}") for number in range(4)]
    first = start(machine, Turn(ASK, TOOLS, most=3))
    assert isinstance(first, Step)
    steps = [first]
    back = (Returned("weather", 9, id=call.id) for call in calls[:2])
    for event in (wants(*calls[:2]), *back, wants(*calls[2:]), Returned("weather", 9, id="w2"), wants(WEATHER)):
        step = transition(machine, steps[-1].snapshot, event)
        assert isinstance(step, Step)
        steps.append(step)
    assert [getattr(effect, "id", "") for effect in wanted(steps[1])] == ["w0", "w1"]
    assert [getattr(effect, "id", "") for effect in wanted(steps[4])] == ["w2"]
    (error,) = (message for message in said(steps[4]) if message["role"] == "tool")
    assert (error["id"], "at most 3 calls of tools" in error["error"]) == ("w3", True)
    assert asked(steps[-1])
    assert steps[-1].snapshot.data.called == 3


@pytest.mark.parametrize("number", [CALLS - 1, CALLS, CALLS + 1, 3 * CALLS])
def test_no_more_than_sixteen_tools_are_called_at_once_and_the_others_are_answered(number: int) -> None:
    calls = [ToolCall("weather", {"city": str(at)}, f"w{at}") for at in range(number)]
    steps = taken(wants(*calls))
    assert [effect.id for effect in wanted(steps[1]) if isinstance(effect, CallTool)] == [
        call.id for call in calls[:CALLS]
    ]
    errors = [message for message in said(steps[1]) if "error" in message]
    assert [error["id"] for error in errors] == [call.id for call in calls[CALLS:]]
    assert {error["error"] for error in errors} <= {"more than 16 calls at once"}


def test_sixteen_calls_that_all_come_back_fit_into_every_round() -> None:
    calls = [ToolCall("weather", {}, f"w{number}") for number in range(CALLS)]
    back = [Returned("weather", number, id=f"w{number}") for number in range(CALLS)]
    steps = taken(*([wants(*calls), *back] * 3), REPLY, rounds=3)
    assert steps[-1].snapshot.active == ("replied",)


def test_sixteen_calls_that_all_fail_fit_into_every_round() -> None:
    calls = [ToolCall("weather", {}, f"w{number}") for number in range(CALLS)]
    back = [GaveUp("no", id=f"w{number}") for number in range(CALLS)]
    steps = taken(*([wants(*calls), *back] * 3), REPLY, rounds=3)
    assert steps[-1].snapshot.active == ("replied",)


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_an_agent_that_still_wants_tools_after_its_last_round_is_exhausted(rounds: int) -> None:
    events = [wants(WEATHER), Returned("weather", 1, id="w1")] * rounds
    steps = taken(*events, wants(WEATHER, text="One more, please."), rounds=rounds)
    assert steps[-2].snapshot.active == ("asking",)
    last = steps[-1].snapshot
    assert (last.status, last.active) == ("done", ("exhausted",))
    assert last.output == {"end": "exhausted", "text": "One more, please."}


def test_a_reply_after_the_last_round_is_a_reply() -> None:
    steps = taken(wants(WEATHER), Returned("weather", 1, id="w1"), REPLY, rounds=1)
    assert steps[-1].snapshot.active == ("replied",)


# what cannot be used


UNUSABLE = Unusable("guide", "three days", "Plan: expected an object")


def test_a_reply_that_cannot_be_used_is_shown_back_once() -> None:
    steps = taken(UNUSABLE)
    assert asked(steps[1])
    assert said(steps[1]) == [
        {"role": "assistant", "text": "three days", "calls": []},
        {
            "role": "user",
            "text": "This reply cannot be used: Plan: expected an object. Please reply again.",
        },
    ]


@pytest.mark.parametrize(
    ("events", "state"),
    [
        ([UNUSABLE, REPLY], "replied"),
        ([UNUSABLE, UNUSABLE], "unusable"),
        ([UNUSABLE, wants(WEATHER), Returned("weather", 1, id="w1"), UNUSABLE], "unusable"),
        ([wants(WEATHER), Returned("weather", 1, id="w1"), UNUSABLE, REPLY], "replied"),
    ],
    ids=["then right", "twice", "twice with a tool between", "after a tool"],
)
def test_the_second_one_is_a_failure(events: list[Event], state: str) -> None:
    last = taken(*events)[-1].snapshot
    assert (last.status, last.active) == ("done", (state,))
    if state == "unusable":
        assert last.output == {"end": "unusable", "text": "Plan: expected an object"}


# what the parent hears


@pytest.mark.parametrize(
    ("output", "event"),
    [
        ({"end": "replied", "text": "Go.", "value": {"days": 3}}, Replied("guide", "Go.", {"days": 3}, "Plan")),
        ({"end": "replied", "text": "", "value": None}, Replied("guide", "", None, "Plan")),
        ({"end": "exhausted", "text": "x"}, GaveUp("guide: it still wanted tools after its last round")),
        ({"end": "unusable", "text": "no"}, GaveUp("guide: its reply cannot be used: no")),
    ],
    ids=["replied", "replied with nothing", "exhausted", "unusable"],
)
def test_the_end_of_a_turn_is_one_event_for_whoever_asked(output: Mapping[str, Any], event: Event) -> None:
    assert said_in_the_end(ASK, output) == event


# the machine itself


@pytest.mark.parametrize("rounds", [1, 8, 50])
def test_the_check_has_no_error_to_find(rounds: int) -> None:
    assert [problem for problem in verify(turn(rounds)) if problem.level == "error"] == []


def test_the_same_number_of_rounds_is_the_same_machine() -> None:
    assert turn(4) is turn(4)
    assert turn(4).digest != turn(5).digest
    assert (turn(4).name, turn(4).kind) == ("turn-4", "turn")


def test_a_turn_is_the_same_before_and_after_it_was_stored() -> None:
    for step in taken(wants(WEATHER, BOOK), GaveUp("no", id="w1"), Returned("book", 1, id="b1"), REPLY):
        assert decode(Turn, encode(step.snapshot.data)) == step.snapshot.data


@pytest.mark.parametrize("rounds", [0, -1, 1.5, "3", True])
def test_rounds_that_are_no_number_of_rounds_are_refused_where_they_are_written(rounds: Any) -> None:
    with pytest.raises(DefinitionError, match="rounds"):
        ask("guide", "Plan", tools=["weather"], rounds=rounds)
