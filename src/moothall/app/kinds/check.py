"""Checking machines and workflow files together with the machines that they start.

However many workflows a file has and however often they start each other, a check reads each file once and certifies
each machine once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from moothall.analysis.certify import Certificate, Unbounded, certify
from moothall.app.kinds.bindings import child_machine
from moothall.app.kinds.python import is_of_workflow, source_of
from moothall.app.kinds.workflow.files import Checked, Shelf
from moothall.errors import DefinitionError
from moothall.kernel.machine import Machine


def certificate(machine: Machine) -> Certificate | Unbounded:
    """The most that a run of this machine and its children can take; a machine that starts itself has no such bound."""
    return Check().certificate(machine)


class Check:
    """One check of machines and files, which are taken to stay as they are while it lasts."""

    def __init__(self) -> None:
        self._shelf = Shelf()
        self._certified: dict[Machine, Certificate | Unbounded] = {}

    def file(self, path: Path) -> Checked:
        """Everything that is wrong with a file."""
        return self._shelf.checked(path)

    def certificates(self, checked: Checked) -> Mapping[str, Certificate | Unbounded]:
        """The certificates of the workflows of a file; a file with errors has none."""
        file, names = Path(checked.file), () if checked.is_wrong else checked.workflows
        return {name: self._of_workflow(file, name) for name in names}

    def _of_workflow(self, file: Path, name: str) -> Certificate | Unbounded:
        from moothall.app.kinds.workflow.runs import Spot, machine_at  # a machine in Python never needs it

        try:
            return self.certificate(machine_at(Spot(file, name).source, self._shelf))
        except DefinitionError as error:  # in a file that it belongs with: of roles, or of a workflow that it starts
            return Unbounded((), str(error))

    def certificate(self, machine: Machine, above: frozenset[str] = frozenset()) -> Certificate | Unbounded:
        """The certificate of a machine that those above start; one that starts itself in the end has none.

        Types that cannot be stored are refused: such a run would come to nothing.
        """
        if machine not in self._certified:
            machine.require_types()
            above |= {_place(machine)}
            below = {
                name: self.certificate(one, above) for name, one in self._children(machine) if _place(one) not in above
            }
            known = {name: one for name, one in below.items() if isinstance(one, Certificate)}
            self._certified[machine] = certify(machine, known)
        return self._certified[machine]

    def _children(self, machine: Machine) -> Iterator[tuple[str, Machine]]:
        for name in {getattr(one, "child", "") for one in machine.actions()} - {machine.name, ""}:
            yield name, self._sub_workflow(machine, name) or child_machine(machine, name)

    def _sub_workflow(self, machine: Machine, name: str) -> Machine | None:
        if not is_of_workflow(machine):
            return None
        from moothall.app.kinds.workflow.runs import sub_workflow  # a machine in Python never needs it

        return sub_workflow(source_of(machine), name, self._shelf)


def _place(machine: Machine) -> str:
    """What tells a machine from others of its name; one that was made on the fly has only that."""
    return source_of(machine) or machine.name
