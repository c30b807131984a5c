"""What a person sees: colours only on a terminal, notices and progress on stderr, results on stdout."""

from __future__ import annotations

import asyncio
import json
import os
import re
import select
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from itertools import groupby
from typing import Any, TextIO, cast

from moothall.app.config.settings import cleaner as cleaner
from moothall.app.config.settings import project
from moothall.app.config.settings import variables_cleaner as variables_cleaner
from moothall.app.kinds.ends import end_of
from moothall.app.kinds.kind import Line, kind_of
from moothall.app.report.amounts import Account, duration_of
from moothall.app.runs.news import Committed, News, Said
from moothall.app.runs.outcome import ended_as
from moothall.app.values import encode, printable

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
HEARD = 60
"""How much of what a model says is seen while it speaks."""
AT_WORK = 8
"""How many are seen while they are at work."""
SAID, REASON = 60, 400
"""How much is seen of what was said, and of why something went wrong; the file and the line stand at its end."""
_JSON_MARKS = re.compile(r'[{}\[\]"\\]+')
"""What is left out of a reply that is JSON, while somebody looks on."""
NO_WRAP, WRAP = "\x1b[?7l", "\x1b[?7h"
"""Terminals disagree on how wide some signs are: a line that is taken back must not become two where one is wider."""
STATUS_COLOURS = {"done": "green", "waiting": "yellow", "running": "cyan", "limited": "yellow"}


def is_able(stream: TextIO) -> bool:
    """Whether a stream is a terminal that colours and lines can be changed on."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def harmless(text: str) -> str:
    """A text that cannot steer a terminal, whoever wrote it; its lines stay lines."""
    return "\n".join(map(printable, text.splitlines()))


def paint(text: str, colour: str, stream: TextIO | None = None) -> str:
    """A text in a colour, where the stream (stdout) is a terminal and NO_COLOR is not set."""
    if not is_able(stream or sys.stdout) or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m"


def status(text: str, stream: TextIO | None = None, width: int = 0) -> str:
    """A status in its colour, filled up to a width."""
    return paint(pad(text, width), STATUS_COLOURS.get(text, "red"), stream)


def print_json(value: Any) -> None:
    """JSON on stdout, for scripts."""
    print(json.dumps(encode(value), ensure_ascii=False, indent=2))


def notice(text: str) -> None:
    """Something that a person should know, on stderr."""
    print(paint(text, "yellow", sys.stderr), file=sys.stderr)


def tell_of_unused_project() -> None:
    """Say that a project has settings which do not count, and why."""
    found = project()
    if found is not None and found.unused:
        notice(f"not used: {found.file}: {found.unused}")


def write_no_more(stream: TextIO) -> None:
    """What is left to be written must not complain when the program ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def tame(text: str, *, colours: bool) -> str:
    """A text that cannot steer a terminal; its lines, tabs and, where there are any, our own colours stay."""
    if text.isprintable():
        return text
    return (_COLOURED if colours else _LINES).sub(lambda found: found["own"] or printable(found[0]), text)


def show(line: str) -> None:
    """A line for people on stdout, even in a pipe: what files of others say in it cannot steer a terminal."""
    print(tame(line, colours=is_able(sys.stdout)))


_LINES = re.compile(r"(?P<own>[\n\t]+)|[^\n\t]+")
_COLOURED = re.compile(rf"(?P<own>[\n\t]+|\x1b\[(?:0|{'|'.join(_CODES.values())})m)|\x1b|[^\n\t\x1b]+")


class CleanStream:
    """A stream that shows no secrets, whoever writes to it; lines of several threads do not run into each other.

    What people read, on a terminal or as notices, cannot steer a terminal either; a pipe's results are as they are.

    A command goes on where such an error as it forgives says that nobody reads what it writes: it ends with its own
    exit code.
    """

    def __init__(
        self, stream: TextIO, clean: Callable[[str], str], forgives: type[OSError], *, is_for_people: bool = False
    ) -> None:
        self._stream, self._clean, self._forgives = stream, clean, forgives
        self._is_for_people, self._has_colours = is_for_people or stream.isatty(), is_able(stream)
        self._begun = threading.local()
        self.is_unread = False

    def write(self, text: str) -> int:
        """Write a text without its secrets; a line that is not whole is held back until it is, or must be seen."""
        lines, newline, rest = (getattr(self._begun, "line", "") + text).rpartition("\n")
        self._begun.line = rest
        if newline:
            self._pass_on(self._cleaned(lines + newline))
        return len(text)

    def flush(self) -> None:
        """Let everything be seen."""
        begun, self._begun.line = getattr(self._begun, "line", ""), ""
        self._pass_on(self._cleaned(begun), flush=True)

    def steer(self, text: str) -> None:
        """Let everything be seen, and then steer the terminal."""
        self.flush()
        self._pass_on(text, flush=True)

    def _cleaned(self, text: str) -> str:
        text = self._clean(text)
        return tame(text, colours=self._has_colours) if self._is_for_people else text

    def _pass_on(self, text: str, *, flush: bool = False) -> None:
        try:
            self._stream.write(text)
            if flush:
                self._stream.flush()
        except self._forgives:
            self.is_unread = True
            write_no_more(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def is_unread() -> bool:
    """Whether whoever reads the results has gone: a write has failed, or the next one would."""
    return isinstance(sys.stdout, CleanStream) and (sys.stdout.is_unread or _is_broken(sys.stdout))


def _is_broken(stream: CleanStream) -> bool:
    """Whether a stream is a pipe whose other end is closed."""
    looking = select.poll()
    try:
        looking.register(stream.fileno(), 0)
    except OSError:  # it is not a file
        return False
    return any(event & select.POLLERR for _, event in looking.poll(0))


@contextmanager
def clean_streams(clean: Callable[[str], str]) -> Iterator[None]:
    """Nothing that is printed meanwhile has a secret in it."""
    out, err = (
        CleanStream(sys.stdout, clean, BrokenPipeError),
        CleanStream(sys.stderr, clean, OSError, is_for_people=True),
    )
    with redirect_stdout(cast(TextIO, out)), redirect_stderr(cast(TextIO, err)):
        try:
            yield
        finally:
            out.flush()
            err.flush()


def steer(stream: TextIO, text: str) -> None:
    """Steer a terminal, which nobody but the program itself may."""
    if isinstance(stream, CleanStream):
        stream.steer(text)
    else:
        print(text, end="", file=stream, flush=True)


class Progress:
    """Tells on stderr, line by line, what a run does; on a terminal also what it waits for and what it has spent.

    A kind may tell of its runs in words of its own; then the lines that change are several: how far the run has come,
    and what everybody says who is at work. `whole` texts are told where that was asked for.
    """

    def __init__(self, *, whole: bool = False) -> None:
        self._live, self._whole = is_able(sys.stderr), whole
        self._since = time.monotonic()
        self._waiting: tuple[str, ...] = ()
        self._agents: tuple[str, ...] = ()
        self._standing = ""
        self._said: dict[str, str] = {}
        self._seen: dict[str, int] = {}
        self._account: Callable[[], Account] = lambda: Account((), 0)
        self._drawn = 0

    @property
    def hears(self) -> bool:
        """Whether what a model says is shown as it says it; only a terminal shows that."""
        return self._live

    def __call__(self, news: News) -> None:
        """Something happened."""
        match news:
            case Committed():
                self._show(news)
            case Said(agent=agent, piece=piece):
                self._said[agent] = (self._said.get(agent, "") + piece)[-HEARD:] if piece else ""
                self._draw()

    def _show(self, news: Committed) -> None:
        run, entry, kind = news.run, news.entry, kind_of(news.machine)
        self.clear()
        if entry.seq == 0:
            print(f"run {run}", file=sys.stderr)
        if entry.seq - 1 > (last := self._seen.get(run, entry.seq - 1)):
            print(_elsewhere(run, range(last + 1, entry.seq)), file=sys.stderr)
        self._seen[run] = entry.seq
        lines = kind.told(news, whole=self._whole)
        width = shutil.get_terminal_size().columns if self._live and not self._whole else 0
        for line in lines if lines is not None else ():
            print(_painted_line(line, width), file=sys.stderr)
        if lines is None:
            print(_format_news(news), file=sys.stderr)
        self._standing = kind.standing(news)
        self._said = {agent: text for agent, text in self._said.items() if self._standing and agent in news.awaited}
        self._waiting, self._agents = news.awaited, news.agents
        self._since, self._account = time.monotonic(), lambda: news.account(time.time())
        self._draw()

    async def tick(self) -> None:
        """Keep the lines up to date that say what is waited for."""
        while self._live:
            await asyncio.sleep(0.5)
            self._draw()

    def _draw(self) -> None:
        if self._live and (self._agents if self._standing else self._waiting):
            self.clear()
            width = max(1, shutil.get_terminal_size().columns - 8)
            seconds = time.monotonic() - self._since
            lines = [*(self._standing_lines(seconds) if self._standing else self._line(seconds))]
            shown = "\n".join(paint(f"       {shorten(line, width)}", "dim", sys.stderr) for line in lines)
            self._drawn = len(lines)
            steer(sys.stderr, NO_WRAP)
            print(shown, end="", file=sys.stderr)
            steer(sys.stderr, f"\r{WRAP}")

    def _line(self, seconds: float) -> Iterator[str]:
        said = next((text for agent, text in self._said.items() if text and agent in self._waiting), "")
        told = f": …{shorten(said, HEARD)}" if said else f", {self._account()}"
        yield f"… {shorten(', '.join(self._waiting), 40)} ({seconds:.0f} s){told}"

    def _standing_lines(self, seconds: float) -> Iterator[str]:
        account = self._account()
        spent = " · ".join(f"{amount} {name}" for name, amount in account.amounts().items() if name != "seconds")
        yield " · ".join(filter(None, (self._standing, spent, duration_of(account.seconds or 0))))
        agents = list(dict.fromkeys(self._agents))
        for agent in agents[:AT_WORK]:
            said = _JSON_MARKS.sub("", self._said.get(agent, ""))
            yield f"{agent} …{shorten(said, HEARD)}" if said else f"{agent} thinks ({seconds:.0f} s)"
        if len(agents) > AT_WORK:
            yield f"and {len(agents) - AT_WORK} more"

    def clear(self) -> None:
        """Take those lines back."""
        if self._live:
            up = f"\x1b[{self._drawn - 1}A" if self._drawn > 1 else ""
            rest = "\x1b[J" if self._drawn > 1 else "\x1b[2K"
            steer(sys.stderr, f"\r{up}{rest}\r" if up else f"{rest}\r")
            self._drawn = 0

    def notice(self, text: str) -> None:
        """A notice that does not run into those lines."""
        self.clear()
        notice(text)


def _painted_line(line: Line, width: int = 0) -> str:
    """A line in the words of a kind, cut to a width where there is one; what goes somewhere stands further out."""
    goes = line.head.startswith("→")
    if width:
        line = Line(line.head, shorten(line.text, max(20, width - columns_of(line.head) - 10)))
    head = paint(printable(line.head), "bold" if goes else "cyan", sys.stderr)
    text = harmless(line.text).replace("\n", "\n         ")
    text = paint(text, "dim", sys.stderr) if goes else text
    return f"{'' if goes else '       '}{head}" + (f"{' ' if goes or not line.head else ': '}{text}" if text else "")


def _elsewhere(run: str, missing: range) -> str:
    """A line in the place of entries that came between two of ours."""
    numbers = f"{missing[0]}" if len(missing) == 1 else f"{missing[0]}–{missing[-1]}"
    return f"{numbers:>5}  " + paint(f"written by another process; `moot show {run}` tells", "dim", sys.stderr)


def log(news: News) -> None:
    """Tell on stderr what many runs do, a line each."""
    if isinstance(news, Committed):
        print(f"{news.run} {_format_news(news).lstrip()}", file=sys.stderr)


def _format_news(news: Committed) -> str:
    """What was committed, in one line; what a child has done carries its name."""
    entry, name = news.plain, news.machine.name if news.record.parent else ""
    ended = ended_as(entry.get("status", ""), entry["to"], news.record.bad_ends)
    if ended == "done" and (end := end_of(news.record.source, news.head.snapshot.data)) is not None and end.is_bad:
        ended = "failed"
    return format_entry(entry, sys.stderr, name, ended)


def format_entry(entry: Mapping[str, Any], stream: TextIO, child: str = "", ended: str = "") -> str:
    """An entry of a journal in one line: number, the child whose entry it is, where from, where to, why.

    `ended` is how the run ended, where the entry is its last and does not know that its end is a bad one.
    """
    before, after = " + ".join(entry["from"]), " + ".join(entry["to"])
    way = printable(_path(entry) or (after if not before or before == after else f"{before} → {after}"))
    note = paint(printable(f"  ignored: {entry['ignored']}"), "dim", stream) if "ignored" in entry else ""
    if "forgotten" in entry:
        note += paint("  its texts were forgotten", "dim", stream)
    if "status" in entry:
        reason = f": {harmless(entry['reason'])}" if "reason" in entry else ""
        note += f"  {status(ended or entry['status'], stream)}{reason}"
    happening = format_event(entry["event"], has_room="reason" not in entry)
    whose = f"{printable(child)}: " if child else ""
    return f"{entry['seq']:>5}  {whose}{paint(way, 'bold', stream)}  {happening}{note}"


def _path(entry: Mapping[str, Any]) -> str:
    """The way that a run took through states that it left at once, and events of its own; "" where it took one step."""
    raised, after = list(entry.get("raised", ())), " + ".join(entry["to"])
    states = [row.rpartition("/")[0] for row in entry["taken"]]
    if raised:
        steps = zip(states[-len(raised) :], raised, strict=False)
        return " ".join([*(f"{state} –{event}→" for state, event in steps), after])
    way = [state for state, _ in groupby((*states, after))]
    return " → ".join(way) if len(entry["to"]) == 1 and len(way) > 2 else ""


def format_event(event: Mapping[str, Any], *, has_room: bool) -> str:
    """An event of a journal in a few words; where there is room, with the whole reason of what went wrong."""
    who = event.get("agent") or event.get("tool") or ""
    said = event.get("text") or event.get("reason") or event.get("resource") or ""
    if not said and event.get("value") is not None:
        said = json.dumps(event["value"], ensure_ascii=False)
    width = REASON if has_room and said == event.get("reason") else SAID
    parts = (event["name"], who, shorten(said, width), *map(_format_call, event.get("calls") or ()))
    return " ".join(part for part in parts if part)


def _format_call(call: Any) -> str:
    """A call of a tool in a reply, with what it was called with: what an agent wants, or what it decided."""
    if not isinstance(call, Mapping) or not isinstance(call.get("tool"), str):
        return ""
    given = call.get("arguments")
    values = given.items() if isinstance(given, Mapping) else ()
    shown = ", ".join(f"{name}: {value if isinstance(value, str) else json.dumps(value)}" for name, value in values)
    return f"{printable(call['tool'])}({shorten(shown, SAID)})"


def shorten(text: str, width: int = SAID) -> str:
    """A text on one line, cut where it takes more columns than there are."""
    line = printable(" ".join(text.split()))
    if columns_of(line) <= width:
        return line
    end, taken = 0, 1
    while (taken := taken + columns_of(line[end])) <= width:
        end += 1
    return line[:end] + "…"


def columns_of(text: str) -> int:
    """How many columns of a terminal a text takes: an emoji or a Chinese character takes two, a combining mark none.

    Every character counts for itself. Of a sequence that some terminals join into one sign, this is the most.
    """
    if text.isascii():
        return len(text)
    from wcwidth import wcwidth  # its tables take longer to load than all the rest

    return sum(max(0, wcwidth(letter)) for letter in text)


def pad(text: str, width: int, *, left: bool = False) -> str:
    """A text filled up with spaces to so many columns, behind it or to the left of it."""
    spaces = " " * (width - columns_of(text))
    return spaces + text if left else text + spaces
