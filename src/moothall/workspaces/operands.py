"""The files that the arguments of a call name, each with the hash of its content.

A tool for files names one, by its `path`. In the arguments of every other tool each text is looked at: as a path, and
word by word as a shell would read it, with and without its quotes and behind `=`, `:` and what is put in for a
variable. Patterns are followed as a shell would.

- A folder that is named counts with all that is in it, and so it is the whole workspace (`.`) where names are made up
  only when the command runs: by `$`, a back quote or braces, or by `..`, which leads from a folder that is not known.
- A script that is named counts with the files that it names.
- Files outside of the workspace count where a call can read them: a command in the sandbox cannot.

What a program reads without being told its name, as `make` does, is not found here: it is not an operand.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from moothall.agents.workspace import BUILT_IN, COMMANDS, PATH
from moothall.errors import EffectFailed
from moothall.workspaces.files import Folder

WORDS = re.compile(r"[^\s;&|<>()`\"'$={},:]+")
QUOTES = re.compile(r"[\"'\\]")
PATTERN = re.compile(r"[*?\[]")
MADE_UP = re.compile(r"[$`]|\{[^}]*(?:,|\.\.)[^}]*\}")
SCRIPT = re.compile(r"[^.]+|.*\.(?:sh|bash|zsh|ksh)")
EVERYTHING = "."
MOST = 2000
"""How many words and how many files of a call are looked at; of more, the whole workspace is."""
LONGEST = 4096
PIECE = 2**20
LARGEST_SCRIPT = 2**16
LARGEST_READ = 2**24
"""In a folder, a larger file counts with its size and its times: another content has others."""


class Operands:
    """Finds the files that arguments name; commands see nothing but the workspace where they are `confined`."""

    def __init__(self, root: Path, *, confined: bool = True) -> None:
        self._root, self._confined = root.resolve(), confined
        self._folder = Folder(root)

    async def __call__(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, str]:
        """The files and folders, by their paths in the workspace, or by their own where they are outside."""
        return await asyncio.to_thread(self._hashes, tool, arguments)

    def _hashes(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, str]:
        if tool in BUILT_IN and tool not in COMMANDS:
            path = arguments.get(PATH)
            return self._hash_each([path] if isinstance(path, str) else [])
        texts = list(_texts(arguments))
        words = list(dict.fromkeys(word for text in texts for word in _words(text)))
        paths = dict.fromkeys(path for word in words[:MOST] for path in self._paths(word))
        if len(words) > MOST or any(MADE_UP.search(text) for text in texts):
            paths[EVERYTHING] = None
        found = self._hash_each([*paths])
        self._add_nested(found)
        if not self._confined or tool not in COMMANDS:
            found.update(_hash_outside(words, self._root))
        return found

    def _hash_each(self, paths: Sequence[str]) -> dict[str, str]:
        return {path: digest for path in paths if (digest := self._hash(path))}

    def _add_nested(self, found: dict[str, str]) -> None:
        """Add what scripts name, and the scripts among that in turn."""
        scripts = [path for path in found if SCRIPT.fullmatch(os.path.basename(path))]
        while scripts and len(found) <= MOST:
            script = scripts.pop()
            for word in _words(self._script(script)):
                for place in (EVERYTHING, os.path.dirname(script)):
                    path = os.path.normpath(f"{place}/{word.lstrip('/')}" if place else word.lstrip("/"))
                    if path not in found and path != EVERYTHING and (digest := self._hash_file(path)):
                        found[path] = digest
                        scripts += [path] if SCRIPT.fullmatch(os.path.basename(path)) else []

    def _paths(self, word: str) -> Iterator[str]:
        """The paths that a word may stand for, relative to the workspace."""
        path = os.path.normpath(os.path.relpath(word, self._root) if os.path.isabs(word) else word)
        if path.split("/")[0] == "..":
            if not os.path.isabs(word):
                yield EVERYTHING
            return
        yield path
        if PATTERN.search(path):
            try:
                found = [str(file.relative_to(self._root)) for file in self._root.glob(path.replace("[^", "[!"))]
            except (ValueError, OSError, NotImplementedError):  # it is not a pattern after all
                return
            yield from sorted(found) if len(found) <= MOST else [EVERYTHING]

    def _hash(self, path: str) -> str:
        """The hash of a file or a folder; "" where neither is there."""
        return self._hash_file(path) or self._hash_folder(path)

    def _hash_file(self, path: str) -> str:
        """The hash of a file's content; "" where there is no such file in the workspace."""
        try:
            with self._folder.file(self._real(path)) as opened:
                return _content_hash(opened)
        except (EffectFailed, OSError, ValueError):  # no file, or none that a tool could read
            return ""

    def _hash_folder(self, path: str) -> str:
        digest = sha256()
        try:
            with self._folder.folder(self._real(path)) as opened:
                for top, folders, files, here in os.fwalk(".", dir_fd=opened, follow_symlinks=False):
                    is_root = top == "." and path == EVERYTHING
                    folders[:] = sorted(name for name in folders if not (is_root and name == ".git"))
                    for name in sorted((*files, *folders)):
                        digest.update(f"{top}/{name}\0{_facts(here, name)}\0".encode(errors="surrogateescape"))
        except (EffectFailed, OSError, ValueError):
            return ""
        return digest.hexdigest()

    def _real(self, path: str) -> str:
        """A path without links, which may be absolute and yet stay in the workspace."""
        real = Path(os.path.realpath(self._root / path))
        return str(real.relative_to(self._root)) if real.is_relative_to(self._root) else path

    def _script(self, path: str) -> str:
        with suppress(EffectFailed, OSError, ValueError), self._folder.file(self._real(path)) as opened:
            return os.read(opened, LARGEST_SCRIPT).decode(errors="replace")
        return ""


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for part in value.values() for text in _texts(part))
    elif isinstance(value, list | tuple):
        yield from (text for part in value for text in _texts(part))


def _words(text: str) -> Iterator[str]:
    plain = QUOTES.sub("", text)
    for word in (text, *WORDS.findall(text), *WORDS.findall(plain), *_shell_words(text)):
        if word.strip() and len(word) < LONGEST and "\0" not in word:
            yield word
            if "$" in text and word.startswith("/"):  # what a variable stands for is before it
                yield word.lstrip("/")


def _shell_words(text: str) -> Iterator[str]:
    """The words as a shell would read them, and those of a word that is a command itself."""
    reader = shlex.shlex(text, posix=True, punctuation_chars=True)
    reader.whitespace_split, reader.commenters = True, ""
    with suppress(ValueError):  # a quote without an end
        for word in reader:
            yield word
            if word != text and any(letter.isspace() for letter in word):
                yield from _shell_words(word)


def _content_hash(opened: int) -> str:
    digest = sha256()
    while piece := os.read(opened, PIECE):
        digest.update(piece)
    return digest.hexdigest()


def _facts(folder: int, name: str) -> str:
    """What one entry of a folder is: the content of a file, where a link leads."""
    try:
        there = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(there.st_mode):
            return f"link {os.readlink(name, dir_fd=folder)}"
        if not stat.S_ISREG(there.st_mode):
            return f"kind {stat.S_IFMT(there.st_mode)}"
        if there.st_size > LARGEST_READ:
            return f"large {there.st_size} {there.st_mtime_ns} {there.st_ctime_ns} {there.st_ino}"
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:  # it went meanwhile, or nobody may read it, the command included
        return f"error {error.errno}"
    try:
        return f"file {_content_hash(opened)}"
    finally:
        os.close(opened)


def _hash_outside(words: Sequence[str], root: Path) -> Iterator[tuple[str, str]]:
    """The files outside of a folder that words name, with their hashes."""
    for word in words[:MOST]:
        with suppress(OSError, ValueError):
            path = Path(os.path.realpath(root / os.path.expanduser(word)))
            if path.is_relative_to(root) or not path.is_file():
                continue
            opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                yield str(path), _content_hash(opened)
            finally:
                os.close(opened)
