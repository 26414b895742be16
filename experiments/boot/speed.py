#!/usr/bin/env python3
"""Time that a restored guest saves: `nearmiss trace -- true` with and without --no-saved-boot, interleaved.

Run from the repository's root after `make build`: experiments/boot/speed.py [PAIRS]    (10)
All times are measured. Ends with status 1 where the restored side takes more than 0.55 of the other side's median.
"""

import os, statistics, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from traced import cpu

PAIRS = int(sys.argv[1]) if len(sys.argv) > 1 else 10
NEARMISS = os.path.realpath("target/release/nearmiss")
LIMIT = 0.55
SIDES = {"booted": ["--no-saved-boot"], "restored": []}


def seconds(options, runs):
    """Wall time of a trace of `true`."""
    began = time.monotonic()
    subprocess.run([NEARMISS, "trace", "--runs", runs, *options, "--", "true"], check=True, capture_output=True)
    return time.monotonic() - began


def main():
    print(cpu())
    print(f"nearmiss trace -- true, {PAIRS} interleaved pairs, measured seconds; load {os.getloadavg()[0]:.1f}")
    times = {side: [] for side in SIDES}
    with tempfile.TemporaryDirectory() as runs:
        first = seconds(SIDES["restored"], runs)
        print(f"  a first run, which may have saved the guest: {first:.2f}")
        for pair in range(PAIRS):
            for side in sorted(SIDES, reverse=pair % 2 == 1):
                times[side].append(seconds(SIDES[side], runs))
            print("  " + ", ".join(f"{side} {times[side][-1]:.2f}" for side in SIDES), flush=True)
    for side, taken in times.items():
        print(f"{side:<9} median {statistics.median(taken):.2f} s, {min(taken):.2f} to {max(taken):.2f}")
    ratio = statistics.median(times["restored"]) / statistics.median(times["booted"])
    pairs = [restored / booted for restored, booted in zip(times["restored"], times["booted"])]
    print(f"restored takes {ratio:.2f} of booted (pairs: {min(pairs):.2f} to {max(pairs):.2f}); wanted: at most {LIMIT}; "
          f"load {os.getloadavg()[0]:.1f}")
    return ratio > LIMIT


if __name__ == "__main__":
    sys.exit(main())
