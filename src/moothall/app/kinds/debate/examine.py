"""What a check says of a debate's configuration: what is wrong with it, line by line, and what it can cost."""

from __future__ import annotations

from pathlib import Path

from moothall.app.kinds.check import Check, Examined, Told
from moothall.app.kinds.debate.files import problems_in
from moothall.app.kinds.document import read_document
from moothall.kernel.codec import encode
from moothall.machines.debate import debate, size_of
from moothall.machines.debate.definition import read_configuration
from moothall.machines.debate.state import Debate


def examine_file(path: Path, check: Check) -> Examined:
    """What was found out about one configuration."""
    document = read_document(path)
    problems = problems_in(document, path.parent)
    errors = sum(problem.level == "error" for problem in problems)
    configuration = None if errors else read_configuration(document.value, str(path))
    machine = debate(size_of(Debate("?", configuration=configuration))) if configuration else None
    bounds = {machine.name: check.certificate(machine)} if machine is not None else {}
    warnings = len(problems) - errors
    counts = f"{errors} error{'' if errors == 1 else 's'}, {warnings} warning{'' if warnings == 1 else 's'}"
    panel = ", ".join(agent.id for agent in configuration.panel) if configuration else "no panel"
    plain = {"file": str(path), "findings": encode(problems), "certificates": encode(bounds)}
    told = tuple(
        Told(problem.level, problem.code, f"{path}:{problem.line}", problem.why, problem.remedy, problem.pointer or "/")
        for problem in problems
    )
    return Examined(plain, told, bounds, f"{path}: {panel}: {counts}")
