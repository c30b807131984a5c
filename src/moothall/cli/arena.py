"""Commands of the arena: `arena`, `identity`, `ratings`, `recall`."""

from __future__ import annotations

import asyncio
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moothall.app.config.access import opened
from moothall.app.kinds.arena import records
from moothall.app.kinds.arena.files import plan_violations
from moothall.app.kinds.arena.standings import history_lines, rating_lines, standings
from moothall.app.kinds.arena.start import BANDS, ArenaOptions, agree, arena_machine, case_of
from moothall.app.runs.begin import new_id
from moothall.app.runs.moothall import Moothall
from moothall.app.runs.outcome import Outcome
from moothall.cli.main import DONE, FAILED
from moothall.cli.options import Handler, add_store, nonempty_text, told_on_screen, whole_number, words
from moothall.cli.run import add_beginning, drive
from moothall.cli.screen import paint, print_json, show


def arena(parser: ArgumentParser) -> Handler:
    """Run the arena."""
    parser.add_argument("request", nargs="?", type=words, help="what is to be done")
    parser.add_argument(
        "-c",
        "--config",
        type=Path,
        metavar="FILE",
        help="the configuration, a JSON file; `moot schema arena` describes it",
    )
    parser.add_argument(
        "--workspace", type=nonempty_text, metavar="DIR", help="the folder to work in (default: the current one)"
    )
    parser.add_argument("--dry-run", action="store_true", help="stop before anything is executed")
    parser.add_argument(
        "--bands",
        choices=BANDS,
        help="cautious: a person decides where the consensus is from 0.6 to 0.75; seed: never",
    )
    parser.add_argument("--trace", action="store_true", help="explain every number of the decision")
    parser.add_argument(
        "--yes", action="store_true", help="answer yes wherever the run asks a person; it never asks about a veto"
    )
    parser.add_argument(
        "--check-plan", type=Path, metavar="FILE", help="only check the plan in a JSON file against the static rules"
    )
    add_beginning(parser)

    def work(chosen: Namespace) -> int:
        if chosen.check_plan is not None:
            return _check_plan(chosen)
        if chosen.request is None:
            parser.error("say what is to be done, or check a plan with --check-plan FILE")
        options = ArenaOptions(chosen.workspace or "", chosen.config, chosen.bands or "", chosen.dry_run, chosen.trace)
        machine, case = arena_machine(), case_of(chosen.request, options)
        run = chosen.run_id or new_id(machine)

        async def go(hall: Moothall) -> Outcome:
            model = chosen.model or ""
            outcome = await hall.run(machine, case, model=model, budget=chosen.budget, run_id=run)
            return await agree(hall, outcome) if chosen.yes else outcome

        return drive(chosen, run, go)

    return work


def _check_plan(chosen: Namespace) -> int:
    violations = plan_violations(chosen.check_plan)
    if chosen.json:
        print_json({"veto": bool(violations), "violations": violations})
    else:
        for violation in violations:
            show(f"{paint('veto', 'red')} {violation.rule} in task {violation.task}: {violation.reason}")
        if not violations:
            print("no rule vetoes this plan")
    return FAILED if violations else DONE


def identity(parser: ArgumentParser) -> Handler:
    """Lock a store to a place."""
    parser.add_argument(
        "action",
        choices=("init", "show", "check"),
        help="lock the store, show its locks, or check that they fit this place",
    )
    parser.add_argument("--cloud-project", default="", metavar="NAME", help="(default: as the environment says)")
    parser.add_argument("--database", default="", metavar="NAME", help="(default: as the environment says)")
    parser.add_argument("--workspace", default="", metavar="DIR", help="the only folder to work in (default: any)")
    parser.add_argument("--operator", default="", metavar="NAME", help="(default: who runs this)")
    parser.add_argument("--force", action="store_true", help="replace the locks of a store that is locked already")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    add_store(parser, nonempty_text)

    def work(chosen: Namespace) -> int:
        return asyncio.run(_identity(chosen))

    return work


async def _identity(chosen: Namespace) -> int:
    async with Moothall(chosen.store, listeners=(told_on_screen(_quiet(chosen)),), telemetry="") as hall:
        given = records.Given(chosen.cloud_project, chosen.database, chosen.workspace, chosen.operator)
        if chosen.action == "init":
            told = await records.lock_store(hall, given, anew=chosen.force)
        else:
            told = await records.identity_of(hall.store, given)
    if chosen.json:
        print_json(told)
    else:
        shown = {name: value for name, value in told["locks"].items() if value}
        print("\n".join(f"{name.replace('_', ' ')}: {value}" for name, value in shown.items()) or "nothing is locked")
        if chosen.action == "check":
            print("\n".join(told["mismatches"]) or "every lock holds")
    return FAILED if chosen.action == "check" and told["mismatches"] else DONE


def _quiet(chosen: Namespace) -> Namespace:
    return Namespace(**{**vars(chosen), "quiet": True})


def ratings(parser: ArgumentParser) -> Handler:
    """Show ratings, or judge a plan that was blocked."""
    parser.add_argument(
        "--history", action="store_true", help="list every duel and the ratings that it changed, the oldest first"
    )
    judging = parser.add_mutually_exclusive_group()
    judging.add_argument(
        "--confirm", metavar="RUN", type=nonempty_text, help="judge that the plan which this run blocked was bad"
    )
    judging.add_argument("--refute", metavar="RUN", type=nonempty_text, help="judge that it was good; it stays blocked")
    parser.add_argument("--by", type=nonempty_text, metavar="NAME", help="who judges (default: who runs this)")
    parser.add_argument("--json", action="store_true", help="print them as JSON")
    add_store(parser)

    def work(chosen: Namespace) -> int:
        if chosen.confirm or chosen.refute:
            asyncio.run(_judge(chosen))
        with opened(chosen.store) as store:
            told = asyncio.run(standings(store))
        if chosen.json:
            print_json(told if chosen.history else {"ratings": told["ratings"]})
        else:
            lines = history_lines(told) if chosen.history else rating_lines(told)
            print("\n".join(lines) or _nothing_rated(told))
        return DONE

    return work


def _nothing_rated(told: Mapping[str, Any]) -> str:
    """Why a list of ratings or of duels is empty."""
    if not told["ratings"]:
        return "no ratings yet: no run of the arena was decided by its outcome"
    why = "neither critic nor security disagreed with solution"
    return f"no duels yet: {why}; `moot ratings` lists how votes turned out"


async def _judge(chosen: Namespace) -> None:
    async with Moothall(chosen.store, listeners=(told_on_screen(_quiet(chosen)),), telemetry="") as hall:
        run = chosen.confirm or chosen.refute
        by = await records.judge_plan(hall, run, is_good=bool(chosen.refute), by=chosen.by or "")
    word = "refuted" if chosen.refute else "confirmed"
    print(f"{by or 'a person'} {word} the block of {run}; ratings moved, and the plan stays blocked", file=sys.stderr)


def recall(parser: ArgumentParser) -> Handler:
    """Find earlier runs."""
    parser.add_argument("text", type=words, help="what to look for")
    parser.add_argument(
        "--most", type=whole_number(1), default=3, metavar="N", help="how many to show (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print them as JSON")
    add_store(parser)

    def work(chosen: Namespace) -> int:
        with opened(chosen.store) as store:
            found = asyncio.run(records.recall_traces(store, chosen.text, chosen.most))
        if chosen.json:
            print_json(found)
        else:
            lines = (
                f"{paint(near.trace.id, 'bold')}  {near.similarity:.2f}  {near.trace.outcome.replace('_', ' ')}"
                f"  {near.trace.request[:80]}"
                for near in found
            )
            show("\n".join(lines) or "nothing like it is remembered")
        return DONE

    return work
