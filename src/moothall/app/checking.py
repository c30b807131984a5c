"""Checking a machine, or the workflows of a file, together with the machines that they start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from moothall.app.casting import child_machine
from moothall.app.workflows import Checked
from moothall.errors import DefinitionError
from moothall.kernel.certify import Certificate, Unbounded, certify
from moothall.kernel.machine import Machine


def certificate(machine: Machine, above: frozenset[str] = frozenset()) -> Certificate | Unbounded:
    """The most that a run of this machine and its children can take; a machine that starts itself has no such bound.

    Types that cannot be stored are refused: such a run would come to nothing.
    """
    machine.require_types()
    names = {getattr(one, "child", "") for one in machine.actions()} - above - {machine.name, ""}
    below = {name: certificate(child_machine(machine, name), above | {machine.name}) for name in names}
    return certify(machine, {name: one for name, one in below.items() if isinstance(one, Certificate)})


def certificates(checked: Checked) -> Mapping[str, Certificate | Unbounded]:
    """The certificates of the workflows of a file; a file with errors has none."""
    return {} if checked.is_wrong else {name: _of_workflow(Path(checked.file), name) for name in checked.workflows}


def _of_workflow(file: Path, name: str) -> Certificate | Unbounded:
    from moothall.app.workflow_runs import Spot, machine_at  # a machine in Python never needs it

    try:
        return certificate(machine_at(Spot(file, name).source))
    except DefinitionError as error:  # in a file that it belongs with: of roles, or of a workflow that it starts
        return Unbounded((), str(error))
