"""The chain of approvals: what was made, out of what, and who approved exactly that.

Everybody has one piece of work, the newest. It has a digest, and it is based on the work that its author was handed.
An approval names the digest that it approves. Where a work changes or is sent back, the approvals of it and of all
that is based on it are void, and no others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace

from moothall.kernel.frozen import Frozen


class Submission(Frozen):
    """What somebody made: the text, its digest, and whose work it is based on ("" for nobody's)."""

    author: str
    text: str
    digest: str
    basis: str = ""


class Approved(Frozen):
    """Somebody approved the work of an author, and exactly the one with this digest."""

    by: str
    author: str
    digest: str
    turn: int = 0


def digest_of(text: str, basis: str = "") -> str:
    """The digest of a work: of its text and of what it is based on."""
    return hashlib.sha256(f"{basis}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Chain(Frozen):
    """The newest work of everybody, in the order in which it was first made, and the approvals that hold."""

    works: tuple[Submission, ...] = ()
    approvals: tuple[Approved, ...] = ()

    def work_of(self, author: str) -> Submission | None:
        """The newest work of somebody."""
        return next((work for work in self.works if work.author == author), None)

    def made(self, author: str, text: str, basis: str = "") -> Chain:
        """The chain after somebody made something; where it is another text than before, approvals of it are void."""
        before = self.work_of(author)
        under = self.work_of(basis) if basis != author else None
        work = Submission(author, text, digest_of(text, under.digest if under else ""), basis if under else "")
        if before is not None and before.digest == work.digest:
            return self
        kept = self if before is None else self.sent_back(author)
        others = tuple(other for other in kept.works if other.author != author)
        return replace(kept, works=(*others, work))

    def approved(self, by: str, author: str, turn: int = 0) -> Chain:
        """The chain after somebody approved the work of an author as it is now."""
        work = self.work_of(author)
        if work is None or any(known.by == by and known.digest == work.digest for known in self.approvals):
            return self
        return replace(self, approvals=(*self.approvals, Approved(by, author, work.digest, turn)))

    def sent_back(self, author: str) -> Chain:
        """The chain after the work of an author was sent back: approvals of it and of what is based on it are void."""
        void = {author, *self.dependents(author)}
        return replace(self, approvals=tuple(known for known in self.approvals if known.author not in void))

    def dependents(self, author: str) -> frozenset[str]:
        """Everybody whose work is based on that of an author, directly or by way of others."""
        found: set[str] = set()
        fresh = [author]
        while fresh:
            fresh = [work.author for work in self._based_on(fresh.pop()) if work.author not in found] + fresh
            found.update(fresh)
        return frozenset(found - {author})

    def _based_on(self, author: str) -> Iterator[Submission]:
        return (work for work in self.works if work.basis == author)
