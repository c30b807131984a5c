"""One order, written for several systems: what `benchmarks/kills.py` kills."""
