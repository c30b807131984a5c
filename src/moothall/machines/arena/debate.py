"""The moves of the arena up to the decision: identity, context, classification, plan, the five rounds, the consensus.

- Nothing but the identity check is wanted before the identity holds.
- A re-debate runs rounds two to five: votes of an earlier pass are replaced, not added.
- A veto, by security or by a static rule, ends the debate at any pass and blocks. Who gave no opinion abstains; without
  one of security nothing proceeds.
- A person decides where the bands or an irreversible task ask for it; no answer means no.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from moothall.agents.ask import AskAgent, Replied
from moothall.kernel.codec import encode
from moothall.kernel.effects import AskPerson
from moothall.kernel.events import Answered, Event, Exhausted, GaveUp, RecordsRead
from moothall.kernel.nodes import emitting
from moothall.kernel.step import Move
from moothall.machines.arena.case import STATIC_RULES, Case, Known, Pairing, Veto
from moothall.machines.arena.consensus import consensus, decision, reason_of
from moothall.machines.arena.effects import ContextRead, IdentityRead, ReadContext, ReadIdentity
from moothall.machines.arena.identity import IdentityGuard, Locks
from moothall.machines.arena.instructions import SHAPES
from moothall.machines.arena.plan import PANEL, Classification, Opinion, Task, tasks_for_a_person
from moothall.machines.arena.ratings import DUELLISTS, expected_score
from moothall.machines.arena.replies import ClassificationReply, OpinionReply, PlanReply, SolutionReply, plan_of
from moothall.machines.arena.rules import static_rules

UNSURE, ALIKE = 0.5, 0.5
"""Where the classifier is less sure than this, a trace that is at least so much alike says which kind it is."""


def asking(case: Case, agent: str, arguments: Mapping[str, Any], *, template: str = "") -> AskAgent:
    """The effect that asks an agent, played by whom the configuration names."""
    player = case.config.agents.get(agent)
    name = template or agent
    return AskAgent(
        agent,
        name,
        {"request": case.request, **arguments},
        SHAPES[name].__name__,
        id=agent,
        model="" if player is None else player.model,
        temperature=None if player is None else player.temperature,
    )


# identity


@emitting(ReadIdentity)
def look_around(case: Case, read: RecordsRead) -> Move[Case]:
    """Keep what the store is locked to, and look at what is around the run."""
    stored = read.records[0].value if read.records else {}
    locks = Locks(**{name: str(stored.get(name) or "") for name in Locks.__dataclass_fields__})
    return Move(replace(case, stored=locks), effects=(ReadIdentity(case.workspace),))


def _guard(case: Case) -> IdentityGuard:
    return IdentityGuard(case.config.identity, case.stored)


def identity_holds(case: Case, read: IdentityRead) -> bool:
    """Whether every declared lock holds."""
    return not _guard(case).mismatches(read.found)


def keep_trace(case: Case, read: IdentityRead) -> Case:
    """Keep the id under which everything about this run is found."""
    return replace(case, trace_id=read.trace_id)


def abort(case: Case, read: IdentityRead) -> Case:
    """Keep which locks do not hold, and end."""
    wrong = _guard(case).mismatches(read.found)
    return replace(
        keep_trace(case, read), mismatches=wrong, outcome="aborted", reason=f"identity mismatch: {'; '.join(wrong)}"
    )


def abort_unseen(case: Case, event: Event) -> Case:
    """End because the identity could not be looked at."""
    return replace(case, outcome="aborted", reason=f"the identity could not be checked: {why(event)}")


def why(event: Event) -> str:
    """What an event says that tells of a failure; any other has come too often."""
    match event:
        case GaveUp():
            return event.reason
        case Exhausted():
            return f"limit of {event.limit:g} {event.resource} reached"
    return f"{event.name} came too often"


# context, classification, plan


@emitting(ReadContext)
def read_context(case: Case, _: Event) -> ReadContext:
    """Look up what is known from earlier runs."""
    models = {agent: player.model for agent, player in case.config.agents.items() if player.model}
    return ReadContext(case.request, PANEL, models)


def keep_context(case: Case, read: ContextRead) -> Case:
    """Keep what is known from earlier runs."""
    known = Known(read.models, read.ratings, read.decisions, read.nearest)
    return replace(case, context=known)


@emitting(AskAgent)
def ask_classifier(case: Case, _: Event) -> AskAgent:
    """Ask what kind of request it is."""
    return asking(case, "classifier", {"nearest": _seen_facts(case)})


def _seen_facts(case: Case) -> list[Any]:
    return [
        {
            "request": likeness.trace.request[:300],
            "kind": likeness.trace.kind,
            "tags": list(likeness.trace.tags),
            "outcome": likeness.trace.outcome,
            "similarity": round(likeness.similarity, 3),
        }
        for likeness in case.context.nearest
    ]


def keep_classification(case: Case, replied: Replied) -> Case:
    """Keep the kind and the tags; where the classifier is not sure, a trace that is alike says the kind."""
    reply: ClassificationReply = replied.value
    said = reply.classification()
    alike = [near for near in case.context.nearest if near.similarity >= ALIKE and near.trace.kind]
    if said.confidence < UNSURE and alike:
        nearest = alike[0]
        said = Classification(nearest.trace.kind, said.tags, max(said.confidence, nearest.similarity))
    return replace(case, classification=said)


@emitting(AskAgent)
def build_initial_plan(case: Case, _: Event) -> AskAgent:
    """Ask for the first plan."""
    decisions = [
        {"request": trace.request[:200], "decision": trace.decision, "outcome": trace.outcome}
        for trace in case.context.decisions
    ]
    sorted_as = case.classification
    tags = ", ".join(sorted_as.tags) or "no tags"
    known = {"nearest": _seen_facts(case), "decisions": decisions, "kind": sorted_as.kind, "tags": tags}
    return asking(case, "planner", known)


def run_debate(case: Case, replied: Replied) -> Case:
    """Keep the first plan; the debate about it begins."""
    reply: PlanReply = replied.value
    return replace(case, plan=plan_of(reply))


def block_unplanned(case: Case, event: GaveUp | Exhausted) -> Case:
    """Nothing can be debated without a plan."""
    return _block(case, f"there is no plan: {why(event)}")


def _block(case: Case, reason: str) -> Case:
    return replace(case, decision="blocked", outcome="blocked", reason=reason)


# the rounds


def ask_round(role: str) -> Callable[[Case, Event], AskAgent]:
    """The action that asks an agent of the panel in its round."""

    @emitting(AskAgent)
    def ask(case: Case, _: Event) -> AskAgent:
        arguments = {
            "plan": plain(case),
            "pass": case.passes + 1,
            "earlier": "\n".join(_lines(case)) or "nothing",
            **({"violations": _violated_rules(case)} if role == "security" else {}),
        }
        return asking(case, role, arguments)

    ask.__qualname__ = ask.__name__ = f"ask_{role}"
    return ask


def plain(case: Case) -> str:
    """The plan as the agents read it: without what is empty."""
    tasks = [{name: value for name, value in encode(task).items() if value} for task in case.plan.tasks]
    return json.dumps({"tasks": tasks}, ensure_ascii=False, indent=1)


def _violated_rules(case: Case) -> str:
    violations = static_rules(case.plan)
    return "; ".join(f"{broken.rule} in {broken.task}: {broken.reason}" for broken in violations) or "nothing"


def _lines(case: Case) -> list[str]:
    """What each said last, in the order of the rounds."""
    said = ((role, case.opinions[role]) for role in PANEL if role in case.opinions)
    return [
        f"{role}: {opinion.verdict} ({opinion.confidence:g}): {'; '.join(opinion.reasons) or 'no reasons'}"
        for role, opinion in said
    ]


def keep_opinion(case: Case, replied: Replied) -> Case:
    """Keep what an agent of the panel says; the solution's plan replaces the one under debate."""
    reply: OpinionReply | SolutionReply = replied.value
    opinion = reply.opinion(replied.agent)
    said = {**case.opinions, replied.agent: replace(opinion, plan=None)}
    lost = tuple(role for role in case.lost if role != replied.agent)
    return replace(case, opinions=said, lost=lost, plan=opinion.plan or case.plan)


def lose_opinion(case: Case, event: GaveUp | Exhausted) -> Case:
    """Who gave no opinion abstains."""
    role = event.id
    silent = Opinion("abstain", 0.0, (f"gave no opinion: {why(event)}",))
    return replace(case, opinions={**case.opinions, role: silent}, lost=tuple(dict.fromkeys((*case.lost, role))))


def count_pass(case: Case, _: Event) -> Case:
    """A pass of the debate is over: what does the panel think now?"""
    votes = tuple(case.opinions[role].vote(role, role) for role in PANEL if role in case.opinions)
    counted = replace(case, passes=case.passes + 1, votes=votes, violations=tuple(static_rules(case.plan)))
    value = consensus(votes, ratings=dict(counted.ratings()), weights=case.config.weights)
    return replace(counted, consensus=value)


def is_undecided(case: Case, _: Event) -> bool:
    """Whether the panel debates again: it is below the threshold, passes are left, and nothing vetoes."""
    if case.violations or "security" in case.lost:
        return False
    return decision(case.consensus, case.passes, bands=case.bands) == "redebate"


# aggregation


def collect_votes(case: Case, _: Event) -> Case:
    """The votes of the last pass are those that count."""
    votes = tuple(case.opinions[role].vote(role, role) for role in PANEL if role in case.opinions)
    return replace(case, votes=votes)


def weigh_votes(case: Case, _: Event) -> Case:
    """What the panel thinks, with every vote weighed by confidence, role, rating and record."""
    value = consensus(case.votes, ratings=dict(case.ratings()), weights=case.config.weights)
    return replace(case, consensus=value)


def pair_duels(case: Case, _: Event) -> Case:
    """Who stands against whom, and what is expected of them; ratings move when the outcome is known."""
    ratings = case.ratings()
    pairings = tuple(
        Pairing(role, "solution", expected_score(ratings[role].elo, ratings["solution"].elo))
        for role in DUELLISTS
        if role in ratings and "solution" in ratings
    )
    return replace(case, pairings=pairings)


@emitting(AskPerson)
def resolve(case: Case, _: Event) -> Move[Case]:
    """Decide, or ask a person where the rules say so; a veto is never asked about."""
    if case.violations or case.consensus.veto is not None:
        return Move(_count_veto(case))
    if "security" in case.lost:
        return Move(_block(case, "security gave no opinion, and nothing proceeds without one"))
    settled = decision(case.consensus, case.passes, bands=case.bands)
    reason = reason_of(case.consensus, case.passes, bands=case.bands)
    if settled == "blocked":
        return Move(_block(case, reason))
    needs = [f"task {task.id} cannot be undone" for task in tasks_for_a_person(case.plan)]
    asked = "; ".join([*([reason] if settled == "ask" else []), *needs])
    if case.dry_run:
        return Move(replace(case, decision="ask" if asked else "proceed", outcome="dry_run", reason=asked or reason))
    if not asked:
        return Move(replace(case, decision="proceed", reason=reason))
    question = AskPerson(_question(case, asked), {"type": "boolean"}, "", case.config.deadline)
    return Move(replace(case, decision="ask", asked=asked, reason=asked), effects=(question,))


def _count_veto(case: Case) -> Case:
    first = next(iter(case.violations), None)
    by = case.consensus.veto or STATIC_RULES
    reasons = case.opinions[by].reasons if by in case.opinions else ()
    told = f"{first.rule} in task {first.task}: {first.reason}" if first else "; ".join(reasons)
    veto = Veto(by, first.rule if first else None, told)
    who = "a static rule" if by == STATIC_RULES else by
    return replace(_block(case, f"{who} vetoes the plan" + (f": {told}" if told else "")), veto=veto)


def _question(case: Case, asked: str) -> str:
    tasks = "\n".join(f"- {task.id}: {deed(task)}" for task in case.plan.tasks)
    return f"May this plan be carried out? {asked}.\nRequest: {case.request}\n{tasks}"


def deed(task: Task) -> str:
    """What a task does, in a line."""
    match task.kind:
        case "command":
            return task.command
        case "edit":
            return f"write {task.path}"
        case "tool":
            return f"call {task.tool}"
        case "model":
            return "ask a model"


def is_blocked(case: Case, _: Event) -> bool:
    """Whether the plan was rejected."""
    return case.decision == "blocked"


def is_rehearsed(case: Case, _: Event) -> bool:
    """Whether this is a dry run, which ends before anything is executed."""
    return case.outcome == "dry_run"


def may_proceed(case: Case, _: Event) -> bool:
    """Whether nothing stands against the plan."""
    return case.decision == "proceed" and case.veto is None and not case.violations


def says_yes(case: Case, answered: Answered) -> bool:
    """Whether the person agrees; a plan that was vetoed is not asked about."""
    return answered.value is True and case.veto is None and not case.violations


def keep_yes(case: Case, answered: Answered) -> Case:
    """Go on because a person agreed."""
    by = answered.by or "a person"
    return replace(case, decision="proceed", judged="yes", judge=by, reason=f"{by} agreed: {case.asked}")


def keep_no(case: Case, answered: Answered) -> Case:
    """End because a person did not agree."""
    by = answered.by or "a person"
    return replace(_block(case, f"{by} refused: {case.asked}"), judged="no", judge=by)


def keep_silence(case: Case, _: Event) -> Case:
    """End because nobody answered in time."""
    return replace(_block(case, f"nobody answered in time: {case.asked}"), judged="expired")
