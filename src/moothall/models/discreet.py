"""A model whose words are heard without secrets while they come.

A secret comes in pieces, and no piece looks like one. So who listens gets what is certain to be none, and the rest when
the reply is there. The reply itself is cleaned by whoever keeps it.
"""

from __future__ import annotations

from dataclasses import replace

from moothall.agents.ports import Model, Reply, Request, open_ahead
from moothall.agents.secrets import CleanEar, Cleaner


class DiscreetModel:
    """Asks a model, and cleans what is heard of it."""

    def __init__(self, model: Model, clean: Cleaner) -> None:
        self._model = model
        self._clean = clean

    async def open(self) -> None:
        """Open the model within."""
        await open_ahead(self._model)

    async def reply(self, request: Request) -> Reply:
        if request.hear is None:
            return await self._model.reply(request)
        ear = CleanEar(request.hear, self._clean)
        reply = await self._model.reply(replace(request, hear=ear))
        ear.close()
        return reply
