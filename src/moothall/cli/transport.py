"""Commands that take a run from store to store in a file: `export`, `import`."""

from __future__ import annotations

import asyncio
import json
from argparse import ArgumentParser, Namespace
from pathlib import Path

from moothall.app.config.access import opened
from moothall.app.report.amounts import format_count
from moothall.app.runs.transport import Imported, export_run, import_runs
from moothall.app.values import encode
from moothall.cli.main import DONE
from moothall.cli.options import Handler, add_store, command, nonempty_text
from moothall.cli.screen import notice, print_json
from moothall.cli.view import add_shared_options, write
from moothall.errors import DefinitionError


def export(parser: ArgumentParser) -> Handler:
    """Write a run as JSON."""
    parser.add_argument("run", help="the run's id")
    parser.add_argument(
        "--output", "-o", type=nonempty_text, metavar="FILE", help="where to write it (default: to stdout)"
    )
    add_shared_options(parser)

    def work(chosen: Namespace) -> int:
        with opened(chosen.store) as store:
            exported = asyncio.run(export_run(store, chosen.run))
        if chosen.output is None:
            print_json(exported)
        else:
            write(Path(chosen.output), json.dumps(encode(exported), ensure_ascii=False, indent=2) + "\n")
        return DONE

    return work


def import_(parser: ArgumentParser) -> Handler:
    """Take in an exported run."""
    parser.add_argument("file", type=nonempty_text, metavar="FILE", help="what `moot export RUN -o FILE` wrote")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_store(parser, nonempty_text)

    def work(chosen: Namespace) -> int:
        text = _read(Path(chosen.file))
        with opened(chosen.store) as store:
            imported = asyncio.run(import_runs(store, text))
        if chosen.json:
            print_json(imported)
        else:
            print(_sentence(imported))
        if imported.is_live:
            notice(
                "the run is not over, and is set aside here; once no process drives it in the store that it came "
                "from, go on with:  " + command("resume", chosen, imported.run)
            )
        return DONE

    return work


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DefinitionError(f"{path} cannot be read: {error.strerror or error}") from error


def _sentence(imported: Imported) -> str:
    others = len(imported.runs) - 1
    family = f" and {format_count(others, 'runs')} that belong to it" if others else ""
    entries = format_count(imported.entries, "entries", "entry")
    return f"{imported.run}{family}: imported, {entries} checked; audit: {imported.verdict}: {imported.why}"
