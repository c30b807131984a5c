"""What a command in bubblewrap sees: the system read-only, its workspace, and folders of its own.

What is not named here is not there: no home, no /run, no /sys, no other user's files, no file of /etc that is not
needed to run programs. Of /proc it sees its own processes and plain figures; the rest is covered, because a command of
root would otherwise be root to the kernel's settings and triggers, whatever its user id inside.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
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
ETC = (
    *("alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "debian_version", "fonts", "group"),
    *("hosts", "inputrc", "java", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias", "localtime", "magic"),
    *("mime.types", "nsswitch.conf", "os-release", "passwd", "perl", "protocols", "python3", "services", "shells"),
    *("ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone", "xml"),
)
OPEN_PROC = (
    *("cpuinfo", "filesystems", "loadavg", "meminfo", "mounts", "net", "self", "stat", "swaps", "thread-self"),
    *("uptime", "version", "vmstat"),
)
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
        if secret.resolve().is_relative_to(real):
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
    options = ["--dir", "/etc"]
    for name in ETC:
        if os.path.exists(path := f"/etc/{name}"):
            options += ["--ro-bind", path, path]
    return tuple(options)


@lru_cache(maxsize=1)
def _covers() -> tuple[str, ...]:
    options = ["--ro-bind", "/proc/sys", "/proc/sys"]
    for name, is_folder in _closed_proc():
        options += ["--tmpfs", f"/proc/{name}", "--remount-ro", f"/proc/{name}"] if is_folder else []
        options += [] if is_folder else ["--ro-bind", os.devnull, f"/proc/{name}"]
    return tuple(options)


def _closed_proc() -> Iterator[tuple[str, bool]]:
    with os.scandir("/proc") as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.name.isdigit() or entry.name in OPEN_PROC or entry.name == "sys" or entry.is_symlink():
                continue
            yield entry.name, stat.S_ISDIR(entry.stat(follow_symlinks=False).st_mode)
