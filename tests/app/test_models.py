"""Models by name: what a name means, and that it means the same tomorrow and from another folder."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from moothall import Moothall, run
from moothall.app.config.models import PROVIDERS, Named, absolute_model, normal, open_model, parse_name, unpriced_models
from moothall.errors import DefinitionError
from moothall.models.cassette import CassetteModel
from moothall.models.fallback import FallbackModel
from moothall.models.gate import GatedModel
from tests.models.stage import WRITING, Task

HERE = "http://127.0.0.1:8080/v1"


ROOT = Path(__file__).parents[2]


def refusal(name: str) -> str:
    with pytest.raises(DefinitionError) as raised:
        open_model(name)
    return str(raised.value)


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def settings(home: Path, text: str) -> None:
    (home / "home").mkdir(exist_ok=True)
    (home / "home" / "settings.toml").write_text(text)


@pytest.mark.parametrize(
    ("name", "model", "address"),
    [
        ("openai:gpt-5", "gpt-5", "https://api.openai.com/v1"),
        (f"openai:qwen3:8b@{HERE}", "qwen3:8b", HERE),
        (f"openai:org/model@20240620@{HERE}", "org/model@20240620", HERE),
        ("openai:m@HTTP://Example.org/v1", "m", "http://example.org/v1"),
        ("openai:m@https://Example.org:443/v1/", "m", "https://example.org/v1"),
        ("anthropic:claude@http://[::1]:80", "claude", "http://[::1]"),
        ("google:gemini", "gemini", "https://generativelanguage.googleapis.com"),
    ],
)
def test_a_name_says_which_model_and_where(name: str, model: str, address: str) -> None:
    named = parse_name(name)
    assert isinstance(named, Named)
    assert (named.model, named.address) == (model, address)


@pytest.mark.parametrize("place", ["127.0.0.1:8081/v1", "localhost", "//host/v1", "HTTP", "ftp://host/v1"])
@pytest.mark.parametrize("protocol", ["openai", "anthropic", "google"])
def test_an_address_without_a_scheme_is_refused_and_not_taken_for_a_part_of_the_name(protocol: str, place: str) -> None:
    with pytest.raises(DefinitionError, match=rf"has no scheme.*{protocol}:m@http://"):
        parse_name(f"{protocol}:m@{place}")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("http://", "is not an address; write http://HOST:PORT/v1"),
        ("http://ada:pw@host/v1", "has a name or a password in it"),
        ("http://host/v1?key=1", "leave the rest out"),
        ("http://host:port/v1", "is not an address"),
        ("http://[::1/v1", "is not an address"),
    ],
)
def test_what_is_no_address_is_refused(address: str, words: str) -> None:
    assert words in refusal(f"openai:m@{address}")
    assert "pw" not in refusal(f"openai:m@{address}")


def test_addresses_are_compared_in_one_way_of_writing() -> None:
    assert normal("HTTP://Host:80/v1//") == normal("http://host/v1") == "http://host/v1"


@pytest.mark.parametrize("name", ["openai:", "anthropic", "openai", "mistral:x", "rehearsal|", "|rehearsal", "a||b"])
def test_what_is_no_model_is_refused(name: str) -> None:
    assert "is not a model; write rehearsal, scripted:FILE, openai:NAME" in refusal(name)


@pytest.mark.parametrize("name", ["cassette:x,mode=play", "cassette:,mode=auto,model=rehearsal"])
def test_what_is_no_cassette_says_how_to_write_one(name: str) -> None:
    assert "write cassette:FILE,mode=record|replay|auto,model=MODEL" in refusal(name)


def test_a_chain_is_opened_model_by_model() -> None:
    assert isinstance(open_model(f"openai:a@{HERE}|rehearsal"), FallbackModel)
    assert isinstance(open_model(f"openai:a@{HERE}"), GatedModel)


def test_a_cassette_takes_all_that_follows_it() -> None:
    assert absolute_model("rehearsal|cassette:/c,model=rehearsal|scripted:/s") == (
        "rehearsal|cassette:/c,mode=auto,model=rehearsal|scripted:/s"
    )
    assert isinstance(open_model("cassette:/c,mode=record,model=rehearsal|rehearsal"), CassetteModel)


def test_a_cassette_that_only_replays_needs_no_key(tmp_path: Path) -> None:
    (tmp_path / "tape").write_text("")
    assert isinstance(open_model("cassette:tape,mode=replay,model=openai:gpt-5"), CassetteModel)
    assert refusal("cassette:tape,mode=auto,model=openai:gpt-5") == "openai:gpt-5 needs a key: set OPENAI_API_KEY"


@pytest.mark.parametrize(
    ("name", "unknown"),
    [
        ("rehearsal", []),
        ("openai:gpt-4o-mini", []),
        ("openai:nobody-knows-this|rehearsal", ["openai:nobody-knows-this"]),
        (f"cassette:/c,model=openai:gpt-4o-mini@{HERE}", [f"openai:gpt-4o-mini@{HERE}"]),
        (f"cassette:/c,mode=replay,model=openai:gpt-4o-mini@{HERE}", []),
    ],
)
def test_models_whose_price_nobody_knows_are_named(
    name: str, unknown: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    assert unpriced_models(name) == unknown


def test_a_name_means_the_same_from_another_folder(tmp_path: Path) -> None:
    assert absolute_model("cassette:c.jsonl,mode=record,model=scripted:s.json") == (
        f"cassette:{tmp_path / 'c.jsonl'},mode=record,model=scripted:{tmp_path / 's.json'}"
    )


def test_a_name_keeps_the_address_that_was_set_when_the_run_began(monkeypatch: pytest.MonkeyPatch) -> None:
    assert absolute_model("openai:m") == "openai:m"
    monkeypatch.setenv("OPENAI_BASE_URL", HERE)
    assert absolute_model("openai:m") == f"openai:m@{HERE}"


def test_a_level_stands_for_the_model_that_is_set_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings(tmp_path, f'[levels]\nsmart = "openai:a@{HERE}|rehearsal"\nfast = "rehearsal"')
    assert absolute_model("smart") == f"openai:a@{HERE}|rehearsal"
    monkeypatch.setenv("MOOTHALL_LEVEL_SMART", "rehearsal")
    assert absolute_model("smart|fast") == "rehearsal|rehearsal"


def test_levels_are_looked_up_when_they_are_used_and_those_that_are_not_set_are_base(tmp_path: Path) -> None:
    settings(tmp_path, f'[levels]\nbase = "openai:a@{HERE}"\nsmart = "openai:b@{HERE}|rehearsal"')
    assert absolute_model("levels") == "levels"
    assert unpriced_models("levels") == [f"openai:a@{HERE}", f"openai:b@{HERE}"]
    assert isinstance(open_model("levels"), GatedModel)


def test_a_level_without_a_model_says_where_to_set_it(tmp_path: Path) -> None:
    assert "no model is set for the level 'base'" in refusal("base")


@pytest.mark.parametrize("value", ["smart", "rehearsal|smart", "cassette:/c,model=smart", "cassette:/c,model=a|smart"])
def test_a_level_stands_for_no_level(tmp_path: Path, value: str) -> None:
    settings(tmp_path, f'[levels]\nbase = "{value}"\nsmart = "{value}"')
    assert "the level 'base' is set to the level 'smart'; name a model" in refusal("base")


def test_models_at_one_address_share_a_gate_and_connections() -> None:
    one, other, third = (open_model(f"openai:{name}@{HERE}") for name in ("a", "a", "b"))
    assert isinstance(one, GatedModel)
    assert isinstance(other, GatedModel)
    assert isinstance(third, GatedModel)
    assert one._gate is other._gate is third._gate
    assert one._model is other._model
    assert one._model is not third._model


def test_a_cassette_replays_a_run_without_a_model(tmp_path: Path) -> None:
    tape = f"cassette:{tmp_path / 'tape.jsonl'}"
    first = run(WRITING, Task("tides"), model=f"{tape},mode=record,model=rehearsal", store="memory", run_id="r")
    again = run(WRITING, Task("tides"), model=tape, store="memory", run_id="another")
    assert (again.result, again.states, again.spent) == (first.result, first.states, first.spent)
    lines = (tmp_path / "tape.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["asked"]["model"] for line in lines] == ["rehearsal"] * len(lines)


@pytest.mark.anyio
async def test_a_run_that_is_started_beside_is_refused_at_once_where_its_library_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    missing = replace(PROVIDERS["anthropic"], library="moothall_package_that_is_not_there")
    monkeypatch.setitem(PROVIDERS, "anthropic", missing)
    async with Moothall("memory") as hall:
        with pytest.raises(DefinitionError, match=r"pip install 'moothall\[models\]'"):
            await hall.start(WRITING, Task("tides"), model=f"anthropic:m@{HERE}")
        assert await hall.store.runs() == []
