"""Evaluates the JavaScript of workflow files: conditions, scripts and inputs, over the data of a run.

One call does what a state needs. A `Batch` has choices, tried in order; the first whose condition holds is taken, and
its texts are evaluated one after the other, each with what the scripts before it changed. Every text has a context of
its own, so that nothing but data passes from one to the next. The first failure ends the batch.

Texts see the names of `workflow_surface.js`; the scope may leave out what none of them reads (`reads` in `tokens`).
Time and randomness come in with the batch: the same batch gets the same answers.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, reduce
from types import TracebackType
from typing import Any, Literal

from moothall.errors import Refused
from moothall.kernel.frozen import Frozen
from moothall.kernel.step import Answer, Failed, Value
from moothall.machines.workflow.tokens import expand, scan
from moothall.scripting.children import Child, Limits, Pool, Stopped
from moothall.scripting.glance import answer_at_a_glance, text_at_a_glance
from moothall.scripting.javascript import answer

Kind = Literal["condition", "expression", "input", "output", "script"]
SURFACE, VALUES, SYNTAX = "workflow_surface", "workflow_values", "workflow_syntax"
LONGEST = 100_000
LITERALS: Mapping[str, dict[str, Any]] = {
    "true": {"holds": True, "value": True},
    "false": {"holds": False, "value": False},
}


class Script(Frozen):
    """A text to evaluate. An `input` or `output` that is not an expression is its own value, and an input has one.

    A `script` gives what `apply_change` takes.
    """

    kind: Kind
    text: str


class Choice(Frozen):
    """What to evaluate where a condition holds."""

    condition: str = "true"
    then: tuple[Script, ...] = ()


class Batch(Frozen):
    """Choices to try in order, the data that they see, and the time (in seconds) and seed that the event brought."""

    choices: tuple[Choice, ...]
    scope: Mapping[str, Any]
    now: float
    seed: str = ""


class Chosen(Frozen):
    """Which choice was taken (None: none), the answers to the conditions that were tried, and to its texts."""

    index: int | None
    conditions: tuple[Answer, ...]
    then: tuple[Answer, ...] = ()

    @property
    def failure(self) -> str:
        """What went wrong, if anything did; it is always the last answer."""
        last = [*self.conditions, *self.then][-1:]
        return last[0].reason if last and isinstance(last[0], Failed) else ""


class Scripts:
    """Evaluates batches in a few child processes. Close it in the end."""

    def __init__(self, *, most: int = 2, limits: Limits | None = None) -> None:
        self._pool = Pool((SURFACE, VALUES, SYNTAX), most, limits or Limits())
        self._threads = ThreadPoolExecutor(most, "scripts")

    def __enter__(self) -> Scripts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let what is under way finish, and end the children."""
        self._threads.shutdown()
        self._pool.close()

    async def evaluate(self, batch: Batch) -> Chosen:
        """Evaluate a batch; the event loop goes on meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.evaluate_blocking, batch)

    def evaluate_blocking(self, batch: Batch) -> Chosen:
        """Evaluate a batch and wait for it."""
        with self._pool.borrowed() as child:
            return _Evaluation(child, batch).chosen()

    def syntax(self, text: str, kind: Kind = "expression") -> str | None:
        """What is wrong with a text, None where it can be run. It is not run."""
        return self.syntax_all([Script(kind, text)])[0]

    def syntax_all(self, scripts: Sequence[Script]) -> list[str | None]:
        """What is wrong with each of many texts, with one question to one child. None of them is run."""
        known = [_refusal(script.text) for script in scripts]
        asked = [
            {"text": _expand(script.text), "is_script": script.kind == "script"}
            for script, wrong in zip(scripts, known, strict=True)
            if wrong is None
        ]
        replies = iter(self._faults(asked))
        return [next(replies) if wrong is None else wrong for wrong in known]

    def _faults(self, asked: list[dict[str, Any]]) -> list[str | None]:
        if not asked:
            return []
        with self._pool.borrowed() as child:
            try:
                reply = child.ask({"texts": asked, "files": [SYNTAX]})
            except Stopped as stop:
                reply = {"failed": str(stop)}
        if "failed" not in reply:
            return list(reply["value"])
        if len(asked) == 1:
            return [str(reply["failed"])]
        return [fault for source in asked for fault in self._faults([source])]


class _Evaluation:
    """One batch at work in one child."""

    def __init__(self, child: Child, batch: Batch) -> None:
        self._child = child
        self._batch = batch
        self._is_told = False
        self._changes: list[Any] = []

    def chosen(self) -> Chosen:
        """Try the choices in order."""
        conditions: list[Answer] = []
        for index, choice in enumerate(self._batch.choices):
            reply = self._reply(Script("condition", choice.condition), f"{index}")
            conditions.append(answer(reply))
            if "failed" in reply:
                break
            if reply["holds"]:
                return Chosen(index, tuple(conditions), self._taken(choice, index))
        return Chosen(None, tuple(conditions))

    def _taken(self, choice: Choice, index: int) -> tuple[Answer, ...]:
        answers: list[Answer] = []
        for place, script in enumerate(choice.then):
            got = answer(self._reply(script, f"{index}.{place}"))
            answers.append(got)
            if isinstance(got, Failed):
                break
            if script.kind == "script" and isinstance(got, Value):
                self._changes.append(got.value)
        return tuple(answers)

    def _reply(self, script: Script, place: str) -> dict[str, Any]:
        known = _known_reply(script.kind, script.text) or self._seen_at_a_glance(script)
        if known is not None:
            return known
        data, self._is_told = None if self._is_told else _encode_scope(self._batch.scope), True
        question = {
            "kind": script.kind,
            "text": _expand(script.text),
            "now": round(self._batch.now * 1000),
            "seed": zlib.crc32(f"{self._batch.seed}:{place}".encode()),
            "changes": self._changes,
            "files": [SURFACE] if script.kind == "condition" else [SURFACE, VALUES],
        }
        try:
            reply = self._child.ask(question, data)
            return {"value": script.text} if "is_text" in reply else reply
        except Stopped as stop:
            return {"failed": str(stop)}

    def _seen_at_a_glance(self, script: Script) -> dict[str, Any] | None:
        """The reply to a text that the engine need not be asked about, with what the scripts before it changed."""
        if script.kind == "condition":
            return answer_at_a_glance(script.text, self._batch.scope)
        if script.kind == "script":
            return None
        common_data = reduce(apply_change, self._changes, self._batch.scope.get("common_data", {}))
        text = text_at_a_glance(script.text, {**self._batch.scope, "common_data": common_data})
        return None if text is None else {"value": text}


def apply_change(common_data: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """What a script made of common_data, by its answer: the keys that it set, and those that it removed."""
    kept = {key: value for key, value in common_data.items() if key not in change["removed"]}
    return {**kept, **change["set"]}


def _known_reply(kind: Kind, text: str) -> dict[str, Any] | None:
    """The reply to a text that needs no engine."""
    if kind == "condition" and (literal := LITERALS.get(text.strip())) is not None:
        return literal
    wrong = _refusal(text)
    if wrong is None:
        return None
    return {"value": text} if kind in ("input", "output") else {"failed": wrong}


@lru_cache(maxsize=1024)
def _refusal(text: str) -> str | None:
    """Why a text is not even shown to the engine: it would end what it is put into, or it is far too long."""
    if len(text) > LONGEST:
        return f"it is longer than {LONGEST:,} characters"
    fault = scan(text).fault
    return f"SyntaxError: {fault}" if fault else None


@lru_cache(maxsize=1024)
def _expand(text: str) -> str:
    """The text without shorthands, and without a semicolon at its end, which would make an expression a statement."""
    tokens, is_whole, _ = scan(text)
    while is_whole and tokens and tokens[-1].text == ";":
        text, tokens = text[: tokens[-1].start], tokens[:-1]
    return expand(text, tokens)


def _encode_scope(scope: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(dict(scope), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Refused(f"the data of a script must be plain JSON: {error}") from error
