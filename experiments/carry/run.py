#!/usr/bin/env python3
"""What a trace costs that carries more: records of `sort` with each part of `trace --carry`, beside the default filter's.

Run from the repository's root after `make build`: experiments/carry/run.py [RUNS]
"""

import json, os, random, re, subprocess, sys, tempfile

NEARMISS = os.path.realpath("target/release/nearmiss")
RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
MACHINE = "xeon-mp-4way-l3"
PARTS = ["", "stores", "tasks", "stores,tasks", "addresses", "addresses,stores,tasks"]


def numbers():
    """0.8 MB of shuffled numbers, the same in every run."""
    lines = [str(n) for n in range(120000)]
    random.Random(1).shuffle(lines)
    with open("numbers", "w") as file:
        file.write("\n".join(lines) + "\n")


def trace(cpus, part):
    """Records and window in seconds; a guest that its emulator ends is tried again, and said."""
    carry = ["--carry", part] if part else []
    line = [NEARMISS, "trace", "-q", "-m", MACHINE, "--cpus", str(cpus), *carry, "--", "sort", "-o", "/dev/null", "numbers"]
    for _ in range(3):
        done = subprocess.run(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode == 0:
            break
        print(f"    again: {done.stderr.strip()}")
    else:
        sys.exit(1)
    run = max(os.scandir("nearmiss-runs"), key=lambda entry: entry.name).path
    manifest = json.load(open(f"{run}/manifest.json"))
    subprocess.run(["rm", "-r", run], check=True)
    return manifest["records"], manifest["window_ns"] / 1e9


def median(values):
    return sorted(values)[len(values) // 2]


def main():
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        cpu = re.search("model name\\s*: (.*)", open("/proc/cpuinfo").read())
        print(f"sort -o /dev/null of 120,000 numbers, -m {MACHINE}, medians of {RUNS} runs: measured")
        print(f"on {cpu[1] if cpu else 'an unnamed CPU'}, {os.cpu_count()} CPUs")
        numbers()
        for cpus in [1, 2]:
            least = None
            for part in PARTS:
                runs = [trace(cpus, part) for _ in range(RUNS)]
                records, window = (median([run[i] for run in runs]) for i in range(2))
                least = least or records
                print(f"  {cpus} CPUs, --carry {part or '(nothing)':24} {records / 1e6:6.1f} M records, "
                      f"{records / least:5.2f} times, window {window:5.2f} s", flush=True)


main()
