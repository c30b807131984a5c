"""A disk that fails while a commit is synced: the command says so, the journal has no gap, and resume goes on.

A shim in C makes the k-th fsync or fdatasync of a process fail with EIO, without doing it, and counts them all.
"""

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import environment
from tests.faults.machines import STEPS
from tests.faults.place import RUN, Place, check_whole

pytestmark = pytest.mark.slow

REFUSED, PROVIDER = 1, 3
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

static long done = 0, failing = -1, lasting = 0;

void arm(long which, long for_good) { done = 0; failing = which; lasting = for_good; }
long count(void) { return done; }

__attribute__((constructor)) static void begin(void) {
    const char *which = getenv("FAIL_SYNC");
    if (which) arm(atol(which), 0);
}

static int synced(const char *name, int fd) {
    done++;
    if (done == failing || (lasting && failing > 0 && done > failing)) { errno = EIO; return -1; }
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    return real(fd);
}

int fsync(int fd) { return synced("fsync", fd); }
int fdatasync(int fd) { return synced("fdatasync", fd); }
"""
# One process that does to a new store each time what `moot` would do, and fails at every sync in turn.
FAILING = """
import ctypes, io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from moothall.cli.main import main

shim, lasting = ctypes.CDLL(sys.argv[1]), int(sys.argv[2])

def ran(which):
    said = io.StringIO()
    shim.arm(which, lasting)
    with redirect_stderr(said), redirect_stdout(io.StringIO()):
        code = main(["run", "machines.py:WALK", f"w{which}", "--run-id", "mine", "--store", f"sqlite:{which}.db"])
    return [which, code, said.getvalue()]

ran(-1)
print(json.dumps([ran(which) for which in range(1, shim.count() + 1)]))
"""
# Another process, without the shim, that goes on with all of them: a line of arguments each.
GOING_ON = """
import io, json, sys
from contextlib import redirect_stdout
from moothall.cli.main import main

with redirect_stdout(io.StringIO()):
    codes = [main(line.split()) for line in sys.stdin.read().splitlines()]
print(json.dumps(codes))
"""
COMMITS = STEPS + 1
BEGIN = "run machines.py:WALK {name} --run-id mine --store sqlite:{which}.db"
GO_ON = "resume mine --store sqlite:{which}.db"


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler to build the shim with")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    made = folder / "shim.so"
    built = subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", str(made), str(folder / "shim.c"), "-ldl"],
        capture_output=True,
        text=True,
    )
    if built.returncode != 0:
        pytest.skip(f"the shim cannot be compiled here: {built.stderr.strip()}")
    return made


def failing_at(shim: Path, which: int) -> dict[str, str]:
    return {"LD_PRELOAD": str(shim), "FAIL_SYNC": str(which)}


def child(place: Place, program: str, *arguments: str, lines: str = "", shim: Path | None = None) -> Any:
    """What a program in a process of its own found out."""
    ran = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=place.folder,
        env=environment(place.folder, {"LD_PRELOAD": str(shim)} if shim else None),
        input=lines,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def check_end(place: Place, name: str, file: Path) -> int:
    """The run has come to its end and no call was made twice but the one in flight; how many were."""
    entries = place.entries(file=file)
    check_whole(entries)
    assert len(entries) == COMMITS
    calls = Counter(call for call in place.calls() if call.startswith(f"{name} "))
    assert len(calls) == STEPS
    assert calls.total() <= STEPS + 1
    return calls.total() - STEPS


@pytest.fixture(scope="module")
def commits(shim: Path, tmp_path_factory: pytest.TempPathFactory) -> list[int]:
    """Which syncs of a run in a new store are its commits."""
    place = Place(tmp_path_factory.mktemp("commits"))
    place.prepare()
    return [which for which, code, _ in child(place, FAILING, str(shim), "0", shim=shim) if code == PROVIDER]


@pytest.mark.parametrize("commit", [0, 2, STEPS], ids=["the first", "the third", "the last"])
def test_a_sync_that_fails_under_a_command_is_told_and_resume_goes_on(
    place: Place, shim: Path, commits: list[int], commit: int
) -> None:
    which = commits[commit]
    ran = place.moot("run", "machines.py:WALK", "ada", "--run-id", RUN, more=failing_at(shim, which))
    assert (ran.returncode, ran.stdout) == (PROVIDER, "")
    assert "the store could not write: disk I/O error; the run is as it was before" in ran.stderr
    assert "Traceback" not in ran.stderr
    kept = place.entries()
    assert len(kept) == commit
    if kept:
        assert place.row()["owner"] is None
    begin = ("resume", RUN) if kept else ("run", "machines.py:WALK", "ada", "--run-id", RUN)
    assert place.moot(*begin).returncode == 0
    check_end(place, "ada", place.file)


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
def test_any_sync_of_a_run_may_fail(place: Place, shim: Path, lasting: bool, figure: list[str]) -> None:
    found = child(place, FAILING, str(shim), str(int(lasting)), shim=shim)
    lines, kept = [], 0
    for which, code, said in found:
        assert (code == PROVIDER) == ("the store could not write: disk I/O error" in said)
        assert (code == REFUSED) == ("cannot be opened as a store: disk I/O error" in said)
        before = place.entries(file=place.folder / f"{which}.db")
        check_whole(before)
        seen = said.count("run.started") + said.count("replied")
        assert len(before) in (seen, seen + 1)
        kept += len(before) - seen
        lines.append((GO_ON if before else BEGIN).format(name=f"w{which}", which=which))
    assert child(place, GOING_ON, lines="\n".join(lines)) == [0] * len(found)
    repeated = sum(check_end(place, f"w{which}", place.folder / f"{which}.db") for which, _, _ in found)
    codes = Counter(code for _, code, _ in found)
    assert codes[PROVIDER] == COMMITS
    figure.append(
        f"{len(found)} syncs of a run failed, {'each and all after it' if lasting else 'one by one'}: "
        f"{codes[PROVIDER]} commits refused, {codes[REFUSED]} stores not opened, {codes[0]} harmless; "
        f"0 gaps, {repeated} calls in flight repeated, {kept} entries were on the disk all the same"
    )
