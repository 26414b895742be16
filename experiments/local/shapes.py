#!/usr/bin/env python3
"""The findings of `diagnose` on programs that it was not written for (`shapes/`), and on their healthy twins.

Run from the repository's root after `make build`: experiments/local/shapes.py [NAME…]
Ends with status 1 if a program's own cause is not found, is offered something else, or a twin is offered anything.
"""

import json, os, subprocess, sys, tempfile

from nodes import MACHINE, NEARMISS, cpu

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shapes")
SUBJECT = os.path.join(SOURCES, "../../../subjects")
INCLUDE = os.path.join(SOURCES, "../../../native/include")
LEAST = 0.02  # as diagnose shows findings
# Treatments that a finding may name. A healthy program is offered nothing; a treatment without gain may be listed.
HOME, TURN, BIND, POOLS = "Homes of its pages", "all nodes in turn", "a CPU of its own", "pools by thread"
WRITTEN, FILES, NOTHING = "None by homes: the lines pass", "None by homes of the program's own", None
# Program and options, its cause, and whether an option of `apply` is offered for it.
CASES = [
    ("jobs --few", HOME, True),
    ("jobs", HOME, True),
    ("jobs --any", TURN, False),
    ("jobs --own", NOTHING, False),
    ("prefork", HOME, True),
    ("prefork --all", TURN, False),
    ("prefork --own", NOTHING, False),
    ("ring", WRITTEN, False),
    ("ring --small", WRITTEN, False),
    ("ring --near", NOTHING, False),
    ("counters", WRITTEN, False),
    ("counters --one", NOTHING, False),
    ("counters --own", NOTHING, False),
    ("moved", BIND, True),
    ("moved --stay", NOTHING, False),
    ("queue", WRITTEN, False),
    ("queue --near", NOTHING, False),
    ("file", FILES, False),
    ("file --calls", FILES, False),
    ("file --near", NOTHING, False),
]


def build(name, place):
    program = f"{place}/{name}"
    words = ["cc", "-O2", "-g", "-std=gnu11", "-pthread", "-fno-omit-frame-pointer", f"-I{SUBJECT}", f"-I{INCLUDE}"]
    subprocess.run([*words, "-o", program, f"{SOURCES}/{name}.c"], check=True)
    return program


def diagnosed(command):
    words = [NEARMISS, "trace", "-q", "-m", MACHINE, "--cpus", "4", "--", *command]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run([NEARMISS, "diagnose", "--json", "--all"], check=True, capture_output=True)
    subprocess.run(["rm", "-r", "nearmiss-runs"], check=True)
    return [finding for finding in json.loads(done.stdout)["findings"] if finding["remedy"] == "local"]


def judge(findings, cause, offered):
    """The error, in a few words."""
    seen = [finding for finding in findings if finding["evidence"]["most_gain"] >= LEAST]
    options = [finding for finding in findings if finding["apply"] and finding["prediction"]["gain"] >= LEAST]
    if cause and not any(cause in finding["treatment"] for finding in seen):
        return "its cause is not found"
    if cause and cause not in max(seen, key=lambda finding: finding["evidence"]["most_gain"])["treatment"]:
        return "another cause comes first"
    if offered and not any(cause in finding["treatment"] for finding in options):
        return "nothing is offered"
    wrong = [finding["treatment"] for finding in options if not offered or cause not in finding["treatment"]]
    return f"offered is: {'; '.join(wrong)}" if wrong else None


def main():
    wanted, good = sys.argv[1:], True
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        os.chdir(place)
        print(cpu())
        for words, cause, offered in CASES:
            if wanted and words not in wanted:
                continue
            name, *options = words.split()
            findings = diagnosed([build(name, place), *options])
            wrong = judge(findings, cause, offered)
            print(f"{words}: {f'NOT as wanted: {wrong}' if wrong else 'as wanted'}")
            for finding in findings:
                most, gain = finding["evidence"]["most_gain"], finding["prediction"]["gain"]
                if max(most, gain) >= LEAST:
                    apply = finding["apply"]
                    option = " ".join(apply[3:apply.index("--")])[:90] if apply else "nothing from outside"
                    print(f"    waits {most:.0%}, predicted {gain:.1%}: {finding['treatment']}: {option}")
            sys.stdout.flush()
            good &= wrong is None
    sys.exit(0 if good else 1)


main()
