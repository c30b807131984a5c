"""The two pages about the seed documents are true: what each requirement is shown by, and what does each name's work.

The documents themselves lie beside the project, and not everywhere; where they do, the pages are compared with them.
"""

import re
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
FENCE = re.compile(r"^[ \t]*```.*?^[ \t]*```", re.MULTILINE | re.DOTALL)

needs_documents = pytest.mark.skipif(not (SHARED / "seeds").is_dir(), reason="the documents are not beside the project")


def tool(name: str) -> Any:
    """A tool of this repository, as a module."""
    path = ROOT / "tools" / name
    loader = SourceFileLoader(name.replace("-", "_"), str(path))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def document(number: str) -> str:
    [path] = (SHARED / "seeds").glob(f"{number}_*")
    return path.read_text("utf-8")


# docs/seed-coverage.md


def test_the_page_of_requirements_is_what_the_marks_say() -> None:
    written = tool("coverage-page")
    assert written.PAGE.read_text("utf-8") == written.page(), "run tools/coverage-page"


def test_every_requirement_has_a_test_or_one_sentence_on_what_is_missing() -> None:
    written = tool("coverage-page")
    assert written.problems(written.marked()) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"T13": ["tests/x.py::test_y"]}, "T13 has a sentence, although tests/x.py::test_y shows it"),
        ({"W1": ["tests/x.py::test_y"]}, "W1 has a sentence, although tests/x.py::test_y shows it"),
        ({"T1": None}, "T1 has neither a test nor a sentence on what is missing"),
        ({"P4": None}, "P4 has neither a test nor a sentence on what is missing"),
        ({"T93": ["tests/x.py::test_y"]}, "no requirement is called 'T93', which tests/x.py::test_y shows"),
    ],
)
def test_a_requirement_with_both_or_neither_is_told(change: dict[str, list[str] | None], told: str) -> None:
    written = tool("coverage-page")
    shown = {number: tests for number, tests in (written.marked() | change).items() if tests is not None}
    assert written.problems(shown) == [told]


def test_the_count_in_words_is_that_of_the_tables() -> None:
    text = tool("coverage-page").page()
    rows = [line for line in text.splitlines() if re.match(r"\| [TADWP]\d+ \|", line)]
    left = sum("**not yet:**" in row for row in rows)
    shown = sum("`tests/" in row for row in rows)
    assert f"Of {shown + left} requirements {shown} are shown and {left} are not yet." in text


def test_what_is_missing_is_said_in_one_sentence() -> None:
    for number, sentence in tool("coverage-page").NOT_YET.items():
        assert re.fullmatch(r"[A-Z`].*[^.]\.", sentence), number
        assert ". " not in sentence, number


@needs_documents
def test_the_page_has_every_number_of_the_list_and_no_other() -> None:
    listed = (SHARED / "REQUIREMENTS.md").read_text("utf-8")
    numbers = set(re.findall(r"\b([TAD]\d+)\b", listed))
    for letter, first, last in re.findall(r"\b([TAD])(\d+)–[TAD](\d+)", listed):
        numbers |= {f"{letter}{number}" for number in range(int(first), int(last) + 1)}
    known = {number for numbers in tool("coverage-page").known().values() for number in numbers}
    assert {number for number in known if number[0] in "TAD"} == numbers


@needs_documents
@pytest.mark.parametrize("number", ["003", "004"])
def test_the_page_has_every_heading_of_a_document_and_no_other(number: str) -> None:
    titles = re.findall(r"^#+ +(?:\d+\. )?(.+?) *$", FENCE.sub("", document(number)), re.MULTILINE)
    written = tool("coverage-page")
    assert list(dict.fromkeys(titles)) == list(written.TOLD[written.HEADINGS[number]].values())[1:]


# docs/seed-names.md


DEFINED = (
    r"\b(?:class|interface) ([A-Z]\w*)",
    r"\btype ([A-Z]\w*) =",
    r"\bdef (\w+)\(",
    r"\bextends ([A-Z]\w*)",
    r"^ +(?:async )?(?!if|for|while|switch|catch|super|function)([A-Za-z_]\w*)\([^()]*\)(?:: [\w<>]+;| *\{| *//.*)?$",
)
"""Classes and functions where a document defines them, in Python, JavaScript and TypeScript."""
USED = (
    r"`([A-Z][a-z]+[A-Z][a-z]\w*)`",
    r"`([A-Z]+[a-z]\w*)` class",
    r"\b([a-z]+(?:_[a-z]+)+)\(\)",
    r"\bself\.(_[a-z]\w*)\(",
    r"\bthis\.(_[a-z]\w*)\(",
    r"\borchestrator\.(\w+)\(",
    r"inside ([A-Z]\w+)\.",
    r"`([a-z]+[A-Z]\w*)\(\)`",
)
"""Those that it only names."""
WORDS = {"000": {"RespondToUser_State"}}
"""What looks like the name of a class and is the name of a state."""


def names_in(number: str) -> set[str]:
    text = document(number)
    names = {name for pattern in (*DEFINED, *USED) for name in re.findall(pattern, text, re.MULTILINE)}
    return names - WORDS.get(number, set())


def test_the_page_of_names_says_what_is_here_now() -> None:
    written = tool("names-page")
    assert written.PAGE.read_text("utf-8") == written.page(), "run tools/names-page"


def test_nothing_on_the_page_of_names_is_missing_from_what_is_finished() -> None:
    written = tool("names-page")
    for number in ("003", "004"):
        missing = [name for name, does in written.NAMES[number].items() if "(not yet)" in written.dated(does)]
        assert not missing, number


@needs_documents
@pytest.mark.parametrize("number", ["000", "001", "002", "003", "004"])
def test_the_page_has_every_class_and_function_of_a_document_and_no_other(number: str) -> None:
    listed = set(tool("names-page").NAMES[number])
    assert sorted(names_in(number) - listed) == [], "the page lacks them"
    text = document(number)
    assert sorted(name for name in listed if not re.search(rf"\b{name}\b", text)) == [], "the document lacks them"


def test_a_name_of_the_package_that_is_not_there_is_told() -> None:
    written = tool("names-page")
    assert import_module("moothall.pipeline").Plan is not None
    assert written.dated("`moothall.pipeline.Plan`") == "`moothall.pipeline.Plan`"
    assert written.dated("`moothall.pipeline.Nothing`") == "`moothall.pipeline.Nothing` (not yet)"
    assert written.dated("`moothall.nowhere.Nothing`") == "`moothall.nowhere.Nothing` (not yet)"
