"""A price that nobody knows is told as unknown, and so is what a budget of money does then."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.ran import Moot
from tests.models.loopback import Loopback, Said, loopback_aside

BUDGET = ("--budget", "usd=0.5")


@pytest.fixture
def provider() -> Iterator[Loopback]:
    with loopback_aside(Said("Dear Ada")) as served:
        yield served


def test_an_unknown_price_is_told_as_unknown_with_the_model_that_has_none(moot: Moot, provider: Loopback) -> None:
    model = f"openai:m@{provider.address}"
    ran = moot("run", "machines.py:NAMED", "Ada", "--run-id", "mine", "--model", model, *BUDGET)
    assert "spent: usd unknown of 0.50, calls 1, tokens 18" in ran.err
    assert f"the price of {model} is not known" in ran.err
    assert "limit calls or tokens too, as in --budget calls=20" in ran.err
    lines = moot("show", "mine").out.splitlines()
    assert lines[1:4] == [
        "spent: usd unknown of 0.50, calls 1, tokens 18",
        "left: usd unknown",
        f"no price is known for {model}: what it costs does not count towards the budget",
    ]
    shown = moot("show", "mine", "--json").json
    assert (shown["left"], shown["unpriced"]) == ({"usd": None}, [model])
    moot("report", "mine")
    assert "<b>unknown of 0.50</b>usd spent" in Path("mine.html").read_text()


def test_where_only_some_prices_are_known_the_rest_is_added_to_them(
    moot: Moot, provider: Loopback, tmp_path: Path
) -> None:
    (tmp_path / "two.py").write_text(
        "from moothall import Final, Machine, On, Replied, Reply, State, ask\n"
        "async def clerk(prompt: str) -> Reply:\n"
        "    return Reply('x', usage={'usd': 0.12, 'tokens': 5})\n"
        "TWO = Machine('two', data=dict, states=[State('one', enter=ask(clerk, 'a')),\n"
        "    State('other', enter=ask('poet', 'b')), Final('over')],\n"
        "    moves=[On('one', Replied, to='other'), On('other', Replied, to='over')])\n"
    )
    model = f"openai:m@{provider.address}"
    moot("run", "two.py:TWO", "--run-id", "mine", "--model", model, *BUDGET, "--quiet")
    lines = moot("show", "mine").out.splitlines()
    assert lines[1] == "spent: usd ≥ 0.12 of 0.50, calls 2, tokens 23"
    assert lines[3].startswith(f"no price is known for {model}")


def test_nothing_is_unknown_before_the_first_call(moot: Moot, provider: Loopback) -> None:
    model = f"openai:m@{provider.address}"
    moot("run", "machines.py:NAMED", "Ada", "--run-id", "mine", "--model", model, "--budget", "usd=0.5,calls=0")
    assert moot("show", "mine").out.splitlines()[2:4] == [
        "spent: usd 0.00 of 0.50, calls 0 of 0",
        "left: usd 0.50, calls 0",
    ]
