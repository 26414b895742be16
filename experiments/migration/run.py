#!/usr/bin/env python3
"""Records that the tap sends of a command on 1, 2 and 4 CPUs, and of a program that moves from CPU to CPU.

Run from the repository's root after `make build`: experiments/migration/run.py [RUNS]
Ends with status 1 if `sort` on several CPUs sends more than 1.3 times, or the moving program more than 1.5 times, the
records of the smallest run on one CPU.
"""

import os, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from traced import MACHINE, SUBJECTS, cpu, numbers, trace

RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 10


def measure(what, command, limit, rounds):
    print(f"{what}, -m {MACHINE}, {rounds} runs each; measured records and window, modelled cycles of the CPUs")
    runs = {1: [], 2: [], 4: []}
    for _ in range(rounds):
        for cpus in runs:
            manifest, model = trace(cpus, command)
            cycles = sorted((cpu["cycles"] for cpu in model["cpus"]), reverse=True)
            runs[cpus].append(manifest["records"])
            print(f"    {cpus} CPUs: {manifest['records'] / 1e6:6.1f} M records, window {manifest['window_ns'] / 1e9:5.2f} s, "
                  f"cycles by CPU {'  '.join(f'{c / 1e6:.0f} M' for c in cycles)}", flush=True)
    least = min(runs[1])
    good = True
    for cpus, records in runs.items():
        ratio = max(records) / least
        good &= ratio <= limit
        print(f"  {cpus} CPUs: {min(records) / 1e6:.1f} to {max(records) / 1e6:.1f} M records: "
              f"{ratio:.2f} times the smallest run on one CPU (limit {limit})")
    return good


def main():
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        print(cpu())
        numbers()
        good = measure("sort -o /dev/null of 120,000 numbers", ["sort", "-o", "/dev/null", "numbers"], 1.3, RUNS)
        good &= measure("migrating: to the next CPU after every 200,000 updates",
                        [f"{SUBJECTS}/migrating", "--updates", "4000000"], 1.5, max(RUNS // 3, 1))
        sys.exit(0 if good else 1)


main()
