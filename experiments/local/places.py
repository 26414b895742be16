#!/usr/bin/env python3
"""A task that moves, what a rehearsal predicts where it is bound, and what a recording of its twin counts, which stays.

Run from the repository's root after `make build`: experiments/local/places.py
Ends with status 1 if the prediction is more than 10% off the cycles recorded, or if its remote reads are more than the
recording's by a tenth of all bus reads.
"""

import json, os, subprocess, sys, tempfile

from nodes import MACHINE, NEARMISS, SUBJECTS, cpu, recorded, reads

PROGRAM = [f"{SUBJECTS}/migrating", "--updates", "600000", "--every", "60000", "--entries", "131072"]


def whole(model):
    """Counts of the command, user mode and kernel: remote reads, all bus reads, cycles."""
    bus = model["totals"]["bus"]
    return bus["read_remote"], reads(bus), model["totals"]["cycles"]


def report(what, figures):
    remote, all_reads, cycles = figures
    print(f"{what}: r {remote:,} of {all_reads:,} bus reads, {cycles / 1e6:.1f} M cycles", flush=True)


def main():
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        print(cpu())
        for carry in ([], ["--carry", "tasks"]):
            subprocess.run([NEARMISS, "trace", "-q", "-m", MACHINE, "--cpus", "4", *carry, "--", *PROGRAM], check=True,
                           stdout=subprocess.DEVNULL)
            words = [NEARMISS, "rehearse", "local", "--json", "--policies", "round-robin,compact"]
            rehearsed = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
            rows = {row[0]["text"]: row for row in rehearsed["tables"][0]["table"]["rows"]}
            by = {name: (row[2]["count"], sum(row[at]["count"] for at in (2, 3, 4, 5)), row[6]["cycles"])
                  for name, row in rows.items()}
            print(f"traced {' '.join(carry) or 'without --carry'}")
            for name, figures in by.items():
                report(f"  {name} (rehearsed)", figures)
        stays = whole(recorded([*PROGRAM, "--stay"]))
        report("the twin that stays (recorded)", stays)
        predicted = by["round-robin"]
        off = predicted[2] / stays[2] - 1
        print(f"predicted {predicted[2] / 1e6:.1f} M, recorded {stays[2] / 1e6:.1f} M cycles: {off:+.1%} (wanted within 10%)")
        sys.exit(0 if abs(off) <= 0.10 and predicted[0] - stays[0] <= 0.1 * stays[1] else 1)


main()
