"""Plays one case of a file of escapes or controls through `moot sandbox`, and tells what did not hold.

A case is played on a stage of its own: a workspace with a sibling, a home, a folder far away, listeners on the loopback
and a secret in the environment. Names between at signs in its lines stand for these.
"""

import fcntl
import json
import os
import pty
import secrets
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MOOT = Path(sys.executable).with_name("moot")
BWRAP = shutil.which("bwrap")
SHARED = Path(__file__).parents[2] / ".." / "shared" / "hostile"
LONGEST = 150
LEAST_OUTPUT = 1_000_000
SETTLED = 2.0

Case = Mapping[str, Any]


def cases(file: Path) -> list[Case]:
    """The cases of a file; none where it is missing."""
    found: list[Case] = json.loads(file.read_text("utf-8")) if file.exists() else []
    return found


@dataclass
class Listener:
    """Somebody who listens, and what was heard."""

    bound: socket.socket
    heard: list[bytes] = field(default_factory=list)

    def start(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with suppress(OSError):
            if self.bound.type == socket.SOCK_DGRAM:
                while True:
                    self.heard.append(self.bound.recv(100))
            self.bound.listen()
            while True:
                connection, _ = self.bound.accept()
                self.heard.append(b"connected")
                connection.close()


@dataclass
class Answer:
    """What the door said, and what is known beside it."""

    code: int
    out: str
    err: str
    seconds: float
    terminal: bytes = b""

    @property
    def result(self) -> dict[str, Any] | None:
        with suppress(ValueError):
            found = json.loads(self.out)
            return found if isinstance(found, dict) else None
        return None


class Stage:
    """Where one case is played."""

    def __init__(self, case: Case, folder: Path, closing: ExitStack) -> None:
        self.case = case
        self.canary = f"CANARY-{secrets.token_hex(12)}"
        self.mark = f"mark{secrets.token_hex(8)}"
        up, far, self.home = folder / "up", folder / "far", folder / "home"
        self.ws, self.out = up / "ws", up / "out"
        for place in (self.ws, self.out, far, self.home):
            place.mkdir(parents=True)
        self.listeners = {name: closing.enter_context(listening(name, folder)) for name in FAMILIES}
        self.bystander = closing.enter_context(standing_by(self.canary)) if case.get("bystander") else None
        ports = {name: str(self.listeners[name].bound.getsockname()[1]) for name in ("tcp", "tcp6", "udp")}
        self.names = {
            "WS": self.ws,
            "UP": up,
            "OUT": self.out,
            "FAR": far,
            "HOME": self.home,
            "BIN": MOOT.parent,
            "TCP": ports["tcp"],
            "TCP6": ports["tcp6"],
            "UDP": ports["udp"],
            "UNIX": self.listeners["unix"].bound.getsockname(),
            "ABSTRACT": self.listeners["abstract"].bound.getsockname()[1:].decode(),
            "MARK": self.mark,
            "CANARY": self.canary,
            "BYSTANDER": self.bystander.pid if self.bystander else 0,
        }

    def filled(self, text: str) -> str:
        for name, value in self.names.items():
            text = text.replace(f"@{name}@", str(value))
        return text

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MOOTHALL_")}
        return {
            **kept,
            "HOME": str(self.home),
            "XDG_STATE_HOME": "",
            "SSH_AUTH_SOCK": str(self.names["UNIX"]),
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={self.names['UNIX']}",
            **dict.fromkeys(("SECRET", "OPENAI_API_KEY", "MY_VALUE", "DATABASE_URL", "LD_CANARY"), self.canary),
        }

    def shell(self, lines: list[str], *, check: bool) -> None:
        for line in lines:
            environment = {**os.environ, "HOME": str(self.home)}
            subprocess.run(["sh", "-c", self.filled(line)], cwd=self.out, check=check, env=environment, timeout=60)

    def play(self) -> list[str]:
        """What did not hold, in words."""
        self.shell(self.case.get("setup", []), check=True)
        watches = [{key: self._value(value) for key, value in watch.items()} for watch in self.case.get("watch", [])]
        before = {watch["path"]: state(watch["path"]) for watch in watches if watch["kind"] == "file_unchanged"}
        answer = self.knock()
        try:
            if "Traceback" in answer.err:
                return [f"a traceback: {answer.err}"]
            if self.case["expect"] == "works":
                return list(self._wanted(answer))
            return list(self._broken(watches, before, answer))
        finally:
            self.shell(self.case.get("teardown", []), check=False)

    def _value(self, value: Any) -> Any:
        return self.filled(value) if isinstance(value, str) else value

    def knock(self) -> Answer:
        """Go through the door."""
        patience = ["--timeout", str(self.case["timeout"])] if "timeout" in self.case else []
        command = [str(MOOT), "sandbox", *patience, "--json", "--", "sh", "-c", self.filled(self.case["command"])]
        with ExitStack() as closing:
            master = closing.enter_context(terminal()) if self.case.get("tty") else None
            leaked = os.open(self.out, os.O_RDONLY) if self.case.get("leak") else None
            waiting, never = os.pipe()
            for number in (waiting, never, *(() if leaked is None else (leaked,))):
                closing.callback(os.close, number)
            out, err = (closing.enter_context(tempfile.TemporaryFile()) for _ in range(2))
            slave = None if master is None else master[1]
            begun = time.monotonic()
            process = subprocess.Popen(
                command,
                cwd=self.ws,
                env=self.environment(),
                stdin=waiting,
                stdout=out,
                stderr=err,
                pass_fds=[number for number in (leaked, slave) if number is not None],
                start_new_session=True,
                preexec_fn=None if slave is None else lambda: take_terminal(slave),
            )
            try:
                code = process.wait(LONGEST)
            finally:
                process.kill()
                process.wait()
            seconds = time.monotonic() - begun
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
            return Answer(code, texts[0], texts[1], seconds, master[0]() if master else b"")

    def _wanted(self, answer: Answer) -> Iterator[str]:
        result = answer.result
        if result is None:
            yield f"refused with {answer.code}: {answer.err}"
            return
        for key, value in self.case["want"].items():
            if key == "files":
                for name, content in value.items():
                    got = (self.ws / name).read_text("utf-8") if (self.ws / name).exists() else None
                    if got != content:
                        yield f"{name} holds {got!r}, not {content!r}"
            elif key.endswith("_length"):
                if len(result[key.removesuffix("_length")]) != value:
                    yield f"{key} is {len(result[key.removesuffix('_length')])}, not {value}"
            elif result[key] != value:
                yield f"{key} is {result[key]!r}, not {value!r}; stderr: {result['stderr']!r}"

    def _broken(self, watches: list[dict[str, Any]], before: dict[str, Any], answer: Answer) -> Iterator[str]:
        result = answer.result
        if result is None and answer.code not in (1, 2, 4):
            yield f"neither a result nor a refusal: {answer.code} {answer.err}"
        if result is not None and result["level"] == "none":
            yield "nothing protected the run"
        for watch in watches:
            if not self._holds(watch, before, answer):
                yield f"{watch} does not hold; {answer.code} {answer.out[:500]} {answer.err[:500]}"

    def _holds(self, watch: dict[str, Any], before: dict[str, Any], answer: Answer) -> bool:
        result = answer.result
        match watch["kind"]:
            case "file_absent":
                time.sleep(watch.get("after", 0))
                return not os.path.lexists(watch["path"])
            case "file_unchanged":
                return bool(state(watch["path"]) == before[watch["path"]])
            case "no_connection":
                return not self.listeners[watch["to"]].heard
            case "no_process":
                time.sleep(SETTLED)
                return not processes_with(watch["mark"])
            case "output_lacks":
                text = watch["text"]
                shapes = [text]
                if text == self.canary:
                    shapes += [text[::-1], text.encode().hex(), text[::-1].encode().hex()]
                return not any(shape in said for shape in shapes for said in (answer.out, answer.err))
            case "finishes_within":
                return answer.seconds <= float(watch["seconds"])
            case "output_at_most":
                size = len(answer.out.encode()) + len(answer.err.encode())
                return size <= int(watch["bytes"]) and (result is None or size >= LEAST_OUTPUT)
            case "says_killed":
                return result is None or result["killed"] is True
            case "bystander_alive":
                return self.bystander is not None and self.bystander.poll() is None
            case "tty_silent":
                return str(watch["text"]).encode() not in answer.terminal
            case kind:
                raise AssertionError(f"{kind} is not known here")


FAMILIES = {
    "tcp": (socket.AF_INET, socket.SOCK_STREAM),
    "tcp6": (socket.AF_INET6, socket.SOCK_STREAM),
    "udp": (socket.AF_INET, socket.SOCK_DGRAM),
    "unix": (socket.AF_UNIX, socket.SOCK_STREAM),
    "abstract": (socket.AF_UNIX, socket.SOCK_STREAM),
}


@contextmanager
def listening(name: str, folder: Path) -> Iterator[Listener]:
    """A listener of this kind."""
    family, kind = FAMILIES[name]
    with socket.socket(family, kind) as bound, tempfile.TemporaryDirectory(prefix="s", dir="/tmp") as short:
        if name == "unix":
            bound.bind(f"{short}/socket")  # a path of a socket is a short one
        elif name == "abstract":
            bound.bind(f"\0moot-{secrets.token_hex(6)}")
        else:
            bound.bind(("::1" if name == "tcp6" else "127.0.0.1", 0))
        listener = Listener(bound)
        listener.start()
        yield listener
        with suppress(OSError):
            bound.shutdown(socket.SHUT_RDWR)


@contextmanager
def standing_by(canary: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has nothing to do with the case, and the secret in its command line."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", canary]) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def terminal() -> Iterator[tuple[Any, int]]:
    """A terminal: what it has seen, and its other end."""
    master, slave = pty.openpty()
    os.set_blocking(master, False)

    def seen() -> bytes:
        with suppress(OSError):
            return os.read(master, 100_000)
        return b""

    try:
        yield seen, slave
    finally:
        os.close(master)
        os.close(slave)


def take_terminal(slave: int) -> None:
    """Make a terminal the controlling one of this session."""
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)


def state(path: str) -> Any:
    """Kind, mode and content of what is at a path."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return None
    if stat.S_ISREG(mode):
        return mode, Path(path).read_bytes()
    if stat.S_ISLNK(mode):
        return mode, os.readlink(path)
    return mode, sorted(os.listdir(path)) if stat.S_ISDIR(mode) else None


def processes_with(mark: str) -> list[str]:
    """Ids of processes that have a mark in their command line or environment."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            for part in ("cmdline", "environ"):
                with suppress(OSError):
                    if mark.encode() in (process / part).read_bytes():
                        found.append(process.name)
    return found


def played(case: Case, folder: Path) -> list[str]:
    """What did not hold of one case."""
    with ExitStack() as closing:
        return Stage(case, folder, closing).play()
