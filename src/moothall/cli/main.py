"""`moot`: finds the command, lets it work, and turns errors into a sentence and an exit code.

The table below is all that `moot --help` needs; a command's module is loaded when the command is used.

Exit codes: 0 done, 1 the run failed or was refused, 2 wrong usage, 3 the provider failed, 4 configuration or
definition is wrong, 5 the run waits for a person, 6 cannot tell, 7 ended at a limit, 8 cancelled, 9 driven elsewhere.
"""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from keyword import iskeyword
from typing import Any, NamedTuple

from moothall import __version__
from moothall.errors import Broken, Conflict, DefinitionError, EffectFailed, Elsewhere, MoothallError, Refused, words_of

DONE, FAILED, USAGE, PROVIDER, DEFINITION, WAITING, CANNOT_TELL, LIMITED, CANCELLED, ELSEWHERE = range(10)


class Command(NamedTuple):
    """One command: what it does in one line, and the module of this package that has it."""

    help: str
    room: str


COMMANDS = {
    "run": Command("start a machine and drive it as far as it goes", "run"),
    "pipeline": Command("plan, validate, implement and judge until the judge is content", "pipeline"),
    "debate": Command("let agents clarify, propose, critique and refine until they agree", "debate"),
    "arena": Command("debate a request, carry it out in a sandbox, heal or roll back, and audit it", "arena"),
    "team": Command("talk with a team of personas that hand off, approve and ask for rework", "team"),
    "resume": Command("go on with a run where its journal ends", "run"),
    "answer": Command("answer a question of a waiting run, and go on", "run"),
    "send": Command("send an event to a run, and go on", "run"),
    "cancel": Command("ask a run to stop, wherever it is driven", "run"),
    "retry": Command("go on with a run that ended badly, once its cause is repaired", "retry"),
    "fork": Command("copy a run up to an entry and let the copy go another way", "fork"),
    "worker": Command("drive every run of the store that wants attention", "worker"),
    "serve": Command("open the page: runs, what waits for you, and every run live", "serve"),
    "mcp": Command("serve machines as tools to other people's agents", "mcp"),
    "ls": Command("list the runs of the store", "view"),
    "show": Command("show where a run stands and its journal", "view"),
    "watch": Command("follow a run's journal as it grows", "view"),
    "replay": Command("put a run's journal through its machine again and compare; nobody is asked anything", "replay"),
    "audit": Command("find out whether runs are as they were written", "audit"),
    "export": Command("write a run with its whole journal as JSON", "transport"),
    "import": Command("add a run that `moot export` wrote to a file", "transport"),
    "migrate": Command("copy all runs of a store to another", "migrate"),
    "prune": Command("delete runs that ended long ago", "view"),
    "forget": Command("remove the texts of a run or of a person from the store; audits still pass", "forget"),
    "metrics": Command("count visits, time, transitions and tokens of a run, or of all runs", "report"),
    "costs": Command("show what a run spent, or all runs, by model, agent and state", "report"),
    "report": Command("write a run's picture, figures and journal as a page, Markdown, CSV or JSON", "report"),
    "ratings": Command("show the ratings of the arena's agents and their duels, or judge a blocked plan", "arena"),
    "recall": Command("find earlier runs of the arena that are most like a text", "arena"),
    "identity": Command("lock a store to a place, or check that its locks fit this place", "arena"),
    "score": Command("score the solutions of debates by a rubric, from 1 to 10", "debate"),
    "doctor": Command("look at this installation and the store, and say what is wrong", "doctor"),
    "trust": Command("trust a project's moothall.toml as it is now", "trust"),
    "check": Command("check machines and workflow files: dead ends, endless loops, what a run can cost", "check"),
    "graph": Command("draw a machine", "check"),
    "js": Command("evaluate an expression as a workflow file would", "js"),
    "sandbox": Command("run one command exactly as an agent's tool would, and show what came of it", "sandbox"),
    "saves": Command("list the saves of a run's workspace, or take one", "saves"),
    "diff": Command("show what has happened to a run's workspace since a save", "saves"),
    "restore": Command("put a run's workspace back to a save; its present files are saved first", "saves"),
    "workflows": Command("list the workflows that can be run by name", "workflows"),
    "roles": Command("list the roles that agents of workflows can have, and where each is found", "workflows"),
    "new": Command("write a debate, arena, team or workflow file, or a role, to begin with", "workflows"),
    "schema": Command("print the JSON Schema of a debate, arena, team or workflow file, or of a role", "workflows"),
    "completion": Command("print the script that completes `moot` commands in bash, zsh or fish", "completion"),
    "conformance": Command("run a suite of statechart tests and count those that pass", "check"),
}

EXIT_CODES: dict[type[MoothallError], int] = {
    DefinitionError: DEFINITION,
    EffectFailed: PROVIDER,
    Elsewhere: ELSEWHERE,
    Refused: FAILED,
    Conflict: FAILED,
    Broken: FAILED,
}
"""What errors exit with; how a run ended is in `CODES` of `cli/run.py`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = _front_parser()
    name = given[0] if given else ""
    if name not in COMMANDS:
        parser.parse_args(given or ["--help"])
        return USAGE
    try:
        with import_module("moothall.app.config.settings").reading_once():
            return _seen_to(name, given[1:])
    except KeyboardInterrupt:
        if arguments is None:
            _hush()
        print(f"moot {name}: stopped", file=sys.stderr)
        return FAILED


def _seen_to(name: str, given: Sequence[str]) -> int:
    _write_anything()
    screen = import_module("moothall.cli.screen")
    try:
        clean = screen.cleaner()
    except DefinitionError as error:  # the settings cannot be read, and so nobody knows what is secret
        if name != "doctor":
            with screen.clean_streams(str):
                return _report_error(name, error)
        clean = screen.variables_cleaner()
    try:
        with screen.clean_streams(clean):
            return _carried_out(name, given)
    except BrokenPipeError:  # whoever read has seen enough
        return DONE
    except OSError as error:
        screen.write_no_more(sys.stdout)
        print(f"moot {name}: what it says cannot be written: {error.strerror}", file=sys.stderr)
        return PROVIDER


def _carried_out(name: str, given: Sequence[str]) -> int:
    try:
        own = argparse.ArgumentParser(prog=f"moot {name}", description=_sentence(COMMANDS[name].help))
        work = entrance(name)(own)
        chosen = _parse_arguments(own, given)
        signal.signal(signal.SIGTERM, _stop)
        if name not in ("trust", "doctor"):
            import_module("moothall.cli.screen").tell_of_unused_project()
        code: int = work(chosen)
        return code
    except MoothallError as error:
        return _report_error(name, error)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a fault of ours; whoever met it gets a sentence, and nothing secret is shown
        is_full = isinstance(error, OSError) and error.errno == errno.ENOSPC
        if is_full or isinstance(error, BrokenPipeError) or os.environ.get("MOOTHALL_DEBUG"):
            raise
        print(f"moot {name}: {words_of(error)}; MOOTHALL_DEBUG=1 shows where that happened", file=sys.stderr)
        return FAILED


def entrance(name: str) -> Any:
    """The function of a command, which adds its options and gives what does the work."""
    room = import_module(f"moothall.cli.{COMMANDS[name].room}")
    return getattr(room, f"{name}_" if iskeyword(name) else name)


def _parse_arguments(own: argparse.ArgumentParser, given: Sequence[str]) -> argparse.Namespace:
    """What was given. Intermixed parsing takes `-x` for an option even behind `--`: there it is marked as a text.

    The `--` stays in its place, so that no option before it takes a text behind it for its own.
    """
    here = given.index("--") if "--" in given else len(given)
    texts = (_TEXT + text if text.startswith("-") else text for text in given[here + 1 :])
    chosen, surplus = own.parse_known_intermixed_args([*given[: here + 1], *texts])
    if unknown := [_unmark(text) for text in surplus if text != "--"]:
        own.error(f"unrecognized arguments: {' '.join(unknown)}")
    for text in given:  # no run, store or journal can have it in its name
        if not _is_text(text):
            own.error(f"{text!r} is not text in the encoding of this terminal; write UTF-8 and set LC_ALL=C.UTF-8")
    return argparse.Namespace(**{name: _unmark(value) for name, value in vars(chosen).items()})


def _is_text(given: str) -> bool:
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True


_TEXT = "\0"
"""What no argument of a process can begin with."""


def _unmark(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmark(text) for text in value]
    return value.removeprefix(_TEXT) if isinstance(value, str) else value


def _report_error(name: str, error: MoothallError) -> int:
    """Tell what went wrong; the exit code says who has to do something about it."""
    print(f"moot {name}: {error}", file=sys.stderr)
    return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), FAILED)


def _write_anything() -> None:
    """What the terminal's encoding lacks is shown as a question mark; a stream that is not there is an empty one."""
    sys.stdout, sys.stderr = (stream or open(os.devnull, "w") for stream in (sys.stdout, sys.stderr))  # noqa: SIM115
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def _hush() -> None:
    """Nobody need hear of an event loop that was stopped before it was whole, or while it was being closed."""
    sys.unraisablehook = lambda unraised: None
    warnings.simplefilter("ignore")


def _stop(number: int, frame: object) -> None:
    """A request to end is treated as Ctrl-C, which the event loop knows how to carry out, if Ctrl-C is not ignored."""
    _hush()
    if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None):
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)


def _front_parser() -> argparse.ArgumentParser:
    width = max(map(len, COMMANDS))
    listed = "\n".join(f"  {name:<{width}}  {command.help}" for name, command in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="moot",
        usage="moot COMMAND [options]",
        description="Durable state machines for agents that debate, hand off, approve and act.",
        epilog=f"commands:\n{listed}\n\n`moot COMMAND --help` describes one command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"moothall {__version__}")
    parser.add_argument("command", choices=list(COMMANDS), metavar="COMMAND", help=argparse.SUPPRESS)
    return parser


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
