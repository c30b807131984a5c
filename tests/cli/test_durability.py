"""`--durability`: how safely commits are kept, and what is said where that is less than fully."""

import pytest

from tests.cli.ran import Moot

RISK = "durability normal: after a power cut or a crash of the operating system the last commits may be gone"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("run", "machines.py:LETTER", "Ada"), 0),
        (("run", "machines.py:LETTER", "Ada", "--quiet"), 0),
        (("resume", "mine"), 5),
        (("answer", "mine", "--yes"), 0),
        (("worker", "--until-idle"), 0),
    ],
    ids=str,
)
def test_less_than_full_durability_says_once_what_it_risks(
    waiting: Moot, arguments: tuple[str, ...], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = waiting(*arguments, "--durability", "normal")
    assert (named.code, named.err.count(RISK)) == (code, 1)
    assert "finished effects may be repeated; a crash of this process alone loses nothing" in named.err
    monkeypatch.setenv("MOOTHALL_DURABILITY", "normal")
    assert waiting("resume", "mine").err.count(RISK) == 1
    assert waiting("resume", "mine", "--durability", "full").err.count(RISK) == 0


def test_full_durability_is_not_worth_a_word(moot: Moot) -> None:
    assert "durability" not in moot("run", "machines.py:LETTER", "Ada").err


def test_a_store_in_memory_has_no_commits_to_lose(moot: Moot) -> None:
    ran = moot("run", "machines.py:LETTER", "Ada", "--store", "memory", "--durability", "normal")
    assert (ran.code, "durability" in ran.err) == (0, False)


def test_a_durability_that_is_none_is_wrong_usage(moot: Moot) -> None:
    ran = moot("run", "machines.py:LETTER", "Ada", "--durability", "none")
    assert (ran.code, "invalid choice: 'none'" in ran.err) == (2, True)


@pytest.mark.parametrize("arguments", [("run", "machines.py:LETTER", "Ada"), ("ls",)], ids=" ".join)
def test_a_durability_that_is_set_wrongly_exits_with_4(
    moot: Moot, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOOTHALL_DURABILITY", "none")
    ran = moot(*arguments)
    assert (ran.code, ran.out) == (4, "")
    assert ran.err == f"moot {arguments[0]}: 'none' is not a durability; write full or normal\n"
