"""What benchmarks over simulated worlds share: the command line, means with intervals, the frame of the answer."""

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Spread = dict[str, float]


def spread(values: Sequence[float]) -> Spread:
    """The mean and its 95 % interval (Student) over seeds."""
    count = len(values)
    mean = math.fsum(values) / count
    if count < 2:
        return {"mean": mean, "low": mean, "high": mean, "n": count}
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    reach = student(count - 1) * deviation / math.sqrt(count)
    return {"mean": mean, "low": mean - reach, "high": mean + reach, "n": count}


def student(freedom: int) -> float:
    """The 97.5 % point of Student's distribution, by Cornish and Fisher; exact to three digits from 3 degrees on."""
    z = 1.959964
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def rounded(value: Any) -> Any:
    """Figures with five digits behind the point."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return round(value, 5) if isinstance(value, float) else value


def measured(bench: str, path: Path, seeds: int, measure: Callable[[list[Any], int], dict[str, Any]]) -> dict[str, Any]:
    """The answer of a benchmark over the worlds of a file."""
    start = time.process_time()
    answer = measure(json.loads(path.read_text("utf-8")), seeds)
    seconds = time.process_time() - start
    return rounded({"bench": bench, "file": path.name, "seeds": seeds, "cpu_seconds": seconds, **answer})


def main(bench: str, measure: Callable[[list[Any], int], dict[str, Any]], about: str, seeds: int = 20) -> None:
    """Run one benchmark from the command line."""
    cli = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("file", type=Path)
    cli.add_argument("--seeds", type=int, default=seeds)
    cli.add_argument("--json", action="store_true", help="print the whole answer on one line")
    chosen = cli.parse_args()
    answer = measured(bench, chosen.file, chosen.seeds, measure)
    print(json.dumps(answer, indent=None if chosen.json else 2))
