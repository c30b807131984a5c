"""What a run leaves behind reads back as what it was; what was damaged is noticed."""

import copy
from dataclasses import dataclass
from enum import Enum
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moothall.agents.ask import AskAgent, CallTool, Replied, Returned, ask
from moothall.errors import Broken
from moothall.kernel.codec import decode
from moothall.kernel.effects import Alarm, AskPerson, Effect, Send
from moothall.kernel.events import (
    Answered,
    Cancelled,
    Event,
    ExecutionFailed,
    Exhausted,
    Expired,
    GaveUp,
    Named,
    Started,
)
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from moothall.kernel.step import Append, Snapshot, Tail
from moothall.runtime.journal import (
    Entry,
    Head,
    Pending,
    Reader,
    encode_entry,
    encode_event,
    encode_head,
    encode_pending,
    shaped,
)


class Mood(Enum):
    """An enumeration inside data."""

    GLAD = "glad"
    GRIM = "grim"


@dataclass(frozen=True)
class Verdict:
    """A reply with a shape."""

    good: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """Data with all that a dataclass may hold."""

    title: str
    mood: Mood = Mood.GLAD
    verdicts: tuple[Verdict, ...] = ()
    scores: dict[str, float] | None = None


class Opened(Event):
    """An event of this machine."""

    case: Case


COURT = Machine(
    "court",
    data=Case,
    states=[State("judging", enter=ask("judge", "Judge {title}", reply=Verdict)), Final("judged")],
    moves=[On("judging", Replied, to="judged"), On("judging", Opened)],
    events=[Returned],
)
READER = Reader(COURT, {AskAgent.kind: AskAgent, CallTool.kind: CallTool})

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63 - 1)
plain = st.recursive(
    st.none() | st.booleans() | numbers | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
amounts = st.dictionaries(text, numbers, max_size=3)
verdicts = st.builds(Verdict, st.booleans(), st.lists(text, max_size=2).map(tuple))
cases = st.builds(
    Case,
    text,
    st.sampled_from(Mood),
    st.lists(verdicts, max_size=2).map(tuple),
    st.none() | st.dictionaries(text, numbers),
)
names = st.sampled_from(["tick", "door.opened", "a-b.c_d", "answered", "expired", "replied"])
events: st.SearchStrategy[Event] = st.one_of(
    st.builds(Replied, text, text, plain, st.just(""), amounts),
    st.builds(Replied, text, text, verdicts, st.just("Verdict"), amounts),
    st.builds(Returned, text, plain, amounts),
    st.builds(Answered, plain, text, text),
    st.builds(GaveUp, text, text, amounts),
    st.builds(ExecutionFailed, text, text),
    st.builds(Exhausted, text, numbers, text),
    st.builds(Cancelled, text),
    st.builds(Opened, cases),
    st.builds(Named, names, plain),
    st.just(Expired()),
    st.just(Started()),
)
effects: st.SearchStrategy[Effect] = st.one_of(
    st.builds(AskAgent, text, text, st.dictionaries(text, plain, max_size=2), text),
    st.builds(CallTool, text, st.dictionaries(text, plain, max_size=2)),
    st.builds(AskPerson, text, plain, text, st.none() | numbers, text),
    st.builds(Send, events, numbers, text),
    st.builds(Alarm, events, numbers),
)
pendings = st.builds(Pending, text, effects, st.none() | text, st.integers(1, 99), st.none() | numbers, text)
snapshots = st.builds(
    Snapshot,
    st.lists(text, max_size=3).map(tuple),
    cases,
    st.sampled_from(["live", "done", "failed", "limited", "cancelled"]),
    text,
    plain,
    st.dictionaries(text, st.integers(0, 9), max_size=2),
    st.dictionaries(text, st.lists(text, max_size=2).map(tuple), max_size=2),
    st.dictionaries(text, st.builds(Tail, st.integers(0, 9), text), max_size=2),
)
heads = st.builds(
    Head,
    st.integers(0, 10**6),
    snapshots,
    st.lists(pendings, max_size=3).map(tuple),
    amounts,
    st.dictionaries(text, st.integers(0, 9), max_size=2),
)
some_names = st.lists(text, max_size=2).map(tuple)
entries = st.builds(
    Entry,
    st.integers(0, 10**6),
    numbers,
    text,
    events,
    some_names,
    some_names,
    some_names,
    st.none() | text,
    st.lists(pendings, max_size=2).map(tuple),
    st.lists(st.builds(Append, text, plain), max_size=2).map(tuple),
)


def through_the_disk(value: Any) -> Any:
    """What a store would read back."""
    return orjson.loads(orjson.dumps(value))


@given(events)
def test_an_event_reads_back_as_it_was(event: Event) -> None:
    found = READER.event(through_the_disk(encode_event(event)))
    assert found == shaped(COURT, event)
    assert type(found) is type(event)


@pytest.mark.parametrize("name", ["answered", "expired", "run.cancelled", "replied", "opened", "unheard.of"])
def test_a_document_s_event_keeps_its_data_even_under_a_name_that_a_class_has(name: str) -> None:
    event = Named(name, {"colour": "red"})
    assert READER.event(through_the_disk(encode_event(event))) == event


@given(pendings)
def test_an_effect_in_flight_reads_back_as_it_was(pending: Pending) -> None:
    assert READER.pending(through_the_disk(encode_pending(pending))) == pending


@given(heads)
@settings(max_examples=50)
def test_a_head_reads_back_as_it_was(head: Head) -> None:
    assert READER.head(through_the_disk(encode_head(head))) == head


@given(entries)
@settings(max_examples=50)
def test_an_entry_keeps_everything_that_it_was_given(entry: Entry) -> None:
    kept = through_the_disk(encode_entry(entry))
    assert (kept["seq"], kept["at"], kept["cause"]) == (entry.seq, entry.at, entry.cause)
    assert (tuple(kept["from"]), tuple(kept["to"]), tuple(kept["taken"])) == (entry.before, entry.after, entry.taken)
    assert READER.event(kept["event"]) == entry.event
    assert tuple(map(READER.pending, kept["effects"])) == entry.effects
    assert tuple(decode(Append, one) for one in kept.get("appends", ())) == entry.appends
    assert (kept.get("within") or "") == (entry.within or "")


def test_an_entry_leaves_out_what_is_empty() -> None:
    bare = encode_entry(Entry(0, 1.0, "start", Started(), (), ("judging",)))
    assert set(bare) == {"seq", "at", "cause", "event", "from", "to", "taken", "effects"}


HEAD = encode_head(
    Head(4, Snapshot(("judging",), Case("x")), (Pending("4.0", AskAgent("judge", "Judge {title}", {"title": "x"})),))
)


@pytest.mark.parametrize(
    ("place", "damage"),
    [
        (("seq",), "four"),
        (("snapshot",), []),
        (("snapshot",), {}),
        (("snapshot", "status"), "asleep"),
        (("snapshot", "data"), {"title": 7}),
        (("snapshot", "data"), None),
        (("snapshot", "data", "mood"), "angry"),
        (("pending",), None),
        (("pending",), ["x"]),
        (("pending", 0, "kind"), "launch.rocket"),
        (("pending", 0, "effect"), "x"),
        (("pending", 0, "effect"), {"agent": "judge"}),
        (("pending", 0, "effect", "agent"), 3),
        (("pending", 0, "key"), 3),
        (("pending", 0, "due"), "soon"),
        (("spent",), {"usd": "a lot"}),
        (("issued",), {"judge": 0.5}),
    ],
    ids=str,
)
def test_a_damaged_head_is_called_broken_and_never_used(place: tuple[Any, ...], damage: Any) -> None:
    head = copy.deepcopy(HEAD)
    inner = head
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = damage
    with pytest.raises(Broken, match="the stored snapshot cannot be read"):
        READER.head(through_the_disk(head))


def test_the_head_that_was_damaged_above_is_fine_before() -> None:
    assert READER.head(HEAD).snapshot.data == Case("x")
