#!/usr/bin/env python3
"""A = A: how often `nearmiss gate` fails a program compared with itself, how noisy figures are, and how long it takes.

Run from the repository's root after `make build`: experiments/gate/same.py [ROUNDS]
Ends with status 1 if any gate fails. All figures but the seconds are modelled.
"""

import os, shutil, sys, tempfile

from gated import by, cpu, gate, noise, numbers
from traced import SUBJECTS

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
PROGRAMS = [
    "sort numbers",
    "gzip -c numbers",
    "sha256sum numbers",
    "grep -c 77 numbers",
    "/usr/bin/python3 -c 'print(len(set(str(i) for i in range(20000))))'",
    "sqlite3 :memory: 'create table t(a); insert into t values(1),(2),(3); select sum(a) from t'",
    f"{SUBJECTS}/matrix-rows",
]


def main():
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        print(cpu())
        numbers()
        programs = [program for program in PROGRAMS if shutil.which(program.split()[0])]
        gates = failed = 0
        for number in range(ROUNDS):
            for program in programs:
                status, record, seconds = gate(program, program)
                gates += 1
                failed += status
                print(f"round {number + 1}, {program}\n"
                      f"    status {status}, {record['new']['recordings']} recordings a side, {seconds:.0f} s (measured)\n"
                      f"    noise: {noise(record, 'user.instructions', 'user.l1', 'user.l2', 'kernel.instructions', 'kernel.l2')}\n"
                      f"    beyond: {by(record, 'beyond')}; unclear: {by(record, 'unclear')}", flush=True)
        print(f"{gates} gates of a program against itself, {failed} failed")
        sys.exit(1 if failed else 0)


main()
