#!/usr/bin/env python3
"""Figures of parts of a run beside those of the whole run: ten programs, each diagnosed within a time and without a limit.

Run from the repository's root after `make build`: experiments/answer/parts.py [--whole DIR] [SECONDS] [NAME ...]    (60)
SECONDS is the time that the answer from parts may take: in a minute few of the programs are recorded whole. DIR keeps
the whole recordings, which take most of an hour, for another time: they are modelled anew by the build at hand. Prints
the findings of both, the shares of the cycles that are waited for each level, other CPUs and memory, and whether they
agree: no remedy with 4% is missing on either side, and each gain and each share of the whole run is within the range that
the parts state, two points more or less. All are modelled.
"""

import argparse, glob, json, os, re, subprocess, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from traced import NEARMISS, SUBJECTS, cpu

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--whole", metavar="DIR")
parser.add_argument("words", nargs="*", metavar="SECONDS | NAME")
given = parser.parse_args()
SECONDS = next((word for word in given.words if word.isdigit()), "60")
NAMES = [word for word in given.words if not word.isdigit()]
# A finding of less is not worth its line.
LEAST = 0.02
# So many points less or more than a range are within the figures' rounding and the runs' differences.
ROUNDING = 0.02
SQL = "create table t(a,b); with recursive n(i) as (select 1 union all select i+1 from n where i<6000) insert into t select i, i*7%1000 from n; select b, count(*) from t group by b limit 3;"


def programs(place):
    with open(f"{place}/lines", "w") as file:
        file.writelines(f"{n * 7919 % 1000003} a line to be sorted\n" for n in range(100_000))
    with open(f"{place}/some", "w") as file:
        file.writelines(f"{n * 7919 % 1000003} a line to be packed\n" for n in range(20_000))
    with open(f"{place}/many.c", "w") as file:
        file.writelines(f"int f{i}(int x) {{ return x * {i} + (x >> {i % 31}); }}\n" for i in range(60))
    return {
        "sort": ["sort", "-o", "/dev/null", "lines"],
        "gzip": ["gzip", "-kc", "lines"],
        "xz": ["xz", "-1", "-kc", "some"],
        "python3": ["/usr/bin/python3", "-c", "d = {i: i * i for i in range(30000)}; print(sum(d.values()))"],
        "sqlite3": ["sqlite3", ":memory:", SQL],
        "gcc": ["gcc", "-O2", "-c", "-o", "/dev/null", "many.c"],
        "aligned-tasks": [f"{SUBJECTS}/aligned-tasks", "--objects", "64", "--visits", "20000000"],
        "matrix-rows": [f"{SUBJECTS}/matrix-rows", "--rounds", "400"],
        "churn": [f"{SUBJECTS}/churn", "--rounds", "3"],
        "pointer-chase": [f"{SUBJECTS}/pointer-chase"],
    }


def answer(words, place, runs):
    """Findings as {remedy: (gain, least, most)}, waits as {source: (share, least, most)}, and what was recorded."""
    done = subprocess.run([os.path.abspath(NEARMISS), "diagnose", "--json", *words], cwd=place, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")
    record = json.loads(done.stdout)
    found = {}
    for finding in record["findings"]:
        gain = finding["prediction"]
        if gain["gain"] >= LEAST:
            found.setdefault(finding["remedy"], (gain["gain"], gain["low"], gain["high"]))
    covered = next((re.match(r"Recorded: [^.]*(\.\d[^.]*)*\.", note)[0] for note in record["notes"] if note.startswith("Recorded: ")), "recorded whole")
    return found, waits(newest(runs)), covered


def newest(runs):
    return max(glob.glob(f"{runs}/*/"), key=os.path.getmtime)


def waits(run):
    """Shares of the run's cycles by what was waited for, with the ranges that parts of a run have."""
    report = subprocess.run([os.path.abspath(NEARMISS), "report", "-m", "host", "--json", run], capture_output=True, text=True, check=True)
    model = json.loads(report.stdout)["model"]
    ranges, cycles = model.get("ranges"), model["totals"]["cycles"]

    def share(waited, among):
        share = waited / cycles
        return (share, among["low"], among["high"]) if among else (share, share, share)

    stalls, whole = model["stalls"], {"all": share(model["totals"]["stall_cycles"], ranges and ranges["all"])}
    for level, waited in enumerate(stalls["levels"]):
        whole[f"L{level + 1}"] = share(waited, ranges and ranges["levels"][level])
    whole["other CPUs"] = share(stalls["coherence"], ranges and ranges["coherence"])
    # Behind a pause nobody has seen whether memory was touched before.
    memory = ["first_touch", "memory_local"]
    low, high = (sum(ranges[source][end] for source in memory) for end in ("low", "high")) if ranges else (0, 0)
    whole["memory"] = share(sum(stalls[source] for source in memory), ranges and {"low": low, "high": high})
    return whole


def recorded(command, within, place, runs):
    return answer(["--within", within, "--runs", runs, "--", *command], place, runs)


def whole_run(command, place, runs):
    """The answer on a kept recording of all, or on one that is made and kept now."""
    if os.path.isdir(runs):
        return answer(["-m", "host", newest(runs)], place, runs)
    return recorded(command, "0s", place, runs)


def ranged(figures):
    return ", ".join(f"{name} {share:.0%} ({low:.0%} to {high:.0%})" if low < high else f"{name} {share:.0%}"
                     for name, (share, low, high) in figures.items() if share >= LEAST or high >= LEAST)


def words(found, waits):
    return f"{ranged(found) or 'no finding'}; waits {ranged(waits)}"


def disagreements(parts, whole):
    (found, waits, _), (all_found, all_waits, _) = parts, whole
    alone = set(found) ^ set(all_found)
    if any({**found, **all_found}[name][0] >= LEAST + ROUNDING for name in alone):
        yield "other remedies"
    stated = {**waits, **found}
    for name, (share, _, _) in {**all_waits, **all_found}.items():
        if name in stated and not stated[name][1] - ROUNDING <= share <= stated[name][2] + ROUNDING:
            yield f"{name} out of its range"


def main():
    print(f"parts within {SECONDS} s beside whole runs, modelled on host; {cpu()}; load {os.getloadavg()[0]:.1f}")
    agree = tried = 0
    with tempfile.TemporaryDirectory() as place:
        for name, command in programs(place).items():
            if NAMES and name not in NAMES:
                continue
            parts = recorded(command, f"{SECONDS}s", place, f"{place}/parts")
            whole = whole_run(command, place, os.path.abspath(f"{given.whole or place}/{name}"))
            why = ", ".join(disagreements(parts, whole))
            agree, tried = agree + (not why), tried + 1
            print(f"{name:14} parts: {words(*parts[:2])}\n{'':14} {parts[2]}\n"
                  f"{'':14} whole: {words(*whole[:2])}\n{'':14} {why or 'agrees'}", flush=True)
    print(f"{agree} of {tried} agree")


main()
