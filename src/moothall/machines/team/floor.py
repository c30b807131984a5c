"""Who has the floor: the moves of a conversation. Pure: data and event in, data, asks and raised events out.

Whatever happens leads to Arbitration, where it is decided who is next. What the user says comes first, then the rules
of the team, then arbitration among proposals; an agent that hands on is a proposal of one. A decision names its layer.
The machine itself gives the user the word where somebody asks, where an approval is wanted, where a limit or a loop is
reached, and where nothing else is left.

A directive is read from the structured part of the reply that is awaited now, and from nowhere else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from textwrap import indent
from typing import Any

from moothall.agents.ask import AskAgent, Replied, Returned, ToolCall, Window
from moothall.agents.ask import Unusable as UnusableReply
from moothall.agents.memory import Summary, extract, prompt_text
from moothall.agents.recall import Item, Recall
from moothall.errors import MoothallError
from moothall.kernel.codec import decode, encode
from moothall.kernel.effects import AskPerson, Effect, StartChild
from moothall.kernel.events import Answered, Event, Exhausted, GaveUp, Named
from moothall.kernel.step import Append, Move
from moothall.machines.team import lines
from moothall.machines.team.approvals import digest_of
from moothall.machines.team.arbitration import Arbitration, Proposal, arbitrate, sample
from moothall.machines.team.definition import AWAIT_APPROVAL, SEND_BACK, Approval, Roster
from moothall.machines.team.directives import (
    APPROVE_AND_HANDOFF,
    CONTINUE,
    HANDOFF_TO_AGENT,
    REQUEST_REWORK,
    USER,
    Directive,
    Unusable,
    directive,
)
from moothall.machines.team.plans import WENT_ON
from moothall.machines.team.rules import Situation, route_of
from moothall.machines.team.state import (
    BY_USER,
    SYSTEM,
    THREAD,
    TRANSITIONS,
    Approve,
    Beside,
    Brief,
    CallHooks,
    Command,
    Conversation,
    Decision,
    Fact,
    FactRead,
    FileWritten,
    HookCall,
    HooksCalled,
    ReadFact,
    Repeat,
    Return,
    Rework,
    StartLine,
    StartWorkflow,
    Summarise,
    UserSaid,
    WarmedUp,
    WarmUp,
    Wish,
)
from moothall.machines.team.summary import summary_in
from moothall.machines.team.warmth import Handoff as Foreseen
from moothall.machines.team.warmth import Learned, SeedRule
from moothall.machines.turn import Use, may_be_called, why_not

Moved = Move[Conversation]
GO = "to."
DOUBTFUL = 0.5
"""Below this confidence the user looks at what is at stake, where approval is set to review."""
ROUNDS = 8
"""How often somebody may have tools called in one turn."""
CALLS = 16
TOOLS = "TOOLS"
SUMMARISER = "summariser"
FLAG = "User-requested transition"
PROMISED = (
    "You say that you hand on, but the reply directs nothing. Reply again: with `transition` and `next_agent` if you "
    "mean it, without the announcement if you do not."
)


def reply_of(replied: Replied) -> Any:
    """The structured part of a reply. A text that is one JSON object is that object; any other text is prose.

    A text of several objects, or with a key several times, says several things: it is passed on so, to be refused.
    """
    if replied.value is not None and not isinstance(replied.value, str):
        return replied.value
    text, objects = replied.text.strip(), list[Any]()
    while text.startswith("{"):
        try:
            found, end = _READER.raw_decode(text)
        except (ValueError, RecursionError):
            break
        objects.append(found)
        text = text[end:].lstrip()
    if text or not objects:
        return {"content": replied.text}
    return objects[0] if len(objects) == 1 else objects


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; what stands in it several times under one key is a list of all that."""
    found: dict[str, list[Any]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return {key: values[0] if len(values) == 1 else values for key, values in found.items()}


_READER = json.JSONDecoder(object_pairs_hook=_object)


class Floor:
    """The moves of the conversations of one team."""

    def __init__(self, roster: Roster, source: str) -> None:
        self.roster, self.team, self.source = roster, roster.team, source
        self.tables = roster.team.tables()

    # what is heard

    def hear_user(self, data: Conversation, said: UserSaid) -> Moved:
        """The user said something: whoever asked, or spoke last, goes on with it."""
        return self._user_text(data, said.text, said.at)

    def hear_answer(self, data: Conversation, answered: Answered) -> Moved:
        """The open question was answered from elsewhere: yes, no and `!rework WHY` decide what waits for approval."""
        if data.place == AWAIT_APPROVAL and isinstance(answered.value, bool):
            return self.approve(data, Approve()) if answered.value else self.rework(data, Rework(""))
        word, _, why = str(answered.value).partition(" ")
        if data.place == AWAIT_APPROVAL and word == SEND_BACK:
            return self.rework(data, Rework(why.strip()))
        return self._user_text(data, str(answered.value), data.now)

    def _user_text(self, data: Conversation, text: str, at: float) -> Moved:
        data = _fresh(replace(data, now=at or data.now))
        data = replace(data, reading=tuple(read.fact for read in self.team.sources))
        data = self._remember(data, BY_USER, text, "general")
        if data.mode == "simple":
            data = lines.with_feedback(self.roster, data, text)
            if data.line is not None:
                return Move(data, self._reads(data), (_line(BY_USER, text, data.turn),))
        target = data.speaker or self.team.start
        decided = Decision(target, BY_USER, "user", "the user said something", "USER_SAID")
        data = replace(data, decided=decided, held=None, held_reply=False)
        return Move(data, self._reads(data), (_line(BY_USER, text, data.turn),))

    def _reads(self, data: Conversation) -> tuple[Effect, ...]:
        sources = self.team.sources
        return tuple(ReadFact(read.fact, read.tool, read.server, dict(read.arguments)) for read in sources)

    def hear_reply(self, data: Conversation, replied: Replied) -> Moved:
        """The reply that is awaited came: follow what it directs, show back what cannot be followed, once."""
        if replied.calls:
            return self._want_tools(data, replied)
        reply, speaker = reply_of(replied), data.speaker
        persona = self.roster.personas[speaker]
        found = directive(reply, allowed=self.roster.targets(speaker), accepts_user=persona.accepts_user)
        extras = _extras(reply, self.roster.targets(speaker), found) if isinstance(found, Directive) else found
        if isinstance(found, Unusable) or isinstance(extras, Unusable):
            fault = found if isinstance(found, Unusable) else extras
            assert isinstance(fault, Unusable)
            return Move(self._show_back(data, fault.message))
        if found.promise and not data.repairs:
            return Move(self._show_back(data, PROMISED))
        return self._heard(replace(data, repair="", repairs=0), reply, found, extras)

    def hear_unusable(self, data: Conversation, unusable: UnusableReply) -> Moved:
        """The reply could not even be read."""
        return Move(self._show_back(data, unusable.reason))

    # tools

    def _want_tools(self, data: Conversation, replied: Replied) -> Moved:
        """Somebody wants tools called before they reply; those that they do not have are answered with an error."""
        known = self._tools(data)
        able = tuple(call for call in replied.calls if may_be_called(call, known, data.speaker))[:CALLS]
        thread = tools_thread(data)
        said = {"role": "assistant", "text": replied.text, "calls": encode(replied.calls)}
        refused = [call for call in replied.calls if call not in able]
        errors = [_answer_of(call, error=why_not(call, known, data.speaker)) for call in refused]
        if data.rounds >= ROUNDS:
            return Move(self._show_back(data, f"tools were called {ROUNDS} times; reply now"))
        shown = ", ".join(f"{call.tool}({json.dumps(encode(call.arguments), ensure_ascii=False)})" for call in able)
        go_on = Decision(data.speaker, data.speaker, "arbitration", f"calls {shown}" if able else "", TOOLS)
        data = replace(data, calls=able, rounds=data.rounds + 1, decided=go_on, asked="")
        told = (_line(data.speaker, f"[calls {shown}]", data.turn),) if able else ()
        return Move(data, appends=(Append(thread, said), *(Append(thread, error) for error in errors), *told))

    def _tools(self, data: Conversation) -> dict[str, Use]:
        """The tools that whoever speaks has. Where nobody said how they may be called, a person is asked each time."""
        names = self.roster.personas[data.speaker].tools
        if data.uses is None:
            return {name: Use(name, "at-most-once", policy="ask") for name in names}
        return {use.name: use for use in data.uses if use.name in names}

    def hear_tool(self, data: Conversation, event: Returned | GaveUp) -> Moved:
        """A tool came back, well or not: whoever speaks is shown it. What it says directs nothing."""
        call = next(call for call in data.calls if call.id == event.id)
        if isinstance(event, Returned):
            answer = _answer_of(call, value=encode(event.value))
        else:
            answer = _answer_of(call, error=event.reason)
        left = tuple(other for other in data.calls if other.id != call.id)
        data = replace(data, calls=left)
        if left:
            return Move(data, appends=(Append(tools_thread(data), answer),))
        decided = Decision(data.speaker, data.speaker, SYSTEM, "", TOOLS)
        return Move(replace(data, decided=decided), (), (Append(tools_thread(data), answer),), (Named(WENT_ON),))

    def _show_back(self, data: Conversation, message: str) -> Conversation:
        """Ask the same persona again, once; what it said stays out of the conversation."""
        if data.repairs:
            reason = f"{self._name(data.speaker)} gave no reply that can be followed: {message}"
            stop = Decision(USER, "unusable_reply", SYSTEM, reason)
            return replace(data, repair="", repairs=0, decided=stop, reason=reason, asked="")
        again = Decision(data.speaker, "repair", SYSTEM, message, "REPAIR")
        return replace(data, repair=message, repairs=1, decided=again, asked="")

    def _heard(self, data: Conversation, reply: Mapping[str, Any], found: Directive, extras: _Extras) -> Moved:
        speaker, content = data.speaker, str(reply["content"])
        kind = {APPROVE_AND_HANDOFF: "approval", REQUEST_REWORK: "rejection"}.get(found.event, "general")
        if reply.get("approval_status") == "APPROVED":
            kind = "approval"
        data = self._remember(data, speaker, content, kind)
        for text in extras.brief.constraints if extras.brief else ():
            data = replace(data, memory=data.memory.remember(Item(text, "constraint", speaker, data.turn, data.now)))
        author = data.stack[-1] if data.stack else ""
        chain = data.chain
        if kind == "approval" and author:
            chain = chain.approved(speaker, author, data.turn)
        if found.event != REQUEST_REWORK and content.strip():
            is_work = found.event != CONTINUE or extras.proposals or chain.work_of(speaker) is None
            chain = chain.made(speaker, content, author) if is_work else chain
        wish = Wish(found.event, self._proposals(data, reply, found, extras), content, "", reply.get("confidence"))
        if found.event == REQUEST_REWORK:
            wish = replace(wish, reason=str(reply["rework_reason"]))
        data = replace(data, chain=chain, wish=wish, brief=extras.brief, asked="")
        data = (
            replace(data, proposed=extras.machine, proposed_input=extras.input, proposed_by=speaker)
            if (extras.machine)
            else data
        )
        effects: tuple[Effect, ...] = ()
        if data.mode == "simple" and data.line is not None:
            data, effects = lines.with_reply(data, content)
        said = _line(speaker, content, data.turn)
        return Move(data, effects, (Append(said.thread, {**said.message, "event": found.event}),))

    def _proposals(
        self, data: Conversation, reply: Mapping[str, Any], found: Directive, extras: _Extras
    ) -> tuple[Proposal, ...]:
        """Everybody who is proposed to be next; an agent that hands on proposes one."""
        row = data.counts.get(data.speaker, {})
        total = sum(row.values()) or 1
        if found.next_agent is not None and found.next_agent != USER:
            sure = reply.get("confidence")
            own = Proposal(found.next_agent, 0.5, 0.5, 0.5, 1 if sure is None else sure, self._order(found.next_agent))
            return (replace(own, frequency=row.get(own.agent, 0) / total),)
        return tuple(
            replace(proposal, order=self._order(proposal.agent), frequency=row.get(proposal.agent, 0) / total)
            for proposal in extras.proposals
        )

    def _order(self, persona: str) -> int:
        return self.roster.order.get(persona, 0)

    def hear_failure(self, data: Conversation, failed: GaveUp) -> Moved:
        """Nobody could reply: the user has the word."""
        reason = f"{self._name(data.speaker)} could not reply: {failed.reason}"
        return Move(replace(data, decided=Decision(USER, "failure", SYSTEM, reason), reason=reason, asked=""))

    def hear_limit(self, data: Conversation, limit: Exhausted) -> Conversation:
        """What the conversation may spend is spent."""
        return replace(data, reason=f"the limit of {limit.limit:g} {limit.resource} is reached", asked="")

    def hear_hooks(self, data: Conversation, called: HooksCalled) -> Moved:
        """Hooks were called. One that failed is told, and harms nothing."""
        notes = tuple(f"{hook}: {why}" for hook, why in called.failed.items())
        appends = tuple(_line(SYSTEM, f"the hook {note}", data.turn) for note in notes)
        return Move(replace(data, failed_hooks=(*data.failed_hooks, *notes)[-20:]), appends=appends)

    def hear_fact(self, data: Conversation, read: FactRead) -> Moved:
        """A source said what a fact is; one that failed leaves what was known."""
        data = replace(data, reading=tuple(fact for fact in data.reading if fact != read.fact))
        raises = (Named(WENT_ON),) if not data.reading and self.has_replied(data) else ()
        if read.problem:
            told = _line(SYSTEM, f"{read.source} could not say what {read.fact} is: {read.problem}", data.turn)
            return Move(data, (), (told,), raises)
        facts = {**data.facts, read.fact: Fact(read.value, read.source, read.at)}
        return Move(replace(data, facts=facts), raises=raises)

    def has_replied(self, data: Conversation) -> bool:
        """Whether somebody has replied, and nobody has decided yet who is next."""
        is_open = data.decided is not None or bool(data.wish.event)
        return is_open and not data.asked and data.place in self.roster.personas

    def hear_file(self, data: Conversation, written: FileWritten) -> Moved:
        """A file of the plan was written, or could not be."""
        text = f"{written.path}: {written.problem}" if written.problem else f"wrote {written.path}"
        if data.line is not None and not written.problem:
            data = replace(data, line=replace(data.line, files=(*data.line.files, written.path)))
        return Move(data, appends=(_line(SYSTEM, text, data.turn),))

    # commands

    def approve(self, data: Conversation, command: Command) -> Moved:
        """The user approves: the reply or the transition that waits, else the newest work."""
        data = _fresh(_at(data, command))
        author = data.speaker
        data = replace(data, chain=data.chain.approved(BY_USER, author, data.turn), reason="")
        data = self._remember(data, BY_USER, f"approved the work of {self._name(author)}", "approval")
        told = _line(BY_USER, "!approve", data.turn)
        if data.mode == "simple" and data.line is not None:
            return Move(lines.with_approval(self.roster, data), appends=(told,))
        if data.held is not None:
            held = data.held
            if data.held_reply and self._wants_approval(data, held):
                return Move(replace(data, held_reply=False, decided=_wait(held)), appends=(told,))
            reason = f"{held.reason}; approved by the user".lstrip("; ")
            decided = replace(held, reason=reason, approved=True)
            return Move(replace(data, held=None, held_reply=False, decided=decided), appends=(told,))
        decided = Decision(author or self.team.start, BY_USER, "user", "the user approved", "APPROVE")
        return Move(replace(data, decided=decided), appends=(told,))

    def rework(self, data: Conversation, command: Command) -> Moved:
        """The user sends work back: to whoever spoke, or while somebody speaks, to the author of what they work on."""
        data = _fresh(_at(data, command))
        is_waiting = data.place not in self.roster.personas
        target = data.speaker if is_waiting else (data.stack[-1] if data.stack else data.speaker)
        stack = data.stack if is_waiting else data.stack[:-1]
        data = replace(data, stack=stack, chain=data.chain.sent_back(target), reworks=data.reworks + 1)
        why = command.text or "the user wants it done again"
        data = self._remember(data, BY_USER, why, "rejection")
        decided = Decision(target or self.team.start, BY_USER, "user", why, REQUEST_REWORK)
        data = replace(data, decided=decided, held=None, held_reply=False, proposed="")
        return Move(data, appends=(_line(BY_USER, f"!rework {command.text}".strip(), data.turn),))

    def hand_off(self, data: Conversation, command: Command) -> Moved:
        """The user hands work and approval chain on, whatever was recommended."""
        data = _fresh(_at(data, command))
        losers = tuple((held.to, 0.0) for held in (data.held,) if held is not None)
        if data.speaker and data.speaker != command.text:
            data = replace(data, stack=(*data.stack, data.speaker))
        decided = Decision(command.text, BY_USER, "user", FLAG, "HANDOFF", losers)
        data = replace(data, decided=decided, held=None, held_reply=False, returns=())
        return Move(data, appends=(_line(BY_USER, f"!handoff {command.text}", data.turn),))

    def call_agent(self, data: Conversation, command: Command) -> Moved:
        """Somebody speaks for one turn; then it goes on where it was."""
        data = _fresh(_at(data, command))
        back = Return(data.place, BY_USER, "user", data.speaker)
        decided = Decision(command.text, BY_USER, "user", FLAG, "CALL_AGENT")
        data = replace(data, decided=decided, returns=(*data.returns, back))
        return Move(data, appends=(_line(BY_USER, f"!call_agent {command.text}", data.turn),))

    def switch_to(self, data: Conversation, command: Command) -> Moved:
        """Somebody else speaks from now on; no work is handed over."""
        data = _fresh(_at(data, command))
        decided = Decision(command.text, BY_USER, "user", FLAG, "SWITCH_TO")
        data = replace(data, decided=decided, held=None, held_reply=False, returns=())
        return Move(data, appends=(_line(BY_USER, f"!switch_to {command.text}", data.turn),))

    def go_on(self, data: Conversation, command: Command) -> Moved:
        """Whoever was held back, or spoke last, goes on."""
        data = _fresh(_at(data, command))
        if data.held is not None:
            return Move(replace(data, decided=replace(data.held, approved=True), held=None, held_reply=False))
        decided = Decision(data.speaker or self.team.start, BY_USER, "user", "the user lets it go on", "CONTINUE")
        return Move(replace(data, decided=decided))

    def switch_mode(self, data: Conversation, command: Command) -> Conversation:
        """Another mode; memory, approvals and files stay as they are."""
        return replace(_at(data, command), mode="simple" if command.text == "simple" else "fsm")

    def start_line(self, data: Conversation, command: StartLine) -> Moved:
        """A line of phases begins."""
        data = replace(_fresh(_at(data, command)), mode="simple", held=None, held_reply=False)
        data = lines.start_line(self.roster, data, command.line, command.text)
        data = self._remember(data, BY_USER, command.text or command.line, "general")
        return Move(data, appends=(_line(BY_USER, f"!{command.line} {command.text}".strip(), data.turn),))

    # beside the conversation

    def start_beside(self, data: Conversation, command: StartWorkflow) -> Moved:
        """A workflow, a pattern or another machine begins beside the conversation."""
        data = _at(data, command)
        return self._started(data, command.machine, command.text if command.input is None else command.input)

    def start_proposed(self, data: Conversation, command: Command) -> Moved:
        """What somebody proposed begins, because the user approved it."""
        data = _fresh(_at(data, command))
        moved = self._started(replace(data, proposed=""), data.proposed, data.proposed_input)
        decided = Decision(USER, BY_USER, "user", f"{data.proposed} was approved and has begun", "APPROVE")
        if data.held is not None:  # what waits besides is approved by itself
            decided = _wait(data.held)
        return replace(moved, data=replace(moved.data, decided=decided), raises=(Named(WENT_ON),))

    def _started(self, data: Conversation, machine: str, given: Any) -> Moved:
        name = f"beside-{len(data.beside) + 1}"
        data = replace(data, beside={**data.beside, name: Beside(machine)})
        told = _line(SYSTEM, f"{machine} begins beside the conversation as {name}", data.turn)
        fields = dict(given) if isinstance(given, Mapping) else {"input": given}
        return Move(data, (StartChild(machine, fields, name),), (told,))

    def hear_beside(self, data: Conversation, done: Event) -> Moved:
        """What was started beside the conversation has ended; everybody hears of it."""
        name = str(getattr(done, "id", "") or done.name.rpartition(".")[2])
        known = data.beside.get(name, Beside("?"))
        if isinstance(done, GaveUp):
            ended, text = "failed", f"{known.machine} failed: {done.reason}"
        else:
            ended, text = "done", _format_value(getattr(done, "data", None))
        data = replace(data, beside={**data.beside, name: replace(known, ended=ended)})
        data = self._remember(data, known.machine, text, "general")
        return Move(data, appends=(_line(known.machine, text, data.turn),))

    # who is next

    def decide(self, data: Conversation, _: Event) -> Moved:
        """Who is next: what the user says, then the rules, then arbitration; then limits and approvals."""
        return self._sum_up(self._decided(data))

    def _decided(self, data: Conversation) -> Moved:
        data, decision = self._decision(data)
        if decision.event == TOOLS:
            is_held = self._wants_tool_approval(data, decision)
            return self._hold(data, decision) if is_held else self._go(data, decision)
        is_free = decision.approved or decision.layer in ("user", SYSTEM) or decision.to not in self.roster.personas
        if not is_free and (stop := self._limit(data, decision)) is not None:
            return self._go(replace(data, held=decision, reason=stop.reason), stop)
        if not is_free and data.held is None:
            is_reply = self._wants_look(data)
            if is_reply or self._wants_approval(data, decision):
                return self._hold(replace(data, held_reply=is_reply), decision)
        return self._go(data, decision)

    def _hold(self, data: Conversation, decision: Decision) -> Moved:
        """A decision waits for the user's approval."""
        return self._go(replace(data, held=decision, reason=""), _wait(decision))

    def _approval_reason(self, data: Conversation) -> str:
        """What waits for the user's approval, whichever way the conversation came there."""
        if data.proposed:
            return f"{data.proposed} begins when you approve it"
        if data.held is not None:
            reason = f"the {held_work(data)} of {self._name(data.speaker)} waits for your approval"
            return f"{reason}: {data.held.reason}" if data.held.event == TOOLS else reason
        return lines.end_of_phase(data.line) if data.line is not None else ""

    def _wants_tool_approval(self, data: Conversation, decision: Decision) -> bool:
        """Whether the user looks at calls before they are made; of some a person is asked anyway, one by one."""
        known = self._tools(data)
        is_free = any(known[call.tool].policy_for(data.speaker) == "allow" for call in data.calls)
        return is_free and not decision.approved and self._autonomy(data).transitions == "manual"

    def _decision(self, data: Conversation) -> tuple[Conversation, Decision]:
        wish, speaker = data.wish, data.speaker
        if data.decided is not None:
            return replace(data, decided=None), data.decided
        if data.mode == "simple" and data.line is not None:
            return lines.next_step(data)
        if data.proposed and data.proposed_by == speaker:
            reason = f"{self._name(speaker)} proposes {data.proposed}; it begins when you approve it"
            return replace(data, reason=reason), Decision(AWAIT_APPROVAL, speaker, SYSTEM, reason)
        if wish.event == REQUEST_REWORK:
            return self._sent_back(data)
        if data.returns:
            *rest, back = data.returns
            decision = Decision(back.to, back.by, back.layer, f"{self._name(back.to)} goes on", "RETURN")
            restored = replace(data, returns=tuple(rest), speaker=back.speaker or data.speaker)
            return restored, decision
        situation = Situation(speaker, self._context(data), wish.content, _values(data.facts))
        rules = [rule for rule in self.team.rules if rule.name not in data.fired]
        if wish.event and (route := route_of(rules, situation)) is not None:
            losers = tuple((proposal.agent, 0.0) for proposal in wish.proposals if proposal.agent != route.next)
            if route.back_to:
                data = replace(data, returns=(*data.returns, Return(route.back_to, route.rule, "rules", route.back_to)))
            data = replace(data, fired=(*data.fired, route.rule))
            return data, Decision(route.next, route.rule, "rules", route.reason, wish.event, losers)
        if wish.proposals:
            return data, self._arbitrated(data)
        reason = f"{self._name(speaker)} waits for you" if speaker else "nobody has spoken yet"
        return replace(data, reason=reason), Decision(USER, speaker or SYSTEM, SYSTEM, reason, wish.event)

    def _sent_back(self, data: Conversation) -> tuple[Conversation, Decision]:
        """Rework pops the stack of authors; where it is empty, the user has the word."""
        why, speaker = data.wish.reason, data.speaker
        data = replace(data, reworks=data.reworks + 1)
        if not data.stack:
            reason = f"{self._name(speaker)} asks for rework, and nobody's work is before it: {why}"
            return replace(data, reason=reason), Decision(USER, speaker, SYSTEM, reason, REQUEST_REWORK)
        *rest, author = data.stack
        data = replace(data, stack=tuple(rest), chain=data.chain.sent_back(author), returns=())
        return data, Decision(author, speaker, "arbitration", why, REQUEST_REWORK)

    def _arbitrated(self, data: Conversation) -> Decision:
        wish, arbiter = data.wish, self.team.arbitration
        rested = [
            proposal
            for proposal in wish.proposals
            if data.turn - data.chosen.get(proposal.agent, -arbiter.cooldown - 1) > arbiter.cooldown
        ]
        ready = rested or list(wish.proposals)
        weights = dict(arbiter.weights) or None
        if data.sample and len(ready) > 1:
            settled = sample(ready, _draw(data), blocking=arbiter.blocking, weights=weights)
        else:
            settled = arbitrate(ready, blocking=arbiter.blocking, weights=weights)
        tired = tuple((proposal.agent, 0.0) for proposal in wish.proposals if proposal not in ready)
        by = data.speaker if len(wish.proposals) == 1 else settled.by
        losers = (*settled.losing_scores, *tired)
        return Decision(
            settled.winner, by, "arbitration", _reason(settled, wish), wish.event, losers, dict(settled.scores)
        )

    def _limit(self, data: Conversation, decision: Decision) -> Decision | None:
        """The first limit that is reached, as the reason why the user has the word."""
        limits, source = self.team.limits, data.place
        repeat = data.repeats.get(f"{source}>{decision.to}")
        same = repeat is not None and repeat.digest == _digest(data.wish.content)
        if same and repeat is not None and repeat.count + 1 >= limits.repeats:
            what = f"{self._name(source)} handed to {self._name(decision.to)} {limits.repeats} times"
            return Decision(USER, "repeats", SYSTEM, f"{what} without anything new")
        if data.turns >= limits.turns:
            return Decision(USER, "turns", SYSTEM, f"the limit of {limits.turns} turns without you is reached")
        if data.visits.get(decision.to, 0) >= limits.visits:
            reason = f"{self._name(decision.to)} has spoken {limits.visits} times, which is the limit"
            return Decision(USER, "visits", SYSTEM, reason)
        return None

    def _autonomy(self, data: Conversation) -> Approval:
        persona = self.roster.personas.get(data.speaker)
        return data.autonomy or (persona.autonomy if persona else None) or self.team.autonomy

    def _wants_approval(self, data: Conversation, decision: Decision) -> bool:
        chosen = self._autonomy(data).transitions
        return decision.event != "RETURN" and (chosen == "manual" or (chosen == "review" and _is_doubtful(data)))

    def _wants_look(self, data: Conversation) -> bool:
        chosen = self._autonomy(data).replies
        return chosen == "manual" or (chosen == "review" and _is_doubtful(data))

    def _go(self, data: Conversation, decision: Decision) -> Moved:
        """Go there: the transition is told, hooks are called, and whoever hands on is the author of work."""
        source, to, speaker = data.place, decision.to, data.speaker
        is_persona = to in self.roster.personas
        if to == AWAIT_APPROVAL and not data.reason:
            data = replace(data, reason=self._approval_reason(data))
        handed = decision.event in (HANDOFF_TO_AGENT, APPROVE_AND_HANDOFF, CONTINUE)
        if is_persona and handed and decision.layer in ("arbitration", "rules") and to != speaker:
            data = replace(data, stack=(*data.stack, speaker))
        told = _transition(source, decision, data)
        known = {warm.persona for warm in data.warmth.warm}
        is_silent = decision.event in ("REPAIR", TOOLS) and is_persona and source in (to, AWAIT_APPROVAL)
        repeats = data.repeats if is_silent else self._repeated(data, source, to)
        data = replace(data, place=to, repeats=repeats, flag=self._flag(decision), decided=None)
        if decision.event != TOOLS:
            data = replace(data, calls=(), rounds=0)
        if is_persona and not is_silent:
            data = self._warmed(replace(data, speaker=to), source)
        calls = self._hook_calls(source, to)
        effects: tuple[Effect, ...] = (CallHooks(calls, to),) if calls else ()
        if cold := tuple(warm.persona for warm in data.warmth.warm if warm.persona not in known):
            effects = (*effects, WarmUp(cold, self.source))
        appends = () if is_silent and source == to else (told,)
        return Move(data, effects, appends, (Named(f"{GO}{to}"),))

    def _repeated(self, data: Conversation, source: str, to: str) -> Mapping[str, Repeat]:
        key, digest = f"{source}>{to}", _digest(data.wish.content)
        before = data.repeats.get(key)
        count = before.count + 1 if before is not None and before.digest == digest else 1
        return {**data.repeats, key: Repeat(digest, count)}

    def _flag(self, decision: Decision) -> str:
        if decision.reason == FLAG:
            return f"{FLAG}\n\n"
        if decision.event == REQUEST_REWORK:
            by = "the user" if decision.by == BY_USER else self._name(decision.by)
            return f"REWORK: {by} sends your work back: {decision.reason}\n\n"
        if decision.layer == "rules":
            return f"You are asked by the rule {decision.by}.\n\n"
        return ""

    def _hook_calls(self, source: str, to: str) -> tuple[HookCall, ...]:
        """Hooks of what is left, the inner first, then of what is entered; what is around both stays."""
        out, into = self._path(source), self._path(to)
        common = 0
        while common < min(len(out), len(into)) - 1 and out[common] == into[common]:
            common += 1
        left = (HookCall(self._hooks(name).exit, name, "exit") for name in reversed(out[common:]))
        entered = (HookCall(self._hooks(name).entry, name, "entry") for name in into[common:])
        return tuple(call for call in (*left, *entered) if call.hook)

    def _path(self, place: str) -> tuple[str, ...]:
        return (*self.roster.paths.get(place, ()), place)

    def _hooks(self, name: str) -> Any:
        persona = self.roster.personas.get(name)
        return persona.hooks if persona is not None else self.roster.group_hooks(name)

    def _warmed(self, data: Conversation, source: str) -> Conversation:
        """Count the handoff, drop whoever was prepared for nothing, and prepare those who are likely to be next."""
        speaker = data.speaker
        hit = any(warm.persona == speaker for warm in data.warmth.warm)
        warmth, wasted = replace(data.warmth, keep_turns=self.team.warming.keep_turns).handed(speaker)
        rule, habits = SeedRule(self.tables, data.counts), data.habits
        # The newest turn says what it is about; words of long ago would name everybody in the end.
        words = self.tables.words_in(data.memory.raw[-1].content if data.memory.raw else "")
        learns = self.team.warming.predictor == "learned"
        if source in self.roster.personas and source != speaker:
            handoff = Foreseen(source, frozenset(data.words), speaker, wasted)
            rule = rule.observed(handoff)
            habits = Learned.of(self.tables, habits).observed(handoff).known if learns else habits
        counts = rule.counts
        predictor = Learned.of(self.tables, habits) if learns else rule
        after = warmth.began(predictor.predict(speaker, words))
        return replace(
            data,
            counts=counts,
            habits=habits,
            words=tuple(sorted(words)),
            warmth=after,
            warmed=data.warmed + len(after.warm) - len(warmth.warm),
            used_warm=data.used_warm + hit,
            wasted=data.wasted + wasted,
        )

    def hear_warm(self, data: Conversation, warmed: WarmedUp) -> Conversation:
        """Personas are prepared."""
        return replace(data, warmth=data.warmth.prepared(warmed.ready))

    # what is wanted

    def speak(self, data: Conversation, _: Event) -> Moved:
        """The persona is asked; or the tools are called that it wants first."""
        if data.calls:
            known = self._tools(data)
            calls = tuple(known[call.tool].effect(data.speaker, call) for call in data.calls)
            return Move(replace(data, reason=""), calls)
        if data.rounds:
            data = replace(data, asked=f"{data.speaker}-{data.turn}-{data.rounds}", wish=Wish(), reason="")
            return Move(data, (self._ask(data),))
        speaker, turn = data.speaker, data.turn + 1
        visits = {**data.visits, speaker: data.visits.get(speaker, 0) + 1}
        data = replace(data, turn=turn, turns=data.turns + 1, visits=visits, asked=f"{speaker}-{turn}", reason="")
        data = replace(data, chosen={**data.chosen, speaker: turn})
        asked = self._ask(data)
        return Move(replace(data, wish=Wish(), repair=""), (asked,))

    def _ask(self, data: Conversation) -> AskAgent:
        speaker = data.speaker
        persona = self.roster.personas[speaker]
        tools = tuple(name for name, use in self._tools(data).items() if use.policy_for(speaker) != "deny")
        newest = 0 if FLAG in data.flag else max(6, self.team.memory.compression_threshold)
        return AskAgent(
            speaker,
            "speak",
            self._arguments(data),
            "Any",
            id=data.asked,
            system=f"persona:{self.source}:{speaker}",
            model=persona.model,
            level=persona.level,
            tools=tools,
            thread=tools_thread(data) if tools else "",
            windows={"talk": Window(THREAD, newest)},
        )

    def _arguments(self, data: Conversation) -> dict[str, str]:
        speaker = data.speaker
        author = data.stack[-1] if data.stack else ""
        work = data.chain.work_of(author) if author != speaker else None
        facts = "\n".join(f"- {name}: {fact.value!r} ({fact.source})" for name, fact in sorted(data.facts.items()))
        task = data.line.steps[data.line.place].task if data.mode == "simple" and data.line is not None else ""
        return {
            "flag": data.flag,
            "task": f"Your task: {task}\n\n" if task else "",
            "brief": f"The brief: {json.dumps(encode(data.brief), ensure_ascii=False)}\n\n" if data.brief else "",
            "work": f"The work before you, by {self._name(author)}:\n{work.text}\n\n" if work else "",
            "facts": f"What is known:\n{facts}\n\n" if facts else "",
            "recalled": self._recalled(data),
            "repair": f"Your last reply cannot be used: {data.repair}\n\n" if data.repair else "",
        }

    def _recalled(self, data: Conversation) -> str:
        memory = data.memory
        older = [
            Item(text, "general") for summary in memory.summaries for text in (*summary.discussions, *summary.pending)
        ]
        recall = Recall([*older, *memory.key])
        query = memory.raw[-1].content if memory.raw else ""
        text = prompt_text(recall, query, budget=self.team.memory.prompt_characters) if older or memory.key else ""
        return f"{text}\n\n" if text else ""

    def ask_user(self, data: Conversation, _: Event) -> Moved:
        """The user has the word."""
        return Move(data, (AskPerson(data.reason or "What shall the team do?", {"type": "string"}),))

    def ask_what_waits(self, data: Conversation, _: Event) -> Moved:
        """Something waits for the user, who is shown all of it and its hash: yes, or what has to change."""
        schema = {"anyOf": [{"type": "boolean"}, {"type": "string"}]}
        waiting, digest = self._waiting(data)
        shown = [data.reason or f"the work of {self._name(data.speaker)} waits for your approval"]
        # what somebody said is indented, so that no line of it looks like one of ours
        shown += [indent(waiting, "  "), f"hash of this: {digest}"] if waiting else []
        if data.held is not None and data.held.to != data.speaker:
            shown.append(f"next: {self._name(data.held.to)}")
        return Move(data, (AskPerson("\n".join((*shown, "Shall it go on?")), schema),))

    def _waiting(self, data: Conversation) -> tuple[str, str]:
        """What waits for approval, whole, and the hash by which the chain of approvals knows it."""
        held, line = data.held, data.line if data.mode == "simple" else None
        if held is not None and held.event == TOOLS:
            calls = [(call.tool, json.dumps(encode(call.arguments), ensure_ascii=False)) for call in data.calls]
            text = "\n".join(f"{tool} {arguments}" for tool, arguments in calls)
            return text, digest_of(text)
        if data.proposed:
            text = f"{data.proposed} with {json.dumps(encode(data.proposed_input), ensure_ascii=False)}"
            return text, digest_of(text)
        work = data.chain.work_of(data.speaker)
        text = data.wish.content if line is None else line.results.get(line.phase, "")
        if not text and work is not None:  # the reply was approved before; what it led to is not
            text = work.text
        return text, work.digest if work is not None and work.text == text else digest_of(text)

    # what is known

    def _remember(self, data: Conversation, who: str, text: str, kind: str) -> Conversation:
        kept = self.team.memory
        memory = replace(
            data.memory, compression_threshold=kept.compression_threshold, max_embeddings=kept.max_embeddings
        )
        memory = memory.remember(Item(text, kind, who, data.turn, data.now))
        if not data.summarise and (items := memory.due()):
            memory = memory.summarised(extract(items))
        return replace(data, memory=memory)

    def _sum_up(self, moved: Moved) -> Moved:
        """The same, and what is due is summed up by a model, where one does that and is not at it already."""
        data = moved.data
        items = data.memory.due() if data.summarise and not data.summing else ()
        if not items:
            return moved
        told = "\n".join(f"{item.who} ({item.kind}): {item.content}" for item in items)
        asked = Summarise(SUMMARISER, "summarise", {"items": told}, "Any", id=f"{SUMMARISER}-{data.turn}")
        return replace(moved, data=replace(data, summing=len(items)), effects=(*moved.effects, asked))

    def hear_summary(self, data: Conversation, event: Replied | GaveUp) -> Moved:
        """A stretch was summed up; what a model left out, or said since, is summed up without one."""
        items, number = data.memory.due(), data.summing
        summary = extract(items)
        given = summary_in(event) if isinstance(event, Replied) else None
        if given is not None:
            since = extract(items[number:]) if items[number:] else Summary()
            summary = replace(
                given, discussions=given.discussions + since.discussions, pending=given.pending + since.pending
            )
        memory = data.memory.summarised(summary) if items else data.memory
        data = replace(data, memory=memory, summing=0)
        if isinstance(event, Replied):
            return Move(data)
        return Move(
            data, appends=(_line(SYSTEM, f"what was said is summed up without a model: {event.reason}", data.turn),)
        )

    def _context(self, data: Conversation) -> str:
        memory = data.memory
        older = (text for summary in memory.summaries for text in (*summary.decisions, *summary.discussions))
        return "\n".join((*older, *(item.content for item in (*memory.key, *memory.raw))))

    def _name(self, name: str) -> str:
        persona = self.roster.personas.get(name)
        return persona.name if persona is not None else name


def held_work(data: Conversation) -> str:
    """What of a speaker waits for approval."""
    is_call = data.held is not None and data.held.event == TOOLS
    return "call" if is_call else "reply" if data.held_reply else "transition"


def tools_thread(data: Conversation) -> str:
    """The thread of what tools said in this turn."""
    return f"tools-{data.turn}"


def _answer_of(call: ToolCall, **what: Any) -> dict[str, Any]:
    return {"role": "tool", "id": call.id, "tool": call.tool, **what}


class _Extras:
    """What a reply may say besides its directive."""

    def __init__(self) -> None:
        self.proposals: tuple[Proposal, ...] = ()
        self.brief: Brief | None = None
        self.machine = ""
        self.input: Any = None


def _extras(reply: Mapping[str, Any], allowed: Sequence[str], found: Directive) -> _Extras | Unusable:
    """Competing proposals, a brief and a proposed workflow; what of it cannot be meant makes the reply unusable."""
    extras = _Extras()
    try:
        if reply.get("brief") is not None:
            extras.brief = decode(Brief, reply["brief"], "brief")
        if reply.get("workflow") is not None:
            wanted = decode(dict[str, Any], reply["workflow"], "workflow")
            extras.machine, extras.input = decode(str, wanted.get("name"), "workflow.name"), wanted.get("input")
        if reply.get("proposals") is not None:
            given = decode(list[dict[str, Any]], reply["proposals"], "proposals")
            extras.proposals = tuple(
                decode(Proposal, {"confidence": 1, "order": 0, **proposal}, f"proposals[{number}]")
                for number, proposal in enumerate(given)
            )
            if extras.proposals:
                arbitrate([replace(proposal, order=0) for proposal in extras.proposals])
    except MoothallError as error:
        return Unusable("malformed", f"{error}.")
    if extras.proposals and found.event != CONTINUE:
        return Unusable("several", "The reply hands on and has `proposals` too; give one of both.")
    if strangers := [proposal.agent for proposal in extras.proposals if proposal.agent not in allowed]:
        return Unusable("unknown_agent", f"`proposals` names {strangers[0][:60]!r}, who cannot be reached from here.")
    return extras


def _line(by: str, text: str, turn: int) -> Append:
    return Append(THREAD, {"role": "user" if by == BY_USER else "assistant", "by": by, "text": text, "number": turn})


def _transition(source: str, decision: Decision, data: Conversation) -> Append:
    told = {
        "from": source,
        "to": decision.to,
        "by": decision.by,
        "layer": decision.layer,
        "event": decision.event,
        "reason": decision.reason,
        "number": data.turn,
        "losers": [list(pair) for pair in decision.losers],
        "scores": dict(decision.scores),
    }
    return Append(TRANSITIONS, told)


def _wait(decision: Decision) -> Decision:
    event = TOOLS if decision.event == TOOLS else "AWAIT"
    return replace(decision, to=AWAIT_APPROVAL, layer=SYSTEM, event=event, losers=(), scores={})


def _fresh(data: Conversation) -> Conversation:
    """The user has spoken: what counts since then begins anew."""
    return replace(data, turns=0, fired=(), repeats={}, repairs=0, repair="", reason="", wish=Wish())


def _at(data: Conversation, command: Command) -> Conversation:
    return replace(data, now=command.at or data.now)


def _values(facts: Mapping[str, Fact]) -> dict[str, Any]:
    return {name: fact.value for name, fact in facts.items()}


def _is_doubtful(data: Conversation) -> bool:
    return data.wish.confidence is not None and data.wish.confidence < DOUBTFUL


def _digest(text: str) -> str:
    return hashlib.sha256(" ".join(text.split()).casefold().encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _draw(data: Conversation) -> float:
    """A number in [0, 1) that depends on the run and the turn alone, so that a replay draws the same."""
    return int(hashlib.sha256(f"{data.seed}/{data.turn}".encode()).hexdigest()[:12], 16) / 16**12


def _reason(settled: Arbitration, wish: Wish) -> str:
    return "" if len(wish.proposals) == 1 else settled.reason


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(encode(value), ensure_ascii=False)
