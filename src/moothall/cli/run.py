"""Commands that move one run: `run`, `resume`, `answer`, `cancel`."""

from __future__ import annotations

import asyncio
import json
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Coroutine
from functools import partial
from importlib import import_module
from typing import Any

from moothall.app.kinds.python import built_in, find, is_of_workflow, is_workflow
from moothall.app.report.amounts import Account
from moothall.app.runs import begin as running
from moothall.app.runs.begin import Outcome, Setting, Terms
from moothall.app.runs.view import account_of, show
from moothall.cli.main import DONE, FAILED, PROVIDER, WAITING
from moothall.cli.options import (
    MACHINE,
    add_driving,
    add_quiet,
    add_run_id,
    add_store,
    answering,
    command,
    hook_of,
    named,
    own_exit_code,
    store_of,
    telemetry_of,
    tell,
    words,
)
from moothall.cli.questions import LATER, parsed, prompted, read_json, shown
from moothall.cli.screen import Progress, harmless, notice, print_json, status
from moothall.errors import DefinitionError, Refused
from moothall.kernel.codec import encode
from moothall.kernel.machine import Budget

Work = Callable[[Namespace], int]
OWN_WAYS = {"pipeline": "moothall.cli.pipeline"}
"""The built-in machines whose results are presented in a way of their own."""
BUDGET = {"usd": float, "tokens": int, "calls": int, "seconds": float, "transitions": int}


def run(parser: ArgumentParser) -> Work:
    """Start a machine or a workflow."""
    parser.add_argument("machine", help=MACHINE)
    parser.add_argument(
        "input", nargs="?", type=words, help="the input: a text for the first field of the data, or a JSON object"
    )
    parser.add_argument("--input-json", type=named, metavar="FILE", help="read the input from a JSON file")
    parser.add_argument("--roles", type=named, metavar="FILE", help="the roles of a workflow's agents")
    parser.add_argument(
        "--functions", type=named, metavar="MODULE", help="FILE.py or module: a workflow's tools and py: functions"
    )
    add_beginning(parser)

    def work(chosen: Namespace) -> int:
        machine = find(_source(parser, chosen))
        given = _input(parser, chosen, is_text=is_of_workflow(machine))
        run = chosen.run_id or running.new_id(machine)
        terms = Terms(run, chosen.model or "", chosen.budget)
        return drive(chosen, run, lambda setting: running.begin(setting, machine, given, terms))

    return work


def add_beginning(parser: ArgumentParser) -> None:
    """What every command has that begins a run."""
    parser.add_argument(
        "--model",
        type=named,
        help="who plays agents that are no functions, such as openai:NAME, smart, levels or rehearsal",
    )
    parser.add_argument(
        "--budget", type=budget_of, help="the most to spend, such as usd=0.50,calls=20,tokens=9000,seconds=60"
    )
    add_run_id(parser, "run")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    add_driving(parser, store=named)


def resume(parser: ArgumentParser) -> Work:
    """Go on with a run."""
    parser.add_argument("run", help="the run's id")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    add_driving(parser)

    def work(chosen: Namespace) -> int:
        return drive(chosen, chosen.run, lambda setting: running.go_on(setting, chosen.run))

    return work


def answer(parser: ArgumentParser) -> Work:
    """Answer a question."""
    parser.add_argument("run", help="the run's id")
    parser.add_argument("question", nargs="?", help="the question's id, where several are open")
    parser.add_argument("--yes", action="store_true", help="answer yes")
    parser.add_argument("--no", action="store_true", help="answer no")
    parser.add_argument("--text", type=words, help="answer with a text")
    parser.add_argument(
        "--as", dest="person", default="", metavar="NAME", help="who answers, where a question says who may"
    )
    add_driving(parser)
    parser.add_argument(
        "--json",
        nargs="?",
        action="append",
        const=True,
        metavar="FILE",
        help="with FILE, - for stdin, or JSON as it stands: answer with it; alone: print the outcome as JSON",
    )

    def work(chosen: Namespace) -> int:
        value = _answer(parser, chosen)
        chosen.json = True in (chosen.json or ())
        go_on = running.go_on_with_answer
        return drive(chosen, chosen.run, lambda setting: go_on(setting, chosen.run, value, chosen.question))

    return work


def cancel(parser: ArgumentParser) -> Work:
    """Ask a run to stop."""
    parser.add_argument("run", help="the run's id")
    parser.add_argument("--reason", type=words, default="asked for at the command line", help="why, for the journal")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    add_store(parser)
    add_quiet(parser)

    def work(chosen: Namespace) -> int:
        with running.opened(chosen.store) as store:
            outcome = asyncio.run(running.cancel(Setting(store, notice=notice), chosen.run, chosen.reason))
            account = asyncio.run(account_of(store, chosen.run))
        if chosen.json:
            print_json(outcome)
        _explain(chosen, outcome, account)
        return DONE

    return work


def drive(chosen: Namespace, run: str, go: Callable[[Setting], Coroutine[Any, Any, Outcome]]) -> int:
    """Let a run go on, tell of it, and present how it stands in the end."""
    progress = Progress()
    with store_of(chosen) as store, telemetry_of(chosen) as telemetry, hook_of(chosen, progress.notice) as hook:
        watchers = (*telemetry, *hook) if chosen.quiet else (progress.watching, *telemetry, *hook)
        telling = partial(tell, chosen)
        hear = None if chosen.quiet else progress.listener()
        setting = Setting(store, notice=notice, tell=telling, watchers=watchers, person=_person(chosen), hear=hear)
        try:
            with own_exit_code():
                outcome = asyncio.run(_watched(progress, go(setting)))
                while (value := _prompted(chosen, outcome)) is not LATER:
                    outcome = asyncio.run(_watched(progress, _answered(setting, outcome, value)))
        except KeyboardInterrupt:
            progress.clear()
            notice(_stopped(asyncio.run(running.exists(store, run)), command("resume", chosen, run)))
            return FAILED
        plain = asyncio.run(running.shown(store, outcome))
        own = _own_way(outcome)
        code = own(chosen, outcome) if own is not None else _present(chosen, outcome, plain)
        _explain(chosen, outcome, asyncio.run(account_of(store, outcome.run)))
        return code


async def _answered(setting: Setting, outcome: Outcome, value: Any) -> Outcome:
    """How the run stands after an answer; as before where that was refused and the question is still open."""
    [asked] = outcome.questions
    try:
        return await running.go_on_with_answer(setting, asked.run, value, asked.id)
    except Refused as error:
        still_open = (await show(setting.store, asked.run)).summary.questions
        if asked.id not in (one["id"] for one in still_open):
            raise
        notice(str(error))
        return outcome


def _stopped(begun: bool, go_on: str) -> str:
    return f"stopped; nothing is lost. Go on with:  {go_on}" if begun else "stopped before the run began"


async def _watched(progress: Progress, work: Coroutine[Any, Any, Outcome]) -> Outcome:
    ticking = asyncio.create_task(progress.tick())
    try:
        return await work
    finally:
        ticking.cancel()
        progress.clear()


def _own_way(outcome: Outcome) -> Callable[[Namespace, Outcome], int] | None:
    """How the result of a run is printed where its machine has a way of its own; most have none."""
    room = OWN_WAYS.get(outcome.machine.partition("-")[0], "")
    machine = built_in(outcome.machine) if room else None
    if machine is None or machine.data is not type(outcome.data):
        return None
    own: Callable[[Namespace, Outcome], int] = import_module(room).present
    return own


def _present(chosen: Namespace, outcome: Outcome, plain: Any) -> int:
    if chosen.json:
        print_json(plain)
    elif outcome.status in ("done", "limited"):
        result = outcome.result
        text = result if isinstance(result, str) else json.dumps(encode(result), ensure_ascii=False)
        print(harmless(text) if sys.stdout.isatty() else text)
    if outcome.fault == "provider":
        return PROVIDER
    return {"done": DONE, "waiting": WAITING}.get(outcome.status, FAILED)


def _prompted(chosen: Namespace, outcome: Outcome) -> Any:
    """What the person at the terminal answers to a single question; scripts are not asked, nor is somebody else."""
    if len(outcome.questions) != 1 or chosen.json or outcome.questions[0].who not in ("", _person(chosen)):
        return LATER
    return prompted(encode(outcome.questions[0]))


def _person(chosen: Namespace) -> str:
    return str(getattr(chosen, "person", ""))


def _explain(chosen: Namespace, outcome: Outcome, account: Account) -> None:
    """Say how the run stands and what a person can do now; only where all is well may that be left out."""
    if outcome.status != "done" or not chosen.quiet:
        why = f": {harmless(outcome.reason)}" if outcome.reason else ""
        print(f"{outcome.run} is {status(outcome.status, sys.stderr)}{why} ({account})", file=sys.stderr)
    runs = [question.run for question in outcome.questions]
    for question in outcome.questions:
        way = answering(chosen, question.run, question.id, is_only=runs.count(question.run) == 1)
        print(shown(encode(question), way), file=sys.stderr)


def _source(parser: ArgumentParser, chosen: Namespace) -> str:
    if not chosen.roles and not chosen.functions:
        return str(chosen.machine)
    if not is_workflow(chosen.machine):
        parser.error("--roles and --functions are for workflows")
    from moothall.app.kinds.workflow.runs import source_with  # a machine in Python never needs it

    return source_with(chosen.machine, chosen.roles or "", chosen.functions or "")


def _input(parser: ArgumentParser, chosen: Namespace, *, is_text: bool) -> Any:
    if chosen.input_json and chosen.input is not None:
        parser.error("give the input once: as a text or with --input-json")
    if chosen.input_json:
        return read_json(chosen.input_json)
    text = chosen.input
    if text is not None and not is_text and text.lstrip().startswith("{"):
        return parsed(text, "the input begins with '{' and")
    return text


def _answer(parser: ArgumentParser, chosen: Namespace) -> Any:
    """The one answer that was given. `--json` alone asks for JSON and is no answer."""
    files = [one for one in chosen.json or () if one is not True]
    given = [one for one in (chosen.yes or None, chosen.no or None, chosen.text, *files) if one is not None]
    if len(given) != 1:
        parser.error("give one answer: --yes, --no, --text TEXT or --json FILE")
    if chosen.yes or chosen.no:
        return bool(chosen.yes)
    return chosen.text if chosen.text is not None else read_json(files[0])


def budget_of(text: str) -> Budget:
    limits: dict[str, Any] = {}
    for part in text.split(","):
        name, _, amount = (one.strip() for one in part.partition("="))
        if name in limits:
            raise ArgumentTypeError(f"{name} stands there twice: {text!r}")
        try:
            limits[name] = BUDGET[name](amount)
        except (KeyError, ValueError) as error:
            raise ArgumentTypeError(f"write it as usd=0.50,calls=20,tokens=9000,seconds=60, not {text!r}") from error
    try:
        return Budget(**limits)
    except DefinitionError as error:
        raise ArgumentTypeError(str(error)) from error
