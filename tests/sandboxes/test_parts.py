"""The parts of the sandbox that are decided before anything runs, and the level that protects nothing."""

import errno
import os
import struct
from pathlib import Path

import pytest

from moothall.errors import Refused
from moothall.sandboxes.cgroups import find_trees
from moothall.sandboxes.limits import MEGABYTE, Limits
from moothall.sandboxes.none import GIVES_UP, Unprotected
from moothall.sandboxes.seccomp import seccomp_program
from moothall.sandboxes.shield import Shield, sockets

ALLOW = 0x7FFF0000


def decide(program: bytes, number: int, *arguments: int, audit: int = 0xC000003E) -> int:
    """What the kernel would answer: a small machine for the few instructions that are used."""
    steps = list(struct.iter_unpack("=HBBI", program))
    given = struct.pack("=iIQ6Q", number, audit, 0, *arguments, *[0] * (6 - len(arguments)))
    at = loaded = 0
    while True:
        code, yes, no, value = steps[at]
        at += 1
        match code:
            case 0x20:
                loaded = struct.unpack_from("=I", given, value)[0]
            case 0x06:
                return int(value)
            case 0x15:
                at += yes if loaded == value else no
            case 0x35:
                at += yes if loaded >= value else no
            case 0x45:
                at += yes if loaded & value else no
            case _:
                raise AssertionError(code)


CALLS = [
    ("read", (0,), 0),
    ("keyctl", (250,), errno.EPERM),
    ("mount", (165,), errno.EPERM),
    ("unshare", (272, 0x10000000), errno.EPERM),
    ("io_uring_setup", (425,), errno.ENOSYS),
    ("clone3", (435,), errno.ENOSYS),
    ("clone of a thread", (56, 0x3D0F00), 0),
    ("clone into a user namespace", (56, 0x10000011), errno.EPERM),
    ("a unix socket", (41, 1), 0),
    ("an IPv6 socket", (41, 10), 0),
    ("a socket of a virtual machine", (41, 40), errno.EAFNOSUPPORT),
    ("TIOCSTI", (16, 0, 0x5412), errno.EPERM),
    ("TIOCSTI with bits above", (16, 0, 0x1_0000_5412), errno.EPERM),
    ("TCGETS", (16, 0, 0x5401), 0),
    ("an x32 call", (0x40000000 + 165,), errno.ENOSYS),
]


@pytest.mark.parametrize(("call", "number"), [case[1:] for case in CALLS], ids=[case[0] for case in CALLS])
def test_a_system_call_is_allowed_or_refused(call: tuple[int, ...], number: int) -> None:
    assert decide(seccomp_program("x86_64"), *call) == (0x00050000 | number if number else ALLOW)


def test_calls_of_another_architecture_are_unknown() -> None:
    assert decide(seccomp_program("x86_64"), 3, audit=0x40000003) == 0x00050000 | errno.ENOSYS
    assert decide(seccomp_program("aarch64"), 219, audit=0xC00000B7) == 0x00050000 | errno.EPERM
    assert seccomp_program("vax") == b""


def test_control_groups_of_the_first_version_are_found_below_the_own_one(tmp_path: Path) -> None:
    for name in ("memory/own", "pids"):
        (tmp_path / name).mkdir(parents=True)
    mounts = "".join(
        f"3{n} 2 0:{n} / {tmp_path}/{name} rw - cgroup cgroup rw,{name}\n" for n, name in enumerate(("memory", "pids"))
    )
    trees = find_trees(mounts, "8:pids:/\n4:memory:/own\n0::/\n")
    assert (trees.version, trees.folders) == (1, {"memory": tmp_path / "memory" / "own", "pids": tmp_path / "pids"})


@pytest.mark.parametrize(("passed", "version"), [("cpu memory pids\n", 2), ("cpu\n", 1)])
def test_control_groups_of_the_second_version_need_their_controllers_passed_on(
    tmp_path: Path, passed: str, version: int
) -> None:
    (tmp_path / "cgroup.subtree_control").write_text(passed)
    trees = find_trees(f"30 2 0:1 / {tmp_path} rw - cgroup2 cgroup2 rw\n", "0::/user.slice\n")
    assert trees.version == version
    assert set(trees.folders) == ({"memory", "pids"} if version == 2 else set())


def test_a_shield_leaves_what_is_there_and_removes_what_it_put_there(tmp_path: Path) -> None:
    (tmp_path / "moothall.toml").write_text("x")
    shield = Shield(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".git", "HEAD", "moothall.toml"]
    shield.close()
    assert os.listdir(tmp_path) == ["moothall.toml"]


@pytest.mark.parametrize("name", [".git", "moothall.toml", "HEAD"])
def test_a_link_in_a_protected_place_is_refused_and_nothing_is_left(tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to("elsewhere")
    with pytest.raises(Refused, match="symbolic link"):
        Shield(tmp_path)
    assert os.listdir(tmp_path) == [name]


def test_a_bare_repository_is_refused(tmp_path: Path) -> None:
    (tmp_path / "HEAD").write_text("ref: refs/heads/main\n")
    with pytest.raises(Refused, match="bare repository"):
        Shield(tmp_path)


def test_a_placeholder_that_somebody_filled_stays(tmp_path: Path) -> None:
    shield = Shield(tmp_path)
    (tmp_path / "moothall.toml").rmdir()
    (tmp_path / "moothall.toml").write_text("of a person\n")
    shield.close()
    assert (tmp_path / "moothall.toml").read_text() == "of a person\n"


def test_no_socket_is_found_where_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    assert list(sockets(tmp_path)) == []


@pytest.mark.anyio
async def test_without_a_sandbox_time_and_output_are_still_limited(tmp_path: Path) -> None:
    bare = Unprotected(Limits(wall=0.5, output=MEGABYTE, kept=100), {"PATH": "/usr/bin:/bin"})
    done = await bare.run(["sh", "-c", "echo hi; exit 4"], workspace=tmp_path)
    assert (done.exit_code, done.stdout, done.level, done.killed) == (4, "hi\n", "none", False)
    assert (await bare.run(["sleep", "60"], workspace=tmp_path)).killed
    loud = await bare.run(["yes"], workspace=tmp_path)
    assert loud.killed
    assert len(loud.stdout) < 200
    assert (await bare.run(["no-such-command"], workspace=tmp_path)).exit_code == 127
    with pytest.raises(Refused, match="not a folder"):
        await bare.run(["true"], workspace=tmp_path / "nowhere")


def test_the_level_none_says_what_it_gives_up() -> None:
    assert all(word in GIVES_UP for word in ("network", "environment", "processes", "delete"))
