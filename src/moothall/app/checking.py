"""Checking a machine together with the machines that it starts."""

from __future__ import annotations

from moothall.app.casting import child_machine
from moothall.kernel.certify import Certificate, Unbounded, certify
from moothall.kernel.machine import Machine


def certificate(machine: Machine, above: frozenset[str] = frozenset()) -> Certificate | Unbounded:
    """The most that a run of this machine and its children can take; a machine that starts itself has no such bound."""
    names = {getattr(one, "child", "") for one in machine.actions()} - above - {machine.name, ""}
    below = {name: certificate(child_machine(machine, name), above | {machine.name}) for name in names}
    return certify(machine, {name: one for name, one in below.items() if isinstance(one, Certificate)})
