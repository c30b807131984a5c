"""Mistakes that one could make in the interpreter and in the compiled chart, each in one line."""

from __future__ import annotations

from collections.abc import Iterator

from tests.mutants.mutate import Mutant

# What it breaks, the fragment as it is, the fragment with the mistake.
Rows = tuple[tuple[str, str, str], ...]

INTERPRETER: Rows = (
    # the calls
    (
        "transition: a run that has ended moves on",
        "        return Step(snapshot, event, (), snapshot)\n    turn",
        "        pass\n    turn",
    ),
    (
        "start: eventless rows after the start",
        "machine.chart.beginning)\n        turn.settle()",
        "machine.chart.beginning)",
    ),
    ("transition: within is forgotten", "turn.offer(event, within)", "turn.offer(event)"),
    (
        "transition: raised events wait",
        "        if turn.queue or machine.restless:\n",
        "        if machine.restless:\n",
    ),
    ("transition: eventless rows wait", "        if turn.queue or machine.restless:\n", "        if turn.queue:\n"),
    ("transition: the step does not say where the run stood", "return turn.step(snapshot)", "return turn.step(None)"),
    (
        "accepts: a run that has ended accepts",
        'if snapshot.status != "live" or name in machine.inner:',
        "if name in machine.inner:",
    ),
    (
        "accepts: what only the machine raises is taken from outside",
        'if snapshot.status != "live" or name in machine.inner:',
        'if snapshot.status != "live":',
    ),
    ("accepts: bounds are not looked at", "any(_bounded(row, snapshot) for region in", "any(True for region in"),
    (
        "possible: a run that has ended has possible events",
        '    if snapshot.status != "live":\n        return ()\n',
        "",
    ),
    (
        "possible: the states around are forgotten",
        "(chart.places[index], *chart.ancestors(index)):\n            for row in place.rows:\n                if",
        "(chart.places[index],):\n            for row in place.rows:\n                if",
    ),
    (
        "possible: spent rows are possible",
        "row.descriptors is not None and _bounded(row, snapshot)",
        "row.descriptors is not None",
    ),
    ("possible: a wildcard has no name", 'dict.fromkeys(descriptor or "*" for', "dict.fromkeys(descriptor for"),
    (
        "bounded: one time too often",
        "snapshot.counts.get(row.id, 0) < row.at_most",
        "snapshot.counts.get(row.id, 0) <= row.at_most",
    ),
    ("a guard can swallow a question", "class _Unanswered(BaseException):", "class _Unanswered(Exception):"),
    # one event
    (
        "offer: rows see the first event only",
        "        self.event = event\n        choice = self.select(event.name, within)",
        "        choice = self.select(event.name, within)",
    ),
    ("offer: within is not passed on", "self.select(event.name, within)", "self.select(event.name, None)"),
    (
        "offer: an event that nobody takes has no consequence",
        "            self.untaken(event)\n\n",
        "            pass\n\n",
    ),
    (
        "offer: a guard that went wrong counts as nothing taken",
        "        elif choice is not None:\n            self.untaken",
        "        else:\n            self.untaken",
    ),
    ("offer: the microstep does not name its event", "        choice.event,\n", '        "",\n'),
    ("settle: one microstep too many", "if len(self.microsteps) > limit:", "if len(self.microsteps) > limit + 1:"),
    ("settle: one microstep too few", "if len(self.microsteps) > limit:", "if len(self.microsteps) >= limit:"),
    (
        "settle: the bound of the machine is not read",
        "limit, begun, joined = self.machine.max_microsteps, 0, set[str]()",
        "limit, begun, joined = 1000, 0, set[str]()",
    ),
    (
        "settle: guards may go wrong more often",
        "elif len(self.misguided) > limit:",
        "elif len(self.misguided) > 10 * limit:",
    ),
    (
        "settle: eventless rows are not tried",
        "and (choice := self.select(None, None)):",
        'and (choice := self.select("", "")):',
    ),
    ("settle: raised events come last first", "self.offer(self.queue.popleft())", "self.offer(self.queue.pop())"),
    (
        "settle: raised events before eventless rows",
        "elif self.machine.chart.eventless and (choice",
        "elif self.machine.chart.eventless and not self.queue and (choice",
    ),
    ("settle: a run that has ended goes on", 'while self.status == "live":', "while True:"),
    ("settle: late moves are done again", "self.begin(self.microsteps[begun:])", "self.begin(self.microsteps)"),
    (
        "settle: late moves before raised events",
        "            elif self.queue:\n                self.offer",
        "            elif self.queue and not (self.machine.chart.late and begun < len(self.microsteps)):\n"
        "                self.offer",
    ),
    (
        "begin: states that were left begin",
        "            entered.difference_update(chart.by_name[name] for name in microstep.exited)\n",
        "",
    ),
    (
        "begin: inner states begin first",
        "for index in sorted(entered)]:\n            late",
        "for index in sorted(entered, reverse=True)]:\n            late",
    ),
    (
        "begin: effects belong to nobody",
        "self.follow((action, place.name, _seen",
        "self.follow((action, None, _seen",
    ),
    (
        "enter: late moves are done at once",
        "for action in place.enter if not action.late]",
        "for action in place.enter]",
    ),
    (
        "untaken: an error is ignored by a strict machine",
        '== "strict":\n            self.end("failed"',
        '== "scxml":\n            self.end("failed"',
    ),
    (
        "untaken: an error fails any machine",
        'if matches("error", name) and self.machine.errors == "strict":',
        'if matches("error", name):',
    ),
    ("untaken: only error.execution fails", 'if matches("error", name) and', 'if matches("error.execution", name) and'),
    ("untaken: a limit fails the run", 'self.end("limited", _reason(event))', 'self.end("failed", _reason(event))'),
    ("untaken: a limit is ignored", "elif matches(Exhausted.name, name):", "elif Exhausted.name == name + name:"),
    (
        "untaken: a limit of a special kind is ignored",
        "elif matches(Exhausted.name, name):",
        "elif Exhausted.name == name:",
    ),
    (
        "untaken: cancelling leaves nothing",
        '            self.leave_all()\n            self.end("cancelled"',
        '            self.end("cancelled"',
    ),
    (
        "untaken: cancelling is ignored",
        "elif matches(Cancelled.name, name):",
        "elif matches(Cancelled.name, name + name):",
    ),
    (
        "untaken: cancelling ends the run as done",
        'self.end("cancelled", _reason(event))',
        'self.end("done", _reason(event))',
    ),
    (
        "end: a failed run still wants its effects",
        '        if status != "done":\n            self.effects',
        '        if status == "cancelled":\n            self.effects',
    ),
    (
        "end: a run that is done wants nothing",
        '        if status != "done":\n            self.effects',
        "        if status:\n            self.effects",
    ),
    (
        "end: a cancelled run wants nothing",
        'if wanted.owner is None and status == "cancelled"]',
        'if wanted.owner is None and status == "done"]',
    ),
    (
        "end: unowned effects of a failed run are wanted",
        'if wanted.owner is None and status == "cancelled"]',
        "if wanted.owner is None]",
    ),
    (
        "end: owned effects of a cancelled run are wanted",
        'if wanted.owner is None and status == "cancelled"]',
        'if status == "cancelled"]',
    ),
    # selection
    (
        "select: the last row of a region wins",
        "            if held:\n                return choice\n",
        "            if held:\n                return region[-1][1]\n",
    ),
    (
        "select: a wrong guard in a region stops the others nothing",
        "            if choice is None:\n                return None\n            if choice:",
        "            if choice:",
    ),
    (
        "select: a row is taken once per region",
        "dict.fromkeys(choice.rows[0] for choice in chosen)",
        "[choice.rows[0] for choice in chosen]",
    ),
    (
        "select: a wrong guard stops nothing",
        "            if held is None:\n                return None\n        return False",
        "            if held is None:\n                continue\n        return False",
    ),
    ("select: conflicts stay", "rows = self.unconflicted(dict", "rows = tuple(dict"),
    (
        "select: the last chosen row wins",
        "            return self.together(chosen)\n",
        "            return self.together(chosen[-1:])\n",
    ),
    (
        "holds: at_most is one too many",
        "self.counts.get(row.id, 0) >= row.at_most",
        "self.counts.get(row.id, 0) > row.at_most",
    ),
    (
        "holds: at_most is one too few",
        "self.counts.get(row.id, 0) >= row.at_most",
        "self.counts.get(row.id, 0) + 1 >= row.at_most",
    ),
    (
        "holds: a spent row counts as wrong",
        ">= row.at_most:\n            return False",
        ">= row.at_most:\n            return None",
    ),
    ("holds: what a guard gives is not checked", "if held is True or held is False:", "if held is not None:"),
    (
        "holds: the guard sees another event",
        "held = guard(self.data, self.event)",
        "held = guard(self.data, self.first)",
    ),
    ("misguarded: nobody hears of it", "        self.put(error)\n", ""),
    ("misguarded: a wrong guard is a no", 'return None if self.machine.errors == "strict" else False', "return False"),
    (
        "misguarded: a wrong guard stops a lenient machine",
        'return None if self.machine.errors == "strict" else False',
        "return None",
    ),
    ("misguarded: it does not say which guard", ", guard {label(row.on.when)}", ""),
    (
        "unconflicted: the later row wins",
        "if all(other.source < row.source < places[other.source].end for other in rivals):",
        "if True:",
    ),
    (
        "unconflicted: the earlier row wins, also the outer one",
        "if all(other.source < row.source < places[other.source].end for other in rivals):",
        "if not rivals:",
    ),
    (
        "unconflicted: one rival around is enough",
        "if all(other.source < row.source",
        "if not rivals or any(other.source < row.source",
    ),
    (
        "unconflicted: a beaten rival stays",
        "kept = [other for other in kept if other not in rivals] + [row]",
        "kept = [*kept, row]",
    ),
    (
        "unconflicted: the domain via history is not worked out",
        "{row: _domain(chart, row, self.history) for row in rows}",
        "{row: row.domain for row in rows}",
    ),
    (
        "conflict: rows conflict only in the same domain",
        "    return one <= other < places[one].end or other <= one < places[other].end\n",
        "    return one == other\n",
    ),
    (
        "conflict: a domain around another does not conflict",
        "    return one <= other < places[one].end or other <= one < places[other].end\n",
        "    return one <= other < places[one].end\n",
    ),
    (
        "conflict: a domain inside another does not conflict",
        "    return one <= other < places[one].end or other <= one < places[other].end\n",
        "    return other <= one < places[other].end\n",
    ),
    (
        "conflict: rows that leave nothing conflict",
        "    if one is None or other is None:\n        return False",
        "    if one is None or other is None:\n        return True",
    ),
    # taking rows
    ("take: the memo ignores the event", "key = (self.active, event, rows)", "key = (self.active, rows)"),
    ("take: the memo ignores the configuration", "key = (self.active, event, rows)", "key = (event, rows)"),
    (
        "take: a plan is kept though history was consulted",
        "        if not historic:\n            choice.plan",
        "        if True:\n            choice.plan",
    ),
    (
        "take: visits are not counted",
        "if plan.visited and self.overvisited(plan):\n            return",
        "if plan.visited and self.overvisited(plan) and False:\n            return",
    ),
    (
        "take: rows are not counted",
        "self.counts[row.id] = self.counts.get(row.id, 0) + 1",
        "self.counts[row.id] = self.counts.get(row.id, 0)",
    ),
    (
        "take: the snapshot before is changed",
        "        if plan.counted:\n            self.counts = dict(self.counts)",
        "        if plan.counted:\n            self.counts = self.counts  # type: ignore",
    ),
    (
        "begin: the start is no visit",
        "if plan.is_bounded and self.overspent(plan):",
        "if choice.rows and plan.is_bounded and self.overspent(plan):",
    ),
    ("overvisited: one visit too many", "counts[place.name] > limit:", "counts[place.name] > limit + 1:"),
    ("overvisited: one visit too few", "counts[place.name] > limit:", "counts[place.name] >= limit:"),
    ("overvisited: visits are not kept", "        self.counts = counts\n        return False", "        return False"),
    (
        "overvisited: the state is entered all the same",
        "                    self.offer(exhausted)\n                return True",
        "                    self.offer(exhausted)\n                return False",
    ),
    ("overvisited: nobody hears of it", "                    self.offer(exhausted)\n", "                    pass\n"),
    (
        "overvisited: the way out may lead in again",
        "if self.event.name == exhausted.name:",
        "if len(self.microsteps) > 9:",
    ),
    (
        "follow: history is forgotten",
        "self.history = {**self.history, **dict(plan.records)}",
        "self.history = dict(self.history)",
    ),
    (
        "follow: other memories are forgotten",
        "self.history = {**self.history, **dict(plan.records)}",
        "self.history = dict(plan.records)",
    ),
    ("follow: the run stays where it was", "        self.active = plan.active\n", ""),
    (
        "follow: microsteps are not told",
        "        self.microsteps += (plan.microstep,)\n",
        "        self.microsteps = (plan.microstep,)\n",
    ),
    (
        "follow: effects of states that were left are wanted",
        "if wanted.owner not in left]",
        "if wanted.owner not in ()]",
    ),
    ("follow: leaving any state drops all effects", "if wanted.owner not in left]", "if wanted.owner is None]"),
    (
        "follow: unowned effects are dropped too",
        "if wanted.owner not in left]",
        "if wanted.owner is not None and wanted.owner not in left]",
    ),
    (
        "follow: the end leaves nothing",
        "            self.leave_all()\n            self.finish_queue()",
        "            self.finish_queue()",
    ),
    ("follow: errors at the end are forgotten", "            self.finish_queue()\n", ""),
    (
        "follow: errors are looked for before the exits",
        "            self.leave_all()\n            self.finish_queue()",
        "            self.finish_queue()\n            self.leave_all()",
    ),
    (
        "follow: an error at the end is overwritten",
        '            if self.status == "live":\n                self.end("done", "")',
        '            self.end("done", "")',
    ),
    (
        "follow: the run never ends",
        "        if plan.ends:\n",
        "        if not plan.microstep:\n",
    ),
    ("finish: the result is not the outcome", "            self.output = value\n", "            self.output = None\n"),
    (
        "finish: an inner result is the outcome",
        "        if not done:\n            self.output",
        "        if value is not None:\n            self.output",
    ),
    (
        "finish: the result travels with every done event",
        "Named(name, None if position else value)",
        "Named(name, value)",
    ),
    ("finish: the result does not travel", "Named(name, None if position else value)", "Named(name)"),
    ("finish: only the first done event is raised", "enumerate(done):", "enumerate(done[:1]):"),
    ("plain: the result is not stored as JSON", "            return encode(given)\n", "            return given\n"),
    (
        "plain: a result that cannot be stored is nobody's fault",
        "            self.misbehaved(result.where, str(error))\n            return None\n\n    def finish_queue",
        "            return None\n\n    def finish_queue",
    ),
    ("leave_all: outermost first", "sorted(around, reverse=True)))", "sorted(around)))"),
    ("exits: what was left is still seen", "        around.discard(index)\n\n\ndef _owner", "\n\ndef _owner"),
    # moves
    (
        "act: writes are not enforced",
        "if action.writes is not None and self.overwrites(",
        "if action.writes is None and self.overwrites(",
    ),
    (
        "act: new data are dropped",
        "        if type(given) is self.machine.data:\n            self.renew(given)\n",
        "        if type(given) is self.machine.data:\n            pass\n",
    ),
    (
        "act: data of any type are taken",
        "elif given is None or self.machine.data not in (None, dict):",
        "elif given is None:",
    ),
    (
        "act: nothing counts as data",
        "elif given is None or self.machine.data not in (None, dict):",
        "elif self.machine.data not in (None, dict):",
    ),
    ("act: effects belong to nobody", "make_wanted(given, owner if given.owned else None)", "make_wanted(given, None)"),
    (
        "act: an effect that is not owned has an owner",
        "make_wanted(given, owner if given.owned else None)",
        "make_wanted(given, owner)",
    ),
    (
        "act: an effect needs no declaration",
        "if action.allowed.get(given.kind, 0) >= 1:",
        "if action.allowed.get(given.kind, 0) >= 0:",
    ),
    ("act: effects of a move belong to nobody", "self.apply(given, owner, action)", "self.apply(given, None, action)"),
    (
        "attempt: the move sees another event",
        "given = call(self.data, self.event) if",
        "given = call(self.data, self.first) if",
    ),
    (
        "attempt: a move that raises is nobody's fault",
        "                self.misbehaved(action.where, words_of(error), place_of(error, HOUSE))\n",
        "",
    ),
    (
        "attempt: a script sees the states of the end",
        "return action.call(self.data, self.event, self.moment(active))",
        "return action.call(self.data, self.event, self.moment(None))",
    ),
    ("overwrites: what was written is kept", "        return bool(changed)", "        return False"),
    (
        "overwrites: nobody hears of it",
        "        if changed:\n            allowed",
        "        if not changed and before is after:\n            allowed",
    ),
    (
        "overwrites: the data of a Move are not looked at",
        "_keys(given.data if isinstance(given, Move) else given)",
        "_keys(self.data if isinstance(given, Move) else given)",
    ),
    ("overwrites: new keys are not noticed", "for key in {**before, **after} if", "for key in before if"),
    ("overwrites: lost keys are not noticed", "for key in {**before, **after} if", "for key in after if"),
    (
        "overwrites: the same value anew counts as written",
        "return one is other or bool(one == other)",
        "return one is other",
    ),
    (
        "overwrites: a move that gives nothing has written",
        "if given is None or isinstance(given, Effect):",
        "if isinstance(given, Effect):",
    ),
    (
        "apply: the data of a Move may be of any type",
        "if kind not in (None, dict) and type(move.data) is not kind:",
        "if False:",
    ),
    (
        "apply: data are kept though the effects were refused",
        "        if move.effects and not self.want(move.effects, owner, action):\n            return\n",
        "        if move.effects:\n            self.want(move.effects, owner, action)\n",
    ),
    ("apply: raised events are dropped", "            self.put(*move.raises)\n", "            pass\n"),
    ("apply: raised events come in the opposite order", "self.put(*move.raises)", "self.put(*reversed(move.raises))"),
    (
        "apply: an error of a move is dropped",
        "        if move.error:\n",
        "        if not move.error and move is None:\n",
    ),
    (
        "want: emits is not enforced",
        "if kinds.count(kind) > action.allowed.get(kind, 0):",
        "if kinds.count(kind) > 99:",
    ),
    (
        "want: one effect more than declared",
        "if kinds.count(kind) > action.allowed.get(kind, 0):",
        "if kinds.count(kind) > action.allowed.get(kind, 0) + 1:",
    ),
    (
        "want: one effect less than declared",
        "if kinds.count(kind) > action.allowed.get(kind, 0):",
        "if kinds.count(kind) >= action.allowed.get(kind, 0):",
    ),
    (
        "want: only the first kind is looked at",
        "kinds = [effect.kind for effect in effects]",
        "kinds = [effect.kind for effect in effects[:1]]",
    ),
    (
        "want: effects that are not owned have an owner",
        "make_wanted(effect, owner if effect.owned else None)",
        "make_wanted(effect, owner)",
    ),
    ("append: the digest forgets what was before", "(tail.head + text).encode", "(text).encode"),
    ("append: the digest forgets what is new", "(tail.head + text).encode", "(tail.head or text).encode"),
    ("append: threads are not counted", "Tail(tail.count + 1, digest)", "Tail(1, digest)"),
    ("append: other threads are forgotten", "threads = dict(self.threads)", "threads = dict[str, Tail]()"),
    ("append: the step does not tell", "        self.appends += tuple(appends)\n", ""),
    ("append: the order of keys matters", "sort_keys=True, ", ""),
    # scripts
    (
        "moment: a guard sees the states at rest only",
        "active = _names(chart, chart.around(self.active))",
        "active = frozenset(self.active)",
    ),
    ("evaluate: the first answer answers all", "return self.answers[self.asked - 1]", "return self.answers[0]"),
    (
        "evaluate: answers are never used up",
        "            self.asked += 1\n            return self.answers[self.asked - 1]",
        "            return self.answers[self.asked]",
    ),
    ("step: all answers are kept", "tuple(self.answers[: self.asked])", "tuple(self.answers)"),
    (
        "step: the event of the step is the last",
        "            self.first,\n            self.microsteps",
        "            self.event,\n            self.microsteps",
    ),
    ("reason: an error does not name its place", 'if place else f"{where}: {reason}"', "if place else reason"),
    (
        "explained: the rows that repeat are not found",
        "for length in range(1, len(tail) // 2 + 1):",
        "for length in range(1, 2):",
    ),
    # candidates and plans
    ("remember: without end", "    if len(memo) >= MEMO:\n        memo.clear()\n", ""),
    (
        "candidates: the memo ignores within",
        "regions = chart.candidates.get(key) or",
        "regions = chart.candidates.get((self.active, name, None)) or",
    ),
    (
        "candidates: the memo ignores the event",
        "_remember(chart.candidates, key, found)",
        '_remember(chart.candidates, (active, "go", within), found)',
    ),
    (
        "candidates: the last region first",
        "for state in _inside(chart, active, within)]",
        "for state in reversed(_inside(chart, active, within))]",
    ),
    (
        "inside: within means the state itself alone",
        "if place.index <= chart.by_name[state] < place.end)",
        "if place.index == chart.by_name[state])",
    ),
    (
        "inside: within means inside only",
        "if place.index <= chart.by_name[state] < place.end)",
        "if place.index < chart.by_name[state] < place.end)",
    ),
    (
        "rows: outer before inner",
        "        for place in (chart.places[index], *chart.ancestors(index))\n        for row",
        "        for place in reversed((chart.places[index], *chart.ancestors(index)))\n        for row",
    ),
    (
        "rows: the last row first",
        "        for row in place.rows\n        if (row",
        "        for row in reversed(place.rows)\n        if (row",
    ),
    (
        "rows: the states around are forgotten",
        "        for place in (chart.places[index], *chart.ancestors(index))\n        for row",
        "        for place in (chart.places[index],)\n        for row",
    ),
    (
        "rows: eventless rows take events",
        "return row.descriptors is not None and any(",
        "return row.descriptors is None or any(",
    ),
    (
        "rows: only the first descriptor counts",
        "any(matches(descriptor, name) for descriptor in row.descriptors)",
        "any(matches(descriptor, name) for descriptor in row.descriptors[:1])",
    ),
    ("names: the machine itself is a state", " for index in indexes if index != ROOT)", " for index in indexes)"),
    (
        "effective: the default though there is memory",
        "elif place.name in history:\n            found += [",
        "elif place.name == history:\n            found += [",
    ),
    (
        "domain: history is not looked at",
        "    if not row.via_history:\n        return row.domain\n",
        "    if row:\n        return row.domain\n",
    ),
    # entering
    (
        "down: a compound state begins nowhere",
        "            self.all_down(place.initial, index)\n",
        "            pass\n",
    ),
    (
        "innermost: a state begins by itself although a target is inside",
        "    return [one for one in targets if not any(_below(chart, other, one) for other in targets)]\n",
        "    return list(targets)\n",
    ),
    (
        "innermost: a target inside another is forgotten",
        "if not any(_below(chart, other, one) for other in targets)]",
        "if not any(_below(chart, one, other) for other in targets)]",
    ),
    ("down: what a start does is forgotten", "            self.defaults.add(index)\n", ""),
    (
        "down: a parallel state begins nowhere",
        "        elif place.kind == PARALLEL:\n            self.regions(place)\n\n    def recall",
        "\n    def recall",
    ),
    (
        "recall: the default's content always",
        "        if stored is None:\n            self.restored",
        "        if True:\n            self.restored",
    ),
    (
        "recall: the default's content never",
        "        if stored is None:\n            self.restored",
        "        if False:\n            self.restored",
    ),
    (
        "recall: the default always",
        "if stored is not None else place.default, place.parent",
        "if stored is None else place.default, place.parent",
    ),
    ("recall: history is not said to be consulted", "        self.historic = True\n", ""),
    (
        "all_down: the states between are not entered",
        "        for target in targets:\n            self.up(target, above)\n",
        "",
    ),
    (
        "up: only the states between and not their regions",
        "            if place.kind == PARALLEL:\n                self.regions(place)\n\n    def regions",
        "\n    def regions",
    ),
    (
        "up: the states between are not entered",
        "            self.states.add(place.index)\n            if place.kind == PARALLEL:",
        "            if place.kind == PARALLEL:",
    ),
    (
        "regions: those aimed at begin at their start too",
        "if not any(child < state < end for state in self.states):",
        "if True:",
    ),
    ("plan: history as it was before leaving", "left = {**history, **dict(plan.records)}", "left = history"),
    ("plan: exit order", "        reverse=True,\n    )\n    _record", "    )\n    _record"),
    (
        "plan: nothing is left",
        "if domain is not None and _below(chart, index, domain)\n",
        "if domain is None and _below(chart, index, index)\n",
    ),
    ("plan: what was left is still active", "_exits(chart, around, exited)", "_exits(chart, set(around), exited)"),
    ("plan: history is not recorded", "    _record(chart, plan, exited, configuration)\n", ""),
    (
        "plan: history is recorded after the exits",
        "    _record(chart, plan, exited, configuration)\n    around = set(configuration)\n",
        "    around = set(configuration)\n    _record(chart, plan, exited, around - set(exited))\n",
    ),
    (
        "plan: moves of rows in the opposite order",
        "    for row in rows:\n        owner",
        "    for row in reversed(rows):\n        owner",
    ),
    (
        "plan: effects of exits belong to the state that is left",
        "yield action, None, _seen",
        "yield action, chart.places[index].name, _seen",
    ),
    (
        "plan: what was never left is entered again",
        "    entering.states -= around  #",
        "    entering.states -= set()  #",
    ),
    (
        "plan: rows with a bound are not counted",
        "plan.counted = tuple(row for row in rows if row.at_most is not None)",
        "plan.counted = ()",
    ),
    (
        "plan: rows without a bound are counted",
        "plan.counted = tuple(row for row in rows if row.at_most is not None)",
        "plan.counted = rows",
    ),
    (
        "owner: the state that is left",
        "chart.places[row.targets[0] if row.targets else row.source]",
        "chart.places[row.source]",
    ),
    (
        "owner: the history state itself",
        "    if place.kind == HISTORY:\n        place = chart.places[place.parent]\n    return None",
        "    return None",
    ),
    ("owner: the machine itself", "return None if place.index == ROOT else place.name", "return place.name"),
    (
        "below: the domain itself is left",
        "return domain < index < chart.places[domain].end",
        "return domain <= index < chart.places[domain].end",
    ),
    ("seen: scripts see nothing", "return _names(chart, around) if action.scripted else None", "return None"),
    ("record: deep history is shallow", 'if getattr(history.node, "deep", False):', "if False:"),
    ("record: shallow history is deep", 'if getattr(history.node, "deep", False):', "if True:"),
    (
        "record: deep history forgets final states",
        "kept = [one for one in inside if chart.places[one].kind in (ATOMIC, FINAL)]",
        "kept = [one for one in inside if chart.places[one].kind == ATOMIC]",
    ),
    ("record: states that were not inside are remembered", "if index < one < place.end)", "if index < one)"),
    (
        "enter: entry order",
        "    for index in sorted(entering.states):\n        place",
        "    for index in sorted(entering.states, reverse=True):\n        place",
    ),
    (
        "enter: what a start does comes before the entry",
        "            actions += place.starting\n",
        "            actions = [*place.starting, *actions]\n",
    ),
    (
        "enter: what a start does is done at any entry",
        "        if index in entering.defaults:\n            actions",
        "        if True:\n            actions",
    ),
    ("enter: a default's content is forgotten", "        actions += entering.restored.get(index, ())\n", ""),
    (
        "enter: effects belong to nobody",
        "plan.operations.append((action, place.name, _seen",
        "plan.operations.append((action, None, _seen",
    ),
    ("enter: visits of states without a bound", 'if getattr(place.node, "max_visits", None) is not None:', "if True:"),
    (
        "enter: final states are not active",
        "for one in sorted(around) if chart.places[one].kind in (ATOMIC, FINAL))",
        "for one in sorted(around) if chart.places[one].kind == ATOMIC)",
    ),
    (
        "done: a final state of the machine tells instead of ending",
        "    if place.parent == ROOT:\n        return ()\n",
        "",
    ),
    (
        "done: a parallel state is done with its first region",
        "if grand.kind == PARALLEL and all(_is_over",
        "if grand.kind == PARALLEL and any(_is_over",
    ),
    (
        "done: a parallel state is never done",
        "if grand.kind == PARALLEL and all(_is_over",
        "if grand.kind == HISTORY and all(_is_over",
    ),
    (
        "done: a compound state around is done too",
        "if grand.kind == PARALLEL and all(_is_over",
        "if grand.index != ROOT and all(_is_over",
    ),
    (
        "over: a region is over before its end",
        "child in around and chart.places[child].kind == FINAL for",
        "chart.places[child].kind == FINAL for",
    ),
    (
        "over: any active state is an end",
        "child in around and chart.places[child].kind == FINAL for",
        "child in around for",
    ),
    (
        "over: a parallel region is never over",
        "    return place.kind == PARALLEL and all(_is_over",
        "    return place.kind == HISTORY and all(_is_over",
    ),
    (
        "over: a parallel region is over with its first",
        "    return place.kind == PARALLEL and all(_is_over",
        "    return place.kind == PARALLEL and any(_is_over",
    ),
    (
        "over: a state without states inside is over",
        "    return place.kind == PARALLEL and all(_is_over",
        "    return all(_is_over",
    ),
    (
        "finished: the microstep tells the exits in the wrong order",
        "tuple(chart.places[index].name for index in exited)",
        "tuple(chart.places[index].name for index in sorted(exited))",
    ),
    ("finished: the microstep tells no rows", "        tuple(row.id for row in choice.rows),\n", "        (),\n"),
    ("finished: visits are no bound", "bool(plan.visited or plan.counted)", "bool(plan.counted)"),
    ("finished: at_most is no bound", "bool(plan.visited or plan.counted)", "bool(plan.visited)"),
)

CHART: Rows = (
    ("bound: what a function writes is not read", 'getattr(action, "writes", None)', 'getattr(action, "write", None)'),
    (
        "row: a text without a word is an event",
        "if row.descriptors == () and isinstance(on.event, Sequence):",
        "if False:",
    ),
    ("descriptors: always among events", "            if None in inner:\n", "            if False:\n"),
    (
        "resolve: a machine without states",
        "if place.kind == COMPOUND or place.index == ROOT:",
        "if place.kind == COMPOUND:",
    ),
    ("initial: a start outside", "if not place.index < index < place.end:\n", "if False:\n"),
    (
        "exclusive: a state and what is inside it",
        "if one <= other < self.places[one].end or other <= one < self.places[other].end:",
        "if one == other:",
    ),
    ("bound: an effect of the table may not be wanted", "        return {action.kind: 1}", "        return {}"),
    (
        "bound: emits of a row does not replace the action's own",
        "emitted(action) if allowed is None else allowed",
        "emitted(action)",
    ),
    (
        "bound: what an action declares itself is not read",
        'getattr(action, "emits", _NOTHING)',
        'getattr(action, "emit", _NOTHING)',
    ),
    (
        "bound: writes of a row are not read",
        "self.writes = written(action) if writes is None else frozenset",
        "self.writes = written(action) if writes is None or True else frozenset",
    ),
    (
        "row: a scripted guard is called without its moment",
        "self.guard_scripted = isinstance(on.when, Scripted)",
        "self.guard_scripted = False",
    ),
    (
        "row: a guard is not asked where nothing is counted",
        "self.is_free = on.when is None and on.at_most is None",
        "self.is_free = on.at_most is None",
    ),
    (
        "row: at_most needs a guard",
        "self.is_free = on.when is None and on.at_most is None",
        "self.is_free = on.when is None",
    ),
    ("row: internal rows leave their state", "self.internal = on.internal", "self.internal = False"),
    ("row: all rows are internal", "self.internal = on.internal", "self.internal = True"),
    (
        "add: a state ends before what is inside",
        "        place.end = len(self.places)\n",
        "        place.end = index + 2\n",
    ),
    (
        "add: histories are regions",
        "siblings = place.histories if isinstance(child, History) else place.children",
        "siblings = place.children",
    ),
    ("resolve: enter is forgotten", 'place.enter = bind(node.enter, f"{name}, enter")', "place.enter = ()"),
    ("resolve: exit is forgotten", 'place.exit = bind(node.exit, f"{name}, exit")', "place.exit = ()"),
    (
        "resolve: starting is forgotten",
        "if isinstance(node, State) and node.starting:",
        "if isinstance(node, Parallel) and node.states == 0:",
    ),
    (
        "resolve: the content of a default is forgotten",
        'place.starting = bind(node.do, f"{name}, default")',
        "place.starting = ()",
    ),
    (
        "resolve: results are forgotten",
        "if isinstance(node, Final) and node.result is not None:",
        "if isinstance(node, Final) and node.result is node:",
    ),
    (
        "initial: the start is not read",
        "start = place.node.start if isinstance(place.node, State) else None",
        "start = None",
    ),
    ("initial: the last state is the start", "return tuple(place.children[:1])", "return tuple(place.children[-1:])"),
    (
        "indexes: only the first target",
        "        return tuple(found)\n\n    def _exclusive",
        "        return tuple(found[:1])\n\n    def _exclusive",
    ),
    ("exclusive: any two targets will do", "return common.kind != PARALLEL", "return False"),
    (
        "rows: ids are numbered by the machine",
        'Row(f"{on.state}/{len(place.rows)}"',
        'Row(f"{on.state}/{len(self.rows)}"',
    ),
    (
        "descriptors: Done means any state",
        'return (f"done.state.{place.name}" if event is Done else event.name,)',
        "return (event.name,)",
    ),
    (
        "descriptors: wildcards are taken by the letter",
        "return tuple(normalised(part) for part in event.split())",
        "return tuple(event.split())",
    ),
    (
        "descriptors: only one event per row",
        "return tuple(normalised(part) for part in event.split())",
        "return (normalised(event),)",
    ),
    (
        "descriptors: a list of events takes the first",
        "return tuple(part for parts in inner for part in parts or ())",
        "return inner[0]",
    ),
    (
        "otherwise: the outcomes of effects are forgotten",
        "                named += [event.name for event in outcomes]\n",
        "                named += []\n",
    ),
    (
        "otherwise: the rows above are forgotten",
        "named = [part for row in place.rows for part in row.descriptors or ()]",
        "named = list[str]()",
    ),
    ("otherwise: takes everything", "        return tuple(dict.fromkeys(named))\n", '        return ("",)\n'),
    (
        "aim: history among the targets is not noticed",
        "row.via_history = HISTORY in [self.places[target].kind for target in row.targets]",
        "row.via_history = False",
    ),
    ("aim: at_most may be anything", "if on.at_most is not None and not _is_count(on.at_most):", "if False:"),
    ("aim: final states have moves", "if place.kind == FINAL or place.kind == HISTORY:", "if place.kind == HISTORY:"),
    ("aim: history states have moves", "if place.kind == FINAL or place.kind == HISTORY:", "if place.kind == FINAL:"),
    (
        "domain: rows of the machine leave as little as possible",
        "        if row.source == ROOT:\n            return ROOT\n",
        "        if row.source == ROOT:\n            return max(0, low - 1)\n",
    ),
    (
        "domain: an internal row may lead outside",
        "source.index < low and high < source.end:\n            return",
        "source.index < high:\n            return",
    ),
    (
        "domain: an internal row to itself leaves nothing",
        "source.index < low and high < source.end:\n            return",
        "source.index <= low and high < source.end:\n            return",
    ),
    (
        "domain: internal rows of parallel states",
        "if row.internal and source.kind == COMPOUND and source",
        "if row.internal and source",
    ),
    (
        "domain: a region is no domain of its own",
        "not (above.kind == COMPOUND and above.index < low and high < above.end)",
        "above.kind == COMPOUND",
    ),
    (
        "domain: a parallel state is a domain",
        "not (above.kind == COMPOUND and above.index < low and high < above.end)",
        "not (above.index < low and high < above.end)",
    ),
    (
        "domain: the target itself may be the domain",
        "not (above.kind == COMPOUND and above.index < low and high < above.end)",
        "not (above.kind == COMPOUND and above.index <= low and high < above.end)",
    ),
    ("domain: all is left", "not (above.kind == COMPOUND and above.index < low and high < above.end)", "True"),
    (
        "ancestors: outermost first",
        "            yield self.places[above]\n            above = self.places[above].parent",
        "            yield self.places[above]\n            above = -1",
    ),
    ("kind: a state with states inside is atomic", "return COMPOUND if inner else ATOMIC", "return ATOMIC"),
    ("kind: a parallel state is compound", "        return PARALLEL\n", "        return COMPOUND\n"),
    (
        "default: outside its state",
        "if self.places[index].kind == HISTORY or not parent.index < index < parent.end:",
        "if self.places[index].kind == HISTORY:",
    ),
    (
        "default: another history",
        "if self.places[index].kind == HISTORY or not parent.index < index < parent.end:",
        "if not parent.index < index < parent.end:",
    ),
    ("max_visits may be anything", "if most is not None and not _is_count(most):", "if False:"),
)

EVENTS: Rows = (
    (
        "matches: any prefix",
        'name.startswith(descriptor) and name[len(descriptor)] == "."',
        "name.startswith(descriptor)",
    ),
    ("matches: the whole name only", ' or (name.startswith(descriptor) and name[len(descriptor)] == ".")', ""),
    (
        "matches: a wildcard takes nothing",
        "return not descriptor or name == descriptor or",
        "return name == descriptor or",
    ),
    ("normalised: a star stays", 'return "" if descriptor == "*" else descriptor', "return descriptor"),
    (
        "normalised: a star at the end stays",
        'descriptor.removesuffix(".*").removesuffix(".")',
        'descriptor.removesuffix(".")',
    ),
    (
        "normalised: a dot at the end stays",
        'descriptor.removesuffix(".*").removesuffix(".")',
        'descriptor.removesuffix(".*")',
    ),
)


def _mutants() -> Iterator[Mutant]:
    for file, rows in (("interpreter", INTERPRETER), ("chart", CHART), ("events", EVENTS)):
        for breaks, old, new in rows:
            yield Mutant(breaks, f"kernel/{file}.py", old, new)


MUTANTS = tuple(_mutants())
