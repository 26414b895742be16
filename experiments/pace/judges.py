#!/usr/bin/env python3
"""Servers on both sides of pace's thresholds: the findings of `diagnose` on each, and where it finds a thread that waits too often,
the calls that `rehearse pace` predicts beside those under `apply pace`.

    experiments/pace/judges.py [--interval 1ms] [--seconds 3] [NAME…]

Each fault has a twin that does the same work and must not be found. Needs root, for the logs, and target/subjects/waits.
Status 1: a fault is not found, or a twin is.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import debian
import predicted

SUBJECT = debian.BINARIES.parent / "subjects/waits"
# A name, options of the subject, datagrams a second, whether it is a fault.
CASES = [
    ("one event a call", "--sockets 50", 8000, True),
    ("  twin: rests 2 ms by itself", "--sockets 50 --rest 2000", 8000, False),
    ("  twin: sparse", "--sockets 50", 1000, False),
    ("epoll, many events", "--sockets 50 --family 2", 20000, True),
    ("  twin: rests 2 ms by itself", "--sockets 50 --family 2 --rest 2000", 8000, False),
    ("select of 200", "--sockets 200 --family 1", 8000, True),
    ("  twin: select of 1", "--sockets 1 --family 1", 8000, False),
    ("poll of 400, each call dear", "--sockets 400", 5000, True),
    ("  twin: timeout 0", "--sockets 400 --spin", 5000, False),
    ("bursts, all taken", "--sockets 200 --burst 2", 8000, True),
    ("  twin: one datagram a wake", "--sockets 1 --family 2 --burst 8 --take 1", 8000, False),
]


def output_of(*words, cwd=None):
    done = subprocess.run([debian.NEARMISS, *words], capture_output=True, text=True, cwd=cwd)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.stderr.strip()[-300:]}")
    return done.stdout


def judge(command, interval, place):
    """Whether it is found; and of one that is: its calls, the calls predicted and measured an event, the share slept."""
    runs, record = pathlib.Path(place) / "runs", pathlib.Path(place) / "paced.json"
    output_of("observe", "--polls", "--log", "--runs", runs, "--", *command)
    run = next(runs.iterdir())
    findings = json.loads(output_of("diagnose", run, "--json", cwd=place))["findings"]
    gains = [finding["prediction"]["gain"] for finding in findings if finding["remedy"] == "pace"]
    if not gains or max(gains) <= 0:
        return None
    events_a_call, [(calls, added, pays)] = predicted.predict(run, interval, place)
    output_of("apply", "pace", "--interval", interval, "--json", record, "--", *command)
    return max(gains), events_a_call, calls, predicted.measure(json.loads(record.read_text()), 0, 0, events_a_call), pays


def line_of(name, is_fault, found):
    right = (found is not None) == is_fault
    verdict = ("found" if found else "not found") + ("" if right else ", WRONG")
    if not found:
        return f"{name:30} {verdict}"
    gain, events_a_call, calls, (seen, _, share), pays = found
    beside = f"{seen:.3f} measured ({seen / calls - 1:+.0%})" if seen else f"- measured, slept for {share:.0%} of the events"
    return f"{name:30} {verdict:12} saves {gain:4.0%}; calls an event {1 / events_a_call:.3f}, paced {calls:.3f} predicted, {beside}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--interval", default="1ms")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("names", nargs="*", help="parts of names; by default all")
    arguments = parser.parse_args()
    if os.getuid() != 0 or not SUBJECT.exists():
        print(f"skipped: the judges of pace need root and {SUBJECT} (make subjects)")
        return
    print(f"judges of pace, every {arguments.interval}; {debian.machine()}")
    wrong = 0
    for name, options, rate, is_fault in CASES:
        if arguments.names and not any(part in name for part in arguments.names):
            continue
        command = [SUBJECT, *options.split(), "--rate", str(rate), "--events", str(round(rate * arguments.seconds / 8) * 8)]
        with tempfile.TemporaryDirectory() as place:
            found = judge(command, arguments.interval, place)
        wrong += (found is not None) != is_fault
        print(line_of(name, is_fault, found), flush=True)
    print(f"{wrong} wrong")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
