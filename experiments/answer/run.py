#!/usr/bin/env python3
"""How long the answer takes: `diagnose` of a long trace, and `diagnose -- CMD` of programs that take under a second.

Run from the repository's root after `make build`:
    experiments/answer/run.py [--records MILLIONS] [--machines NAME,…] [--run RUN,…] [--no-long] [--no-short]
                              [--short NUMBER,…] [--nearmiss PROGRAM,…]

Several programs are several versions of nearmiss: each answers before the next question. RUN is a kept run of
the long trace, one a machine.

The long trace is of `aligned-tasks`, with findings; wanted: 100 M records under a minute. Wanted of a short program: 3 s
and 60 times what the program takes here by itself.
"""

import argparse, glob, json, os, resource, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from traced import NEARMISS, SUBJECTS, cpu, numbers

# Visits a record of `aligned-tasks`, with the default filter, and what the guest's start records.
RECORDS_A_VISIT, RECORDS_AT_START = 1.134, 5.7e6
SHORT = [
    ["sort", "-o", "/dev/null", "numbers"],
    ["gzip", "-kf", "numbers"],
    ["/usr/bin/python3", "-c", "print(sum(i * i for i in range(3000000)))"],
    [f"{SUBJECTS}/aligned-tasks", "--visits", "10000000"],
    [f"{SUBJECTS}/matrix-rows"],
]


def timed(command):
    """Wall and CPU seconds of a command, its standard output and the last line of its standard error."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wall, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    stderr = done.stderr.strip().splitlines()
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, done.stdout, stderr[-1:]


def found(findings):
    """Gains of the findings, in words."""
    gains = [f"{finding['remedy']} {finding['prediction']['gain']:.0%}" for finding in json.loads(findings)["findings"]]
    return ", ".join(gains) or "no finding"


def long(versions, millions, machine, kept):
    visits = str(int((millions * 1e6 - RECORDS_AT_START) / RECORDS_A_VISIT))
    program = [f"{SUBJECTS}/aligned-tasks", "--visits", visits]
    with tempfile.TemporaryDirectory(dir=".") as runs:
        if not kept:
            timed([versions[0], "trace", "-q", "-m", machine, "--runs", runs, "--", *program])
        run = kept or glob.glob(f"{runs}/*/")[0]
        records = json.load(open(f"{run}/manifest.json"))["records"]
        for nearmiss in versions:
            wall, used, findings, stderr = timed([nearmiss, "diagnose", run, "-m", machine, "--json"])
            print(f"  {machine:16} {records / 1e6:6.1f} M records: {wall:6.1f} s ({used:.0f} s of CPU time), "
                  f"{found(findings)}{of_version(nearmiss, versions)}")
            print(f"    {' '.join(stderr)}", flush=True)


def of_version(nearmiss, versions):
    """Which version answered, where there are several."""
    return f"; by {os.path.basename(nearmiss)}" if len(versions) > 1 else ""


def short(versions, command):
    native = sorted(timed(command)[0] for _ in range(5))[2]
    wanted = 3 + 60 * native
    words = " ".join([os.path.basename(command[0]), *command[1:]])
    for nearmiss in versions:
        with tempfile.TemporaryDirectory(dir=".") as runs:
            wall, used, findings, stderr = timed([nearmiss, "diagnose", "--json", "--runs", runs, "--", *command])
        print(f"  {words[:44]:44} alone {native:5.2f} s, answer {wall:6.1f} s, wanted {wanted:5.1f} s: "
              f"{'reached' if wall <= wanted else 'missed'}; {found(findings)}{of_version(nearmiss, versions)}")
        print(f"    {' '.join(stderr)}", flush=True)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--records", type=float, default=100, help="of the long trace, in millions")
    arguments.add_argument("--machines", default="xeon-mp-4way-l3,host", help="of the long trace")
    arguments.add_argument("--no-long", action="store_true")
    arguments.add_argument("--no-short", action="store_true")
    arguments.add_argument("--run", default="", help="kept runs of the long trace, one a machine")
    arguments.add_argument("--short", default=",".join(str(n) for n in range(len(SHORT))), help="numbers of programs")
    arguments.add_argument("--nearmiss", default=NEARMISS, help="one version or several")
    given = arguments.parse_args()
    versions = [os.path.realpath(program) for program in given.nearmiss.split(",")]
    kept = [os.path.realpath(run) for run in given.run.split(",") if run]
    print(f"time to the answer, measured, {cpu()}, load {os.getloadavg()[0]:.1f} when it began")
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        numbers()
        if not given.no_long:
            print("diagnose RUN:")
            for number, machine in enumerate(given.machines.split(",")):
                long(versions, given.records, machine, kept[number] if kept else None)
        if not given.no_short:
            print("diagnose -- CMD, whole machine, host:")
            for number in given.short.split(","):
                short(versions, SHORT[int(number)])
        os.chdir("/")


main()
