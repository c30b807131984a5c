"""Commands about the workspace of a run: `saves`, `diff`, `restore`."""

from __future__ import annotations

import asyncio
import time
from argparse import ArgumentParser, Namespace

from moothall.app.config.access import opened
from moothall.app.runs import saves as room
from moothall.cli.main import DONE
from moothall.cli.options import Handler, add_store, words
from moothall.cli.screen import harmless, notice, print_json


def saves(parser: ArgumentParser) -> Handler:
    """List or take saves."""
    _add_run(parser)
    parser.add_argument("--take", type=words, metavar="NAME", help="save the workspace now, under this name")

    def work(chosen: Namespace) -> int:
        with opened(chosen.store) as store:
            if chosen.take is not None:
                asyncio.run(room.take_save(store, chosen.run, chosen.take))
            known = asyncio.run(room.list_saves(store, chosen.run))
        if chosen.json:
            print_json(known)
            return DONE
        for save in known:
            moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(save.at))
            print(f"{save.id:>4}  {moment}  {save.files:>5} files  {harmless(save.name)}")
        return DONE

    return work


def diff(parser: ArgumentParser) -> Handler:
    """Compare the workspace with a save."""
    _add_run(parser)
    parser.add_argument("save", nargs="?", default="", help="the number of a save (default: the one before the run)")

    def work(chosen: Namespace) -> int:
        with opened(chosen.store) as store:
            difference = asyncio.run(room.diff(store, chosen.run, chosen.save))
        if chosen.json:
            print_json(difference)
            return DONE
        for mark, paths in (("+", difference.added), ("-", difference.removed), ("~", difference.changed)):
            for path in paths:
                notice(f"{mark} {path}")
        if difference.text:
            print(harmless(difference.text))
        return DONE

    return work


def restore(parser: ArgumentParser) -> Handler:
    """Go back to a save."""
    _add_run(parser)
    parser.add_argument("save", help="the number of a save, as `moot saves` lists it")

    def work(chosen: Namespace) -> int:
        with opened(chosen.store) as store:
            restored = asyncio.run(room.restore(store, chosen.run, chosen.save))
        if chosen.json:
            print_json(restored)
            return DONE
        for path in restored.changed:
            print(harmless(path))
        for path in restored.left:
            notice(f"{path} was left as it is: no save has it")
        notice(f"what was there before is save {restored.rescue}")
        return DONE

    return work


def _add_run(parser: ArgumentParser) -> None:
    parser.add_argument("run", help="the run's id")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    add_store(parser)
