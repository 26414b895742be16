"""Accelerators that differ in their pace, before one origin, and turns of one open-loop load against them. Used by
sockets.py and auto.py. The programs are those in target/release, or in the folder that NEARMISS_PROGRAMS names."""
import json
import math
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ports import free_port, wait_for  # noqa: E402

PROGRAMS = pathlib.Path(os.environ.get("NEARMISS_PROGRAMS", pathlib.Path(__file__).resolve().parents[2] / "target/release"))
CONFIGURATION = """
listen = ["127.0.0.1:{port}"]
threads = 1
engine = "{engine}"
pace = "{pace}"
budget = "{budget}"
[[origin]]
address = "127.0.0.1:{origin}"
[limits]
connections = 12000
shorten_from = 11999
"""
SETTLES_S = 1


def on(cpus):
    """For a child: its CPUs."""
    return lambda: os.sched_setaffinity(0, cpus)


class Ahead:
    """Ahead of the neighbours, where that is allowed: the scheduler shares a CPU between sessions first, and within a
    session then, so that the priority of one program changes little."""

    SESSION = pathlib.Path("/proc/self/autogroup")

    def __enter__(self):
        try:
            self.before = self.SESSION.read_text().split()[-1]
            self.SESSION.write_text("-20")
        except OSError:
            self.before = None

    def __exit__(self, *_):
        if self.before is not None:
            self.SESSION.write_text(self.before)


class Accelerator:
    """One accelerator with one thread, on one CPU."""

    def __init__(self, bench, engine, pace, budget):
        self.name, self.port = pace, free_port()
        config = bench.place / f"{pace}-{budget}.toml"
        config.write_text(CONFIGURATION.format(port=self.port, engine=engine, pace=pace, budget=budget, origin=bench.origin_port))
        self.process = bench.program(["nearmiss-accelerator", "--config", str(config)], bench.cpu)
        wait_for(self.port, "nearmiss-accelerator")

    def connections(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def cpu_seconds(self):
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


class Bench:
    """The programs of one run; they end with it. `hold`: a program that only spins takes the accelerator's CPU while the
    accelerator sleeps, so that neighbours do not empty the caches there. An idle machine needs no such program."""

    def __init__(self, hold=True, cpu=0):
        for name in ("nearmiss-accelerator", "nearmiss-webload"):
            if not (PROGRAMS / name).is_file():
                sys.exit(f"{PROGRAMS / name} is missing; build it: cargo build --release -p {name}")
        self.hold, self.cpu = hold, cpu
        self.others = sorted(os.sched_getaffinity(0) - {cpu}) or [cpu]
        self.processes, self.origin_port = [], free_port()

    def __enter__(self):
        # A request to end ends the programs, too.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="pace-"))
        if self.hold:
            self.start(["chrt", "--idle", "0", "sh", "-c", "while :; do :; done"], self.cpu)
        self.program(["nearmiss-webload", "origin", "--delay", "0s", "--listen", f"127.0.0.1:{self.origin_port}"], self.others[0])
        wait_for(self.origin_port, "nearmiss-webload origin")
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
        shutil.rmtree(self.place)

    def program(self, words, cpu):
        return self.start([str(PROGRAMS / words[0]), *words[1:]], cpu)

    def start(self, line, cpu):
        self.processes.append(subprocess.Popen(line, stdout=subprocess.DEVNULL, preexec_fn=on({cpu})))
        return self.processes[-1]

    def accelerator(self, engine, pace, budget):
        return Accelerator(self, engine, pace, budget)

    def turn(self, accelerator, load, seconds):
        """Hits at a fixed rate over kept connections: CPU time a request (µs), mean and p99 (ms)."""
        rate, connections = load
        line = [str(PROGRAMS / "nearmiss-webload"), "rate", "--json", "--rps", str(rate), "--connections", str(connections),
                "--warm-up", f"{2 * SETTLES_S}s", "--for", f"{seconds + SETTLES_S}s", "--objects", "100",
                f"http://127.0.0.1:{accelerator.port}/fixed/4096/{{}}"]
        running = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, preexec_fn=on(set(self.others)))
        while accelerator.connections() < connections and running.poll() is None:
            time.sleep(0.02)
        time.sleep(SETTLES_S)
        before, begun = accelerator.cpu_seconds(), time.monotonic()
        time.sleep(seconds)
        used, passed = accelerator.cpu_seconds() - before, time.monotonic() - begun
        phase = json.loads(running.communicate()[0])["phases"][-1]
        time.sleep(0.3)
        return figures(phase, used / passed)


def figures(phase, cores):
    """The figures of a turn's load, with the accelerator's CPU time a second. A turn without an answer has no figures.

    >>> figures({"rate_held": False, "errors": {}, "achieved_per_second": 0.0, "latency": {"p99_ms": None, "mean_ms": None}}, 0.5)
    {'cpu_us': None, 'p99_ms': None, 'mean_ms': None, 'held': False}
    >>> figures({"rate_held": True, "errors": {}, "achieved_per_second": 1e4, "latency": {"p99_ms": 2, "mean_ms": 1}}, 0.5)
    {'cpu_us': 50.0, 'p99_ms': 2, 'mean_ms': 1, 'held': True}
    """
    answered = phase["achieved_per_second"]
    return {"cpu_us": cores / answered * 1e6 if answered else None, "p99_ms": phase["latency"]["p99_ms"],
            "mean_ms": phase["latency"]["mean_ms"], "held": bool(phase["rate_held"] and not phase["errors"])}


def known(turns, figure):
    return [turn[figure] for turn in turns if turn[figure] is not None]


def median(turns, figure):
    """Median of the turns that have the figure; where none has it, a number that compares with nothing.

    >>> median([{"p99_ms": None}, {"p99_ms": 3}, {"p99_ms": 5}], "p99_ms"), median([{"p99_ms": None}], "p99_ms")
    (4.0, nan)
    """
    values = known(turns, figure)
    return statistics.median(values) if values else math.nan


def of_median(turns, figure):
    """`12.3 (11.8–13.0)`: the median of the turns, lowest and highest.

    >>> of_median([{"p99_ms": None}, {"p99_ms": 3}, {"p99_ms": 5}], "p99_ms")
    '4.00 (3.00–5.00)'
    >>> of_median([{"p99_ms": None}], "p99_ms")
    'unknown (nothing was answered)'
    """
    values = known(turns, figure)
    if not values:
        return "unknown (nothing was answered)"
    return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"
