"""The three simulated worlds of the team in one answer: arbitration, memory and warming.

    python benchmarks/team_worlds.py ../shared [--seeds 20]

Reads arbitration.json, memory.json and warming.json in `sim` below the given folder and prints one JSON object.
"""

import argparse
import json
from pathlib import Path

import arbitration
import memory
import warming
import worlds

BENCHES = {"arbitration": arbitration.measure, "memory": memory.measure, "warming": warming.measure}


def main() -> None:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("folder", type=Path)
    cli.add_argument("--seeds", type=int, default=20)
    chosen = cli.parse_args()
    answers = {
        name: worlds.measured(name, chosen.folder / "sim" / f"{name}.json", chosen.seeds, measure)
        for name, measure in BENCHES.items()
    }
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
