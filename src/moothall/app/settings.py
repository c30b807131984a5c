"""Where things live and what is set. Only this floor reads the environment."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from moothall.agents.ports import Model
from moothall.agents.secrets import Cleaner, Secret, unfit
from moothall.errors import DefinitionError
from moothall.kernel.frozen import Frozen
from moothall.models.rehearsal import RehearsalModel
from moothall.models.scripted import ScriptedModel
from moothall.runtime.ports import Store
from moothall.stores.memory import MemoryStore
from moothall.stores.sqlite import SqliteStore

DURABILITIES = ("full", "normal")
SECRET_ENDINGS = (
    "API_KEY",
    "APIKEY",
    "TOKEN",
    "SECRET",
    "SECRET_KEY",
    "SECRET_ACCESS_KEY",
    "PRIVATE_KEY",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
)
"""What the names of environment variables with secrets end with, or are."""
SECRET_NAMES = frozenset(("AWS_ACCESS_KEY_ID", "AZURE_OPENAI_KEY", "MYSQL_PWD", "PGPASSWORD"))
"""And those that are known besides."""


def state_directory() -> Path:
    """The folder of the store: MOOTHALL_HOME, else the user's state directory."""
    if home := os.environ.get("MOOTHALL_HOME"):
        return Path(home)
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "moothall"


def store_address(address: str | None = None) -> str:
    """The address of a store: the one that is named, the one that is set, or the file in the state directory."""
    return address or os.environ.get("MOOTHALL_STORE") or f"sqlite:{state_directory() / 'moothall.db'}"


def store_file(address: str | None = None) -> Path | None:
    """The file of a store by its address; None where the store is in memory."""
    address = store_address(address)
    kind, _, rest = address.partition(":")
    if kind == "memory":
        return None
    if kind == "sqlite" and rest:
        return Path(rest)
    raise DefinitionError(f"{address!r} is no store; write sqlite:FILE or memory")


def open_store(address: str | None = None, durability: str | None = None) -> Store:
    """A store by its address: `sqlite:FILE` or `memory`."""
    file = store_file(address)
    if file is None:
        return MemoryStore()
    return SqliteStore(file, audit_key(), durability=durability_of(durability), anchors=anchors_directory())


def anchors_directory() -> Path:
    """The folder of the anchors: MOOTHALL_ANCHORS, else beside the stores in the state directory."""
    return Path(os.environ.get("MOOTHALL_ANCHORS") or state_directory() / "anchors")


def audit_key() -> bytes:
    """The key that seals are made with: the file that MOOTHALL_AUDIT_KEY names, else the one in the state directory.

    It is made where there is none. Where that cannot be done there is no key, and audits cannot tell.
    """
    named = os.environ.get("MOOTHALL_AUDIT_KEY")
    file = Path(named) if named else state_directory() / "audit.key"
    try:
        return file.read_bytes()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise DefinitionError(f"the audit key cannot be read: {error}") from error
    if named:
        raise DefinitionError(f"the audit key {file} is not there; MOOTHALL_AUDIT_KEY names it")
    return _new_key(file)


def _new_key(file: Path) -> bytes:
    """A new key, or the one that another process made at the same moment."""
    new = file.with_name(f"{file.name}-{secrets.token_hex(4)}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        new.touch(mode=0o600)
        new.write_bytes(secrets.token_bytes(32))
        with suppress(FileExistsError):
            os.link(new, file)
        new.unlink()
        return file.read_bytes()
    except OSError:
        return b""


def durability_of(named: str | None = None) -> str:
    """How safely commits are kept: as it is named, as it is set, or `full`."""
    durability = named or os.environ.get("MOOTHALL_DURABILITY") or DURABILITIES[0]
    if durability not in DURABILITIES:
        raise DefinitionError(f"{durability!r} is no durability; write {' or '.join(DURABILITIES)}")
    return durability


def configured_hook() -> str:
    """What to call when a run waits, where nothing is named; "" where nothing is configured."""
    return os.environ.get("MOOTHALL_ON_WAIT", "")


def open_model(name: str) -> Model:
    """A model by its name: `rehearsal`, or `scripted:FILE` with `,log=LOG` behind it where calls are to be counted."""
    if name == "rehearsal":
        return RehearsalModel()
    script, log = _script(name)
    return ScriptedModel.from_file(script, log)


def absolute_model(name: str) -> str:
    """A model's name that means the same from another folder."""
    if not name.startswith("scripted:"):
        return name
    script, log = _script(name)
    return f"scripted:{script.resolve()}" + (f",log={log.resolve()}" if log is not None else "")


def _script(name: str) -> tuple[Path, Path | None]:
    kind, _, rest = name.partition(":")
    file, _, log = rest.partition(",log=")
    if kind != "scripted" or not file:
        raise DefinitionError(f"{name!r} is no model; write rehearsal or scripted:FILE")
    return Path(file), Path(log) if log else None


def configured_model() -> str:
    """The model to use where none is named; "" where nothing is configured."""
    return os.environ.get("MOOTHALL_MODEL", "")


class Registered(Frozen):
    """The secrets that are known here, and why other variables are none: those named, and those that look like it."""

    secrets: tuple[Secret, ...]
    refused: dict[str, str]
    passed_over: dict[str, str]


def registered() -> Registered:
    """The secrets of the environment: variables whose names say so, and those in MOOTHALL_SECRETS (`-NAME`: not)."""
    named = [name.strip() for name in os.environ.get("MOOTHALL_SECRETS", "").split(",") if name.strip()]
    chosen = {name for name in named if not name.startswith("-")}
    found = {name for name in os.environ if _is_telling(name)} - {name[1:] for name in named if name.startswith("-")}
    unfits = {name: _unfit(name) for name in sorted(found | chosen)}
    return Registered(
        tuple(Secret(name, os.environ[name].strip()) for name, why in unfits.items() if not why),
        {name: why for name, why in unfits.items() if why and name in chosen},
        {name: why for name, why in unfits.items() if why and name not in chosen and os.environ[name]},
    )


def _is_telling(name: str) -> bool:
    ends = (name == one or name.endswith(f"_{one}") for one in SECRET_ENDINGS)
    return name in SECRET_NAMES or any(ends)


def _unfit(name: str) -> str:
    if name not in os.environ:
        return "there is no such variable"
    return "its name has brackets" if set("[]") & set(name) else unfit(os.environ[name].strip())


def cleaner() -> Cleaner:
    """Replaces the secrets that are registered, and the keys that are known by their format."""
    return _cleaner(registered().secrets)


def checked_cleaner() -> Cleaner:
    """The same for runs; a secret that was named and cannot be replaced is refused."""
    found = registered()
    for name, why in found.refused.items():
        raise DefinitionError(f"MOOTHALL_SECRETS: {name}: {why}; set another value, or take the name off the list")
    return _cleaner(found.secrets)


@lru_cache(maxsize=8)
def _cleaner(secrets: tuple[Secret, ...]) -> Cleaner:
    return Cleaner(secrets)
