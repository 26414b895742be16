#!/usr/bin/env python3
"""Times whole traces and windows of newer engines beside QEMU 7.2, in interleaved pairs.

Usage: experiments/engines/speed.py [--pairs 10] [--cpus 1,2] [--programs true,sort,gzip,two-threads]
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEARMISS = ROOT / "target/release/nearmiss"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "nearmiss/engines"
REFERENCE, NEWER = "7.2", ["10.0", "11.1"]


def programs(scratch):
    words = scratch / "words"
    words.write_text("".join(f"word{(i * 7919) % 60000:05d}\n" for i in range(60000)))
    threads = scratch / "two-threads"
    source = ROOT / "experiments/engines/two-threads.c"
    subprocess.run(["cc", "-O2", "-pthread", "-o", threads, source], check=True)
    return {
        "true": ["true"],
        "sort": ["sort", "-o", "/dev/null", str(words)],
        "gzip": ["gzip", "-kc", str(words)],
        "two-threads": [str(threads)],
    }


def trace(engine, cpus, command, scratch):
    """Seconds of the whole trace and of its window."""
    record = scratch / "record.json"
    begun = time.monotonic()
    subprocess.run(
        [NEARMISS, "trace", "--no-trace", "--runs", scratch / "runs", "--json", record, "-m", "xeon-mp-4way-l3",
         "--cpus", str(cpus), "--qemu", CACHE / engine / "bin/qemu-system-x86_64", "--", *command],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
    whole = time.monotonic() - begun
    [manifest] = (scratch / "runs").glob("*/manifest.json")
    window = json.loads(manifest.read_text())["window_ns"] / 1e9
    subprocess.run(["rm", "-rf", scratch / "runs"], check=True)
    return whole, window


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--cpus", default="1,2")
    parser.add_argument("--programs", default="true,sort,gzip,two-threads")
    options = parser.parse_args()
    model = next(l.split(": ")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name"))
    print(f"{time.strftime('%F')} {model}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.2f} at the start")
    print(f"Measured seconds, medians of {options.pairs} interleaved rounds; ratios to QEMU {REFERENCE}")
    print(f"{'program':12} {'CPUs':>4} {'engine':>6} {'whole':>7} {'ratio':>6} {'window':>7} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        commands = programs(scratch)
        for program in options.programs.split(","):
            for cpus in map(int, options.cpus.split(",")):
                times = {engine: [] for engine in [REFERENCE, *NEWER]}
                for _ in range(options.pairs):
                    for engine, seen in times.items():
                        seen.append(trace(engine, cpus, commands[program], scratch))
                medians = {e: [statistics.median(column) for column in zip(*seen)] for e, seen in times.items()}
                for engine, (whole, window) in medians.items():
                    first = medians[REFERENCE]
                    print(f"{program:12} {cpus:4} {engine:>6} {whole:7.2f} {whole / first[0]:6.2f} "
                          f"{window:7.3f} {window / first[1]:6.2f}", flush=True)


if __name__ == "__main__":
    main()
