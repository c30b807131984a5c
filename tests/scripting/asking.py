"""Short ways to have a text evaluated, and the data that the hostile and the honest texts see."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from moothall.kernel.step import Answer
from moothall.scripting.workflow import Batch, Choice, Kind, Script, Scripts

SHARED = Path(__file__).parents[3] / "shared" / "hostile"
MISSING = "the folder with the hostile texts is not here"

SCOPE: Mapping[str, Any] = {
    "common_data": {"count": 1, "title": "constructor", "odd key": 1, "list": [1, 2, 3], "deep": {"a": {"b": [0]}}},
    "agents": {
        "coder": {"role": "assistant", "last_response": "done", "tool_calls": [{"function": {"name": "edit_file"}}]},
        "reviewer": {"role": "user", "parsing_tool_calls": [{"function": {"name": "review_work"}}]},
    },
    "contexts": {"history": {"messages": [{"role": "user", "content": "hello"}], "max_length": 50}},
    "sub_workflow_result": {"summary": "short"},
    "last_agent_response": "All is well.",
    "last_tool_calls": [{"function": {"name": "edit_file", "arguments": {"path": "a.py"}}}],
    "last_parsing_tool_calls": [
        {"function": {"name": "review_work", "arguments": {"improvement_needed": True, "notes": ["a", "b"]}}},
        {"function": {"name": "odd-name", "arguments": {"x": 1}}},
    ],
}
NOW = 1_700_000_000.123


class Evaluate(Protocol):
    """Evaluate one text."""

    def __call__(self, text: str, kind: Kind = "expression", scope: Mapping[str, Any] = SCOPE) -> Answer: ...


def evaluator(scripts: Scripts) -> Evaluate:
    def evaluate(text: str, kind: Kind = "expression", scope: Mapping[str, Any] = SCOPE) -> Answer:
        [answer] = scripts.evaluate_blocking(batch(text, kind, scope)).then
        return answer

    return evaluate


def batch(text: str, kind: Kind = "expression", scope: Mapping[str, Any] = SCOPE, seed: str = "") -> Batch:
    return Batch((Choice(then=(Script(kind, text),)),), scope, NOW, seed)


def shared(name: str) -> Any:
    """A file of the folder with the hostile texts; nothing where there is no such folder."""
    path = SHARED / name
    return json.loads(path.read_text("utf-8")) if path.is_file() else []
