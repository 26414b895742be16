#!/usr/bin/env python3
"""How long the pair table of 16 tasks takes: 120 pairs on five page placements.

Run from the repository's root after `make build subjects`: experiments/pair/table.py [--reads N]
Wanted: under 30 s on two CPUs. Prints the verb's output, and its wall seconds beside the load of the machine.
"""

import os, subprocess, sys, tempfile, time

from paired import NEARMISS, cpu, recorded

READS = sys.argv[2] if sys.argv[1:2] == ["--reads"] else "700K"


def main():
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        print(cpu())
        run = recorded(["--threads", "16", "--block", "384K", "--reads", READS])
        begun = time.monotonic()
        done = subprocess.run([NEARMISS, "rehearse", "pair", run], check=True, capture_output=True, text=True)
        lines = done.stdout.splitlines()
        print("\n".join(lines[:12]))
        print(f"measured: {time.monotonic() - begun:.1f} s, by {os.getloadavg()[0]:.1f} tasks at a time on {os.cpu_count()} CPUs")


main()
