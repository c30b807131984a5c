"""The command that looks at the installation itself: `doctor`."""

from __future__ import annotations

import shutil
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from textwrap import wrap

from moothall.app.config.doctor import Check, examine
from moothall.cli.main import DONE, FAILED
from moothall.cli.options import Handler, add_store, nonempty_text
from moothall.cli.screen import paint, print_json

COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


def doctor(parser: ArgumentParser) -> Handler:
    """Look at the installation and the store."""
    add_store(parser, nonempty_text)
    parser.add_argument("--json", action="store_true", help="print JSON")

    def work(chosen: Namespace) -> int:
        checks = examine(chosen.store)
        levels = Counter(check.level for check in checks)
        if chosen.json:
            print_json({"problems": levels["problem"], "warnings": levels["warning"], "checks": checks})
        else:
            print("\n".join(_table(checks)))
        return FAILED if levels["problem"] else DONE

    return work


def _table(checks: Sequence[Check]) -> Iterator[str]:
    """A line for each check; a terminal gets long ones in several."""
    width = max(len(check.name) for check in checks)
    before = width + len("  problem  ")
    for check in checks:
        lines = [check.says]
        if sys.stdout.isatty():
            lines = wrap(check.says, max(20, shutil.get_terminal_size().columns - before))
        said = f"\n{'':<{before}}".join(lines)
        yield f"{check.name:<{width}}  {paint(f'{check.level:<7}', COLOURS[check.level])}  {said}"
