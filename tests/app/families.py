"""A file of machines that start each other by name."""

FAMILY = """
from dataclasses import dataclass, replace
from moothall import (Answered, ChildDone, Final, GaveUp, Machine, On, Replied, State, ask, child, question)

@dataclass(frozen=True)
class Letter:
    to: str
    text: str = ""

async def clerk(prompt: str) -> str:
    return prompt.upper()

def keep(letter, reply):
    return replace(letter, text=reply.text)

def keep_child(letter, done):
    return replace(letter, text=done.data)

def signed(letter, answered):
    return replace(letter, text=f"signed {answered.value}")

WRITING = Machine("writing", data=Letter, result=lambda letter: letter.text,
    states=[State("writing", enter=ask(clerk, "Dear {to}")), Final("written")],
    moves=[On("writing", Replied, to="written", do=keep)])

SIGNING = Machine("signing", data=Letter, result=lambda letter: letter.text,
    states=[State("asking", enter=question("Who signs for {to}?", str)), Final("signed")],
    moves=[On("asking", Answered, to="signed", do=signed)])

OFFICE = Machine("office", data=Letter, result=lambda letter: letter.text,
    states=[State("delegating", enter=child("writing", "to")), Final("posted")],
    moves=[On("delegating", ChildDone, to="posted", do=keep_child)])

DESK = Machine("desk", data=Letter, result=lambda letter: letter.text,
    states=[State("delegating", enter=child("signing", "to")), Final("posted")],
    moves=[On("delegating", ChildDone, to="posted", do=keep_child)])

HOUSE = Machine("house", data=Letter, result=lambda letter: letter.text,
    states=[State("delegating", enter=child("desk", "to")), Final("posted")],
    moves=[On("delegating", ChildDone, to="posted", do=keep_child)])

TWO = Machine("two", data=Letter, result=lambda letter: letter.text,
    states=[State("delegating", enter=[child("signing", "to", id="left"), child("signing", "to", id="right")]),
            Final("posted")],
    moves=[On("delegating", "done.invoke.right", to="posted", do=keep_child), On("delegating", ChildDone)])
"""
