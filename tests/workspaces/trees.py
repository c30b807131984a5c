"""Random trees for workspaces: files, links, empty folders, any mode, odd names."""

import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

NAMES = st.sampled_from(
    [
        "a",
        "b",
        "c.txt",
        ".hidden",
        "größe 世界",
        "-dash",
        "new\nline",
        " blank",
        ".gitattributes",
        "HEAD",
        ".git",
        "x" * 100,
    ]
)
MODES = st.sampled_from([0o644, 0o755, 0o600, 0o444, 0o000, 0o640, 0o777, 0o400])
FOLDER_MODES = st.sampled_from([0o755, 0o700, 0o555, 0o777, 0o711])
CONTENTS = st.one_of(
    st.binary(max_size=60),
    st.sampled_from([b"", b"one\r\ntwo\r\n", b"$Id$\n", b"* filter=evil text=auto eol=crlf\n", b"\0\xff" * 40]),
)
TARGETS = st.sampled_from(["a", "../a", "/etc/passwd", "nowhere", ".", "c.txt", "größe 世界"])

Node = tuple[Any, ...]


def nodes(children: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    inner = st.dictionaries(NAMES, children, max_size=4)
    return st.tuples(st.just("folder"), FOLDER_MODES, inner)


LEAVES: st.SearchStrategy[Node] = st.one_of(
    st.tuples(st.just("file"), MODES, CONTENTS), st.tuples(st.just("link"), TARGETS)
)
TREES: st.SearchStrategy[Mapping[str, Node]] = st.dictionaries(
    NAMES.filter(lambda name: name != ".git"), st.recursive(LEAVES, nodes, max_leaves=12), max_size=5
)


def build(root: Path, tree: Mapping[str, Node]) -> None:
    """Make a tree below a folder; modes come last, so that closed folders can be filled."""
    for name, node in tree.items():
        path = root / name
        match node:
            case ("file", mode, content):
                path.write_bytes(content)
                path.chmod(mode)
            case ("link", target):
                path.symlink_to(target)
            case ("folder", mode, inner):
                path.mkdir()
                build(path, inner)
                path.chmod(mode)
            case _:
                raise AssertionError(node)


def clear(root: Path) -> None:
    """Remove everything but git's own folder at the root."""
    for path in root.iterdir():
        if path.name == ".git":
            continue
        if path.is_dir() and not path.is_symlink():
            for top, folders, _ in os.walk(path):
                for folder in folders:
                    if not os.path.islink(f"{top}/{folder}"):
                        os.chmod(f"{top}/{folder}", 0o700)
            path.chmod(0o700)
            shutil.rmtree(path)
        else:
            path.unlink()


def seen(root: Path) -> dict[str, Any]:
    """Everything below a folder but git's own at the root: kind, mode, content."""
    found: dict[str, Any] = {}
    for top, folders, files in os.walk(root):
        if top == str(root) and ".git" in folders:
            folders.remove(".git")
        for name in (*folders, *files):
            path = Path(top) / name
            mode = path.lstat().st_mode
            content: Any = None
            if stat.S_ISREG(mode):
                content = path.read_bytes()
            elif stat.S_ISLNK(mode):
                content = os.readlink(path)
            found[str(path.relative_to(root))] = (mode, content)
    return found
