"""Who is good: the live ratings beside a fit over all duels, for people, for programs and as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moothall.app.report.section import Measure
from moothall.kernel.codec import encode
from moothall.machines.arena.memory import DUELS, RATINGS, key_in
from moothall.machines.arena.ratings import Duel, Fitted, bradley_terry, rating_of
from moothall.runtime.ports import Records

MOST = 10_000


async def standings(store: Records) -> dict[str, Any]:
    """Every rating, the live Elo beside the fit over all duels, and every duel with what it moved."""
    kept = await store.records(RATINGS, most=MOST)
    duels = await _duels(store)
    fitted = bradley_terry([Duel(_player(duel["first"]), _player(duel["second"]), duel["score"]) for duel in duels])
    return {"ratings": [_rating(record.key, record.value, fitted) for record in kept], "history": duels}


def _player(side: Mapping[str, Any]) -> str:
    return f"{side['agent']}|{side['model']}"


def _rating(record: str, value: Any, fitted: Mapping[str, Fitted]) -> dict[str, Any]:
    key, rating = key_in(record), rating_of(value)
    fit = fitted.get(f"{key.agent}|{key.model}") if key.model else None
    return {**encode(key), **encode(rating), "fit": None if fit is None else encode(fit)}


async def _duels(store: Records) -> list[dict[str, Any]]:
    kept = await store.records(DUELS, most=MOST)
    told = [
        {"trace_id": record.key, "at": record.value["at"], "kind": record.value["kind"], **duel}
        for record in kept
        for duel in record.value["duels"]
    ]
    return sorted(told, key=lambda duel: (duel["at"], duel["trace_id"]))


def rating_lines(told: Mapping[str, Any]) -> Iterator[str]:
    """The ratings for people."""
    for rating in told["ratings"]:
        whose = " ".join(filter(None, (rating["agent"], rating["model"], rating["kind"], rating["definition"])))
        fit = rating["fit"]
        beside = f"; fit {fit['rating']:.0f} ({fit['low']:.0f} to {fit['high']:.0f}, {fit['status']})" if fit else ""
        yield f"{rating['elo']:7.1f}  {rating['wins']:g} of {rating['games']:g} won  {whose}{beside}"


def history_lines(told: Mapping[str, Any]) -> Iterator[str]:
    """The duels for people, the oldest first."""
    for duel in told["history"]:
        first, second = duel["first"], duel["second"]
        verb = "beats" if duel["score"] > 0.5 else "loses to"
        moved = ", ".join(f"{side['agent']} {side['before']:.1f} → {side['after']:.1f}" for side in (first, second))
        yield f"{duel['trace_id']}  {duel['kind']}  {first['agent']} {verb} {second['agent']}  {moved}"


def rating_measures(told: Mapping[str, Any]) -> tuple[Measure, ...]:
    """The fits as bars, one for each agent on its model; what is in doubt has the other colour."""
    players = [rating for rating in told["ratings"] if rating["fit"] and not rating["kind"]]
    return tuple(
        Measure(
            f"{rating['agent']} {rating['model']}",
            rating["fit"]["high"],
            f"{rating['fit']['rating']:.0f} ({rating['fit']['low']:.0f} to {rating['fit']['high']:.0f})",
            rating["fit"]["high"] - rating["fit"]["low"],
        )
        for rating in sorted(players, key=lambda rating: -rating["fit"]["rating"])
    )
