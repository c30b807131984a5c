"""The tools that come with Moothall, bound to a workspace: files by opened descriptors, commands in the sandbox.

| tool | after a crash | policy |
|---|---|---|
| read_file, list_directory, search_files, git_status, git_diff | performed again | allow |
| write_file | performed again: it writes the same | allow |
| edit_file | looked at first: was it done? | allow |
| execute_terminal | a person is asked, the outcome is unknown | ask |

What a tool cannot do it says as a final failure, which the agent reads. That there is no sandbox is none of those: it
ends in `SandboxUnavailable`. A result is short enough for a model to read; what was left out is said.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from moothall.agents.ask import Tool
from moothall.agents.ports import Offered
from moothall.agents.workspace import BUILT_IN, Execution, Policy, Sandbox, SandboxUnavailable
from moothall.errors import Refused
from moothall.kernel.effects import Repeats
from moothall.kernel.frozen import Frozen
from moothall.performers.agents import offer_tool
from moothall.workspaces.files import Folder, fail, kind_of

LINES, SHOWN = 2000, 40_000
"""How many lines and how many characters a result has at most."""
LARGEST, LARGEST_SEARCHED = 32 * 2**20, 2 * 2**20
"""The largest file that is read or written, and that is searched, in bytes."""
ENTRIES, HITS, FILES = 1000, 200, 20_000
"""How many entries are listed, how many hits are shown, and how many files are searched."""
PROBE = 8192
RULES = frozenset((".gitignore", ".gitattributes", ".gitmodules", ".mailmap"))
"""The files of a workspace that git reads by itself."""
GIT_SECONDS = 60.0
GIT = ("git", "--no-pager", "--no-optional-locks", "--literal-pathspecs", "-c", "core.fsmonitor=false")


class WorkspaceTool(Frozen):
    """A tool with what a crash does to it and whether a person is asked first."""

    function: Callable[..., Awaitable[Any]]
    repeats: Repeats
    policy: Policy = "allow"
    check: Callable[..., Awaitable[Any]] | None = None

    @property
    def name(self) -> str:
        """What it is called."""
        return str(getattr(self.function, "__name__", ""))

    @property
    def offer(self) -> Offered:
        """The tool as a model sees it: its description and the schema of its arguments."""
        return offer_tool(self.name, self.function)

    @property
    def tool(self) -> Tool:
        """The tool for a machine."""
        return Tool(self.name, self.function, self.repeats, self.check, policy=self.policy)


def workspace_tools(root: Path, sandbox: Sandbox) -> Mapping[str, WorkspaceTool]:
    """The built-in tools by name, bound to a workspace and to what commands run in."""
    bound = WorkspaceTools(root, sandbox)
    checks = {"edit_file": bound.check_edit}
    return {name: WorkspaceTool(getattr(bound, name), *kinds, checks.get(name)) for name, kinds in BUILT_IN.items()}


class WorkspaceTools:
    """The functions behind the tools."""

    def __init__(self, root: Path, sandbox: Sandbox) -> None:
        self._root, self._sandbox = root, sandbox
        self._folder = Folder(root)

    async def read_file(self, path: str, offset: int = 1, limit: int = LINES) -> str:
        """Read lines of a text file of the workspace, from line `offset` on."""
        if offset < 1 or limit < 1:
            fail("offset and limit are at least 1")
        text = await asyncio.to_thread(self._text, path)
        if offset == 1 and len(text) <= SHOWN and text.count("\n") <= min(limit, LINES):
            return text
        lines = text.splitlines(keepends=True)
        if offset > max(1, len(lines)):
            fail(f"{path} has {len(lines)} lines; line {offset} is not there")
        return _cut_lines(lines, offset, min(limit, LINES))

    async def write_file(self, path: str, content: str) -> str:
        """Write a text file of the workspace; what was in it is replaced, and its folders are made."""
        encoded = _encode(content)
        await asyncio.to_thread(self._folder.replace, path, encoded)
        return f"{path} was written: {len(encoded)} bytes"

    async def edit_file(self, path: str, old: str, new: str, every: bool = False) -> str:
        """Replace a text in a file: the only place where it occurs, or every place."""
        text = await asyncio.to_thread(self._text, path)
        count = text.count(old) if old else 0
        if not count:
            fail(f"{path} does not hold the old text; read the file, and give it letter by letter")
        if count > 1 and not every:
            fail(f"{path} holds the old text {count} times; give more of what is around it, or set every")
        await asyncio.to_thread(self._folder.replace, path, _encode(text.replace(old, new)))
        return _edit_note(path, count)

    async def check_edit(self, path: str, old: str, new: str, every: bool = False) -> str | None:
        """What an earlier attempt of an edit returned, if the file is as it would have left it."""
        text = await asyncio.to_thread(self._text, path)
        is_done = not new or new in text
        rest = text.replace(new, "") if new else text
        return _edit_note(path, max(1, text.count(new) if new else 1)) if is_done and old not in rest else None

    async def list_directory(self, path: str = ".") -> str:
        """List a folder of the workspace: names, kinds and sizes."""
        return await asyncio.to_thread(self._listing, path)

    async def search_files(self, text: str, path: str = ".", name: str = "*") -> str:
        """Find a text, letter by letter, in the files below a folder whose names fit a pattern such as *.py."""
        if not text:
            fail("the text to look for is empty")
        return await asyncio.to_thread(self._search, text, path, name)

    async def execute_terminal(self, command: str, timeout: float | None = None) -> dict[str, Any]:  # noqa: ASYNC109 (a model's word)
        """Run a shell command in the workspace, without network, and return its exit code and what it said."""
        if timeout is not None and not timeout > 0:
            fail("the timeout is above 0 seconds")
        execution = await self._run(("sh", "-c", command), timeout)
        return {
            "exit_code": execution.exit_code,
            "stdout": _cut_middle(execution.stdout),
            "stderr": _cut_middle(execution.stderr),
            "duration": round(execution.duration, 3),
            "level": execution.level,
            "killed": execution.killed,
            **({"note": note} if (note := execution.note()) else {}),
        }

    async def git_status(self) -> str:
        """Show what has changed in the workspace's git repository, and on which branch it is."""
        return await self._git("status", "--porcelain=v1", "--branch", "--untracked-files=all")

    async def git_diff(self, path: str = "", staged: bool = False) -> str:
        """Show the changes in the workspace, or in one file, that are not staged, or those that are."""
        options = ("--no-ext-diff", "--no-textconv", "--no-color", *(("--cached",) if staged else ()))
        return await self._git("diff", *options, "--", *((path,) if path else ()))

    async def _git(self, *words: str) -> str:
        if "\0" in "".join(words):
            fail("the path is not one: it has a null character")
        if path := await asyncio.to_thread(self._endless_rules):
            fail(f"git {words[0]} was not asked: {path} is not a file, and git would wait for it; remove it")
        execution = await self._run((*GIT, *words), GIT_SECONDS)
        if execution.killed:
            fail(f"git {words[0]} was ended at a limit; look into a smaller part with execute_terminal")
        if execution.exit_code:
            reason = execution.stderr.strip() or f"git ended with {execution.exit_code}"
            fail(f"git {words[0]} failed: {_cut_middle(reason)}")
        return _cut_middle(execution.stdout)

    def _endless_rules(self) -> str:
        """A pipe, or something else without an end, where git reads rules; "" where there is none."""
        with self._folder.folder(".") as folder:
            for top, folders, files, here in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
                folders[:] = [name for name in folders if name != ".git"]
                for name in RULES.intersection(files):
                    mode = os.stat(name, dir_fd=here, follow_symlinks=False).st_mode
                    if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):  # git follows no link here
                        return os.path.normpath(os.path.join(top, name))
        return ""

    async def _run(self, command: Sequence[str], within: float | None) -> Execution:
        if any("\0" in word for word in command):
            fail("a command cannot hold a null character")
        try:
            return await self._sandbox.run(command, workspace=self._root, within=within)
        except Refused as refusal:
            raise SandboxUnavailable(str(refusal)) from refusal

    def _text(self, path: str) -> str:
        with self._folder.file(path) as opened:
            size = os.fstat(opened).st_size
            if size > LARGEST:
                fail(f"{path} has {size} bytes, more than {LARGEST}; look into it with execute_terminal")
            content = _read(opened, LARGEST)
        if b"\0" in content[:PROBE]:
            fail(f"{path} is a binary file of {len(content)} bytes")
        try:
            return content.decode()
        except UnicodeDecodeError:
            return fail(f"{path} is a binary file of {len(content)} bytes: it is not UTF-8")

    def _listing(self, path: str) -> str:
        with self._folder.folder(path) as folder:
            names = sorted(os.listdir(folder))
            lines = [_entry(folder, name) for name in names[:ENTRIES]]
        rest = [f"[… {len(names) - ENTRIES} entries more]"] if len(names) > ENTRIES else []
        return "\n".join([*lines, *rest]) or "the folder is empty"

    def _search(self, text: str, path: str, name: str) -> str:
        lines: list[str] = []
        with self._folder.folder(path) as folder:
            for count, (file, content) in enumerate(_text_files(folder, name)):
                if count == FILES:
                    lines.append(f"[… only the first {FILES} files were searched]")
                    break
                lines += _hits(text, file, content)
                if len(lines) > HITS:
                    lines[HITS:] = [f"[… more than {HITS} hits; look for a longer text or in fewer files]"]
                    break
        return _cut_middle("\n".join(lines)) or f"{text!r} was not found"


def _encode(content: str) -> bytes:
    encoded = content.encode(errors="surrogatepass")
    if len(encoded) > LARGEST:
        fail(f"the content has {len(encoded)} bytes, more than {LARGEST}")
    return encoded


def _edit_note(path: str, count: int) -> str:
    return f"{path} was edited in {count} {'place' if count == 1 else 'places'}"


def _cut_lines(lines: Sequence[str], offset: int, limit: int) -> str:
    """Lines from one on, as many as a result may have; what is left out is said."""
    kept: list[str] = []
    size = 0
    for line in lines[offset - 1 : offset - 1 + limit]:
        if kept and size + len(line) > SHOWN:
            break
        kept.append(line if len(line) <= SHOWN else f"{line[:SHOWN]}[… {len(line) - SHOWN} characters more]\n")
        size += len(line)
    following = offset + len(kept)
    rest = len(lines) - following + 1
    return "".join(kept) + (f"[… {rest} lines more; read on with offset={following}]\n" if rest > 0 else "")


def _cut_middle(text: str) -> str:
    if len(text) <= SHOWN:
        return text
    half = SHOWN // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def _entry(folder: int, name: str) -> str:
    try:
        there = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return f"{name}  gone"
    shown = os.fsencode(name).decode(errors="replace")
    if stat.S_ISDIR(there.st_mode):
        return f"{shown}/"
    return f"{shown}  {there.st_size} bytes" if stat.S_ISREG(there.st_mode) else f"{shown}  {kind_of(there.st_mode)}"


def _text_files(folder: int, pattern: str) -> Iterator[tuple[str, str]]:
    """The text files below a folder that fit a pattern; neither links nor `.git` are entered."""
    for top, folders, files, here in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in sorted(files):
            path = os.path.normpath(os.path.join(top, name))
            if fnmatch(name, pattern) or fnmatch(path, pattern):
                content = _searchable(here, name)
                if content is not None:
                    yield path, content


def _searchable(folder: int, name: str) -> str | None:
    try:
        if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            return None
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:  # it went, or it may not be read
        return None
    try:
        there = os.fstat(opened)
        if not stat.S_ISREG(there.st_mode) or there.st_size > LARGEST_SEARCHED:
            return None
        content = _read(opened, LARGEST_SEARCHED)
        return None if b"\0" in content[:PROBE] else content.decode(errors="replace")
    finally:
        os.close(opened)


def _hits(text: str, file: str, content: str) -> Iterator[str]:
    if text in content:
        for number, line in enumerate(content.splitlines(), start=1):
            if text in line:
                yield f"{file}:{number}: {line[:500]}"


def _read(opened: int, most: int) -> bytes:
    pieces, left = [], most
    while left and (piece := os.read(opened, min(left, 2**20))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
