"""Who listens while a model speaks hears no secret, however it is cut into pieces, and everything else."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moothall.agents.secrets import HEARD, CleanEar, Cleaner, Secret
from tests.agents.planted import PLANTS, REGISTERED, Plant

SECRETS = tuple(Secret(name, value) for name, value in REGISTERED.items())
clean = Cleaner(SECRETS)
WORDS = "The tide comes in twice a day, and nobody asks it to; das Wasser fällt, 潮は引く。 "


class Screen:
    """All that was ever shown, and what is there now."""

    def __init__(self) -> None:
        self.ever: list[str] = []
        self.now = ""

    def __call__(self, piece: str) -> None:
        self.now = self.now + piece if piece else ""
        self.ever.append(self.now)


def heard(pieces: list[str], cleaner: Cleaner = clean) -> Screen:
    screen = Screen()
    ear = CleanEar(screen, cleaner)
    for piece in pieces:
        ear(piece)
    ear.close()
    return screen


def cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def fragments(text: str) -> set[str]:
    return {text[at : at + 6] for at in range(len(text) - 5)}


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
@pytest.mark.parametrize("size", [1, 3, 7, 50])
def test_no_piece_of_a_secret_is_heard(plant: Plant, size: int) -> None:
    text = WORDS + plant.text + " and so on. " + WORDS
    screen = heard(cut(text, size))
    shown = set().union(*map(fragments, screen.ever)) - fragments(clean(text))
    assert not shown & fragments(plant.secret)
    assert screen.now == clean(text)


@given(
    st.lists(st.sampled_from([*(plant.text for plant in PLANTS), WORDS, " ", "-----BEGIN ", "://a:b"])), st.randoms()
)
def test_what_was_heard_in_the_end_is_the_whole_text_without_secrets(parts: list[str], chance: random.Random) -> None:
    text, pieces = "".join(parts), list[str]()
    at = 0
    while at < len(text):
        size = chance.randint(1, 40)
        pieces.append(text[at : at + size])
        at += size
    assert heard(pieces).now == clean(text)


@pytest.mark.parametrize("text", [WORDS, "潮は引く。また満ちる。"])
def test_harmless_words_are_heard_while_they_come(text: str) -> None:
    screen = Screen()
    ear = CleanEar(screen, Cleaner())
    for piece in cut(text, 4):
        ear(piece)
    assert len(screen.now) >= len(text) - 8


def test_a_long_key_in_many_lines_stays_unheard_however_long_it_is() -> None:
    body = "\n".join("MIIEx9" + "Ab3" * 19 for _ in range(200))
    text = f"{WORDS}-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY----- {WORDS}"
    screen = heard(cut(text, 11))
    assert not any("Ab3Ab3" in shown for shown in screen.ever)
    assert screen.now == clean(text)


def test_beginning_anew_forgets_what_was_held_back() -> None:
    screen = heard(["The k", "", "The sea"])
    assert screen.now == "The sea"


def test_what_is_looked_at_again_has_a_bound_however_much_is_said() -> None:
    ear = CleanEar(Screen(), clean)
    for piece in cut(WORDS * 2_500, 50):
        ear(piece)
    assert len(ear._text) <= 2 * HEARD
