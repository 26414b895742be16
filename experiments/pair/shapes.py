#!/usr/bin/env python3
"""Shapes that `rehearse pair` was not written for, each with a twin that no grouping helps: is a grouping proposed where,
and only where, a second, slow interleaver that knows nothing of nearmiss's model finds a gain?

Run from the repository's root after `make build`: experiments/pair/shapes.py [SHAPE...]
The second opinion is exhaustive: all 35 ways to deal eight tasks to two cores, each with slices of a millisecond. The best
way is chosen on half of the placements of pages and judged on the others, since the best of 35 equal ones looks good where
it was chosen. Right is: the grouping that is proposed gains as much there, within 10 points; nothing is proposed where the
best way gains under 2% there. Everything is predicted.
"""

import itertools, json, os, re, statistics, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from paired import cpu, recorded_program, rehearsed, rows, task

SHAPES = ["unlike", "little", "streams", "early", "mix"]
READS, PLACEMENTS, SLICE, REPEAT, LEAST = 100000, 4, 3000000, 4, 0.02
# Late in a task's life, as in the rehearsal.
FROM = 7


def built(place):
    """The shapes, the interleaver, and what writes a trace's tasks into files."""
    cc = ["cc", "-Wall", "-pthread"]
    subprocess.run([*cc, "-O1", "-o", f"{place}/shapes", f"{HERE}/shapes.c"], check=True)
    subprocess.run([*cc, "-O2", "-o", f"{place}/interleaver", f"{HERE}/interleaver.c"], check=True)
    if not os.path.exists(STREAMS):
        cargo = ["cargo", "build", "--release", "-q", "-p", "nearmiss-record", "--example", "streams"]
        subprocess.run(cargo, check=True, cwd=f"{HERE}/../..")


STREAMS = os.path.realpath(f"{HERE}/../../target/release/examples/streams")


def deals():
    """All ways to deal eight tasks to two cores, the first task on the first core."""
    for others in itertools.combinations(range(1, 8), 3):
        yield "".join("a" if n == 0 or n in others else "b" for n in range(8))


def second_opinion(place, run, tasks, instructions):
    """By deal, cycles of all tasks, a figure a placement of pages."""
    streams = tempfile.mkdtemp(dir=place)
    subprocess.run([STREAMS, run, streams], check=True)
    files = [f"{streams}/{tid}" for tid in tasks]
    cycles = {}
    for deal in deals():
        words = [f"{place}/interleaver", "1", PLACEMENTS, SLICE, REPEAT * instructions, FROM, deal, *files]
        output = subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout
        cycles[deal] = [int(line) for line in output.split()]
    return cycles


def gain(cycles, deal, placements=slice(None)):
    """Share that a deal saves of the mean of all, the mean of these placements."""
    means = [statistics.mean(column) for column in zip(*cycles.values())]
    return statistics.mean(1 - here / mean for here, mean in list(zip(cycles[deal], means))[placements])


def looked_at(place, shape, twin):
    words = [f"{place}/shapes", shape, *(["twin"] if twin else []), str(READS)]
    run = recorded_program(words)
    rehearsal, _ = rehearsed(run)
    tasks = [task(row[0]) for row in rehearsal["more"][0]["rows"]]
    windows, window = re.search(r"([\d,]+) late windows of ([\d,]+) instructions", rehearsal["basis"]).groups()
    instructions = int(windows.replace(",", "")) * int(window.replace(",", ""))
    cycles = second_opinion(place, run, tasks, instructions)
    groups = [row[2]["count"] if isinstance(row[2], dict) else None for row in rehearsal["more"][0]["rows"]]
    is_proposed = None not in groups
    half = PLACEMENTS // 2
    best = max(cycles, key=lambda deal: gain(cycles, deal, slice(half)))
    name = shape + (" twin" if twin else "")
    replayed = rows(rehearsal)["by the groups, replayed whole"][2]
    most = gain(cycles, best, slice(half, None))
    if is_proposed:
        deal = "".join("a" if group == groups[0] else "b" for group in groups)
        there = gain(cycles, deal)
        right = there >= LEAST and abs(there - replayed) <= 0.1
        text = f"proposed {deal}, {replayed:6.1%} predicted, {there:6.1%} there"
    else:
        right = most < LEAST
        text = f"nothing proposed ({replayed:5.1%} predicted)              "
    print(f"{name:14} {len(tasks)} tasks: {text}; best there {best} {most:6.1%}: {'right' if right else 'WRONG'}", flush=True)
    return right


def main():
    good = True
    with tempfile.TemporaryDirectory() as place:
        built(place)
        os.chdir(place)
        print(cpu())
        for shape in sys.argv[1:] or SHAPES:
            for twin in (False, True):
                good &= looked_at(place, shape, twin)
    sys.exit(0 if good else 1)


main()
