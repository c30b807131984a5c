"""What is locked around a run, as this process sees it: cloud project, database, workspace and operator.

Addresses of databases may hold passwords: of those only the host and the name are looked at.
"""

from __future__ import annotations

import getpass
import os
from os.path import isdir
from pathlib import Path
from urllib.parse import urlsplit

from moothall.app.config.settings import state_directory
from moothall.errors import DefinitionError
from moothall.machines.arena.identity import Locks

PROJECT = ("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT", "GCP_PROJECT")
DATABASE = ("MONGODB_DATABASE", "MONGO_DATABASE", "PGDATABASE")
ADDRESS = ("MONGODB_URI", "MONGO_URI", "DATABASE_URL")
OPERATOR = ("MOOTHALL_OPERATOR", "USER", "LOGNAME")


def found_locks(workspace: str) -> Locks:
    """What could be locked here."""
    database = _first(DATABASE) or _plain_address(_first(ADDRESS))
    return Locks(_first(PROJECT), database, workspace, _first(OPERATOR) or _user())


def _first(names: tuple[str, ...]) -> str:
    return next((value for name in names if (value := os.environ.get(name, "").strip())), "")


def _plain_address(address: str) -> str:
    """The host and the name of a database, without who logs in."""
    parts = urlsplit(address)
    return f"{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.netloc else address


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # nobody by that number
        return ""


def workspace_at(folder: str, request: str) -> Path:
    """The folder that a request is carried out in: the current one where none is named; never the one of the store."""
    if not request.strip():
        raise DefinitionError("the request is empty; say what is to be done")
    workspace = Path(folder or ".").resolve()
    if not isdir(workspace):
        raise DefinitionError(f"the workspace {workspace} is not a folder; make it, or name another")
    if Path(os.path.realpath(state_directory())).is_relative_to(workspace):
        raise DefinitionError(f"the workspace {workspace} holds the store and its keys; name another with --workspace")
    return workspace
