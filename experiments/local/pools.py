#!/usr/bin/env python3
"""Blocks that a thread of the other node frees, and blocks that each thread frees itself, by allocator.

Run from the repository's root after `make build`: experiments/local/pools.py [RUNS]
LIBRARIES names a directory with allocators that are not installed.
Ends with status 1 if tcmalloc does not have a quarter fewer remote reads, or a tenth fewer cycles, where blocks are freed
elsewhere, or if pools are offered where each thread frees its own.
"""

import json, os, statistics, subprocess, sys, tempfile

from nodes import MACHINE, NEARMISS, SUBJECTS, cpu, figures, recorded

RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 1
PROGRAM = f"{SUBJECTS}/messages"
LIBRARIES = os.environ.get("LIBRARIES", "/usr/lib/x86_64-linux-gnu")
JEMALLOC = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
ALLOCATORS = {
    "glibc": ["env"],
    "jemalloc": ["env", f"LD_PRELOAD={JEMALLOC}"],
    "jemalloc by CPU": ["env", "MALLOC_CONF=percpu_arena:percpu", f"LD_PRELOAD={JEMALLOC}"],
    "tcmalloc": ["env", f"LD_PRELOAD={LIBRARIES}/libtcmalloc_minimal.so.4"],
    "mimalloc": ["env", f"LD_PRELOAD={LIBRARIES}/libmimalloc.so.2.0"],
}


def there(words):
    preloaded = [word.split("=", 1)[1] for word in words if word.startswith("LD_PRELOAD=")]
    return all(os.path.exists(file) for file in preloaded)


def measure(options):
    table = {}
    for name, words in ALLOCATORS.items():
        if not there(words):
            print(f"  {name:16} not installed")
            continue
        runs = [figures(recorded([*words, PROGRAM, *options], "--no-heap"), "messages") for _ in range(RUNS)]
        table[name] = [statistics.median(column) for column in zip(*runs)]
        remote, all_reads, user, cycles = table[name]
        print(f"  {name:16} r {remote / 1e3:6.0f} k of {all_reads / 1e3:6.0f} k bus reads of user mode, "
              f"{cycles / 1e6:6.1f} M cycles", flush=True)
    return table


def offered(options):
    words = [NEARMISS, "trace", "-q", "-m", MACHINE, "--cpus", "4", "--", PROGRAM, *options]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    found = json.loads(subprocess.run([NEARMISS, "diagnose", "--json"], check=True, capture_output=True).stdout)
    return any("--pools" in (finding["apply"] or []) for finding in found["findings"])


def main():
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        print(cpu())
        print(f"freed by a thread of the other node, medians of {RUNS}")
        table = measure([])
        fewer = 1 - table["tcmalloc"][0] / table["glibc"][0]
        faster = 1 - table["tcmalloc"][3] / table["glibc"][3]
        print(f"  tcmalloc: {fewer:.0%} fewer remote reads (wanted 25%), {faster:.0%} fewer cycles (wanted 10%)")
        print("freed by their own threads")
        measure(["--own"])
        elsewhere, own = offered([]), offered(["--own"])
        print(f"pools offered: {elsewhere} where blocks are freed elsewhere, {own} where each thread frees its own")
        sys.exit(0 if fewer >= 0.25 and faster >= 0.10 and elsewhere and not own else 1)


main()
