"""What is around runs in tests: a hall over a store, and who listens."""

from moothall.app.runs.context import RunContext, new_hall
from moothall.app.runs.news import Broadcast, Listener
from moothall.runtime.ports import Store


def context_over(store: Store, *listeners: Listener) -> RunContext:
    """What a program has around runs that it keeps in this store."""
    broadcast = Broadcast(listeners)
    return RunContext(new_hall(store, broadcast), broadcast)
