#!/usr/bin/env python3
"""What `rehearse pair` makes of `groups`: the pairs' ranks, the groups, two recordings of differently placed threads, and
the healthy twin.

Run from the repository's root after `make build subjects`: experiments/pair/groups.py
Ends with status 1 if a pair of one group ranks below another one, a grouping of the two recordings differs by 2% and more,
or something is proposed for the twin. Everything is predicted.
"""

import os, sys, tempfile

from paired import cpu, pairs, recorded, rehearsed, rows

# Everything on one CPU, and wherever the guest's kernel puts it.
ELSEWHERE = ("taskset", "-c", "0")


def main():
    good = True
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        print(cpu())
        both = []
        for name, before in (("placed by the guest", ()), ("all on CPU 0", ELSEWHERE)):
            rehearsal, seconds = rehearsed(recorded([], before))
            ranked = pairs(rehearsal)
            same = [of_alone for a, b, of_alone in ranked if a % 2 == b % 2]
            other = [of_alone for a, b, of_alone in ranked if a % 2 != b % 2]
            fits = max(same) < min(other)
            print(f"recorded {name}: {rehearsal['subject']} ({seconds:.0f} s)")
            print(f"    same group {min(same):.2f} to {max(same):.2f} of alone, other {min(other):.2f} to {max(other):.2f}:"
                  f" {'all' if fits else 'NOT all'} {len(same)} rank above all {len(other)}")
            for way, (cycles, of_alone, saved) in rows(rehearsal).items():
                print(f"    {way:32} {cycles:12,} {of_alone:7.1%} {saved:7.1%}")
            both.append(rows(rehearsal)["by the groups, replayed whole"][0])
            good &= fits and "|" in rehearsal["subject"]
        apart = abs(both[0] / both[1] - 1)
        print(f"the groups of both recordings differ by {apart:.2%} of their cycles (wanted: under 2%)")
        healthy, _ = rehearsed(recorded(["--own"]))
        print(f"blocks of their own: {healthy['subject']}")
        good &= apart < 0.02 and healthy["subject"].endswith("no grouping is proposed")
    sys.exit(0 if good else 1)


main()
