"""What Temporal remembers of a run: its id, and the keys of the effects that are due.

Everything else is in the store. A definition may change, and this need not. The workflow of a run closes when nothing
is due; whoever finds that the run wants attention again starts another one with the same id.
"""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

SILENCE = timedelta(seconds=2)
"""So long may a worker be silent before its turn goes to another."""
LONGEST = timedelta(days=30)
"""So long may one effect take, unless it has a time-out of its own."""
TURNS = 50
"""After so many turns a workflow begins a new history."""
KEYS = 20
"""So many keys are remembered; the store knows them all."""


@workflow.defn(name="moothall-run", sandboxed=False)
class Pump:
    """Has a run moved, turn by turn, for as long as something of it is due."""

    @workflow.run
    async def run(self, run_id: str, turns: int = 0) -> int:
        """How many turns it took until nothing was due."""
        due: list[str] = []
        while True:
            due = await workflow.execute_activity(
                "perform_advance",
                run_id,
                result_type=list[str],
                start_to_close_timeout=LONGEST,
                heartbeat_timeout=SILENCE,
                retry_policy=RetryPolicy(
                    initial_interval=timedelta(seconds=0.2), maximum_interval=timedelta(seconds=10)
                ),
                summary=" ".join(due) or None,
            )
            if not due:
                return turns
            turns += 1
            if turns % TURNS == 0:
                workflow.continue_as_new(args=[run_id, turns])
