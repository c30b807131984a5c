"""The house has floors, and imports go downwards only.

The table below is the rule; the rest of the file reads import statements, at any depth, and compares. A room that has
not been built yet is no trespass; a module that is in no room is one.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# From top to bottom. Rooms of one floor never import each other.
HOUSE = (
    "__main__",
    "cli | web | mcp | acp",
    "__init__ | testing",
    "app",
    "stores | models | sandboxes | workspaces | toolservers | scripting | interop | cluster",
    "performers",
    "runtime | machines",
    "agents",
    "analysis | drawing",
    "kernel",
    "errors",
)

# Single modules at the top of the package that belong to a room.
ANNEXES = {"arena": "app", "debate": "app", "pipeline": "app", "team": "app", "workflow": "app"}

# Downwards, and still forbidden.
NEVER = {"runtime": ("agents",)}

FOR_TYPE_CHECKERS = ("typing_extensions",)
"""Read by type checkers alone: it stands below `if TYPE_CHECKING`, and nobody has to install it."""

STANDARD_LIBRARY_ONLY = ("analysis", "drawing", "kernel", "errors")

PURE = ("kernel", "analysis", "drawing", "machines")
FORBIDDEN_TO_PURE = (
    "asyncio",
    "datetime",
    "logging",
    "os",
    "pathlib",
    "random",
    "secrets",
    "socket",
    "sqlite3",
    "subprocess",
    "threading",
    "time",
    "uuid",
)

PACKAGE = "moothall"
SOURCE = Path(__file__).parents[2] / "src" / PACKAGE
FLOOR = {room: depth for depth, floor in enumerate(reversed(HOUSE)) for room in floor.split(" | ")}


def room_of(module: str) -> str:
    """The room of a module of the package, whether or not the house has such a room."""
    _, _, inside = module.partition(".")
    room = inside.split(".")[0] or "__init__"
    return ANNEXES.get(room, room)


def imported(source: str, *, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """Every module that the source imports, with its line."""
    package = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=origin, names=names, level=level):
                base = absolute(origin or "", package=package, level=level)
                if base == PACKAGE:
                    yield from ((node.lineno, room_or_package(alias.name)) for alias in names)
                else:
                    yield node.lineno, base
            case _:
                pass


def absolute(origin: str, *, package: str, level: int) -> str:
    if level == 0:
        return origin
    parents = package.split(".")
    base = parents[: len(parents) - level + 1]
    return ".".join([*base, origin] if origin else base)


def room_or_package(name: str) -> str:
    """`from moothall import kernel` reaches a room; `from moothall import Machine` reaches the package itself."""
    return f"{PACKAGE}.{name}" if name in FLOOR or name in ANNEXES else PACKAGE


def objection(room: str, target: str) -> str | None:
    """Why a room may not import this module, or None where it may."""
    top = target.split(".")[0]
    if top != PACKAGE:
        if room in PURE and top in FORBIDDEN_TO_PURE:
            return f"{room} is pure and never imports {top}"
        if room in STANDARD_LIBRARY_ONLY and top not in (*sys.stdlib_module_names, *FOR_TYPE_CHECKERS):
            return f"{room} imports the standard library only"
        return None
    there = room_of(target)
    if there == room:
        return None
    if there not in FLOOR:
        return f"the house has no room {there}"
    if FLOOR[there] > FLOOR[room]:
        return f"{there} lies above {room}"
    if FLOOR[there] == FLOOR[room]:
        return f"{room} and {there} share a floor and never import each other"
    if there in NEVER.get(room, ()):
        return f"{room} never imports {there}"
    return None


def trespasses(source: str, *, module: str, is_package: bool = False) -> list[str]:
    room = room_of(module)
    if room not in FLOOR:
        return [f"{module}: the house has no room {room}"]
    return [
        f"{module}, line {line}, imports {target}: {reason}"
        for line, target in imported(source, module=module, is_package=is_package)
        if (reason := objection(room, target)) is not None
    ]


@pytest.mark.covers("T8")
def test_imports_go_downwards_only() -> None:
    found: list[str] = []
    paths = sorted(SOURCE.rglob("*.py"))
    for path in paths:
        names = path.relative_to(SOURCE.parent).with_suffix("").parts
        is_package = names[-1] == "__init__"
        module = ".".join(names[:-1] if is_package else names)
        found += trespasses(path.read_text("utf-8"), module=module, is_package=is_package)
    assert paths, "no module found: the walk looks in the wrong place"
    assert not found, "\n".join(["the house has been trespassed:", *found])


@pytest.mark.parametrize(
    ("module", "source", "reason"),
    [
        ("moothall.kernel.draw", "import moothall.runtime.clock", "runtime lies above kernel"),
        ("moothall.kernel.draw", "from moothall.agents import Role", "agents lies above kernel"),
        ("moothall.kernel.draw", "from moothall import agents", "agents lies above kernel"),
        ("moothall.kernel.draw", "from moothall import Machine", "__init__ lies above kernel"),
        ("moothall.kernel.draw", "from .. import agents", "agents lies above kernel"),
        ("moothall.kernel.draw", "from ..agents import Role", "agents lies above kernel"),
        ("moothall.kernel.deep.draw", "from ...agents.roles import Role", "agents lies above kernel"),
        ("moothall.kernel.draw", "def late():\n    from moothall.app import wire", "app lies above kernel"),
        ("moothall.kernel.draw", "if TYPE_CHECKING:\n    import moothall.app", "app lies above kernel"),
        ("moothall.kernel.draw", "import orjson", "kernel imports the standard library only"),
        ("moothall.kernel.draw", "import re, os.path", "kernel is pure and never imports os"),
        ("moothall.machines.debate", "from time import monotonic", "machines is pure and never imports time"),
        ("moothall.machines.debate", "import moothall.runtime", "machines and runtime share a floor"),
        ("moothall.runtime.drive", "from ..machines import debate", "runtime and machines share a floor"),
        ("moothall.runtime.drive", "from moothall.agents import Role", "runtime never imports agents"),
        ("moothall.stores.sqlite", "from moothall.models import port", "stores and models share a floor"),
        ("moothall.performers.ask", "import moothall.stores.sqlite", "stores lies above performers"),
        ("moothall.app.wiring", "import moothall.cli.main", "cli lies above app"),
        ("moothall.cli.main", "from moothall.web import serve", "cli and web share a floor"),
        ("moothall.pipeline", "import moothall.cli", "cli lies above app"),
        ("moothall.app.wiring", "import moothall.cellar", "the house has no room cellar"),
        ("moothall.cellar", "", "the house has no room cellar"),
    ],
)
def test_a_planted_trespass_is_found(module: str, source: str, reason: str) -> None:
    [found] = trespasses(source, module=module)
    assert reason in found


def test_a_relative_import_of_a_package_starts_at_the_package_itself() -> None:
    assert not trespasses("from . import agents", module="moothall.kernel", is_package=True)
    assert trespasses("from .. import agents", module="moothall.kernel", is_package=True)


def test_the_package_itself_opens_no_door() -> None:
    assert not trespasses("from .app import run", module="moothall", is_package=True)
    assert trespasses("from .cli import main", module="moothall", is_package=True)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("moothall.kernel.draw", "import re\nfrom . import names\nfrom .a import b\nfrom ..errors import Broken"),
        ("moothall.machines.debate", "from moothall.kernel import State\nfrom moothall.agents import Role"),
        ("moothall.runtime.drive", "import asyncio\nfrom moothall.kernel import transition"),
        ("moothall.stores.sqlite", "import sqlite3, orjson\nfrom moothall.runtime import Store"),
        ("moothall.app.wiring", "from moothall.runtime import run\nfrom moothall.machines import debate"),
        ("moothall.pipeline", "from moothall.app.facades import Pipeline"),
        ("moothall.cli.main", "from moothall import __version__\nfrom moothall.app import wiring"),
        ("moothall.__main__", "from .cli.main import main"),
    ],
)
def test_what_the_house_allows_is_left_alone(module: str, source: str) -> None:
    assert trespasses(source, module=module) == []


DOORS = ("cli", "web", "mcp", "acp")
OPEN_TO_DOORS = ("app", "errors", "__init__")


def modules() -> dict[str, Path]:
    """Every module of the package, by name."""
    names = {path: path.relative_to(SOURCE.parent).with_suffix("").parts for path in SOURCE.rglob("*.py")}
    return {".".join(parts[:-1] if parts[-1] == "__init__" else parts): path for path, parts in names.items()}


def imports_between(known: dict[str, Path]) -> dict[str, set[str]]:
    """Which modules each module imports, at any depth."""
    graph: dict[str, set[str]] = {}
    for module, path in known.items():
        nodes = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ImportFrom)]
        names = {f"{node.module}.{alias.name}" for node in nodes for alias in node.names}
        graph[module] = {
            target for name in names if (target := name if name in known else name.rpartition(".")[0]) in known
        } - {module}
    return graph


def circle_in(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle; none where there is none."""
    done: set[str] = set()

    def walk(module: str, above: list[str]) -> list[str]:
        if module in above:
            return above[above.index(module) :]
        if module in done:
            return []
        found = next(filter(None, (walk(target, [*above, module]) for target in sorted(graph[module]))), [])
        done.add(module)
        return found

    return next(filter(None, (walk(module, []) for module in sorted(graph))), [])


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c"]
    assert circle_in(imports_between(modules())) == []


def test_doors_import_app_and_nothing_below_it() -> None:
    graph = imports_between(modules())
    below = [
        f"{module} imports {target}"
        for module, targets in sorted(graph.items())
        for target in sorted(targets)
        if room_of(module) in DOORS and room_of(target) not in (*OPEN_TO_DOORS, room_of(module))
    ]
    assert below == []
