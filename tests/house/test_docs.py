"""The documentation is true: its programs and commands run, its quotations are exact, its links lead somewhere.

Each page has a folder of its own with a copy of `examples/`, and is read from top to bottom:

    ```… save NAME         the block is kept as a file of that name
    ```python run          the block is run
    ```python from FILE    the block stands in that file of the repository, line by line
    ```console             lines that begin with `$ moot` are run, and what is shown below each is what it says;
                           `…` stands for any text, and a comment `# exits N` for an exit code other than 0

The pages of `docs/reference` that `tools/reference` writes are compared with what it would write now.
"""

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

from moothall.app.kinds.source import find
from moothall.drawing.text import draw
from tests.house import test_readme as readme
from tests.house.test_readme import FENCE, ROOT

DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.rglob("*.md")])
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")

folder = readme.folder


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def fences(page: Path) -> list[re.Match[str]]:
    return list(FENCE.finditer(page.read_text("utf-8")))


def faults(page: Path, folder: Path) -> Iterator[str]:
    """Everything in a page that is not as it says, in the order in which a reader meets it."""
    for fence in fences(page):
        match fence["kind"].split():
            case [_, "save", name]:
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_text(fence["body"], encoding="utf-8")
            case ["python", "run"]:
                yield from filter(None, (readme.attempt(trial, folder=folder) for trial in readme.trials(fence[0])))
            case ["console", *_]:
                for command, shown in sessions(fence["body"]):
                    yield from console_faults(command, shown, folder)
            case _:
                pass


def sessions(block: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a console block that is run, with the lines shown below it."""
    joined = re.sub(r"\\\n\s*", "", block)
    for part in re.split(r"^\$ ", joined, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        if re.match(r"moot\b", command):
            yield command, [line for line in shown.splitlines() if line.strip()]


def console_faults(command: str, shown: list[str], folder: Path) -> Iterator[str]:
    trial = readme.of_line(command)
    done = subprocess.run(
        trial.command,
        cwd=folder,
        env=readme.bare_environment(folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=readme.SECONDS,
    )
    said = (done.stdout + done.stderr).splitlines()
    if done.returncode != trial.exits:
        yield "\n".join([f"$ {command}", f"exits {done.returncode}, not {trial.exits}", *said])
    missing = [line for line in shown if not any(is_like(line, other) for other in said)]
    if missing:
        yield "\n".join([f"$ {command}", "does not say:", *missing, "it says:", *said])


def is_like(shown: str, said: str) -> bool:
    """Whether a line is the one shown; `…` in what is shown stands for anything."""
    pattern = ".*".join(re.escape(part) for part in shown.strip().split("…"))
    return re.fullmatch(pattern, said.strip()) is not None


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_page_runs_ends_and_says_what_it_shows(page: Path, folder: Path) -> None:
    wrong = list(faults(page, folder))
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_quotation_stands_in_its_file(page: Path) -> None:
    for fence in fences(page):
        match fence["kind"].split():
            case ["python", "from", source]:
                there = stripped((ROOT / source).read_text("utf-8"))
                assert stripped(fence["body"]) in there, f"not in {source}:\n{fence['body']}"
            case _:
                pass


def stripped(text: str) -> str:
    """Text without its indentation: a quotation from the inside of a table begins at the margin."""
    return "".join(f"{line.strip()}\n" for line in text.splitlines())


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text("utf-8"))
    broken = [target for target in LINK.findall(text) if not leads_somewhere(target, page)]
    assert not broken


def leads_somewhere(target: str, page: Path) -> bool:
    if re.match(r"[a-z]+:", target):
        return True
    path, _, anchor = target.partition("#")
    goal = (page.parent / path).resolve() if path else page
    return goal.exists() and (not anchor or anchor in anchors(goal))


def anchors(page: Path) -> set[str]:
    """The anchors that the headings of a page have on a forge."""
    titles = re.findall(r"^#+ +(.+)$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ("upgrading.md", ("journal", "moot replay")),
        ("support.md", ("Linux", "macOS", "Windows", "sandbox")),
        ("when-to-use-something-else.md", ("LangGraph", "Temporal")),
    ],
)
def test_there_is_a_page_that_says_how_to_go_on_where_it_works_and_when_to_prefer_others(
    page: str, says: tuple[str, ...]
) -> None:
    text = (ROOT / "docs" / page).read_text()
    assert [word for word in says if word not in text] == []
    assert f"]({page})" in (ROOT / "docs" / "index.md").read_text()


def test_every_page_of_the_docs_can_be_reached_from_their_index() -> None:
    seen, fresh = set[Path](), [DOCS / "index.md"]
    while fresh:
        page = fresh.pop()
        seen.add(page)
        targets = LINK.findall(FENCE.sub("", page.read_text("utf-8")))
        inside = {(page.parent / target.partition("#")[0]).resolve() for target in targets if ":" not in target}
        fresh += [goal for goal in inside if goal.suffix == ".md" and goal.is_relative_to(DOCS) and goal not in seen]
    assert not [name_of(page) for page in PAGES if page.is_relative_to(DOCS) and page not in seen]


def test_the_picture_in_the_readme_is_what_graph_draws() -> None:
    pictures = [fence["body"] for fence in fences(ROOT / "README.md") if fence["kind"] == "mermaid"]
    drawn = draw(find(str(ROOT / "examples" / "newsroom.py")), "mermaid")
    assert [picture.strip() for picture in pictures] == [drawn.strip()]


def generator() -> Any:
    """`tools/reference` as a module. It has no suffix, and leaves no bytecode beside it."""
    loader = SourceFileLoader("reference", str(ROOT / "tools" / "reference"))
    spec = spec_from_loader("reference", loader)
    assert spec is not None
    module = module_from_spec(spec)
    exec(compile(loader.get_data(loader.path), loader.path, "exec"), module.__dict__)
    return module


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="argparse words its help differently from 3.13 on")
def test_the_generated_pages_are_up_to_date() -> None:
    stale = [name_of(path) for path, text in generator().pages().items() if path.read_text("utf-8") != text]
    assert not stale, f"run tools/reference: {', '.join(stale)} would change"


def test_every_public_name_is_in_the_reference() -> None:
    headings = set(re.findall(r"^### `(\w+)`$", (DOCS / "reference" / "python.md").read_text("utf-8"), re.MULTILINE))
    assert headings == set(importlib.import_module("moothall").__all__)


def test_every_exit_code_is_in_the_reference() -> None:
    table = (DOCS / "reference" / "exit-codes.md").read_text("utf-8")
    codes = {int(code) for code in re.findall(r"^\| (\d) \|", table, re.MULTILINE)}
    main = importlib.import_module("moothall.cli.main")
    ended = {main.LIMITED, main.CANCELLED, main.ELSEWHERE}
    assert codes == {main.DONE, main.USAGE, main.CANNOT_TELL, main.WAITING, *ended, *main.EXIT_CODES.values()}


SAMPLE = """\
```python save greeting.py
print("hello")
```

```python run
import greeting
```

```console
$ moot --version
moothall …
$ kill -9 1
gone
$ moot frobnicate  # exits 2
no such words
```
"""


def test_files_are_saved_and_a_line_that_is_not_said_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(SAMPLE, encoding="utf-8")
    (fault,) = faults(page, tmp_path)
    assert "does not say:\nno such words" in fault


@pytest.mark.parametrize(
    ("shown", "said", "alike"),
    [
        ("run article-…", "run article-0687df", True),
        ("  1  drafting", "    1  drafting", True),
        ("a.c", "abc", False),
        ("done", "done (spent 4 calls)", False),
    ],
)
def test_an_ellipsis_stands_for_anything(shown: str, said: str, alike: bool) -> None:
    assert is_like(shown, said) is alike
