"""Rules of a team that come before arbitration: a context and a proposed action route to a persona, and back.

A rule holds where all of its conditions hold. Words are compared as whole words, whatever their case; a fact that is
not known meets no test. The first rule that holds counts, and none routes to the one who speaks already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Any

from moothall.kernel.frozen import Frozen
from moothall.machines.team.definition import FactTest, Rule, When


class Situation(Frozen):
    """Who speaks, what was said before, what is proposed now, and the facts that are known."""

    speaker: str
    context: str = ""
    action: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


class Route(Frozen):
    """Where a rule leads, to whom it goes back afterwards (nobody where it is empty), and why."""

    rule: str
    next: str
    back_to: str
    reason: str


def route_of(rules: Sequence[Rule], situation: Situation) -> Route | None:
    """Where the first rule that holds leads."""
    for rule in rules:
        if rule.route != situation.speaker and holds(rule.when, situation):
            back_to = situation.speaker if rule.back else ""
            reason = f"{rule.route} is next by the rule {rule.name}"
            return Route(rule.name, rule.route, back_to, f"{reason}, then {back_to} again" if back_to else reason)
    return None


def holds(when: When, situation: Situation) -> bool:
    """Whether all conditions that are given hold."""
    return (
        (not when.speaker or situation.speaker in when.speaker)
        and (not when.context or _has_word(when.context, situation.context))
        and (not when.action or _has_word(when.action, situation.action))
        and all(_is_met(test, situation.facts) for test in when.facts)
    )


def _is_met(test: FactTest, facts: Mapping[str, Any]) -> bool:
    if test.fact not in facts:
        return False
    value = facts[test.fact]
    if test.is_ is not None and (value != test.is_ or isinstance(value, bool) != isinstance(test.is_, bool)):
        return False
    if test.at_least is None and test.at_most is None:
        return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return (test.at_least is None or value >= test.at_least) and (test.at_most is None or value <= test.at_most)


def _has_word(words: Iterable[str], text: str) -> bool:
    return _words_pattern(tuple(words)).search(text) is not None


@lru_cache(maxsize=1024)
def _words_pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    choices = "|".join(re.sub(r"(?:\\ |\s)+", r"\\s+", re.escape(word)) for word in words)
    return re.compile(rf"(?<![^\W_])(?:{choices})(?![^\W_])", re.IGNORECASE)
