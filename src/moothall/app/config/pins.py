"""What servers of tools offered when they were trusted, remembered in the state directory.

A pin belongs to a server's name and to how it is reached: another command or address is another server.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from moothall.agents.toolserver import Pinned, Toolserver
from moothall.app.config.settings import state_directory
from moothall.errors import DefinitionError, Refused
from moothall.kernel.codec import decode, encode

WAYS = ("command", "url", "folder", "env_from", "key_from")


def pins() -> Mapping[str, tuple[Pinned, ...]]:
    """What is remembered, by the key of each server."""
    file = _file()
    try:
        return decode(dict[str, tuple[Pinned, ...]], json.loads(file.read_bytes()), "pins")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError, Refused) as error:
        raise DefinitionError(f"{file} cannot be read ({error}); delete it, and trust again what you trust") from error


def pins_of(name: str, server: Toolserver) -> tuple[Pinned, ...] | None:
    """What a server offered when it was trusted; None where it never was."""
    return pins().get(server_key(name, server))


def remember_pins(found: Mapping[str, tuple[Pinned, ...]]) -> None:
    """Keep what servers offer, by their keys."""
    file, known = _file(), {**pins(), **found}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        opened, fresh = tempfile.mkstemp(prefix=f"{file.name}-", dir=file.parent)  # its mode is 0600
        with open(opened, "w", encoding="utf-8") as target:
            json.dump(encode(known), target, indent=1, sort_keys=True)
        os.replace(fresh, file)
    except OSError as error:
        raise DefinitionError(f"{file} cannot be written: {error.strerror}") from error


def server_key(name: str, server: Toolserver) -> str:
    """A server by its name and how it is reached."""
    plain = json.dumps([name, *(encode(getattr(server, way)) for way in WAYS)])
    return f"{name}-{sha256(plain.encode()).hexdigest()[:16]}"


def _file() -> Path:
    return state_directory() / "servers.json"
