"""Machines are found by file or module, and whatever is wrong there is said with file and line."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moothall.app.kinds.python import is_loading
from moothall.app.kinds.source import find, source_of
from moothall.app.kinds.workflow.spot import is_workflow
from moothall.errors import DefinitionError
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, On, State
from tests.app.files import MACHINE, written

HERE = Machine("here", states=[State("waiting"), Final("over")], moves=[On("waiting", "go", to="over")])


@pytest.fixture(autouse=True)
def _forget_modules(tmp_path: Path) -> Iterator[None]:
    """Each test finds its files anew."""
    modules, path = set(sys.modules), list(sys.path)
    yield
    for name in set(sys.modules) - modules:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
    sys.path[:] = path


def complaint(source: str) -> str:
    with pytest.raises(DefinitionError) as error:
        find(source)
    return str(error.value)


def test_a_machine_is_found_in_a_file_by_its_name(tmp_path: Path) -> None:
    assert find(f"{written(tmp_path)}:LETTER").name == "letter"


def test_the_only_machine_of_a_file_needs_no_name(tmp_path: Path) -> None:
    assert find(str(written(tmp_path))).name == "letter"


def test_the_same_source_gives_the_same_machine(tmp_path: Path) -> None:
    file = written(tmp_path)
    assert find(f"{file}:LETTER") is find(str(file))


def test_files_whose_names_differ_by_a_dash_are_two_files(tmp_path: Path) -> None:
    dashed = written(tmp_path, MACHINE.replace('"letter"', '"dashed"'), "a-b.py")
    lined = written(tmp_path, MACHINE.replace('"letter"', '"lined"'), "a_b.py")
    assert (find(str(dashed)).name, find(str(lined)).name) == ("dashed", "lined")


def test_a_file_may_import_its_neighbours(tmp_path: Path) -> None:
    written(tmp_path, 'GREETING = "hello"', "greetings_of_the_neighbour.py")
    file = written(tmp_path, "from greetings_of_the_neighbour import GREETING\n" + MACHINE)
    path = list(sys.path)
    assert find(str(file)).name == "letter"
    assert sys.path == path


def test_a_machine_is_found_in_a_module_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, MACHINE, "post_office/counters.py")
    written(tmp_path, "", "post_office/__init__.py")
    monkeypatch.chdir(tmp_path)
    assert find("post_office.counters:LETTER").name == "letter"


@pytest.mark.parametrize("source", ["", ":", ":LETTER"])
def test_a_source_that_names_nothing_says_how_to_write_one(source: str) -> None:
    assert complaint(source).endswith("names no machine; write FILE.py:NAME or package.module:NAME")


@pytest.mark.parametrize("source", ["..:X", ".relative:X", "a b:X", "some/folder:X", "a..b:X", "-:X"])
def test_what_can_be_no_module_says_how_to_write_one(source: str) -> None:
    assert complaint(source).endswith("names no module; write FILE.py:NAME or package.module:NAME")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert complaint(f"{tmp_path / 'none.py'}:X") == f"there is no file {tmp_path / 'none.py'}"


def test_a_missing_module_is_named_with_the_way_to_write_a_file() -> None:
    missing = "there is no workflow or module 'nowhere_at_all'; a file is written FILE.py:NAME"
    assert complaint("nowhere_at_all:X") == f"{missing}, and `moot workflows` lists workflows"


def test_an_unknown_name_says_which_machines_there_are(tmp_path: Path) -> None:
    file = written(tmp_path)
    assert complaint(f"{file}:POSTCARD") == f"{file} has no machine 'POSTCARD'; its machines are LETTER"
    assert complaint(f"{file}:Letter") == f"{file} has no machine 'Letter'; its machines are LETTER"


def test_a_file_without_a_machine_says_so(tmp_path: Path) -> None:
    file = written(tmp_path, "x = 1")
    assert complaint(str(file)) == f"{file}: it has no machine; name one as {file}:NAME"


def test_several_machines_need_a_name(tmp_path: Path) -> None:
    file = written(tmp_path, MACHINE + MACHINE.replace("LETTER", "CARD"))
    assert complaint(str(file)) == f"{file}: its machines are LETTER, CARD; name one as {file}:NAME"


def test_a_syntax_error_names_file_and_line(tmp_path: Path) -> None:
    file = written(tmp_path, "x = 1\n\ndef broken(:\n")
    assert complaint(str(file)) == f"{file}:3: SyntaxError: invalid syntax"


def test_an_error_while_loading_names_file_and_line(tmp_path: Path) -> None:
    file = written(tmp_path, "import json\n\nRATES = json.loads('{')\n")
    assert complaint(str(file)).startswith(f"{file}:3: JSONDecodeError: ")


def test_a_machine_that_cannot_mean_what_it_says_names_file_and_line(tmp_path: Path) -> None:
    file = written(tmp_path, MACHINE.replace('to="written"', 'to="writen"'))
    found = complaint(str(file))
    assert found.startswith(f"{file}:13: machine letter: ")
    assert "names the unknown state 'writen' (did you mean 'writing'?)" in found or "did you mean 'written'?" in found


def test_a_missing_import_is_named_with_file_and_line(tmp_path: Path) -> None:
    file = written(tmp_path, "import a_library_that_is_not_there\n")
    assert complaint(str(file)) == f"{file}:1: ModuleNotFoundError: No module named 'a_library_that_is_not_there'"


@pytest.mark.parametrize("ending", ["import sys; sys.exit()", "raise SystemExit(3)", "exit()"])
def test_a_file_that_ends_the_program_while_it_is_loaded_is_refused_with_the_remedy(
    tmp_path: Path, ending: str
) -> None:
    file = written(tmp_path, f"{MACHINE}\n{ending}\n")
    assert complaint(str(file)).endswith(
        'it ends the program while it is loaded; put that under `if __name__ == "__main__":`'
    )


def test_a_file_that_starts_a_run_while_it_is_loaded_is_refused_with_the_remedy(tmp_path: Path) -> None:
    file = written(tmp_path, f'{MACHINE}\nrun(LETTER, Letter("Ada"), store="memory")\n')
    line = MACHINE.count("\n") + 2
    assert complaint(str(file)) == (
        f'{file}:{line}: {file} starts a run while it is loaded; put that under `if __name__ == "__main__":`'
    )
    assert is_loading() == ""


def test_a_file_that_failed_can_be_corrected_and_found(tmp_path: Path) -> None:
    file = written(tmp_path, "1 / 0")
    assert "ZeroDivisionError" in complaint(str(file))
    written(tmp_path)
    assert find(str(file)).name == "letter"


@pytest.mark.parametrize(
    ("text", "why"), [("x = (", "SyntaxError: "), ("\n1 / 0", "ZeroDivisionError: "), ("raise SystemExit", "it ends ")]
)
def test_a_module_that_fails_names_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, why: str
) -> None:
    file = written(tmp_path, text, "broken_window.py")
    monkeypatch.chdir(tmp_path)
    line = text.count("\n") + 1
    assert complaint("broken_window:X").startswith(f"{file}:{line}: {why}")


def test_the_source_of_a_machine_leads_back_to_it(tmp_path: Path) -> None:
    machine = find(f"{written(tmp_path)}:LETTER")
    assert source_of(machine) == f"{tmp_path / 'letters.py'}:LETTER"
    assert find(source_of(machine)) is machine


def test_the_source_of_a_machine_in_a_package_is_its_module() -> None:
    assert source_of(HERE) == f"{__name__}:HERE"
    assert find(source_of(HERE)) is HERE


def test_a_folder_of_workflows_with_the_name_of_a_module_does_not_stand_in_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / __name__).mkdir()
    (tmp_path / __name__ / "one.json").write_text('{"workflow_name": "HERE", "states": []}')
    monkeypatch.chdir(tmp_path)
    assert is_workflow(source_of(HERE))
    assert find(source_of(HERE)) is HERE
    assert HERE.kind == "python"


def test_the_source_is_the_same_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    machine = find("letters.py:LETTER")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert find(source_of(machine)) is machine


def test_a_machine_that_was_made_on_the_fly_has_no_source() -> None:
    assert source_of(Machine("fly", states=[Final("over")], moves=[])) == ""
