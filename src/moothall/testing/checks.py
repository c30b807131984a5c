"""What `moot check` finds, for a test."""

from __future__ import annotations

from typing import Any

from moothall.analysis.certify import Certificate, Unbounded
from moothall.analysis.verify import verify
from moothall.app.kinds.check import certificate
from moothall.kernel.machine import Machine


def check(machine: Machine[Any, Any]) -> Certificate | Unbounded:
    """Fail the test if `moot check` would refuse the machine; else the most that a run of it can take."""
    bound = certificate(machine)
    wrong = [
        f"{finding.place}: {finding.why}; {finding.remedy}" for finding in verify(machine) if finding.level == "error"
    ]
    if wrong:
        raise AssertionError(f"machine {machine.name}: " + "\n".join(wrong))
    return bound
