"""Where things live and what is set. Only this floor reads the environment."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from moothall.agents.ports import Model
from moothall.errors import DefinitionError
from moothall.models.rehearsal import RehearsalModel
from moothall.models.scripted import ScriptedModel
from moothall.runtime.ports import Store
from moothall.stores.memory import MemoryStore
from moothall.stores.sqlite import SqliteStore

DURABILITIES = ("full", "normal")


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


def named_audit_key() -> str:
    """The file that MOOTHALL_AUDIT_KEY names; "" where it names none."""
    return os.environ.get("MOOTHALL_AUDIT_KEY", "")


def audit_key_file() -> Path:
    """Where the key is that seals are made with, or will be."""
    return Path(named_audit_key() or state_directory() / "audit.key")


def audit_key() -> bytes:
    """The key that seals are made with: the file that MOOTHALL_AUDIT_KEY names, else the one in the state directory.

    It is made where there is none. Where that cannot be done there is no key, and audits cannot tell.
    """
    file = audit_key_file()
    try:
        return file.read_bytes()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise DefinitionError(f"the audit key cannot be read: {error}") from error
    if named_audit_key():
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
