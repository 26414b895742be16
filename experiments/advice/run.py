#!/usr/bin/env python3
"""Holds the advice on memory that comes back to programs that have the fault, to their twins, and to other programs.

Usage: experiments/advice/run.py    (some minutes; the output is kept in memory.txt)

For each shape of memory.c: whether `nearmiss diagnose` advises on the program and on its twin (modelled), and the CPU time
of both in interleaved pairs (measured: median of the pairs' savings, and quartiles). Status 1 if advice is missing or wrong.
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "experiments"))
from traced import NEARMISS, cpu, cpu_s  # noqa: E402

PAIRS = 15
# Shape, rounds: whether its memory comes back.
SHAPES = {"block": ("60", True), "arena": ("300", True), "heap": ("60", True), "once": ("60", False)}
OTHERS = [["sort", "-o", "/dev/null", "/etc/services"], ["gzip", "-c", "/usr/bin/python3"],
          ["python3", "-c", "print(sum(range(300000)))"], ["sqlite3", ":memory:", "select 1"]]


def advice(command):
    words = [NEARMISS, "diagnose", "-m", "zen4-genoa", "--within", "40s", "--", *command]
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    if "The kernel cleared" not in text:
        return None
    return text.split("That takes ")[1].split(" of the cycles")[0]


def main():
    print(f"experiments/advice/run.py, {time.strftime('%F')}, {cpu()}, load {os.getloadavg()[0]:.1f}")
    right = True
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        for ending, flags in (("", []), ("-twin", ["-DTWIN"])):
            subprocess.run(["cc", "-O1", "-g", *flags, "-o", "memory" + ending, ROOT / "experiments/advice/memory.c"], check=True)
        for shape, (rounds, comes_back) in SHAPES.items():
            sick, twin = (["./memory" + ending, shape, rounds] for ending in ("", "-twin"))
            found = [advice(sick), advice(twin)]
            times = [(cpu_s(sick), cpu_s(twin)) for _ in range(PAIRS)]
            saved = [1 - b / a for a, b in times]
            low, middle, high = statistics.quantiles(saved, n=4)
            good = (found[0] is not None) == comes_back and found[1] is None
            right &= good
            print(f"{shape:6} advice {found[0] or 'none':5} (modelled), twin {found[1] or 'none'}; twin saves {middle:4.0%} "
                  f"[{low:.0%}, {high:.0%}] of {statistics.median(a for a, _ in times):.3f} s (measured)  {'right' if good else 'WRONG'}",
                  flush=True)
        for command in OTHERS:
            found = advice(command)
            right &= found is None
            print(f"{command[0]:8} advice {found or 'none'}  {'right' if found is None else 'WRONG'}", flush=True)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
