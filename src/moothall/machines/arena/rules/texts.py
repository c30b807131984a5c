"""Text whose every part is known, unknown or stands for a place, and paths made of it.

A shell's words are computed as far as they can be. Three signs that nobody types stand for what cannot be: something
unknown, the user's home folder, the workspace. `shape` is the same text with a sign for every variable that nobody set:
empty when it is run, but put together all the same. Tags tell where a text came from: `fetched` over the network,
`decoded`, the whole `environment`, an `envfile`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

UNKNOWN, HOME, WORK = "\ue000", "\ue001", "\ue002"
NO_TAGS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Text:
    """A text as far as it is known, its shape, and where it came from."""

    text: str = ""
    shape: str = ""
    tags: frozenset[str] = NO_TAGS

    def __add__(self, other: Text) -> Text:
        return Text(self.text + other.text, self.shape + other.shape, self.tags | other.tags)

    def is_known(self) -> bool:
        return UNKNOWN not in self.text


def constant(text: str) -> Text:
    """A text that stands in the plan."""
    return Text(text, text)


def unknown(tags: Iterable[str] = ()) -> Text:
    """A text of which at most its origin is known."""
    return Text(UNKNOWN, UNKNOWN, frozenset(tags))


def join(texts: Iterable[Text], separator: str = " ") -> Text:
    """Texts behind one another."""
    joined = Text()
    for number, text in enumerate(texts):
        joined = joined + constant(separator if number else "") + text
    return joined


def resolve(path: str, folder: str = WORK) -> str:
    """A path from a folder, with `.` and `..` taken out as far as they can be.

    The result begins with `/`, with the sign for home or workspace, or with the unknown one. What leaves the workspace
    begins with the workspace's sign and `/..`.
    """
    if not path.startswith(("/", HOME, WORK, UNKNOWN)):
        path = f"{folder}/{path}"
    root, rest = ("/", path) if path.startswith("/") else (path[0], path[1:])
    if root != "/" and rest and not rest.startswith("/"):
        root, rest = UNKNOWN, ""  # a name glued to a folder's path is some other folder beside it
        if path[0] in (HOME, WORK):
            root, rest = path[0], "/../" + UNKNOWN
    parts: list[str] = []
    for part in rest.split("/"):
        if part in ("", "."):
            continue
        if part != "..":
            parts.append(part)
        elif parts and parts[-1] != "..":
            parts.pop()
        elif root == HOME:
            root = "/"
        elif root == WORK:
            parts.append("..")
    inner = "/".join(parts)
    return f"/{inner}" if root == "/" else root + (f"/{inner}" if inner else "")


GIT_STATE = re.compile(r"/\.git/(?:rebase-\w+|lfs|[\w.-]*\.lock|gc\.\w+|modules/.+)$")


def danger_of(path: str, *, made: Iterable[str] = ()) -> str:
    """What is lost with a resolved path, or nothing; `made` are folders that the same command brought here."""
    if path.startswith("/"):
        # what lies in the folder for temporary files is nobody's loss
        return "" if re.match(r"/(?:var/)?tmp/[^/]", path) else "an absolute path"
    if path.startswith(HOME):
        return "a home folder"
    if f"{path}/".startswith(f"{WORK}/../"):
        return "a path outside of the workspace"
    if re.search(r"(?:^|/)\.git(?:/|$)", path[1:]) and path.startswith(WORK) and not GIT_STATE.search(path):
        owner = path[: path.index("/.git")]
        return "" if owner in made else "the history in .git"
    return ""


def readable(text: str) -> str:
    """A text for people."""
    return text.replace(HOME, "~").replace(f"{WORK}/", "").replace(WORK, ".").replace(UNKNOWN, "…")
