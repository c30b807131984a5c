"""Counts what all processes of a command take together: a control group for each command, gone when it ends.

Only root may make such groups. For root they are the only thing that bounds the number of processes, as the kernel
does not hold root to RLIMIT_NPROC in whatever user namespace. Both versions of control groups are known: in the first
every controller has a tree of its own, in the second one tree has all, and a group's parent has to pass them on.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import count
from pathlib import Path

from moothall.kernel.frozen import Frozen
from moothall.sandboxes.limits import Limits

CONTROLLERS = ("memory", "pids")
PREFIX = "moothall-"
_numbers = count()


class Trees(Frozen):
    """Where groups can be made: the folder above them for each controller."""

    folders: Mapping[str, Path]
    version: int = 1


class Group:
    """The control groups of one command."""

    def __init__(self, trees: Trees, limits: Limits) -> None:
        name = f"{PREFIX}{os.getpid()}-{next(_numbers)}"
        self._trees = trees
        self._folders = {controller: folder / name for controller, folder in trees.folders.items()}
        for folder in set(self._folders.values()):
            folder.mkdir()
        for controller, folder in self._folders.items():
            for file, value in _settings(controller, trees.version, limits).items():
                if (folder / file).exists():
                    (folder / file).write_text(str(value))

    @property
    def counts(self) -> frozenset[str]:
        """The controllers that this group has."""
        return frozenset(self._folders)

    def add(self, pid: int) -> None:
        """Put a process under the limits, with all that it will start."""
        for folder in set(self._folders.values()):
            (folder / "cgroup.procs").write_text(str(pid))

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel had to end a process of the group."""
        if "memory" not in self._folders:
            return False
        file = self._folders["memory"] / ("memory.oom_control" if self._trees.version == 1 else "memory.events")
        with suppress(OSError):
            return any(line.startswith("oom_kill ") and line != "oom_kill 0" for line in file.read_text().splitlines())
        return False

    async def remove(self) -> None:
        """Remove the groups; their processes have ended, but the kernel may take a moment to notice."""
        for folder in set(self._folders.values()):
            for _ in range(100):
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    await asyncio.sleep(0.01)


def _settings(controller: str, version: int, limits: Limits) -> Mapping[str, int]:
    if controller == "pids":
        return {"pids.max": limits.processes}
    if version == 1:
        return {"memory.limit_in_bytes": limits.memory_bytes, "memory.memsw.limit_in_bytes": limits.memory_bytes}
    return {"memory.max": limits.memory_bytes, "memory.swap.max": 0}


@lru_cache(maxsize=1)
def usable_trees() -> Trees:
    """Where this process can make groups; what others left behind that have died is removed."""
    if os.geteuid() != 0:
        return Trees({})
    proc = Path("/proc/self")
    try:
        trees = find_trees((proc / "mountinfo").read_text(), (proc / "cgroup").read_text())
    except OSError:
        return Trees({})
    for folder in set(trees.folders.values()):
        _sweep(folder)
    return trees


def find_trees(mounts: str, memberships: str) -> Trees:
    """Where groups can be made, from what the kernel tells a process about its mounts and its groups."""
    own = dict(_memberships(memberships))
    found = {}
    for kind, root, point, options in _mounts(mounts):
        for controller in CONTROLLERS:
            if kind == "cgroup" and controller in options and controller in own:
                found[controller] = _below(Path(point), root, own[controller])
    usable = {controller: folder for controller, folder in found.items() if os.access(folder, os.W_OK)}
    if usable:
        return Trees(usable)
    for kind, _, point, _ in _mounts(mounts):
        passed = _words(Path(point) / "cgroup.subtree_control") if kind == "cgroup2" else ()
        if all(controller in passed for controller in CONTROLLERS) and os.access(point, os.W_OK):
            return Trees(dict.fromkeys(CONTROLLERS, Path(point)), 2)
    return Trees({})


def _mounts(text: str) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(), after.split()
        if len(fields) > 4 and len(kinds) > 2 and kinds[0].startswith("cgroup"):
            yield kinds[0], fields[3], fields[4], tuple(kinds[2].split(","))


def _memberships(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        yield from ((controller, path) for controller in controllers.split(","))


def _below(point: Path, root: str, path: str) -> Path:
    """The folder of a group below a mount, which may show only a part of the tree."""
    inside = path.removeprefix(root) if path.startswith(root) else ""
    folder = point / inside.lstrip("/")
    return folder if folder.is_dir() else point


def _words(file: Path) -> tuple[str, ...]:
    with suppress(OSError):
        return tuple(file.read_text().split())
    return ()


def _sweep(folder: Path) -> None:
    for group in folder.glob(f"{PREFIX}*"):
        owner = group.name.removeprefix(PREFIX).split("-")[0]
        if not os.path.exists(f"/proc/{owner}"):
            with suppress(OSError):
                group.rmdir()
