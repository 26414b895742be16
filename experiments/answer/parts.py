#!/usr/bin/env python3
"""Figures of parts of a run beside those of the whole run: ten programs, each diagnosed within a time and without a limit.

Run from the repository's root after `make build`: experiments/answer/parts.py [--whole FILE] [SECONDS] [NAME ...]    (20)
SECONDS is the time that the answer from parts may take: so little that none of the programs is recorded whole. FILE keeps
the answers on whole runs, which take most of an hour, for another time with the same build. Prints the findings of both, and whether they agree: the same remedies with at least 2%, each gain of the whole run within the range
that the parts state, and the shares of the waits within 10 points. All gains and waits are modelled.
"""

import argparse, json, os, re, subprocess, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from traced import NEARMISS, SUBJECTS, cpu

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--whole", metavar="FILE")
parser.add_argument("words", nargs="*", metavar="SECONDS | NAME")
given = parser.parse_args()
SECONDS = next((word for word in given.words if word.isdigit()), "20")
NAMES = [word for word in given.words if not word.isdigit()]
# A finding of less is not worth its line.
LEAST = 0.02
MOST_POINTS_OF_WAITS = 10
SQL = "create table t(a,b); with recursive n(i) as (select 1 union all select i+1 from n where i<60000) insert into t select i, i*7%1000 from n; select b, count(*) from t group by b limit 3;"


def programs(place):
    with open(f"{place}/lines", "w") as file:
        file.writelines(f"{n * 7919 % 1000003} a line to be sorted\n" for n in range(100_000))
    with open(f"{place}/many.c", "w") as file:
        file.writelines(f"int f{i}(int x) {{ return x * {i} + (x >> {i % 31}); }}\n" for i in range(500))
    return {
        "sort": ["sort", "-o", "/dev/null", "lines"],
        "gzip": ["gzip", "-kc", "lines"],
        "xz": ["xz", "-6", "-kc", "lines"],
        "python3": ["/usr/bin/python3", "-c", "d = {i: i * i for i in range(150000)}; print(sum(d.values()))"],
        "sqlite3": ["sqlite3", ":memory:", SQL],
        "gcc": ["gcc", "-O2", "-c", "-o", "/dev/null", "many.c"],
        "aligned-tasks": [f"{SUBJECTS}/aligned-tasks", "--objects", "64", "--visits", "20000000"],
        "matrix-rows": [f"{SUBJECTS}/matrix-rows"],
        "churn": [f"{SUBJECTS}/churn", "--rounds", "3"],
        "pointer-chase": [f"{SUBJECTS}/pointer-chase"],
    }


def diagnose(command, within, place):
    """Its findings as {remedy: (gain, least, most)}, the share of its waits, and what was recorded."""
    words = [os.path.abspath(NEARMISS), "diagnose", "--within", within, "--runs", f"{place}/runs"]
    done = subprocess.run([*words, "--json", "--", *command], cwd=place, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    answer = json.loads(done.stdout)
    found = {}
    for finding in answer["findings"]:
        gain = finding["prediction"]
        if gain["gain"] >= LEAST:
            found.setdefault(finding["remedy"], (gain["gain"], gain["low"], gain["high"]))
    why = answer.get("healthy") or (answer.get("unexplained") or {}).get("why") or ""
    waits = re.search(r"(\d+)% of (?:the|its) [\d,.]+ \w+ of CPU time[^:]*?waits", why)
    covered = next((re.match(r"Recorded: [^.]*(\.\d[^.]*)*\.", note)[0] for note in answer["notes"] if note.startswith("Recorded: ")), "recorded whole")
    return found, int(waits[1]) if waits else None, covered


def whole_run(name, command, place):
    """As diagnose, from the whole run; kept in the file that was named."""
    kept = json.load(open(given.whole)) if given.whole and os.path.exists(given.whole) else {}
    if name not in kept:
        kept[name] = diagnose(command, "0s", place)
        if given.whole:
            with open(given.whole, "w") as file:
                json.dump(kept, file)
    return kept[name]


def words(found, waits):
    gains = [f"{remedy} {gain:.1%} ({low:.1%} to {high:.1%})" for remedy, (gain, low, high) in found.items()]
    return ", ".join(gains) or f"no finding, waits {waits}%"


def disagreement(parts, whole):
    (found, waits, _), (all_found, all_waits, _) = parts, whole
    if set(found) != set(all_found):
        return "other remedies"
    for remedy, (gain, _, _) in all_found.items():
        if not found[remedy][1] - 0.005 <= gain <= found[remedy][2] + 0.005:
            return f"{remedy} out of its range"
    if waits is not None and all_waits is not None and abs(waits - all_waits) > MOST_POINTS_OF_WAITS:
        return "other waits"
    return None


def main():
    print(f"parts within {SECONDS} s beside whole runs, modelled on host; {cpu()}; load {os.getloadavg()[0]:.1f}")
    agree = tried = 0
    with tempfile.TemporaryDirectory() as place:
        for name, command in programs(place).items():
            if NAMES and name not in NAMES:
                continue
            parts, whole = diagnose(command, f"{SECONDS}s", place), whole_run(name, command, place)
            why = disagreement(parts, whole)
            agree, tried = agree + (why is None), tried + 1
            print(f"{name:14} parts: {words(*parts[:2])}; {parts[2]}\n{'':14} whole: {words(*whole[:2])}; {why or 'agrees'}", flush=True)
    print(f"{agree} of {tried} agree")


main()
