"""Where things live and what is set. Only this floor reads the environment.

A setting is taken from `settings.toml` in the state directory, from the project's `moothall.toml` if that is trusted,
from the environment, or from a flag; the later wins. Both files have the same fields, but a project's has no keys.
For runs the files are read once as long as a store is open (`ReadSettings`), and the environment each time.

    model = "smart"                                # the model of all agents that are not functions
    store = "sqlite:/var/lib/runs.db"              # or postgresql://USER@HOST/DATABASE
    durability = "full"
    on_wait = "notify-send"
    prune = "30"                                   # workers delete runs that ended so many days ago
    telemetry = "spans,counters:9464,log"          # who else is told what goes on
    daily_usd = 20                                 # what all runs of a user may spend in a day; the user's file only

    [policies]                                     # whether tools are called: allow, ask or deny
    execute_terminal = "allow"
    "reviewer:write_file" = "deny"                 # of one role

    [levels]                                       # names for models: base, smart, fast
    smart = "anthropic:claude-opus-4-1|openai:gpt-5"

    [addresses."http://gpu.example:8000/v1"]       # what belongs to one address, and to no other
    key_from = "GPU_KEY"                           # the variable that holds its key; or key = "…"
    timeout = 60                                   # seconds for one call
    at_once = 4                                    # calls at the same time
    failures = 5                                   # so many in a row, and it is left alone
    rest = 30                                      # for so many seconds
    per_minute = 60                                # calls that may begin within a minute

    [servers.search]                               # a server of tools, by the Model Context Protocol
    url = "https://search.example/mcp"             # or command = ["search-server", "--stdio"]
    key_from = "SEARCH_KEY"                        # env_from = ["NAME"] for a command
    policy = "allow"                               # of all its tools; ask where nothing is said
    repeats = "pure"                               # at-most-once where nothing is said
"""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import field, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path

from moothall.agents.secrets import Cleaner, Secret, unfit
from moothall.agents.toolserver import Toolserver
from moothall.agents.workspace import Policy
from moothall.app.config.project import Project, nearest, read_project
from moothall.drawing.text import printable
from moothall.errors import DefinitionError, Refused
from moothall.kernel.codec import decode
from moothall.kernel.frozen import Frozen
from moothall.runtime.ports import Store
from moothall.stores.anchors import make_folder
from moothall.stores.connections import is_address, password_of, public_address
from moothall.stores.memory import MemoryStore
from moothall.stores.postgresql import PostgresStore
from moothall.stores.sqlite import SqliteStore

DURABILITIES = ("full", "normal")
STORES = "write sqlite:FILE, postgresql://… or memory"
LEVELS = ("base", "smart", "fast")
VARIABLES = {
    "model": "MOOTHALL_MODEL",
    "store": "MOOTHALL_STORE",
    "durability": "MOOTHALL_DURABILITY",
    "on_wait": "MOOTHALL_ON_WAIT",
    "telemetry": "MOOTHALL_TELEMETRY",
    "mirror": "MOOTHALL_MIRROR",
    "prune": "MOOTHALL_PRUNE",
}


class AddressSettings(Frozen):
    """What belongs to the address of a provider."""

    key: str = ""
    key_from: str = ""
    timeout: float = 300.0
    at_once: int = 16
    failures: int = 5
    rest: float = 30.0
    per_minute: int = 0

    def __post_init__(self) -> None:
        if self.key and self.key_from:
            raise ValueError("give `key` or `key_from`, not both")
        if min(self.timeout, self.at_once, self.failures, self.rest) <= 0:
            raise ValueError("timeout, at_once, failures and rest are above 0")
        if self.per_minute < 0:
            raise ValueError("per_minute is 0 or above")

    def __repr__(self) -> str:
        return f"AddressSettings(timeout={self.timeout}, at_once={self.at_once})"


class Settings(Frozen):
    """What stands in the settings file."""

    model: str = ""
    store: str = ""
    durability: str = ""
    on_wait: str = ""
    telemetry: str = ""
    mirror: str = ""
    prune: str = ""
    daily_usd: float | None = None
    policies: Mapping[str, Policy] = field(default_factory=dict)
    levels: Mapping[str, str] = field(default_factory=dict)
    addresses: Mapping[str, AddressSettings] = field(default_factory=dict)
    servers: Mapping[str, Toolserver] = field(default_factory=dict)


NO_SETTINGS = Settings()


class Sourced(Frozen):
    """A setting and where it was found; "" where it is nowhere."""

    value: str = ""
    origin: str = ""


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
    named = os.environ.get
    return _state_directory(named("MOOTHALL_HOME", ""), named("XDG_STATE_HOME", ""), named("HOME", ""))


@lru_cache(maxsize=8)
def _state_directory(own: str, state: str, user: str) -> Path:
    if own:
        return Path(own)
    return Path(state or (Path(user) if user else Path.home()) / ".local" / "state") / "moothall"


def settings_file() -> Path:
    """The file of settings, whether it is there or not."""
    return _settings_in(state_directory())


@lru_cache(maxsize=8)
def _settings_in(folder: Path) -> Path:
    return folder / "settings.toml"


class ReadSettings:
    """What stands in the files of settings, read once: when somebody first asks for it.

    A program that brings settings of its own reads no file.
    """

    def __init__(self, given: Settings | None = None) -> None:
        self._given = given

    @cached_property
    def own(self) -> Settings:
        """What stands in the user's file; mistakes name the file and the place in it."""
        return _read_own() if self._given is None else self._given

    @cached_property
    def project(self) -> Project | None:
        """The file of the project that the current folder belongs to, trusted or not."""
        file = nearest() if self._given is None else None
        return None if file is None else read_project(file, state_directory())

    @cached_property
    def settings(self) -> Settings:
        """What stands in the user's file and, over it, in the project's if it is trusted."""
        found = self.project
        return self.own if found is None or found.unused else _over(self.own, project_settings(found))


_files: ContextVar[ReadSettings | None] = ContextVar("files", default=None)


@contextmanager
def reading_once(files: ReadSettings | None = None) -> Iterator[ReadSettings]:
    """Meanwhile the settings are those of these files, which are read once."""
    known = files or _files.get() or ReadSettings()
    token = _files.set(known)
    try:
        yield known
    finally:
        _files.reset(token)


def current_files() -> ReadSettings:
    """The files that count now: those of the command or program that works, else as they are on the disk."""
    return _files.get() or ReadSettings()


def project() -> Project | None:
    """The file of the project that the current folder belongs to, trusted or not."""
    return current_files().project


def settings() -> Settings:
    """What stands in the user's file and, over it, in the project's if it is trusted."""
    return current_files().settings


def own_settings() -> Settings:
    """What stands in the user's file."""
    return current_files().own


def _read_own() -> Settings:
    file = settings_file()
    try:
        os.lstat(file)
    except FileNotFoundError:
        return NO_SETTINGS
    except OSError:  # whoever reads it says why not
        pass
    try:
        content = file.read_bytes()
    except OSError as error:
        raise DefinitionError(f"{file} cannot be read: {error}") from error
    return _read(content, file)


def project_settings(project: Project) -> Settings:
    """What a project's file says. It has no keys: it is not the user's alone, and a key is."""
    found = _read(project.content, project.file)
    if found.daily_usd is not None:
        raise DefinitionError(f"{project.file}: a project's file has no `daily_usd`; write it in your settings.toml")
    if address := next((address for address, bound in found.addresses.items() if bound.key), ""):
        raise DefinitionError(f"{project.file}: {address}: a project's file has no `key`; write `key_from`")
    return found


def _read(content: bytes, file: Path) -> Settings:
    import tomllib  # most have no such file

    try:
        found = decode(Settings, tomllib.loads(content.decode()), "settings")
    except UnicodeDecodeError as error:
        raise DefinitionError(f"{file} cannot be read: {error}") from error
    except RecursionError as error:
        raise DefinitionError(f"{file}: it is nested too deeply") from error
    except (ValueError, Refused) as error:
        raise DefinitionError(f"{file}: {error}") from error
    if unknown := sorted(found.levels.keys() - set(LEVELS)):
        raise DefinitionError(f"{file}: there is no level {unknown[0]!r}; there are {', '.join(LEVELS)}")
    return found


def _over(own: Settings, project: Settings) -> Settings:
    """The user's settings with the project's over them. The key of an address stays, unless the project names one."""
    said = {name: value for name in VARIABLES if (value := getattr(project, name))}
    addresses = dict(own.addresses)
    for address, theirs in project.addresses.items():
        mine = own.addresses.get(address, AddressSettings())
        keeps = not theirs.key_from
        addresses[address] = replace(theirs, key=mine.key, key_from=mine.key_from) if keeps else theirs
    levels, policies = {**own.levels, **project.levels}, {**own.policies, **project.policies}
    servers = {**own.servers, **project.servers}
    return replace(own, **said, levels=levels, policies=policies, addresses=addresses, servers=servers)


def _value(name: str) -> str:
    """One setting: of the environment, else of the files."""
    return os.environ.get(VARIABLES[name]) or getattr(settings(), name)


def setting(name: str) -> Sourced:
    """One setting, and where it was found: in the environment, else in a file."""
    return _from_variable(VARIABLES[name], lambda found: str(getattr(found, name)))


def level_model(name: str) -> Sourced:
    """The model of a level, and where it was found."""
    return _from_variable(f"MOOTHALL_LEVEL_{name.upper()}", lambda found: found.levels.get(name, ""))


def _from_variable(variable: str, picked: Callable[[Settings], str]) -> Sourced:
    if value := os.environ.get(variable):
        return Sourced(value, variable)
    files = current_files()
    found = files.project
    if found is not None and not found.unused and (value := picked(project_settings(found))):
        return Sourced(value, found.file.name)
    value = picked(files.own)
    return Sourced(value, settings_file().name) if value else Sourced()


def store_address(address: str | None = None) -> str:
    """The address of a store: the one that is named, the one that is set, or the file in the state directory."""
    return _value("store") or usual_store() if address is None else address


def usual_store() -> str:
    """The address of the store where none is set."""
    return f"sqlite:{state_directory() / 'moothall.db'}"


def store_file(address: str | None = None) -> Path | None:
    """The file of a store by its address; None where the store is in memory or on a server."""
    address = store_address(address)
    kind, _, rest = address.partition(":")
    if kind == "memory" or is_on_server(address):
        return None
    if kind == "sqlite" and rest and not rest.startswith((":", "file:")):  # SQLite takes these for no file
        return Path(rest)
    raise DefinitionError(f"{public_address(address)!r} is not a store; {STORES}")


def address_without_password(address: str) -> str:
    """The address of a store as anybody may see it: without a password."""
    return public_address(address)


def is_on_server(address: str | None = None) -> bool:
    """Whether a store is a database on a PostgreSQL server."""
    return is_address(store_address(address))


def is_in_memory(address: str | None = None) -> bool:
    """Whether a store is gone when the process is."""
    return store_file(address) is None and not is_on_server(address)


def open_store(address: str | None = None, durability: str | None = None) -> Store:
    """A store by its address: `sqlite:FILE`, `postgresql://…` or `memory`."""
    file, address = store_file(address), store_address(address)
    if file is None and not is_on_server(address):
        return MemoryStore()
    key, kept, anchors = audit_key(), durability_of(durability), anchors_directory()
    if file is None:
        return PostgresStore(address, key, durability=kept, anchors=anchors, tell=tell_once)
    return SqliteStore(file, key, durability=kept, anchors=anchors, tell=tell_once)


@cache
def tell_once(text: str) -> None:
    """Say something on stderr that is as true the next time."""
    print(printable(text), file=sys.stderr)


def anchors_directory() -> Path:
    """The folder of the anchors: MOOTHALL_ANCHORS, else beside the stores in the state directory."""
    return Path(os.environ.get("MOOTHALL_ANCHORS") or state_directory() / "anchors")


def audit_key_variable() -> str:
    """The file that MOOTHALL_AUDIT_KEY names; "" where it names none."""
    return os.environ.get("MOOTHALL_AUDIT_KEY", "")


def audit_key_file() -> Path:
    """Where the key is that seals are made with, or will be."""
    return Path(audit_key_variable() or state_directory() / "audit.key")


def audit_key() -> bytes:
    """The key that seals are made with: the file that MOOTHALL_AUDIT_KEY names, else the one in the state directory.

    It is made where there is none. Where that cannot be done there is no key, and audits cannot tell.
    """
    file = audit_key_file()
    if os.path.exists(file) and not os.path.isfile(file):
        raise DefinitionError(f"the audit key {file} is not a file")
    try:
        return file.read_bytes()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise DefinitionError(f"the audit key cannot be read: {error}") from error
    if audit_key_variable():
        raise DefinitionError(f"the audit key {file} is not there; MOOTHALL_AUDIT_KEY names it")
    return _new_key(file)


def _new_key(file: Path) -> bytes:
    """A new key, or the one that another process made at the same moment."""
    new = file.with_name(f"{file.name}-{secrets.token_hex(4)}")
    try:
        make_folder(file.parent)
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
    durability = named or _value("durability") or DURABILITIES[0]
    if durability not in DURABILITIES:
        raise DefinitionError(f"{durability!r} is not a durability; write {' or '.join(DURABILITIES)}")
    return durability


def hook_setting() -> str:
    """What to call when a run waits, where nothing is named; "" where nothing is configured."""
    return _value("on_wait")


def mirror_setting() -> str:
    """Where records are mirrored; "" where they are not."""
    return _value("mirror")


def prune_setting() -> float | None:
    """After how many days workers delete runs that have ended; None where they delete none."""
    named = _value("prune")
    if not named:
        return None
    try:
        days = float(named)
    except ValueError:
        days = -1.0
    if not 0 < days < 1e6:
        raise DefinitionError(f'prune = {named!r} is not a number of days above 0; write prune = "30"')
    return days


def telemetry_setting(named: str | None = None) -> str:
    """Who else is told what goes on: as it is named, as it is set, or nobody."""
    return _value("telemetry") if named is None else named


def model_setting() -> str:
    """The model to use where none is named; "" where nothing is configured."""
    return _value("model")


class Registered(Frozen):
    """The secrets that are known here, and why other variables are none: those named, and those that look like it."""

    secrets: tuple[Secret, ...]
    refused: dict[str, str]
    passed_over: dict[str, str]


def known_secrets() -> Registered:
    """The secrets that are known here: the keys in the settings file, and variables of the environment."""
    found = secret_variables()
    return replace(found, secrets=(*_address_keys(), *found.secrets))


def secret_variables() -> Registered:
    """The variables that are secrets: those whose names say so, and those in MOOTHALL_SECRETS (`-NAME`: not)."""
    named = [name.strip() for name in os.environ.get("MOOTHALL_SECRETS", "").split(",") if name.strip()]
    chosen = {name for name in named if not name.startswith("-")}
    found = _telling(tuple(os.environ)) - {name[1:] for name in named if name.startswith("-")}
    unfits = {name: _unfit(name) for name in sorted(found | chosen)}
    return Registered(
        tuple(Secret(name, os.environ[name].strip()) for name, why in unfits.items() if not why),
        {name: why for name, why in unfits.items() if why and name in chosen},
        {name: why for name, why in unfits.items() if why and name not in chosen and os.environ[name]},
    )


def _address_keys() -> Iterator[Secret]:
    for address, bound in settings().addresses.items():
        if bound.key and not unfit(bound.key):
            yield Secret(f"key of {re.sub(r'[^a-z0-9.:/-]', '', address)}", bound.key)
    for named in (_value("store"), _value("mirror")):
        if (password := password_of(named)) and not unfit(password):
            yield Secret("password of the store", password)


@lru_cache(maxsize=8)
def _telling(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(filter(_is_telling, names))


def _is_telling(name: str) -> bool:
    ends = (name == ending or name.endswith(f"_{ending}") for ending in SECRET_ENDINGS)
    return name in SECRET_NAMES or any(ends)


def _unfit(name: str) -> str:
    if name not in os.environ:
        return "there is no such variable"
    return "its name has brackets" if set("[]") & set(name) else unfit(os.environ[name].strip())


def cleaner() -> Cleaner:
    """Replaces the secrets that are registered, and the keys that are known by their format."""
    return _cleaner(known_secrets().secrets)


def variables_cleaner() -> Cleaner:
    """The same without the keys in the settings file, for whoever has to say why that cannot be read."""
    return _cleaner(secret_variables().secrets)


def strict_cleaner() -> Cleaner:
    """The same for runs; a secret that was named and cannot be replaced is refused."""
    found = known_secrets()
    for name, why in found.refused.items():
        raise DefinitionError(f"MOOTHALL_SECRETS: {name}: {why}; set another value, or take the name off the list")
    return _cleaner(found.secrets)


@lru_cache(maxsize=8)
def _cleaner(secrets: tuple[Secret, ...]) -> Cleaner:
    return Cleaner(secrets)
