"""Checking machines and files together with the machines that they start.

However many machines a file has and however often they start each other, a check reads each file once and certifies
each machine once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moothall.analysis.certify import Certificate, Unbounded, certify
from moothall.analysis.verify import verify
from moothall.app.kinds.kind import kind_of
from moothall.app.kinds.source import child_machine, find, kinds_at, source_of
from moothall.errors import DefinitionError
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Machine

Bound = Certificate | Unbounded


class Told(Frozen):
    """One thing that was found: how bad it is, its code, where, why, and what to do about it."""

    level: str
    code: str
    place: str
    why: str
    remedy: str
    inside: str = ""
    """Where in that place."""


class Examined(Frozen):
    """What was found out about one machine or file: for scripts, for people, and what its machines can take."""

    plain: Mapping[str, Any]
    told: tuple[Told, ...]
    bounds: Mapping[str, Bound]
    summary: str = ""
    """What is said below; "" where the bound says it all."""

    @property
    def is_wrong(self) -> bool:
        """Whether it cannot be used."""
        is_endless = any(isinstance(bound, Unbounded) for bound in self.bounds.values())
        return any(told.level == "error" for told in self.told) or (bool(self.summary) and is_endless)


def certificate(machine: Machine) -> Bound:
    """The most that a run of this machine and its children can take; a machine that starts itself has no such bound."""
    return Check().certificate(machine)


class Check:
    """One check of machines and files, which are taken to stay as they are while it lasts.

    `kept` is what kinds remember meanwhile, each under its own name. Roles and functions are those that the user names.
    """

    def __init__(self, *, roles: str = "", functions: str = "") -> None:
        self.roles = roles
        self.functions = functions
        self.kept: dict[str, Any] = {}
        self._certified: dict[Machine, Bound] = {}

    def examine(self, source: str) -> Iterator[Examined]:
        """Everything that is wrong at a source: a machine, a file, or a folder of files."""
        for kind in kinds_at(source):
            if (examined := kind.examine(source, self)) is not None:
                yield from examined
                return
        yield self._machine(find(source))

    def _machine(self, machine: Machine) -> Examined:
        findings, bound = verify(machine), self.certificate(machine)
        plain = {"machine": machine.name, "findings": findings, "certificate": bound}
        told = tuple(
            Told(finding.level, finding.code, finding.place, finding.why, finding.remedy) for finding in findings
        )
        return Examined(plain, told, {machine.name: bound})

    def certificate(self, machine: Machine, above: frozenset[str] = frozenset()) -> Bound:
        """The certificate of a machine that those above start; one that starts itself in the end has none.

        Types that cannot be stored are refused: such a run would come to nothing.
        """
        if machine not in self._certified:
            machine.require_types()
            above |= {_place(machine)}
            below = {
                name: self.certificate(child, above)
                for name, child in self._children(machine)
                if _place(child) not in above
            }
            known = {name: bound for name, bound in below.items() if isinstance(bound, Certificate)}
            self._certified[machine] = certify(machine, known)
        return self._certified[machine]

    def _children(self, machine: Machine) -> Iterator[tuple[str, Machine]]:
        kept = self.kept.get(machine.kind)
        for name in {getattr(action, "child", "") for action in machine.actions()} - {machine.name, ""}:
            yield name, kind_of(machine).beside(machine, name, kept) or child_machine(machine, name)

    def certificate_or_reason(self, found: Machine | DefinitionError) -> Bound:
        """The certificate of a machine, or why it has none."""
        if isinstance(found, DefinitionError):
            return Unbounded((), str(found))
        try:
            return self.certificate(found)
        except DefinitionError as error:  # in a file that it belongs with: of roles, or of a machine that it starts
            return Unbounded((), str(error))


def _place(machine: Machine) -> str:
    """What tells a machine from others of its name; one that was made on the fly has only that."""
    return source_of(machine) or machine.name
