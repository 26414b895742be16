#!/usr/bin/env python3
"""Is the heaviest object of a program named by the user's line? Ten C++, five Rust and three Go programs.

Run after `make build`: experiments/names/run.py [--diagnose] [NAME ...]    (all without names; needs g++, rustc, go)
Each program misses the caches mostly on one object. A comment, `dominating object`, marks the user's line that allocates
it; in walk.cc it marks the declaration of a variable on the stack. Each is recorded on the model of zen4-genoa: whole by
`trace` (table.txt), or in parts as `diagnose` does it (diagnose.txt). The heaviest object is the name with the most stall
cycles among user memory. The name is right if it has a marked line, or the marked variable. Without names there are two
more, which do not count: tree.go without symbols, and scene.cc without optimisation. Native times are measured, shares
modelled. Ends with status 1 if a name is wrong.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from traced import cpu

NEARMISS = os.environ.get("NEARMISS", HERE.parents[1] / "target/release/nearmiss")
BUILD = {
    ".cc": ["g++", "-std=c++17", "-O2", "-g", "-o"],
    ".rs": ["rustc", "-O", "-g", "-o"],
    ".go": ["go", "build", "-o"],
}
MORE = {
    "tree-go-bare": ("tree.go", ["go", "build", "-ldflags=-s -w", "-o"]),
    "scene-cc-O0": ("scene.cc", ["g++", "-std=c++17", "-O0", "-g", "-o"]),
}
NOT_USER = ("kernel", "code", "slab", "page")
VARIABLE = re.compile(r"(\w+);  // dominating object")


def marked(source, stack):
    """What may name the object: the marked lines as FILE:LINE, or the variable that a marked line declares."""
    lines = [(number, line) for number, line in enumerate(source.read_text().splitlines(), 1) if "dominating object" in line]
    return [VARIABLE.search(line)[1] if stack else f"{source.name}:{number}" for number, line in lines]


def call(*words):
    """Standard output of nearmiss; a failure ends the experiment."""
    done = subprocess.run([NEARMISS, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"nearmiss {' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def heaviest(binary, place, how):
    """The user's object with the most stall cycles, all rows of one name together, and its share of all stall cycles."""
    runs = place / f"runs-{binary.name}"
    call(*how, "-m", "zen4-genoa", "--cpus", "1", "--runs", runs, "--", binary)
    model = json.loads(call("report", "--json", next(runs.iterdir())))["model"]
    stalls = collections.Counter()
    for row in model["objects"]:
        if not row["kind"].startswith(NOT_USER):
            stalls[f"{row['kind']} {row['name']}"] += row["tally"]["stall_cycles"]
    name, most = stalls.most_common(1)[0]
    return name, most / model["totals"]["stall_cycles"]


def judge(source, build, label, place, how):
    """Builds, times and traces one program; prints its line, and is true where the name is right."""
    binary = place / label
    subprocess.run([*build, binary, source], check=True)
    begun = time.monotonic()
    subprocess.run([binary], stdout=subprocess.DEVNULL, check=True)
    native_s = time.monotonic() - begun
    name, share = heaviest(binary, place, how)
    expected = marked(source, stack=source.stem == "walk")
    right = any(re.search(rf"\b{re.escape(one)}\b", name) for one in expected)
    verdict = "right" if right else "WRONG"
    print(f"{label:14} {native_s:.2f} s  {share:4.0%}  {verdict}  {name}  (marked: {', '.join(expected)})", flush=True)
    return right


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--diagnose", action="store_true", help="record by diagnose, with its default time")
    parser.add_argument("names", nargs="*", metavar="NAME")
    given = parser.parse_args()
    how = ["diagnose"] if given.diagnose else ["trace", "-q", "--deterministic", "--no-trace"]
    sources = sorted((path for path in HERE.iterdir() if path.suffix in BUILD), key=lambda path: (path.suffix, path.name))
    chosen = [path for path in sources if path.stem in given.names or not given.names]
    print(f"{' '.join(['experiments/names/run.py', *sys.argv[1:]])}, {time.strftime('%Y-%m-%d')}, {cpu()}")
    print("program        native, share of the stall cycles, verdict, the heaviest object's name, what it should have")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        place = pathlib.Path(place)
        right = sum(judge(path, BUILD[path.suffix], path.name.replace(".", "-"), place, how) for path in chosen)
        for label, (name, build) in MORE.items() if not given.names else ():
            judge(HERE / name, build, label, place, how)
    print(f"{right} of {len(chosen)} programs: the heaviest object has the user's line")
    sys.exit(right < len(chosen))


main()
