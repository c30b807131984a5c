"""The runtime has one heart: one way to advance a run, one value for what was decided, one place for what is open."""

import ast
from dataclasses import fields
from pathlib import Path
from typing import get_args, get_type_hints

import moothall.runtime
from moothall.kernel.step import Ask
from moothall.runtime import budget, decide
from moothall.runtime.decide import Decision
from moothall.runtime.drive import Drive
from moothall.runtime.hall import Hall, OpenRun

ROOM = Path(moothall.runtime.__path__[0])


def functions_of(file: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [
        node
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def test_a_run_is_advanced_in_one_place() -> None:
    found = [
        f"{file.name}: {node.name}"
        for file in ROOM.glob("*.py")
        for node in functions_of(file)
        if "advance" in node.name
    ]
    assert found == ["hall.py: advance"]


def test_what_was_decided_and_what_has_to_be_asked_first_are_values() -> None:
    for function in (decide.decide, decide.first):
        assert set(get_args(get_type_hints(function)["return"])) == {Decision, Ask}
    assert not issubclass(Ask, BaseException)


def test_a_hall_has_one_place_for_what_it_knows_of_runs() -> None:
    kept = {field.name for field in fields(Hall) if str(field.type).startswith(("dict", "set", "list"))}
    assert kept == {"observers", "runs"}
    assert set(OpenRun.__slots__) >= {"run", "head", "lease", "bindings"}


def test_budgets_have_a_room_of_their_own_and_a_drive_its_methods() -> None:
    rooms = {module: set(vars(module)) for module in (budget, decide)}
    assert {"reservation", "charge", "denial", "share_of"} <= rooms[budget]
    own = {node.name for node in functions_of(ROOM / "decide.py")}
    assert not own & {node.name for node in functions_of(ROOM / "budget.py")}
    outside = [
        node.name
        for node in ast.parse((ROOM / "drive.py").read_text()).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and [argument.arg for argument in node.args.args][:3] == ["hall", "run", "doing"]
    ]
    assert outside == []
    assert {"perform", "perform_all", "look_after", "stop_late"} <= set(vars(Drive))
