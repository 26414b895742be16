#!/usr/bin/env python3
"""Debian's servers with and without `pace`: CPU time a request, latency and rates of interleaved pairs under one open-loop
load, by `nearmiss verify pace --load`. Servers that are not installed are named and left out.

    experiments/pace/servers.py                          # all: 1, 5 and 10 ms where a gain is wanted, 1 ms for the others
    experiments/pace/servers.py --aims 5ms,budget=5ms --rate 8000 --pairs 12 nginx dnsmasq
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

import debian

AIMS = ["1ms", "5ms", "10ms"]
# Share by which a server that cannot gain may get worse.
TOLERATED = 1.05


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--aims", help="intervals, and budget=TIME; by default by server")
    parser.add_argument("--rate", type=int, default=5000)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=1.5, help="of each load, behind half a second of warm-up")
    parser.add_argument("names", nargs="*", help=f"by default {' '.join(debian.GAIN + debian.NO_WORSE)}")
    arguments = parser.parse_args()
    print(f"pace on servers, {debian.machine()}")
    print(f"CPU time a request, mean and p99 with pace as multiples of those without; {arguments.pairs} pairs each")
    with tempfile.TemporaryDirectory() as place:
        known = debian.servers(pathlib.Path(place), arguments.rate)
        for name in arguments.names or debian.GAIN + debian.NO_WORSE:
            server = known[name]
            if missing := server.missing():
                print(f"{name}: {missing[0]} is not installed, left out", flush=True)
                continue
            server.prepare()
            aims = arguments.aims.split(",") if arguments.aims else AIMS if name in debian.GAIN else AIMS[:1]
            for aim in aims:
                record = verdict(aim, arguments, server, place)
                print(line_of(name, aim, record), flush=True)


def verdict(aim, arguments, server, place):
    """The verdict's record; or, in words, why there is none."""
    how = ["--budget", aim.removeprefix("budget=")] if aim.startswith("budget=") else ["--interval", aim]
    line = [debian.NEARMISS, "verify", "pace", *how, "--pairs", str(arguments.pairs), "--time-limit", "1s", "--json",
            "--runs", f"{place}/runs", "--rate-within", server.within, *server.options, "--load", server.load(arguments.seconds), "--", *server.command]
    done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return json.loads(done.stdout) if done.stdout else done.stderr.strip().splitlines()[-1]


def line_of(name, aim, record):
    if isinstance(record, str):
        return f"{name:14} {aim:>6}  {record}"
    if record["outcome"] == "nothing-to-act-on":
        return f"{name:14} {aim:>6}  never slept\n{'':24}{engaged(record['engaged'])}"
    cpu, *times = [record["comparison"], *(figure for figure in record["others"] if figure["metric"] in record["judged"])]
    rates = record["rates"]
    parts = [f"CPU {ratio(cpu)}", *(f"{short(figure)} {ratio(figure)}" for figure in times),
             f"{rates['without']['achieved']:.0f} and {rates['with']['achieved']:.0f}/s of {rates['with']['offered']:.0f}"]
    note = "  WORSE" if name in debian.NO_WORSE and cpu["ratio"] > TOLERATED else ""
    return f"{name:14} {aim:>6}  {record['outcome']:14} {'; '.join(parts)}{note}\n{'':24}{engaged(record['engaged'])}"


def ratio(figure):
    low, high = figure["interval"] or (float("nan"),) * 2
    return f"x{figure['ratio']:.2f} [{low:.2f}, {high:.2f}]"


def short(figure):
    return figure["metric"].removesuffix("_ms") if figure["metric"].endswith("_ms") else "mean"


def engaged(text):
    """The remedy's actions, without its name."""
    return text.split(": ", 1)[1] if text and ": " in text else text


if __name__ == "__main__":
    main()
