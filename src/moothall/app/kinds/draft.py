"""Checking a file that nobody has saved yet: everything that is wrong with it, and its picture where it has one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from moothall.app.kinds.check import Check, Examined
from moothall.app.kinds.source import find
from moothall.app.report.detail import draw_machine
from moothall.errors import DefinitionError, MoothallError, Refused
from moothall.kernel.codec import encode
from moothall.kernel.frozen import Frozen

ENDINGS = (".json", ".yaml", ".yml")


class Draft(Frozen):
    """What was found out about a file, and the picture of its machine."""

    findings: tuple[Mapping[str, Any], ...]
    is_wrong: bool
    summary: str
    bounds: Mapping[str, Any]
    picture: Mapping[str, Any] | None = None
    problem: str = ""
    """Why there is no picture."""


def check_draft(text: str, name: str = "draft.json") -> Draft:
    """Check the text of a workflow, debate, arena or team file. Nothing in it is executed."""
    if not name.endswith(ENDINGS) or Path(name).name != name:
        raise Refused(f"{name!r} is not the name of a JSON or YAML file")
    with TemporaryDirectory(prefix="moot-draft-") as folder:
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8")
        return _check_draft(path, str(path), name)


def _check_draft(path: Path, long: str, name: str) -> Draft:
    try:
        checks = list(Check().examine(str(path)))
    except DefinitionError as error:
        return Draft((), True, str(error).replace(long, name), {}, None, str(error).replace(long, name))
    findings = [finding for check in checks for finding in _findings(check, long, name)]
    is_wrong = any(check.is_wrong for check in checks)
    picture, problem = None, ""
    try:
        picture = draw_machine(find(str(path)))
    except MoothallError as error:
        problem = str(error).replace(long, name)
    summary = "\n".join(check.summary for check in checks).replace(long, name)
    bounds = {machine: encode(bound) for check in checks for machine, bound in check.bounds.items()}
    return Draft(tuple(findings), is_wrong, summary, bounds, picture, problem)


def _findings(examined: Examined, long: str, name: str) -> Iterator[Mapping[str, Any]]:
    for told in examined.told:
        plain: dict[str, Any] = encode(told)
        yield {key: value.replace(long, name) for key, value in plain.items()}
