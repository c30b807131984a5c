"""A kind of machine is named in its own rooms and in the tables; no other code asks which one it has."""

import ast
import re
from pathlib import Path

from moothall.app.kinds.kind import KINDS, PLAIN
from moothall.cli.main import COMMANDS

SOURCE = Path(__file__).parents[2] / "src" / "moothall"
TABLES = ("app/kinds/kind.py", "cli/main.py")
WORDS = {
    "turn": ("agents/ask.py",),
    "workflow": ("machines/team/floor.py", "app/kinds/team/session.py"),
}
"""Where a word of an author's table, a reply or a command starts a machine: `ask(…, tools=…)`, `!workflow NAME`."""
NAMES = sorted(KINDS.keys() - {PLAIN})


def rooms_of(name: str) -> tuple[str, ...]:
    return (f"machines/{name}", f"app/kinds/{name}", f"cli/{name}", f"{name}.py", *WORDS.get(name, ()))


def compared_names(path: Path) -> set[str]:
    """The kinds that a module names in a text of its code; prose in docstrings and messages is no decision."""
    texts = {
        node.value
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return {
        name
        for name in NAMES
        if any(re.fullmatch(rf"{name}(-.*|:.*)?|moothall\.\w+\.{name}\b.*", text) for text in texts)
    }


def test_no_other_code_names_a_kind() -> None:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).as_posix()
        for name in compared_names(path):
            if place not in TABLES and not place.startswith(rooms_of(name)):
                found.append(f"{place} names {name}")
    assert found == []


def test_every_kind_is_there() -> None:
    for name, listing in KINDS.items():
        assert (SOURCE / Path(*listing.module.split(".")[1:])).exists() or (
            SOURCE / Path(*listing.module.split(".")[1:]).with_suffix(".py")
        ).exists(), name


def test_commands_of_kinds_have_rooms_of_their_own() -> None:
    for name in NAMES:
        if name in COMMANDS:
            assert COMMANDS[name].room == name
