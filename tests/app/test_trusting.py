"""A project's settings count when the user has trusted them, byte for byte and in their place, and not before."""

import json
import os
import shutil
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from moothall.app.config.models import absolute_model, address_settings
from moothall.app.config.project import LARGEST, read_project
from moothall.app.config.settings import (
    Settings,
    Sourced,
    hook_setting,
    known_secrets,
    level_model,
    project,
    project_settings,
    setting,
    settings,
    state_directory,
    store_address,
)
from moothall.app.config.trust import Trusted, all_trusted, forget, trust
from moothall.errors import DefinitionError, Refused

ADDRESS = "http://gpu.example/v1"
WHOLE = f"""
model = "fast"
store = "sqlite:/elsewhere/runs.db"
durability = "normal"
on_wait = "touch pwned"
[levels]
fast = "openai:m@{ADDRESS}"
[addresses."{ADDRESS}"]
key_from = "A_SECRET"
timeout = 7
"""
Write = Callable[[str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes the file of a project in whose folder we are."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def written(text: str | bytes) -> Path:
        (folder / "moothall.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
        return folder / "moothall.toml"

    return written


def why_unused() -> str:
    found = project()
    assert found is not None
    return found.unused


def test_what_is_not_trusted_has_no_effect_whatever(write: Write) -> None:
    before = (settings(), store_address(), known_secrets().secrets)
    write(WHOLE)
    assert (settings(), store_address(), known_secrets().secrets) == before
    assert (settings(), hook_setting(), level_model("fast")) == (Settings(), "", Sourced())
    assert address_settings(ADDRESS).key_from == ""
    assert why_unused() == "it is not trusted; read it, then run `moot trust`"


def test_what_is_trusted_counts_and_says_where_it_comes_from(write: Write) -> None:
    file = write(WHOLE)
    trusted, found = trust()
    assert (trusted.file, found.on_wait) == (str(file), "touch pwned")
    assert setting("model") == Sourced("fast", "moothall.toml")
    assert absolute_model("fast") == f"openai:m@{ADDRESS}"
    assert (address_settings(ADDRESS).key_from, address_settings(ADDRESS).timeout) == ("A_SECRET", 7)
    assert store_address() == "sqlite:/elsewhere/runs.db"
    assert why_unused() == ""


@pytest.mark.parametrize("change", ["\n", "#", ' model = "rehearsal"'])
def test_what_changed_since_counts_no_longer(write: Write, change: str) -> None:
    write(WHOLE)
    trust()
    write(WHOLE + change)
    assert settings() == Settings()
    assert why_unused() == "it has changed since it was trusted; read it, then run `moot trust`"
    write(WHOLE)
    assert settings().model == "fast"


def test_the_users_file_goes_below_the_projects_and_the_environment_above(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    state_directory().mkdir()
    (state_directory() / "settings.toml").write_text(
        'model = "smart"\non_wait = "mine"\n[levels]\nsmart = "rehearsal"\nfast = "rehearsal"'
    )
    write('model = "fast"\n[levels]\nfast = "openai:m"')
    assert (setting("model").value, level_model("fast").value) == ("smart", "rehearsal")
    trust()
    assert (setting("model").value, level_model("fast").value) == ("fast", "openai:m")
    assert (setting("on_wait"), level_model("smart")) == (
        Sourced("mine", "settings.toml"),
        Sourced("rehearsal", "settings.toml"),
    )
    assert settings().levels == {"smart": "rehearsal", "fast": "openai:m"}
    monkeypatch.setenv("MOOTHALL_MODEL", "rehearsal")
    assert setting("model") == Sourced("rehearsal", "MOOTHALL_MODEL")


def test_a_key_of_the_user_stays_with_its_address(write: Write) -> None:
    state_directory().mkdir()
    (state_directory() / "settings.toml").write_text(f'[addresses."{ADDRESS}"]\nkey = "the-users-own-key"')
    write(f'[addresses."{ADDRESS}"]\ntimeout = 7\n[addresses."http://other.example/v1"]\ntimeout = 7')
    trust()
    assert (address_settings(ADDRESS).key, address_settings(ADDRESS).timeout) == ("the-users-own-key", 7)
    other = address_settings("http://other.example/v1")
    assert (other.key, other.key_from, other.timeout) == ("", "", 7)


def test_a_projects_file_has_no_keys_of_its_own(write: Write) -> None:
    write(f'[addresses."{ADDRESS}"]\nkey = "a-key-for-everybody"')
    with pytest.raises(DefinitionError, match="a project's file has no `key`; write `key_from`"):
        trust()


# Where the file is


def test_the_file_is_found_above_up_to_the_root_of_the_repository(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(WHOLE)
    below = file.parent / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert project() is None
    (file.parent / ".git").mkdir()
    assert read_project(file, state_directory()) == project()
    (below.parent / ".git").write_text("gitdir: elsewhere")
    assert project() is None


def test_a_folder_that_is_gone_has_no_project(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert project() is None


def test_the_same_bytes_in_another_place_are_not_trusted(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(WHOLE)
    trust()
    shutil.copytree(file.parent, file.parent.parent / "copy")
    monkeypatch.chdir(file.parent.parent / "copy")
    assert settings() == Settings()


def test_a_file_may_be_trusted_by_its_name_its_folder_or_a_link_to_that(write: Write, tmp_path: Path) -> None:
    file = write(WHOLE)
    (tmp_path / "link").symlink_to(file.parent)
    named = {trust(str(one))[0].file for one in (file, file.parent, tmp_path / "link", "moothall.toml", ".")}
    assert named == {str(file)}
    with pytest.raises(DefinitionError, match=r"only files that are called moothall\.toml are used"):
        trust(str(tmp_path / "other.toml"))


# What is hashed is what is parsed


def test_a_file_that_is_a_link_counts_by_what_it_points_to(write: Write, tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_text('model = "rehearsal"')
    bad.write_text(WHOLE)
    link = write("")
    link.unlink()
    link.symlink_to(good)
    trust()
    assert settings().model == "rehearsal"
    link.unlink()
    link.symlink_to(bad)
    assert settings() == Settings()


def test_a_file_that_is_swapped_all_the_time_is_either_what_was_trusted_or_nothing(write: Write) -> None:
    file = write('model = "rehearsal"')
    trust()
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            for text in (WHOLE, 'model = "rehearsal"'):
                (file.parent / "next").write_text(text)
                os.replace(file.parent / "next", file)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        seen = {settings().model for _ in range(2_000)}
    finally:
        over.set()
        swapping.join()
    assert seen <= {"", "rehearsal"}


def test_what_is_parsed_are_the_bytes_that_were_hashed(write: Write) -> None:
    file = write('model = "rehearsal"')
    trust()
    found = read_project(file, state_directory())
    write(WHOLE)
    assert (found.unused, project_settings(found).model) == ("", "rehearsal")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfe", "codec can't decode"),
        (b"model = ", "Invalid value"),
        (b'modle = "x"', "unknown field 'modle'"),
        (b"[levels]\nhuge = 'x'", "there is no level 'huge'"),
        (b"a = " + b"[" * 5_000, r"moothall\.toml: "),
    ],
    ids=["not UTF-8", "no TOML", "an unknown field", "an unknown level", "deep"],
)
def test_what_could_not_be_used_cannot_be_trusted(write: Write, content: bytes, words: str) -> None:
    write(content)
    assert settings() == Settings()
    with pytest.raises(DefinitionError, match=words):
        trust()
    assert all_trusted() == ()


def test_a_huge_file_is_not_read(write: Write) -> None:
    write(b"#" * (LARGEST + 1))
    assert (settings(), why_unused()) == (Settings(), "it is larger than 64 KB")
    with pytest.raises(DefinitionError, match="larger than 64 KB"):
        trust()
    write(b"#" * LARGEST)
    trust()


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "loop", "dangling"])
def test_what_is_no_file_is_not_waited_for(write: Write, kind: str) -> None:
    file = write("")
    file.unlink()
    match kind:
        case "pipe":
            os.mkfifo(file)
        case "folder":
            file.mkdir()
        case "device":
            file.symlink_to("/dev/zero")
        case "loop":
            file.symlink_to(file)
        case _:
            file.symlink_to(file.parent / "nothing")
    assert settings() == Settings()
    assert why_unused().startswith(("it is not a file", "it cannot be read: "))
    with pytest.raises(DefinitionError):
        trust(str(file))


# What is remembered


def test_what_is_trusted_is_listed_and_forgotten(write: Write) -> None:
    file = write(WHOLE)
    trusted, _ = trust()
    assert all_trusted() == (Trusted(str(file), trusted.digest),)
    assert forget() == str(file)
    assert (all_trusted(), settings()) == ((), Settings())
    with pytest.raises(Refused, match="was not trusted before"):
        forget()


def test_a_file_that_is_gone_is_listed_as_such_and_can_be_forgotten(write: Write) -> None:
    file = write(WHOLE)
    trust()
    file.unlink()
    [listed] = all_trusted()
    assert listed.unused == "it cannot be read: No such file or directory"
    forget(str(file))
    assert all_trusted() == ()


def test_only_the_user_may_read_what_is_trusted(write: Write) -> None:
    write(WHOLE)
    old = os.umask(0)
    try:
        trust()
    finally:
        os.umask(old)
    assert stat.S_IMODE((state_directory() / "trusted.json").stat().st_mode) == 0o600
    assert [one.name for one in state_directory().iterdir()] == ["trusted.json"]


@pytest.mark.parametrize("damage", ["", "[]", '{"a": 1}', "{", '{"a": {}}'])
def test_where_the_memory_is_damaged_nothing_is_trusted(write: Write, damage: str) -> None:
    write(WHOLE)
    trust()
    (state_directory() / "trusted.json").write_text(damage)
    assert settings() == Settings()
    assert "delete it, and trust again what you trust" in why_unused()
    with pytest.raises(DefinitionError, match="cannot be read"):
        trust()


def test_a_hash_that_only_begins_alike_is_another(write: Write) -> None:
    file = write(WHOLE)
    trusted, _ = trust()
    (state_directory() / "trusted.json").write_text(json.dumps({str(file): trusted.digest[:8]}))
    assert settings() == Settings()
