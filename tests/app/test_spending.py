"""How far a run has come and what it has spent, in words: only what is known."""

import pytest

from moothall.app.report.amounts import Account, amount_of, duration_of, lasting


@pytest.mark.parametrize(
    ("account", "said"),
    [
        (Account((), 0), "step 0"),
        (Account(("writing",), 3), "in writing, step 3"),
        (Account(("writing", "reading"), 3, seconds=4.26), "in writing + reading, step 3, 4.3 s"),
        (Account(("writing",), 3, {"calls": 2}, seconds=12.9), "in writing, step 3, 12 s; spent: calls 2"),
        (
            Account(("writing",), 7, {"calls": 7, "usd": 0.12, "tokens": 1140}, {"usd": 0.5, "calls": 20}),
            "in writing, step 7; spent: usd 0.12 of 0.50, calls 7 of 20, tokens 1140",
        ),
        (Account(("writing",), 1, {}, {"calls": 20}), "in writing, step 1; spent: calls 0 of 20"),
        (Account(("writing",), 1, {}, {"seconds": 60}, 12.34), "in writing, step 1; spent: seconds 12.3 of 60"),
        (Account(("writing",), 1, {"stamps": 2}, {"calls": 3}), "in writing, step 1; spent: calls 0 of 3, stamps 2"),
    ],
    ids=str,
)
def test_an_account_says_what_is_known_and_no_more(account: Account, said: str) -> None:
    assert str(account) == said


def test_what_is_left_is_never_less_than_nothing() -> None:
    account = Account((), 9, {"usd": 0.61, "calls": 7}, {"calls": 20, "usd": 0.5, "seconds": 60}, 12.5)
    assert list(account.left().items()) == [("usd", 0), ("calls", 13), ("seconds", 47.5)]


def test_what_has_no_limit_has_nothing_left() -> None:
    assert Account((), 9, {"usd": 0.61}).left() == {}


@pytest.mark.parametrize(
    ("resource", "amount", "said"),
    [
        ("usd", 0, "0.00"),
        ("usd", 0.5, "0.50"),
        ("usd", 0.021, "0.021"),
        ("usd", 12.0, "12.00"),
        ("usd", 0.000012, "0.000012"),
        ("tokens", 12_345_678, "12345678"),
        ("calls", 7.0, "7"),
        ("seconds", 1.25, "1.2"),
    ],
)
def test_amounts_are_written_as_people_write_them(resource: str, amount: float, said: str) -> None:
    assert amount_of(resource, amount) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-0.2, "0.0 s"),
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (59.9, "59 s"),
        (61, "1 min 1 s"),
        (3_599, "59 min 59 s"),
        (7_260, "2 h 1 min"),
        (90_000, "1 d 1 h"),
    ],
)
def test_times_have_their_two_largest_units(seconds: float, said: str) -> None:
    assert duration_of(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.0, "0 ms"), (0.0124, "12 ms"), (0.9994, "999 ms"), (1.0, "1.0 s"), (61, "1 min 1 s")]
)
def test_short_times_are_told_in_milliseconds(seconds: float, said: str) -> None:
    assert lasting(seconds) == said
