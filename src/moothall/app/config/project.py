"""A project's own settings: which file they are in, and whether the user trusts it.

The file is `moothall.toml` in the current folder, or above it up to the root of the git repository. It may name
addresses that get keys, and commands that are run, and it comes with code that others wrote. So nothing in it counts
before `moot trust` has remembered its place and the hash of its bytes. The bytes that were hashed are those that are
parsed: the file is read once, and until it is trusted nobody looks into it. The files `tools/*.py` beside it are
trusted with it: their bytes are in the same hash, and what was hashed is what is loaded. The same bytes in another
place are not trusted, for they may name what lies beside them.

The same holds for a file of roles, or of workflows, that would take the place of what comes with Moothall.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import field
from hashlib import sha256
from pathlib import Path

from moothall.errors import DefinitionError, Refused
from moothall.kernel.codec import decode
from moothall.kernel.frozen import Frozen
from moothall.stores.anchors import make_folder

NAME = "moothall.toml"
TOOLS = "tools"
LARGEST, LARGEST_TOOL = 64 * 1024, 2**20
LARGEST_OTHERS = 16 * 1024 * 1024
"""The same for files of roles and workflows."""
REPOSITORY = ".git"


class Project(Frozen):
    """A project's file: its bytes, their hash, the hash that was trusted, or why it cannot be read."""

    file: Path
    content: bytes = b""
    digest: str = ""
    trusted: str = ""
    problem: str = ""
    tools: Mapping[str, bytes] = field(default_factory=dict)
    """The files of its own tools, by name."""

    @property
    def unused(self) -> str:
        """Why nothing in the file counts; "" where it is trusted as it is."""
        if self.problem:
            return self.problem
        if self.digest == self.trusted:
            return ""
        why = "it has changed since it was trusted" if self.trusted else "it is not trusted"
        return f"{why}; read it, then run `moot trust{'' if self.file.name == NAME else f' {self.file}'}`"


def current_project() -> str:
    """The folder of the project that the current folder belongs to: it has settings or a repository; else ""."""
    marked = (folder for folder in _folders_above() if _is_there(folder, NAME) or _is_there(folder, REPOSITORY))
    return next((folder or "/" for folder in marked), "")


def _is_there(folder: str, name: str) -> bool:
    return os.path.lexists(f"{folder}/{name}")


def _folders_above() -> list[str]:
    """The current folder and those above it, the root as ""; none where it is gone."""
    try:
        parts = os.getcwd().rstrip("/").split("/")
    except FileNotFoundError:
        return []
    return ["/".join(parts[:end]) for end in range(len(parts), 0, -1)]


def nearest() -> Path | None:
    """The file of the project that the current folder belongs to."""
    folders = _folders_above()
    root = next((at for at, folder in enumerate(folders) if _is_there(folder, REPOSITORY)), 0)
    found = (folder for folder in folders[: root + 1] if _is_there(folder, NAME))
    return next((Path(folder or "/", NAME) for folder in found), None)


def read_project(file: Path, home: Path) -> Project:
    """A project's file as it is now, held against what is remembered in the state directory."""
    try:
        content = _content(file, LARGEST if file.name == NAME else LARGEST_OTHERS)
        tools = _tools_beside(file) if file.name == NAME else {}
        trusted = trusted_files(home).get(str(file), "")
    except (Refused, DefinitionError) as error:
        return Project(file, problem=str(error))
    return Project(file, content, _digest(content, tools), trusted, tools=tools)


def _tools_beside(file: Path) -> Mapping[str, bytes]:
    """The files of a project's own tools, by name; those that cannot be read say so."""
    folder = file.parent / TOOLS
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".py"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise Refused(f"{TOOLS} cannot be read: {error.strerror}") from error
    return {name: _content(folder / name, LARGEST_TOOL) for name in names}


def _digest(content: bytes, tools: Mapping[str, bytes]) -> str:
    """The hash of a project's file, and of its tools where it has any."""
    whole = sha256(content)
    for name, code in tools.items():
        whole.update(b"\0" + os.fsencode(name) + b"\0" + sha256(code).digest())
    return whole.hexdigest()


def _content(file: Path, largest: int) -> bytes:
    """All of a file, if it is one: not a pipe that nobody fills, nor more than anybody would write."""
    try:
        opened = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(opened, "rb") as source:
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                raise Refused("it is not a file")
            content = source.read(largest + 1)
    except OSError as error:
        raise Refused(f"it cannot be read: {error.strerror}") from error
    if len(content) > largest:
        raise Refused(f"it is larger than {largest // 1024} KB")
    return content


def trusted_files(home: Path) -> Mapping[str, str]:
    """The files that are trusted, with their hashes."""
    file = _memory(home)
    try:
        return decode(dict[str, str], json.loads(file.read_bytes()), "trusted")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError, Refused) as error:
        raise DefinitionError(f"{file} cannot be read ({error}); delete it, and trust again what you trust") from error


def remember(home: Path, trusted: Mapping[str, str]) -> None:
    """Keep which files are trusted; nobody but the user may read or write it."""
    file = _memory(home)
    try:
        make_folder(home)
        opened, name = tempfile.mkstemp(prefix=f"{file.name}-", dir=home)  # its mode is 0600
        with open(opened, "w", encoding="utf-8") as target:
            json.dump(trusted, target, indent=1, sort_keys=True)
        os.replace(name, file)
    except OSError as error:
        raise DefinitionError(f"{file} cannot be written: {error.strerror}") from error


def _memory(home: Path) -> Path:
    return home / "trusted.json"
