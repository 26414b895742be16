#!/usr/bin/env python3
"""Predicted gains of large pages beside measured ones: ways to use memory that gain, and ways that do not.

    experiments/huge/run.py [--nearmiss BINARY] [--only GLOB] [--pairs 15]

A gain is the share of the command's CPU time (user and system) that is saved. Predicted: the finding of `huge` of
`nearmiss diagnose --within 0` on the command; no finding predicts 0. Measured: medians of the interleaved pairs of
`nearmiss verify huge`, which also reports the large pages that the kernel gave. Both take the very same command line.
redis-server has a million keys when it starts; it is judged under a load of reads, and predicted within a minute.
"""

import argparse, fnmatch, os, shlex, shutil, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from ports import free_port, wait_for  # noqa: E402
from traced import call, cpu, verified  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(HERE))
SHAPES = ["gather", "chain", "probes", "columns", "blocks", "fresh", "small", "scan", "sparse", "forks"]
NEAR = 0.15
SQL = (
    "create table t(a integer primary key, b); with recursive n(i) as (select 1 union all select i+1 from n where i<40000) "
    "insert into t select i, i*7%1000 from n; select sum(t.b) from t join t as u on u.a = (t.a * 7919) % 40000;"
)
SETTING = "/sys/kernel/mm/transparent_hugepage/enabled"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nearmiss", default=f"{ROOT}/target/release/nearmiss")
    parser.add_argument("--only", metavar="GLOB", default="*")
    parser.add_argument("--pairs", type=int, default=15)
    return parser.parse_args()


def redis(place):
    """A server that starts with a million keys, and then opens another port; None without one."""
    if not shutil.which("redis-server") or not shutil.which("redis-benchmark"):
        return None
    port = str(free_port())
    command = ["redis-server", "--port", port, "--dir", place, "--save", "", "--appendonly", "no", "--logfile", "/dev/null"]
    server = subprocess.Popen(command)
    wait_for(int(port), "redis-server")
    fill = ["redis-benchmark", "-p", port, "-t", "set", "-n", "3000000", "-r", "1000000", "-P", "64", "-q"]
    subprocess.run(fill, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["redis-cli", "-p", port, "shutdown", "save"], check=True)
    server.wait()
    ready = free_port()
    loaded = f"{shlex.join(command)} & until redis-cli -p {port} ping | grep -q PONG; do sleep 0.1; done"
    command = ["sh", "-c", f"{loaded}; exec python3 -m http.server -b 127.0.0.1 {ready}"]
    load = f"redis-benchmark -p {port} -t get -n {{}} -r 1000000 -P 16 -q"
    return command, ["--ready", f"127.0.0.1:{ready}", "--load", load]


def programs(place, chosen):
    """By name: the command, and the options of a server, with room for its number of requests."""
    named = {shape: ([f"{place}/shapes", shape], []) for shape in SHAPES}
    named["sqlite3"] = (["sqlite3", ":memory:", SQL], [])
    if fnmatch.fnmatch("redis", chosen.only):
        named["redis"] = redis(place)
    return {name: what for name, what in named.items() if what and fnmatch.fnmatch(name, chosen.only)}


def predicted(nearmiss, place, command, *options):
    within = "60s" if options else "0"
    found = call(nearmiss, place, "diagnose", "--json", "--cpus", "1", "--within", within, *options, "--", *command)
    of_huge = [finding["prediction"] for finding in found["findings"] if finding["remedy"] == "huge"]
    return of_huge[0] if of_huge else {"gain": 0.0, "low": 0.0, "high": 0.0}


def main():
    chosen = arguments()
    setting = open(SETTING).read().strip()
    print(f"# experiments/huge/run.py --pairs {chosen.pairs}; {SETTING}: {setting}; {time.strftime('%Y-%m-%d %H:%M')}, {cpu()}")
    print("A gain is the share of the command's CPU time that is saved; in round brackets, points from predicted to measured.")
    near = []
    with tempfile.TemporaryDirectory() as place:
        program = f"{place}/shapes"
        subprocess.run(["gcc", "-O2", "-g", "-Wall", "-Wextra", "-o", program, f"{HERE}/shapes.c"], check=True)
        for name, (command, options) in programs(place, chosen).items():
            model = predicted(chosen.nearmiss, place, command, *(word.format(20_000) for word in options))
            clock = verified(chosen.nearmiss, place, "huge", chosen.pairs, command, *(word.format(400_000) for word in options))
            # A loss that no finding proposes is none.
            off = model["gain"] - (clock["gain"] if model["gain"] else max(clock["gain"], 0.0))
            near.append(abs(off) <= NEAR)
            pages = (clock["engaged"] or "").split("engaged, ")[-1].split(",")[0]
            print(f"{name:8} predicted {model['gain']:4.0%} [{model['low']:.0%}, {model['high']:.0%}] ({off * 100:+.0f})"
                  f"  measured {clock['gain']:4.0%}  {clock['without'] * 1e3:6.1f} ms, with {clock['with'] * 1e3:6.1f} ms;"
                  f" {pages}", flush=True)
    print(f"{sum(near)} of {len(near)} within {NEAR * 100:.0f} points")


if __name__ == "__main__":
    main()
