#!/usr/bin/env python3
"""Modelled cycles beside measured ones, program by program: user mode alone, one CPU.

Each program runs PASSES times, pinned, the programs in turn, so that a noisy minute disturbs all of them. The least CPU time
counts, since other programs only add; of it the share that all passes together spent in user mode, since the kernel
splits a run's time by its timer's ticks, of which a short run has a few. Then each is traced once with `--only user` on
each machine named.

    experiments/cycles/run.py [--machines host-overlap,host] [--passes 60] [--times FILE [--measure-only]] [--json FILE] [NAME...]

What is measured needs a quiet machine, and what is modelled does not: --times keeps the measured times in a file, and takes
them from there.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NEARMISS = os.environ.get("NEARMISS", str(ROOT / "target/release/nearmiss"))
SUBJECTS = ROOT / "target/subjects"
HEADLINE = ROOT / "experiments/recall/headline"
MEMORY_BOUND = 1 / 3


def built(place, source):
    target = place / source.stem
    subprocess.run(["cc", "-O2", "-g", "-pthread", "-I", source.parent, "-I", source.parents[1], "-I", ROOT / "native/include",
                    "-o", target, source, "-lm"], check=True)
    return str(target)


def programs(place):
    """Name: command. Subjects of ours and Debian's programs."""
    own = lambda name: built(place, HERE / f"{name}.c")
    subject = lambda name: str(SUBJECTS / name)
    (place / "text").write_text("".join(f"{n * 7919 % 120011} line of text {n}\n" for n in range(60_000)))
    text = str(place / "text")
    return {
        "chase-l2": [subject("pointer-chase"), "--size", "1048576", "--steps", "8000000"],
        "chase-l3": [subject("pointer-chase"), "--size", "16777216", "--steps", "2000000"],
        "aligned-tasks": [subject("aligned-tasks"), "--visits", "2000000"],
        "matmul": [subject("matmul")],
        "matrix-rows": [subject("matrix-rows"), "--rounds", "600"],
        "running-sums": [subject("running-sums"), "--rounds", "20000"],
        "stream-copy": [subject("stream-copy")],
        "gather": [own("gather")],
        "random-sums": [own("random-sums")],
        "hash-join": [own("hash-join")],
        "tree": [own("tree")],
        "two-lists": [own("two-lists")],
        "stream-sum": [own("stream-sum")],
        "compute": [own("compute")],
        "sort": ["sort", text],
        "gzip": ["gzip", "-kc", text],
        "xz": ["xz", "-1kc", text],
        "python3": ["python3", "-c", "d={i*7919%100003:i for i in range(100000)}; print(sum(d[k] for k in sorted(d)))"],
        "sqlite3": ["sqlite3", ":memory:", "create table t(a,b); with recursive n(i) as (select 1 union all select i+1 from n "
                    "where i<60000) insert into t select i*7919%60013, i from n; create index x on t(a); "
                    "select sum(p.b) from t p join t q on p.a=q.b;"],
        "perl": ["perl", "-e", "my %h; $h{$_*7919%100003}=$_ for 1..100000; my $s=0; $s+=$h{$_} for sort keys %h; print $s"],
    }


def cpu_seconds(command):
    """CPU time of one run: in user mode, in all."""
    quiet = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in range(3)]
    child = os.posix_spawnp(command[0], command, os.environ, file_actions=quiet)
    _, status, used = os.wait4(child, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)}: status {status}")
    return used.ru_utime, used.ru_utime + used.ru_stime


def measured(commands, passes):
    """Seconds in user mode by name."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1:])
    times = {name: [] for name in commands}
    for _ in range(passes):
        for name, command in commands.items():
            times[name].append(cpu_seconds(command))
    return {name: in_user_mode(runs) for name, runs in times.items()}


def in_user_mode(runs):
    user, all_ = (sum(seconds) for seconds in zip(*runs))
    return min(seconds for _, seconds in runs) * user / all_


def kept_or_measured(commands, arguments):
    """The times that were kept, and those of the programs that are missing among them."""
    kept = json.loads(pathlib.Path(arguments.times).read_text()) if arguments.times and os.path.exists(arguments.times) else {}
    missing = {name: command for name, command in commands.items() if name not in kept}
    if missing:
        everywhere = os.sched_getaffinity(0)
        kept.update(measured(missing, arguments.passes))
        os.sched_setaffinity(0, everywhere)
    if arguments.times:
        pathlib.Path(arguments.times).write_text(json.dumps(kept, indent=1) + "\n")
    return kept


def modelled(command, machine, place):
    record = place / "model.json"
    line = [NEARMISS, "trace", "-q", "--only", "user", "--cpus", "1", "-m", machine, "--no-trace", "--json", str(record),
            "--", *command]
    done = subprocess.run(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=place)
    if done.returncode != 0:
        sys.exit(f"{' '.join(line)}: {done.stderr.strip()}")
    return json.loads(record.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machines", default="host-overlap,host")
    parser.add_argument("--passes", type=int, default=60)
    parser.add_argument("--times", metavar="FILE", help="where measured times are kept")
    parser.add_argument("--measure-only", action="store_true", help="model nothing")
    parser.add_argument("--json")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    machines = arguments.machines.split(",")
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory)
        chosen = {n: c for n, c in programs(place).items() if not arguments.names or n in arguments.names}
        seconds = kept_or_measured(chosen, arguments)
        if arguments.measure_only:
            return
        rows = []
        for name, command in chosen.items():
            row = {"name": name, "user_seconds": seconds[name], "machines": {}}
            for machine in machines:
                model = modelled(command, machine, place)
                totals = model["totals"]
                hertz = model["machine"]["clock_mhz"] * 1e6
                row["machines"][machine] = {
                    "cycles": totals["cycles"], "stalls": totals["stall_cycles"], "instructions": totals["instructions"],
                    "ratio": totals["cycles"] / (seconds[name] * hertz), "measured_cycles": seconds[name] * hertz,
                }
            rows.append(row)
            print_row(row, machines)
        summary(rows, machines)
        if arguments.json:
            pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")


def print_row(row, machines):
    cells = []
    for machine in machines:
        m = row["machines"][machine]
        cells.append(f"{m['cycles'] / 1e6:9.1f} M modelled, {100 * m['stalls'] / m['cycles']:3.0f}% waits, "
                     f"{m['measured_cycles'] / m['instructions']:5.2f} cycles an instruction measured: {m['ratio']:5.2f}")
    print(f"{row['name']:14} {row['user_seconds'] * 1e3:8.1f} ms", *cells, sep="  ", flush=True)


def summary(rows, machines):
    for machine in machines:
        ratios = {row["name"]: row["machines"][machine]["ratio"] for row in rows}
        bound = [r["name"] for r in rows
                 if r["machines"][machine]["stalls"] > MEMORY_BOUND * r["machines"][machine]["cycles"]]
        within = lambda names: sum(1 / 1.3 <= ratios[n] <= 1.3 for n in names)
        error = statistics.median(abs(ratio - 1) for ratio in ratios.values())
        print(f"{machine}: within 30%: {within(ratios)} of {len(ratios)}; of memory-bound programs {within(bound)} of "
              f"{len(bound)}; median error {100 * error:.0f}%")


if __name__ == "__main__":
    main()
