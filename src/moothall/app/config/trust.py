"""What `moot trust` does: shows what a project's file says, and remembers that the user trusts it.

Besides a project's settings, a file of roles or workflows can be trusted, to take the place of what is shipped.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from moothall.agents.toolserver import Toolserver
from moothall.app.config.project import NAME, TOOLS, nearest, read_project, remember, trusted_files
from moothall.app.config.settings import Settings, project_settings, state_directory
from moothall.drawing.text import printable
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
    known = dict(trusted_files(home))
    project = read_project(_path_of(given), home)
    if project.problem:
        raise DefinitionError(f"{project.file}: {project.problem}")
    found = project_settings(project) if project.file.name == NAME else Settings()
    remember(home, known | {str(project.file): project.digest})
    tools = tuple(f"{TOOLS}/{name}" for name in project.tools)
    return Trusted(str(project.file), project.digest, tools=tools), found


def forget(given: str | None = None) -> str:
    """Trust a file no longer."""
    home, file = state_directory(), str(_path_of(given))
    known = dict(trusted_files(home))
    if known.pop(file, None) is None:
        raise Refused(f"{file} was not trusted before")
    remember(home, known)
    return file


def all_trusted() -> tuple[Trusted, ...]:
    """The files that are trusted, and which of them are not as they were."""
    home = state_directory()
    return tuple(
        Trusted(file, digest, read_project(Path(file), home).unused)
        for file, digest in sorted(trusted_files(home).items())
    )


def lines_of(settings: Settings) -> Iterator[str]:
    """What a project's file sets, for whoever is to trust it."""
    for field in fields(settings):
        match getattr(settings, field.name):
            case str(value) if value:
                yield printable(f"{field.name} = {value}")
            case Mapping() as table:
                yield from (printable(line) for line in _table_lines(field.name, table))


def _table_lines(name: str, table: Mapping[str, Any]) -> Iterator[str]:
    for key, value in table.items():
        if name == "addresses":
            yield f"address {key}" + (f" gets the key in {value.key_from}" if value.key_from else "")
        elif name == "servers":
            keys = ", ".join((*value.env_from, *((value.key_from,) if value.key_from else ())))
            yield f"server {key} {_way(value)}" + (f" and gets {keys}" if keys else "")
        else:
            yield f"{'policy' if name == 'policies' else name.removesuffix('s')} {key} = {value}"


def _way(server: Toolserver) -> str:
    return server.url or f"runs {shlex.join(server.command)}"


def _path_of(given: str | None) -> Path:
    """The file that is meant, with no links in the way to it: that is how it is found again."""
    if given is None:
        file = nearest()
        if file is None:
            raise DefinitionError(f"there is no {NAME} here, nor above it in the repository; name one")
        return file
    path = Path(given)
    path = path / NAME if os.path.isdir(path) else path
    if path.name != NAME and path.suffix != ".json":
        also = "and .json files of roles or workflows"
        raise DefinitionError(f"{given}: only files that are called {NAME} are used, {also}; there is nothing to trust")
    return Path(os.path.realpath(path.parent)) / path.name
