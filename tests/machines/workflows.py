"""Workflows that tests begin with, and the complete ones of the document that describes workflow files."""

import json
import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

SHARED = next(
    (folder / "shared" for folder in Path(__file__).resolve().parents if (folder / "shared").is_dir()), Path("shared")
)
SEED = next(iter(sorted((SHARED / "seeds").glob("003*.txt"))), None)
HOSTILE = SHARED / "hostile"

Plain = dict[str, Any]
Change = Callable[[Plain], object]

BASE: Plain = {
    "workflow_name": "base",
    "description": "work and look",
    "input": {"name": "task", "type": "string", "description": "what to do"},
    "output": {"name": "result", "type": "string", "description": "what was done"},
    "variables": {"max_iterations": 3},
    "contexts": [{"name": "talk", "starting_messages": [], "max_length": 50000}],
    "agents": [
        {"agent_role": "coder", "context": "talk", "role": "assistant"},
        {"agent_role": "reviewer", "context": "talk", "role": "user"},
    ],
    "states": [
        {
            "name": "start",
            "action": {"script": "() => { this.common_data.next = this.common_data.task; }"},
            "transition": [{"target": "code", "condition": "true"}],
        },
        {
            "name": "code",
            "agent": "coder",
            "input": "common_data.next",
            "action": {"function": "sendUserMessage"},
            "transition": [{"target": "review", "condition": "true"}],
        },
        {
            "name": "review",
            "agent": "reviewer",
            "input": "'review it'",
            "action": {"function": "sendUserMessage"},
            "transition": [
                {"target": "code", "condition": "function.review_work.arguments.improvement_needed === true"},
                {"target": "stop", "condition": "true", "before": "() => { this.common_data.result = 'ok'; }"},
            ],
        },
        {"name": "stop", "input": "common_data.result"},
    ],
}


def changed(change: Change) -> Plain:
    """The workflow above with a change."""
    workflow = deepcopy(BASE)
    change(workflow)
    return workflow


def of_the_seed() -> dict[str, str]:
    """The complete workflows of the document, letter by letter, by name."""
    if SEED is None:
        pytest.skip("the documents that the machines come from are not here")
    blocks = re.findall(r"^```json\n(.*?)^```", SEED.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    found = {}
    for block in blocks:
        if '"workflow_name"' in block and '"states"' in block and '"parameter_name"' not in block:
            found[json.loads(block)["workflow_name"]] = block
    assert sorted(found) == ["coder_reviewer", "hierarchical_development"]
    return found
