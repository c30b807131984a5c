"""Whatever is done to a workflow file, checking it ends in words, and what has no error can be compiled."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from moothall.agents.roles import roles
from moothall.analysis.verify import verify
from moothall.errors import DefinitionError
from moothall.kernel.codec import decode
from moothall.machines.workflow.check import Around, find_problems
from moothall.machines.workflow.compiler import machine_of
from moothall.machines.workflow.definition import Workflow
from moothall.machines.workflow.document import read
from moothall.machines.workflow.schema import clean
from tests.machines.workflows import BASE

SHIPPED = Path(__file__).parents[2] / "src" / "moothall" / "machines" / "workflow" / "shipped"
FILES = [BASE, *(json.loads(path.read_text()) for path in sorted(SHIPPED.glob("*.json")))]
AROUND = Around(lambda scripts: [""] * len(scripts), lambda name: next(file for file in FILES if file["workflow_name"]))
KEYS = (
    "name",
    "agent",
    "input",
    "action",
    "transition",
    "states",
    "parallel",
    "ask",
    "history",
    "on_error",
    "target",
    "x",
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(("start", "stop", "true", "code", "coder", "__proto__", "common_data.x = 1", "py:f", "shallow")),
    st.recursive(
        st.sampled_from(("start", "stop", "inner", 1, None)),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
        max_leaves=6,
    ),
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a value: what it stands in, and its key or index."""
    found = [(value, key) for key in (value if isinstance(value, dict) else range(len(value)))]
    inside = [value[key] for _, key in found if isinstance(value[key], dict | list)]
    return found + [place for part in inside for place in places(part)]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(FILES), st.lists(st.tuples(st.integers(0, 10_000), st.sampled_from("rdi"), VALUES), max_size=3))
def test_no_change_to_a_file_brings_the_check_or_the_compiler_down(
    file: Any, changes: list[tuple[int, str, Any]]
) -> None:
    value = deepcopy(file)
    for number, how, new in changes:
        every = places(value)
        if not every:
            break
        holder, key = every[number % len(every)]
        if how == "d":
            del holder[key]
        elif how == "i" and isinstance(holder, list):
            holder.insert(key, new)
        else:
            holder[key] = new
    problems = find_problems(read(json.dumps(value).encode()), AROUND)
    assert all(problem.why and problem.remedy and problem.line for problem in problems)
    if any(problem.level == "error" for problem in problems):
        return
    try:
        machine = machine_of(decode(Workflow, clean(value), "file"), roles({}))
    except DefinitionError:
        return
    assert not [problem for problem in verify(machine) if problem.code in ("unbounded-cycle", "eventless-cycle")]


def test_the_shipped_files_compile_to_machines_that_come_to_an_end() -> None:
    for file in FILES:
        machine = machine_of(decode(Workflow, clean(file), "file"), roles({}))
        assert not [problem for problem in verify(machine) if problem.level == "error"]
