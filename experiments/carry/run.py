#!/usr/bin/env python3
"""Cost of a trace that carries more: records of `sort` with each part of `trace --carry`, beside the default filter's.

Run from the repository's root after `make build`: experiments/carry/run.py [RUNS]
"""

import os, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from traced import MACHINE, cpu, numbers, trace

RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
PARTS = ["", "stores", "tasks", "stores,tasks", "addresses", "addresses,stores,tasks", "fields"]


def measure(cpus, part):
    """Records, and the window in seconds."""
    carry = ["--carry", part] if part else []
    manifest, _ = trace(cpus, ["sort", "-o", "/dev/null", "numbers"], *carry)
    return manifest["records"], manifest["window_ns"] / 1e9


def median(values):
    return sorted(values)[len(values) // 2]


def main():
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        print(f"sort -o /dev/null of 120,000 numbers, -m {MACHINE}, medians of {RUNS} runs: measured")
        print(cpu())
        numbers()
        for cpus in [1, 2]:
            least = None
            for part in PARTS:
                runs = [measure(cpus, part) for _ in range(RUNS)]
                records, window = (median([run[i] for run in runs]) for i in range(2))
                least = least or records
                print(f"  {cpus} CPUs, --carry {part or '(nothing)':24} {records / 1e6:6.1f} M records, "
                      f"{records / least:5.2f} times, window {window:5.2f} s", flush=True)


main()
