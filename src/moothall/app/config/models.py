"""Models by name, put together from adapters, gates and settings.

    rehearsal                                   invents replies
    scripted:FILE[,log=LOG]                     says what a file says
    openai:NAME, anthropic:NAME, google:NAME    a model of a provider
    openai:NAME@ADDRESS                         one of whoever speaks that protocol there, such as http://127.0.0.1:8080/v1
    cassette:FILE[,mode=MODE][,model=MODEL]     recorded replies; all behind `model=` is the name of the recorded one
    MODEL|MODEL                                 the second where the first fails
    base, smart, fast                           what the settings say
    levels                                      for each agent what they say for the level of its role, else base

An API key belongs to one address. That of `OPENAI_API_KEY` is `OPENAI_BASE_URL`, else OpenAI's own; no other address
gets it, unless the settings bind it to that one too.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

from moothall.agents.ports import Model, PayFor, unlimited
from moothall.agents.secrets import Cleaner
from moothall.app.config.settings import (
    LEVELS,
    AddressSettings,
    cleaner,
    level_model,
    own_settings,
    settings,
    state_directory,
    tell_once,
)
from moothall.errors import DefinitionError
from moothall.kernel.frozen import Frozen
from moothall.models.cassette import CassetteModel, Mode
from moothall.models.discreet import DiscreetModel
from moothall.models.endpoint import Endpoint, Protocol
from moothall.models.fallback import FallbackModel
from moothall.models.gate import Gate, GatedModel, Measure
from moothall.models.purse import PaidModel, Purse
from moothall.models.rehearsal import RehearsalModel
from moothall.models.scripted import ScriptedModel
from moothall.models.signed import SignedModel

BY_LEVEL = "levels"
WAYS = "rehearsal, scripted:FILE, openai:NAME, anthropic:NAME, google:NAME or cassette:FILE"
LIBRARY = "pydantic_ai"
"""The library by which those of all providers are used."""


class Provider(Frozen):
    """A company: its protocol, its own address, its library, the variables that hold another address and its key."""

    protocol: Protocol
    address: str
    library: str
    keys: tuple[str, ...]
    base: str = ""


PROVIDERS = {
    provider.protocol: provider
    for provider in (
        Provider("openai", "https://api.openai.com/v1", "openai", ("OPENAI_API_KEY",), "OPENAI_BASE_URL"),
        Provider("anthropic", "https://api.anthropic.com", "anthropic", ("ANTHROPIC_API_KEY",), "ANTHROPIC_BASE_URL"),
        Provider(
            "google",
            "https://generativelanguage.googleapis.com",
            "google.genai",
            ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        ),
    )
}


class Named(Frozen):
    """A model of a provider, by its name."""

    provider: Provider
    model: str
    address: str

    def __str__(self) -> str:
        at = "" if self.address == self.provider.address else f"@{self.address}"
        return f"{self.provider.protocol}:{self.model}{at}"


class Taped(Frozen):
    """A cassette, by its name."""

    file: Path
    mode: Mode
    model: str = ""

    def __str__(self) -> str:
        return f"cassette:{self.file},mode={self.mode}" + (f",model={self.model}" if self.model else "")


class Scripted(Frozen):
    """A script, by its name."""

    file: Path
    log: Path | None = None

    def __str__(self) -> str:
        return f"scripted:{self.file}" + (f",log={self.log}" if self.log is not None else "")


def open_model(name: str) -> Model:
    """A model by its name."""
    names = _chain(name)
    if len(names) == 1:
        return _open_model(names[0])
    return FallbackModel([SignedModel(_open_model(part), str(_absolute(parse_name(part)))) for part in names])


def absolute_model(name: str) -> str:
    """A model's name that means the same from another folder, and when settings have changed; but for `levels`."""
    if name == BY_LEVEL:
        return name
    return "|".join(str(_absolute(parse_name(part))) for part in _chain(name)) if name else ""


def at_level(level: str) -> str:
    """The level whose model plays a role of this one."""
    return level if level_model(level).value else "base"


def is_offline(name: str) -> bool:
    """Whether a model needs nobody outside: a stand-in, a script or a cassette."""
    return name == "rehearsal" or name.startswith(("scripted:", "cassette:"))


def _chain(name: str) -> list[str]:
    """The names of the models that are asked one after the other. A cassette takes all that follows it."""
    if name == BY_LEVEL:
        return _chain("base")
    if name in LEVELS:
        found = level_model(name).value
        if not found:
            raise DefinitionError(
                f"no model is set for the level {name!r}; write it below [levels] in settings.toml, or set "
                f"MOOTHALL_LEVEL_{name.upper()}"
            )
        if inner := set(LEVELS).intersection(re.split(r"\||,model=", found)):
            raise DefinitionError(f"the level {name!r} is set to the level {min(inner)!r}; name a model")
        return _chain(found)
    if name.startswith("cassette:") or "|" not in name:
        return [name]
    first, _, rest = name.partition("|")
    return [*_chain(first), *_chain(rest)]


def parse_name(name: str) -> Named | Taped | Scripted | str:
    """What the name of one model says."""
    kind, _, rest = name.partition(":")
    if name == "rehearsal":
        return name
    if kind == "scripted" and rest.partition(",log=")[0]:
        file, _, log = rest.partition(",log=")
        return Scripted(Path(file), Path(log) if log else None)
    if kind == "cassette" and rest:
        return _parse_tape(rest)
    for provider in PROVIDERS.values():
        if kind == provider.protocol and rest:
            return _parse_provider(provider, rest)
    raise DefinitionError(f"{name!r} is not a model; write {WAYS}")


def _parse_tape(text: str) -> Taped:
    text, _, model = text.partition(",model=")
    file, _, mode = text.partition(",mode=")
    mode = mode or ("auto" if model else "replay")
    for known in get_args(Mode):
        if mode == known and file:
            return Taped(Path(file), known, model)
    raise DefinitionError(f"cassette:{text} is not a cassette; write cassette:FILE,mode=record|replay|auto,model=MODEL")


def _parse_provider(provider: Provider, text: str) -> Named:
    model, *address = re.split(r"@(?=https?://)", text, maxsplit=1, flags=re.IGNORECASE)
    if address:
        return Named(provider, model, normal(address[0]))
    model, at, place = text.partition("@")
    if at:  # whoever forgets the scheme means that address, and not the provider's own, which would get the prompts
        raise DefinitionError(
            f"the address {place!r} has no scheme; write {provider.protocol}:{model}@http://{place} or @https://{place}"
        )
    return Named(provider, model, own_address(provider))


def own_address(provider: Provider) -> str:
    """The address that a provider's key belongs to: what the environment says, else the company's."""
    set_ = os.environ.get(provider.base, "") if provider.base else ""
    return normal(set_) if set_ else provider.address


def normal(address: str) -> str:
    """An address in the one way to write it, so that two can be compared."""
    try:
        parts = urlsplit(address)
        host, port = (parts.hostname or ""), parts.port
    except ValueError as error:
        raise DefinitionError(f"{address!r} is not an address: {error}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise DefinitionError(f"{address!r} is not an address; write http://HOST:PORT/v1 or https://HOST/v1")
    if parts.username is not None or parts.password is not None:
        raise DefinitionError(f"the address of {host} has a name or a password in it; bind a key in settings.toml")
    if parts.query or parts.fragment:
        raise DefinitionError(f"{address!r} has more than scheme, host, port and path; leave the rest out")
    shown = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}[parts.scheme]
    at = "" if port is None or port == usual else f":{port}"
    return f"{parts.scheme}://{shown}{at}{parts.path.rstrip('/')}"


def _absolute(one: Named | Taped | Scripted | str) -> Named | Taped | Scripted | str:
    match one:
        case Taped(file, mode, model):
            return Taped(_real(file), mode, absolute_model(model))
        case Scripted(file, log):
            return Scripted(_real(file), _real(log) if log is not None else None)
        case _:
            return one


def _real(file: Path) -> Path:
    """A file with no links in the way to it; one that links to itself stays what it is, and is refused when read."""
    return Path(os.path.realpath(file))


def _open_model(name: str) -> Model:
    match parse_name(name):
        case Named() as named:
            return _provider_model(named)
        case Taped(file, mode, model):
            asks = model and mode != "replay"
            return CassetteModel(file, mode, open_model(model) if asks else None, model, clean=cleaner())
        case Scripted(file, log):
            scripted, purse = ScriptedModel.from_file(file, log), daily_purse()
            return scripted if purse is None else PaidModel(scripted, purse)
        case _:
            return RehearsalModel()


def unpriced_models(name: str) -> list[str]:
    """The models of providers in a name whose price nobody knows."""
    if name == BY_LEVEL:
        return sorted({model for level in LEVELS for model in unpriced_models(at_level(level))})
    asked = _models_in(name)
    return [str(named) for named in asked if not _providers(named.provider).is_priced(_endpoint(named))]


def _models_in(name: str) -> Iterator[Named]:
    """The models of providers that a name stands for, with those that a cassette would ask."""
    for part in _chain(name) if name else ():
        match parse_name(part):
            case Named() as named:
                yield named
            case Taped(model=model, mode=mode) if model and mode != "replay":
                yield from _models_in(model)
            case _:
                pass


def _provider_model(named: Named) -> Model:
    set_ = address_settings(named.address)
    gate = _gate(named.address, Measure(set_.at_once, set_.failures, set_.rest, set_.per_minute))
    return GatedModel(_adapter(_endpoint(named), cleaner()), gate, daily_purse())


def daily_purse() -> Purse | None:
    """What is left to spend today, where the user has set a limit."""
    limit = own_settings().daily_usd
    return None if limit is None else Purse(state_directory() / "spent-today.json", limit, time.time)


def daily_payment() -> PayFor:
    """What pays for the calls of agents that are functions: what is left to spend today, where that is limited."""
    purse = daily_purse()
    return unlimited if purse is None else purse.pay_for


def _endpoint(named: Named) -> Endpoint:
    """Where a model is asked, with the key that belongs there."""
    set_ = address_settings(named.address)
    variable, key = key_of(named, set_)
    is_own = named.address == named.provider.address
    if is_own and not key:
        raise DefinitionError(f"{named} needs a key: set {variable or named.provider.keys[0]}")
    return Endpoint(named.provider.protocol, named.model, named.address, is_own, key, variable, set_.timeout)


def require_usable(name: str) -> None:
    """Refuse a model, before a run begins with it, that nobody can ask: its library, its key or its script is not here.

    A level of which nobody knows yet whether it is played needs no key.
    """
    levels = {at_level(level) for level in LEVELS} if name == BY_LEVEL else ()
    for named in (named for level in levels for named in _models_in(level)):
        require_library(named.provider)
    for named in _models_in(name):
        require_library(named.provider)
        _endpoint(named)
    for part in _chain(name):
        if isinstance(parse_name(part), Scripted | Taped):
            _open_model(part)


def require_library(provider: Provider) -> None:
    """Refuse what needs a provider where a library is not installed that asks it."""
    if not (_is_installed(LIBRARY) and _is_installed(provider.library)):
        raise DefinitionError("models of providers need more than is installed: pip install 'moothall[models]'")


def _is_installed(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except ModuleNotFoundError:  # not even the package that it is a part of
        return False


def _providers(provider: Provider) -> Any:
    """The adapters, which load the library that all SDKs are asked through; that takes a second."""
    require_library(provider)
    return import_module("moothall.models.providers")


def address_settings(address: str) -> AddressSettings:
    """What is set for an address."""
    return {normal(known): set_ for known, set_ in settings().addresses.items()}.get(address, AddressSettings())


def key_of(named: Named, set_: AddressSettings) -> tuple[str, str]:
    """The key that belongs to the address of a model, and where it comes from."""
    if set_.key:
        return "settings.toml", set_.key
    if set_.key_from:
        return set_.key_from, os.environ.get(set_.key_from, "")
    if named.address != own_address(named.provider):
        return "", ""
    return next(((name, key) for name in named.provider.keys if (key := os.environ.get(name, ""))), ("", ""))


@lru_cache(maxsize=64)
def _adapter(endpoint: Endpoint, clean: Cleaner) -> Model:
    """One adapter per endpoint, so that all runs share its connections."""
    return DiscreetModel(_providers(PROVIDERS[endpoint.protocol]).ProviderModel(endpoint, tell_once), clean)


@lru_cache(maxsize=64)
def _gate(address: str, measure: Measure) -> Gate:
    """One gate per address: all models there are one provider."""
    return Gate(address, measure, time.monotonic)
