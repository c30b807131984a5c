"""What `moot trust` does: shows what a project's file says, and remembers that the user trusts it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from moothall.agents.toolserver import Toolserver
from moothall.app.config.project import NAME, TOOLS, looked_at, nearest, remember, remembered
from moothall.app.config.settings import Settings, project_settings, state_directory
from moothall.errors import DefinitionError, Refused
from moothall.kernel.frozen import Frozen


class Trusted(Frozen):
    """A file that is trusted, and what becomes of it now: "" where it is used where it lies."""

    file: str
    digest: str
    unused: str = ""
    tools: tuple[str, ...] = ()
    """The files of its own tools."""


def trust(given: str | None = None) -> tuple[Trusted, Settings]:
    """Trust a project's file as it is now, and say what it sets. One that could not be used is not trusted."""
    home = state_directory()
    known = dict(remembered(home))
    project = looked_at(_named(given), home)
    if project.problem:
        raise DefinitionError(f"{project.file}: {project.problem}")
    found = project_settings(project)
    remember(home, known | {str(project.file): project.digest})
    tools = tuple(f"{TOOLS}/{name}" for name in project.tools)
    return Trusted(str(project.file), project.digest, tools=tools), found


def forget(given: str | None = None) -> str:
    """Trust a file no longer."""
    home, file = state_directory(), str(_named(given))
    known = dict(remembered(home))
    if known.pop(file, None) is None:
        raise Refused(f"{file} is not trusted anyway")
    remember(home, known)
    return file


def all_trusted() -> tuple[Trusted, ...]:
    """The files that are trusted, and which of them are not as they were."""
    home = state_directory()
    return tuple(
        Trusted(file, digest, looked_at(Path(file), home).unused) for file, digest in sorted(remembered(home).items())
    )


def lines_of(settings: Settings) -> Iterator[str]:
    """What a project's file sets, for whoever is to trust it."""
    for name in ("model", "store", "durability", "on_wait"):
        if value := getattr(settings, name):
            yield f"{name} = {value}"
    yield from (f"policy {name} = {policy}" for name, policy in settings.policies.items())
    yield from (f"level {name} = {model}" for name, model in settings.levels.items())
    for name, server in settings.servers.items():
        keys = ", ".join((*server.env_from, *((server.key_from,) if server.key_from else ())))
        yield f"server {name} {_way(server)}" + (f" and gets {keys}" if keys else "")
    for address, set_ in settings.addresses.items():
        yield f"address {address}" + (f" gets the key in {set_.key_from}" if set_.key_from else "")


def _way(server: Toolserver) -> str:
    return server.url or f"runs {shlex.join(server.command)}"


def _named(given: str | None) -> Path:
    """The file that is meant, with no links in the way to it: that is how it is found again."""
    if given is None:
        file = nearest()
        if file is None:
            raise DefinitionError(f"there is no {NAME} here, nor above it in the repository; name one")
        return file
    path = Path(given)
    path = path / NAME if os.path.isdir(path) else path
    if path.name != NAME:
        raise DefinitionError(f"{given}: only files that are called {NAME} are used; there is nothing to trust")
    return Path(os.path.realpath(path.parent)) / NAME
