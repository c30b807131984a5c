"""Questions of runs that a conversation started, answered from it: approvals of tools, workflows, debates.

Each has a number for as long as the session lasts, so that a person can say which one they answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from moothall.app.kinds.team.present import indented
from moothall.app.runs.outcome import Question
from moothall.app.runs.view import questions_below, summary_of
from moothall.errors import Refused
from moothall.kernel.effects import AskPerson
from moothall.runtime.ports import Store

YES_NO = {"type": "boolean"}
WORDS = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


async def open_questions(store: Store, run: str) -> tuple[Question, ...]:
    """What waits for a person below a run, and in the run itself calls of which nobody knows what became of them."""
    stored = await store.load(run)
    own = {pending["key"] for pending in stored.head["pending"] if pending["kind"] != AskPerson.kind}
    doubts = (question for question in _questions(run, summary_of(stored).questions) if question.id in own)
    below = await questions_below(store, run)
    return (*doubts, *(question for child, asked in below for question in _questions(child, asked)))


def _questions(run: str, asked: Sequence[Mapping[str, Any]]) -> tuple[Question, ...]:
    return tuple(
        Question(question["id"], question["prompt"], question["schema"], question["due"], run, question["who"])
        for question in asked
    )


class Numbers:
    """The numbers of questions, in the order in which they were first seen."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], int] = {}

    def is_new(self, question: Question) -> bool:
        """Whether nobody has seen it."""
        return (question.run, question.id) not in self._known

    def number(self, question: Question) -> int:
        """The number of a question, a new one where it has none."""
        return self._known.setdefault((question.run, question.id), len(self._known) + 1)

    def shown(self, question: Question) -> str:
        """A question as a person reads it, with the way to answer it."""
        number = self.number(question)
        person = f", for {question.who}" if question.who else ""
        asked = f"question {number}, of {question.run}{person}: {indented(question.prompt)}"
        return f"{asked}\n!answer {number} {_way(question.schema)}"

    def meant(self, open_now: Sequence[Question], text: str) -> tuple[Question, str]:
        """The question that a person answers, and what they say: `[NUMBER] ANSWER`, without a number the only one."""
        if not open_now:
            raise Refused("nothing that was started here asks anything now")
        first, _, rest = text.partition(" ")
        by_number = {str(self.number(question)): question for question in open_now}
        if first in by_number and rest.strip():
            return by_number[first], rest.strip()
        if len(open_now) > 1:
            raise Refused(f"several questions wait: write !answer {min(by_number, key=int)} and the answer")
        if not text:
            raise Refused("say what the answer is, such as: !answer yes")
        return open_now[0], text


def _way(schema: Any) -> str:
    if schema == YES_NO:
        return "yes | no"
    if choices := _choices(schema):
        return " | ".join(choices)
    fields = _fields(schema)
    if len(fields) > 1:
        return json.dumps({name: inner.get("description", "…") for name, inner in fields.items()}, ensure_ascii=False)
    return "TEXT" if fields or _takes_text(schema) else "JSON"


def answer_in(schema: Any, text: str) -> Any:
    """What a person means who types this as an answer to a question of this schema."""
    if schema == YES_NO:
        if text.lower() not in WORDS:
            raise Refused(f"{text[:40]!r} is neither yes nor no")
        return WORDS[text.lower()]
    if _choices(schema) or schema == {"type": "string"}:
        return text
    fields = _fields(schema)
    if len(fields) == 1 and not text.startswith("{"):
        ((name, inner),) = fields.items()
        return {name: answer_in({key: inner[key] for key in ("type", "enum") if key in inner}, text)}
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if _takes_text(schema):
            return text
        raise Refused(f"the answer has to be JSON: {_way(schema)}") from error


def _choices(schema: Any) -> list[str]:
    found = schema.get("enum", []) if isinstance(schema, Mapping) else []
    return found if all(isinstance(choice, str) for choice in found) else []


def _fields(schema: Any) -> Mapping[str, Any]:
    found = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
    return {name: inner for name, inner in found.items() if isinstance(inner, Mapping)}


def _takes_text(schema: Any) -> bool:
    if not isinstance(schema, Mapping) or not schema:
        return True
    return schema.get("type") == "string" or {"type": "string"} in schema.get("anyOf", ())
