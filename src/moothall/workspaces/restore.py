"""Makes a workspace what a save says, from what is known to be there now.

What is there now has just been saved, so it may be removed; anything else is left, and with it whatever should have
been in its place. Before something is removed it is looked at once more: a file that has changed since stays. Folders
are opened, never followed, and removed only when they are empty.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from moothall.workspaces.tree import FILE, FOLDER, Entry, Tree, blob_hash, open_entry, read_all


class Restore:
    """One way back: from a tree to entries, with contents by their hashes."""

    def __init__(self, root: Path, tree: Tree, entries: Mapping[str, Entry], content: Callable[[str], bytes]) -> None:
        self._root, self._now, self._wanted, self._content = root, tree.entries, entries, content
        self._changed: list[str] = []
        self._left: list[str] = []

    def run(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What was changed, and what had to stay as it was."""
        self._open_folders()
        for path in sorted(self._now, reverse=True):
            wanted = self._wanted.get(path)
            if wanted is None or wanted.kind != self._now[path].kind:
                self._attempt(self._remove, path)
        for path in sorted(self._wanted):
            self._attempt(self._make, path)
        for path in sorted({*self._wanted, *self._now}, reverse=True):
            self._attempt(self._set_mode, path)
        return tuple(sorted(set(self._changed))), tuple(sorted(set(self._left)))

    def _attempt(self, work: Callable[[int, str, str], None], path: str) -> None:
        parent, _, name = path.rpartition("/")
        try:
            with open_entry(self._root, parent, FOLDER) as folder:
                work(folder, name, path)
        except (FileNotFoundError, NotADirectoryError):
            if path in self._wanted:
                self._left.append(path)
        except OSError:
            self._left.append(path)

    def _open_folders(self) -> None:
        """Make the folders writable for a while; their modes are set in the end."""
        for path, entry in sorted(self._now.items()):
            if entry.kind == "folder" and entry.mode & 0o700 != 0o700:
                with suppress(OSError), open_entry(self._root, path, FOLDER) as folder:
                    os.fchmod(folder, entry.mode | 0o700)

    def _remove(self, folder: int, name: str, path: str) -> None:
        if self._now[path].kind == "folder":
            with suppress(OSError):  # it holds what no save knows
                os.rmdir(name, dir_fd=folder)
                self._changed.append(path)
        elif _is_as(folder, name, self._now[path]):
            os.unlink(name, dir_fd=folder)
            self._changed.append(path)
        else:
            self._left.append(path)

    def _make(self, folder: int, name: str, path: str) -> None:
        wanted = self._wanted[path]
        if self._now.get(path) == wanted or (path in self._now and wanted.kind == self._now[path].kind == "folder"):
            return
        if wanted.kind == "folder":
            os.mkdir(name, 0o700, dir_fd=folder)
        elif wanted.kind == "link":
            self._clear(folder, name, path)
            os.symlink(wanted.content, name, dir_fd=folder)
        elif path not in self._now or self._now[path].content != wanted.content:
            content = self._content(wanted.content)
            self._clear(folder, name, path)
            opened = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
            with open(opened, "wb") as target:
                target.write(content)
        self._changed.append(path)

    def _clear(self, folder: int, name: str, path: str) -> None:
        """Remove what stands in the place of something else, if it is what was saved."""
        now = self._now.get(path)
        if now is not None and now.kind == self._wanted[path].kind and _is_as(folder, name, now):
            os.unlink(name, dir_fd=folder)

    def _set_mode(self, folder: int, name: str, path: str) -> None:
        entry = self._wanted.get(path) or self._now[path]
        opened = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            mode = os.fstat(opened).st_mode
            kinds = {"file": stat.S_ISREG, "folder": stat.S_ISDIR}
            if entry.kind in kinds and kinds[entry.kind](mode) and stat.S_IMODE(mode) != entry.mode:
                os.chmod(f"/proc/self/fd/{opened}", entry.mode)
                self._changed.append(path)
        finally:
            os.close(opened)


def _is_as(folder: int, name: str, entry: Entry) -> bool:
    """Whether something is still what was saved."""
    there = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if entry.kind == "link":
        return stat.S_ISLNK(there.st_mode) and os.readlink(name, dir_fd=folder) == entry.content
    if not stat.S_ISREG(there.st_mode):
        return False
    opened = os.open(name, FILE, dir_fd=folder)
    try:
        return blob_hash(read_all(opened)) == entry.content
    finally:
        os.close(opened)
