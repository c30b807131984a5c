"""Opens files of a workspace, and nothing outside of it, whatever a path says or becomes meanwhile.

The folder is opened once, and every path is resolved by the kernel from there: openat2 with RESOLVE_BENEATH follows
links that stay inside and refuses those that do not, also if they are swapped while it looks. A kernel without that
call gets the path in steps, none of which follows a link. What was opened is what is looked at: its kind is asked of
the descriptor, never of the path.

`.git` and `moothall.toml` at the root are not written, nor is a `HEAD` that would make a repository of the folder, by
whatever way a path leads there. A file is replaced by another, never written into: it may have other names.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import NoReturn

from moothall.errors import EffectFailed, Refused

OPENAT2 = 437
NO_MAGIC_LINKS, BENEATH = 0x02, 0x08
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
KINDS: dict[Callable[[int], bool], str] = {
    stat.S_ISDIR: "a folder",
    stat.S_ISFIFO: "a named pipe",
    stat.S_ISSOCK: "a socket",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
    stat.S_ISLNK: "a symbolic link",
}
PROTECTED = (".git", "moothall.toml")
HEAD = "HEAD"
LONGEST_NAME = 255


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def fail(message: str) -> NoReturn:
    """End a tool's work with what its caller should read; trying again would give the same."""
    raise EffectFailed(message, final=True)


class Folder:
    """A workspace, opened; all its paths are relative to it."""

    def __init__(self, root: Path) -> None:
        try:
            self._root = os.open(root, FOLDER)
        except OSError as error:
            raise Refused(f"the workspace {root} cannot be opened: {error.strerror}") from error
        self.close = weakref.finalize(self, os.close, self._root)

    @contextmanager
    def file(self, path: str) -> Iterator[int]:
        """A file, opened for reading, if it is one."""
        with self._at(path, os.O_PATH) as place:
            mode = os.fstat(place).st_mode
            if not stat.S_ISREG(mode):
                fail(f"{path} is {kind_of(mode)}, not a file")
            opened = os.open(f"/proc/self/fd/{place}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield opened
        finally:
            os.close(opened)

    @contextmanager
    def folder(self, path: str) -> Iterator[int]:
        """A folder, opened for listing."""
        with self._at(path, FOLDER) as opened:
            yield opened

    def replace(self, path: str, content: bytes) -> None:
        """Give a file this content, at once; folders on its way are made."""
        _check_path(path)
        parent, _, name = path.rstrip("/").rpartition("/")
        if name in ("", ".", ".."):
            fail(f"{path or 'an empty path'} does not name a file")
        self._make_folders(parent)
        with self._at(parent or ".", FOLDER) as folder:
            self._refuse_protected(folder, name, path)
            with suppress(FileNotFoundError):
                there = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if not stat.S_ISREG(there.st_mode):
                    fail(f"{path} is {kind_of(there.st_mode)}, not a file; it was left as it is")
            _write(folder, name, content, path)

    def _make_folders(self, parent: str) -> None:
        steps = [step for step in parent.split("/") if step not in ("", ".")]
        for end in range(1, len(steps) + 1):
            above, path = "/".join(steps[: end - 1]) or ".", "/".join(steps[:end])
            with self._at(above, FOLDER) as folder:
                if os.path.lexists(f"/proc/self/fd/{folder}/{steps[end - 1]}"):
                    continue
                self._refuse_protected(folder, steps[end - 1], path)
                try:
                    os.mkdir(steps[end - 1], dir_fd=folder)
                except FileExistsError:
                    continue
                except OSError as error:
                    fail(f"{path} cannot be made: {error.strerror}")

    def _refuse_protected(self, folder: int, name: str, path: str) -> None:
        """Ask the kernel where an opened folder is: a path may lead to it by links."""
        root, place = (os.readlink(f"/proc/self/fd/{number}") for number in (self._root, folder))
        inside = os.path.join(place, name)[len(root.rstrip("/")) + 1 :]
        first = inside.split("/")[0].casefold()
        has_repository = os.path.lexists(f"/proc/self/fd/{self._root}/{PROTECTED[0]}")
        if first in PROTECTED or (first == HEAD.casefold() and not has_repository):
            fail(f"{path} is protected: what git and Moothall read in a workspace is not written by tools")

    @contextmanager
    def _at(self, path: str, flags: int) -> Iterator[int]:
        _check_path(path)
        try:
            opened = _open_beneath(self._root, path or ".", flags | os.O_CLOEXEC)
        except OSError as error:
            fail(_reason(path, error))
        try:
            yield opened
        finally:
            os.close(opened)


def _check_path(path: str) -> None:
    """Refuse what no file can be called."""
    is_text = not any("\ud800" <= letter < "\udc80" or "\udd00" <= letter <= "\udfff" for letter in path)
    if not is_text or "\0" in path or any(len(os.fsencode(step)) > LONGEST_NAME for step in path.split("/")):
        fail("the path is not one: a name in it is too long, or has a character that no name has")


def _open_beneath(root: int, path: str, flags: int) -> int:
    call = _system_call()
    if call is None:
        return open_in_steps(root, path, flags)
    how = _How(flags, 0, BENEATH | NO_MAGIC_LINKS)
    for _ in range(100):
        opened = int(call(OPENAT2, root, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how)))
        if opened >= 0:
            return opened
        number = ctypes.get_errno()
        if number not in (errno.EAGAIN, errno.EINTR):  # somebody renamed something on the way
            raise OSError(number, os.strerror(number))
    raise OSError(errno.EAGAIN, "its folders are moved all the time")


@lru_cache(maxsize=1)
def _system_call() -> Callable[..., int] | None:
    """The kernel's openat2; nothing where it has none."""
    try:
        call: Callable[..., int] = ctypes.CDLL(None, use_errno=True).syscall
    except (OSError, AttributeError):
        return None
    how = _How(os.O_PATH | os.O_CLOEXEC, 0, 0)
    opened = int(call(OPENAT2, -100, b"/", ctypes.byref(how), ctypes.sizeof(how)))
    if opened < 0:
        return None
    os.close(opened)
    return call


def open_in_steps(root: int, path: str, flags: int) -> int:
    """Open a path below a folder without following any link."""
    if path.startswith("/"):
        raise OSError(errno.EXDEV, "it is absolute")
    steps = [step for step in path.split("/") if step not in ("", ".")] or ["."]
    if ".." in steps:
        raise OSError(errno.EXDEV, "it leads upwards")
    here = os.dup(root)
    try:
        for step in steps[:-1]:
            below = os.open(step, FOLDER | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = below
        return os.open(steps[-1], flags | os.O_NOFOLLOW, dir_fd=here)
    finally:
        os.close(here)


def kind_of(mode: int) -> str:
    """What a mode says that something is."""
    return next((words for is_kind, words in KINDS.items() if is_kind(mode)), "a file")


def _reason(path: str, error: OSError) -> str:
    if error.errno in (errno.EXDEV, errno.ELOOP):
        return f"{path} leads out of the workspace; paths are relative to it"
    if error.errno == errno.ENOENT:
        return f"{path} does not exist"
    if error.errno == errno.ENOTDIR:
        return f"{path} is not a folder, or something on its way is not"
    return f"{path} cannot be opened: {error.strerror}"


def _write(folder: int, name: str, content: bytes, path: str) -> None:
    """Write a new file beside the old one, then give it the name."""
    mode = 0o666 & ~_umask()
    with suppress(FileNotFoundError):
        mode = stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode) & 0o777
    fresh = f".{name[:100]}.{os.urandom(6).hex()}"
    try:
        opened = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
        try:
            with open(opened, "wb") as target:
                target.write(content)
                os.fchmod(opened, mode)
            os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(fresh, dir_fd=folder)
            raise
    except OSError as error:
        fail(f"{path} cannot be written: {error.strerror}")


@lru_cache(maxsize=1)
def _umask() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("Umask:"):
            return int(line.split()[1], 8)
    return 0o022
