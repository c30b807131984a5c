"""The command that runs the built-in pipeline, and how the result of one is presented: `pipeline`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from moothall.app.kinds.pipeline.checks import read_checks
from moothall.app.kinds.pipeline.orchestrator import OrchestratorResult, result_of
from moothall.app.runs import begin as running
from moothall.app.runs.begin import Outcome, Terms
from moothall.cli.main import DONE, FAILED, WAITING
from moothall.cli.options import whole_number, words
from moothall.cli.run import add_beginning, drive
from moothall.cli.screen import print_json
from moothall.kernel.codec import encode
from moothall.kernel.machine import Budget
from moothall.machines.pipeline import MAX_ITERATIONS
from moothall.machines.pipeline import pipeline as machine_of
from moothall.machines.pipeline.plans import Plan

Work = Callable[[Namespace], int]
LIVE = ("running", "waiting", "stuck")


def pipeline(parser: ArgumentParser) -> Work:
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
        run = chosen.run_id or running.new_id(machine)
        terms = Terms(run, chosen.model or "", budget)
        return drive(chosen, run, lambda setting: running.begin(setting, machine, job, terms))

    return work


def present(chosen: Namespace, outcome: Outcome) -> int:
    """Print how a pipeline ended, with the best that it made."""
    result = result_of(outcome)
    if chosen.json:
        print_json(result)
    elif outcome.status not in LIVE:
        print(_told(result))
    return WAITING if outcome.status == "waiting" else DONE if result.success else FAILED


def _told(result: OrchestratorResult) -> str:
    score = "" if result.score is None else f", score {result.score:g}"
    number = f"{result.iterations} iteration" + ("" if result.iterations == 1 else "s")
    head = f"{result.final_state.value}{score}, {number}" + (f": {result.reason}" if result.reason else "")
    return f"{head}\n\n{made}" if (made := result.implementation or _listed(result.plan)) else head


def _listed(plan: Plan | None) -> str:
    """A plan for people, where nothing was made of it."""
    if plan is None:
        return ""
    return "\n".join([plan.summary, "", *(f"{number}. {step}" for number, step in enumerate(plan.steps, 1))])
