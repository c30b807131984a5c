"""`moot check` and `moot graph`."""

import json
from pathlib import Path

import pytest

from tests.cli.ran import Moot


def test_a_bounded_machine_passes_and_its_bound_is_told(moot: Moot) -> None:
    ran = moot("check", "machines.py:LETTER")
    assert ran.code == 0
    assert ran.out.splitlines()[-1].startswith("bounded: at most 1 transition, ")
    assert "1 call (3 with every retry)" in ran.out


def test_a_machine_with_an_endless_loop_exits_with_4_and_names_the_loop(moot: Moot) -> None:
    ran = moot("check", "machines.py:ENDLESS")
    assert ran.code == 4
    assert "writing → mending → writing" in ran.out
    assert ran.out.splitlines()[-1].startswith("no bound: writing → mending → writing")


UNSTORABLE = """
from dataclasses import dataclass
from pathlib import Path
from moothall import Final, Machine, On, Replied, State, ask

@dataclass(frozen=True)
class Verdict:
    given: bytes

async def writer(prompt: str) -> str:
    Path("called").touch()
    return prompt

JUDGED = Machine("judged",
    states=[State("writing", enter=ask(writer, "Write")), State("judging", enter=ask("judge", "Judge", reply=Verdict)),
            Final("judged")],
    moves=[On("writing", Replied, to="judging"), On("judging", Replied, to="judged")])
"""


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_shape_that_cannot_be_stored_is_found_before_anybody_is_asked(moot: Moot, command: str) -> None:
    Path("judged.py").write_text(UNSTORABLE)
    ran = moot(command, "judged.py")
    assert (ran.code, ran.out) == (4, "")
    assert ran.err.startswith(f"moot {command}: machine judged: Verdict.given: bytes cannot be stored; use dataclasses")
    assert not Path("called").exists()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("text: str = None", "data.text: its default None is not of type str; write str | None"),
        ("notes: dict[int, str]", "data.notes: JSON objects have texts as keys, not int"),
        ("when: datetime | str", "data.when: datetime or str cannot be told apart in JSON; choose one of them"),
    ],
)
def test_data_that_cannot_work_are_refused_by_the_check(moot: Moot, data: str, reason: str) -> None:
    Path("mine.py").write_text(
        "from dataclasses import dataclass\nfrom datetime import datetime\nfrom moothall import Final, Machine\n"
        f"@dataclass(frozen=True)\nclass Mine:\n    {data}\n"
        "MINE = Machine('mine', data=Mine, states=[Final('over')], moves=[])\n"
    )
    ran = moot("check", "mine.py")
    assert (ran.code, f"machine mine: {reason}" in ran.err) == (4, True), ran.err


def test_check_as_json_has_findings_and_certificate(moot: Moot) -> None:
    good = moot("check", "machines.py:LETTER", "--json").json
    assert set(good) == {"machine", "findings", "certificate"}
    assert (good["machine"], good["certificate"]["transitions"]) == ("letter", 1)
    assert good["certificate"]["resources"]["calls"] == 3
    bad = moot("check", "machines.py:ENDLESS", "--json")
    assert bad.code == 4
    error = next(finding for finding in bad.json["findings"] if finding["level"] == "error")
    assert set(error) == {"level", "code", "place", "why", "remedy"}


@pytest.mark.parametrize(
    ("format_", "begins"), [("mermaid", "stateDiagram-v2"), ("dot", "digraph"), ("tree", "letter"), ("json", "{")]
)
def test_graph_draws_in_every_format(moot: Moot, format_: str, begins: str) -> None:
    ran = moot("graph", "machines.py:LETTER", "--format", format_)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(begins)
    assert "writing" in ran.out
    assert "written" in ran.out


def test_graph_draws_mermaid_unless_told_otherwise(moot: Moot) -> None:
    assert moot("graph", "machines.py:LETTER").out == moot("graph", "machines.py:LETTER", "--format", "mermaid").out


def test_graph_as_json_is_json(moot: Moot) -> None:
    assert json.loads(moot("graph", "machines.py:SENT", "--format", "json").out)


def test_drawing_and_checking_perform_nothing(moot: Moot) -> None:
    moot("graph", "machines.py:STOLEN")
    moot("check", "machines.py:STOLEN")
    assert moot("ls").out == "no runs yet\n"


PASSING = """<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0" initial="a">
<state id="a"><transition target="pass"/></state><final id="pass"/><final id="fail"/></scxml>"""
COLUMNS = "id\ttier\tcategory\tconformance\tsection_or_trace\tdocument\texpected\n"


def suite(folder: Path) -> None:
    """Two tests in a folder: one passes, one does not."""
    folder.mkdir()
    (folder / "good.scxml").write_text(PASSING)
    (folder / "bad.scxml").write_text(PASSING.replace('target="pass"', 'target="fail"'))
    rows = "one\tA\tx\tm\t1\tgood.scxml\t\ntwo\tB\tx\tm\t1\tbad.scxml\t\n"
    (folder / "index.tsv").write_text(COLUMNS + rows)


def test_conformance_counts_what_passes_and_says_what_does_not(moot: Moot, tmp_path: Path) -> None:
    suite(tmp_path / "suite")
    ran = moot("conformance", "suite")
    assert ran.code == 1
    assert ran.out == "failed two: it ended done in fail, not in pass\n1 passed, 1 failed\n"
    assert moot("conformance", "suite", "--json").json == {"passed": 1, "failed": 1, "failures": ["two"]}
    assert moot("conformance", "suite", "--tier", "A").code == 0


def test_a_folder_without_an_index_exits_with_4(moot: Moot) -> None:
    ran = moot("conformance", "nowhere")
    assert (ran.code, ran.out) == (4, "")
    assert "nowhere/index.tsv cannot be read: No such file or directory" in ran.err


def test_what_a_file_of_others_says_cannot_steer_a_terminal_even_through_a_pipe(moot: Moot, tmp_path: Path) -> None:
    steering = "\x1b[2J\x9b31m\x07"
    roles, workflow = tmp_path / "roles.json", tmp_path / "odd.json"
    roles.write_text(
        json.dumps({f"bot{steering}": {"level": steering, steering: 1}, f"poet{steering}": {"systemMessage": steering}})
    )
    workflow.write_text(json.dumps({"workflow_name": f"odd{steering}", "states": [{"name": steering}]}))
    for arguments in (("check", str(roles)), ("check", str(workflow)), ("roles", "--roles", str(roles))):
        said = moot(*arguments)
        assert not set("\x1b\x9b\x07") & set(said.out + said.err), arguments
        assert "[2J" in said.out + said.err, arguments
