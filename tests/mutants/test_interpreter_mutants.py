"""Every mistake that is planted in the interpreter is noticed by the tests of the kernel."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Future

import pytest

from tests.mutants.interpreter import MUTANTS
from tests.mutants.mutate import Mutant, Outcome, mutated, trying
from tests.mutants.tree import becomes, compare, drop

# The quick ones first. Tests that measure time are not among them: a busy computer must not kill a mutant.
STAGES = (
    ("tests/kernel/test_interpreter.py", "tests/kernel/test_machine.py"),
    ("tests/kernel/test_simulate.py", "tests/interop", "tests/conformance"),
)

Outcomes = Mapping[Mutant | None, Future[Outcome]]


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    """The outcomes of the mutants that this run of pytest asks for; None stands for the source as it is."""
    specs = [getattr(item, "callspec", None) for item in request.session.items]
    named = [spec.params.get("mutant") for spec in specs if spec is not None]
    chosen = [mutant for mutant in MUTANTS if mutant in named]
    with trying([None, *chosen], STAGES, tmp_path_factory.mktemp("mutants")) as found:
        yield found


@pytest.mark.soak
def test_the_tests_pass_where_no_mistake_is_planted(outcomes: Outcomes) -> None:
    outcome = outcomes[None].result()
    assert outcome.code == 0, outcome.said


@pytest.mark.soak
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.breaks)
def test_a_planted_mistake_is_noticed(mutant: Mutant, outcomes: Outcomes) -> None:
    outcome = outcomes[mutant].result()
    assert outcome.killed, outcome.said


@pytest.mark.slow
def test_every_planted_mistake_fits_into_the_source_as_it_is() -> None:
    for mutant in MUTANTS:
        ast.parse(mutated(mutant))


def test_every_planted_mistake_has_a_name_of_its_own() -> None:
    assert [name for name, count in Counter(mutant.breaks for mutant in MUTANTS).items() if count > 1] == []


def test_a_mistake_fits_however_lines_are_broken_and_variables_are_called() -> None:
    mutant = Mutant("m", "kernel.x", "Shop.sell", (("Compare", compare("<")), ("Call put.args.0", becomes("-{}"))))
    texts = (
        "class Shop:\n    def sell(self, n):\n        if n <= 3: put(n)",
        "class Shop:\n    def sell(self, count):\n        if (count\n                <= 3):\n            put(count)",
    )
    assert [mutant.applied(text) for text in texts] == [
        f"class Shop:\n\n    def sell(self, {name}):\n        if {name} < 3:\n            put(-{name})"
        for name in ("n", "count")
    ]


@pytest.mark.parametrize("place", ["If 2", "Compare 2", "Call take", "Name", "nothing"])
def test_a_place_that_is_not_there_or_not_alone_is_refused(place: str) -> None:
    with pytest.raises(ValueError, match="place"):
        Mutant("m", "kernel.x", "sell", ((place, drop),)).applied("def sell(n):\n    if n <= 3: put(n)")
