"""What happens in each node of a debate. Pure: data and event in, data, asks and raised events out.

A node asks several agents at once and keeps what comes back. When the last one has come back, it raises the event that
leaves the node. Those that failed are asked again alone (RETRY), then replaced by what they had or left out (FALLBACK);
where nobody is left, the debate ends with what was reached (FAILED).

Critics know others by labels, in an order of their own; nobody is shown names, confidences or verdicts of others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from moothall.agents.ask import (
    TEXT,
    AskAgent,
    CallTool,
    FormField,
    Replied,
    Returned,
    Window,
    form,
    texts,
    turn_of,
)
from moothall.agents.narrow import Narrow, pick_choice
from moothall.kernel.effects import Alarm, AskPerson, CancelSend, Effect, Send
from moothall.kernel.events import Answered, Event, GaveUp, Named
from moothall.kernel.step import Append, Move
from moothall.machines.debate.definition import AgentConfig, turn_machine
from moothall.machines.debate.state import (
    HISTORY,
    Clarification,
    Critique,
    Debate,
    Evaluation,
    Measure,
    Proposal,
    Questions,
    Ranking,
    Remark,
    Retry,
    Round,
    RoundTimeout,
    Said,
    Solution,
    Spoken,
    Summary,
    Termination,
)
from moothall.machines.debate.votes import (
    NUMBER,
    Ballot,
    Tally,
    elect,
    flips,
    holds,
    labels,
    next_to_check,
    normalise,
    shuffle,
    similarity,
    tally,
    weigh_voices,
)

ABSTAINED = 80
"""How much of an answer that cannot be read is told."""
RECORDED = 12_000
"""The most characters of what was said that the judge is shown as it is, where it writes no summary."""
UNMET_CAP = 50.0
"""The most confidence of a solution that does not meet a requirement."""
PAUSE = 1.0
"""Seconds before a node asks those again that failed."""
CHECK = "check"
"""The id of the call of the registered check."""
SAME = 0.95
"""How alike texts are that say the same, whatever the judge says."""
TOOLLESS = ("Summary", "Ranking")
"""What agents write from what they are shown, without their tools."""
SUMMARY = "summary"
"""The id of the ask for the judge's summary."""
Moved = Move[Debate]


def raised(debate: Debate, *names: str, effects: Sequence[Effect] = (), appends: Sequence[Append] = ()) -> Moved:
    """The data, with events of the debate's own behind it."""
    return Move(debate, tuple(effects), tuple(appends), tuple(Named(name) for name in names))


# what agents are told


def ask_of(debate: Debate, name: str, template: str, shape: str, **arguments: Any) -> AskAgent:
    """Ask an agent, in the way of its seat."""
    seat = debate.seat(name)
    return AskAgent(
        name,
        template,
        {
            "problem": debate.problem,
            "clarifications": _clarifications_text(debate),
            "steering": _steering_text(debate),
            **arguments,
        },
        shape,
        id=name,
        role=seat.role,
        system=debate.prompts.get(seat.systemPromptPath, ""),
        model=seat.played_by,
        temperature=seat.temperature,
        fallback=seat.fallback,
    )


def _clarifications_text(debate: Debate) -> str:
    answered = [known for known in debate.clarifications if known.answer]
    lines = [f"Q: {known.text}\nA: {known.answer}" for known in answered]
    return "What the user said:\n" + "\n".join(lines) + "\n" if lines else ""


def _steering_text(debate: Debate) -> str:
    """What the user adds, and what the check rejects."""
    added = "The user adds:\n" + "\n".join(debate.steering) + "\n" if debate.steering else ""
    wrong = [f"{answer}: {why}" for answer, why in debate.checks.items() if why]
    return added + ("A check rejects these answers:\n" + "\n".join(wrong) + "\n" if wrong else "")


def narrow_answer(debate: Debate, options: Sequence[str] = ()) -> Narrow:
    """What the answer of a draft or a solution may be: one of the options, or of these."""
    answers = debate.configuration.debate.answer
    if wanted := options or answers.options:
        return {"answer": {"enum": list(wanted)}}
    return {"answer": {"pattern": NUMBER}} if answers.type == "number" else {}


def _answer_form(debate: Debate) -> str:
    answers = debate.configuration.debate.answer
    match answers.type:
        case "choice":
            return f"Give your reasons as text, and as answer exactly one of: {', '.join(answers.options)}."
        case "number":
            return "Give your reasons as text, and as answer one number."
        case _:
            return "Write the proposal as text; leave answer empty."


def _history(debate: Debate, name: str) -> dict[str, Any]:
    summary = debate.contexts.get(name, "")
    return {"summary": texts("The debate so far:", summary, "") if summary else ""}


def _context(debate: Debate) -> dict[str, Any]:
    return {"context": texts("Context:", debate.context, "") if debate.context else ""}


def labels_for(debate: Debate, reader: str, names: Iterable[str]) -> dict[str, str]:
    """Labels of others as one reader sees them, in an order of its own: label → agent."""
    order = shuffle(list(names), f"{debate.digest}/{debate.round}/{reader}")
    return dict(zip(labels(len(order)), order, strict=True))


def _arguments(debate: Debate, reader: str, drafts: Mapping[str, Proposal]) -> dict[str, Any]:
    shown = labels_for(debate, reader, (name for name in drafts if name != reader))
    parts = [part for label, name in shown.items() for part in (f"[{label}]", *_parts(debate, drafts[name]), "")]
    return {"arguments": texts(*parts[:-1]), "labels": ", ".join(shown)}


def _parts(debate: Debate, draft: Proposal) -> tuple[str, ...]:
    closed = debate.configuration.debate.answer.is_closed
    return (draft.text, f"Answer: {draft.answer}") if closed and draft.answer else (draft.text,)


def member(debate: Debate, name: str) -> str:
    """What the panel's record calls an agent: a number, never its name."""
    order = shuffle([agent.id for agent in debate.configuration.panel], debate.digest)
    return f"member {order.index(name) + 1}" if name in order else "the judge"


def record_line(debate: Debate, name: str, what: str, text: str) -> Append:
    """Something for the record: by whom, without the name, and in which round."""
    by = f"{member(debate, name)} ({what}, round {debate.round})"
    message = {"role": "assistant", "by": by, "agent": name, "what": what, "round": debate.round, "text": text}
    return Append(HISTORY, message)


def _record(debate: Debate, message: Append, remark: Remark) -> Debate:
    known = debate.spoken
    spoken = Spoken(known.messages + 1, known.characters + len(remark.text))
    debate = replace(debate, spoken=spoken)
    if _needs_summary(debate, debate.configuration.judge):
        return replace(debate, record=())
    return replace(debate, record=(*debate.record, remark)) if spoken.characters <= RECORDED else debate


def _remark(debate: Debate, by: str, what: str, text: str, of: str = "") -> Remark:
    return Remark(by, what, debate.round, text, of)


# asking, failing, falling back


def _ask(debate: Debate, effects: Sequence[Effect], names: Sequence[str]) -> Moved:
    wanted = tuple(with_tools(debate, effect) for effect in effects)
    return Move(replace(debate, waiting=tuple(names), failed={}), wanted)


def with_tools(debate: Debate, effect: Effect) -> Effect:
    """An ask of an agent that has tools, as a turn of its own; summaries and rankings need none."""
    if not isinstance(effect, AskAgent) or effect.shape in TOOLLESS:
        return effect
    seat = debate.seat(effect.agent)
    if not seat.has_tools:
        return effect
    chosen = debate.configuration
    turn = turn_of(effect, seat.tools, calls=seat.toolCallLimit)
    return replace(turn, machine=turn_machine(chosen.most_calls, asks=chosen.asks))


def _back(debate: Debate, name: str) -> Debate:
    return replace(debate, waiting=tuple(other for other in debate.waiting if other != name))


def lose(complete: str) -> Callable[[Debate, GaveUp], Moved]:
    """A move for an agent that failed; when it was the last one, the node is closed."""

    def keep_failure(debate: Debate, gave_up: GaveUp) -> Moved:
        if gave_up.id not in debate.waiting:
            return Move(debate)
        failed = {**debate.failed, gave_up.id: gave_up.reason}
        return close(replace(_back(debate, gave_up.id), failed=failed), complete)

    keep_failure.__qualname__ = f"lose({complete!r})"
    return keep_failure


def close(debate: Debate, complete: str, *appends: Append) -> Moved:
    """Leave the node when everybody has come back: as planned, or by way of RETRY or FALLBACK."""
    if debate.waiting:
        return Move(debate, appends=appends)
    if not debate.failed:
        return raised(debate, complete, appends=appends)
    again = debate.retries < debate.configuration.debate.retries
    return raised(debate, "PAUSE" if again else "FALLBACK", appends=appends)


def pause(debate: Debate, _: Event) -> Moved:
    """Wait, each time twice as long, before those are asked again that failed."""
    again = Alarm(Retry(), PAUSE * 2**debate.retries)
    return Move(replace(debate, retries=debate.retries + 1), (again,))


def fresh(debate: Debate) -> Debate:
    """A node that is entered, and not done again, may be done again as often as any."""
    return debate if debate.failed else replace(debate, retries=0)


def failed_names(debate: Debate, names: Sequence[str]) -> tuple[str, ...]:
    """Whom a node asks: everybody, or when it is done again those that failed."""
    return tuple(name for name in names if name in debate.failed) if debate.failed else tuple(names)


def time_out(debate: Debate, late: RoundTimeout) -> Moved:
    """The time of the round is over: who has not come back has failed, and nobody is asked any more in this round."""
    if late.round != debate.round:
        return Move(debate)
    missing = dict.fromkeys(debate.waiting, "it took longer than timeoutPerRound")
    debate = replace(debate, overtime=True, waiting=(), failed={**debate.failed, **missing})
    return raised(debate, "FALLBACK") if debate.failed else Move(debate)


def fall_back(debate: Debate, drafts: Mapping[str, Proposal], complete: str) -> tuple[Debate, str]:
    """Let those that failed carry over what they had, or leave them out; and the event that goes on."""
    notes, left = list(debate.carried), dict(debate.left_out)
    for name, why in debate.failed.items():
        if debate.configuration.debate.fallback == "carry" and name in drafts:
            notes.append(f"round {debate.round}: {name} carried over its proposal: {why}")
        else:
            left[name] = why
    debate = replace(debate, carried=tuple(notes), left_out=left, failed={}, retries=0)
    if debate.configuration.debate.fallback == "fail" or not debate.ids:
        return _fail(debate, left), "FAILED"
    return debate, complete


def _fail(debate: Debate, why: Mapping[str, str]) -> Debate:
    return replace(debate, reason="no agent is left: " + "; ".join(f"{name}: {text}" for name, text in why.items()))


def fail(debate: Debate, event: Event) -> Debate:
    """End with what was reached."""
    return debate if debate.reason else replace(debate, reason=getattr(event, "reason", "") or "the debate failed")


# Initialization


def initialise(debate: Debate, _: Event) -> Moved:
    """Everything is known: START."""
    return raised(debate, "START")


# Clarification


def ask_questions(debate: Debate, _: Event) -> Moved:
    """Ask all agents what they need to know, with all answers so far; nobody at the end of the iterations."""
    chosen = debate.configuration.debate
    if not chosen.interactiveClarifications or debate.clarificationIterations >= chosen.clarificationsMaxIterations:
        return raised(replace(debate, waiting=(), failed={}), "ALL_CLEAR")
    names = failed_names(debate, [agent.id for agent in debate.panel if not agent.person])
    asks = [
        replace(
            ask_of(
                debate, name, "clarify", "Questions", most=f"{chosen.clarificationsMaxPerAgent}", **_context(debate)
            ),
            template=debate.prompts.get(debate.seat(name).clarificationPromptPath, "clarify"),
        )
        for name in names
    ]
    return _ask(debate, asks, names) if names else raised(debate, "ALL_CLEAR")


def keep_questions(debate: Debate, replied: Replied) -> Moved:
    """Keep an agent's new questions; a question that was asked before is not asked again."""
    value: Questions = replied.value
    known = {(asked.agent, asked.text.strip().casefold()) for asked in debate.clarifications}
    asked = dict.fromkeys(text.strip() for text in value.questions if text.strip())
    fresh = [text for text in asked if (replied.id, text.casefold()) not in known]
    number, most = len(debate.clarifications), debate.configuration.debate.clarificationsMaxPerAgent
    new = tuple(
        Clarification(f"q{number + place}", replied.id, text, _brought(debate, text, number + place))
        for place, text in enumerate(fresh[:most], 1)
    )
    debate = replace(_back(debate, replied.id), clarifications=(*debate.clarifications, *new))
    return close(debate, "QUESTIONS_COLLECTED")


def _brought(debate: Debate, text: str, place: int) -> str:
    given = debate.given_answers
    return given.get(text) or given.get(f"q{place}") or ""


def collect_questions(debate: Debate, _: Event) -> Moved:
    """Go on with the questions that came, or without any."""
    debate = replace(debate, failed={}, retries=0)
    asked = [question for question in debate.clarifications if not question.answer]
    if not asked:
        return raised(debate, "ALL_CLEAR")
    return raised(replace(debate, clarificationIterations=debate.clarificationIterations + 1), "QUESTIONS_PENDING")


def ask_user(debate: Debate, _: Event) -> Moved | AskPerson:
    """Show the user the open questions, and the earlier answers, which may be changed."""
    fields = [
        FormField(question.id, question.text, by=question.agent, earlier=None)
        for question in debate.clarifications
        if not question.answer
    ]
    earlier = [
        FormField(question.id, question.text, by=question.agent, earlier=question.answer, optional=True)
        for question in debate.clarifications
        if question.answer
    ]
    return form("Questions before the debate", [*fields, *earlier])


def keep_answers(debate: Debate, answered: Answered) -> Moved:
    """Keep the answers; none is ever dropped."""
    given: Mapping[str, Any] = answered.value
    known = tuple(
        replace(question, answer=answer) if (answer := str(given.get(question.id) or "").strip()) else question
        for question in debate.clarifications
    )
    return raised(replace(debate, clarifications=known), "ANSWERS_SUBMITTED")


# RoundManager


def manage_round(debate: Debate, _: Event) -> Moved:
    """Begin a round while there may be one more."""
    if debate.rounds >= debate.configuration.debate.rounds:
        last = debate.history[-1].confidence if debate.history else None
        return raised(_end_rounds(debate, "max_rounds", last, ""), "MAX_ROUNDS_REACHED")
    return raised(debate, "BEGIN_ROUND")


def begin_round(debate: Debate, _: Event) -> Moved:
    """Count the round, and set its time."""
    debate = replace(
        debate,
        round=debate.round + 1,
        critiques=(),
        refinements={},
        evaluation=None,
        retries=0,
        failed={},
        overtime=False,
    )
    seconds = debate.configuration.debate.timeoutPerRound / 1000
    return Move(debate, (Send(RoundTimeout(debate.round), seconds, f"round-{debate.round}"),))


# Summarization


def summarise(debate: Debate, _: Event) -> Moved:
    """Each agent decides for itself whether what it would be shown has grown too long."""
    debate = fresh(debate)
    names = failed_names(debate, [agent.id for agent in debate.panel if _needs_summary(debate, agent)])
    if not names:
        return raised(replace(debate, waiting=()), "CONTEXTS_READY")
    return _ask(debate, [summary_ask(debate, name) for name in names], names)


def _needs_summary(debate: Debate, agent: AgentConfig) -> bool:
    """Whether an agent's last summary, and what was said since, are longer than its threshold."""
    chosen = agent.summarization or debate.configuration.debate.summarization
    since = debate.spoken.characters - debate.summarised.get(agent.id, Spoken()).characters
    shown = since + len(debate.contexts.get(agent.id, ""))
    return not agent.person and chosen.enabled and since > 0 and shown > chosen.threshold


def summary_ask(debate: Debate, name: str) -> AskAgent:
    """Ask for a summary of what was said since the last one, with that one in front."""
    seat = debate.seat(name)
    chosen = seat.summarization or debate.configuration.debate.summarization
    ask = ask_of(debate, name, "summarise", "Summary", agent=member(debate, name), most=f"{chosen.maxLength}")
    since = debate.spoken.messages - debate.summarised.get(name, Spoken()).messages
    path = seat.summaryPromptPath or chosen.promptPath
    arguments = {**ask.arguments, **_history(debate, name)}
    template = debate.prompts.get(path, "summarise")
    return replace(ask, template=template, arguments=arguments, windows={"history": Window(HISTORY, since)})


def keep_summary(debate: Debate, replied: Replied) -> Moved:
    """Keep what an agent will be shown of the past."""
    return close(_keep_summary(_back(debate, replied.id), replied.id, replied.value), "CONTEXTS_READY")


def _keep_summary(debate: Debate, name: str, summary: Summary) -> Debate:
    most = (debate.seat(name).summarization or debate.configuration.debate.summarization).maxLength
    contexts = {**debate.contexts, name: summary.text[:most]}
    return replace(debate, contexts=contexts, summarised={**debate.summarised, name: debate.spoken})


def go_on_unsummarised(debate: Debate, _: Event) -> Moved:
    """Who could not summarise goes on with what it had."""
    notes = tuple(f"round {debate.round}: {name} has no summary: {why}" for name, why in debate.failed.items())
    debate = replace(debate, carried=(*debate.carried, *notes), failed={}, retries=0)
    return raised(debate, "CONTEXTS_READY")


# Proposal


def propose(debate: Debate, _: Event) -> Moved:
    """Fresh drafts in the first round, each blind to the others; later the refinements of the round before."""
    debate = fresh(debate)
    names = [name for name in debate.ids if name not in debate.proposals]
    if not names or debate.overtime:
        return raised(replace(debate, waiting=()), "PROPOSALS_COMPLETE" if debate.round > 1 else "DRAFTS_IN")
    return _ask(debate, [_draft_ask(debate, name) for name in names], names)


def _draft_ask(debate: Debate, name: str) -> Effect:
    if debate.seat(name).person:
        return _person_form(debate, name, "Your proposal")
    ask = ask_of(
        debate, name, "propose", "Proposal", wanted=_answer_form(debate), **_context(debate), **_history(debate, name)
    )
    return replace(ask, narrow=_narrow_draft(debate))


def _narrow_draft(debate: Debate) -> Narrow:
    return {"text": {"minLength": 1}, **narrow_answer(debate)}


def _person_form(debate: Debate, name: str, what: str, shown: str = "") -> AskPerson:
    closed = debate.configuration.debate.answer.is_closed
    fields = [FormField("text", what)]
    if closed:
        options = debate.configuration.debate.answer.options
        fields.append(FormField("answer", "Your answer", schema={"enum": list(options)} if options else TEXT))
    return form("\n\n".join(filter(None, (debate.problem, shown))), fields, who=name, id=name)


def keep_draft(debate: Debate, event: Replied | Answered) -> Moved:
    """Keep a draft."""
    name, draft = event.id, _proposal(event)
    if name not in debate.waiting:
        return Move(debate)
    record, remark = record_line(debate, name, "proposal", draft.text), _remark(debate, name, "proposal", draft.text)
    debate = replace(_back(debate, name), proposals={**debate.proposals, name: draft})
    return close(_record(debate, record, remark), "DRAFTS_IN", record)


def _proposal(event: Replied | Answered) -> Proposal:
    if isinstance(event, Replied):
        value: Proposal = event.value
        return value
    given: Mapping[str, Any] = event.value
    return Proposal(str(given["text"]), str(given.get("answer", "")))


def drafts_in(debate: Debate, _: Event) -> Moved:
    """The drafts are there: go on, or where a vote may be enough, count it first."""
    debate = replace(debate, drafts=debate.drafts or debate.proposals, failed={}, retries=0)
    chosen = debate.configuration.debate
    if chosen.chosen_protocol == "debate":
        return raised(debate, "PROPOSALS_COMPLETE")
    answer = next_to_check(draft_ballots(debate), debate.checks) if chosen.check else ""
    if not answer:
        return vote(debate)
    arguments = {"answer": answer, "problem": debate.problem}
    return Move(debate, (CallTool(chosen.check, arguments, repeats="pure", id=CHECK),))


def vote(debate: Debate) -> Moved:
    """A vote ends it; in the gated protocol only where a majority holds, or where a check accepts an answer.

    It is a consensus where a majority holds or the check accepts an answer; else the only round there is has ended.
    """
    ballots = draft_ballots(debate)
    is_agreed = holds(ballots, debate.checks)
    if debate.configuration.debate.chosen_protocol == "gated" and not is_agreed:
        return raised(debate, "PROPOSALS_COMPLETE")
    counted = Round(debate.round, **_count_votes(debate, debate.proposals))
    is_closed = debate.configuration.debate.answer.is_closed
    share = round(100 * elect(ballots, debate.checks).share, 4) if is_closed else None
    ended = Termination("vote", share, measure="agreement" if is_closed else "", agreement=_percent(counted.agreement))
    return raised(
        replace(debate, history=(*debate.history, counted), rounds=debate.rounds + 1, termination=ended),
        "CONSENSUS_REACHED" if is_agreed else "MAX_ROUNDS_REACHED",
    )


def _percent(share: float) -> float:
    return round(100 * share, 4)


def keep_check(debate: Debate, returned: Returned) -> Moved:
    """Keep what the registered check says to an answer; an answer that it rejects is followed by the next one."""
    answer = next_to_check(draft_ballots(debate), debate.checks)
    return raised(replace(debate, checks={**debate.checks, answer: rejection(returned.value)}), "DRAFTS_IN")


def lose_draft(debate: Debate, gave_up: GaveUp) -> Moved:
    """A draft that did not come; or a check that cannot be had, without which the vote decides."""
    if gave_up.id != CHECK:
        return lose("DRAFTS_IN")(debate, gave_up)
    return vote(replace(debate, carried=(*debate.carried, f"an answer could not be checked: {gave_up.reason}")))


def rejection(value: Any) -> str:
    """Why a check rejects an answer; "" where it accepts it."""
    if value in (True, None, ""):
        return ""
    return "the check rejects it" if value is False else str(value)


def fall_back_on_drafts(debate: Debate, _: Event) -> Moved:
    """Go on without those that have no draft."""
    return raised(*fall_back(debate, debate.proposals, "DRAFTS_IN"))


# counting


def normal_answers(debate: Debate, drafts: Mapping[str, Proposal]) -> dict[str, str]:
    """The answers that count, as they are compared; "" where one cannot be read."""
    answers = debate.configuration.debate.answer
    if not answers.is_closed:
        return {}
    return {name: normalise(draft.answer, answers) for name, draft in drafts.items()}


def panel_answers(debate: Debate, answers: Mapping[str, str]) -> dict[str, str]:
    """The answers of the whole panel: who failed, or gave none that can be read, has "" and abstains."""
    return {agent.id: answers.get(agent.id, "") for agent in debate.configuration.panel}


def abstentions(debate: Debate, drafts: Mapping[str, Proposal]) -> dict[str, str]:
    """Who on the panel gave nothing that counts, and why."""
    reasons = {agent.id: _why_abstained(debate, agent.id, drafts) for agent in debate.configuration.panel}
    return {name: why for name, why in reasons.items() if why}


def _why_abstained(debate: Debate, name: str, drafts: Mapping[str, Proposal]) -> str:
    answers = debate.configuration.debate.answer
    if name not in drafts:
        return debate.left_out.get(name) or "it gave no proposal"
    draft = drafts[name]
    if not answers.is_closed:
        return "" if draft.text.strip() else "its proposal is empty"
    if normalise(draft.answer, answers):
        return ""
    if not draft.answer.strip():
        return "it gave no answer"
    wanted = "a number" if answers.type == "number" else f"one of {', '.join(answers.options)}"
    return f"its answer is not {wanted}: {shorten(' '.join(draft.answer.split()), ABSTAINED)}"


def shorten(text: str, most: int) -> str:
    """A text, or its beginning where it is longer than that."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def ballots_of(debate: Debate, answers: Mapping[str, str], confidences: Mapping[str, float]) -> list[Ballot]:
    """The voices of the whole panel as the protocol weighs them: in a gated debate by confidence, else all alike."""
    if not debate.configuration.debate.answer.is_closed:
        return []
    every = panel_answers(debate, answers)
    if debate.configuration.debate.chosen_protocol == "gated":
        return weigh_voices(every, confidences)
    return [Ballot(answer) for answer in every.values()]


def draft_ballots(debate: Debate) -> list[Ballot]:
    """The voices of the independent drafts."""
    drafts = debate.drafts or debate.proposals
    return ballots_of(debate, normal_answers(debate, drafts), _stated(drafts))


def _stated(drafts: Mapping[str, Proposal]) -> dict[str, float]:
    """How sure those say they are who say so."""
    return {name: draft.confidence for name, draft in drafts.items() if draft.confidence is not None}


def agreement(debate: Debate, drafts: Mapping[str, Proposal]) -> float:
    """How far the whole panel agrees, 0 to 1: the leading answer's share, or how alike the texts are."""
    if debate.configuration.debate.answer.is_closed:
        return tally(panel_answers(debate, normal_answers(debate, drafts)).values()).share
    return similarity([drafts[agent.id].text if agent.id in drafts else "" for agent in debate.configuration.panel])


def _count_votes(debate: Debate, drafts: Mapping[str, Proposal]) -> dict[str, Any]:
    return {
        "answers": normal_answers(debate, drafts),
        "confidences": _stated(drafts),
        "similarity": round(similarity([draft.text for draft in drafts.values()]), 4),
        "agreement": round(agreement(debate, drafts), 4),
        "missing": tuple(sorted(debate.left_out)),
        "abstained": abstentions(debate, drafts),
    }


# Critique


def criticise(debate: Debate, _: Event) -> Moved:
    """Each reviews all others at once; who is alone has nobody to review."""
    debate = fresh(debate)
    names = failed_names(debate, debate.ids) if len(debate.ids) > 1 and not debate.overtime else ()
    names = tuple(name for name in names if not debate.seat(name).person)
    if not names:
        return raised(replace(debate, waiting=(), failed={}), "CRITIQUES_COMPLETE")
    return _ask(debate, [_critique_ask(debate, name) for name in names], names)


def _critique_ask(debate: Debate, name: str) -> AskAgent:
    ask = ask_of(
        debate, name, "critique", "Critique", **_arguments(debate, name, _alive(debate)), **_history(debate, name)
    )
    return replace(ask, narrow={"reviews.label": {"enum": list(labels_for(debate, name, _others(debate, name)))}})


def _others(debate: Debate, name: str) -> list[str]:
    """Those whose proposals somebody else reviews."""
    return [other for other in _alive(debate) if other != name]


def _alive(debate: Debate) -> dict[str, Proposal]:
    return {name: debate.proposals[name] for name in debate.ids if name in debate.proposals}


def keep_critique(debate: Debate, replied: Replied) -> Moved:
    """Keep the reviews, each for the one whom the critic knew by its label; what is for nobody is told as lost."""
    value: Critique = replied.value
    known = labels_for(debate, replied.id, _others(debate, replied.id))
    debate, records = _back(debate, replied.id), list[Append]()
    for review in value.reviews:
        label = pick_choice(review.label, tuple(known))
        if label and review.text.strip():
            said = Said(replied.id, known[label], review.text)
            records.append(record_line(debate, said.by, f"critique of {member(debate, said.of)}", said.text))
            remark = _remark(debate, said.by, "critique", said.text, said.of)
            debate = _record(replace(debate, critiques=(*debate.critiques, said)), records[-1], remark)
        else:
            why = f"no argument is called {shorten(review.label, ABSTAINED)!r}" if not label else "it is empty"
            note = f"round {debate.round}: a review by {replied.id} was lost: {why}"
            debate = replace(debate, carried=(*debate.carried, note))
    return close(debate, "CRITIQUES_COMPLETE", *records)


def go_on_without_critics(debate: Debate, _: Event) -> Moved:
    """Who has not reviewed leaves the others without its review, and stays on the panel."""
    notes = tuple(f"round {debate.round}: {name} wrote no critique: {why}" for name, why in debate.failed.items())
    return raised(replace(debate, carried=(*debate.carried, *notes), failed={}, retries=0), "CRITIQUES_COMPLETE")


# Refinement


def refine(debate: Debate, _: Event) -> Moved:
    """Each refines its own proposal with every critique of it."""
    debate = fresh(debate)
    names = [name for name in debate.ids if name in debate.proposals and name not in debate.refinements]
    if not names or debate.overtime:
        return raised(replace(debate, waiting=(), failed={}), "REFINEMENTS_COMPLETE")
    return _ask(debate, [_refine_ask(debate, name) for name in names], names)


def _refine_ask(debate: Debate, name: str) -> Effect:
    shown = _critiques_of(debate, name)
    if debate.seat(name).person:
        parts = (*_parts(debate, debate.proposals[name]), "", *shown)
        return _person_form(debate, name, "Your proposal now", "\n".join(parts))
    ask = ask_of(
        debate,
        name,
        "refine",
        "Proposal",
        proposal=texts(*_parts(debate, debate.proposals[name])),
        critiques=texts(*shown),
        wanted=_answer_form(debate),
        **_history(debate, name),
    )
    return replace(ask, narrow=_narrow_draft(debate))


def _critiques_of(debate: Debate, name: str) -> list[str]:
    """Every critique of somebody's proposal, without names, and how many of those that could be are missing."""
    said_by: dict[str, list[str]] = {}
    for remark in debate.critiques:
        if remark.of == name:
            said_by.setdefault(remark.by, []).append(remark.text)
    order = shuffle(list(said_by), f"{debate.digest}/{debate.round}/{name}/critics")
    shown = [part for number, by in enumerate(order, 1) for part in (f"[critic {number}]", *said_by[by], "")]
    critics = [agent.id for agent in debate.panel if not agent.person and agent.id != name]
    if missing := len([critic for critic in critics if critic not in said_by]):
        return [*shown, f"{missing} of {len(critics)} critiques are missing: they did not come or could not be read."]
    return shown[:-1] or ["There are none."]


def keep_refinement(debate: Debate, event: Replied | Answered) -> Moved:
    """Keep a refinement."""
    name, draft = event.id, _proposal(event)
    if name not in debate.waiting:
        return Move(debate)
    record = record_line(debate, name, "refinement", draft.text)
    remark = _remark(debate, name, "refinement", draft.text)
    debate = replace(_back(debate, name), refinements={**debate.refinements, name: draft})
    return close(_record(debate, record, remark), "REFINEMENTS_COMPLETE", record)


def fall_back_on_proposals(debate: Debate, _: Event) -> Moved:
    """Who did not refine its proposal keeps it as it was."""
    return raised(*fall_back(debate, debate.proposals, "REFINEMENTS_COMPLETE"))


# Evaluation


def evaluate(debate: Debate, _: Event) -> Moved:
    """Count the round; then ask the judge, unless the number of rounds is fixed."""
    if not debate.failed:
        debate = _round_over(fresh(debate))
    cancel = CancelSend(f"round-{debate.round}")
    if debate.configuration.debate.terminationCondition.type == "fixed":
        return raised(debate, "CONTINUE", effects=(cancel,))
    if debate.configuration.debate.chosen_protocol == "gated" and not any(debate.history[-1].answers.values()):
        # another round would cost as much and say as little
        return raised(_end_rounds(debate, "no_answers", None, ""), "MAX_ROUNDS_REACHED", effects=(cancel,))
    judge = debate.configuration.judge.id
    rubric = debate.configuration.debate.rubric
    wanted = f"Score each of these from 1 to 10 as rubric: {', '.join(rubric)}." if rubric else ""
    ask = ask_of(
        debate,
        judge,
        "evaluate",
        "Evaluation",
        round=f"{debate.round}",
        rubric=wanted,
        arguments=_arguments(debate, judge, _alive(debate))["arguments"],
    )
    return _ask(debate, (cancel, ask), (judge,))


def _round_over(debate: Debate) -> Debate:
    """The refinements are the proposals of the next round; what is counted of this one is kept."""
    before = normal_answers(debate, debate.proposals)
    drafts = {name: debate.refinements.get(name, debate.proposals[name]) for name in _alive(debate)}
    after = normal_answers(debate, drafts)
    moved = {
        name: tuple(sorted(other for other, held in before.items() if other != name and held == after[name]))
        for name in after
        if before.get(name) != after[name]
    }
    counted = Round(debate.round, **_count_votes(debate, drafts), moved_by=moved)
    return replace(debate, proposals=drafts, history=(*debate.history, counted), rounds=debate.rounds + 1)


def keep_evaluation(debate: Debate, replied: Replied) -> Moved:
    """Go on, or end the rounds, by what the judge says."""
    value: Evaluation = replied.value
    return _decide(replace(_back(debate, replied.id), evaluation=value), *_score(debate, value))


def _score(debate: Debate, value: Evaluation) -> tuple[float, Measure]:
    """Confidence of 0 to 100, or points of a rubric times ten, and what it is.

    The judge's counts; counted answers can contradict it, and texts that are the same stand in for it.
    """
    if debate.configuration.debate.terminationCondition.type == "quality":
        points = list(value.rubric.values())
        return (10 * sum(points) / len(points), "rubric") if points else (value.confidence, "judge")
    measured = 100 * debate.history[-1].agreement
    if debate.configuration.debate.answer.is_closed:
        return min(value.confidence, measured), "agreement and judge"
    if measured >= max(100 * SAME, value.confidence):
        return measured, "agreement"
    return value.confidence, "judge"


def _decide(debate: Debate, score: float, measure: Measure) -> Moved:
    chosen = debate.configuration.debate
    last = replace(debate.history[-1], confidence=round(score, 4))
    debate = replace(debate, history=(*debate.history[:-1], last), failed={}, retries=0)
    threshold = chosen.terminationCondition.threshold
    if score >= threshold:
        return raised(_end_rounds(debate, chosen.terminationCondition.type, score, measure), "CONSENSUS_REACHED")
    if debate.rounds >= chosen.rounds:
        return raised(_end_rounds(debate, "max_rounds", score, measure), "MAX_ROUNDS_REACHED")
    return raised(debate, "CONTINUE")


def _end_rounds(debate: Debate, reason: str, score: float | None, measure: Measure) -> Debate:
    threshold = debate.configuration.debate.terminationCondition.threshold
    measured = _percent(debate.history[-1].agreement) if debate.history else None
    judged = debate.evaluation.confidence if debate.evaluation is not None else None
    return replace(debate, termination=Termination(reason, score, threshold, measure, measured, judged))


def measure_instead(debate: Debate, _: Event) -> Moved:
    """Where the judge cannot be had, what is measured decides."""
    note = f"round {debate.round}: the judge gave no evaluation: {'; '.join(debate.failed.values())}"
    debate = replace(debate, carried=(*debate.carried, note))
    return _decide(debate, 100 * debate.history[-1].agreement, "agreement")


# Synthesis


def synthesise(debate: Debate, _: Event) -> Moved:
    """The judge may summarise first; then it writes the solution, while the panel ranks the drafts."""
    judge = debate.configuration.judge
    cancel = (CancelSend(f"round-{debate.round}"),) if debate.round else ()
    debate = fresh(debate)
    if not debate.termination.reason:
        debate = replace(debate, termination=Termination("asked_for"))
    if debate.configuration.debate.answer.is_closed and not final_vote(debate).leaders:
        return raised(_unanswered(replace(debate, waiting=(), failed={})), "FAILED", effects=cancel)
    if _needs_summary(debate, judge) and judge.id not in debate.contexts and not debate.failed:
        return _ask(debate, (*cancel, replace(summary_ask(debate, judge.id), id=SUMMARY)), (SUMMARY,))
    return _solution_asks(debate, cancel)


def write_solution(debate: Debate, _: Event) -> Moved:
    """The judge has its summary, and writes."""
    return _solution_asks(debate)


def _solution_asks(debate: Debate, before: Sequence[Effect] = ()) -> Moved:
    judge, drafts = debate.configuration.judge.id, debate.proposals
    ask = ask_of(
        debate,
        judge,
        "synthesise",
        "Solution",
        arguments=_arguments(debate, judge, drafts)["arguments"],
        rounds=_rounds_text(debate, judge),
        vote=_vote_text(debate),
        **_context(debate),
        **_history(debate, judge),
    )
    if debate.configuration.debate.answer.is_closed:
        ask = replace(ask, narrow=narrow_answer(debate, final_vote(debate).leaders))
    if debate.failed or debate.configuration.debate.answer.is_closed or len(debate.drafts) < 3 or debate.rankings:
        return _ask(debate, (*before, ask), (judge,))
    names = [name for name in debate.ids if not debate.seat(name).person and name in debate.drafts]
    ranks = [_rank_ask(debate, name) for name in names]
    debate = replace(debate, voters=tuple(names))
    return _ask(debate, (*before, ask, *ranks), (judge, *(f"rank:{name}" for name in names)))


def _rank_ask(debate: Debate, name: str) -> AskAgent:
    shown = _arguments(debate, name, debate.drafts)
    known = labels_for(debate, name, (other for other in debate.drafts if other != name))
    ask = ask_of(debate, name, "rank", "Ranking", arguments=shown["arguments"])
    return replace(ask, id=f"rank:{name}", narrow={"ranking": {"enum": list(known)}})


def _rounds_text(debate: Debate, judge: str) -> Any:
    """What was said in the rounds before the final proposals, under the labels of these; "" where a summary has it."""
    if judge in debate.contexts:
        return ""
    remarks = debate.record or tuple(
        _remark(debate, said.by, "critique", said.text, said.of) for said in debate.critiques
    )
    names = {name: f"[{label}]" for label, name in labels_for(debate, judge, debate.proposals).items()}
    final = {(name, draft.text) for name, draft in debate.proposals.items()}
    parts, number = list[str](), 0
    for remark in remarks:
        if remark.what != "critique" and (remark.by, remark.text) in final:
            continue
        if remark.round != number:
            number = remark.round
            parts.append(f"Round {number}:")
        by, of = names.get(remark.by, "somebody who left"), names.get(remark.of, "somebody who left")
        what = {"proposal": "proposed", "refinement": "refined this to"}.get(remark.what, f"said of {of}")
        parts += [f"{by} {what}:", remark.text]
    if left_out := debate.spoken.messages - len(debate.record) if debate.record else 0:
        parts.append(f"{left_out} other remarks are left out here.")
    return texts("What was said on the way, oldest first:", "", *parts, "") if parts else ""


def _vote_text(debate: Debate) -> str:
    if not debate.configuration.debate.answer.is_closed:
        return ""
    counted = final_vote(debate)
    silent = f"; {counted.abstained} abstained" if counted.abstained else ""
    if counted.is_tie:
        leaders = ", ".join(counted.leaders)
        votes = f"{_votes(counted.counts)}{silent}"
        return f"The vote is a tie ({votes}): choose one of the leading answers ({leaders}) and say why."
    votes = f"{_votes(counted.counts)}{silent}"
    return f"The vote over all rounds is {counted.leader} ({votes}): this is the answer; explain it."


def _votes(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{answer}: {number}" for answer, number in counts.items())


def final_vote(debate: Debate) -> Tally:
    """The vote pooled over rounds: the independent drafts and the answers of every round, less what was rejected."""
    debated = () if debate.termination.reason == "vote" else debate.history
    later = [ballot for known in debated for ballot in ballots_of(debate, known.answers, known.confidences)]
    return elect([*draft_ballots(debate), *later], debate.checks)


def answers_by_round(debate: Debate) -> list[Mapping[str, str]]:
    """The answers of the independent drafts, then those after every round; a vote over the drafts is no round more."""
    first = normal_answers(debate, debate.drafts)
    debated = () if debate.termination.reason == "vote" else debate.history
    return [first, *(known.answers for known in debated)]


def keep_synthesis(debate: Debate, replied: Replied) -> Moved:
    """Keep what the judge wrote, and how the panel ranks the drafts."""
    if replied.id == SUMMARY:
        known = _keep_summary(_back(debate, SUMMARY), debate.configuration.judge.id, replied.value)
        return raised(known, "SUMMARY_READY")
    if replied.id.startswith("rank:"):
        return _keep_ranking(debate, replied)
    solution: Solution = replied.value
    return close(replace(_back(debate, replied.id), solution=_settle_solution(debate, solution)), "SOLUTION_WRITTEN")


def _keep_ranking(debate: Debate, replied: Replied) -> Moved:
    name, value = replied.id.removeprefix("rank:"), replied.value
    assert isinstance(value, Ranking)
    known = labels_for(debate, name, (other for other in debate.drafts if other != name))
    chosen = [pick_choice(text, tuple(known)) for text in value.ranking]
    order = tuple(known[label] for label in dict.fromkeys(chosen) if label)
    debate = _back(debate, replied.id)
    if not order:
        note = f"{name} ranked no drafts: none of its labels is one of {', '.join(known)}"
        return close(replace(debate, carried=(*debate.carried, note)), "SOLUTION_WRITTEN")
    return close(replace(debate, rankings={**debate.rankings, name: order}), "SOLUTION_WRITTEN")


def _settle_solution(debate: Debate, solution: Solution) -> Solution:
    """The vote is the answer where answers are counted, between leaders the judge's; what is unmet caps confidence."""
    answers = debate.configuration.debate.answer
    if answers.is_closed:
        counted, chosen = final_vote(debate), normalise(solution.answer, answers)
        solution = replace(solution, answer=counted.leader or (chosen if chosen in counted.leaders else ""))
    else:
        solution = replace(solution, answer="")
    return replace(
        solution, confidence=_capped(solution.confidence) if solution.unmet_requirements else solution.confidence
    )


def _capped(confidence: float | None) -> float | None:
    return None if confidence is None else min(confidence, UNMET_CAP)


def _unanswered(debate: Debate) -> Debate:
    """A closed question that has no answer, and why."""
    counted = final_vote(debate)
    if counted.is_tie:
        why = f"the vote is a tie ({_votes(counted.counts)}), and the judge chose none of the leaders"
    else:
        last = debate.history[-1].abstained if debate.history else abstentions(debate, debate.proposals)
        why = "nobody chose an option" + "".join(f"; {name}: {text}" for name, text in last.items())
    return replace(debate, is_answered=False, reason=f"no answer: {why}")


def lose_synthesis(debate: Debate, gave_up: GaveUp) -> Moved:
    """A ranking that did not come is not a loss; the judge is asked again."""
    if gave_up.id not in debate.waiting:
        return Move(debate)
    if gave_up.id.startswith("rank:"):
        note = f"{gave_up.id.removeprefix('rank:')} ranked no drafts: {gave_up.reason}"
        return close(replace(_back(debate, gave_up.id), carried=(*debate.carried, note)), "SOLUTION_WRITTEN")
    failed = {**debate.failed, gave_up.id: gave_up.reason}
    return close(replace(_back(debate, gave_up.id), failed=failed), "SOLUTION_WRITTEN")


def end_synthesis(debate: Debate, _: Event) -> Moved:
    """The debate is complete; a tie of the vote is an event of its own. A closed question without an answer failed."""
    is_closed = debate.configuration.debate.answer.is_closed
    debate = replace(debate, failed={})
    tie = ("TIE",) if is_closed and final_vote(debate).is_tie else ()
    if is_closed and debate.solution is not None and not debate.solution.answer:
        return raised(_unanswered(debate), *tie, "FAILED")
    return raised(debate, *tie, "COMPLETE")


def note_tie(debate: Debate, _: Event) -> Debate:
    """Say that the vote was a tie, and who decided."""
    note = "the vote was a tie; the judge decided between the leaders"
    if not debate.is_answered:
        note = "the vote was a tie, and nobody decided between the leaders"
    return replace(debate, carried=(*debate.carried, note))


def fall_back_on_best(debate: Debate, _: Event) -> Moved:
    """Where the judge cannot be had, the best proposal is the solution, and says so."""
    why = "; ".join(debate.failed.values())
    if not debate.proposals:
        return raised(replace(debate, reason=f"the judge wrote no solution: {why}", failed={}), "FAILED")
    debate = replace(debate, carried=(*debate.carried, f"the judge wrote no solution: {why}"), failed={})
    return raised(replace(debate, solution=_settle_solution(debate, best_proposal(debate))), "SOLUTION_WRITTEN")


def best_proposal(debate: Debate) -> Solution:
    """The proposal with the leading answer, among several the surest one, as a solution."""
    answers = normal_answers(debate, debate.proposals)
    leaders = final_vote(debate).leaders if answers else ()
    name, draft = max(
        debate.proposals.items(), key=lambda item: (answers.get(item[0]) in leaders, item[1].confidence or 0.0)
    )
    note = f"This is the proposal of {name}: the judge could not be had."
    answer = answers.get(name, "")
    return Solution(
        draft.text,
        confidence=_capped(draft.confidence),
        open_questions=(note,),
        answer=answer if answer in leaders else "",
    )


# a person at the table


def steer(debate: Debate, event: Event) -> Debate:
    """Keep what a person says to the panel; everybody hears it from the next ask on."""
    text = str(getattr(event, "data", "") or "").strip()
    return replace(debate, steering=(*debate.steering, text)) if text else debate


def end_early(debate: Debate, _: Event) -> Debate:
    """Somebody wants the solution now, from what there is."""
    drafts = {**debate.proposals, **debate.refinements}
    debate = replace(debate, proposals=drafts, drafts=debate.drafts or debate.proposals)
    return replace(debate, waiting=(), failed={}, termination=Termination("asked_for"))


def end_drafts(debate: Debate, event: Event) -> Moved:
    """Somebody wants the solution while drafts are still missing: it is written from those that are there."""
    if not debate.proposals:
        note = "a solution was asked for before there was any proposal"
        return Move(replace(debate, carried=(*debate.carried, note)))
    return raised(end_early(debate, event), "SOLUTION_WANTED")


def count_flips(debate: Debate) -> dict[str, int]:
    """How often each agent changed its answer."""
    return flips(answers_by_round(debate))
