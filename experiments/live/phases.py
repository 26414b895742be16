#!/usr/bin/env python3
"""Diagnoses a long command of three phases, each with another fault, from moments of its run (`diagnose --live`).

Run from the repository's root after `make build`, as root: experiments/live/phases.py [SECONDS of a phase]    (20)
Prints the command's time, the time to the answer behind its end, and each finding with its moments.
"""

import json, os, re, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from traced import cpu

SECONDS = sys.argv[1] if len(sys.argv) > 1 else "20"
NEARMISS = os.environ.get("NEARMISS", "target/release/nearmiss")
EXPECTED = [("color", 0), ("apart", 1), ("color", 2)]


def main():
    print(f"three-phases --seconds {SECONDS} under diagnose --live, {cpu()}, {time.strftime('%F')}, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as runs:
        command = [NEARMISS, "diagnose", "--live", "--cpus", "2", "--json", "--runs", runs, "--"]
        began = time.monotonic()
        done = subprocess.run([*command, "target/subjects/three-phases", "--seconds", SECONDS], capture_output=True, text=True)
        took = time.monotonic() - began
    if done.returncode:
        sys.exit(done.stderr)
    ran = float(re.search(r"the command ran for ([\d.]+) s", done.stderr)[1])
    print(f"the command ran for {ran:.1f} s (measured); the answer came {took - ran:.1f} s after its end")
    found = set()
    answer = json.loads(done.stdout)
    for finding in answer["findings"]:
        moments, function = finding["prediction"]["moments"], finding["prediction"]["function"]
        at = [ns / 1e9 for ns in moments["at_ns"]]
        phases = {int(second // (ran / 3)) for second in at}
        found |= {(finding["remedy"], phase) for phase in phases}
        name = function["name"] if function else "-"
        print(f"  {finding['remedy']:<6} {name:<11} predicted {finding['prediction']['gain']:.0%} at {', '.join(f'{s:.1f} s' for s in at)}; {moments['whole_gain']:.0%} of the run")
    right = [(remedy, phase) in found for remedy, phase in EXPECTED]
    if not all(right):
        print("\n".join(f"  note: {note}" for note in answer["notes"]))
    print(f"faults found in their phases: {sum(right)} of {len(right)}")


main()
