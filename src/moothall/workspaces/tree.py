"""What is in a workspace, as a value: every file, link and folder with its mode, and the hash of each content.

The walk goes by opened folders and follows no link. Left out are `.git` at the root, what git ignores, what is neither
file, link nor folder, and what is too large or cannot be read; all but the first two are listed as skipped.

What is ignored git says itself, but it never looks at the workspace: folders and files named `.gitignore` are mirrored
into a folder of ours, so that a pipe in the place of such a file, a filter, a hook or a monitor has no part in it. What
the user's index has is not ignored; git reads a copy of it.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path
from typing import Literal

from moothall.kernel.frozen import Frozen

Kind = Literal["file", "link", "folder"]
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
LARGEST = 256 * 2**20
LARGEST_RULES, LARGEST_INDEX = 2**20, 256 * 2**20
PLACEHOLDER = 0o1500
PLACEHOLDERS = (".git", "moothall.toml", "HEAD")
RULES = ".gitignore"

Ignored = Callable[[Path, Sequence[str], Path | None], frozenset[str]]
"""Which of some paths git ignores, given the mirror and a copy of the user's index."""


class Entry(Frozen):
    """One thing in a workspace; `content` is the hash of a file, or where a link leads."""

    kind: Kind
    mode: int
    content: str = ""


class Known(Frozen):
    """What a file was when it was hashed: as long as it is the same, so is the hash."""

    size: int
    modified: int
    changed: int
    number: int
    content: str


class Tree(Frozen):
    """What is in a workspace by path, what was skipped and why, and what is known of the files."""

    entries: Mapping[str, Entry]
    skipped: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, Known] = field(default_factory=dict)


class Walk:
    """One walk through a workspace. `keep` gets the content of every file that is not known yet.

    `wanted` are paths that are taken even if git ignores them, with all that is below.
    """

    def __init__(
        self, root: Path, ignored: Ignored, keep: Callable[[str, bytes], None], known: Mapping[str, Known]
    ) -> None:
        self._root, self._ignored, self._keep, self._known = root, ignored, keep, known
        self._entries: dict[str, Entry] = {}
        self._skipped: dict[str, str] = {}
        self._seen: dict[str, Known] = {}

    def tree(self, wanted: frozenset[str] = frozenset()) -> Tree:
        """What is there now."""
        above = {path[:at] for path in wanted for at, letter in enumerate(path) if letter == "/"}
        with tempfile.TemporaryDirectory(prefix="moothall-mirror-") as mirror:
            place = Path(mirror) / "tree"
            place.mkdir()
            index = self._copy(".git/index", Path(mirror) / "index", LARGEST_INDEX)
            self._copy(".git/info/exclude", Path(mirror) / "exclude", LARGEST_RULES)
            level = [""]
            while level:
                paths = [path for folder in level for path in self._children(folder, place)]
                out = self._ignored(place, paths, index) if paths else frozenset()
                level = []
                for path in paths:
                    is_wanted = path in wanted or any(path.startswith(f"{top}/") for top in wanted)
                    if (path not in out or is_wanted or path in above) and self._take(path) == "folder":
                        level.append(path)
        return Tree(self._entries, self._skipped, self._seen)

    def _copy(self, path: str, target: Path, largest: int) -> Path | None:
        with suppress(OSError), open_entry(self._root, path) as opened:
            if stat.S_ISREG(os.fstat(opened).st_mode) and os.fstat(opened).st_size <= largest:
                target.write_bytes(read_all(opened))
                return target
        return None

    def _children(self, folder: str, mirror: Path) -> Iterator[str]:
        """The paths in a folder, which is mirrored as far as git has to know it."""
        try:
            with open_entry(self._root, folder, FOLDER) as opened:
                for name in sorted(os.listdir(opened)):
                    path = f"{folder}/{name}" if folder else name
                    there = os.stat(name, dir_fd=opened, follow_symlinks=False)
                    if path == ".git" or _is_placeholder(path, opened, there):
                        continue
                    if stat.S_ISDIR(there.st_mode) and name != ".git":
                        (mirror / path).mkdir(parents=True, exist_ok=True)
                    elif name == RULES:
                        self._copy(path, mirror / path, LARGEST_RULES)
                    yield path
        except OSError as error:
            self._skipped[folder] = str(error.strerror)

    def _take(self, path: str) -> Kind | None:
        try:
            parent, _, name = path.rpartition("/")
            with open_entry(self._root, parent, FOLDER) as folder:
                there = os.stat(name, dir_fd=folder, follow_symlinks=False)
                mode = stat.S_IMODE(there.st_mode)
                if stat.S_ISDIR(there.st_mode):
                    self._entries[path] = Entry("folder", mode)
                elif stat.S_ISLNK(there.st_mode):
                    self._entries[path] = Entry("link", 0o777, os.readlink(name, dir_fd=folder))
                elif stat.S_ISREG(there.st_mode) and there.st_size <= LARGEST:
                    self._entries[path] = Entry("file", mode, self._hash(path, name, folder))
                else:
                    is_large = stat.S_ISREG(there.st_mode)
                    self._skipped[path] = "too large" if is_large else "neither file, link nor folder"
        except OSError as error:
            self._skipped[path] = str(error.strerror)
        return self._entries[path].kind if path in self._entries else None

    def _hash(self, path: str, name: str, folder: int) -> str:
        opened = os.open(name, FILE, dir_fd=folder)
        try:
            there = os.fstat(opened)
            facts = (there.st_size, there.st_mtime_ns, there.st_ctime_ns, there.st_ino)
            known = self._known.get(path)
            if known is None or (known.size, known.modified, known.changed, known.number) != facts:
                content = read_all(opened)
                known = Known(*facts, blob_hash(content))
                self._keep(known.content, content)
            self._seen[path] = known
            return known.content
        finally:
            os.close(opened)


@contextmanager
def open_entry(root: Path, path: str, flags: int = FILE) -> Iterator[int]:
    """Something below a root, opened step by step, following no link."""
    steps = [step for step in path.split("/") if step]
    here = os.open(root, FOLDER)
    try:
        for at, step in enumerate(steps, start=1):
            below = os.open(step, flags if at == len(steps) else FOLDER, dir_fd=here)
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


def read_all(opened: int) -> bytes:
    """All bytes of an opened file."""
    pieces = []
    while piece := os.read(opened, 2**20):
        pieces.append(piece)
    return b"".join(pieces)


def blob_hash(content: bytes) -> str:
    """The name that git gives to a content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _is_placeholder(path: str, folder: int, there: os.stat_result) -> bool:
    """Whether this is what the sandbox puts in the place of a protected file while a command runs."""
    return path in PLACEHOLDERS and stat.S_ISDIR(there.st_mode) and stat.S_IMODE(there.st_mode) == PLACEHOLDER
