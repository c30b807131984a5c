"""Secrets are found in all their forms, and nothing else is; cleaning costs what a text is long."""

import base64
import hashlib
import random
import subprocess
import sys
import sysconfig
import time
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moothall.agents.ask import CallTool, Replied, ToolCall
from moothall.agents.secrets import _FORMATS, _GLANCES, NAMES, TYPES, Cleaner, Secret
from moothall.errors import Refused
from tests.agents.planted import FORMATS, KEY_ID, PLANTS, REGISTERED, Plant, some

ROOT = Path(__file__).parents[2]
SECRETS = tuple(Secret(name, value) for name, value in REGISTERED.items())
clean = Cleaner(SECRETS)
unregistered = Cleaner()


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_a_secret_is_replaced_by_its_name_and_nothing_of_it_is_left(plant: Plant) -> None:
    before, found, after = clean(plant.text).partition(f"[secret:{plant.name}]")
    assert found
    assert not set(fragments(plant.secret)) & {*fragments(before), *fragments(after)}


def fragments(text: str) -> list[str]:
    return [text[at : at + 6] for at in range(len(text) - 5)]


@pytest.mark.parametrize("plant", FORMATS, ids=lambda plant: plant.name)
@pytest.mark.parametrize("around", ["{}", '{{"a": "{}"}}', "a={}&b=c", "({})", "a%3D{}", "line\\n{}", "\\u003d{}"])
def test_a_key_is_found_wherever_it_stands(plant: Plant, around: str) -> None:
    if plant.text.startswith("the key is"):
        assert clean(around.format(plant.secret)).count("[secret:") == 1


def test_what_stands_around_a_secret_stays() -> None:
    assert clean(f"take {REGISTERED['ACME_API_KEY']} and go") == "take [secret:ACME_API_KEY] and go"
    assert clean("postgresql://ada:hunter2@db/x") == "postgresql://ada:[secret:password]@db/x"


def test_a_secret_key_next_to_its_id_is_found() -> None:
    for text in (f"{KEY_ID} {some(40)}", f"id: {KEY_ID}\nsecret: {some(40)}\n"):
        assert clean(text).count("[secret:aws") == 2


def test_base64_of_a_secret_is_found_wherever_it_begins() -> None:
    value = REGISTERED["ACME_API_KEY"].encode()
    for before in range(9):
        for after in range(4):
            text = base64.b64encode(b"#" * before + value + b"#" * after).decode()
            assert "[secret:ACME_API_KEY]" in clean(text), (before, after)


def test_a_value_that_contains_another_leaves_no_rest() -> None:
    both = Cleaner([Secret("SHORT_TOKEN", "abcdefgh"), Secret("LONG_TOKEN", "abcdefgh12345")])
    assert both("abcdefgh12345 abcdefgh") == "[secret:LONG_TOKEN] [secret:SHORT_TOKEN]"


def test_values_that_overlap_are_replaced_together() -> None:
    both = Cleaner([Secret("ONE_TOKEN", "abcdefgh12"), Secret("TWO_TOKEN", "gh12345678")])
    assert both("<abcdefgh12345678>") == "<[secret:ONE_TOKEN]>"


def test_a_registered_name_goes_before_the_name_of_a_format() -> None:
    key = "sk-proj-" + some(40)
    assert Cleaner([Secret("OPENAI_API_KEY", key)])(f"Bearer {key}") == "Bearer [secret:OPENAI_API_KEY]"


def test_a_secret_inside_something_that_looks_like_a_placeholder_is_found() -> None:
    assert clean(f"[secret:{REGISTERED['ACME_API_KEY']}]") == "[secret:[secret:ACME_API_KEY]]"


def test_a_value_of_many_backslashes_costs_no_more_than_its_length() -> None:
    slashes = Cleaner([Secret("ODD_TOKEN", "\\" * 24 + "word")])
    assert slashes("word " + "\\" * 20_000).startswith("word ")
    assert slashes("\\" * 48 + "word") == "[secret:ODD_TOKEN]"


def test_a_secret_does_not_show_itself() -> None:
    assert REGISTERED["ACME_API_KEY"] not in repr(SECRETS)


@pytest.mark.parametrize("value", ["", "1234567"])
def test_a_value_that_is_too_short_is_refused_with_a_reason(value: str) -> None:
    with pytest.raises(Refused) as refusal:
        Secret("PIN", value)
    assert str(refusal.value) == ("secret PIN: it has fewer than 8 characters, and would be found in harmless texts")


class Colour(StrEnum):
    RED = "red-red-red"


@dataclass(frozen=True)
class Note:
    text: str
    colour: Colour = Colour.RED
    kind: Literal["postgres", "mysql"] | None = "postgres"
    kinds: tuple[Literal["postgres"], ...] = ("postgres",)
    tags: tuple[str, ...] = ()


def test_texts_deep_inside_a_value_are_cleaned_and_keys_too() -> None:
    one, other = REGISTERED["ACME_API_KEY"], REGISTERED["VAULT_PHRASE"]
    value = {one: [1, {"a": (other, None)}], f"{one}{one}": True, "[secret:ACME_API_KEY]": 0.5, "b": frozenset([one])}
    assert clean(value) == {
        "[secret:ACME_API_KEY] 2": [1, {"a": ("[secret:VAULT_PHRASE]", None)}],
        "[secret:ACME_API_KEY][secret:ACME_API_KEY]": True,
        "[secret:ACME_API_KEY]": 0.5,
        "b": frozenset(["[secret:ACME_API_KEY]"]),
    }


def test_an_event_is_cleaned_field_by_field() -> None:
    secret, name = REGISTERED["ACME_API_KEY"], "[secret:ACME_API_KEY]"
    replied = Replied(
        "ada", secret, {"a": [secret]}, usage={secret: 2.0}, calls=(ToolCall("look", {"a": secret}, secret),)
    )
    assert clean(replied) == Replied(
        "ada", name, {"a": [name]}, usage={name: 2.0}, calls=(ToolCall("look", {"a": name}, name),)
    )


def test_choices_are_no_secrets() -> None:
    registered = Cleaner([Secret("DB_PASSWORD", "postgres"), Secret("RED_TOKEN", "red-red-red")])
    note = Note("postgres", tags=("postgres",))
    assert registered(note) == Note("[secret:DB_PASSWORD]", tags=("[secret:DB_PASSWORD]",))


@dataclass(frozen=True)
class Doubt:
    why: str

    def __bool__(self) -> bool:
        return False


def test_a_value_that_counts_as_false_is_looked_into() -> None:
    replied = Replied("ada", value=Doubt(REGISTERED["ACME_API_KEY"]))
    assert clean(replied).value == Doubt("[secret:ACME_API_KEY]")


MADE: list[str] = []


@dataclass(frozen=True)
class Leaf:
    text: str

    def __post_init__(self) -> None:
        MADE.append(self.text)


def test_a_value_deep_inside_others_is_made_anew_once() -> None:
    value: Any = Leaf(REGISTERED["ACME_API_KEY"])
    for _ in range(5):
        value = {"in": [Replied("ada", value=(value,))]}
    MADE.clear()
    clean(value)
    assert MADE == ["[secret:ACME_API_KEY]"]


@dataclass(frozen=True)
class Strict:
    text: str

    def __post_init__(self) -> None:
        if "[" in self.text:
            raise ValueError("no brackets")


def test_a_class_that_does_not_take_a_placeholder_refuses_it_and_tells_no_secret() -> None:
    with pytest.raises(Refused) as refusal:
        clean(Strict(REGISTERED["ACME_API_KEY"]))
    assert str(refusal.value) == "Strict does not take a text in which a secret was replaced: no brackets"


def ordinary() -> Iterator[str]:
    """Texts without secrets: prose, code, ids, digests, pictures in base64."""
    fixed = random.Random(7)
    yield from (path.read_text("utf-8") for path in (*ROOT.rglob("docs/**/*.md"), ROOT / "LICENSE"))
    yield from (path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    yield " ".join(str(uuid.UUID(int=fixed.getrandbits(128), version=4)) for _ in range(2000))
    for digest in (hashlib.sha1, hashlib.sha256, hashlib.md5):
        yield " ".join(digest(str(number).encode()).hexdigest() for number in range(2000))
        yield " ".join(base64.b64encode(digest(str(number).encode()).digest()).decode() for number in range(2000))
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield "data:image/png;base64," + encode(fixed.randbytes(750_000)).decode()
        yield base64.encodebytes(fixed.randbytes(100_000)).decode()
    yield from TRICKY


TRICKY = (
    "sk-learn-compatible-estimators and sk-toggleable__label-arrow; sk-container-id-1; a risk-averse task-force",
    "Authorization: Bearer YOUR_ACCESS_TOKEN_HERE", "Authorization: Bearer <token>", "Bearer ${TOKEN}",
    "the bearer of bad news; bearer AuthenticationProvider", 'f"Bearer {api_key}"', "Authorization: Basic realm",
    "https://example.org:8080/a@b", "postgres://user:{password}@host/db", "postgres://user:$PASSWORD@host/db",
    "ssh://git@example.org:22/x", "git@example.org:a/b.git", "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END",
    "-----BEGIN CERTIFICATE-----", "eyJhbGciOiJIUzI1NiJ9", "AKIA is a prefix, ASIA is a continent", "hf_hub_download",
    "ghp_ and gho_ are prefixes", "xoxo-hugs", "api-key: required", "x-api-key: your-api-key-goes-right-here",
    "aws_secret_access_key = os.environ[...]", "sig=missing", "AccountKey=...", "glpat-your-token",
)  # fmt: skip


def test_ordinary_texts_are_left_alone() -> None:
    changed = [(text[:60], found) for text in ordinary() if (found := replaced(text))]
    assert changed == []


def replaced(text: str) -> list[str]:
    new = unregistered(text)
    return (
        [new[max(0, at - 40) : at + 30] for at in range(len(new)) if new.startswith("[secret:", at)]
        if new is not text
        else []
    )


def test_the_standard_library_has_no_secrets_but_addresses_with_a_password() -> None:
    library = Path(sysconfig.get_paths()["stdlib"])
    texts = [path.read_text("utf-8", errors="replace") for path in library.glob("*.py")]
    assert len(texts) > 100
    assert {part.partition("[secret:")[2].partition("]")[0] for text in texts for part in replaced(text)} <= {
        "password"
    }


PARTS = st.sampled_from(
    [*(plant.text for plant in PLANTS), *(plant.secret for plant in PLANTS), "[secret:", "]", "a", " "]
)
TEXTS = st.lists(PARTS | st.text(max_size=9), max_size=6).map("".join)
VALUES = st.recursive(
    TEXTS | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(VALUES)
def test_cleaning_twice_is_cleaning_once(value: Any) -> None:
    once = clean(value)
    assert clean(once) is once


class Named(str):
    pass


@dataclass
class Counted:
    number: int
    note: Note | None = None
    more: Any = ""
    hidden: str = field(default="", init=False)


def of_any_type(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Values of every type that is looked into, some of them rare."""
    mappings = st.dictionaries(TEXTS | st.integers() | st.sampled_from(Colour) | TEXTS.map(Named), inner, max_size=3)
    lists = st.lists(inner, max_size=3)
    return (
        mappings
        | mappings.map(MappingProxyType)
        | mappings.map(OrderedDict)
        | lists
        | lists.map(tuple)
        | st.frozensets(TEXTS | st.integers(), max_size=3)
        | st.builds(Note, TEXTS, tags=st.lists(TEXTS, max_size=2).map(tuple))
        | st.builds(Counted, st.integers(), st.none() | st.builds(Note, TEXTS), inner)
        | st.builds(Doubt, TEXTS)
        | st.builds(Replied, TEXTS, TEXTS, inner, usage=st.dictionaries(TEXTS, st.floats(allow_nan=False), max_size=2))
        | st.builds(CallTool, TEXTS, st.dictionaries(TEXTS, inner, max_size=3), id=TEXTS)
    )


LEAVES = (
    TEXTS | TEXTS.map(Named) | st.none() | st.booleans() | st.integers() | st.sampled_from(Colour) | st.just(object)
)


@settings(max_examples=400, deadline=None)
@given(st.recursive(LEAVES, of_any_type, max_leaves=10))
def test_a_glance_overlooks_nothing_that_a_look_at_every_piece_finds(value: Any) -> None:
    glanced, again, whole = clean(value), clean(value), clean._whole(value)
    assert glanced == again == whole
    assert (glanced is value) == (again is value) == (whole is value)


def test_what_is_remembered_of_values_has_a_bound() -> None:
    fresh = Cleaner()
    for number in range(3 * NAMES):
        assert fresh({f"a key of its own {number}": number})
        assert fresh(value := type(f"Kind{number}", (), {})()) is value
    assert 0 < len(fresh._names) <= NAMES
    assert 0 < len(_GLANCES) <= TYPES


def test_no_pattern_is_compiled_before_a_text_has_its_word() -> None:
    counted = (
        "from moothall.agents.secrets import Cleaner, Secret, _compiled\n"
        "clean = Cleaner([Secret('ACME_API_KEY', 'as-good-as-any')])\n"
        "for text in ('an ordinary text', 'https://example.org'):\n"
        "    clean({'text': text})\n"
        "    print(_compiled.cache_info().currsize)\n"
    )
    done = subprocess.run([sys.executable, "-c", counted], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "1"]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text("abAB01-_]:[ secrt", min_size=8, max_size=12), min_size=1, max_size=3), st.data())
def test_cleaning_twice_is_cleaning_once_whatever_is_registered(values: list[str], data: st.DataObject) -> None:
    cleaner = Cleaner([Secret(f"S{number}", value) for number, value in enumerate(values)])
    parts = st.sampled_from([*values, *(f"[secret:S{number}]" for number in range(3)), "[secret:", "]", "a", "1"])
    once = cleaner("".join(data.draw(st.lists(parts, max_size=12))))
    assert cleaner(once) is once
    assert not [value for value in values if value in once.replace("[secret:", "").replace("]", "") and value in once]


@settings(max_examples=300, deadline=None)
@given(
    st.recursive(
        st.text(max_size=20) | st.none() | st.integers() | st.floats(allow_nan=False),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=7), inner) | st.tuples(inner, inner),
        max_leaves=20,
    )
)
def test_a_value_without_secrets_is_returned_itself(value: Any) -> None:
    assert clean(value) is value


NEAR_MISSES = ("{}", "{}a", "-{}", "{}-", " {}aaaaaaaaaaaaaaa", "{}:", "{}A0 ", "{}.", "/{}=", "{}\n")
WORDS = sorted({word for formats in _FORMATS.values() for words in formats for word in words})
MEGABYTE = 1_000_000


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.slow
def test_a_megabyte_of_near_misses_costs_no_more_than_its_length(word: str) -> None:
    for shape in NEAR_MISSES:
        unit = shape.format(word)
        small = min(cost(unit * (MEGABYTE // 8 // len(unit))) for _ in range(3))
        large = cost(unit * (MEGABYTE // len(unit)))
        assert large < 32 * max(small, 0.002), f"{unit!r}: eight times the text takes {large / small:.0f} times as long"


def cost(text: str) -> float:
    """What cleaning a text takes of this thread's own time."""
    before = time.thread_time()
    unregistered._cleaned(text)
    return time.thread_time() - before
