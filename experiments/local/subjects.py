#!/usr/bin/env python3
"""The findings of `diagnose` on each subject and its twin on a machine of two nodes.

Run from the repository's root after `make build`: experiments/local/subjects.py [NAME…]
Ends with status 1 if a subject's own cause is not found, or a twin gets advice.
"""

import json, os, subprocess, sys, tempfile

from nodes import MACHINE, NEARMISS, SUBJECTS, cpu

LEAST = 0.02  # as diagnose shows findings
MIGRATING = ["migrating", "--updates", "600000", "--every", "60000", "--entries", "131072"]
# Name, command, order of the records, what is seen (None: nothing that matters), and the option that is offered (None: no
# advice from outside).
CASES = [
    ("wrong homes", ["wrong-homes", "--rounds", "12"], "recorded", "Homes of its pages", "--home"),
    ("own homes", ["wrong-homes", "--own", "--rounds", "12"], "recorded", None, None),
    # Nodes in turn serve four readers faster only where their transactions share the bus.
    ("all read all", ["wrong-homes", "--shared"], "modelled", "all nodes in turn", None),
    ("a task that moves", MIGRATING, "recorded", "a CPU of its own", "--bind"),
    ("a task that stays", [*MIGRATING, "--stay"], "recorded", None, None),
    ("messages", ["messages"], "recorded", "pools by thread", "--pools"),
    ("messages of one's own", ["messages", "--own"], "recorded", None, None),
    ("a written line", ["tenants", "--counter"], "modelled", None, None),
    ("lines of one's own", ["tenants", "--counter", "--padded"], "modelled", None, None),
    ("healthy", ["healthy"], "recorded", None, None),
]


def diagnosed(command, order):
    words = [NEARMISS, "trace", "-q", "-m", MACHINE, "--cpus", "4", "--order", order, "--", f"{SUBJECTS}/{command[0]}", *command[1:]]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run([NEARMISS, "diagnose", "--json", "--all"], check=True, capture_output=True)
    return [finding for finding in json.loads(done.stdout)["findings"] if finding["remedy"] == "local"]


def main():
    wanted = sys.argv[1:]
    good = True
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        print(cpu())
        for name, command, order, seen, option in CASES:
            if wanted and name not in wanted:
                continue
            findings = diagnosed(command, order)
            print(f"{name} ({' '.join(command)}, order {order})")
            for finding in findings:
                if finding["evidence"]["most_gain"] < LEAST:
                    continue
                apply = finding["apply"]
                done = " ".join(apply[3:apply.index("--")]) if apply else "nothing from outside"
                print(f"    {finding['prediction']['gain']:.1%} of the cycles (predicted): {finding['treatment']}: {done}")
            worth = [finding for finding in findings if finding["prediction"]["gain"] >= LEAST]
            offered = [" ".join(finding["apply"]) for finding in worth if finding["apply"]]
            fits = any(option in words for words in offered) if option else not offered or seen is not None
            fits &= seen is None or any(seen in finding["treatment"] for finding in findings)
            print(f"    {'as wanted' if fits else 'NOT as wanted'}", flush=True)
            good &= fits
    sys.exit(0 if good else 1)


main()
