#!/usr/bin/env python3
"""Results of `rehearse pair` on `groups`: the pairs' ranks, the groups, two recordings of differently placed threads, and
the healthy twin.

Run from the repository's root after `make build subjects`: experiments/pair/groups.py
Ends with status 1 if a pair of one group ranks below another one, a grouping of the two recordings differs by 2% and more,
or something is proposed for the twin. Everything is predicted.
"""

import itertools, json, os, statistics, sys, tempfile

from paired import cpu, pairs, recorded, rehearsed, rows

# Everything on one CPU, and wherever the guest's kernel puts it.
ELSEWHERE = ("taskset", "-c", "0")


def by_grouping(run):
    """By the table that a rehearsal left: what all ways to deal eight tasks to two cores take of alone, on each placement of
    pages."""
    with open(f"{run}/pairs.json") as file:
        table = json.load(file)
    weights = [task["weight"] for task in table["tasks"]]
    beside = {(pair["task"], pair["beside"]): pair["of_alone"] for pair in table["pairs"]}

    def cycles(groups, placement):
        of = lambda task, group: sum(beside[task, other][placement] for other in group if other != task) / (len(group) - 1)
        return sum(weights[task] * of(task, group) for group in groups for task in group) / sum(weights)

    placements = range(len(table["pairs"][0]["of_alone"]))
    for others in itertools.combinations(range(1, 8), 3):
        group = {0, *others}
        groups = [group, set(range(8)) - group]
        yield [cycles(groups, placement) for placement in placements]


def main():
    good = True
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        print(cpu())
        both, tables = [], []
        for name, before in (("placed by the guest", ()), ("all on CPU 0", ELSEWHERE)):
            run = recorded([], before)
            rehearsal, seconds = rehearsed(run)
            tables.append(list(by_grouping(run)))
            ranked = pairs(rehearsal)
            same = [of_alone for a, b, of_alone in ranked if a % 2 == b % 2]
            other = [of_alone for a, b, of_alone in ranked if a % 2 != b % 2]
            fits = max(same) < min(other)
            print(f"recorded {name}: {rehearsal['subject']} ({seconds:.0f} s)")
            print(f"    same group {min(same):.2f} to {max(same):.2f} of alone, other {min(other):.2f} to {max(other):.2f}:"
                  f" {'all' if fits else 'NOT all'} {len(same)} rank above all {len(other)}")
            for way, (cycles, of_alone, saved) in rows(rehearsal).items():
                print(f"    {way:32} {cycles:12,} {of_alone:7.1%} {saved:7.1%}")
            # Alone: the two recordings may have a window more or less to replay.
            both.append(rows(rehearsal)["by the groups, replayed whole"][1])
            good &= fits and "|" in rehearsal["subject"]
        apart = abs(both[0] / both[1] - 1)
        print(f"the groups of both recordings, replayed whole, differ by {apart:.2%} (wanted: under 2%)")
        differ = [abs(one / other - 1) for a, b in zip(*tables) for one, other in zip(a, b)]
        means = [abs(statistics.mean(one) / statistics.mean(other) - 1) for one, other in zip(*tables)]
        print(f"by their tables all {len(tables[0])} groupings differ by at most {max(differ):.2%}, placement by placement, "
              f"and by {max(means):.2%} at most on the mean of the placements (wanted: under 2%)")
        healthy, _ = rehearsed(recorded(["--own"]))
        print(f"blocks of their own: {healthy['subject']}")
        good &= apart < 0.02 and max(differ) < 0.02 and healthy["subject"].endswith("no grouping is proposed")
    sys.exit(0 if good else 1)


main()
