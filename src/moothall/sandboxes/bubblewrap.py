"""Runs a command in bubblewrap: namespaces of its own, the system read-only, no network, limits, nothing left behind.

    we ── bwrap ── first process ── the command ── …
                   (of its pid namespace)

bwrap gets a clean environment to begin with, since its first process shows it to all in /proc/1/environ. It tells the
id of the first process and waits; that process is put under limits before anything of the command exists. When the
command has ended, or a limit is reached, the first process is killed, and with it the kernel kills all that is in its
namespace before anybody hears of its end. What a child of the command writes until then is part of the result; once
the result is there, nothing is written any more. If this process dies, bwrap dies with it, and so does the rest.

bwrap reports the command's exit code apart from its own. Where it reports none the sandbox could not be made: that is
`SandboxUnavailable`, never a result of the command.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from subprocess import DEVNULL, PIPE, run

from moothall.agents.workspace import KILLED, Execution, SandboxUnavailable
from moothall.errors import Refused
from moothall.kernel.frozen import Frozen
from moothall.sandboxes.cgroups import Group, usable_trees
from moothall.sandboxes.limits import Limits, limit_process
from moothall.sandboxes.output import Output
from moothall.sandboxes.seccomp import seccomp_program
from moothall.sandboxes.shield import Shield, sockets
from moothall.sandboxes.view import ENVIRONMENT, check_workspace, system_files, system_options

PLACES = "/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin"
LEVEL = "bubblewrap"
GLANCE = 0.25
"""How often the disk is looked at, in seconds."""
START = 30.0
"""How long a sandbox may take to be made, in seconds."""
MOST_SOCKETS = 1000
"""How many sockets of a workspace are covered; bubblewrap takes a limited number of options."""
LIMIT_SIGNALS = (signal.SIGXCPU, signal.SIGXFSZ)
WAY_OUT = "run commands without protection: --sandbox none"
ISOLATION = (
    *("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
    *("--new-session", "--die-with-parent", "--cap-drop", "ALL", "--hostname", "sandbox"),
)
INNER = ("/bin/sh", "-c", 'exec "$@"', "sh")
"""Runs the command in its own place, and gives the exit codes that a shell gives for what is not a program."""


class Bubblewrap(Frozen):
    """A sandbox; `readable` are folders that commands may read besides the system's, `hidden` is in no workspace."""

    limits: Limits = Limits()
    readable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    program: str = ""

    @property
    def level(self) -> str:
        """What protects the machine."""
        return LEVEL

    async def probe(self, workspace: Path) -> None:
        """Find out whether commands can be protected here; `SandboxUnavailable` says why not."""
        await self.run(["true"], workspace=workspace)

    async def run(self, command: Sequence[str], *, workspace: Path, within: float | None = None) -> Execution:
        """Run one command in a workspace; nothing of it outlives the call."""
        program = self.program or find_program()
        place = check_workspace(workspace, self.hidden)
        masked = await asyncio.to_thread(lambda: tuple(sockets(place)))
        if len(masked) > MOST_SOCKETS:
            raise Refused(f"{place} holds {len(masked)} sockets, more than can be kept from commands; remove them")
        shield = Shield(place)
        try:
            options = self._options(program, place, shield, masked)
            async with _group(self.limits) as group:
                inside = _Inside(self.limits, place, group)
                wall = self.limits.wall if within is None else within
                return replace(await inside.run([program, *options], command, wall), held=shield.held)
        finally:
            shield.close()

    def _options(self, program: str, workspace: Path, shield: Shield, masked: Sequence[Path]) -> list[str]:
        options = [*ISOLATION, *(["--disable-userns"] if _knows(program, "--disable-userns") else [])]
        options += system_options(self.limits, self.readable)
        options += ["--bind", str(workspace), str(workspace), *shield.options]
        for path in masked:
            options += ["--ro-bind", os.devnull, str(path)]
        return [*options, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(workspace)]


def find_program() -> str:
    """Where bubblewrap is."""
    program = shutil.which("bwrap", path=PLACES)
    if program is None:
        raise SandboxUnavailable(
            "bubblewrap is not installed; install the package bubblewrap (it needs Linux)", f", or {WAY_OUT}"
        )
    return program


@lru_cache(maxsize=8)
def _knows(program: str, option: str) -> bool:
    """Whether this bubblewrap has an option."""
    help_text = run([program, "--help"], stdin=DEVNULL, capture_output=True, env={}, timeout=START, check=False).stdout
    return option.encode() in help_text


@asynccontextmanager
async def _group(limits: Limits) -> AsyncIterator[Group]:
    """A control group for one command, which may be an empty one for users other than root."""
    trees = usable_trees()
    if os.geteuid() == 0 and "pids" not in trees.folders:
        raise SandboxUnavailable(
            "the number of processes of root cannot be limited here, because no control group can be made in "
            "/sys/fs/cgroup; run as another user, or make that folder writable",
            f", or {WAY_OUT}",
        )
    try:
        group = Group(trees, limits)
    except OSError as error:
        problem = f"no control group can be made: {error}; run as another user"
        raise SandboxUnavailable(problem, f", or {WAY_OUT}") from error
    try:
        yield group
    finally:
        await group.remove()


class _Inside:
    """One command on its way through the sandbox."""

    def __init__(self, limits: Limits, workspace: Path, group: Group) -> None:
        self._limits, self._workspace, self._group = limits, workspace, group
        self._output = Output(limits)
        self._first: int | None = None

    async def run(self, start: Sequence[str], command: Sequence[str], within: float) -> Execution:
        begun = time.monotonic()
        with _descriptors(start[1:]) as (passed, told, release):
            process = await _start(start[0], passed, command)
            assert process.stdout is not None
            assert process.stderr is not None
            reading = asyncio.gather(self._output.read(process.stdout), self._output.read(process.stderr))
            killed = False
            try:
                async with asyncio.timeout(START):
                    status = await _reader(told)
                    line = await status.readline()
                if self._limit(line):
                    with suppress(BrokenPipeError):  # the sandbox could not be made
                        os.write(release, b"x")
                    killed = await self._wait(process, within)
            except TimeoutError as error:
                problem = f"bubblewrap was not ready after {START:g} s; try again"
                raise SandboxUnavailable(problem, f", or {WAY_OUT}") from error
            finally:
                await self._end(process)
            stdout, stderr = await reading
            exit_code = _exit_code(await status.read())
        duration = time.monotonic() - begun
        if killed:
            return Execution(KILLED, stdout, stderr, duration, LEVEL, True)
        if exit_code is None:
            raise SandboxUnavailable(explain(stderr), f", or {WAY_OUT}")
        ended = exit_code - 128 in LIMIT_SIGNALS or (exit_code == KILLED and self._group.ran_out_of_memory())
        return Execution(exit_code, stdout, stderr, duration, LEVEL, ended)

    def _limit(self, line: bytes) -> bool:
        """Put the first process under limits; it is let go only if it is. There may be none: bubblewrap has failed."""
        try:
            pid = int(json.loads(line)["child-pid"])
        except (ValueError, KeyError):
            return False
        counts = self._group.counts
        try:
            self._first = os.pidfd_open(pid)
            self._group.add(pid)
            limit_process(pid, self._limits, counts_memory="memory" in counts, counts_processes="pids" in counts)
        except ProcessLookupError:
            return False
        except (OSError, ValueError) as error:
            problem = f"commands cannot be put under limits here: {error}"
            raise SandboxUnavailable(problem, f"; {WAY_OUT}") from error
        return True

    async def _wait(self, process: asyncio.subprocess.Process, within: float) -> bool:
        """Wait until the command ends or has to; whether it had to."""
        ending = asyncio.ensure_future(process.wait())
        overflowing = asyncio.ensure_future(self._output.overflow.wait())
        filling = asyncio.ensure_future(self._wait_for_full_disk())
        try:
            await asyncio.wait((ending, overflowing, filling), timeout=within, return_when=asyncio.FIRST_COMPLETED)
            return not ending.done()
        finally:
            for task in (ending, overflowing, filling):
                task.cancel()

    async def _wait_for_full_disk(self) -> None:
        free = _free_space(self._workspace)
        while free - _free_space(self._workspace) < self._limits.disk:  # noqa: ASYNC110 (a disk tells nobody)
            await asyncio.sleep(GLANCE)

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """Kill all that is left, and wait until it is gone."""
        if self._first is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            return
        try:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
            await process.wait()
            await _wait_readable(self._first)
        finally:
            os.close(self._first)


class _Passed:
    """The options of bwrap with the descriptors that they name; it gets them, and they are closed here."""

    def __init__(self, numbers: tuple[int, ...], options: tuple[str, ...]) -> None:
        self.numbers, self.options = numbers, options

    def close(self) -> None:
        while self.numbers:
            number, *rest = self.numbers
            os.close(number)
            self.numbers = tuple(rest)


@contextmanager
def _descriptors(options: Sequence[str]) -> Iterator[tuple[_Passed, int, int]]:
    """What bwrap reads its options from, tells its status to and waits for; then our ends of the last two."""
    told, tells = os.pipe()
    waits, release = os.pipe()
    texts = _text_descriptor(b"".join(option.encode(errors="surrogateescape") + b"\0" for option in options))
    numbers, named = [tells, waits, texts], ["--json-status-fd", str(tells), "--block-fd", str(waits)]
    for number, place in system_files():
        numbers.append(number)
        named += ["--perms", "0444", "--file", str(number), place]
    named += ["--args", str(texts)]
    if program := seccomp_program():
        numbers.append(_text_descriptor(program))
        named += ["--seccomp", str(numbers[-1])]
    passed = _Passed(tuple(numbers), tuple(named))
    try:
        yield passed, told, release
    finally:
        passed.close()
        os.close(release)
        with suppress(OSError):  # a reader has closed it
            os.close(told)


def _text_descriptor(text: bytes) -> int:
    number = os.memfd_create("moothall", os.MFD_CLOEXEC)
    os.write(number, text)
    os.lseek(number, 0, os.SEEK_SET)
    return number


async def _start(program: str, passed: _Passed, command: Sequence[str]) -> asyncio.subprocess.Process:
    """Start bubblewrap; nothing of our environment and no descriptor of ours goes with it, but those that it needs."""
    try:
        return await asyncio.create_subprocess_exec(
            program,
            *passed.options,
            "--",
            *INNER,
            *command,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            env=ENVIRONMENT,
            cwd="/",
            start_new_session=True,
            pass_fds=passed.numbers,
        )
    except OSError as error:
        if error.errno == errno.E2BIG:
            raise Refused("the command is too long; put it into a file and run that") from error
        raise SandboxUnavailable(f"{program} cannot be started: {error.strerror}", f"; {WAY_OUT}") from error
    finally:
        passed.close()


async def _reader(number: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(number), "rb", 0)
    )
    return reader


async def _wait_readable(number: int) -> None:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(number, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(number)


def _exit_code(status: bytes) -> int | None:
    for line in status.splitlines():
        with suppress(ValueError):
            told = json.loads(line)
            if "exit-code" in told:
                return int(told["exit-code"])
    return None


def _free_space(folder: Path) -> int:
    here = os.statvfs(folder)
    return here.f_bavail * here.f_frsize


def explain(said: str) -> str:
    """Why bubblewrap could not make a sandbox, and what helps."""
    reason = " ".join(said.split()) or "it said nothing"
    if any(word in reason for word in ("namespace", "uid map", "setting up", "not permitted", "No permissions")):
        remedy = (
            "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, "
            "kernel.apparmor_restrict_unprivileged_userns=0, or a container that permits them)"
        )
    else:
        remedy = "correct what it names"
    return f"bubblewrap cannot protect commands here: {reason}; {remedy}"
