"""Kill -9 beside peers, as an outsider would: who repeats a payment, loses or doubles a delivery or an append?

    python benchmarks/kills.py [--kills 60] [--systems moothall,langgraph,burr,dbos] [--seed 1]

The same order in every system, each with its documented API and its most durable setting: twelve steps, three payments
that have no key, deliveries that have one, a fan-out of four, a question, and a history to which every step appends.
Processes that work on an order are killed at chosen moments, one after the other, until one comes to its end; then
comes the next order. What was done outside stands in a file that no system knows.

A payment whose outcome is unknown after a kill can be made again, or a person can be asked to look, which is
counted.
Peers are installed from PyPI into an environment of their own in build/kills, where they are missing.
"""

import argparse
import asyncio
import json
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

from orders import world

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "kills"
PACKAGES = {
    "moothall": [],
    "langgraph": ["langgraph==1.2.20", "langgraph-checkpoint-sqlite==3.1.2"],
    "burr": ["apache-burr==0.43.0", "aiosqlite==0.22.1"],
    "dbos": ["dbos==3.3.0"],
}
COLUMNS = (
    "orders",
    "kills",
    "payments repeated",
    "payments lost",
    "deliveries lost",
    "deliveries doubled",
    "appends lost",
    "appends doubled",
    "a person asked",
)
LONGEST = 0.12
"""A process is killed after so many seconds of work at most, which is most of what an order takes."""
AT_WORK = 0.85
"""So many of the processes are killed at work, the others perhaps while they open their store."""
PATIENCE = 60.0
ATTEMPTS = 40
"""So often a process may die of itself before its order counts as stranded."""


def main() -> None:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--systems", default=",".join(PACKAGES))
    cli.add_argument("--kills", type=int, default=60, help="of each system, at least")
    cli.add_argument("--seed", type=int, default=1)
    cli.add_argument("--nursery", help=argparse.SUPPRESS)
    chosen = cli.parse_args()
    if chosen.nursery:
        print(json.dumps(nursery(chosen.nursery, chosen.kills, random.Random(chosen.seed))))
        return
    systems = chosen.systems.split(",")
    python = prepare(systems)
    print(f"| system | {' | '.join(COLUMNS)} |\n|---|{'---:|' * len(COLUMNS)}")
    for system in systems:
        command = [python, __file__, "--nursery", system, "--kills", str(chosen.kills), "--seed", str(chosen.seed)]
        ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(ran.stdout.splitlines()[-1])
        print(f"| {system} | {' | '.join(str(found.get(column, 0)) for column in COLUMNS)} |", flush=True)


def prepare(systems: list[str]) -> str:
    """The Python of an environment in which these systems are installed."""
    python = str(WORK / "venv" / "bin" / "python")
    if not Path(python).exists():
        subprocess.run([sys.executable, "-m", "venv", str(WORK / "venv")], check=True)
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    wanted = [package for system in systems for package in PACKAGES[system]]
    subprocess.run([*install, *wanted, "orjson"], check=True)
    subprocess.run([*install, "--force-reinstall", "--no-deps", str(ROOT)], check=True)
    return python


def nursery(system: str, kills: int, draw: random.Random) -> Counter[str]:
    """Bring up processes of a system and kill them, order after order; what came of it, counted."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    order = import_module(f"orders.{system}")  # once, so that the processes that are killed begin with work
    counted: Counter[str] = Counter()
    while counted["kills"] < kills:
        with tempfile.TemporaryDirectory(prefix=f"kills-{system}-") as folder:
            counted += killed_order(order, folder, draw)
            counted += verdict(folder)
    return counted


def killed_order(order: ModuleType, folder: str, draw: random.Random) -> Counter[str]:
    """Let processes work on one order until one comes to its end; all others are killed."""
    counted, begun = Counter(orders=1), Path(folder) / "begun"
    if hasattr(order, "prepare"):
        process = os.fork()
        if not process:
            live(order.prepare, folder)
        os.waitpid(process, 0)
    while not (Path(folder) / "history.json").exists():
        begun.unlink(missing_ok=True)
        process = os.fork()
        if not process:
            live(order.work, folder)
        moment = draw.uniform(0, getattr(order, "LONGEST", LONGEST)) if draw.random() < 0.9 else PATIENCE
        ended = draw.random() < AT_WORK and ends_before(process, PATIENCE, begun)
        if killed := not (ended or ends_before(process, moment)):
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
        counted["kills" if killed else "ends"] += 1
        if counted["ends"] > ATTEMPTS:
            raise SystemExit(f"an order comes to no end: {(Path(folder) / 'errors.log').read_text()[-400:]}")
    return counted


def live(work: Callable[..., Awaitable[object]], folder: str) -> None:
    """The life of one process; it ends here, killed or not."""
    log = Path(folder) / "errors.log"
    try:
        asked, begun = Path(folder) / "asked", Path(folder) / "begun"
        history = asyncio.run(work(folder, begun.touch, lambda: asked.open("a").write(".")))
        if history:
            (Path(folder) / "history.json").write_text(json.dumps(list(history)))
    except BaseException as error:  # whatever ends a process: the next one goes on, and too many are told
        log.open("a").write(f"{type(error).__name__}: {error}\n")
    finally:
        os._exit(0)


def ends_before(process: int, seconds: float, sign: Path | None = None) -> bool:
    """Whether a process has ended by itself after so many seconds, or before it gives a sign."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if os.waitpid(process, os.WNOHANG)[0]:
            return True
        if sign is not None and sign.exists():
            return False
        time.sleep(0.001)
    return False


def verdict(folder: str) -> Counter[str]:
    """What is wrong with an order that is over."""
    deeds = world.deeds(folder)
    paid = Counter(deed[1] for deed in deeds if deed[0] == "paid")
    keys = {(deed[1], deed[2]) for deed in deeds if deed[0] == "delivered"}
    delivered = Counter(what for what, _ in keys)
    history = Counter(json.loads((Path(folder) / "history.json").read_text()))
    asked = Path(folder) / "asked"
    found = {
        "payments repeated": sum((paid - Counter(world.PAYMENTS)).values()),
        "payments lost": sum((Counter(world.PAYMENTS) - paid).values()),
        "deliveries lost": sum((Counter(world.DELIVERIES) - delivered).values()),
        "deliveries doubled": sum((delivered - Counter(world.DELIVERIES)).values()),
        "appends lost": sum((world.HISTORY - history).values()),
        "appends doubled": sum((history - world.HISTORY).values()),
        "a person asked": len(asked.read_text()) if asked.exists() else 0,
    }
    return Counter({column: number for column, number in found.items() if number})


if __name__ == "__main__":
    main()
