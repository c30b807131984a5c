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


def test_a_requirement_that_a_test_shows_needs_no_excuse() -> None:
    written = tool("coverage-page")
    assert not sorted(written.SENTENCES.keys() & written.marked().keys())


@needs_documents
def test_the_page_has_every_number_of_the_list_and_no_other() -> None:
    listed = (SHARED / "REQUIREMENTS.md").read_text("utf-8")
    numbers = set(re.findall(r"\b([TAD]\d+)\b", listed))
    for letter, first, last in re.findall(r"\b([TAD])(\d+)–[TAD](\d+)", listed):
        numbers |= {f"{letter}{number}" for number in range(int(first), int(last) + 1)}
    known = {number for numbers in tool("coverage-page").known().values() for number in numbers}
    assert {number for number in known if not number[0].isdigit()} == numbers


@needs_documents
@pytest.mark.parametrize("number", ["003", "004"])
def test_the_page_has_every_heading_of_a_document_and_no_other(number: str) -> None:
    titles = re.findall(r"^#+ +(?:\d+\. )?(.+?) *$", FENCE.sub("", document(number)), re.MULTILINE)
    assert list(dict.fromkeys(titles)) == list(tool("coverage-page").HEADINGS[number][1])
