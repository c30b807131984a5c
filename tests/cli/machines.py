"""The file of machines that the commands are tried on."""

MACHINES = """
from dataclasses import dataclass, replace
from typing import Literal
from moothall import (Answered, Final, Machine, On, Replied, Returned, State, ask, call, otherwise, question, yes)

@dataclass(frozen=True)
class Letter:
    to: str
    text: str = ""

@dataclass(frozen=True)
class Choice:
    colour: Literal["red", "green"]

async def clerk(prompt: str) -> str:
    return prompt.upper()

async def thief(prompt: str) -> str:
    raise OSError("the ink is dry")

def keep(letter, reply):
    return replace(letter, text=reply.text)

def result(letter):
    return letter.text

LETTER = Machine("letter", data=Letter, result=result,
    states=[State("writing", enter=ask(clerk, "Dear {to}")), Final("written")],
    moves=[On("writing", Replied, to="written", do=keep)])

NAMED = Machine("named", data=Letter, result=result,
    states=[State("writing", enter=ask("poet", "Dear {to}")), Final("written")],
    moves=[On("writing", Replied, to="written", do=keep)])

STOLEN = Machine("stolen", data=Letter,
    states=[State("writing", enter=ask(thief, "Dear {to}")), Final("written")],
    moves=[On("writing", Replied, to="written", do=keep)])

ENDLESS = Machine("endless", data=Letter, result=result,
    states=[State("writing", enter=ask(clerk, "Dear {to}")), State("mending", enter=ask(clerk, "Mend"))],
    moves=[On("writing", Replied, to="mending", do=keep), On("mending", Replied, to="writing")])

SENT = Machine("sent", data=Letter, result=result,
    states=[State("writing", enter=ask(clerk, "Dear {to}")), State("approving", enter=question("Send {text}?")),
            Final("posted"), Final("kept")],
    moves=[On("writing", Replied, to="approving", do=keep), On("approving", Answered, to="posted", when=yes),
           On("approving", otherwise, to="kept")])

PAINTED = Machine("painted", data=Letter,
    states=[State("choosing", enter=question("Which colour for {to}?", Choice)), Final("painted")],
    moves=[On("choosing", Answered, to="painted", do=lambda letter, event: replace(letter, text=event.value.colour))])

TOLD = Machine("told", data=Letter,
    states=[State("asking", enter=question("What is your name?", str)), Final("told")],
    moves=[On("asking", Answered, to="told", do=lambda letter, event: replace(letter, text=event.value))])

MISPRINTED = Machine("misprinted", data=Letter, result=lambda letter: letter.txt,
    states=[Final("over")], moves=[])
"""
