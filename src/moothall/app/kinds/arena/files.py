"""Files of the arena: its configuration, and plans that are checked by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from os.path import isfile
from pathlib import Path
from typing import Any

from moothall.app.kinds.check import Examined, Told
from moothall.errors import DefinitionError
from moothall.kernel.codec import encode
from moothall.machines.arena.definition import SHAPE, Configuration, findings, read_configuration
from moothall.machines.arena.plan import Plan, decode_plan
from moothall.machines.arena.rules import Violation, static_rules
from moothall.machines.workflow.document import read

TELLING = frozenset(("bands", "weights", "identity", "deadline"))
"""Keys that no other kind of file begins with."""


def read_arena(file: Path | None) -> Configuration:
    """A configuration from a file; the usual one where none is named."""
    return Configuration() if file is None else read_configuration(read_plain(file), str(file))


def plan_violations(file: Path) -> list[Violation]:
    """What the static rules veto in the plan of a file: `{tasks: […]}`, or an object that has one as its plan."""
    plain = read_plain(file)
    if isinstance(plain, dict) and "tasks" not in plain and "plan" in plain:
        plain = plain["plan"]
    return static_rules(_plan(plain, file))


def _plan(plain: Any, file: Path) -> Plan:
    try:
        return decode_plan(plain)
    except ValueError as error:
        raise DefinitionError(f"{file}: {error}") from error


def read_plain(file: Path) -> Any:
    """What a JSON file says."""
    try:
        document = read(file.read_bytes())
    except OSError as error:
        raise DefinitionError(f"{file} cannot be read: {error.strerror}") from error
    if document.problems:
        first = document.problems[0]
        raise DefinitionError(f"{file}: {first.pointer or '/'}: {first.why}; {first.remedy}")
    return document.value


def is_configuration(file: Path) -> bool:
    """Whether a file is a configuration of the arena, and not another kind of file."""
    if file.suffix != ".json" or not isfile(file):
        return False
    try:
        plain = read_plain(file)
    except DefinitionError:
        return False
    return isinstance(plain, dict) and bool(TELLING & plain.keys()) and not isinstance(plain.get("agents"), list)


def file_findings(file: Path) -> Iterator[Examined]:
    """What is wrong with a configuration."""
    problems = tuple(findings(read_plain(file)))
    told = tuple(
        Told(problem.level, problem.code, str(file), problem.why, problem.remedy, problem.pointer or "/")
        for problem in problems
    )
    errors = sum(problem.level == "error" for problem in problems)
    summary = f"{file}: {SHAPE.title.lower()}: {errors} errors, {len(problems) - errors} warnings"
    yield Examined({"file": str(file), "kind": "arena", "findings": encode(problems)}, told, {}, summary)
