"""Which system calls a command in the sandbox may not make, as a program for the kernel.

Namespaces do not cover everything. The keyrings of the session are inherited, AF_VSOCK reaches the host of a virtual
machine past any network namespace, TIOCSTI types into a terminal, the kernel's log tells of other processes, and
mounts, modules and further namespaces are tools for nothing but getting out. A program that runs as its owner would be
left behind on the host, so no file gets such a mode. What a program may well try with a plan
for when it is missing (io_uring, clone3) is answered as unknown; the rest is refused.

A call of another architecture or of the x32 numbering is unknown, for the table below does not hold for it.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Mapping

from moothall.kernel.frozen import Frozen

_REFUSED = {
    "x86_64": (
        *(103, 155, 163, 165, 166, 167, 168, 169, 172, 173, 175, 176, 179, 246, 248, 249, 250, 272),
        *(298, 304, 308, 313, 320, 321, 323, 428, 429, 430, 431, 432, 433, 442),
    ),
    "aarch64": (
        *(39, 40, 41, 60, 89, 97, 104, 105, 106, 116, 142, 217, 218, 219, 224, 225, 241, 265, 268),
        *(273, 280, 282, 294, 428, 429, 430, 431, 432, 433, 442),
    ),
}
"""syslog, pivot_root, acct, mount, umount2, swapon, swapoff, reboot, iopl, ioperm, init_module, delete_module,
quotactl, kexec_load, add_key, request_key, keyctl, unshare, perf_event_open, open_by_handle_at, setns, finit_module,
kexec_file_load, bpf, userfaultfd, and the newer calls for mounts."""

_UNKNOWN = (425, 426, 427, 435, 437)
"""io_uring_setup, io_uring_enter, io_uring_register, clone3, openat2: the same everywhere."""

_RAISING = 0o6000
"""The bits of a mode that make a program run as its owner or group: on the host they would outlive the command."""

_CREATES = 0o100 | 0o20000000
"""The flags of a call that makes the file that it opens: where it is missing, or one without a name."""

_MODES = {
    "x86_64": ((90, 1), (91, 1), (85, 1), (133, 1), (259, 2), (268, 2), (452, 2)),
    "aarch64": ((52, 1), (33, 2), (53, 2), (452, 2)),
}
"""chmod, fchmod, creat, mknod, mknodat, fchmodat and fchmodat2, each with the place of its mode."""

_OPENS = {"x86_64": ((2, 1, 2), (257, 2, 3)), "aarch64": ((56, 2, 3),)}
"""open and openat, with the places of their flags and of their mode."""

_FAMILIES = (1, 2, 10, 16)
"""Unix, IPv4, IPv6 and netlink: what is left of them in an empty network namespace."""

_TERMINAL = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX."""

_NEW_USER = 0x10000000
_X32 = 0x40000000
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000


class _Architecture(Frozen):
    """What the kernel calls an architecture, and the numbers of the calls whose arguments are looked at."""

    audit: int
    socket: int
    ioctl: int
    clone: int


_ARCHITECTURES: Mapping[str, _Architecture] = {
    "x86_64": _Architecture(0xC000003E, socket=41, ioctl=16, clone=56),
    "aarch64": _Architecture(0xC00000B7, socket=198, ioctl=29, clone=220),
}


def seccomp_program(machine: str = "") -> bytes:
    """The program for this machine's processor; nothing where it is not known here."""
    name = machine or platform.machine()
    known = _ARCHITECTURES.get(name)
    if known is None:
        return b""
    program = [
        _load(4),
        *_unless(known.audit, errno.ENOSYS),
        _load(0),
        *(() if name != "x86_64" else _at_least(_X32, errno.ENOSYS)),
        *(step for number in _UNKNOWN for step in _when(number, _fail(errno.ENOSYS))),
        *(step for number in _REFUSED[name] for step in _when(number, _fail(errno.EPERM))),
        *_when(
            known.socket,
            _load(16),
            *(step for family in _FAMILIES for step in _when(family, _return(_ALLOW))),
            _fail(errno.EAFNOSUPPORT),
        ),
        *_when(
            known.ioctl,
            _load(24),
            *(step for request in _TERMINAL for step in _when(request, _fail(errno.EPERM))),
            _return(_ALLOW),
        ),
        *(step for number, mode in _MODES[name] for step in _when(number, *_refuse_raising(mode))),
        *(
            step
            for number, flags, mode in _OPENS[name]
            for step in _when(number, _load_argument(flags), _step(0x45, 0, 3, _CREATES), *_refuse_raising(mode))
        ),
        *_when(known.clone, _load(16), _step(0x45, 0, 1, _NEW_USER), _fail(errno.EPERM), _return(_ALLOW)),
        _return(_ALLOW),
    ]
    return b"".join(program)


def _step(code: int, yes: int, no: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def _load(offset: int) -> bytes:
    return _step(0x20, 0, 0, offset)


def _load_argument(place: int) -> bytes:
    return _load(16 + 8 * place)


def _refuse_raising(mode: int) -> tuple[bytes, ...]:
    """Steps that refuse a mode with such bits, and allow every other."""
    return _load_argument(mode), _step(0x45, 0, 1, _RAISING), _fail(errno.EPERM), _return(_ALLOW)


def _return(value: int) -> bytes:
    return _step(0x06, 0, 0, value)


def _fail(number: int) -> bytes:
    return _return(_ERRNO | number)


def _when(value: int, *steps: bytes) -> tuple[bytes, ...]:
    """Steps that are taken where what was loaded equals a value."""
    return (_step(0x15, 0, len(steps), value), *steps)


def _unless(value: int, number: int) -> tuple[bytes, ...]:
    return _step(0x15, 1, 0, value), _fail(number)


def _at_least(value: int, number: int) -> tuple[bytes, ...]:
    return _step(0x35, 0, 1, value), _fail(number)
