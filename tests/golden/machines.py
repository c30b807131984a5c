"""The machines of the golden journals. What stands here stays: a new journal gets a new machine.

Nothing here reads the clock or chance, and every machine is found by its name in this file.
"""

import asyncio
from dataclasses import dataclass, replace
from typing import Any

from moothall import (
    Alarm,
    All,
    Answered,
    Append,
    AskAgent,
    AskPerson,
    Budget,
    Cancelled,
    ChildDone,
    Conflicted,
    Effect,
    EffectFailed,
    Event,
    Exhausted,
    Final,
    FormField,
    GaveUp,
    Machine,
    Move,
    On,
    Parallel,
    ReadRecords,
    RecordsRead,
    RecordsWritten,
    Replied,
    Reply,
    Returned,
    SharedRecord,
    State,
    ToolCall,
    WriteRecords,
    ask,
    call,
    child,
    emitting,
    form,
    question,
    tool,
)


@dataclass(frozen=True)
class Note:
    """What the machines work on."""

    to: str
    text: str = ""
    got: tuple[str, ...] = ()


class Rang(Event):
    """The bell rang."""


tries: list[str] = []


async def writer(prompt: str) -> str:
    return f"Dear reader. {prompt}. " * 20


async def clerk(prompt: str) -> str | Reply:
    if '"role": "tool"' in prompt:
        return "posted"
    return Reply("first", calls=(ToolCall("stamp", {"to": "Ada"}), ToolCall("post", {"to": "Ada"})))


async def stamp(to: str) -> str:
    return f"a stamp for {to}"


async def post(to: str, key: str) -> str:
    return f"posted to {to}"


async def shaky(to: str, key: str) -> str:
    tries.append(key)
    if len(tries) % 3:
        raise EffectFailed("the box is full", retry_after=0.01)
    return f"posted to {to} in the end"


def keep(note: Note, reply: Replied) -> Move[Note]:
    return Move(replace(note, text=reply.text), appends=(Append("talk", {"said": reply.text}),))


def add(note: Note, event: Returned) -> Note:
    return replace(note, got=(*note.got, event.value))


QUESTION = Machine(
    "question",
    data=Note,
    states=[
        State("writing", enter=ask(writer, "to {to}")),
        State("asking", enter=question("Send it to {to}?", within=3600)),
        State("posting", enter=call(tool(post, repeats="at-most-once"), "to")),
        Final("sent"),
        Final("kept"),
    ],
    moves=[
        On("writing", Replied, to="asking", do=keep),
        On("asking", Answered, to="posting", when=lambda note, said: said.value),
        On("asking", Answered, to="kept"),
        On("posting", Returned, to="sent", do=add),
    ],
)
RETRIES = Machine(
    "retries",
    data=Note,
    states=[State("posting", enter=call(shaky, "to")), Final("sent"), Final("lost")],
    moves=[On("posting", Returned, to="sent", do=add), On("posting", GaveUp, to="lost")],
)
FAMILY = Machine(
    "family",
    data=Note,
    budget=Budget(calls=9),
    states=[State("delegating", enter=child("question", "to", budget=Budget(calls=4))), Final("over")],
    moves=[On("delegating", ChildDone, to="over", do=lambda note, done: replace(note, text=done.data["text"]))],
)
PARALLEL = Machine(
    "parallel",
    data=Note,
    states=[
        Parallel(
            "both",
            [
                State("left", [State("stamping", enter=call(tool(stamp, repeats="pure"), "to")), Final("stamped")]),
                State("right", [State("wondering", enter=question("Which way?", str)), Final("told")]),
            ],
        ),
        Final("over"),
    ],
    moves=[
        On("stamping", Returned, to="stamped", do=add),
        On("wondering", Answered, to="told", do=lambda note, said: replace(note, text=said.value)),
        On("both", "done.state.both", to="over"),
    ],
)
FAN = Machine(
    "fan",
    data=Note,
    states=[State("asking", enter=[ask(writer, "first"), ask(writer, "second"), ask(writer, "third")]), Final("over")],
    moves=[
        On(
            "asking",
            Replied,
            do=lambda note, reply: replace(note, got=(*note.got, reply.text)),
            when=lambda note, reply: len(note.got) < 2,
        ),
        On("asking", Replied, to="over"),
    ],
)
AGENT = Machine(
    "agent",
    data=Note,
    states=[
        State("sending", enter=ask(clerk, "Send {to}", tools=[stamp, tool(post, repeats="at-most-once")], rounds=3)),
        Final("sent"),
    ],
    moves=[On("sending", Replied, to="sent", do=keep)],
)
TIMERS = Machine(
    "timers",
    data=Note,
    states=[State("waiting", enter=Alarm(Rang(), 0.01)), State("asking", enter=question("Awake?")), Final("over")],
    moves=[On("waiting", Rang, to="asking"), On("asking", Cancelled, to="over")],
)
BUDGET = Machine(
    "budget",
    data=Note,
    budget=Budget(calls=3),
    states=[State("writing", enter=ask(writer, "{got}")), Final("poor")],
    moves=[
        On("writing", Replied, to="writing", do=lambda note, reply: replace(note, got=(*note.got, "more"))),
        On("writing", Exhausted, to="poor"),
    ],
)


@emitting(WriteRecords)
def count_letter(note: Note, read: RecordsRead) -> WriteRecords:
    return WriteRecords(
        tuple(replace(record, value={"letters": record.value["letters"] + 1}) for record in read.records)
    )


FIRST_LETTER = WriteRecords((SharedRecord("letters", "Ada", {"letters": 1}),))
RECORDS = Machine(
    "records",
    data=Note,
    states=[
        State("claiming", enter=FIRST_LETTER),
        State("claiming_again", enter=FIRST_LETTER),
        State("reading", enter=ReadRecords("letters", prefix="A")),
        State("counting"),
        Final("counted"),
    ],
    moves=[
        On("claiming", RecordsWritten, to="claiming_again"),
        On("claiming_again", Conflicted, to="reading", do=lambda note, event: replace(note, text=event.reason)),
        On("reading", RecordsRead, to="counting", do=count_letter),
        On("counting", RecordsWritten, to="counted", do=lambda note, event: replace(note, got=("written",))),
    ],
)


class Redirected(Event):
    """Somebody wants something else."""


class Sung(Event):
    """A song was sung."""

    value: str = ""


class Sing(Effect):
    """Sing to somebody: an effect of an author's own."""

    kind = "sing"
    outcomes = (Sung,)
    to: str


async def sing(effect: Sing, context: Any) -> str:
    """Sing, and never come to an end where somebody listens."""
    hear = context.ear("bard")
    if hear is not None and effect.to != "nobody":
        hear(f"O {effect.to}, the sea rises ")
        hear("twice a day.")
        await asyncio.Event().wait()
    return f"a song for {effect.to}"


@emitting(Sing)
def sing_to(note: Note, _: object) -> Sing:
    return Sing(note.to)


@emitting(Sing)
def sing_to_nobody(note: Note, _: object) -> Sing:
    return Sing("nobody")


def keep_song(note: Note, sung: Sung) -> Note:
    return replace(note, got=(*note.got, sung.value))


INTERRUPT = Machine(
    "interrupt",
    data=Note,
    states=[State("singing", enter=sing_to), State("humming", enter=sing_to_nobody), Final("over")],
    moves=[
        On("singing", Sung, to="humming", do=keep_song),
        On("singing", Redirected, to="humming"),
        On("humming", Sung, to="over", do=keep_song),
    ],
)


def careful(note: Note, reply: Replied) -> Note:
    return replace(note, text=reply.text)


MENDED = Machine(
    "mended",
    data=Note,
    states=[State("writing", enter=ask(writer, "to {to}")), State("stamping", enter=call(stamp, "to")), Final("sent")],
    moves=[On("writing", Replied, to="stamping", do=careful), On("stamping", Returned, to="sent", do=add)],
)
LIMITED = Machine(
    "limited",
    data=Note,
    budget=Budget(calls=1),
    states=[
        State("writing", enter=ask(writer, "to {to}")),
        State("writing_again", enter=ask(writer, "again to {to}")),
        State("stamping", enter=call(stamp, "to")),
        Final("sent"),
    ],
    moves=[
        On("writing", Replied, to="writing_again", do=careful),
        On("writing_again", Replied, to="stamping", do=careful),
        On("stamping", Returned, to="sent", do=add),
    ],
)


@emitting(AskAgent, most=2)
def ask_both(note: Note, _: object) -> Move[Note]:
    return Move(note, effects=tuple(AskAgent("writer", f"What about {what}?", id=what) for what in ("tides", "winds")))


@emitting(AskPerson)
def ask_details(note: Note, _: object) -> AskPerson:
    size = FormField("size", "How many?", earlier=len(note.got), schema={"type": "integer", "minimum": 1})
    return form("Before it is sent", [FormField("place", f"Where is {note.to}?", by="writer"), size], id="details")


PANEL = Machine(
    "panel",
    data=Note,
    states=[State("proposing", enter=ask_both), State("clarifying", enter=ask_details), Final("settled")],
    moves=[
        On("proposing", Replied, do=lambda note, reply: replace(note, got=(*note.got, reply.id)), at_most=2),
        On("proposing", All(Replied), to="clarifying"),
        On("clarifying", Answered, to="settled", do=lambda note, said: replace(note, text=said.value["place"])),
    ],
)
