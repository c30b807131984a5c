"""The command that talks with a team: `team`. A plain line editor; what is typed counts at any time."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, TextIO

from moothall.app.kinds.team.present import change_line, reason_line, speaker_name
from moothall.app.kinds.team.session import Chosen, Session
from moothall.app.kinds.team.tools import functions_of, team_tools
from moothall.app.runs.moothall import stop_tasks
from moothall.app.runs.news import Committed, News, Noticed, Said
from moothall.app.runs.outcome import questions_of
from moothall.cli.keyboard import discard_typed, read_burst
from moothall.cli.main import DONE, FAILED, WAITING
from moothall.cli.options import Handler, command, hall_of, nonempty_text, own_exit_code
from moothall.cli.run import add_beginning, add_workspace, workspace_of
from moothall.cli.screen import harmless, is_able, notice, paint, print_json, steer
from moothall.errors import DefinitionError, Refused

COLOURS = ("cyan", "green", "yellow", "bold")
TYPED = ("USER_SAID", "COMMAND")
"""How the events begin that a person makes."""
FIXED = ("team", "autonomy", "sample", "workspace", "model", "budget", "run_id")
"""What is chosen when a conversation begins, and not when somebody comes back to it."""
DRIVEN = "a worker drives this run"
_CONTENT = re.compile(r'"content"\s*:\s*"((?:[^"\\]|\\.)*)')


def team(parser: ArgumentParser) -> Handler:
    """Talk with a team."""
    parser.add_argument(
        "-c",
        "--team",
        type=nonempty_text,
        metavar="TEAM",
        help="studio (the default), studio_small, software or a file",
    )
    parser.add_argument(
        "--script", type=Path, metavar="FILE", help="read what you would type from a file, line by line"
    )
    parser.add_argument("--plain", action="store_true", help="a line for every change of state")
    parser.add_argument(
        "--autonomy",
        choices=("manual", "review", "auto"),
        help="who approves transitions and replies: you always (manual), you in doubtful cases (review), nobody (auto)",
    )
    parser.add_argument(
        "--sample", action="store_true", help="choose among proposals at random, weighted by score and confidence"
    )
    parser.add_argument(
        "--resume", nargs="?", const="", metavar="RUN", help="come back to a conversation (without RUN: to the newest)"
    )
    parser.add_argument(
        "--transcript", type=Path, metavar="FILE", help="write the conversation as Markdown when it ends"
    )
    add_workspace(parser)
    parser.add_argument(
        "--functions",
        type=nonempty_text,
        metavar="MODULE",
        help="FILE.py or module with the tools, hooks and sources that the team names",
    )
    add_beginning(parser)

    def work(chosen: Namespace) -> int:
        script = _script(chosen.script) if chosen.script is not None else None
        screen = Screen(chosen)
        with hall_of(chosen, notice, screen) as hall:
            try:
                with own_exit_code():
                    return asyncio.run(_talk(chosen, hall, screen, script))
            except KeyboardInterrupt:
                notice(f"stopped; nothing is lost. Come back with:  {command('team --resume', chosen, screen.run)}")
                return FAILED
            finally:
                discard_typed()

    return work


def _script(path: Path) -> list[str]:
    try:
        return typed_lines(path.read_bytes().decode())
    except (OSError, UnicodeDecodeError) as error:
        raise DefinitionError(f"the script {path} cannot be read: {error}") from error


async def _talk(chosen: Namespace, hall: Any, screen: Screen, script: list[str] | None) -> int:
    async with hall:
        session = await _open_session(chosen, hall)
        screen.follow(session)
        is_live = script is None and sys.stdin.isatty()
        if chosen.resume is not None:
            screen.say(await session.newest_lines(), aside=True)
        about = f"(run {session.run}; !help lists the commands)"
        screen.say(f"{session.roster.team.description}\n{about}".lstrip(), aside=True)
        typed = _read_lines() if script is None else _lines(script)
        if is_live:
            await _live(session, screen, typed)
        else:
            await session.go_on()
            async for line in typed:
                screen.say(f"> {line}", colour="dim")
                screen.say(await _take_line(session, line))
                if await _is_over(session):
                    break
        return await _end(chosen, session)


async def _open_session(chosen: Namespace, hall: Any) -> Session:
    tools = team_tools(chosen.functions or "")
    agents = functions_of(tools)
    if chosen.resume is not None:
        if unused := [f"--{name.replace('_', '-')}" for name in FIXED if getattr(chosen, name)]:
            notice(f"not used: {', '.join(unused)}; a conversation goes on as it began")
        return await Session.resume(hall, chosen.resume, agents)
    return await Session.begin(
        hall,
        Chosen(
            chosen.team or "studio",
            chosen.autonomy,
            chosen.sample,
            chosen.model or "",
            chosen.budget,
            chosen.run_id,
            workspace_of(chosen),
            files=_usual_folder(),
            tools=tools,
        ),
        agents,
    )


def _usual_folder() -> str:
    """Where files of a plan are written if no workspace is named."""
    return os.path.abspath("workspace")


async def _live(session: Session, screen: Screen, typed: AsyncIterator[str]) -> None:
    """Take every line as it is typed, also while somebody speaks."""
    under_way: set[asyncio.Task[None]] = set()

    async def take(line: str) -> None:
        screen.say(await _take_line(session, line))

    resumed = asyncio.create_task(_going_on(session))
    under_way.add(resumed)
    resumed.add_done_callback(under_way.discard)
    screen.prompt()
    try:
        async for line in typed:
            screen.end_line()
            if line.strip() == "!quit":
                break
            task = asyncio.create_task(take(line))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            if line.strip() == "!exit":
                await task
                break
            screen.prompt()
    finally:
        screen.end_prompts()
        await stop_tasks(under_way)


async def _going_on(session: Session) -> None:
    """Go on with what was under way when the conversation was left."""
    await session.go_on()


async def _take_line(session: Session, line: str) -> str:
    try:
        answer = await session.type(line)
    except (Refused, DefinitionError) as refusal:
        return str(refusal)
    return "\n".join(filter(None, (answer, await session.new_questions())))


async def _is_over(session: Session) -> bool:
    return session.outcome is not None and session.outcome.status not in ("waiting", "running", "stuck")


async def _end(chosen: Namespace, session: Session) -> int:
    outcome = await session.refresh()
    if chosen.transcript is not None:
        try:
            chosen.transcript.write_text(await session.transcript(), encoding="utf-8")
        except OSError as error:
            raise DefinitionError(f"the transcript {chosen.transcript} cannot be written: {error.strerror}") from error
    if chosen.json:
        print_json(await session.result())
    if outcome.status in ("waiting", "running"):
        if not chosen.quiet:
            notice(f"come back with:  {command('team --resume', chosen, session.run)}")
        return WAITING
    if outcome.reason:
        notice(harmless(outcome.reason))
    return DONE if outcome.status == "done" else FAILED


async def _lines(script: list[str]) -> AsyncIterator[str]:
    for line in script:
        if line.strip():
            yield line


def _typed_messages() -> Iterator[str]:
    """What is typed at a terminal: a paste is one message, whatever stands in it; commands may be typed ahead."""
    for text in iter(read_burst, ""):
        yield from text.split("\n") if text.startswith("!") else [text]


async def _read_lines() -> AsyncIterator[str]:
    """The lines of stdin as they come; a thread reads them, so that nothing waits for the person."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[str | None]()

    def read() -> None:
        try:
            for line in _typed_messages() if sys.stdin.isatty() else sys.stdin:
                loop.call_soon_threadsafe(lines.put_nowait, line.rstrip("\n"))
        except (OSError, ValueError) as error:  # nobody types here any more
            loop.call_soon_threadsafe(notice, f"stdin cannot be read: {error}")
        finally:
            loop.call_soon_threadsafe(lines.put_nowait, None)

    threading.Thread(target=read, daemon=True).start()
    while (line := await lines.get()) is not None:
        if line.strip():
            yield line


class Screen:
    """Shows what is said and where the conversation goes: on stdout, or beside JSON on stderr."""

    def __init__(self, chosen: Namespace) -> None:
        self._plain, self._quiet = chosen.plain, chosen.quiet
        self._stream = sys.stderr if chosen.json else sys.stdout
        self._is_live = is_able(self._stream)
        self._heard: dict[str, str] = {}
        self._shown: dict[str, int] = {}
        self._session: Session | None = None
        self._prompts = self._is_prompting = False
        self.run = chosen.run_id or ""

    @property
    def hears(self) -> bool:
        """Whether what somebody says is shown as it is said; only a terminal shows that."""
        return self._is_live

    def follow(self, session: Session) -> None:
        """Show what happens in this session."""
        self._session, self.run = session, session.run

    def prompt(self) -> None:
        """Show that something can be typed, also below whatever is shown from now on."""
        self._prompts = self._is_prompting = True
        print("> ", end="", file=self._stream, flush=True)

    def end_line(self) -> None:
        """A line was typed; the terminal has gone on to the next."""
        self._is_prompting = False

    def end_prompts(self) -> None:
        """Nothing more can be typed."""
        self._clear_prompt()
        self._prompts = False

    def say(self, text: str, *, aside: bool = False, colour: str = "") -> None:
        """Show a text."""
        if text and not (aside and self._quiet):
            stream = sys.stderr if aside else self._stream
            text = harmless(text)
            self._write(paint(text, colour, stream) if colour else text, stream=stream)

    def _write(self, text: str, end: str = "\n", stream: TextIO | None = None) -> None:
        self._clear_prompt()
        print(text, end=end, file=stream or self._stream, flush=True)
        if end and self._prompts:
            self.prompt()

    def _clear_prompt(self) -> None:
        if self._is_prompting and self._is_live:
            steer(self._stream, "\r\x1b[2K")
        self._is_prompting = False

    def __call__(self, news: News) -> None:
        """Something happened."""
        match news:
            case Noticed(text=text, urgent=urgent) if urgent and not text.startswith(DRIVEN):
                self._write(paint(text, "yellow", sys.stderr), stream=sys.stderr)
            case Said(run=run, agent=agent, piece=piece) if self._session is not None and run == self._session.run:
                self._stream_piece(agent, piece)
            case Committed() if self._session is not None and news.run == self._session.run:
                self._show(news)
            case Committed() if self._session is not None and news.run.startswith(f"{self._session.run}-"):
                for question in questions_of(news.run, news.head):
                    self.say(self._session.shown_once(question))

    def _stream_piece(self, agent: str, piece: str) -> None:
        if not piece:
            self._heard[agent], self._shown[agent] = "", 0
            return
        heard = self._heard[agent] = self._heard.get(agent, "") + piece
        text, shown = content_so_far(heard), self._shown.get(agent, 0)
        if len(text) > shown:
            label = f"{self._label(agent)}: " if not shown else ""
            self._write(label + indent(text[shown:]), end="")
            self._shown[agent] = len(text)

    def _show(self, news: Committed) -> None:
        assert self._session is not None
        if any(self._shown.values()) and str(news.plain["event"].get("name", "")).startswith(TYPED):
            self._shown.clear()
            self._write(" [interrupted]")
        for append in news.plain.get("appends", ()):
            message = append["message"]
            if append["thread"] == "conversation":
                self._show_said(message)
            elif "from" in message:
                self.say(change_line(self._session.roster, message) if self._plain else "")
                self.say(reason_line(message, str(news.head.snapshot.data.reason)))

    def _show_said(self, message: dict[str, Any]) -> None:
        who, text = message["by"], str(message["text"])
        if who == "user":
            return
        shown = self._shown.pop(who, 0)
        label = "" if shown else f"{self._label(who)}: "
        self._write(label + indent(text[shown:].rstrip()))

    def _label(self, who: str) -> str:
        assert self._session is not None
        colour = COLOURS[self._session.roster.order.get(who, 0) % len(COLOURS)]
        return paint(harmless(speaker_name(self._session.roster, who)), colour, self._stream)


def content_so_far(heard: str) -> str:
    """What is said in a reply that is still coming: its `content`, or all of it where it is prose."""
    if not heard.lstrip().startswith("{"):
        return heard
    match = _CONTENT.search(heard)
    if match is None:
        return ""
    text = match[1]
    while text:
        try:
            return str(json.loads(f'"{text}"'))
        except ValueError:
            text = text[:-1]
    return ""


def typed_lines(text: str) -> list[str]:
    """The lines of a script; only what ends a line at a keyboard does so here: no part of a text is a command."""
    lines = text.removeprefix("\ufeff").split("\n")
    return [line.removesuffix("\r") for line in (lines[:-1] if not lines[-1] else lines)]


def indent(text: str) -> str:
    """What somebody says, so that no line of it looks like one that was typed."""
    return harmless(f"{text}.")[:-1].replace("\n", "\n    ")  # the full stop keeps a newline at the end
