"""Where things live and what is set, and what is said where a setting is none."""

import json
from pathlib import Path

import pytest

from moothall.app.config.models import absolute_model, open_model
from moothall.app.config.settings import (
    AddressSettings,
    Settings,
    Sourced,
    cleaner,
    durability_of,
    hook_setting,
    known_secrets,
    model_setting,
    open_store,
    setting,
    settings,
    state_directory,
    strict_cleaner,
)
from moothall.errors import DefinitionError
from moothall.models.rehearsal import RehearsalModel
from moothall.models.scripted import ScriptedModel
from moothall.stores.memory import MemoryStore
from moothall.stores.sqlite import SqliteStore


def test_runs_live_in_the_folder_that_the_user_names(tmp_path: Path) -> None:
    assert state_directory() == tmp_path / "home"


def test_without_a_name_runs_live_in_the_state_directory_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MOOTHALL_HOME")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_directory() == tmp_path / "moothall"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_directory() == tmp_path / ".local" / "state" / "moothall"


def test_the_default_store_is_a_file_in_the_state_directory(tmp_path: Path) -> None:
    open_store().close()
    assert (tmp_path / "home" / "moothall.db").is_file()


def test_an_address_goes_before_the_environment_and_the_environment_before_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOOTHALL_STORE", f"sqlite:{tmp_path / 'set.db'}")
    open_store().close()
    open_store(f"sqlite:{tmp_path / 'given.db'}").close()
    assert {file.name for file in tmp_path.iterdir()} >= {"set.db", "given.db"}
    assert not (tmp_path / "home" / "moothall.db").exists()


def test_a_store_may_be_in_memory() -> None:
    assert isinstance(open_store("memory"), MemoryStore)


@pytest.mark.parametrize("address", ["sqlite", "sqlite:", "mysql://x", "runs.db", "/tmp/runs.db"])
def test_what_is_no_store_says_how_to_write_one(address: str) -> None:
    with pytest.raises(DefinitionError) as error:
        open_store(address)
    assert str(error.value) == f"{address!r} is not a store; write sqlite:FILE, postgresql://… or memory"


def test_a_store_may_lie_at_a_path_with_a_colon(tmp_path: Path) -> None:
    store = open_store(f"sqlite:{tmp_path}/a:b.db")
    assert isinstance(store, SqliteStore)
    store.close()
    assert (tmp_path / "a:b.db").is_file()


@pytest.mark.parametrize("name", ["gpt", "scripted", "scripted:", "", "Rehearsal"])
def test_what_is_no_model_says_how_to_write_one(name: str) -> None:
    with pytest.raises(DefinitionError) as error:
        open_model(name)
    assert str(error.value).startswith(f"{name!r} is not a model; write rehearsal, scripted:FILE, openai:NAME")


def test_models_are_opened_by_name(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text(json.dumps({"writer": ["hello"]}))
    assert isinstance(open_model("rehearsal"), RehearsalModel)
    assert isinstance(open_model(f"scripted:{tmp_path / 'script.json'},log={tmp_path / 'log'}"), ScriptedModel)


def test_a_script_means_the_same_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute_model("scripted:a.json,log=b.log") == f"scripted:{tmp_path / 'a.json'},log={tmp_path / 'b.log'}"
    assert absolute_model("scripted:a.json") == f"scripted:{tmp_path / 'a.json'}"
    assert absolute_model("rehearsal") == "rehearsal"


def test_the_model_may_be_set_once_for_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert model_setting() == ""
    monkeypatch.setenv("MOOTHALL_MODEL", "rehearsal")
    assert model_setting() == "rehearsal"


def test_commits_are_kept_fully_unless_something_else_is_named_or_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert durability_of() == "full"
    monkeypatch.setenv("MOOTHALL_DURABILITY", "normal")
    assert durability_of() == "normal"
    assert durability_of("full") == "full"


@pytest.mark.parametrize("name", ["off", "Normal", "none"])
def test_what_is_no_durability_says_how_to_write_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOOTHALL_DURABILITY", name)
    with pytest.raises(DefinitionError) as error:
        open_store()
    assert str(error.value) == f"{name!r} is not a durability; write full or normal"


def test_the_hook_may_be_set_once_for_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert hook_setting() == ""
    monkeypatch.setenv("MOOTHALL_ON_WAIT", "http://127.0.0.1/")
    assert hook_setting() == "http://127.0.0.1/"


# The settings file


def write(home: Path, text: str) -> Path:
    (home / "home").mkdir(exist_ok=True)
    file = home / "home" / "settings.toml"
    file.write_text(text)
    return file


def test_a_setting_comes_from_the_file_then_from_the_environment_then_from_a_flag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, 'model = "rehearsal"\ndurability = "normal"\nstore = "memory"\non_wait = "true"')
    assert setting("model") == Sourced("rehearsal", "settings.toml")
    assert (model_setting(), durability_of(), hook_setting()) == ("rehearsal", "normal", "true")
    assert isinstance(open_store(), MemoryStore)
    monkeypatch.setenv("MOOTHALL_MODEL", "smart")
    monkeypatch.setenv("MOOTHALL_DURABILITY", "full")
    assert setting("model") == Sourced("smart", "MOOTHALL_MODEL")
    assert durability_of() == "full"
    assert durability_of("normal") == "normal"


def test_without_a_file_nothing_is_set() -> None:
    assert settings() == Settings()
    assert setting("model") == Sourced()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("model = ", "Invalid value"),
        ("modell = 'x'", "settings: unknown field 'modell'; known are model, store"),
        ("model = 3", "settings.model: expected a text, got 3"),
        ("model = 1979-05-27", "settings.model: expected a text"),
        ("[levels]\nclever = 'x'", "there is no level 'clever'; there are base, smart, fast"),
        ("[addresses.'http://x']\nkey = 3", "settings.addresses.http://x.key: expected a text"),
        ("[addresses.'http://x']\nkey = 'a'\nkey_from = 'B'", "give `key` or `key_from`, not both"),
        ("[addresses.'http://x']\ntimeout = 0", "timeout, at_once, failures and rest are above 0"),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_place(tmp_path: Path, text: str, complaint: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(DefinitionError) as error:
        settings()
    assert str(error.value).startswith(f"{file}: ")
    assert complaint in str(error.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = write(tmp_path, "")
    file.write_bytes(b"\xff")
    with pytest.raises(DefinitionError, match=r"settings\.toml cannot be read"):
        settings()


def test_a_key_is_not_shown() -> None:
    assert "secret" not in repr(AddressSettings("secret"))
    assert "secret" not in repr(Settings(addresses={"http://x": AddressSettings("secret")}))


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("OPENAI_API_KEY", True),
        ("GITHUB_TOKEN", True),
        ("CRM_PASSWORD", True),
        ("PASSWORD", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("AWS_ACCESS_KEY_ID", True),
        ("TOKENIZER", False),
        ("MY_TOKENS", False),
        ("KEYBOARD", False),
        ("MONKEY", False),
    ],
)
def test_variables_whose_names_say_so_are_secrets(name: str, is_secret: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "a-word-of-entry")
    assert cleaner()("it is a-word-of-entry") == (f"it is [secret:{name}]" if is_secret else "it is a-word-of-entry")


def test_more_variables_may_be_named_and_others_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VAULT", "a-word-of-entry")
    monkeypatch.setenv("DB_PASSWORD", "postgres")
    monkeypatch.setenv("MOOTHALL_SECRETS", "VAULT, -DB_PASSWORD")
    assert strict_cleaner()("a-word-of-entry to postgres") == "[secret:VAULT] to postgres"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("1234", "it has fewer than 8 characters, and would be found in harmless texts"),
        (None, "there is no such variable"),
    ],
)
def test_a_named_secret_that_cannot_be_replaced_is_refused(
    value: str | None, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOOTHALL_SECRETS", "PIN")
    if value is not None:
        monkeypatch.setenv("PIN", value)
    with pytest.raises(DefinitionError) as error:
        strict_cleaner()
    assert str(error.value) == f"MOOTHALL_SECRETS: PIN: {why}; set another value, or take the name off the list"
    assert known_secrets().refused == {"PIN": why}


def test_a_variable_that_only_looks_like_a_secret_may_be_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI_TOKEN", "1")
    monkeypatch.setenv("EMPTY_TOKEN", "")
    assert strict_cleaner()("1") == "1"
    assert {"CI_TOKEN", "EMPTY_TOKEN"} & known_secrets().passed_over.keys() == {"CI_TOKEN"}
