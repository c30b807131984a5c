"""Let worlds live: one to look at, or many to count.

    python -m tests.simulation 17         the world of seed 17: what happens in it, and what is wrong
    python -m tests.simulation 0 300      the worlds of these seeds: a summary in JSON

The hash of texts is fixed, because sets of texts are walked in its order: the same seed is the same world everywhere.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.simulation.faults import Fault
from tests.simulation.story import world_of

SHOWN = 20


def show(seed: int, folder: Path) -> int:
    """Print one world."""
    ended = world_of(seed, folder)
    print(*ended.trace, sep="\n")
    print(f"{ended.entries} entries; {ended.digest}")
    print(*(f"WRONG: {wrong}" for wrong in ended.wrongs), sep="\n")
    return 1 if ended.wrongs else 0


def count(seeds: range, folder: Path) -> int:
    """Print a summary of many worlds."""
    happened: Counter[Fault] = Counter()
    wrongs: dict[int, tuple[str, ...]] = {}
    digest, entries = hashlib.blake2b(digest_size=16), 0
    for seed in seeds:
        ended = world_of(seed, folder)
        happened += ended.happened
        entries += ended.entries
        digest.update(ended.digest.encode())
        if ended.wrongs and len(wrongs) < SHOWN:
            wrongs[seed] = ended.wrongs
    counts = {fault.name: number for fault, number in happened.items()}
    print(json.dumps({"happened": counts, "entries": entries, "digest": digest.hexdigest(), "wrongs": wrongs}))
    return 0


def main(words: list[str]) -> int:
    """Do what the command line says."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(
            sys.executable, [sys.executable, "-m", "tests.simulation", *words], {**os.environ, "PYTHONHASHSEED": "0"}
        )
    with tempfile.TemporaryDirectory() as folder:
        if len(words) == 1:
            return show(int(words[0]), Path(folder))
        return count(range(int(words[0]), int(words[1])), Path(folder))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
