#!/usr/bin/env python3
"""How long the pair table of 16 tasks takes: 120 pairs on five page placements.

Run from the repository's root after `make build subjects`: experiments/pair/table.py [--reads N]
Wanted: under 30 s on two CPUs. Prints wall seconds of the whole verb, and what it says of its own parts. Measured.
"""

import os, subprocess, sys, tempfile

from paired import NEARMISS, cpu, recorded

READS = sys.argv[2] if sys.argv[1:2] == ["--reads"] else "700K"


def main():
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        print(cpu())
        run = recorded(["--threads", "16", "--block", "384K", "--reads", READS])
        done = subprocess.run([NEARMISS, "rehearse", "pair", run], check=True, capture_output=True, text=True)
        lines = done.stdout.splitlines()
        print("\n".join(lines[:12]))
        print(done.stderr.strip().splitlines()[-1])


main()
