"""The demonstration: a run is killed with SIGKILL, resumed, approved; another hits its budget; a page tells it all.

Everything is offline: `newsroom.json` plays the agents, and notes each call in a file that survives the kill.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import demo_debate
import demo_team

HERE = Path(__file__).parent
OUTPUT = Path.cwd() / "demo-output"
CALLS = OUTPUT / "calls.log"
SOURCE = str(HERE / "newsroom.py") + ":NEWSROOM"
MODEL = f"scripted:{HERE / 'newsroom.json'},log={CALLS}"
RUN = "newsroom-demo"


def main() -> None:
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir()
    title("1  The machine")
    moot("graph", SOURCE, "--format", "tree")
    moot("check", SOURCE)
    title("2  A run, killed with SIGKILL while a call is under way")
    kill_after(calls=4)
    before = calls()
    title("3  Resumed: what was answered is not asked again")
    moot("resume", RUN, expect=5)
    title("4  A person approves")
    moot("answer", RUN, "--yes")
    account(before)
    title("5  The same work with a budget of three calls: it stops, with the best draft so far")
    moot("run", SOURCE, "tides", "--model", MODEL, "--budget", "calls=3", "--run-id", "newsroom-frugal", expect=7)
    title("6  The report")
    moot("report", RUN, "--output", str(OUTPUT / "report.html"))
    title("7  A debate: it stops when the panel agrees")
    demo_debate.show(OUTPUT, moot)
    title("8  A team: a concept goes back once, is approved, and reaches the CEO")
    demo_team.show(OUTPUT, moot)


def title(text: str) -> None:
    print(f"\n\x1b[1;36m{text}\x1b[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


def moot(*arguments: str, expect: int = 0) -> None:
    """Run one command, as a person would type it."""
    print(f"$ moot {' '.join(_short(arguments))}", flush=True)
    code = subprocess.run(_command(arguments), env=_environment(), stdin=subprocess.DEVNULL).returncode
    if code != expect:
        sys.exit(f"the demonstration expected exit code {expect}, not {code}")


def kill_after(calls: int) -> None:
    """Start the run and kill it, process and all, once so many calls have begun."""
    arguments = ("run", SOURCE, "tides", "--model", MODEL, "--run-id", RUN)
    print(f"$ moot {' '.join(_short(arguments))}", flush=True)
    child = subprocess.Popen(_command(arguments), env=_environment(), stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while len(_log()) < calls:
        if child.poll() is not None or time.monotonic() > deadline:
            sys.exit("the run ended before it could be killed")
        time.sleep(0.02)
    time.sleep(0.2)
    child.send_signal(signal.SIGKILL)
    child.wait()
    print(f"      kill -9 {child.pid}: the process is gone in the middle of call {calls}")


def calls() -> Counter[str]:
    """How often each call was made so far, by its key."""
    return Counter(line.split()[0] for line in _log())


def account(before: Counter[str]) -> None:
    """Show for each call of the run how often it was made, and count those that were repeated."""
    entries = json.loads(subprocess.check_output(_command(("show", RUN, "--json")), env=_environment()))["entries"]
    committed = {f"{RUN}.{entry['cause']}": entry for entry in entries if entry["event"]["name"] == "replied"}
    after = calls()
    print("\n  call               agent    made before the kill   made after it")
    for key, entry in committed.items():
        later = after[key] - before[key]
        print(f"  {key:<18} {entry['event']['agent']:<8} {before[key]:<22} {later}")
    in_flight = [key for key in committed if before[key] and after[key] > before[key]]
    repeated = [key for key in in_flight if key != list(before)[-1]]
    print(f"  {len(committed)} calls completed, {len(repeated)} of them repeated")
    print(f"  made again, because the kill came before its reply: {', '.join(in_flight) or 'none'}")
    if repeated:
        sys.exit("a completed call was repeated")


def _log() -> list[str]:
    return CALLS.read_text().splitlines() if CALLS.exists() else []


def _command(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "moothall", *arguments]


def _environment() -> dict[str, str]:
    return {**os.environ, "MOOTHALL_HOME": str(OUTPUT / "home"), "PYTHONUNBUFFERED": "1"}


def _short(arguments: Sequence[str]) -> list[str]:
    """Arguments as they would be typed here: without the long way to the files."""
    return [part.replace(f"{HERE}/", "examples/").replace(f"{Path.cwd()}/", "") for part in arguments]


if __name__ == "__main__":
    main()
