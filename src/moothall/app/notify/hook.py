"""Tells the world that a run waits for a person: a POST to an address, or a command that reads the same JSON.

- The run never waits for it. What is to be told goes into a queue; threads that die with the process deliver it.
- A question is told once per process. Whoever restarts may tell it again, once the run moves.
- What goes wrong becomes one notice, without the address's path or the command's arguments: they may hold a secret.
- Whom to tell comes from the person who starts the command, never from a machine.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryFile
from typing import Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from moothall.app.runs.news import Committed, News
from moothall.app.runs.outcome import Question, questions_of
from moothall.errors import DefinitionError
from moothall.kernel.codec import encode
from moothall.runtime.journal import Head, RunId
from moothall.runtime.ports import Clean, as_it_is

THREADS = 4
PASSING = frozenset((408, 425, 429))
OPERATORS = frozenset(("|", "||", "&", "&&", ";", "<", ">", ">>"))
NO_SHELL = "no shell reads it; let one:  sh -c 'COMMAND'"


@dataclass(frozen=True, slots=True)
class Patience:
    """How many seconds whoever is told may take, how often an address is tried, and how long the end may take."""

    answer: float = 10.0
    command: float = 30.0
    tries: int = 3
    pause: float = 0.4
    end: float = 5.0


class Ear(Protocol):
    """Whoever is told."""

    name: str

    def tell(self, body: bytes) -> str:
        """Why it could not be told; "" where it was."""
        ...

    def stop(self) -> None:
        """Leave it at that: the command ends."""
        ...


class OnWait:
    """Tells someone of every question as it is asked."""

    def __init__(
        self,
        target: str,
        notice: Callable[[str], None],
        patience: Patience | None = None,
        clean: Clean = as_it_is,
    ) -> None:
        self._clean = clean
        self._ear = ear_of(target, patience or Patience())
        self._notice = notice
        self._end = (patience or Patience()).end
        self._told: dict[RunId, set[str]] = {}
        self._queue: SimpleQueue[bytes] = SimpleQueue()
        self._threads = 0
        self._open = 0
        self._ended = False
        self._news = threading.Condition()

    def __call__(self, news: News) -> None:
        """A step was committed; what it asks is told."""
        if not isinstance(news, Committed):
            return
        run, head = news.run, news.head
        asked = {question.id: question for question in questions_of(run, head)}
        fresh = [question for name, question in asked.items() if name not in self._told.get(run, ())]
        self._told[run] = set(asked)
        if not asked:
            del self._told[run]
        if fresh:
            body = self._clean(waiting_message(run, news.machine.name, head, fresh))
            self._send(json.dumps(body, ensure_ascii=False).encode())

    def _send(self, body: bytes) -> None:
        with self._news:
            self._open += 1
            is_short = self._threads < min(THREADS, self._open)
            self._threads += is_short
        self._queue.put(body)
        if is_short:
            threading.Thread(target=self._deliver, name="moothall-hook", daemon=True).start()

    def _deliver(self) -> None:
        while True:
            why = self._ear.tell(self._queue.get())
            with self._news:
                self._open -= 1
                self._news.notify_all()
                if why and not self._ended:
                    self._notice(f"{self._ear.name} was not told that a run waits: {why}")

    def finish(self) -> None:
        """Give what is under way a moment; then the command ends all the same."""
        try:
            with self._news:
                self._ended = not self._news.wait_for(lambda: self._open == 0, self._end)
            if self._ended:
                self._notice(f"{self._ear.name} was not told that a run waits: it takes too long, and the command ends")
        finally:
            self._ear.stop()


def waiting_message(run: RunId, machine: str, head: Head, asked: list[Question]) -> dict[str, Any]:
    """What is told of a run that waits."""
    return {
        "run": run,
        "machine": machine,
        "status": "waiting",
        "states": list(head.snapshot.active),
        "questions": [
            {
                "id": question.id,
                "prompt": question.prompt,
                "schema": encode(question.schema),
                "due": question.due,
                "who": question.who,
            }
            for question in asked
        ],
    }


def ear_of(target: str, patience: Patience) -> Ear:
    """Whom a setting names: an address, or a command."""
    if target.lower().startswith(("http://", "https://")):
        return Address(target, patience)
    return Command(target, patience)


class _NoRedirect(HTTPRedirectHandler):
    """A redirected POST would arrive as a GET, or at a stranger's."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Address:
    """An address that gets a POST."""

    def __init__(self, url: str, patience: Patience) -> None:
        try:
            parts = urlsplit(url)
            host = f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname
        except ValueError as error:
            raise DefinitionError(f"the address to call when a run waits is not valid: {error}") from error
        if not host or parts.username is not None:
            raise DefinitionError("the address to call when a run waits must be http(s)://HOST/…, without a password")
        self.name = f"{parts.scheme}://{host}"
        self._url, self._patience = url, patience
        self._opener = build_opener(_NoRedirect)

    def tell(self, body: bytes) -> str:
        why, again = "", True
        for attempt in range(self._patience.tries):
            if attempt:
                time.sleep(self._patience.pause * 2 ** (attempt - 1))
            why, again = self._post(body)
            if not again:
                break
        return f"{why}, {self._patience.tries} attempts" if again else why

    def _post(self, body: bytes) -> tuple[str, bool]:
        """Why it went wrong, and whether to try again."""
        headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "moothall"}
        try:
            with self._opener.open(Request(self._url, body, headers), timeout=self._patience.answer):
                return "", False
        except HTTPError as error:
            with error:
                return f"it answers {error.code}", error.code >= 500 or error.code in PASSING
        except URLError as error:
            return _sentence(error.reason), True
        except (OSError, HTTPException, ValueError) as error:
            return _sentence(error), True

    def stop(self) -> None:
        """Nothing is left behind."""


class Command:
    """A command that reads what is told from its stdin. Where it fails, the last line of its stderr is shown."""

    def __init__(self, line: str, patience: Patience) -> None:
        try:
            self._arguments = shlex.split(line)
        except ValueError as error:
            raise DefinitionError(f"the command to call when a run waits cannot be read: {error}") from error
        if not self._arguments:
            raise DefinitionError("the command to call when a run waits is empty")
        if mark := next((word for word in self._arguments if word in OPERATORS), ""):
            raise DefinitionError(f"the command to call when a run waits has {mark!r} in it, and {NO_SHELL}")
        self.name = Path(self._arguments[0]).name
        self._patience = patience
        self._running: set[int] = set()

    def tell(self, body: bytes) -> str:
        with TemporaryFile() as given, TemporaryFile() as said:  # pipes would wait for the command's own children
            given.write(body)
            given.seek(0)
            try:
                process = subprocess.Popen(
                    self._arguments, stdin=given, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True
                )
            except (OSError, ValueError) as error:
                hint = f"; {NO_SHELL}" if self._arguments[0][0] in "~$" else ""
                return f"it cannot be started: {_sentence(error)}{hint}"
            why = self._waited_for(process)
            said.seek(max(0, said.seek(0, os.SEEK_END) - 2000))
            last = said.read(2000).decode(errors="replace").strip().rpartition("\n")[2][:200]
        return f"{why}: {_printable(last)}" if why and last else why

    def _waited_for(self, process: subprocess.Popen[bytes]) -> str:
        self._running.add(process.pid)
        try:
            code = process.wait(self._patience.command)
            return f"it exits with {code}" if code else ""
        except subprocess.TimeoutExpired:
            return f"it took more than {self._patience.command:g} seconds"
        finally:
            _end(process.pid)
            process.wait()
            self._running.discard(process.pid)

    def stop(self) -> None:
        for group in tuple(self._running):
            _end(group)


def _end(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _sentence(error: object) -> str:
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)
