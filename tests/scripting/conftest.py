from collections.abc import Iterator

import pytest

from moothall.scripting.workflow import Scripts
from tests.scripting.asking import Evaluate, evaluator


@pytest.fixture(scope="package")
def scripts() -> Iterator[Scripts]:
    with Scripts(most=1) as scripts:
        yield scripts


@pytest.fixture(scope="package")
def evaluate(scripts: Scripts) -> Evaluate:
    """One text in, its answer out."""
    return evaluator(scripts)
