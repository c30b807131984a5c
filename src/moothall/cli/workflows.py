"""Commands about definition files: `schema`, `workflows`, `new`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable

from moothall.app.kinds.kind import DEFINED_IN_FILES, kind_named
from moothall.app.kinds.source import write_new
from moothall.app.kinds.workflow.files import listed
from moothall.cli.main import DONE
from moothall.cli.screen import painted, print_json, shortened

Work = Callable[[Namespace], int]


def schema(parser: ArgumentParser) -> Work:
    """Print the JSON Schema of a kind of file."""
    parser.add_argument("kind", choices=DEFINED_IN_FILES, help="the kind of file")
    parser.add_argument("--json", action="store_true", help="print JSON, as it always does")

    def work(chosen: Namespace) -> int:
        print_json(kind_named(chosen.kind).schema())
        return DONE

    return work


def workflows(parser: ArgumentParser) -> Work:
    """List the workflows that can be run by name."""
    parser.add_argument("--json", action="store_true", help="print them as JSON")

    def work(chosen: Namespace) -> int:
        found = listed()
        if chosen.json:
            print_json(found)
        else:
            width = max(len(one.name) for one in found)
            for one in found:
                note = "" if one.is_usable else painted("  has errors: moot check ", "red") + one.file
                print(f"{painted(f'{one.name:<{width}}', 'bold')}  {shortened(one.description, 90)}{note}")
        return DONE

    return work


def new(parser: ArgumentParser) -> Work:
    """Write a file to begin with."""
    parser.add_argument("kind", choices=DEFINED_IN_FILES, help="what to begin")
    parser.add_argument("name", help="its name")
    parser.add_argument("--json", action="store_true", help="print where it was written as JSON")

    def work(chosen: Namespace) -> int:
        path, way = write_new(kind_named(chosen.kind), chosen.name)
        if chosen.json:
            print_json({"file": str(path)})
        else:
            print(f"{path}\ncheck it with:  moot check {path}\nrun it with:    {way}")
        return DONE

    return work
