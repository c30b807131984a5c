"""Names that were given up stay given up: a plain word stands in place of each, and a loop says over what it goes."""

import re
from pathlib import Path

import pytest

import moothall

SOURCES = Path(moothall.__file__).parent
GIVEN_UP = {
    "": {"Cast", "Troupe", "Happening", "Unkept", "Misbehaved", "Faltered", "Setting", "Set", "Files", "Deed"},
    "runtime": {"Part", "Scene", "Finding", "Work"},
    "machines/workflow": {"Duty", "Way", "Piece", "Post", "Ready", "Spoken", "Work"},
}
"""Below each folder, the classes that must not be there again."""
IN_THEIR_PLACE = {
    "runtime": {"Bindings", "ChildSpec", "Incoming", "ScriptContext", "NotStorable", "Resolution", "OpenRun"},
    "kernel": {"ExecutionFailed", "AttemptFailed"},
    "app": {"Provided", "RunContext", "Sourced", "ReadSettings"},
    "machines/workflow": {
        *("StatePlan", "TransitionPlan", "ScriptText", "Progress"),
        *("Prepared", "LastReply", "WorkflowAction"),
    },
}
CLASS = re.compile(r"^\s*class (\w+)", re.MULTILINE)
EMPTY = re.compile(r"\bfor (?:one|each|found) in\b")
"""A loop, or a part of a comprehension, that does not say over what it goes."""


def classes_below(folder: str) -> set[str]:
    return {name for file in (SOURCES / folder).rglob("*.py") for name in CLASS.findall(file.read_text())}


@pytest.mark.parametrize("folder", GIVEN_UP, ids=lambda folder: folder or "everywhere")
def test_no_class_has_a_name_that_was_given_up(folder: str) -> None:
    assert not classes_below(folder) & GIVEN_UP[folder]


@pytest.mark.parametrize("folder", IN_THEIR_PLACE)
def test_the_plain_words_are_there(folder: str) -> None:
    assert classes_below(folder) >= IN_THEIR_PLACE[folder]


def test_a_loop_says_over_what_it_goes() -> None:
    files = {str(file.relative_to(SOURCES)): EMPTY.findall(file.read_text()) for file in SOURCES.rglob("*.py")}
    assert {file: loops for file, loops in files.items() if loops} == {}


def test_what_says_nothing_is_noticed() -> None:
    assert EMPTY.findall("for one in x: y = [each.z for each in one]; [found for run in x]") == [
        "for one in",
        "for each in",
    ]
    assert CLASS.findall("class Cast:\n    class Part(Frozen):") == ["Cast", "Part"]
