"""`scripted:FILE`: replies that were written down before, for demonstrations and tests.

The file is a JSON object: an agent's name, and the list of its replies in the order of its calls. A reply is a
text, or an object with `text`, `value`, `usage`, `calls` (of tools) and `seconds`, the time that it takes. The n-th
call of an agent in a run takes its n-th reply, so a run that is resumed goes on where it was.

A list below `rules`, or a file that is one, has replies by rule: the first that fits what is asked is taken, before any
reply by order. `agent` is who is asked (nobody: anybody), `contains` what the request has to contain, one text or all
of several; `reply` is the text, `value` the value. `fail` is a reason why the call fails instead, for good where
`final` is true. A rule with `times` is good for so many calls of a run; this process counts them, so that a resumed run
begins anew. `delay` is in seconds.

    {"rules": [
        {"agent": "judge", "contains": "round 1", "value": {"agreed": false}},
        {"agent": "judge", "value": {"agreed": true}},
        {"contains": ["Propose", "tides"], "reply": "The Moon pulls."},
        {"agent": "critic", "fail": "overloaded", "times": 1}
    ]}

`scripted:FILE,log=LOG` also notes the key of every call in LOG, so that calls can be counted across a crash.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moothall.agents.ask import ToolCall
from moothall.agents.ports import Reply, Request
from moothall.errors import DefinitionError, EffectFailed, Refused
from moothall.kernel.codec import decode

RULES = "rules"


@dataclass(frozen=True, slots=True)
class Line:
    """One reply of a script."""

    text: str = ""
    value: Any = None
    usage: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A reply for every request that it fits."""

    agent: str = ""
    contains: str | tuple[str, ...] = ()
    reply: str = ""
    value: Any = None
    usage: Mapping[str, float] = field(default_factory=dict)
    calls: tuple[ToolCall, ...] = ()
    fail: str = ""
    final: bool = False
    times: int | None = None
    delay: float = 0

    def fits(self, request: Request, asked: str) -> bool:
        """Whether it is for this request, all of which is this text."""
        parts = (self.contains,) if isinstance(self.contains, str) else self.contains
        return self.agent in ("", request.agent) and all(part in asked for part in parts)


class ScriptedModel:
    """Says what its script says: by rule, else agent by agent in order."""

    def __init__(
        self,
        lines: Mapping[str, Sequence[Line]],
        where: str = "the script",
        log: Path | None = None,
        rules: Sequence[Rule] = (),
    ) -> None:
        self._lines = lines
        self._where = where
        self._log = log
        self._rules = rules
        self._used: Counter[tuple[str, int]] = Counter()

    @classmethod
    def from_file(cls, path: Path, log: Path | None = None) -> ScriptedModel:
        """Read a script; mistakes name the file and the place in it."""
        try:
            plain = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise DefinitionError(f"{path}: the script cannot be read: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise DefinitionError(f"{path}: the script is not JSON: {error}") from error
        try:
            given, plain = _split_script(plain)
            rules = [_rule(rule, f"{RULES}[{at}]") for at, rule in enumerate(given)]
            agents = decode(dict[str, list[Any]], plain, "the script")
            lines = {
                agent: [_line(line, f"{agent}[{at}]") for at, line in enumerate(said)] for agent, said in agents.items()
            }
        except Refused as refusal:
            raise DefinitionError(f"{path}: {refusal}") from refusal
        return cls(lines, str(path), log, rules)

    async def reply(self, request: Request) -> Reply:
        if self._log is not None:
            with self._log.open("a", encoding="utf-8") as log:
                log.write(f"{request.key} {request.agent}\n")
        rule = self._fitting(request) if self._rules else None
        if rule is None:
            line = self._line(request)
            await _pass(line.seconds)
            return Reply(line.text, line.value, line.usage, line.calls)
        await _pass(rule.delay)
        if rule.fail:
            raise EffectFailed(rule.fail, usage=rule.usage, final=rule.final)
        return Reply(rule.reply, rule.value, rule.usage, rule.calls)

    def _fitting(self, request: Request) -> Rule | None:
        """The first rule that fits a request and is still good, which is now used once more."""
        run, asked = request.key.rpartition(".")[0].rpartition(".")[0], _all_of(request)
        for at, rule in enumerate(self._rules):
            if rule.fits(request, asked) and (rule.times is None or self._used[run, at] < rule.times):
                self._used[run, at] += 1
                return rule
        return None

    def _line(self, request: Request) -> Line:
        said, nth = self._lines.get(request.agent, ()), request.nth
        if nth <= len(said):
            return said[nth - 1]
        if self._rules:
            asked = _all_of(request)
            raise DefinitionError(
                f"{self._where} has nothing for call {nth} of {request.agent!r}: none of its {len(self._rules)} rules "
                f"fits, and there are {len(said)} replies in order; it was asked: {asked[:80]!r}"
            )
        raise DefinitionError(
            f"{self._where} has {len(said)} replies for {request.agent!r}; this would be number {nth}"
        )


async def _pass(seconds: float) -> None:
    if seconds:
        await asyncio.sleep(seconds)


def _all_of(request: Request) -> str:
    """All that a request says, as one text."""
    said = (str(message.get("text", "")) or json.dumps(message, ensure_ascii=False) for message in request.messages)
    return "\n\n".join(filter(None, (request.system, request.prompt, *said)))


def _split_script(plain: Any) -> tuple[Sequence[Any], Any]:
    """The rules of a script, and the rest of it. An agent that is called `rules` says texts."""
    if isinstance(plain, list) and plain:
        return plain, {}
    given = plain.get(RULES) if isinstance(plain, dict) else None
    if not isinstance(given, list) or not all(isinstance(rule, dict) for rule in given):
        return (), plain
    return given, {agent: said for agent, said in plain.items() if agent != RULES}


def _rule(plain: Any, where: str) -> Rule:
    rule = decode(Rule, plain, where)
    if not (plain.keys() & {"reply", "value", "calls", "fail"}):
        raise Refused(f"{where}: it says nothing; give it a reply, a value, calls or fail")
    return rule


def _line(plain: Any, where: str) -> Line:
    if isinstance(plain, str):
        return Line(plain)
    if not isinstance(plain, dict):
        raise Refused(f"{where}: expected a text, or an object with text, value, usage and seconds, got {plain!r}")
    return decode(Line, plain, where)
