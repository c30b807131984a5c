"""A kind of machine is added with one module and a line in the tables, and any kind is started by any other by name."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from moothall import ChildDone, Final, GaveUp, Machine, On, State, child, run
from moothall.analysis.certify import Certificate
from moothall.app.kinds import kind as kinds
from moothall.app.kinds.check import Check, certificate
from moothall.app.kinds.kind import KINDS, Listing
from moothall.app.kinds.source import find
from moothall.cli import main as door
from moothall.cli.main import COMMANDS, Command
from tests.app.files import written

TOY = '''
"""Toys: a machine that says one word twice."""

from dataclasses import dataclass, replace

from moothall import Final, Machine, On, Replied, State, ask
from moothall.app.kinds.python import PythonKind


@dataclass(frozen=True)
class Toy:
    word: str
    said: str = ""


async def squeak(prompt: str) -> str:
    return f"{prompt} {prompt}"


MACHINE = Machine(
    "toy",
    kind="toy",
    data=Toy,
    result=lambda toy: toy.said,
    states=[State("squeaking", enter=ask(squeak, "{word}")), Final("silent")],
    moves=[On("squeaking", Replied, to="silent", do=lambda toy, reply: replace(toy, said=reply.text))],
)


class ToyKind(PythonKind):
    name = "toy"

    def find(self, source):
        return self.named(source)

    def named(self, name):
        return MACHINE if name == "toy" else None

    def beside(self, machine, name, kept=None):
        return None


KIND = ToyKind()
'''
DOOR = '''
"""`moot toy`: a door of its own over the toy."""

from moothall.app.kinds.source import find
from moothall.cli.run import add_beginning, start


def toy(parser):
    parser.add_argument("word")
    add_beginning(parser)
    return lambda chosen: start(chosen, find("toy"), chosen.word, chosen.budget)
'''


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A kind in a package of its own, with its line in the table of kinds and in that of commands."""
    written(tmp_path, TOY, "toybox/kind.py")
    written(tmp_path, DOOR, "toybox/door.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(KINDS, "toy", Listing("toybox.kind"))
    monkeypatch.setitem(COMMANDS, "toy", Command("squeak", "toy"))
    yield tmp_path
    kinds.kind_named.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "toybox"]:
        del sys.modules[name]


@dataclass(frozen=True)
class Order:
    word: str = ""
    task_to_do: str = ""
    brief: str = ""
    got: Any = None


def ordering(name: str, field: str) -> Machine:
    """A machine in Python that starts another by its name and keeps what comes of it."""
    return Machine(
        f"orders {name}",
        data=Order,
        result=lambda order: order.got,
        states=[State("waiting", enter=child(name, field)), Final("served"), Final("sent back")],
        moves=[
            On("waiting", ChildDone, to="served", do=lambda order, done: replace(order, got=done.data)),
            On("waiting", GaveUp, to="sent back", do=lambda order, gone: replace(order, got=gone.reason)),
        ],
    )


def calling(folder: Path, name: str, **given: str) -> Path:
    """A workflow file that starts another machine by its name."""
    action = {"sub_workflow": name, "sub_workflow_input": given}
    keep = "() => { this.common_data.got = this.sub_workflow_result; }"
    states = [
        {"name": "start", "action": action, "transition": [{"target": "stop", "condition": "true", "before": keep}]},
        {"name": "stop", "input": "common_data.got"},
    ]
    workflow = {
        "workflow_name": "caller",
        "description": "starts another",
        "input": {"name": "task", "type": "string", "description": "what to do"},
        "output": {"name": "got", "type": "object", "description": "what came of it"},
        "contexts": [],
        "agents": [],
        "states": states,
    }
    file = folder / "caller.json"
    file.write_text(json.dumps(workflow))
    return file


# a kind of one's own


def test_a_kind_that_stands_in_the_table_is_run_by_its_name(toy: Path) -> None:
    outcome = run(find("toy"), "wheel")
    assert (outcome.status, outcome.result) == ("done", "wheel wheel")


def test_a_kind_that_stands_in_the_table_is_run_by_its_own_command(
    toy: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import toybox.door  # type: ignore[import-not-found]  # it is written by the test

    monkeypatch.setitem(sys.modules, "moothall.cli.toy", toybox.door)
    assert door.main(["toy", "wheel"]) == 0
    assert capsys.readouterr().out == "wheel wheel\n"
    assert door.main(["run", "toy", "drum"]) == 0
    assert capsys.readouterr().out == "drum drum\n"


def test_a_machine_in_python_starts_a_kind_that_stands_in_the_table(toy: Path) -> None:
    machine = ordering("toy", "word")
    outcome = run(machine, Order(word="wheel"))
    assert (outcome.status, outcome.result, outcome.spent["calls"]) == ("done", "wheel wheel", 1)
    assert calls_of(machine) == calls_of(find("toy"))


def test_a_workflow_file_starts_a_kind_that_stands_in_the_table(toy: Path) -> None:
    file = calling(toy, "toy", word="common_data.task")
    assert run(find(str(file)), "wheel").result == "wheel wheel"


# those that come with the package


def calls_of(machine: Machine) -> int:
    """The most calls that a certificate allows a run of this machine."""
    bound = certificate(machine)
    assert isinstance(bound, Certificate)
    return int(bound.resources["calls"])


def test_a_machine_in_python_starts_a_workflow_by_its_name() -> None:
    machine = ordering("coder_reviewer", "task_to_do")
    outcome = run(machine, Order(task_to_do="make tea"), model="rehearsal")
    assert outcome.status == "done"
    assert isinstance(outcome.result, str), outcome.result
    assert calls_of(machine) == calls_of(find("coder_reviewer")) > 1


@pytest.mark.parametrize("name", ["pipeline", "pipeline-2"])
def test_a_workflow_file_starts_a_pipeline_by_its_name(name: str, tmp_path: Path) -> None:
    file = calling(tmp_path, name, brief="common_data.task")
    [examined] = Check().examine(str(file))
    assert not examined.is_wrong, examined
    assert calls_of(find(str(file))) == calls_of(find(name)) > 1
    outcome = run(find(str(file)), "a haiku", model="rehearsal")
    assert outcome.status == "done"
    assert "implementation" in outcome.result


def test_a_name_that_no_kind_has_is_still_told(tmp_path: Path) -> None:
    [examined] = Check().examine(str(calling(tmp_path, "pipeline-x", brief="common_data.task")))
    assert [told.code for told in examined.told if told.level == "error"] == ["E_UNKNOWN_WORKFLOW"]
