"""`a|b|c`: the next model is asked where one fails, within the same attempt.

Where all fail the attempt has failed. Another one is worth it unless every failure is final, and not before the first
of them wants to be asked again. What the failed ones cost is added to what the reply costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from moothall.agents.ports import Model, Reply, Request, open_ahead
from moothall.errors import EffectFailed


class FallbackModel:
    """Asks one model after the other until one replies."""

    def __init__(self, models: Sequence[Model]) -> None:
        self._models = models

    async def open(self) -> None:
        """Open the model that is asked first."""
        await open_ahead(self._models[0])

    async def reply(self, request: Request) -> Reply:
        failures: list[EffectFailed] = []
        for model in self._models:
            try:
                reply = await model.reply(request)
            except EffectFailed as failure:
                failures.append(failure)
            else:
                return replace(reply, usage=_sum([reply.usage, *(failure.usage for failure in failures)]))
        raise _all(failures) from failures[0]


def _all(failures: Sequence[EffectFailed]) -> EffectFailed:
    passing = [failure.retry_after for failure in failures if not failure.final]
    return EffectFailed(
        "; ".join(map(str, failures)),
        retry_after=min(passing, default=0),
        usage=_sum([failure.usage for failure in failures]),
        final=not passing,
    )


def _sum(bills: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {
        name: sum(bill.get(name, 0) for bill in bills) for name in sorted({name for bill in bills for name in bill})
    }
