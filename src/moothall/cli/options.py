"""Options that several commands share, and what they stand for."""

from __future__ import annotations

import os
import shlex
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf, nan

from moothall.app.config.settings import (
    DURABILITIES,
    address_without_password,
    cleaner,
    durability_of,
    hook_setting,
    is_in_memory,
    store_address,
    store_file,
    telemetry_setting,
)
from moothall.app.kinds.kind import DIGITS
from moothall.app.runs.begin import LONGEST_ID
from moothall.app.runs.moothall import Moothall
from moothall.app.runs.news import Listener, News, Noticed
from moothall.cli.screen import notice
from moothall.errors import DefinitionError, Refused, words_of

Handler = Callable[[Namespace], int]
MACHINE = (
    "FILE.py:NAME, package.module:NAME, FILE.json[:NAME], FILE.scxml, or the name of a built-in machine or a workflow"
)
RISK = (
    "durability normal: after a power cut or a crash of the operating system the last commits may be gone, and "
    "finished effects may be repeated; a crash of this process alone loses nothing"
)


def nonempty_text(text: str) -> str:
    """What an option takes that names something: an empty text, as of a variable that is not set, names nothing."""
    if not text.strip():
        raise ArgumentTypeError("it is empty; name something, or leave the option out")
    return text


def existing_store(text: str) -> str:
    """A store that a command finds its runs in; one that is not there is not made, for its name is wrong."""
    file = store_file(nonempty_text(text))
    if file is not None and not os.path.lexists(file):
        raise DefinitionError(f"there is no store {text}; correct the name, or start a run in it first")
    return text


def add_store(parser: ArgumentParser, kind: Callable[[str], str] = existing_store) -> None:
    """Where runs are kept."""
    parser.add_argument(
        "--store",
        type=kind,
        help="where runs are kept: sqlite:FILE or postgresql://… (default: in the state directory)",
    )


def add_run_id(parser: ArgumentParser, what: str) -> None:
    """How a run is called that begins."""
    parser.add_argument(
        "--run-id",
        type=nonempty_text,
        help=f"the id of the {what}: letters, digits and dashes, at most {LONGEST_ID} (default: a new one)",
    )


def add_quiet(parser: ArgumentParser) -> None:
    """How much is said."""
    parser.add_argument(
        "--quiet", "-q", action="store_true", help="show no progress on stderr; failures and questions are still shown"
    )


def add_driving(parser: ArgumentParser, store: Callable[[str], str] = existing_store) -> None:
    """What every command has that drives runs."""
    add_store(parser, store)
    add_quiet(parser)
    parser.add_argument(
        "--durability",
        choices=DURABILITIES,
        help="full: a commit is on the disk before it counts (default); normal: faster, but a power cut may undo the "
        "last commits",
    )
    parser.add_argument(
        "--on-wait",
        metavar="COMMAND_OR_URL",
        help="what to call when a run asks a question: an http(s) address gets JSON by POST, a command gets it "
        "on stdin; no shell reads the command: for pipes and variables write sh -c '…'",
    )
    parser.add_argument(
        "--telemetry",
        metavar="PARTS",
        help="the telemetry to send: spans, counters:PORT, log or log:FILE, separated by commas",
    )


def words(text: str) -> str:
    """What a run is told at the command line; bytes that are no characters here cannot be kept."""
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ArgumentTypeError("it is not text in the encoding of this terminal; write UTF-8 and set LC_ALL=C.UTF-8")
    return text


def whole_number(least: int) -> Callable[[str], int]:
    """What an option takes that counts something."""

    def number(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= DIGITS) or int(text) < least:
            raise ArgumentTypeError(f"a whole number of at least {least} and at most {DIGITS} digits, not {text!r}")
        return int(text)

    return number


def seconds(text: str) -> float:
    """What an option takes that is a time in seconds."""
    return days(text)


def days(text: str) -> float:
    """What an option takes that is a time in days."""
    try:
        number = float(text)
    except ValueError:
        number = nan
    if not 0 <= number < inf:
        raise ArgumentTypeError(f"a number of at least 0, not {text!r}")
    return number


@contextmanager
def hall_of(chosen: Namespace, tell_notice: Callable[[str], None], *listeners: Listener) -> Iterator[Moothall]:
    """The Moothall of a command that drives runs, with all who listen; what a lesser durability risks is said once."""
    if durability_of(chosen.durability) == "normal" and not is_in_memory(chosen.store):
        notice(RISK)
    with telemetry_of(chosen) as telemetry, hook_of(chosen, tell_notice) as hook:
        everybody = (*listeners, *telemetry, *hook)
        yield Moothall(chosen.store, listeners=everybody, durability=chosen.durability, telemetry="")


def told_on_screen(chosen: Namespace) -> Listener:
    """Says on stderr what a person should know, and unless silence was asked for, what a person may want to."""

    def tell_notice(news: News) -> None:
        if isinstance(news, Noticed):
            notice(news.text) if news.urgent else tell(chosen, news.text)

    return tell_notice


@contextmanager
def own_exit_code() -> Iterator[None]:
    """Work whose exit code is for the command to say, also where a task of an author's own ends the program."""
    try:
        yield
    except SystemExit as stop:
        raise Refused(f"something in a run ended the program ({words_of(stop)})") from stop


def command(name: str, chosen: Namespace, what: str = "") -> str:
    """A command line that a person can copy."""
    store = ("--store", shlex.quote(address_without_password(chosen.store))) if chosen.store else ()
    return " ".join(filter(None, ("moot", name, what, *store)))


def answering(chosen: Namespace, run: str, question: str, *, is_only: bool) -> str:
    """The command line that answers a question, which has to be named where the run asks others too."""
    return command("answer", chosen, run if is_only else f"{run} {question}")


def tell(chosen: Namespace, text: str) -> None:
    """Say something on stderr, unless silence was asked for."""
    if not chosen.quiet:
        print(text, file=sys.stderr)


@contextmanager
def hook_of(chosen: Namespace, notice: Callable[[str], None]) -> Iterator[tuple[Listener, ...]]:
    """Who watches for waiting runs, where something is set; it has a moment at the end of the command."""
    target = hook_setting() if chosen.on_wait is None else chosen.on_wait
    if not target:
        yield ()
        return
    from moothall.app.notify.hook import OnWait  # an HTTP client takes longer to load than all the rest

    hook = OnWait(target, notice, clean=cleaner())
    try:
        yield (hook,)
    finally:
        hook.finish()


@contextmanager
def telemetry_of(chosen: Namespace) -> Iterator[tuple[Listener, ...]]:
    """Who else is told what goes on, where something is set; it has a moment at the end of the command."""
    parts = telemetry_setting(chosen.telemetry)
    if not parts:
        yield ()
        return
    from moothall.app.notify.telemetry.listener import telemetry  # most commands are not watched

    with telemetry(parts, store_address(chosen.store), notice) as watchers:
        yield watchers
