#!/usr/bin/env python3
"""The loop on programs with a known illness, and on programs without: what is predicted, what is measured.

Run from the repository's root after `make build`: experiments/color-loop/run.py [SECONDS a comparison]
Ends with status 1 if a sick program is not found, a healthy one is, or the prediction of a dependent walk lies more than 15 points off.
"""

import json, os, re, subprocess, sys, tempfile

NEARMISS = os.path.realpath("target/release/nearmiss")
SUBJECTS = os.path.realpath("target/subjects")
SECONDS = sys.argv[1] if len(sys.argv) > 1 else "20"
MACHINES = ["host", "zen3-milan", "zen4-genoa", "xeon-icelake-sp", "xeon-sapphire-rapids", "neoverse-n1"]
WITHIN = 0.15


def nearmiss(*words):
    done = subprocess.run([NEARMISS, *words], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"nearmiss {' '.join(words)}: {done.stderr}")
    return done.stdout


def diagnose(command, *options):
    return json.loads(nearmiss("diagnose", "--json", "--cpus", "2", *options, "--", *command))


def newest():
    return max(os.scandir("nearmiss-runs"), key=lambda entry: entry.stat().st_mtime).path


def sick(name, traced, measured, metric, dependent=False):
    findings = diagnose([f"{SUBJECTS}/{name}", *traced])["findings"]
    if not findings:
        print(f"{name} {' '.join(traced)}: NOT FOUND")
        return False
    finding = findings[0]
    function = finding["prediction"]["function"]
    low, high = sorted([function["gain"], function["dependent_gain"]])
    options = finding["apply"][3:finding["apply"].index("--")]
    verdict = json.loads(nearmiss("verify", "color", "--json", *options, "--time-limit", SECONDS + "s", "--pairs", "40",
                                  "--metric", metric + " ([0-9.]+)", "--", f"{SUBJECTS}/{name}", *measured))
    comparison = verdict["comparison"]
    gain = 1 - comparison["ratio"]
    near, far = (1 - bound for bound in reversed(comparison["interval"] or (float("nan"),) * 2))
    off = max(low - gain, gain - high, 0)
    print(f"{name} {' '.join(measured)}: {' '.join(options)}: {finding['symptom']}\n"
          f"    `{function['name']}`: predicted {low:.0%} (overlap) to {high:.0%} (none), measured {gain:.0%} "
          f"[{near:.0%}, {far:.0%}] of {metric}, {1 / comparison['ratio']:.2f}x, {verdict['pairs']} pairs, "
          f"{verdict['outcome']}: {off * 100:.0f} points off"
          f"{'' if dependent else ' (no dependent walk)'}", flush=True)
    return off <= WITHIN or not dependent


def inside(name, traced):
    findings = diagnose([f"{SUBJECTS}/{name}", *traced])["findings"]
    why = [finding["reach"]["inside"] for finding in findings if "inside" in finding["reach"]]
    text = f"{findings[0]['symptom']}; {why[0]['why']}; {why[0]['change']}" if why else "NOT FOUND"
    print(f"{name} {' '.join(traced)}: {text}", flush=True)
    return bool(why)


def well(name, command):
    """Traced once, whole machine, and modelled on several."""
    found = {"host": diagnose(command)["findings"]}
    run = newest()
    for machine in MACHINES[1:]:
        found[machine] = json.loads(nearmiss("diagnose", "--json", "-m", machine, run))["findings"]
    wrong = {machine: [f["symptom"] for f in list] for machine, list in found.items() if list}
    print(f"{name}: {wrong or 'nothing to remedy'} on {', '.join(MACHINES)}", flush=True)
    return not wrong


def main():
    print("predicted by replaying a trace of the whole machine on `host`; measured by interleaved runs on it")
    place = tempfile.TemporaryDirectory()
    os.chdir(place.name)
    with open("words", "w") as words:
        words.writelines(f"{n * 2654435761 % 4294967291:08x}\n" for n in range(20000))
    right = []
    for threads in ["1", "2", "4"]:
        queue = ["--objects", "1024", "--threads", threads]
        right.append(sick("aligned-tasks", [*queue, "--visits", "300000"], [*queue, "--visits", "4000000"],
                          "ns_per_visit", dependent=True))
    right.append(sick("equal-stacks", ["--threads", "64", "--rounds", "2500"], ["--threads", "64", "--rounds", "100000"],
                      "ns_per_[a-z]+"))
    right.append(sick("lock-step", ["--elements", "16384", "--rounds", "1"], ["--elements", "16384", "--rounds", "50"],
                      "ns_per_element"))
    right.append(inside("mmap-buffers", ["--elements", "2048", "--rounds", "6"]))
    right.append(inside("matrix-rows", ["--columns", "512", "--rounds", "6"]))
    sql = "create table t(a); with recursive c(n) as (select 1 union all select n+1 from c where n<20000) " \
          "insert into t select n*7919%20011 from c; create index i on t(a); select sum(a) from t where a%3=0;"
    for name, command in {
        "healthy": [f"{SUBJECTS}/healthy"],
        "pointer-chase": [f"{SUBJECTS}/pointer-chase"],
        "sort": ["sort", "-o", "/dev/null", "words"],
        "gzip": ["gzip", "-kc", "words"],
        "sqlite3": ["sqlite3", ":memory:", sql],
    }.items():
        right.append(well(name, command))
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
