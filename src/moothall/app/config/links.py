"""The tokens of the page's links: each person has one, and it stays the same when the page is served again.

They are made of a key in the state directory that nobody else can read; without that file there are new ones.
"""

from __future__ import annotations

import os
import secrets
from base64 import urlsafe_b64encode
from hashlib import sha256
from hmac import digest
from pathlib import Path

from moothall.app.config.settings import state_directory
from moothall.errors import DefinitionError
from moothall.stores.anchors import make_folder

FILE = "page.key"
BYTES = 32


def token_of(name: str) -> str:
    """The token of a person."""
    return urlsafe_b64encode(digest(_key(), name.encode("utf-8", "surrogatepass"), sha256)).decode().rstrip("=")


def _key() -> bytes:
    path = state_directory() / FILE
    try:
        make_folder(path.parent)
        try:
            return _read(path)
        except FileNotFoundError:
            _write_new(path)
            return _read(path)
    except OSError as error:
        raise DefinitionError(f"{path} cannot be read or made: {error.strerror or error}") from error


def _read(path: Path) -> bytes:
    key = path.read_bytes()
    if len(key) != BYTES:
        raise DefinitionError(f"{path} is damaged; remove it, and the page gets new links")
    if path.stat().st_mode & 0o077:
        raise DefinitionError(f"others can read {path}; remove it, and the page gets new links")
    return key


def _write_new(path: Path) -> None:
    """Write a key whole or not at all; of two who do it at once the first one counts."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(BYTES))
        try:
            os.link(draft, path)
        except FileExistsError:
            return
    finally:
        draft.unlink(missing_ok=True)
