"""Who is likely to be next, so that prompt, memory and connection are prepared while another speaks. Never a paid call.

`SeedRule` is the rule of the document: .4 × how often this persona came next after the speaker, .4 where a word of the
conversation leads to it, .2 where the speaker depends on it; the best 3 above 0.3.

`Learned` takes its place where a team file says `"predictor": "learned"`. It knows the same three reasons and learns
how much each of them explains: every handoff is shared out among the reasons that could have led to it (an old habit, a
recent one, a word, a dependency, none of these), apart for turns in which a word leads to somebody and for those in
which none does. Old handoffs fade, so that it follows a team that changes its ways. It prepares whoever is likely
enough, and the bar moves so that on average no more than `waste` preparations per turn are thrown away.

Both are values: `observed` gives the next one. Any `Predictor` can take their place. `Warmth` says who is warm, since
when and how sure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import Protocol

from moothall.kernel.frozen import Frozen

MOST_WARMED = 3
WARM_ABOVE = 0.3
FREQUENCY, KEYWORD, DEPENDENCY = 0.4, 0.4, 0.2
_FLOOR, _CEILING = 0.02, 0.6


class Prediction(Frozen):
    """A persona that may be next, and how sure that is."""

    persona: str
    confidence: float


class Handoff(Frozen):
    """A turn that has ended: who spoke, the words that stood in it, who came next, and how many warmings it wasted."""

    speaker: str
    words: frozenset[str]
    next: str
    wasted: int = 0


class Tables(Frozen):
    """What a team file says of its personas: who they are, on whom each depends, and to whom a word leads."""

    personas: tuple[str, ...]
    dependencies: Mapping[str, Sequence[str]] = field(default_factory=dict)
    keywords: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def led_to(self, words: Collection[str], speaker: str) -> tuple[str, ...]:
        """The others to whom these words lead, each once."""
        named = (persona for word in sorted(words) for persona in self.keywords.get(word, ()))
        return tuple(dict.fromkeys(persona for persona in named if persona != speaker))

    def words_in(self, text: str) -> frozenset[str]:
        """The words of the keyword table that stand in a text."""
        said = set(re.findall(r"[^\W_]+", text.lower()))
        return frozenset(word for word in self.keywords if word.lower() in said)


class Predictor(Protocol):
    """Whoever can say whom to prepare."""

    def predict(self, speaker: str, words: Collection[str]) -> tuple[Prediction, ...]:
        """Whom to prepare while this one speaks, the surest first, nobody twice."""
        ...

    def observed(self, handoff: Handoff) -> Predictor:
        """The predictor that has seen one more handoff."""
        ...


class SeedRule(Frozen):
    """The rule of the document, with counts of earlier handoffs as frequencies."""

    tables: Tables
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def scores(self, speaker: str, words: Collection[str]) -> dict[str, float]:
        """The score of everybody for whom anything speaks."""
        row = self.counts.get(speaker, {})
        total = sum(row.values())
        named = self.tables.led_to(words, speaker)
        depended = self.tables.dependencies.get(speaker, ())
        personas = dict.fromkeys((*row, *named, *depended))
        # Rounded, because three quarters of 0.4 are 0.3 on paper and a little more in floats.
        return {
            persona: round(
                FREQUENCY * (row.get(persona, 0) / total if total else 0)
                + KEYWORD * (persona in named)
                + DEPENDENCY * (persona in depended),
                9,
            )
            for persona in personas
            if persona != speaker
        }

    def predict(self, speaker: str, words: Collection[str]) -> tuple[Prediction, ...]:
        """The best 3 above 0.3."""
        scores = self.scores(speaker, words)
        best = sorted(scores, key=lambda persona: (-scores[persona], persona))[:MOST_WARMED]
        return tuple(Prediction(persona, scores[persona]) for persona in best if scores[persona] > WARM_ABOVE)

    def observed(self, handoff: Handoff) -> SeedRule:
        """The rule with one more handoff counted."""
        row = self.counts.get(handoff.speaker, {})
        row = {**row, handoff.next: row.get(handoff.next, 0) + 1}
        return replace(self, counts={**self.counts, handoff.speaker: row})


_REASONS = ("habit", "recent", "keyword", "dependency", "none")
_FIRST_SHARES = (2.0, 2.0, 4.0, 2.0, 1.0)
"""What is believed before anything was seen: the weights of the document, and a little for no reason at all."""


class Habits(Frozen):
    """What `Learned` has learned, without the tables of the team."""

    habits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    recent: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    shares: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    bar: float = WARM_ABOVE


class Learned(Frozen):
    """Reasons weighed by what they explained, a bar that keeps waste within bounds."""

    tables: Tables
    waste: float = 1.4
    fading: float = 0.99
    forgetting: float = 0.9
    """How much a recent habit keeps of itself at each handoff of its persona; the other kind keeps `fading`."""
    habits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    recent: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    shares: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    bar: float = WARM_ABOVE

    def predict(self, speaker: str, words: Collection[str]) -> tuple[Prediction, ...]:
        """Everybody who is likely enough."""
        chances = self.chances(speaker, words)
        likely = sorted(chances, key=lambda persona: (-chances[persona], persona))
        return tuple(Prediction(persona, chances[persona]) for persona in likely if chances[persona] > self.bar)

    def chances(self, speaker: str, words: Collection[str]) -> dict[str, float]:
        """How likely everybody else is next; together 1."""
        reasons = self._reasons(speaker, self.tables.led_to(words, speaker))
        others = (persona for persona in self.tables.personas if persona != speaker)
        return {
            persona: sum(share * chance.get(persona, 0.0) for share, chance in reasons.values()) for persona in others
        }

    def observed(self, handoff: Handoff) -> Learned:
        """The predictor that has learned from one more handoff."""
        speaker, named = handoff.speaker, self.tables.led_to(handoff.words, handoff.speaker)
        reasons = self._reasons(speaker, named)
        explained = {name: share * chance.get(handoff.next, 0.0) for name, (share, chance) in reasons.items()}
        total = sum(explained.values()) or 1.0
        situation = self._situation(speaker, named)
        before = self.shares.get(situation, _FIRST_SHARES)
        after = tuple(
            old * self.fading + explained.get(name, 0.0) / total for name, old in zip(_REASONS, before, strict=True)
        )
        by_habit = (explained["habit"] + explained["recent"]) / total
        bar = self.bar + 0.004 * (handoff.wasted - self.waste)
        return replace(
            self,
            habits={**self.habits, speaker: _fade(self.habits.get(speaker, {}), self.fading, handoff.next, by_habit)},
            recent={
                **self.recent,
                speaker: _fade(self.recent.get(speaker, {}), self.forgetting, handoff.next, by_habit),
            },
            shares={**self.shares, situation: after},
            bar=min(max(bar, _FLOOR), _CEILING),
        )

    @staticmethod
    def of(tables: Tables, known: Habits) -> Learned:
        """The predictor that has learned this."""
        return Learned(tables, habits=known.habits, recent=known.recent, shares=known.shares, bar=known.bar)

    @property
    def known(self) -> Habits:
        """What it has learned."""
        return Habits(self.habits, self.recent, self.shares, self.bar)

    def _situation(self, speaker: str, named: Collection[str]) -> str:
        return f"{'named' if named else 'unnamed'}, {'depends' if self.tables.dependencies.get(speaker) else 'free'}"

    def _reasons(self, speaker: str, named: Sequence[str]) -> dict[str, tuple[float, Mapping[str, float]]]:
        """Every reason that there can be now: its share, and whom it leads to with which chance."""
        others = [persona for persona in self.tables.personas if persona != speaker]
        depended = [persona for persona in self.tables.dependencies.get(speaker, ()) if persona != speaker]
        chances = {
            "habit": _chances(self.habits.get(speaker, {}), others),
            "recent": _chances(self.recent.get(speaker, {}), others),
            "keyword": _even(named),
            "dependency": _even(depended),
            "none": _even(others),
        }
        shares = dict(zip(_REASONS, self.shares.get(self._situation(speaker, named), _FIRST_SHARES), strict=True))
        possible = {name: chance for name, chance in chances.items() if chance}
        whole = sum(shares[name] for name in possible) or 1.0
        return {name: (shares[name] / whole, chance) for name, chance in possible.items()}


def _fade(row: Mapping[str, float], keeping: float, persona: str, share: float) -> dict[str, float]:
    """A habit of which a part is forgotten, with one more handoff."""
    faded = {known: count * keeping for known, count in row.items()}
    return {**faded, persona: faded.get(persona, 0.0) + share}


def _chances(row: Mapping[str, float], others: Sequence[str]) -> dict[str, float]:
    """How likely everybody is by a habit; before anything was seen, all are."""
    total = sum(row.values()) + 1
    return {persona: (row.get(persona, 0.0) + 1 / len(others)) / total for persona in others}


def _even(personas: Sequence[str]) -> dict[str, float]:
    return {persona: 1 / len(personas) for persona in personas}


class Warm(Frozen):
    """A persona that is prepared: since which turn, and how sure that was."""

    persona: str
    since: int
    confidence: float
    at: float = 0
    """When it was prepared; 0 while that is under way."""


class Warmth(Frozen):
    """Who is warm at which turn. Whoever is not next within `keep_turns` turns is dropped."""

    keep_turns: int = 1
    turn: int = 0
    warm: tuple[Warm, ...] = ()

    def began(self, predictions: Sequence[Prediction]) -> Warmth:
        """The same turn with these prepared, unless they are warm already."""
        known = {warm.persona for warm in self.warm}
        fresh = (
            Warm(prediction.persona, self.turn, prediction.confidence)
            for prediction in predictions
            if prediction.persona not in known
        )
        return replace(self, warm=(*self.warm, *fresh))

    def prepared(self, ready: Mapping[str, float]) -> Warmth:
        """The same with the times at which these were prepared."""
        return replace(self, warm=tuple(replace(warm, at=ready.get(warm.persona, warm.at)) for warm in self.warm))

    def handed(self, persona: str) -> tuple[Warmth, int]:
        """The next turn, in which this one speaks and is warm no more, and how many were dropped unused."""
        waiting = tuple(warm for warm in self.warm if warm.persona != persona)
        kept = tuple(warm for warm in waiting if self.turn + 1 - warm.since < self.keep_turns)
        return replace(self, turn=self.turn + 1, warm=kept), len(waiting) - len(kept)
