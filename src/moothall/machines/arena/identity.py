"""Whose work this is: the locks that have to hold before anything else is touched.

Four things can be locked: the cloud project, the database, the workspace and the operator. They are declared by the
configuration and by the store's identity record; what is declared nowhere is not locked. Each declared value is held
against what is found around the run, and the two declarations against each other.
"""

from __future__ import annotations

from moothall.kernel.frozen import Frozen

COLLECTION, KEY = "identity", "store"
"""Where the store keeps its identity record."""


class Locks(Frozen):
    """What is locked; an empty text locks nothing."""

    cloud_project: str = ""
    database: str = ""
    workspace: str = ""
    operator: str = ""


NAMES = ("cloud_project", "database", "workspace", "operator")
TITLES = {"cloud_project": "cloud project", "database": "database", "workspace": "workspace", "operator": "operator"}


class IdentityGuard(Frozen):
    """Holds what is declared, by the configuration and by the store, against what is found."""

    declared: Locks = Locks()
    stored: Locks = Locks()

    def mismatches(self, found: Locks) -> tuple[str, ...]:
        """What does not hold, a sentence each; nothing where every lock does."""
        wrong: list[str] = []
        for name in NAMES:
            here: str = getattr(found, name)
            for whose, locks in (("the configuration", self.declared), ("the store", self.stored)):
                wanted: str = getattr(locks, name)
                if wanted and wanted != here:
                    seen = repr(here) if here else "not set"
                    wrong.append(f"the {TITLES[name]} is {seen}; {whose} is locked to {wanted!r}")
        return tuple(wrong)
