"""`moot pipeline`, killed with SIGKILL at every visit of every working state, and resumed: the same journal and end.

The pipeline goes round all its loops: a plan that does not pass, a soft failure, a hard one, a success. The model
notes the key of every call in a file that survives; no call whose reply was committed is made again.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.process import moot, started
from tests.kills.survivors import Told, committed, entries, hang, kill_when, noted, told

pytestmark = pytest.mark.slow

RUN, DONE = "boat", 0
PLANS = [["cut"], ["cut", "glue"], ["cut", "glue", "paint"]]
SCORES = [6, 4, 9]
BUSY = "let n = 0; while (n < 2e6) n++; true"
"""A check that is at work for a moment."""
CALLS = [
    *("planner", "planner", "implementer", "judge", "implementer", "judge"),
    *("planner", "implementer", "judge"),
]
"""Who is asked, one after the other."""
MADE = "succeeded, score 9, 3 iterations\n\nboat 3\n"


class Pipeline:
    """A pipeline as real commands in a folder of its own."""

    def __init__(self, folder: Path, *, busy: int = 0) -> None:
        self.folder = folder
        self.log = folder / "calls.log"
        self.write_script()
        checks = [{"name": f"busy {number}", "expression": BUSY} for number in range(busy)]
        checks += [{"name": "steps", "expression": "plan.steps.length > 1"}]
        (folder / "checks.json").write_text(json.dumps(checks))
        self.begin = (
            *("pipeline", "a boat", "--run-id", RUN, "--max-iterations", "4", "--checks", "checks.json"),
            *("--model", f"scripted:{folder / 'script.json'},log={self.log}"),
        )

    def write_script(self, hanging: int | None = None) -> None:
        """What the agents say; the reply to this call, counted from 0, never comes."""
        script: dict[str, list[dict[str, Any]]] = {
            "planner": [{"value": {"summary": "a boat", "steps": steps}} for steps in PLANS],
            "implementer": [{"text": f"boat {number}"} for number in (1, 2, 3)],
            "judge": [{"value": {"score": score, "issues": []}} for score in SCORES],
        }
        if hanging is not None:
            hang(script, CALLS, hanging)
        (self.folder / "script.json").write_text(json.dumps(script))

    def calls(self) -> list[str]:
        """The keys of all calls made so far."""
        return noted(self.log)


class Whole(NamedTuple):
    """A pipeline that nobody touched: its journal and what it printed."""

    journal: list[Told]
    printed: str


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    pipeline = Pipeline(tmp_path_factory.mktemp("whole"))
    ran = moot(*pipeline.begin, home=pipeline.folder)
    assert ran.returncode == DONE, ran.stderr
    assert len(pipeline.calls()) == len(CALLS)
    return Whole(told(entries(pipeline.folder, RUN)), ran.stdout)


def check_end(pipeline: Pipeline, whole: Whole) -> None:
    """Resume, and see that the end is the same and nothing that was committed is asked again."""
    before, over = pipeline.calls(), committed(pipeline.folder, RUN)
    ran = moot("resume", RUN, home=pipeline.folder)
    assert (ran.returncode, ran.stdout) == (DONE, whole.printed)
    assert told(entries(pipeline.folder, RUN)) == whole.journal
    assert not over & set(pipeline.calls()[len(before) :])
    assert len(set(pipeline.calls())) == len(CALLS)


def test_a_pipeline_that_nobody_touched_goes_round_all_loops(whole: Whole) -> None:
    assert whole.printed == MADE
    assert [to for _, _, (to,), _, _ in whole.journal] == [
        *("planning", "validating", "planning", "validating", "implementing", "judging", "implementing", "judging"),
        *("planning", "validating", "implementing", "judging", "succeeded"),
    ]


@pytest.mark.parametrize("number", range(len(CALLS)), ids=[f"{at} {who}" for at, who in enumerate(CALLS)])
def test_a_pipeline_killed_in_the_middle_of_any_call_repeats_that_call_and_no_other(
    tmp_path: Path, whole: Whole, number: int
) -> None:
    pipeline = Pipeline(tmp_path)
    pipeline.write_script(hanging=number)
    kill_when(lambda: len(pipeline.calls()) > number, pipeline.begin, tmp_path)
    assert len(pipeline.calls()) == number + 1
    pipeline.write_script()
    check_end(pipeline, whole)
    assert len(pipeline.calls()) == len(CALLS) + 1


@pytest.mark.parametrize("visit", [1, 2, 3])
def test_a_pipeline_killed_while_it_validates_asks_nobody_again(tmp_path: Path, whole: Whole, visit: int) -> None:
    pipeline = Pipeline(tmp_path, busy=3)
    with started(*pipeline.begin, home=tmp_path) as process:
        assert process.stderr is not None
        for line in process.stderr:
            visit -= "planning → validating" in line
            if not visit:
                break
        process.kill()
    assert entries(tmp_path, RUN)[-1]["to"] == ["validating"]
    check_end(pipeline, whole)
    assert len(pipeline.calls()) == len(CALLS)
