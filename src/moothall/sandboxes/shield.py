"""Keeps `.git` and `moothall.toml` at the root of a workspace as they are, also where they do not exist.

Git and Moothall run what these files name, outside of any sandbox. What is there is mounted read-only over itself.
Where nothing is there, an empty folder takes the place while commands run: a mount needs something to lie on, git
passes by an empty `.git`, and Moothall takes no folder for settings. So nothing is left that anybody would read even
if this process is killed; the next command takes the folder over.

- A workspace without `.git` could itself be made to look like a bare repository, so `HEAD` is kept free as well.
- Removing a folder elsewhere also removes a mount on it here. So whoever uses a placeholder holds a lock on it, and
  only the last one removes it.
- A symbolic link cannot be mounted on, and could be replaced: the workspace is refused.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from moothall.errors import Refused

REPOSITORY = ".git"
SETTINGS = "moothall.toml"
HEAD = "HEAD"
MODE = 0o1500
"""The mode of a placeholder, which nobody gives to a folder that is meant."""
HEAD_LENGTH = 256


class Shield:
    """What protects one workspace while one command runs; close it afterwards."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._held: list[tuple[str, int]] = []
        self.options: list[str] = []
        try:
            for name in (REPOSITORY, SETTINGS, *(() if _has_repository(workspace) else (HEAD,))):
                self._protect(name)
        except BaseException:
            self.close()
            raise

    def _protect(self, name: str) -> None:
        path = self._workspace / name
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            return self._hold_place(name)
        if stat.S_ISLNK(mode):
            raise Refused(
                f"{path} is a symbolic link, which cannot be protected from commands; put a real file or folder there"
            )
        if stat.S_ISDIR(mode) and stat.S_IMODE(mode) == MODE:
            return self._hold_place(name)
        if name == HEAD and stat.S_ISDIR(mode):
            self.options += ["--bind", str(path), str(path)]
        elif name == HEAD and _names_commit(path):
            raise Refused(f"{self._workspace} looks like a bare repository; work in a checkout of it")
        elif stat.S_ISDIR(mode) or stat.S_ISREG(mode):
            self.options += ["--ro-bind", str(path), str(path)]
        else:
            self.options += ["--ro-bind", os.devnull, str(path)]
        return None

    def _hold_place(self, name: str) -> None:
        """Make a placeholder, or share that of another command, and hold it."""
        path = self._workspace / name
        for _ in range(100):
            try:
                with suppress(FileExistsError):
                    path.mkdir(MODE)
                    path.chmod(MODE)
                held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise Refused(f"{path} cannot be protected from commands: {error.strerror}") from error
            fcntl.flock(held, fcntl.LOCK_SH)
            if _is_same(path, held):
                self._held.append((name, held))
                self.options += ["--ro-bind", str(path), str(path)]
                return
            os.close(held)
        raise Refused(f"{path} is made and removed all the time; stop the program that does it, then try again")

    @property
    def held(self) -> tuple[str, ...]:
        """The names that placeholders hold."""
        return tuple(name for name, _ in self._held)

    def close(self) -> None:
        """Remove the placeholders that no other command needs; what has become of use to somebody stays."""
        while self._held:
            name, held = self._held.pop()
            with suppress(OSError):
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_same(self._workspace / name, held):
                    (self._workspace / name).rmdir()
            os.close(held)


def _is_same(path: Path, held: int) -> bool:
    with suppress(OSError):
        return os.path.samestat(path.lstat(), os.fstat(held))
    return False


def _has_repository(workspace: Path) -> bool:
    """Whether git finds a repository in `.git` before it looks at the folder itself."""
    place = workspace / REPOSITORY
    return place.is_file() or (place / HEAD).is_file()


def _names_commit(head: Path) -> bool:
    """Whether git would take a file for the HEAD of a repository; a pipe that nobody fills is none."""
    try:
        opened = os.open(head, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    with open(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            return False
        return re.match(rb"ref:\s*refs/|[0-9a-fA-F]{40}", file.read(HEAD_LENGTH)) is not None


def sockets(workspace: Path) -> Iterator[Path]:
    """The sockets in a workspace: behind them are programs outside, which would do what a command asks of them."""
    folders, passed = [str(workspace)], str(workspace / REPOSITORY / "objects")
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_file(follow_symlinks=False):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        folders += [entry.path] if entry.path != passed else []
                    elif stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode):
                        yield Path(entry.path)
        except OSError:  # it went, or nobody may look into it, the command included
            continue
