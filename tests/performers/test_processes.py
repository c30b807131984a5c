"""Child processes of tools end with the call that started them, and take their own children with them."""

import asyncio
import sys
from pathlib import Path

import pytest

from moothall import EffectFailed
from moothall.performers.processes import MOST, run_process

FAMILY = """
import os, subprocess, sys, time
stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", stubborn])
print(os.getpid(), child.pid, file=open(sys.argv[1], "w"), flush=True)
os.rename(sys.argv[1], sys.argv[1] + ".ready")
{then}
"""


def is_alive(process: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    stat = Path(f"/proc/{process}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


async def are_gone(family: list[int]) -> bool:
    """Whether processes that were killed have ended, which the kernel may take a moment for."""
    for _ in range(500):
        if not any(map(is_alive, family)):
            return True
        await asyncio.sleep(0.01)
    return False


async def wait_for_family(note: Path) -> list[int]:
    """The processes that have noted themselves."""
    ready = note.with_name(note.name + ".ready")
    for _ in range(3000):
        if ready.exists():
            break
        await asyncio.sleep(0.01)
    return [int(number) for number in ready.read_text().split()]


@pytest.mark.anyio
async def test_a_process_gives_its_code_and_what_it_said() -> None:
    script = "import sys; print(sys.stdin.read().upper()); print('no', file=sys.stderr); sys.exit(3)"
    done = await run_process([sys.executable, "-c", script], text="yes")
    assert (done.code, done.out, done.err) == (3, "YES\n", "no\n")


@pytest.mark.anyio
async def test_a_cancelled_call_ends_the_whole_group_even_those_that_refuse(tmp_path: Path) -> None:
    note = tmp_path / "family"
    script = FAMILY.format(then="time.sleep(600)")
    call = asyncio.create_task(run_process([sys.executable, "-c", script, str(note)]))
    family = await wait_for_family(note)
    assert all(map(is_alive, family))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await are_gone(family)


@pytest.mark.anyio
async def test_what_a_process_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    note = tmp_path / "family"
    script = FAMILY.format(then="child.returncode = 0; os._exit(0)")
    script = script.replace("subprocess.Popen([", "subprocess.Popen(stdout=-3, stderr=-3, stdin=-3, args=[")
    assert (await run_process([sys.executable, "-c", script, str(note)])).code == 0
    family = await wait_for_family(note)
    for _ in range(200):
        if not any(map(is_alive, family)):
            break
        await asyncio.sleep(0.01)
    assert await are_gone(family)


@pytest.mark.anyio
async def test_a_program_that_does_not_exist_is_named() -> None:
    with pytest.raises(EffectFailed, match="no-such-program cannot be started: No such file"):
        await run_process(["no-such-program"])


@pytest.mark.anyio
async def test_output_beyond_the_limit_is_cut_off_and_that_is_said() -> None:
    done = await run_process([sys.executable, "-c", f"print('x' * {MOST + 9}, end='')"])
    assert done.out.endswith("… 9 bytes more")
