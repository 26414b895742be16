#!/usr/bin/env python3
"""Whether two builds of nearmiss compute the same: ten recorded runs, in both orders, modelled, diagnosed and rehearsed by each.

Run from the repository's root after `make subjects`: experiments/same/run.py OLD NEW [NAME ...]
OLD and NEW are two binaries, NAME one of the runs; without names all ten are compared.
OLD records; both read. Records are compared field by field; what only one build has is a difference too, except the wake
part of a policy, which no record sets. Ends with status 1 at any difference.
"""

import json, os, subprocess, sys, tempfile

OLD, NEW = (os.path.realpath(path) for path in sys.argv[1:3])
NAMES = sys.argv[3:]
SUBJECTS = os.path.realpath("target/subjects")
PROGRAMS = {
    "aligned-tasks": ["--cpus", "2", "--carry", "addresses", "--", "aligned-tasks", "--objects", "64", "--visits", "60000"],
    "matrix-rows": ["--carry", "addresses", "--", "matrix-rows"],
    "equal-stacks": ["--cpus", "2", "--carry", "addresses", "--", "equal-stacks", "--rounds", "2000"],
    "false-sharing": ["--cpus", "2", "--carry", "addresses", "--", "false-sharing", "--times", "200000"],
    "running-sums": ["--carry", "addresses", "--", "running-sums", "--rounds", "200"],
    "stream-copy": ["--carry", "stores", "--", "stream-copy"],
    "groups": ["--cpus", "2", "--carry", "tasks", "--", "groups"],
    "gzip": ["--", "/bin/gzip", "-c", "/bin/true"],
    "python3": ["--", "/usr/bin/python3", "-c", "pass"],
    "sort": ["--cpus", "2", "--", "/usr/bin/sort", "/etc/services"],
}
RETIRED = {"wake"}


def record(arguments, runs):
    """Directory of a run of OLD."""
    at = arguments.index("--") + 1
    words = arguments[:at] + [os.path.join(SUBJECTS, arguments[at]), *arguments[at + 1:]]
    command = [OLD, "trace", "--quiet", "-m", "zen3-milan", "--runs", runs, *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return max((os.path.join(runs, run) for run in os.listdir(runs)), key=os.path.getmtime)


def printed(binary, arguments):
    done = subprocess.run([binary, *arguments], capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else {"failed": done.stderr}


def differences(old, new, path=""):
    """Fields compared, and those that differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted((old.keys() | new.keys()) - RETIRED)
        pairs = [(old.get(key), new.get(key), f"{path}.{key}") for key in keys]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = [(a, b, f"{path}[{at}]") for at, (a, b) in enumerate(zip(old, new))]
    else:
        return 1, [] if old == new else [f"{path}: {json.dumps(old)[:100]} is now {json.dumps(new)[:100]}"]
    each = [differences(*pair) for pair in pairs]
    return sum(count for count, _ in each), [found for _, some in each for found in some]


def main():
    fields, wrong = 0, 0
    chosen = {name: PROGRAMS[name] for name in NAMES or PROGRAMS}
    for name, arguments in chosen.items():
        with tempfile.TemporaryDirectory() as runs:
            run = record(arguments, runs)
            for order in ("recorded", "modelled"):
                for verb in (["report", "--json"], ["diagnose", "--json"], ["rehearse", "color", "--json"]):
                    words = [*verb, "--order", order, run]
                    old, new = printed(OLD, words), printed(NEW, words)
                    count, found = differences(old, new)
                    fields, wrong = fields + count, wrong + len(found)
                    print(f"{name:<14} {order:<9} {' '.join(verb):<24} {count:>9,} fields, {len(found)} differ", flush=True)
                    for difference in found[:5]:
                        print(f"    {difference}")
    print(f"{len(chosen)} runs in both orders: {fields:,} fields compared, {wrong} differ")
    sys.exit(wrong > 0)


main()
