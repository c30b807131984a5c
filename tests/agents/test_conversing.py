"""Conversations that agents share: what is kept, and how each of them sees it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moothall.agents.ask import ToolCall
from moothall.agents.conversation import (
    CLEAR,
    Message,
    Seat,
    failure_of,
    input_of,
    reply_of,
    result_of,
    shown_to_scripts,
    view_of,
    window_of,
)
from moothall.performers.conversation import recent
from moothall.runtime.ports import WHOLE, Excerpt

CODER = Seat("coder", "talk", "assistant", 1000)
REVIEWER = Seat("reviewer", "talk", "user", 1000)
CALL = ToolCall("look", {"at": "x"}, "c1")


def texts(messages: Any) -> list[str]:
    return [str(message.get("text", message.get("value"))) for message in messages]


def test_everybody_is_the_assistant_of_their_own_story() -> None:
    said = [
        input_of(CODER, "do it"),
        reply_of(CODER, "done", ()),
        input_of(REVIEWER, "judge"),
        reply_of(REVIEWER, "good", ()),
    ]
    assert [(message["role"], message["text"]) for message in said] == [
        ("user", "do it"),
        ("assistant", "done"),
        ("assistant", "judge"),
        ("user", "good"),
    ]
    assert [message["role"] for message in view_of(CODER, said)] == ["user", "assistant", "assistant", "user"]
    assert [message["role"] for message in view_of(REVIEWER, said)] == ["assistant", "user", "user", "assistant"]


def test_calls_are_calls_to_the_one_who_made_them_and_text_to_others() -> None:
    said = [reply_of(CODER, "hm", (CALL,)), result_of(CODER, CALL, {"found": 1}), failure_of(CODER, CALL, "broken")]
    assert view_of(CODER, said)[0] == {
        "role": "assistant",
        "text": "hm",
        "calls": [{"tool": "look", "arguments": {"at": "x"}, "id": "c1"}],
    }
    assert view_of(CODER, said)[1] == {"role": "tool", "id": "c1", "tool": "look", "value": {"found": 1}}
    assert view_of(REVIEWER, said) == (
        {"role": "user", "text": 'coder: hm\n[coder called look({"at": "x"})]'},
        {"role": "user", "text": '[coder: look returned: {"found": 1}]'},
        {"role": "user", "text": "[coder: look failed: broken]"},
    )
    assert len(view_of(REVIEWER, said, ["look"])) == 1


def test_what_is_too_long_goes_oldest_first_and_never_the_system() -> None:
    seat = Seat("coder", "talk", "assistant", 10, ({"role": "system", "text": "rules"},))
    said = [input_of(seat, "1234"), reply_of(seat, "567", ()), input_of(seat, "89")]
    assert texts(window_of(seat, said)) == ["rules", "567", "89"]
    assert texts(window_of(seat, [*said, input_of(seat, "x" * 99)])) == ["rules", "x" * 99]


def test_a_call_and_what_it_returned_go_together() -> None:
    seat = Seat("coder", "talk", "assistant", 8)
    said = [reply_of(seat, "12345", (CALL,)), result_of(seat, CALL, "ok"), input_of(seat, "67")]
    assert texts(window_of(seat, said)) == ["67"]
    assert texts(window_of(Seat("coder", "talk", "assistant", 9), said)) == ["12345", "ok", "67"]


def test_what_was_cleared_counts_no_more() -> None:
    seat = Seat(
        "coder", "talk", "assistant", 100, ({"role": "system", "text": "rules"}, {"role": "user", "text": "hi"})
    )
    assert texts(window_of(seat, [input_of(seat, "old"), CLEAR, input_of(seat, "new")])) == ["rules", "new"]
    assert texts(window_of(seat, [CLEAR])) == ["rules"]


def test_scripts_see_a_conversation_as_providers_have_it() -> None:
    said = [input_of(CODER, "go"), reply_of(CODER, "hm", (CALL,)), result_of(CODER, CALL, 3)]
    assert shown_to_scripts(CODER, said) == [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": "hm",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": {"at": "x"}}}],
        },
        {"role": "tool", "content": "3", "tool_call_id": "c1", "name": "look"},
    ]


def message(kind: str, text: str) -> list[Message]:
    match kind:
        case "call":
            return [reply_of(CODER, text, (CALL,)), result_of(CODER, CALL, text)]
        case "system":
            return [{"role": "system", "text": text}]
        case "reply":
            return [reply_of(CODER, text, ())]
        case _:
            return [input_of(CODER, text)]


PARTS = st.lists(st.tuples(st.sampled_from(("call", "system", "reply", "input")), st.text(max_size=30)), max_size=12)


@given(PARTS, st.integers(1, 200))
def test_whatever_was_said_the_newest_is_kept_nothing_is_parted_and_order_stays(
    parts: list[tuple[str, str]], most: int
) -> None:
    seat = Seat("coder", "talk", "assistant", most)
    said = [part for kind, text in parts for part in message(kind, text)]
    left = window_of(seat, said)
    places = [next(at for at, other in enumerate(said) if other is kept_one) for kept_one in left]
    assert places == sorted(places)
    assert [part for part in left if part["role"] == "system"] == [part for part in said if part["role"] == "system"]
    assert left[-1:] == said[-1:]
    for at, part in enumerate(left):
        if part["role"] == "tool":
            assert left[at - 1].get("calls")
        if part.get("calls"):
            assert left[at + 1]["role"] == "tool"
    spoken = [part for part in left if part["role"] != "system"]
    is_last_alone = sum(part["role"] != "tool" for part in spoken) <= 1
    assert is_last_alone or sum(map(length, left)) <= most


def length(said: Message) -> int:
    return len(said["text"]) if "text" in said else len(said["value"])


@given(PARTS, st.integers(1, 100), st.integers(0, 12))
def test_what_once_went_does_not_come_back(parts: list[tuple[str, str]], most: int, cut: int) -> None:
    seat = Seat("coder", "talk", "assistant", most)
    plain = [(kind, text) for kind, text in parts if kind != "system"]
    first = [part for kind, text in plain[:cut] for part in message(kind, text)]
    rest = [part for kind, text in plain[cut:] for part in message(kind, text)]
    gone = [part for part in first if not any(part is other for other in window_of(seat, first))]
    later = window_of(seat, [*first, *rest])
    assert not [part for part in gone if any(part is other for other in later)]


@pytest.mark.parametrize("side", ["user", "assistant"])
def test_an_input_is_what_the_agent_answers(side: Any) -> None:
    seat = Seat("x", "talk", side, 100)
    assert [message["role"] for message in view_of(seat, [input_of(seat, "q"), reply_of(seat, "a", ())])] == [
        "user",
        "assistant",
    ]


@pytest.mark.anyio
@given(
    roles=st.lists(st.sampled_from(["user", "assistant", "tool", "tool", "clear"]), max_size=80),
    before=st.integers(0, 200),
    most=st.integers(0, 400),
    new=st.integers(0, 2),
)
async def test_of_a_long_conversation_no_more_is_read_than_is_left_of_it(
    roles: list[str], before: int, most: int, new: int
) -> None:
    """Reading the latest messages shows the same as reading all of them."""
    roles = ["user", "assistant", "tool"] * (before // 3) + roles
    said = [_message(role, at) for at, role in enumerate(roles)]
    starting = ({"role": "system", "text": "be kind"}, {"role": "user", "text": "first"})
    seat = Seat("ann", "talk", "assistant", most, starting)
    asked: list[int] = []

    async def messages(thread: str, /, excerpt: Excerpt = WHOLE) -> list[Any]:
        first = excerpt.first(len(said))
        asked.append(len(said) - first)
        return said[first:]

    fresh = [_message("user", 1000)] * new
    assert window_of(seat, await recent(messages, seat, fresh)) == window_of(seat, [*said, *fresh])
    if len(said) >= 128 and "clear" in roles[-32:]:
        assert asked == [32]


def _message(role: str, at: int) -> dict[str, Any]:
    if role == "tool":
        return {"role": role, "by": "ann", "id": "1", "tool": "look", "value": "v" * (at % 7)}
    return {"role": role} if role == "clear" else {"role": role, "by": "ann", "text": "t" * (at % 11)}
