"""Commands that move one run: `run`, `resume`, `answer`, `send`, `cancel`."""

from __future__ import annotations

import asyncio
import shlex
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from moothall.app.kinds.kind import Presented, kind_of
from moothall.app.kinds.source import find, with_files
from moothall.app.kinds.turn import single_turn
from moothall.app.report.account import account_of
from moothall.app.report.amounts import Account
from moothall.app.runs.begin import new_id
from moothall.app.runs.context import exists
from moothall.app.runs.moothall import Moothall
from moothall.app.runs.outcome import Outcome, Question
from moothall.app.runs.pause import wait_until_asked
from moothall.app.runs.present import present
from moothall.app.runs.replay import machine_instead
from moothall.app.runs.view import summary_of_run
from moothall.app.sandbox import GIVES_UP, LEVELS
from moothall.app.toolbox import POLICIES
from moothall.app.values import Budget, Machine, Workspace, encode
from moothall.cli.keyboard import discard_typed, is_at_terminal
from moothall.cli.main import CANCELLED, DONE, ELSEWHERE, FAILED, LIMITED, PROVIDER, WAITING
from moothall.cli.options import (
    MACHINE,
    Handler,
    add_driving,
    add_quiet,
    add_run_id,
    add_store,
    answering,
    command,
    hall_of,
    nonempty_text,
    own_exit_code,
    told_on_screen,
    words,
)
from moothall.cli.questions import Given, PutOff, format_question, parse_json, prompt_for_answer, read_json
from moothall.cli.screen import Progress, harmless, notice, print_json, status
from moothall.errors import DefinitionError, Refused

CODES = {"done": DONE, "waiting": WAITING, "limited": LIMITED, "cancelled": CANCELLED, "running": ELSEWHERE}
"""The exit code of a command by how its run stands; every other way is a failure."""
T = TypeVar("T")
After = Callable[[Moothall, Outcome, Presented], Coroutine[Any, Any, Presented]]
"""What a command does when a run has gone as far as it goes; it may add to what is shown."""
BUDGET = {"usd": float, "tokens": int, "calls": int, "seconds": float, "transitions": int}


def run(parser: ArgumentParser) -> Handler:
    """Start a machine or a workflow."""
    parser.add_argument("machine", help=f"{MACHINE}; with --role: the task")
    parser.add_argument(
        "input", nargs="?", type=words, help="the input: a text for the first field of the data, or a JSON object"
    )
    parser.add_argument("--input-json", type=nonempty_text, metavar="FILE", help="read the input from a JSON file")
    parser.add_argument("--roles", type=nonempty_text, metavar="FILE", help="the roles of a workflow's agents")
    parser.add_argument(
        "--functions",
        type=nonempty_text,
        metavar="MODULE",
        help="FILE.py or module with a workflow's tools and py: functions",
    )
    parser.add_argument(
        "--role",
        type=nonempty_text,
        help="run one agent of this role on a task, with its tools, instead of a machine",
    )
    parser.add_argument(
        "--detach", action="store_true", help="begin the run, print its id and leave it to a worker of the store"
    )
    add_beginning(parser)
    add_lane(parser)
    add_workspace(parser)

    def work(chosen: Namespace) -> int:
        if chosen.role:
            if chosen.input is not None or chosen.input_json or chosen.functions:
                parser.error("--role takes a task and nothing else: moot run --role coder 'the task'")
            place, roles = workspace_of(chosen), chosen.roles or ""
            machine, given = single_turn(chosen.role, chosen.machine, workspace=place, roles_from=roles)
            return start(chosen, machine, given, chosen.budget)
        machine = find(_source(parser, chosen))
        given = _input(parser, chosen, is_text=kind_of(machine).takes_text)
        return start(chosen, machine, given, chosen.budget)

    return work


def start(chosen: Namespace, machine: Machine, given: Any, budget: Budget | None, after: After | None = None) -> int:
    """Begin a run with what every command has that begins one, and drive it."""
    run, model = chosen.run_id or new_id(machine), chosen.model or ""
    chosen.begun_with = machine
    place = workspace_of(chosen)
    if getattr(chosen, "detach", False):
        return _detach(chosen, machine, given, budget, run)

    def go(hall: Moothall) -> Coroutine[Any, Any, Outcome]:
        return hall.run(machine, given, model=model, budget=budget, run_id=run, workspace=place)

    return drive(chosen, run, go, after)


def add_lane(parser: ArgumentParser) -> None:
    """What a command has that leaves runs to workers."""
    parser.add_argument("--queue", type=nonempty_text, metavar="NAME", help="with --detach: the queue that it joins")
    parser.add_argument(
        "--tenant", type=nonempty_text, metavar="NAME", help="with --detach: the tenant that the run belongs to"
    )
    parser.add_argument(
        "--priority",
        type=int,
        default=0,
        metavar="N",
        help="with --detach: runs of a higher priority go first (default: 0)",
    )


def _detach(chosen: Namespace, machine: Machine, given: Any, budget: Budget | None, run: str) -> int:
    """Begin a run for a worker, and say which one and how to follow it."""

    async def begun(hall: Moothall) -> None:
        async with hall:
            await hall.submit(
                machine,
                given,
                model=chosen.model or "",
                budget=budget,
                run_id=run,
                workspace=workspace_of(chosen),
                queue=chosen.queue or "",
                tenant=chosen.tenant or "",
                priority=chosen.priority,
            )

    with hall_of(chosen, notice, told_on_screen(chosen)) as hall:
        asyncio.run(begun(hall))
    print_json({"run": run}) if chosen.json else print(run)
    if not chosen.quiet:
        follow = command("watch", chosen, run)
        notice(f"`moot worker` or the page of `moot serve` goes on with it. Follow it with:  {follow}")
    return DONE


def add_beginning(parser: ArgumentParser) -> None:
    """What every command has that begins a run."""
    parser.add_argument(
        "--model",
        type=nonempty_text,
        help="the model of all agents that are not functions, such as openai:NAME, smart, levels or rehearsal",
    )
    parser.add_argument(
        "--budget", type=budget_of, help="the most to spend, such as usd=0.50,calls=20,tokens=9000,seconds=60"
    )
    add_run_id(parser, "run")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    add_driving(parser, store=nonempty_text)


def add_workspace(parser: ArgumentParser) -> None:
    """What every command has whose agents work in a folder."""
    parser.add_argument(
        "--workspace", type=nonempty_text, metavar="DIR", help="the folder that agents work in with their tools"
    )
    parser.add_argument(
        "--sandbox",
        choices=LEVELS,
        default=LEVELS[0],
        help="what protects this machine from commands (none: nothing does)",
    )
    parser.add_argument(
        "--policy",
        type=_policies,
        default={},
        metavar="TOOL=POLICY",
        help="allow a tool, ask before it or deny it, for all roles or for one, such as "
        "execute_terminal=allow,reviewer:write_file=deny",
    )


def workspace_of(chosen: Namespace) -> Workspace:
    """What the agents of a run work with; what is given up without a sandbox is said."""
    if getattr(chosen, "sandbox", "") == "none" and chosen.workspace:
        notice(GIVES_UP)
    known = {"folder": "workspace", "sandbox": "sandbox", "policies": "policy"}
    given = {name: getattr(chosen, option, None) for name, option in known.items()}
    if (files := getattr(chosen, "files", None)) is not None:
        given |= {"folder": str(files), "read_only": True}
    return Workspace(**{name: value for name, value in given.items() if value})


def _policies(text: str) -> dict[str, Any]:
    parts = [part.strip().partition("=") for part in text.split(",")]
    for name, _, policy in parts:
        if not name or policy not in POLICIES:
            raise ArgumentTypeError(f"write it as TOOL=allow, TOOL=ask or ROLE:TOOL=deny, not {text!r}")
    return {name: policy for name, _, policy in parts}


def resume(parser: ArgumentParser) -> Handler:
    """Go on with a run."""
    parser.add_argument("run", help="the run's id")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    parser.add_argument(
        "--as", dest="person", default="", metavar="NAME", help="who you are, for questions and --adopt"
    )
    add_definition(parser)
    add_driving(parser)

    async def go_on(chosen: Namespace, hall: Moothall) -> Outcome:
        machine = await _machine_now(chosen, hall)
        return await hall.resume(chosen.run, machine, by=_person(chosen), adopt=chosen.adopt)

    def work(chosen: Namespace) -> int:
        return drive(chosen, chosen.run, partial(go_on, chosen))

    return work


def answer(parser: ArgumentParser) -> Handler:
    """Answer a question."""
    parser.add_argument("run", help="the run's id")
    parser.add_argument("question", nargs="?", help="the question's id, where several are open")
    parser.add_argument("--yes", action="store_true", help="answer yes")
    parser.add_argument("--no", action="store_true", help="answer no")
    parser.add_argument("--text", type=words, help="answer with a text")
    parser.add_argument(
        "--as", dest="person", default="", metavar="NAME", help="who answers; needed where a question names who may"
    )
    add_definition(parser)
    add_driving(parser)
    parser.add_argument(
        "--json",
        nargs="?",
        action="append",
        const=True,
        metavar="FILE",
        help="with a value (FILE, - for stdin, or JSON itself): the answer; without one: print the outcome as JSON",
    )

    async def go_on(chosen: Namespace, given: Given | None, hall: Moothall) -> Outcome:
        machine, by = await _machine_now(chosen, hall), _person(chosen)
        question, adopt = chosen.question, chosen.adopt
        if given is None:
            return await hall.resume(chosen.run, machine, by=by, adopt=adopt)
        return await hall.answer(chosen.run, given.value, question=question, machine=machine, by=by, adopt=adopt)

    def work(chosen: Namespace) -> int:
        given = _answer(parser, chosen)
        chosen.json = True in (chosen.json or ())
        return drive(chosen, chosen.run, partial(go_on, chosen, given))

    return work


def add_definition(parser: ArgumentParser) -> None:
    """What every command has that goes on with a run whose definition may have moved or changed."""
    parser.add_argument(
        "--machine",
        dest="machine_now",
        type=nonempty_text,
        metavar="FILE:NAME",
        help="the run's machine, if it was moved",
    )
    parser.add_argument(
        "--adopt",
        type=words,
        default="",
        metavar="WHY",
        help="go on although the changed machine would have decided otherwise; the journal keeps WHY",
    )


async def _machine_now(chosen: Namespace, hall: Moothall) -> Machine | None:
    """The machine that the run was begun with here, or that is named instead of the one that it knows; else None."""
    if (begun_with := getattr(chosen, "begun_with", None)) is not None:
        return begun_with  # type: ignore[no-any-return]  # a Namespace knows no types
    source = getattr(chosen, "machine_now", None)
    return await machine_instead(hall.store, chosen.run, source) if source else None


def cancel(parser: ArgumentParser) -> Handler:
    """Ask a run to stop."""
    parser.add_argument("run", help="the run's id")
    parser.add_argument("--reason", type=words, default="asked for at the command line", help="why, for the journal")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    add_store(parser)
    add_quiet(parser)

    def work(chosen: Namespace) -> int:
        return asyncio.run(_cancel(chosen))

    return work


async def _cancel(chosen: Namespace) -> int:
    async with Moothall(chosen.store, listeners=(told_on_screen(chosen),), telemetry="") as hall:
        outcome = await hall.cancel(chosen.run, chosen.reason)
        if chosen.json:
            print_json(outcome)
        _explain(chosen, outcome, await account_of(hall.store, chosen.run))
        return DONE


def send(parser: ArgumentParser) -> Handler:
    """Tell a run an event from outside."""
    parser.add_argument("run", help="the run's id")
    parser.add_argument("event", help="the name of an event that the run accepts now")
    parser.add_argument("--text", type=words, help="a text that the event carries")
    add_driving(parser)
    parser.add_argument(
        "--json",
        nargs="?",
        action="append",
        const=True,
        metavar="FILE",
        help="with a value (FILE, - for stdin, or JSON itself): the fields of the event; without one: print the "
        "outcome as JSON",
    )

    def work(chosen: Namespace) -> int:
        files = [given for given in chosen.json or () if given is not True]
        if len(files) + (chosen.text is not None) > 1:
            parser.error("give what the event carries once: --text TEXT or --json FILE")
        data = read_json(files[0]) if files else chosen.text
        chosen.json = True in (chosen.json or ())
        return drive(chosen, chosen.run, lambda hall: hall.send(chosen.run, chosen.event, data))

    return work


def drive(
    chosen: Namespace,
    run: str,
    go: Callable[[Moothall], Coroutine[Any, Any, Outcome]],
    after: After | None = None,
) -> int:
    """Let a run go on, tell of it, and present how it stands in the end; `after` that a command may do more."""
    progress = Progress(whole=getattr(chosen, "verbose", False))
    watching = () if chosen.quiet else (progress,)
    with hall_of(chosen, progress.notice, told_on_screen(chosen), *watching) as hall:
        try:
            with own_exit_code():
                return asyncio.run(_driven(chosen, hall, progress, go, after))
        except KeyboardInterrupt:
            progress.clear()
            notice(_stop_note(asyncio.run(exists(hall.store, run)), _resuming(chosen, run)))
            return FAILED
        finally:
            discard_typed()


async def _driven(
    chosen: Namespace,
    hall: Moothall,
    progress: Progress,
    go: Callable[[Moothall], Coroutine[Any, Any, Outcome]],
    after: After | None,
) -> int:
    async with hall:
        outcome = await _wait_until_asked(hall, progress, go(hall))
        put_off: set[tuple[str, str]] = set()
        while (question := _question_here(chosen, outcome, put_off)) is not None:
            match await prompt_for_answer(encode(question), _person(chosen)):
                case Given(value):
                    answered = _give_answer(chosen, hall, question, value)
                    try:
                        outcome = await _wait_until_asked(hall, progress, answered)
                    except Refused as refusal:
                        await _require_open(hall, question, refusal)
                case PutOff(draft, is_interrupted):
                    put_off.add((question.run, question.id))
                    if draft:
                        outcome = await _keep_draft(chosen, hall, outcome, question, draft)
                    if is_interrupted:
                        raise KeyboardInterrupt
        machine = await _machine_now(chosen, hall)
        presented = await present(hall, outcome, machine)
        if after is not None and chosen.json:  # JSON is one value, and so it waits for the rest
            presented = await wait_with_progress(progress, after(hall, outcome, presented))
        code = _print_outcome(chosen, outcome, presented)
        account = await account_of(hall.store, outcome.run, machine)
        _explain(chosen, await _stands(hall, outcome, presented), account)
        if after is not None and not chosen.json:
            await wait_with_progress(progress, after(hall, outcome, presented))
        return code


async def _stands(hall: Moothall, outcome: Outcome, presented: Presented) -> Outcome:
    """How a run stands where its kind says more of a run that is done than that it is."""
    if outcome.status != "done" or presented.status == "done":
        return outcome
    return replace(outcome, status=presented.status, reason=(await summary_of_run(hall.store, outcome.run)).reason)


async def _wait_until_asked(hall: Moothall, progress: Progress, work: Coroutine[Any, Any, Outcome]) -> Outcome:
    """How the run stands when it is done or asks something; what was typed until then is no answer."""
    outcome = await wait_with_progress(progress, wait_until_asked(hall.context().hall, work))
    discard_typed()
    return outcome


def _question_here(chosen: Namespace, outcome: Outcome, put_off: Collection[tuple[str, str]]) -> Question | None:
    """The next question for the person at the terminal, the named one first; nobody is asked for somebody else."""
    if chosen.json or not is_at_terminal():
        return None
    person, named = _person(chosen), getattr(chosen, "question", None)
    own = [question for question in outcome.questions if not person or question.who in ("", person)]
    still_open = [question for question in own if (question.run, question.id) not in put_off]
    return min(still_open, key=lambda question: question.id != named, default=None)


async def _give_answer(chosen: Namespace, hall: Moothall, question: Question, value: Any) -> Outcome:
    machine, by = await _machine_now(chosen, hall), _person(chosen) or question.who
    return await hall.answer(question.run, value, question=question.id, machine=machine, by=by)


async def _keep_draft(
    chosen: Namespace, hall: Moothall, outcome: Outcome, question: Question, draft: Mapping[str, Any]
) -> Outcome:
    """Keep what was filled in of a form that was left for later, and say what is still open."""
    machine, by = await _machine_now(chosen, hall), _person(chosen) or question.who
    kept = await hall.draft(question.run, draft, question=question.id, machine=machine, by=by)
    still_open = ", ".join(name for name in question.schema["required"] if name not in draft)
    notice(f"kept: {', '.join(draft)}; still open: {still_open or 'nothing that is needed'}")
    now = {(asked.run, asked.id): asked for asked in kept.questions}
    questions = tuple(now.get((asked.run, asked.id), asked) for asked in outcome.questions)
    return replace(outcome, questions=questions)


async def _require_open(hall: Moothall, question: Question, refusal: Refused) -> None:
    """Tell why an answer was refused, if the question is still open; else there is nothing more to ask."""
    still_open = (await summary_of_run(hall.store, question.run)).questions
    if question.id not in (asked["id"] for asked in still_open):
        raise refusal
    discard_typed()
    notice(str(refusal))


def _resuming(chosen: Namespace, run: str) -> str:
    """The command line that goes on with a run, for the same person."""
    person = _person(chosen)
    return command("resume", chosen, run) + (f" --as {shlex.quote(person)}" if person else "")


def _stop_note(begun: bool, go_on: str) -> str:
    return f"stopped; nothing is lost. Go on with:  {go_on}" if begun else "stopped before the run began"


async def wait_with_progress(progress: Progress, work: Coroutine[Any, Any, T]) -> T:
    """Wait for work that is told of meanwhile."""
    ticking = asyncio.create_task(progress.tick())
    try:
        return await work
    finally:
        ticking.cancel()
        progress.clear()


def _print_outcome(chosen: Namespace, outcome: Outcome, presented: Presented) -> int:
    if chosen.json:
        print_json(presented.plain)
    elif presented.text:
        print(harmless(presented.text) if sys.stdout.isatty() else presented.text)
    if (outcome.fault if presented.fault is None else presented.fault) == "provider":
        return PROVIDER
    return CODES.get(presented.status, FAILED)


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
        print(format_question(encode(question), way), file=sys.stderr)


def _source(parser: ArgumentParser, chosen: Namespace) -> str:
    if not chosen.roles and not chosen.functions:
        return str(chosen.machine)
    source = with_files(chosen.machine, roles=chosen.roles or "", functions=chosen.functions or "")
    if source is None:
        parser.error("--roles and --functions are for workflows")
    return source


def _input(parser: ArgumentParser, chosen: Namespace, *, is_text: bool) -> Any:
    if chosen.input_json and chosen.input is not None:
        parser.error("give the input once: as a text or with --input-json")
    if chosen.input_json:
        return read_json(chosen.input_json)
    text = chosen.input
    if text is not None and not is_text and text.lstrip().startswith("{"):
        return parse_json(text, "the input begins with '{' and")
    return text


def _answer(parser: ArgumentParser, chosen: Namespace) -> Given | None:
    """The one answer that was given; None where a person at the terminal is to be asked for it.

    `--json` alone asks for JSON and is not an answer.
    """
    files = [file for file in chosen.json or () if file is not True]
    given = [answer for answer in (chosen.yes or None, chosen.no or None, chosen.text, *files) if answer is not None]
    if not given and not chosen.json and is_at_terminal():
        return None
    if len(given) != 1:
        parser.error("give one answer: --yes, --no, --text TEXT or --json FILE")
    if chosen.yes or chosen.no:
        return Given(bool(chosen.yes))
    return Given(chosen.text if chosen.text is not None else read_json(files[0]))


def budget_of(text: str) -> Budget:
    limits: dict[str, Any] = {}
    for part in text.split(","):
        name, _, amount = (half.strip() for half in part.partition("="))
        if name in limits:
            raise ArgumentTypeError(f"{name} is given twice: {text!r}")
        try:
            limits[name] = BUDGET[name](amount)
        except (KeyError, ValueError) as error:
            raise ArgumentTypeError(f"write it as usd=0.50,calls=20,tokens=9000,seconds=60, not {text!r}") from error
    try:
        return Budget(**limits)
    except DefinitionError as error:
        raise ArgumentTypeError(str(error)) from error
