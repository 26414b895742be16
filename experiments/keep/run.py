#!/usr/bin/env python3
"""Programs that allocate and free large memory again and again, and programs that only seem to, under `keep`.

    experiments/keep/run.py measure [--only GLOB] [--pairs 15]
    experiments/keep/run.py judge [--only GLOB] [--pairs 15] [--within 60s]

A gain is the share of the command's CPU time (user and system) that is saved. `measure`: each program as it is, under the
thresholds that the remedy sets (glibc's tunables), and its twin, which keeps its memory by itself; medians of interleaved
runs, and of their ratios with quartiles. A process's peak contains that of this script, some 14 MB. Status 1 if a program
that should gain gains less than 15%, or another one more than 3%. `judge`: the finding of `keep` of `nearmiss diagnose`
beside the gain by `nearmiss verify keep`; without a finding 0% is predicted, and the tunables are measured.
The environment's NEARMISS names another binary than target/release/nearmiss.
"""

import argparse, fnmatch, glob, os, statistics, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.dirname(HERE))
from traced import call, cpu, verified  # noqa: E402

GAIN = ["frames", "columns", "spill", "workers", "server", "rounds"]
DO_NOT = ["small", "regions", "trims", "pinned", "grows", "files"]
COMPILERS = {".c": "gcc", ".cpp": "g++"}
TUNABLES = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=9223372036854775807"
LEAST_GAIN, MOST_OTHERWISE, NEAR = 0.15, 0.03, 0.15


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("verb", choices=["measure", "judge"])
    parser.add_argument("--nearmiss", default=os.environ.get("NEARMISS", f"{ROOT}/target/release/nearmiss"))
    parser.add_argument("--only", metavar="GLOB", default="*")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--within", metavar="TIME", default="60s")
    return parser.parse_args()


def built(name, place):
    """The commands of a program and of its twin; a program that does not gain has none."""
    source = glob.glob(f"{HERE}/{name}.*")[0]
    ending = os.path.splitext(source)[1]
    sides = [("", []), ("-twin", ["-DTWIN"])] if name in GAIN else [("", [])]
    if ending == ".py":
        return [["/usr/bin/python3", source, *(["twin"] if side else [])] for side, _ in sides]
    for side, flags in sides:
        words = [COMPILERS[ending], "-O2", "-g", "-Wall", "-Wextra", "-pthread", *flags, "-o", f"{place}/{name}{side}", source]
        subprocess.run(words, check=True)
    return [[f"{place}/{name}{side}"] for side, _ in sides]


def run(command, tunables=None):
    """What one run used, and what it printed."""
    environment = {key: value for key, value in os.environ.items() if key != "GLIBC_TUNABLES"}
    if tunables:
        environment["GLIBC_TUNABLES"] = tunables
    ours, theirs = os.pipe()
    child = os.posix_spawn(command[0], command, environment, file_actions=[(os.POSIX_SPAWN_DUP2, theirs, 1)])
    os.close(theirs)
    with open(ours) as output:
        printed = output.read()
    _, status, used = os.wait4(child, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)}: status {status}")
    return {"cpu_s": used.ru_utime + used.ru_stime, "faults": used.ru_minflt, "peak": used.ru_maxrss / 1024, "printed": printed}


def in_turns(sides, pairs):
    """Runs of each side (a command and its tunables), in turns from either end; all must print the same."""
    runs = [[] for _ in sides]
    for pair in range(pairs):
        order = range(len(sides)) if pair % 2 else reversed(range(len(sides)))
        for side in order:
            runs[side].append(run(*sides[side]))
    if len({one["printed"] for of_side in runs for one in of_side}) != 1:
        sys.exit(f"{sides[0][0]}: the sides print unlike checksums, so they do unlike work")
    return runs


def gain(plain, other):
    """The median of the pairs' savings, and their quartiles."""
    low, middle, high = statistics.quantiles([1 - b["cpu_s"] / a["cpu_s"] for a, b in zip(plain, other)], n=4)
    return {"gain": middle, "low": low, "high": high}


def ranged(saved):
    return f"{saved['gain']:4.0%} [{saved['low']:.0%}, {saved['high']:.0%}]"


def of_each(runs, metric, scale, form):
    return ", ".join(format(statistics.median(one[metric] for one in side) * scale, form) for side in runs)


def measure(name, commands, chosen):
    """Prints the program's line; whether it gains as it should."""
    runs = in_turns([(commands[0], None), (commands[0], TUNABLES), *((twin, None) for twin in commands[1:])], chosen.pairs)
    saved = gain(runs[0], runs[1])
    right = saved["gain"] >= LEAST_GAIN if name in GAIN else saved["gain"] <= MOST_OTHERWISE
    twin = f"{ranged(gain(runs[0], runs[2])):17}" if runs[2:] else " " * 17
    print(f"{name:8} tunables {ranged(saved):17} twin {twin} {of_each(runs, 'cpu_s', 1e3, '.0f'):13} ms;"
          f" {of_each(runs, 'faults', 1e-3, '.1f'):16} k faults; {of_each(runs, 'peak', 1, '.0f')} MB"
          f"{'' if right else '  NOT AS WANTED'}", flush=True)
    return right


def predicted(findings):
    """The prediction of the finding of `keep`, for the whole run where that is known; None without such a finding."""
    of_keep = [finding["prediction"] for finding in findings if finding["remedy"] == "keep"]
    return {**of_keep[0], **(of_keep[0].get("of_whole_run") or {})} if of_keep else None


def judge(name, command, chosen, place):
    """Prints the program's line; whether `keep` is found, and whether its prediction is near."""
    findings = call(chosen.nearmiss, place, "diagnose", "--json", "--within", chosen.within, "--", *command)["findings"]
    model = predicted(findings)
    if model:
        saved = verified(chosen.nearmiss, place, "keep", chosen.pairs, command)["gain"]
    else:
        runs = in_turns([(command, None), (command, TUNABLES)], chosen.pairs)
        # A loss that no finding proposes is none.
        saved = max(gain(*runs)["gain"], 0.0)
    off = (model["gain"] if model else 0.0) - saved
    print(f"{name:8} {'gains' if name in GAIN else 'does not'}  predicted {ranged(model) if model else 'no finding':17}"
          f"  measured {saved:4.0%} by {'verify' if model else 'tunables':8} ({off * 100:+.0f});"
          f" findings: {', '.join(finding['remedy'] for finding in findings) or 'none'}", flush=True)
    return model is not None, abs(off) <= NEAR


def main():
    chosen = options()
    names = [name for name in GAIN + DO_NOT if fnmatch.fnmatch(name, chosen.only)]
    print(f"# experiments/keep/run.py {chosen.verb} --pairs {chosen.pairs}, {time.strftime('%F %H:%M')}, {cpu()},"
          f" load {os.getloadavg()[0]:.1f}{' (busy)' if os.getloadavg()[0] > 0.5 else ''}")
    with tempfile.TemporaryDirectory() as place:
        commands = {name: built(name, place) for name in names}
        if chosen.verb == "measure":
            print("Measured: gain in CPU time by the tunables and of the twin, quartiles in brackets; medians of CPU time, minor"
                  " faults and\npeak memory as it is, with tunables, of the twin.")
            right = [measure(name, commands[name], chosen) for name in names]
            print(f"{sum(right)} of {len(right)} as wanted")
            sys.exit(not all(right))
        print("Gains in CPU time, predicted (ranges in brackets) and measured; in round brackets, points from one to the other.")
        judged = {name: judge(name, commands[name][0], chosen, place) for name in names}
    sick, others = ([judged[name] for name in names if (name in GAIN) == gains] for gains in (True, False))
    print(f"found {sum(found for found, _ in sick)} of {len(sick)}, false {sum(found for found, _ in others)} of {len(others)},"
          f" within {NEAR * 100:.0f} points {sum(near for _, near in sick)} of {len(sick)}")


if __name__ == "__main__":
    main()
