"""What is locked around a run, as this process sees it: cloud project, database, workspace and operator.

Addresses of databases may hold passwords: of those only the host and the name are looked at.
"""

from __future__ import annotations

import getpass
import os
from urllib.parse import urlsplit

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
