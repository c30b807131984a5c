"""What was really written and what was acknowledged, noted beside the store; and whoever breaks a rule is caught."""

from __future__ import annotations

from typing import Any

from moothall.kernel.effects import Effect
from moothall.kernel.events import Forked, Mark, Retried
from moothall.runtime.journal import Entry, Pending, RunId, encode_entry
from moothall.runtime.ports import Context, Lease, Store
from moothall.runtime.retry import BAD_ENDS
from tests.simulation.shim import Given


class Ledger:
    """The memory of an impartial witness."""

    def __init__(self, truth: Store) -> None:
        self._truth = truth
        self.wrongs: list[str] = []
        self.entries: dict[RunId, dict[int, Entry]] = {}
        self.heard: dict[RunId, set[int]] = {}
        self._wanted: dict[str, Pending] = {}
        self._tokens: dict[RunId, int] = {}
        self._holders: dict[RunId, str] = {}
        self._relieved: set[RunId] = set()
        """Runs in which something may be there for what was denied: a child was called off, or the budget is new."""

    def written(self, name: str, given: Given, result: Any) -> None:
        """A write has reached the store."""
        run = given["record"].run if name == "begin" else given["run"]
        if name in ("begin", "commit"):
            for entry in (*given.get("earlier", ()), given["entry"]):
                self._keep(run, entry, given.get("lease"))
            self._note_holder(run, given.get("lease"), given.get("lease" if name == "begin" else "after"))
        elif name == "claim" and result is not None:
            self._tokens[run], self._holders[run] = result.token, result.owner
        elif name == "set_aside":
            self._tokens[run] = self._tokens.get(run, 1) + 1

    def _note_holder(self, run: RunId, lease: Lease | None, after: Lease | None) -> None:
        """A commit takes the run, keeps it, or lets it go; one from outside does nothing of that."""
        tokens = [one.token for one in (lease, after) if one is not None]
        self._tokens[run] = max([self._tokens.get(run, 1), *tokens])
        if lease is not None:
            self._holders[run] = after.owner if after is not None else ""

    def acknowledged(self, name: str, given: Given) -> None:
        """Whoever wrote this has been told that it is written."""
        if name == "begin":
            self.heard.setdefault(given["record"].run, set()).add(given["entry"].seq)
        if name == "commit":
            together = (*given.get("earlier", ()), given["entry"])
            self.heard.setdefault(given["run"], set()).update(entry.seq for entry in together)

    def is_fenced(self, run: RunId, lease: Lease) -> bool:
        """Whether somebody took the run from the holder of this lease."""
        return lease.token < self._tokens.get(run, 1)

    def ended_badly(self) -> list[RunId]:
        """The runs of which the latest entry says that they ended, but not well."""
        latest = {run: entries[max(entries)] for run, entries in self.entries.items()}
        return [run for run, entry in latest.items() if entry.status in BAD_ENDS]

    def begun(self, run: RunId) -> bool:
        """Whether the store has this run."""
        return run in self.entries

    def _keep(self, run: RunId, entry: Entry, lease: Lease | None) -> None:
        if lease is not None and self.is_fenced(run, lease):
            self.wrongs.append(f"{run}: {lease.owner} committed entry {entry.seq} after it had lost the run")
        kept = self.entries.setdefault(run, {})
        if entry.seq in kept:
            self.wrongs.append(f"{run}: entry {entry.seq} was written twice")
        kept[entry.seq] = entry
        is_anew = isinstance(entry.event, Retried | Forked)
        if is_anew or (entry.ignored and not isinstance(entry.event, Mark)):
            self._relieved.add(run)
        for wanted in entry.effects:
            self._wanted[f"{run}.{wanted.key}"] = wanted

    async def performing(self, effect: Effect, context: Context, owner: str, before: int) -> None:
        """Somebody begins to perform this, which was begun so often before: it must be in the journal, and allowed."""
        wanted = self._wanted.get(context.key)
        if wanted is None:
            await self._look_up(context)
        elif wanted.effect != effect or wanted.nth != context.nth:
            self.wrongs.append(f"{context.key} stands for {wanted}, and {effect} is performed")
        elif wanted.denied and context.run not in self._relieved:
            self.wrongs.append(f"{context.key} is performed though there is no {wanted.denied} left for it")
        is_held = self._holders.get(context.run) == owner
        if before and is_held and effect.repeats == "check-first" and not context.again:
            self.wrongs.append(f"{context.key} is performed again, and its performer is not told so")
        if before and effect.repeats == "at-most-once":
            await self._count(context, before)

    async def _look_up(self, context: Context) -> None:
        """Find an effect in the store itself: its writer may have died before anybody noted the commit."""
        entries = await self._truth.entries(context.run)
        if context.key not in {f"{context.run}.{one['key']}" for entry in entries for one in entry["effects"]}:
            self.wrongs.append(f"{context.key} is performed before the step that wants it was written")

    async def _count(self, context: Context, before: int) -> None:
        """What may be done at most once is begun again only where a person said so."""
        again = f"{context.key.removeprefix(context.run + '.')}-repeated-"
        said = [entry for entry in await self._truth.entries(context.run) if entry["cause"].startswith(again)]
        if before > len(said):
            self.wrongs.append(f"{context.key} is performed again, and nobody said that it may be")

    def differs(self, run: RunId, entries: list[Any]) -> list[str]:
        """Entries that were acknowledged and are not in the journal as they were."""
        return [
            f"{run}: entry {seq} was acknowledged and is lost"
            for seq in sorted(self.heard.get(run, ()))
            if seq >= len(entries) or entries[seq] != encode_entry(self.entries[run][seq])
        ]
