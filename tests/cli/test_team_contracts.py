"""What a team asks a model for has one shape: whoever obeys the words is understood, and whoever obeys the schema."""

import json
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest

from moothall.app.kinds.team.plan import draft_schema
from moothall.app.kinds.workflow.files import template
from tests.cli.ran import Moot, Ran
from tests.models.loopback import Asked, Loopback, Said, loopback_aside
from tests.models.obedient import Obedient, obey_schema, obey_words, sentence, words_of
from tests.team_scripts import typed

LINES = ("One", "Two", "Three", "Four", "Five")
WITHOUT_A_MODEL = "summed up without a model"


def is_summary(asked: Asked) -> bool:
    return "Sum up this stretch" in words_of(asked)


def recalled(served: Loopback) -> str:
    """What the persona that spoke last was shown of what was summed up."""
    words = [words_of(asked) for asked in served.asked if not is_summary(asked)]
    return words[-1].partition("<recalled>")[2].partition("</recalled>")[0]


def talk(moot: Moot, folder: Path, model: Obedient, *lines: str) -> tuple[Ran, Loopback]:
    """A conversation with a team that this model plays."""
    with loopback_aside(model) as served:
        address = f"openai:tides@{served.address}"
        ran = moot("team", "--model", address, "--script", typed(folder, *lines))
    return ran, served


@pytest.mark.covers("T15", "T73")
@pytest.mark.parametrize("model", [obey_words, obey_schema])
def test_an_obedient_model_sums_up_what_was_said(moot: Moot, tmp_path: Path, model: Obedient) -> None:
    ran, served = talk(moot, tmp_path, model, *LINES, "!metrics", "!exit")
    assert ran.code == 0
    assert any(map(is_summary, served.asked))
    assert "summaries: 0" not in ran.out
    assert WITHOUT_A_MODEL not in ran.out
    assert sentence("discussions") in recalled(served)


@pytest.mark.parametrize("model", [obey_words, obey_schema])
def test_the_plan_of_an_obedient_model_is_accepted(moot: Moot, tmp_path: Path, model: Obedient) -> None:
    ran, _ = talk(moot, tmp_path, model, "!plan Tide tables", "!exit")
    assert "there is no plan" not in ran.out
    [draft] = (tmp_path / "workspace").glob("tide_tables-*.json")
    assert json.loads(draft.read_text())["workflow_name"] == "tide_tables"


@pytest.mark.parametrize(
    "summary",
    [
        '{"decisions": [], "discussions": [], "pending": []}',
        '{"decisions": [" "]}',
        '{"value": "All is well."}',
        "Well.",
    ],
)
def test_an_empty_summary_is_told_and_done_without_a_model(moot: Moot, tmp_path: Path, summary: str) -> None:
    def model(asked: Asked) -> Said:
        return Said(summary) if is_summary(asked) else obey_words(asked)

    ran, served = talk(moot, tmp_path, model, *LINES, "!metrics", "!exit")
    assert WITHOUT_A_MODEL in ran.out
    assert "summaries: 0" not in ran.out
    assert "One" in recalled(served)


def test_a_summary_in_a_block_of_code_is_read(moot: Moot, tmp_path: Path) -> None:
    def model(asked: Asked) -> Said:
        said = obey_words(asked)
        return Said(f"Here it is:\n```json\n{said.text}\n```") if is_summary(asked) else said

    ran, served = talk(moot, tmp_path, model, *LINES, "!exit")
    assert WITHOUT_A_MODEL not in ran.out
    assert sentence("discussions") in recalled(served)


def test_the_example_of_a_workflow_that_a_prompt_shows_fits_the_schema_of_the_request() -> None:
    jsonschema.validate(json.loads(template("my_workflow")), draft_schema())


@pytest.mark.parametrize("model", [obey_words, obey_schema])
@pytest.mark.parametrize("machine", ["arena", "pipeline"])
def test_an_obedient_model_is_understood_by_the_other_machines_too(
    moot: Moot, tmp_path: Path, machine: str, model: Obedient
) -> None:
    (tmp_path / "work").mkdir()
    options = ("--workspace", str(tmp_path / "work")) if machine == "arena" else ()
    with loopback_aside(model) as served:
        ran = moot(machine, "Tide tables", "--model", f"openai:tides@{served.address}", *options)
    assert "wrong shape" not in ran.err
    assert ran.code == 0, ran.err
