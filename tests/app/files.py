"""Files with machines in them, as users write them."""

from pathlib import Path

MACHINE = """
from dataclasses import dataclass, replace
from moothall import Final, Machine, On, Replied, State, ask, run

@dataclass(frozen=True)
class Letter:
    to: str
    text: str = ""

async def clerk(prompt: str) -> str:
    return prompt.upper()

LETTER = Machine(
    "letter", data=Letter, result=lambda letter: letter.text,
    states=[State("writing", enter=ask(clerk, "Write to {to}")), Final("written")],
    moves=[On("writing", Replied, to="written", do=lambda letter, reply: replace(letter, text=reply.text))],
)
"""


def written(folder: Path, text: str = MACHINE, name: str = "letters.py") -> Path:
    """A file with this text."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file
