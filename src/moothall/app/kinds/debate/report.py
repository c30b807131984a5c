"""Why a debate's answer is what it is: the sections that its report adds, from its data and its journal.

All figures are folds of what is there: nothing is asked for a report. What was counted over drafts that were paid for
anyway is labelled so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from moothall.app.kinds.debate.ending import describe_abstentions, describe_confidence, describe_ending
from moothall.app.kinds.debate.tools import ToolUse
from moothall.app.report.amounts import amount_of
from moothall.app.report.figures import bill_rows
from moothall.app.report.projections.costs import Bill, Costs
from moothall.app.report.section import Chart, Listed, Measure, Part, Section, Table
from moothall.kernel.codec import encode
from moothall.kernel.frozen import Frozen
from moothall.machines.debate.moves import best_proposal, count_flips, final_vote, normal_answers, panel_answers
from moothall.machines.debate.result import abstentions_of, agents_of, votes_of
from moothall.machines.debate.state import Debate, Round, Solution
from moothall.machines.debate.votes import ranked_choice, similarity, tally

SHOWN = 200
"""How much of a call's arguments is shown."""
BEFORE, AFTER = "before the rounds", "synthesis"


class Told(Frozen):
    """What a debate's report is written from."""

    debate: Debate
    entries: Sequence[Mapping[str, Any]]
    costs: Costs
    vote: Debate | None = None
    """The vote of equal budget, where one was bought."""
    uses: tuple[ToolUse, ...] = ()
    """The tools that agents had called."""


def sections_of(told: Told) -> tuple[Section, ...]:
    """All sections of a debate's report."""
    debate = told.debate
    return tuple(
        section
        for section in (
            Section("The problem", (debate.problem,)),
            _answer(debate),
            _minority(debate),
            _way(debate),
            _rounds(told),
            _moves(debate),
            _panel(told),
            _tools(told),
            _vote(debate),
            _comparison_section(told),
            _clarification_section(debate),
        )
        if section.parts
    )


def _answer(debate: Debate) -> Section:
    solution = solution_of(debate)
    is_closed = debate.configuration.debate.answer.is_closed
    if solution is None or (is_closed and not solution.answer):
        why = debate.reason.removeprefix("no answer: ") or "the debate is not over"
        return Section("The answer", (f"There is none: {why}.",))
    parts: list[Part] = [f"Answer: {solution.answer}"] if solution.answer else []
    parts += [solution.description, f"Confidence: {describe_confidence(solution.confidence)}."]
    for title, items in (
        ("Trade-offs", solution.tradeoffs),
        ("Recommendations", solution.recommendations),
        ("Requirements that it does not meet", solution.unmet_requirements),
        ("Open questions", solution.open_questions),
    ):
        parts += [Listed(title, items)] if items else []
    return Section("The answer", tuple(parts))


def solution_of(debate: Debate) -> Solution | None:
    """The judge's solution; without one the best proposal so far."""
    return debate.solution or (best_proposal(debate) if debate.proposals else None)


def _minority(debate: Debate) -> Section:
    solution, parts = solution_of(debate), list[Part]()
    if solution is not None and solution.minority:
        parts.append(solution.minority)
    answers = normal_answers(debate, debate.proposals)
    final = solution.answer if solution is not None else ""
    others = [(name, answer) for name, answer in answers.items() if final and answer != final]
    if others:
        rows = tuple((name, answer or "none", debate.proposals[name].text) for name, answer in others)
        parts.append(Table(("agent", "holds", "because"), rows))
    return Section("The minority report", tuple(parts))


def _way(debate: Debate) -> Section:
    """How the consensus came about, in sentences."""
    chosen, ended = debate.configuration.debate, debate.termination
    protocol = {
        "debate": "The panel debated.",
        "vote": "The panel voted over independent drafts.",
        "gated": "The panel voted over independent drafts first, to debate only where no majority held.",
    }[chosen.chosen_protocol]
    rounds = f"{debate.rounds} of at most {chosen.rounds} rounds"
    why = describe_ending(encode(ended)) or "something from outside, or it has not ended yet"
    parts: list[Part] = [f"{protocol} It ended after {rounds} by {why}."]
    if ended.confidence is not None and ended.threshold is not None:
        reached = "reached" if ended.confidence >= ended.threshold else "did not reach"
        parts.append(f"The confidence of {ended.confidence:g} {reached} the threshold of {ended.threshold:g}.")
    if silent := describe_abstentions(abstentions_of(debate)):
        parts.append(Listed("Abstained, and counted as part of the panel", tuple(silent)))
    if debate.evaluation is not None and debate.evaluation.reason:
        parts.append(f"The judge's last reason: {debate.evaluation.reason}")
    if debate.check:
        parts.append(f"The check rejected the leading answer of the drafts: {debate.check}.")
    parts += warnings_of(debate)
    if debate.steering:
        parts.append(Listed("A person said to the panel", debate.steering))
    notes = (*debate.carried, *(f"{name} was left out: {why}" for name, why in debate.left_out.items()))
    return Section("How it came about", (*parts, *((Listed("On the way", notes),) if notes else ())))


def warnings_of(debate: Debate) -> list[str]:
    """What weakens the answer: one agent, one model, voices that say the same."""
    panel, told = debate.configuration.panel, []
    if len(panel) == 1:
        told.append("One agent debated alone: there were no critiques.")
    elif len({agent.played_by for agent in panel}) == 1:
        told.append("Warning: all agents share one model. They are less independent than they look.")
    voices = votes_of(debate).get("effective_voices")
    if voices and len(panel) > 1:
        told.append(f"{len(panel)} agents ≈ {voices:.1f} independent voices, by how often they say the same.")
    return told


def _rounds(told: Told) -> Section:
    debate, tokens = told.debate, tokens_by_round(told.entries)
    if not debate.history:
        return Section("The rounds", ())
    rows = tuple(_round_row(known, tokens.get(f"round {known.number}", 0)) for known in debate.history)
    head = ("round", "agreement", "confidence", "likeness of texts", "tokens", "answers", "abstained", "missing")
    shares = {f"round {known.number}": 100 * known.agreement for known in debate.history}
    bars = tuple(Measure(name, share, f"{share:.0f} of 100") for name, share in shares.items())
    spent = tuple(Measure(name, amount, amount_of("tokens", amount)) for name, amount in tokens.items() if amount)
    return Section("The rounds", (Table(head, rows), Chart("Agreement", bars, 100), Chart("Tokens", spent)))


def _round_row(known: Round, tokens: float) -> tuple[str, ...]:
    counted = tally(known.answers.values()).counts
    return (
        str(known.number),
        f"{100 * known.agreement:.0f}",
        "not asked" if known.confidence is None else f"{known.confidence:g}",
        f"{known.similarity:.2f}",
        amount_of("tokens", tokens),
        ", ".join(f"{answer}: {number}" for answer, number in counted.items()) or "open",
        ", ".join(known.abstained) or "nobody",
        ", ".join(known.missing) or "nobody",
    )


def tokens_by_round(entries: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """What was used before the rounds, in each of them, and behind them."""
    number, used = 0, dict[str, float]()
    for entry in entries:
        tokens = float((entry["event"].get("usage") or {}).get("tokens", 0) or 0)
        name = AFTER if "Synthesis" in entry["from"] else f"round {number}" if number else BEFORE
        used[name] = used.get(name, 0) + tokens
        number += list(entry.get("raised", ())).count("BEGIN_ROUND")
    return used


def _moves(debate: Debate) -> Section:
    if debate.configuration.debate.answer.is_closed:
        return _flips(debate)
    if not debate.history or not debate.drafts or debate.termination.reason == "vote":
        return Section("Who moved whom", ())
    rows = tuple(row for name in debate.drafts if (row := _drift(debate, name)))
    how = "Answers are open, so this is measured by words: how much of its draft each kept, and whose draft it came to."
    return Section("Who moved whom", (how, Table(("agent", "kept of its draft", "came nearer to"), rows)))


def _drift(debate: Debate, name: str) -> tuple[str, ...] | None:
    if name not in debate.proposals:
        return None
    first, last = debate.drafts[name].text, debate.proposals[name].text
    gains = {
        other: similarity([last, draft.text]) - similarity([first, draft.text])
        for other, draft in debate.drafts.items()
        if other != name
    }
    nearest = max(gains, key=lambda other: gains[other], default="")
    gain = gains.get(nearest, 0.0)
    return name, f"{100 * similarity([first, last]):.0f} %", f"{nearest} (+{100 * gain:.0f})" if gain > 0 else "nobody"


def _flips(debate: Debate) -> Section:
    first = normal_answers(debate, debate.drafts)
    states = [(0, first), *((known.number, known.answers) for known in debate.history)]
    by = {known.number: known.moved_by for known in debate.history}
    rows = []
    for (_, before), (number, after) in pairwise(states):
        for name in sorted(before.keys() & after.keys()):
            if before[name] != after[name]:
                others = ", ".join(by.get(number, {}).get(name, ())) or "nobody held it before"
                rows.append((name, str(number), before[name] or "none", after[name] or "none", others))
    if not rows:
        told = "Nobody changed its answer." if debate.rounds and debate.drafts else ""
        return Section("Who moved whom", (told,) if told else ())
    return Section("Who moved whom", (Table(("agent", "round", "from", "to", "who held that"), tuple(rows)),))


def _panel(told: Told) -> Section:
    debate, bills = told.debate, told.costs.by("agent")
    known, changed = {row["id"]: row for row in agents_of(debate)}, count_flips(debate)
    rows = []
    for agent in (*debate.configuration.panel, debate.configuration.judge):
        _, calls, tokens, usd = bill_rows({agent.id: bills.get(agent.id, Bill())})[0]
        status = known[agent.id]["status"] if agent.id in known else "judged"
        model = "a person" if agent.person else agent.played_by or "the run's"
        flips = str(changed.get(agent.id, 0)) if agent.id in known else ""
        rows.append((agent.id, agent.role, model, status, flips, calls, tokens, usd))
    head = ("agent", "role", "model", "status", "flips", "calls", "tokens", "usd")
    return Section("The panel", (Table(head, tuple(rows)),))


def _tools(told: Told) -> Section:
    limits = {seat.id: seat.toolCallLimit for seat in told.debate.configuration.tool_seats}
    if not limits:
        return Section("The tools", ())
    if not told.uses:
        return Section("The tools", ("Nobody had a tool called.",))
    counts = tuple(
        (name, str(sum(use.agent == name for use in told.uses)), str(limit)) for name, limit in limits.items()
    )
    rows = tuple(
        (use.agent, str(use.round), use.node, use.tool, _format_arguments(use.arguments), use.reason or use.end)
        for use in told.uses
    )
    head = ("agent", "round", "node", "tool", "with", "end")
    return Section("The tools", (Table(("agent", "calls", "most before one reply"), counts), Table(head, rows)))


def _format_arguments(arguments: Mapping[str, Any]) -> str:
    text = json.dumps(arguments, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def _vote(debate: Debate) -> Section:
    if not debate.drafts:
        return Section("The vote", ())
    paid = "over the independent drafts, which were paid for already"
    is_weighed = debate.configuration.debate.chosen_protocol == "gated"
    if not debate.configuration.debate.answer.is_closed:
        if not debate.rankings:
            return Section("The vote", ("The drafts were not ranked.",))
        points = ranked_choice(debate.rankings, list(debate.drafts), debate.voters)
        order = sorted(points, key=lambda name: -points[name])
        rows = tuple((name, f"{points[name]:.2f}") for name in order)
        how = f"Ranked choice of the agents {paid}, without names; nobody ranks its own."
        silent = [name for name in debate.voters if name not in debate.rankings]
        told = (f"Who ranked nothing gives nobody points: {', '.join(silent)}.",) if silent else ()
        return Section("The vote", (how, *told, Table(("draft of", "points, 0 to 1"), rows)))
    drafts, every = tally(panel_answers(debate, normal_answers(debate, debate.drafts)).values()), final_vote(debate)
    counts = tuple(
        (answer, str(drafts.counts.get(answer, 0)), str(every.counts.get(answer, 0)))
        for answer in sorted({*drafts.counts, *every.counts})
    )
    led = f"is {drafts.leader}" if drafts.leader else "is a tie" if drafts.is_tie else "has no answer"
    how = f"Answers are closed and compared by their normalised value. The vote {paid} (nothing was bought), {led}."
    if every.leader:
        share = f"{100 * every.share:.0f} of 100 of the weight" if is_weighed else f"{100 * every.share:.0f} of 100"
        pooled = f"Pooled over all rounds it is {every.leader} with {share}: this is the answer."
    elif every.is_tie:
        chosen = solution.answer if (solution := solution_of(debate)) is not None else ""
        pooled = (
            f"Pooled over all rounds it is a tie, {f'and {chosen} was chosen' if chosen else 'which nobody decided'}."
        )
    else:
        pooled = "Pooled over all rounds there is no answer."
    if drafts.abstained or every.abstained:
        counts = (*counts, ("no answer", str(drafts.abstained), str(every.abstained)))
    return Section("The vote", (how, pooled, Table(("answer", "drafts", "all rounds"), counts)))


def _comparison_section(told: Told) -> Section:
    title = "Compared with a vote of equal budget"
    return Section(title, (comparison_text(told.debate, told.vote),) if told.vote is not None else ())


def comparison_text(debate: Debate, vote: Debate) -> str:
    """What a vote of equal budget says beside a debate, in a sentence."""
    drafts, ours = len(vote.drafts), solution_of(debate)
    bought = f"{drafts} independent drafts were bought for as many calls as the debate made"
    if not debate.configuration.debate.answer.is_closed:
        theirs = solution_of(vote)
        alike = similarity([solution.description for solution in (ours, theirs) if solution is not None])
        return f"{bought}. Answers are open: the two solutions are {100 * alike:.0f} % alike by their words."
    counted, answer = final_vote(vote), ours.answer if ours is not None else ""
    silent = f", {counted.abstained} abstained" if counted.abstained else ""
    share = f"{100 * counted.share:.0f} % of them{silent}"
    said = f"{counted.leader} ({share})" if counted.leader else f"a tie{silent}" if counted.is_tie else f"none{silent}"
    verdict = f"and the debate says {answer or 'nothing'}"
    if counted.leader and counted.leader == answer:
        verdict = "the same as the debate"
    return f"{bought}. Their vote is {said}, {verdict}."


def _clarification_section(debate: Debate) -> Section:
    rows = tuple((asked.agent, asked.text, asked.answer or "not answered") for asked in debate.clarifications)
    return Section("Questions and answers", (Table(("agent", "asked", "answer"), rows),) if rows else ())
