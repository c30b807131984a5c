"""The command that runs the built-in pipeline: `pipeline`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path

from moothall.app.kinds.pipeline import MAX_ITERATIONS, machine_of
from moothall.app.kinds.pipeline.checks import read_checks
from moothall.app.values import Budget, encode
from moothall.cli.options import Handler, whole_number, words
from moothall.cli.run import add_beginning, start


def pipeline(parser: ArgumentParser) -> Handler:
    """Run a pipeline."""
    parser.add_argument("brief", type=words, help="what is to be made")
    parser.add_argument(
        "--max-iterations",
        type=whole_number(0),
        default=MAX_ITERATIONS,
        metavar="N",
        help="the most attempts, the first included (default: %(default)s)",
    )
    parser.add_argument("--token-budget", type=whole_number(0), metavar="N", help="the most tokens to use")
    parser.add_argument(
        "--checks",
        type=Path,
        metavar="FILE",
        help="a JSON file of checks that every plan has to pass, instead of the usual ones",
    )
    add_beginning(parser)

    def work(chosen: Namespace) -> int:
        machine = machine_of(chosen.max_iterations)
        job = {"brief": chosen.brief}
        if chosen.checks is not None:
            job["checks"] = encode(read_checks(chosen.checks))
        budget = chosen.budget or Budget()
        if chosen.token_budget is not None:
            budget = replace(budget, tokens=chosen.token_budget)
        return start(chosen, machine, job, budget)

    return work
