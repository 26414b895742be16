#!/usr/bin/env python3
"""Predictions of `rehearse pace` for a server beside what `apply pace` then does to it: calls an event, and what is added to
an answer on average, at one interval after another.

    experiments/pace/predicted.py                        # nginx, redis, haproxy, lighttpd
    experiments/pace/predicted.py --intervals 1ms,5ms --seconds 2 nginx

The prediction comes from the log of one run without pace. Then each interval has a run with pace, and a run without stands
before it. The library compares sleeping with staying awake all the time, by the CPU clock; only what it did while it slept
is compared, and an interval at which it mostly stayed awake is only held against the prediction's word on that.
Needs root, for the log.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile

import debian

INTERVALS = "200us,500us,1ms,2ms,5ms,10ms"
NAMES = ["nginx", "redis", "haproxy", "lighttpd-poll"]
# A run in which the thread sleeps for less than this share of the events is not compared.
SLEPT = 0.3
WANTED = 0.2


class Runs:
    """Runs of one server under its load."""

    def __init__(self, server, place, seconds):
        self.server, self.place, self.load = server, pathlib.Path(place), server.load(seconds)
        self.number = 0

    def observe(self, *options, before=()):
        """Observes the server under its load; returns the run's directory and the mean time of an answer."""
        self.number += 1
        runs = self.place / f"run-{self.number}"
        line = [debian.NEARMISS, "observe", "--polls", *options, "--runs", runs, "--load", self.load, "--", *before, *self.server.command]
        done = subprocess.run(line, capture_output=True, text=True)
        mean = re.search(r"^mean ([0-9.]+) ms", done.stdout, re.M)
        if not mean:
            raise SystemExit(f"{' '.join(map(str, line))}: {done.stderr.strip()[-300:]}")
        return next(runs.iterdir()), float(mean[1]) * 1e6

    def paced(self, interval):
        """Counts of the library, and the mean time of an answer."""
        record = self.place / "paced.json"
        _, mean = self.observe(before=[debian.NEARMISS, "apply", "pace", "--interval", interval, "--json", record, "--"])
        return json.loads(record.read_text()), mean


def cell(value):
    return next(iter(value.values())) if isinstance(value, dict) else value


def predict(run, intervals, place):
    """Figures of the thread that waits most: events a call, and by interval calls an event, time added, whether sleeping pays."""
    line = [debian.NEARMISS, "rehearse", "pace", run, "--all", "--json", "--intervals", intervals]
    done = subprocess.run(line, capture_output=True, text=True, cwd=place)
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    tables = [table["table"]["rows"] for table in json.loads(done.stdout)["tables"]]
    if not tables:
        return 1.0, []
    rows = [[cell(value) for value in row] for row in max(tables, key=lambda rows: cell(rows[0][1]))]
    polls = json.loads((run / "observe.json").read_text())["polls"]
    events = max(poll["events"] for poll in polls if poll["calls"] <= rows[0][1] * 1.01)
    predicted = [(calls / events, added, pays == "yes") for _, calls, _, _, pays, added, _ in rows[1:]]
    return events / rows[0][1], predicted


def measure(paced, mean, before, events_a_call):
    """Figures of the thread's work while it slept: calls an event, time added, and the share of the events."""
    awake_calls = paced["awake"]["no_gain"]
    asleep_events = paced["events"] - awake_calls * events_a_call
    share = max(asleep_events / paced["events"], 0.0)
    if share < SLEPT:
        return None, None, share
    return (paced["calls"] - awake_calls) / asleep_events, (mean - before) / share, share


def line_of(interval, predicted, measured):
    calls, added, pays = predicted
    seen_calls, seen_added, share = measured
    word = "pays" if pays else "no gain"
    if seen_calls is None:
        return f"  {interval:>6}  {calls:13.3f} {'-':>8} {'-':>6}  {added / 1e6:13.3f} {'-':>8} {'-':>6}  {word:8} {share:6.0%}"
    off = [seen_calls / calls - 1, seen_added / added - 1 if added else float("nan")]
    return (f"  {interval:>6}  {calls:13.3f} {seen_calls:8.3f} {off[0]:+6.0%}  {added / 1e6:13.3f} {seen_added / 1e6:8.3f} "
            f"{off[1]:+6.0%}  {word:8} {share:6.0%}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--intervals", default=INTERVALS)
    parser.add_argument("--rate", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("names", nargs="*", help=f"by default {' '.join(NAMES)}")
    arguments = parser.parse_args()
    if os.getuid() != 0:
        print("skipped: what is predicted: the log of polls needs root")
        return
    print(f"predicted by the log of a run without pace, and measured with pace; {debian.machine()}")
    print(f"  {'every':>6}  {'calls/event: predicted, measured':>29}  {'added, ms: predicted, measured':>29}  predicted  slept")
    offs, agreed, rows = ([], []), 0, 0
    for name in arguments.names or NAMES:
        with tempfile.TemporaryDirectory() as place:
            server = debian.servers(pathlib.Path(place), arguments.rate)[name]
            if missing := server.missing():
                print(f"{name}: {missing[0]} is not installed, left out", flush=True)
                continue
            server.prepare()
            print(name, flush=True)
            runs = Runs(server, place, arguments.seconds)
            log, _ = runs.observe("--log")
            events_a_call, predicted = predict(log, arguments.intervals, place)
            if not predicted:
                print("  nothing is predicted: no thread waits often for few events")
            for interval, figures in zip(arguments.intervals.split(","), predicted):
                _, before = runs.observe()
                seen = measure(*runs.paced(interval), before, events_a_call)
                print(line_of(interval, figures, seen), flush=True)
                rows, agreed = rows + 1, agreed + (figures[2] == (seen[0] is not None))
                if seen[0] is not None:
                    offs[0].append(abs(seen[0] / figures[0] - 1))
                    offs[1].append(abs(seen[1] / max(figures[1], 1) - 1))
    for what, off in zip(("calls an event", "added, mean"), offs):
        if off:
            within = sum(value <= WANTED for value in off)
            print(f"{what}: {within} of {len(off)} within {WANTED:.0%}, median {statistics.median(off):.0%} off")
    print(f"whether sleeping pays: predicted as applied in {agreed} of {rows}")


if __name__ == "__main__":
    main()
