"""Our answers are those of Node.js: expressions drawn at random over the surface, evaluated by both."""

import json
import shutil
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from moothall.kernel.step import Absent, Answer, Value
from tests.scripting.asking import SCOPE, Evaluate
from tests.scripting.expressions import Pair, drawn

NODE = shutil.which("node")
REFERENCE = Path(__file__).with_name("reference.js")

with_node = pytest.mark.skipif(NODE is None, reason="Node.js is not installed")


def reference(pairs: list[Pair]) -> list[Any]:
    assert NODE is not None
    asked = json.dumps({"scope": SCOPE, "texts": [pair.plain for pair in pairs]})
    done = subprocess.run([NODE, REFERENCE], input=asked, capture_output=True, text=True, timeout=300, check=True)
    answers: list[Any] = json.loads(done.stdout)
    return answers


def told(answer: Answer) -> list[Any]:
    match answer:
        case Value(value=value):
            return ["value", value]
        case Absent():
            return ["absent"]
        case _:
            return ["failed"]


def differences(count: int, seed: int, evaluate: Evaluate) -> list[tuple[str, Any, Any]]:
    random = Random(seed)
    pairs = [drawn(random) for _ in range(count)]
    answers = [told(evaluate(pair.ours)) for pair in pairs]
    expected = reference(pairs)
    assert sum(answer[0] == "value" for answer in expected) > count / 3, "most expressions fail: the draw is a poor one"
    return [
        (pair.ours, ours, theirs) for pair, ours, theirs in zip(pairs, answers, expected, strict=True) if ours != theirs
    ]


@with_node
def test_some_hundred_expressions_have_the_values_of_node(evaluate: Evaluate) -> None:
    assert differences(400, 1, evaluate) == []


@with_node
@pytest.mark.soak
def test_ten_thousand_expressions_have_the_values_of_node(evaluate: Evaluate) -> None:
    assert differences(10_000, 2, evaluate) == []
