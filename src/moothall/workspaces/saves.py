"""Saves of a workspace, and the way back to them.

A save is a commit in a git directory of our own, outside of the workspace: a list of every file, link and folder with
its mode, and the contents of the files. The user's repository, branch and index have no part in it, and nothing of git
runs in the workspace: no hook, no filter, no monitor.

- A restore first takes a rescue save, of all that it may touch, also of what git ignores. So what it removes or
  replaces is in that save, and what no save knows stays: it is said which that was.
- What is as it should be is not touched. Ignored files stay as they are, unless the save has a file in their place.
- Owners, times, other names of a file and extended attributes are not saved.
"""

from __future__ import annotations

import asyncio
import difflib
import fcntl
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path
from subprocess import PIPE
from typing import TypeVar

from moothall.errors import EffectFailed, Refused
from moothall.kernel.codec import decode, encode
from moothall.kernel.frozen import Frozen
from moothall.workspaces.restore import Restore
from moothall.workspaces.tree import Entry, Known, Tree, Walk

PATH = "/usr/local/bin:/usr/bin:/bin"
PATIENCE = 600.0
REFS = "refs/saves/"
YOUNG = 2_000_000_000
"""For so many nanoseconds after a change, another one may leave no trace in a file's times."""
SHOWN_LINES = 2000


Result = TypeVar("Result")
Content = Callable[[str], bytes]


class Save(Frozen):
    """A save: its id, what it is called, when it was taken, how much it has and what it had to leave out."""

    id: str
    name: str
    at: float
    files: int = 0
    skipped: Mapping[str, str] = field(default_factory=dict)


class Restored(Frozen):
    """What a restore did: the save of what was there before, what it changed, and what it had to leave as it was."""

    rescue: str
    changed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


class Difference(Frozen):
    """What has happened to a workspace since a save; `text` is for people."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    text: str = ""


class Saves:
    """The saves of one workspace; `state` is a folder outside of it that is theirs alone."""

    def __init__(self, workspace: Path, state: Path) -> None:
        self._workspace, self._state = workspace.resolve(), state.resolve()
        if self._state.is_relative_to(self._workspace):
            raise Refused(f"{state} is inside the workspace; saves are kept outside of it")
        self._git_folder = self._state / "saves.git"

    async def save(self, name: str) -> Save:
        """Save the workspace as it is now."""
        return await asyncio.to_thread(self._alone, lambda: self._save(name, frozenset())[0])

    async def every(self) -> tuple[Save, ...]:
        """All saves, the oldest first."""
        return await asyncio.to_thread(self._alone, self._list)

    async def paths(self, save: str) -> frozenset[str]:
        """All that a save knows."""
        return await asyncio.to_thread(self._alone, lambda: frozenset(self._find(save)[1]))

    async def diff(self, save: str) -> Difference:
        """What has happened since a save."""
        return await asyncio.to_thread(self._alone, lambda: self._diff(save))

    async def restore(self, save: str) -> Restored:
        """Make the workspace what it was; what it is now is saved first."""
        return await asyncio.to_thread(self._alone, lambda: self._restore(save))

    async def drop(self, saves: Sequence[str]) -> None:
        """Delete saves, with all that no other save has."""
        await asyncio.to_thread(self._alone, lambda: self._drop(saves))

    async def copy(self, target: Path, save: str = "") -> None:
        """Copy the whole workspace to a place where nothing is, then make the copy what a save was, if one is given."""
        await asyncio.to_thread(self._alone, lambda: self._copy(target, save))

    def _alone(self, work: Callable[[], Result]) -> Result:
        """Work on the saves while nobody else does."""
        try:
            self._state.mkdir(parents=True, exist_ok=True, mode=0o700)
            with open(self._state / "lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not (self._git_folder / "HEAD").exists():
                    self._git("init", "-q", "--bare", str(self._git_folder))
                return work()
        except OSError as error:
            raise EffectFailed(f"the saves of {self._workspace} cannot be used: {error}") from error

    def _environment(self) -> dict[str, str]:
        return {
            "GIT_DIR": str(self._git_folder),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "HOME": str(self._state),
            "LC_ALL": "C",
            "PATH": PATH,
        }

    def _git(self, *words: str, given: bytes = b"", codes: tuple[int, ...] = (0,), index: Path | None = None) -> bytes:
        environment = {**self._environment(), **({} if index is None else {"GIT_INDEX_FILE": str(index)})}
        options = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false", "-c", "gc.auto=0")
        try:
            done = subprocess.run(
                ["git", *options, *words],
                cwd=self._state,
                input=given,
                capture_output=True,
                env=environment,
                timeout=PATIENCE,
                check=False,
            )
        except (FileNotFoundError, subprocess.TimeoutExpired) as error:
            raise EffectFailed(f"git, which keeps the saves, cannot be used: {error}") from error
        if done.returncode not in codes:
            raise EffectFailed(f"git {words[0]} failed: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout

    def _ignored(self, mirror: Path, paths: Sequence[str], index: Path | None) -> frozenset[str]:
        """Which of these paths git ignores; an index that it cannot read is left aside."""
        options = ["--work-tree", str(mirror), "-c", f"core.excludesFile={mirror.parent / 'exclude'}"]
        given = b"".join(os.fsencode(path) + b"\0" for path in paths)
        words = (*options, "-C", str(mirror), "check-ignore", "-z", "--stdin")
        try:
            out = self._git(*words, given=given, codes=(0, 1), index=index or mirror.parent / "none")
        except EffectFailed:
            out = self._git(*words, "--no-index", given=given, codes=(0, 1))
        return frozenset(os.fsdecode(path) for path in out.split(b"\0") if path)

    def _walk(self, workspace: Path, wanted: frozenset[str]) -> tuple[Tree, Mapping[str, bytes]]:
        """What is in a workspace, with the contents of files that are not known yet."""
        fresh: dict[str, bytes] = {}
        known = self._known() if workspace == self._workspace else {}
        tree = Walk(workspace, self._ignored, fresh.__setitem__, known).tree(wanted)
        return tree, fresh

    def _save(self, name: str, wanted: frozenset[str]) -> tuple[Save, Tree]:
        begun = time.time_ns()
        tree, fresh = self._walk(self._workspace, wanted)
        at, files = time.time(), sum(entry.kind == "file" for entry in tree.entries.values())
        number = 1 + max(map(int, self._numbers()), default=0)
        save = Save(str(number), name, at, files, tree.skipped)
        listed = json.dumps({"save": encode(save), "entries": {path: encode(e) for path, e in tree.entries.items()}})
        contents = sorted({entry.content for entry in tree.entries.values() if entry.kind == "file"})
        self._git("fast-import", "--quiet", "--done", given=_stream(save, listed.encode(), contents, fresh))
        self._keep_known(tree, begun)
        return save, tree

    def _drop(self, saves: Sequence[str]) -> None:
        for number in saves:
            self._git("update-ref", "-d", f"{REFS}{number}")
        self._git("gc", "--quiet", "--prune=now")
        (self._state / "known.json").unlink(missing_ok=True)

    def _known(self) -> Mapping[str, Known]:
        with suppress(OSError, ValueError, Refused):
            return decode(dict[str, Known], json.loads((self._state / "known.json").read_bytes()), "known")
        return {}

    def _keep_known(self, tree: Tree, begun: int) -> None:
        """Remember hashes for the next save, but of no file that may have changed since unseen."""
        old = {path: known for path, known in tree.known.items() if max(known.modified, known.changed) < begun - YOUNG}
        fresh = self._state / "known.json.new"
        fresh.write_text(json.dumps({path: encode(known) for path, known in old.items()}))
        fresh.replace(self._state / "known.json")

    def _list(self) -> tuple[Save, ...]:
        with self._contents() as content:
            return tuple(_read_save(content(f"{REFS}{number}:list"))[0] for number in sorted(self._numbers(), key=int))

    def _numbers(self) -> tuple[str, ...]:
        names = self._git("for-each-ref", "--format=%(refname)", REFS).decode().split()
        return tuple(name.removeprefix(REFS) for name in names)

    def _find(self, save: str) -> tuple[Save, Mapping[str, Entry]]:
        numbers = self._numbers()
        if save not in numbers:
            raise Refused(f"there is no save {save!r} of {self._workspace}; there are {', '.join(numbers) or 'none'}")
        return _read_save(self._git("cat-file", "blob", f"{REFS}{save}:list"))

    def _diff(self, save: str) -> Difference:
        _, before = self._find(save)
        tree, fresh = self._walk(self._workspace, frozenset())
        after = tree.entries
        added = tuple(sorted(path for path in after if path not in before))
        removed = tuple(sorted(path for path in before if path not in after))
        changed = tuple(sorted(path for path in before if path in after and before[path] != after[path]))
        lines: list[str] = []
        with self._contents(fresh) as content:
            for path in sorted((*added, *removed, *changed)):
                old, new = (_lines(side.get(path), content) for side in (before, after))
                lines += difflib.unified_diff(old, new, f"a/{path}", f"b/{path}", lineterm="")
                if len(lines) > SHOWN_LINES:
                    lines[SHOWN_LINES:] = [f"[… more than {SHOWN_LINES} lines]"]
                    break
        return Difference(added, removed, changed, "\n".join(lines))

    @contextmanager
    def _contents(self, fresh: Mapping[str, bytes] | None = None) -> Iterator[Content]:
        """Contents by their names, from one git for all of them."""
        command = ["git", "cat-file", "--batch"]
        with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, env=self._environment(), cwd=self._state) as git:
            assert git.stdin is not None
            assert git.stdout is not None
            asked, answers = git.stdin, git.stdout

            def content(name: str) -> bytes:
                if fresh and name in fresh:
                    return fresh[name]
                asked.write(f"{name}\n".encode())
                asked.flush()
                head = answers.readline().split()
                if len(head) != 3 or head[1] != b"blob":
                    raise EffectFailed(f"the saves of {self._workspace} are damaged: {name} is not there", final=True)
                return answers.read(int(head[2]) + 1)[:-1]

            yield content

    def _restore(self, save: str) -> Restored:
        wanted, entries = self._find(save)
        rescue, tree = self._save(f"before the restore of {wanted.id}", frozenset(entries))
        with self._contents() as content:
            changed, left = Restore(self._workspace, tree, entries, content).run()
        return Restored(rescue.id, changed, left)

    def _copy(self, target: Path, save: str) -> None:
        entries = self._find(save)[1] if save else None
        if target.exists() and any(target.iterdir()):
            raise Refused(f"{target} is not empty; name a folder that is not there yet")
        if target.resolve().is_relative_to(self._workspace):
            raise Refused(f"{target} is inside the workspace; name a folder outside of it")
        target.parent.mkdir(parents=True, exist_ok=True)
        command = ["cp", "-a", "--reflink=auto", "-T", "--", str(self._workspace), str(target)]
        done = subprocess.run(command, capture_output=True, env={"PATH": PATH, "LC_ALL": "C"}, check=False)
        if done.returncode:
            raise EffectFailed(f"the workspace cannot be copied: {done.stderr.decode(errors='replace').strip()}")
        if entries is not None:
            tree, _ = self._walk(target, frozenset(entries))
            with self._contents() as content:
                Restore(target, tree, entries, content).run()


def _read_save(text: bytes) -> tuple[Save, Mapping[str, Entry]]:
    listed = json.loads(text)
    return decode(Save, listed["save"], "save"), decode(dict[str, Entry], listed["entries"], "entries")


def _lines(entry: Entry | None, content: Content) -> Sequence[str]:
    if entry is None or entry.kind == "folder":
        return []
    if entry.kind == "link":
        return [f"-> {entry.content}"]
    text = content(entry.content)
    return (
        [f"[a binary file of {len(text)} bytes]"]
        if b"\0" in text[:8192]
        else text.decode(errors="replace").splitlines()
    )


def _stream(save: Save, listed: bytes, contents: Sequence[str], fresh: Mapping[str, bytes]) -> bytes:
    """What git imports: new contents, the list, and a commit that has both."""
    parts = [b"blob\ndata %d\n%b\n" % (len(content), content) for content in fresh.values()]
    message, moment = f"{save.name}\n".encode(errors="replace"), int(save.at)
    parts.append(b"blob\nmark :1\ndata %d\n%b\n" % (len(listed), listed))
    parts.append(b"commit %b%b\ncommitter Moothall <> %d +0000\n" % (REFS.encode(), save.id.encode(), moment))
    parts.append(b"data %d\n%bM 100644 :1 list\n" % (len(message), message))
    parts += [f"M 100644 {name} contents/{name[:2]}/{name[2:]}\n".encode() for name in contents]
    return b"".join([*parts, b"\ndone\n"])
