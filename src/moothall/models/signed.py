"""A model that signs what it says, where a run has several: so the journal knows which of them a reply is of."""

from __future__ import annotations

from dataclasses import replace

from moothall.agents.ports import Model, Reply, Request, open_ahead
from moothall.errors import EffectFailed


class SignedModel:
    """Asks a model, and signs its replies and its failures, unless they are signed by one within."""

    def __init__(self, model: Model, name: str) -> None:
        self._model, self._name = model, name

    async def open(self) -> None:
        """Open the model within."""
        await open_ahead(self._model)

    async def reply(self, request: Request) -> Reply:
        try:
            reply = await self._model.reply(request)
        except EffectFailed as failure:
            failure.model = failure.model or self._name
            raise
        return reply if reply.model else replace(reply, model=self._name)
