#!/usr/bin/env python3
"""How long a gate takes beside one trace of the same command.

Run from the repository's root after `make build`, on a quiet machine: experiments/gate/takes.py
Prints the median of three traces on the gate's machine, the time of one gate of the command against itself, and the
ratio of that to recordings ÷ CPUs × one trace (target: 1.5). Times are measured.
"""

import os, shlex, statistics, subprocess, tempfile, time

from gated import NEARMISS, cpu, gate, numbers
from traced import SUBJECTS

TRACES = 3
COMMANDS = ["sort numbers numbers numbers numbers", f"{SUBJECTS}/matmul", "gzip -c numbers numbers numbers"]


def trace(command):
    begin = time.monotonic()
    words = [NEARMISS, "trace", "-q", "-m", "zen4-genoa", "--cpus", "1", "--", *shlex.split(command)]
    subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - begin


def main():
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        print(cpu())
        numbers()
        for command in COMMANDS:
            of_one = statistics.median(trace(command) for _ in range(TRACES))
            _, record, seconds = gate(command, command)
            recordings = record["old"]["recordings"] + record["new"]["recordings"]
            ratio = seconds / (recordings / os.cpu_count() * of_one)
            print(f"{command}\n    one trace {of_one:.1f} s, a gate of {recordings} recordings {seconds:.1f} s, "
                  f"{ratio:.2f} of recordings ÷ CPUs × one trace", flush=True)


main()
