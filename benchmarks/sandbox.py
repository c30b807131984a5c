"""What protection costs: the start of a sandboxed command against plain bubblewrap, and reading a file.

    python benchmarks/sandbox.py [--times 50] [--files 2000]

Plain bubblewrap binds the whole system read-only, with all namespaces. The workspace holds as many files as `--files`
says, since the sandbox looks through it for sockets. Targets: at most 3 times plain bubblewrap, at most 0.5 ms of
CPU for one read.
"""

import argparse
import asyncio
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from moothall.sandboxes.bubblewrap import Bubblewrap, find_program
from moothall.workspaces.tools import workspace_tools

PLAIN = (
    "--unshare-all",
    "--die-with-parent",
    "--new-session",
    "--ro-bind",
    "/",
    "/",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
)


async def plain(workspace):
    process = await asyncio.create_subprocess_exec(
        find_program(),
        *PLAIN,
        *("--bind", str(workspace), str(workspace), "--chdir", str(workspace), "--", "true"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    await process.communicate()
    assert process.returncode == 0


async def protected(workspace):
    assert (await Bubblewrap().run(["true"], workspace=workspace)).exit_code == 0


async def milliseconds(workspace, times):
    """What both take, in turns, so that whatever else the machine does is the same for both."""
    taken = {plain: [], protected: []}
    for _ in range(times + 1):
        for work, values in taken.items():
            begun = perf_counter()
            await work(workspace)
            values.append((perf_counter() - begun) * 1000)
    return median(taken[plain][1:]), median(taken[protected][1:])


async def reading(workspace, times):
    """CPU of one read of a file of 10 KB, in milliseconds."""
    (workspace / "read.txt").write_text("a line of a file\n" * 600)
    read_file = workspace_tools(workspace, Bubblewrap())["read_file"].function
    await read_file("read.txt")
    begun = process_time()
    for _ in range(times):
        await read_file("read.txt")
    return (process_time() - begun) / times * 1000


def fill(workspace, files):
    for number in range(files):
        place = workspace / f"folder{number // 100}"
        place.mkdir(exist_ok=True)
        (place / f"{number}.txt").write_text("x")


async def main(times, files):
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder)
        fill(workspace, files)
        theirs, ours = await milliseconds(workspace, times)
        print(
            f"start of a command: {ours:.1f} ms, plain bubblewrap {theirs:.1f} ms: {ours / theirs:.2f} times (target 3)"
        )
        print(f"read_file: {await reading(workspace, times * 20):.3f} ms CPU (target 0.5)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--files", type=int, default=2000)
    chosen = parser.parse_args()
    asyncio.run(main(chosen.times, chosen.files))
