#!/usr/bin/env python3
"""Planted regressions: does `nearmiss gate` find each, with its function, and does it pass a clean twin of each?

Run from the repository's root after `make build`: experiments/gate/planted.py [ROUNDS]
Each round gates every regression and its twin, in turn. Ends with status 1 if a regression passes, is found in another
figure alone or in another function, or a twin fails. All figures but the seconds are modelled.
"""

import os, subprocess, sys, tempfile

from gated import by, cpu, gate

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 1
HERE = os.path.dirname(os.path.abspath(__file__))
# The planted change, how the program is called, the limits, and which figure with which first cause must be found.
PLANTED = [
    ("INSTRUCTIONS", "1% more instructions", "", ["--max-worse", "2%,user.instructions=0.5%"],
     "user.instructions", "checksum"),
    ("FIRST", "2% more misses of the first level", " near", ["--max-worse", "2%,user.l1=1%"], "user.l1", "look_into"),
    ("SECOND", "2% more misses of the second level", "", ["--max-worse", "2%,user.l2=1%"], "user.l2", "look_up"),
    ("LAST", "2% more misses of the last level", " huge", ["--max-worse", "2%,user.l3=1%"], "user.l3", "look_into"),
    ("CALLS", "one more system call in each turn that writes", "", [], "syscalls.access", "access"),
    ("WRITES", "each write of 4 KiB split in two", "", [], "syscalls.write", "write"),
    ("SHARED", "two threads' counters on one line", " threads", [], "user.coherence", "count"),
]


def build(name, *defines):
    words = ["cc", "-O1", "-g", "-pthread", *defines, "-o", name, f"{HERE}/planted.c"]
    subprocess.run(words, check=True)


def main():
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        print(cpu())
        build("base")
        build("twin", "-DTWIN")
        wrong = 0
        for number in range(ROUNDS):
            for plant, what, argument, limits, figure, function in PLANTED:
                build(plant.lower(), f"-DPLANT={plant}")
                status, record, seconds = gate(f"./base{argument}", f"./{plant.lower()}{argument}", *limits)
                found = {f["name"]: f for f in record["figures"] if f["ruling"] == "beyond"}
                first = next((c["name"] for c in found.get(figure, {}).get("causes", [])), "none")
                good = status == 1 and figure in found and first == function
                print(f"round {number + 1}, {what}: {'found' if good else 'NOT FOUND'}, status {status}, first cause {first}, "
                      f"{record['new']['recordings']} recordings a side, {seconds:.0f} s (measured)\n"
                      f"    beyond: {by(record, 'beyond')}", flush=True)
                status, record, seconds = gate(f"./base{argument}", f"./twin{argument}", *limits)
                print(f"    clean twin: status {status}, {record['new']['recordings']} recordings a side, {seconds:.0f} s "
                      f"(measured); beyond: {by(record, 'beyond')}", flush=True)
                wrong += (not good) + (status != 0)
        print(f"{ROUNDS * len(PLANTED)} regressions and as many twins, {wrong} judged wrongly")
        sys.exit(1 if wrong else 0)


main()
