"""Commands about workflow files: `schema`, `workflows`, `new`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable

from moothall.app.kinds.workflow.files import listed, write_new
from moothall.cli.main import DONE
from moothall.cli.screen import painted, print_json, shortened
from moothall.machines.workflow.schema import SCHEMA

Work = Callable[[Namespace], int]


def schema(parser: ArgumentParser) -> Work:
    """Print the JSON Schema of a kind of file."""
    parser.add_argument("kind", choices=("workflow",), help="the kind of file")
    parser.add_argument("--json", action="store_true", help="print JSON, as it always does")

    def work(chosen: Namespace) -> int:
        print_json(SCHEMA)
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
    parser.add_argument("kind", choices=("workflow",), help="what to begin")
    parser.add_argument("name", help="its name")
    parser.add_argument("--json", action="store_true", help="print where it was written as JSON")

    def work(chosen: Namespace) -> int:
        path = write_new(chosen.name)
        if chosen.json:
            print_json({"file": str(path)})
        else:
            print(f"{path}\ncheck it with:  moot check {path}\nrun it with:    moot run {path} 'some text'")
        return DONE

    return work
