"""The files that the arguments of a call name, each with the hash of its content.

Every text in the arguments is looked at: as a path, and word by word as a shell would read it, also behind `=`, `:`
and in folders that the command names before. Patterns are followed as a shell would. What is only touched by a program
without being named, as by `make`, is not found here: it is not an operand.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from moothall.errors import EffectFailed
from moothall.workspaces.files import Folder

WORDS = re.compile(r"[^\s;&|<>()`\"'$={},:]+")
PATTERN = re.compile(r"[*?\[]")
MOST = 2000
"""How many words and how many files of a call are looked at."""
PIECE = 2**20


class Operands:
    """Finds the files of one workspace that arguments name."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._folder = Folder(root)

    async def __call__(self, arguments: Mapping[str, Any]) -> Mapping[str, str]:
        """The files, by their paths in the workspace."""
        return await asyncio.to_thread(self._hashes, arguments)

    def _hashes(self, arguments: Mapping[str, Any]) -> dict[str, str]:
        words = list(dict.fromkeys(word for text in _texts(arguments) for word in _words(text)))[:MOST]
        paths = dict.fromkeys(path for word in words for path in self._paths(word))
        folders = [path for path in paths if path != "." and (self._root / path).is_dir()]
        below = (os.path.normpath(f"{folder}/{path}") for folder in folders for path in paths)
        files = list(dict.fromkeys((*paths, *below)))[:MOST]
        return {path: digest for path in files if (digest := self._hash(path))}

    def _paths(self, word: str) -> Iterator[str]:
        """The paths that a word may stand for, relative to the workspace."""
        if os.path.isabs(word):
            word = os.path.relpath(word, self._root)
        path = os.path.normpath(word)
        if path.startswith("../") or path == "..":
            return
        yield path
        if PATTERN.search(word):
            try:
                found = sorted(self._root.glob(path))[:MOST]
            except (ValueError, OSError, NotImplementedError):  # it is not a pattern after all
                return
            yield from (str(file.relative_to(self._root)) for file in found)

    def _hash(self, path: str) -> str:
        """The hash of a file's content; "" where there is no such file in the workspace."""
        digest = sha256()
        try:
            with self._folder.file(path) as opened:
                while piece := os.read(opened, PIECE):
                    digest.update(piece)
        except (EffectFailed, OSError, ValueError):  # no file, or none that a tool could read
            return ""
        return digest.hexdigest()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for part in value.values() for text in _texts(part))
    elif isinstance(value, list | tuple):
        yield from (text for part in value for text in _texts(part))


def _words(text: str) -> Iterator[str]:
    if len(text) < 4096 and "\0" not in text and text.strip():
        yield text
    yield from (word.replace("\\", "") for word in WORDS.findall(text) if len(word) < 4096 and "\0" not in word)
