"""Machines that the tests of the page run: those that ask, one that asks again, one with a child, one that breaks."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from moothall import (
    Answered,
    Budget,
    ChildDone,
    EffectFailed,
    Final,
    Machine,
    On,
    Replied,
    State,
    ask,
    child,
    otherwise,
    question,
    yes,
)


@dataclass(frozen=True)
class Letter:
    to: str
    text: str = ""
    copies: int = 1


async def clerk(prompt: str) -> str:
    return f"Dear {prompt.split()[-1]}, <img src=x onerror=alert(1)>"


LETTER = Machine(
    "letter",
    data=Letter,
    result=lambda letter: letter.text,
    states=[
        State("writing", enter=ask(clerk, "Write to {to}")),
        State("approving", enter=question("Send this? {text}")),
        Final("sent"),
        Final("dropped"),
    ],
    moves=[
        On("writing", Replied, to="approving", do=lambda letter, reply: replace(letter, text=reply.text)),
        On("approving", Answered, to="sent", when=yes),
        On("approving", otherwise, to="dropped"),
    ],
)

PRIVATE = Machine(
    "private",
    data=Letter,
    states=[State("asking", enter=question("Only for Bob?", who="bob")), Final("over")],
    moves=[On("asking", Answered, to="over")],
)

tried: set[str] = set()


async def poet(prompt: str) -> str:
    """Fails whenever it is asked something for the first time."""
    if prompt not in tried:
        tried.add(prompt)
        raise EffectFailed("the ink is dry")
    return f"First line\n{prompt}"


POEM = Machine(
    "poem",
    data=Letter,
    states=[State("writing", enter=ask(poet, "to {to}, version {copies}")), Final("written")],
    moves=[
        On("writing", Replied, to="written", when=lambda poem, _: poem.copies == 2),
        On("writing", Replied, to="writing", do=lambda poem, _: replace(poem, copies=poem.copies + 1), at_most=1),
    ],
)

ENVELOPE = Machine(
    "envelope",
    data=Letter,
    budget=Budget(calls=20),
    states=[State("filling", enter=child(LETTER, "to", budget=Budget(calls=6))), Final("closed")],
    moves=[On("filling", ChildDone, to="closed")],
)


def stamp(letter: Letter, _: object) -> Letter:
    """Broken until somebody mends it: the file says that it is."""
    if not (Path(os.environ["MOOTHALL_HOME"]) / "mended").exists():
        raise ValueError("there is no stamp")
    return letter


PARCEL = Machine(
    "parcel",
    data=Letter,
    states=[State("packing", enter=ask(clerk, "Pack for {to}")), Final("packed")],
    moves=[On("packing", Replied, to="packed", do=stamp)],
)

THRIFTY = Machine(
    "thrifty",
    data=Letter,
    budget=Budget(calls=1),
    states=[
        State("writing", enter=ask(clerk, "Write to {to}")),
        State("copying", enter=ask(clerk, "Copy for {to}")),
        Final("copied"),
    ],
    moves=[On("writing", Replied, to="copying"), On("copying", Replied, to="copied")],
)

PATCH = Machine(
    "patch",
    data=Letter,
    states=[State("asking", enter=question("Apply this to {to}?\n-old line\n+new line\n  kept line")), Final("over")],
    moves=[On("asking", Answered, to="over")],
)


@dataclass(frozen=True)
class Verdict:
    """What a person says in a form: a yes or a no that has to be given, and things that may be left out."""

    approved: bool
    reason: str = ""
    urgent: bool | None = None
    notes: tuple[str, ...] = ()


VERDICT = Machine(
    "verdict",
    data=Letter,
    result=lambda letter: letter.text,
    states=[State("judging", enter=question("Is the letter to {to} good?", Verdict)), Final("judged")],
    moves=[
        On("judging", Answered, to="judged", do=lambda letter, given: replace(letter, text=repr(given.value))),
    ],
)

COUNT = Machine(
    "count",
    data=Letter,
    result=lambda letter: letter.text,
    states=[State("counting", enter=question("How many to {to}, or why none?", int | str)), Final("counted")],
    moves=[On("counting", Answered, to="counted", do=lambda letter, given: replace(letter, text=repr(given.value)))],
)

TWICE = Machine(
    "twice",
    data=Letter,
    states=[State("first", enter=question("First?")), State("second", enter=question("Second?")), Final("over")],
    moves=[On("first", Answered, to="second"), On("second", Answered, to="over")],
)

MARK = "<img src=x onerror=document.title='broken'>"
EVIL = Machine(
    f"{MARK}evil",
    data=Letter,
    states=[
        State(f"{MARK}writing", enter=ask(clerk, "Write to {to}")),
        State('"><script>asking</script>', enter=question("Is this safe? {text}\n+" + MARK)),
        Final("</text></svg>over"),
    ],
    moves=[
        On(
            f"{MARK}writing",
            Replied,
            to='"><script>asking</script>',
            do=lambda sent, said: replace(sent, text=said.text),
        ),
        On('"><script>asking</script>', Answered, to="</text></svg>over"),
    ],
)
