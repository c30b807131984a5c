"""What a command in bubblewrap sees: the system read-only, its workspace, and folders of its own.

What is not named here is not there: no home, no /run, no /sys, no other user's files, no file of /etc that is not
needed to run programs. Of /proc it sees its own processes and plain figures; the rest is covered, because a command of
root would otherwise be root to the kernel's settings and triggers, whatever its user id inside.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from moothall.errors import Refused
from moothall.sandboxes.limits import Limits

HOME = "/tmp/home"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT = {
    "HOME": HOME,
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "PATH": PATH,
    "TERM": "dumb",
    "TMPDIR": "/tmp",
}
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
ETC_FOLDERS = ("alternatives", "fonts", "ssl/certs")
ETC_FILES = (
    *("debian_version", "group", "hosts", "ld.so.cache", "localtime", "mime.types", "nsswitch.conf", "os-release"),
    *("passwd", "protocols", "services", "shells", "ssl/openssl.cnf", "timezone"),
)
OPEN_PROC = ("net", "self", "sys", "sysvipc", "thread-self", "tty")
SECRET_PROC = ("cmdline", "iomem", "ioports", "kallsyms", "key-users", "keys", "locks", "sched_debug", "timer_list")
"""What anybody may read of the kernel, and no command needs to know."""
FIXED = ("/usr", "/bin", "/sbin", "/lib", "/etc", "/proc", "/dev", "/sys", "/run", "/tmp", "/var/tmp")
"""Folders that a workspace may neither be nor hold."""


def check_workspace(workspace: Path, hidden: tuple[Path, ...]) -> Path:
    """The real place of a workspace, if it can be one."""
    try:
        real = workspace.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "its links lead in a circle"
        raise Refused(f"the workspace {workspace} cannot be used: {reason}") from error
    if not real.is_dir():
        raise Refused(f"the workspace {workspace} is not a folder")
    for folder in FIXED:
        if Path(folder).is_relative_to(real):
            raise Refused(
                f"the workspace {real} holds {folder}, which belongs to the system; choose a folder of its own"
            )
    for folder in ("/proc", "/dev", "/sys"):
        if real.is_relative_to(folder):
            raise Refused(f"the workspace {real} is in {folder}, which belongs to the system; choose another folder")
    for secret in hidden:
        if Path(os.path.realpath(secret)).is_relative_to(real):
            raise Refused(f"the workspace {real} holds {secret}, which no command may see; choose a folder below")
    return real


def system_options(limits: Limits, readable: tuple[Path, ...]) -> list[str]:
    """Options for everything but the workspace."""
    size = str(limits.tmp)
    options = [
        *_system(),
        *_etc(),
        "--proc",
        "/proc",
        *_covers(),
        "--dev",
        "/dev",
        "--size",
        size,
        "--tmpfs",
        "/dev/shm",
    ]
    for folder in ("/tmp", "/var/tmp"):
        options += ["--size", size, "--perms", "1777", "--tmpfs", folder]
    options += ["--perms", "0700", "--dir", HOME]
    for path in readable:
        options += ["--ro-bind-try", str(path), str(path)]
    return options


@lru_cache(maxsize=1)
def _system() -> tuple[str, ...]:
    options: list[str] = []
    for path in SYSTEM:
        if os.path.islink(path):
            options += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            options += ["--ro-bind", path, path]
    return tuple(options)


@lru_cache(maxsize=1)
def _etc() -> tuple[str, ...]:
    options = ["--perms", "0755", "--dir", "/etc", "--perms", "0755", "--dir", "/etc/ssl"]
    for name in ETC_FOLDERS:
        if os.path.isdir(path := f"/etc/{name}"):
            options += ["--ro-bind", path, path]
    return tuple(options)


def system_files() -> Iterator[tuple[int, str]]:
    """Files of /etc, open, with the places where a command sees copies of them; a mount for each would take longer."""
    for name in ETC_FILES:
        with suppress(OSError):
            yield os.open(f"/etc/{name}", os.O_RDONLY | os.O_CLOEXEC), f"/etc/{name}"


@lru_cache(maxsize=1)
def _covers() -> tuple[str, ...]:
    options = ["--ro-bind", "/proc/sys", "/proc/sys"]
    with os.scandir("/proc") as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.name.isdigit() or entry.name in OPEN_PROC or entry.is_symlink():
                continue
            if entry.is_dir(follow_symlinks=False):
                options += ["--ro-bind", entry.path, entry.path]
            elif _is_closed(entry):
                options += ["--ro-bind", os.devnull, entry.path]
    return tuple(options)


def _is_closed(entry: os.DirEntry[str]) -> bool:
    """Whether a file of /proc is covered: its owner may write it, or read what others may not."""
    there = entry.stat(follow_symlinks=False)
    is_own = there.st_uid == os.geteuid() and (there.st_mode & stat.S_IWUSR or not there.st_mode & stat.S_IROTH)
    return entry.name in SECRET_PROC or bool(is_own) or bool(there.st_mode & stat.S_IWOTH)
