#!/usr/bin/env python3
"""Pages that `nearmiss apply bypass --files` keeps in the page cache for others, and its cost where it does not help.

Usage: files.py [--nearmiss PATH] [--directory DIR] [--rounds N] [--scale X]

Every figure is measured. Each line has both sides, without and with the remedy: medians of rounds that alternate, with
the least and the most. DIR must lie on a file system with a page cache (not tmpfs) and have room for 4 GB. Needs root,
for a cgroup that bounds memory to 600 MiB.
"""

import argparse
import contextlib
import ctypes
import os
import pathlib
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20
PAGE = 4096
LIMIT = 600 * MIB
QUERIES = 1000
libc = ctypes.CDLL(None, use_errno=True)

QUERY = """
import os, random, sqlite3, sys
path, seed, rows, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
drawn = random.Random(seed)
base = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
base.execute("SELECT length(text) FROM notes WHERE id = 1").fetchone()
def from_disk():
    return int(next(line for line in open("/proc/self/io") if line.startswith("read_bytes")).split()[1])
before, done = from_disk(), 0
while done < count or (count == 0 and not os.path.exists(path + ".stop")):
    base.execute("SELECT length(text) FROM notes WHERE id = ?", (drawn.randrange(1, rows),)).fetchone()
    done += 1
print((from_disk() - before) / 4096 / done, done)
"""


def cached_share(path):
    descriptor = os.open(path, os.O_RDONLY)
    counts = (ctypes.c_uint64 * 5)()
    failed = libc.syscall(451, descriptor, (ctypes.c_uint64 * 2)(0, 0), counts, 0)
    size = os.fstat(descriptor).st_size
    os.close(descriptor)
    if failed:
        sys.exit("this kernel has no cachestat: Linux 6.5 and later have it")
    return counts[0] / -(-size // PAGE)


def drop(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


class Cgroup:
    """Bounds the memory, page cache included, of what runs in it: version 1 or 2, whichever has the controller."""

    def __init__(self):
        old, new = pathlib.Path("/sys/fs/cgroup/memory"), pathlib.Path("/sys/fs/cgroup")
        self.version = 1 if old.is_dir() else 2
        self.path = (old if self.version == 1 else new) / f"nearmiss-files-{os.getpid()}"
        if self.version == 2 and "memory" not in (new / "cgroup.controllers").read_text().split():
            sys.exit("no memory controller under /sys/fs/cgroup: cannot bound memory")
        self.path.mkdir()
        name = "memory.limit_in_bytes" if self.version == 1 else "memory.max"
        (self.path / name).write_text(str(LIMIT))

    def start(self, words, **given):
        join = lambda: (self.path / "cgroup.procs").write_text(str(os.getpid()))
        return subprocess.Popen(words, preexec_fn=join, **given)

    def run(self, words, **given):
        # The remedy reports on standard error.
        process = self.start(words, stderr=subprocess.DEVNULL, **given)
        begin = time.monotonic()
        output, _ = process.communicate()
        if process.returncode != 0:
            sys.exit(f"{words} ended with status {process.returncode}")
        return time.monotonic() - begin, output

    def end(self):
        for _ in range(50):
            with contextlib.suppress(OSError):
                self.path.rmdir()
                return
            time.sleep(0.1)


def of_side(side, words):
    return [ARGS.nearmiss, "apply", "bypass", "--files", "--", *words] if side == "with" else words


def make_database(path, size):
    drawn = random.Random(1)
    base = sqlite3.connect(path)
    base.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text BLOB)")
    rows = size // 970
    base.executemany("INSERT INTO notes VALUES (?, ?)", ((n + 1, drawn.randbytes(940)) for n in range(rows)))
    base.commit()
    base.close()
    return rows


def make_source(path, size):
    with open(path, "wb") as out:
        for _ in range(size // MIB):
            out.write(os.urandom(MIB))
        out.flush()
        os.fsync(out.fileno())


def line(label, unit, sides, note=""):
    def range_text(values):
        return f"{statistics.median(values):8.2f} [{min(values):.2f} to {max(values):.2f}]"
    print(f"{label:58} without {range_text(sides['without'])}  with {range_text(sides['with'])}  {unit}{note}", flush=True)


def ratio_line(label, sides):
    ratios = [b / a for a, b in zip(sides["without"], sides["with"])]
    ratio_text = f"{statistics.median(ratios):.2f}x [{min(ratios):.2f} to {max(ratios):.2f}]"
    line(label, "s", sides, f", as long: {ratio_text}")


def rounds(measure):
    """Both sides in turn, the first side in turn too; what a measurement returns by name, by side."""
    found = {}
    for n in range(ARGS.rounds):
        for side in ("without", "with") if n % 2 == 0 else ("with", "without"):
            for name, value in measure(side).items():
                found.setdefault(name, {"without": [], "with": []})[side].append(value)
    return found


class Place:
    def __init__(self, directory, group):
        self.group = group
        self.base, self.source, self.target = (str(directory / name) for name in ("base", "source", "target"))
        self.rows = make_database(self.base, int(ARGS.scale * 293 * MIB))
        make_source(self.source, int(ARGS.scale * 1500 * 10**6))

    def clean(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.target)
        for path in (self.base, self.source):
            drop(path)
        os.sync()

    def warm(self):
        self.group.run(["cat", self.base], stdout=subprocess.DEVNULL)

    def query(self, count, seed):
        words = [sys.executable, "-c", QUERY, self.base, str(seed), str(self.rows), str(count)]
        return self.group.start(words, stdout=subprocess.PIPE, text=True)

    def idle(self, side):
        self.clean()
        self.warm()
        time_taken, _ = self.group.run(of_side(side, ["cp", self.source, self.target]))
        share = cached_share(self.base)
        pages = float(self.query(QUERIES, 7).communicate()[0].split()[0])
        left = cached_share(self.source) + cached_share(self.target)
        return {"share": 100 * share, "pages": pages, "time": time_taken, "left": 50 * left}

    def busy(self, side):
        self.clean()
        self.warm()
        stop = pathlib.Path(self.base + ".stop")
        reader = self.query(0, 9)
        time_taken, _ = self.group.run(of_side(side, ["cp", self.source, self.target]))
        share = cached_share(self.base)
        stop.touch()
        pages, count = reader.communicate()[0].split()
        stop.unlink()
        return {"share": 100 * share, "pages": float(pages), "time": time_taken, "rate": int(count) / time_taken / 1000}

    def read_again(self, side):
        self.clean()
        script = f"cp {self.source} {self.target} && sha256sum {self.target}"
        return {"time": timed(of_side(side, ["sh", "-c", script]))[0]}

    def first_touch(self, side):
        """The CPU time of one copy on memory that the host has to find first, and of one on memory in use just before."""
        found = {}
        for kind in ("fresh", "warm"):
            self.clean()
            pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
            # The guest reports freed pages to the host after two seconds, if it reports them at all.
            time.sleep(4 if kind == "fresh" else 0)
            if kind == "warm":
                touch_memory(int(ARGS.scale * 4000) * MIB)
            found[kind] = timed(of_side(side, ["cp", self.source, self.target]))[1]
        return found


def touch_memory(size):
    words = [sys.executable, "-c", f"b = bytearray({size})\nfor i in range(0, {size}, 4096): b[i] = 1"]
    subprocess.run(words, check=True)


def timed(words, after=None):
    """Wall time and CPU time, with children."""
    before = os.times()
    begin = time.monotonic()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if after:
        after()
    wall, now = time.monotonic() - begin, os.times()
    return wall, (now.children_user + now.children_system) - (before.children_user + before.children_system)


def small_records(place, words):
    def measure(side):
        place.clean()
        returned, _ = timed(of_side(side, words))
        place.clean()
        on_disk, _ = timed(of_side(side, words), after=os.sync)
        return {"returned": returned, "on disk": on_disk}
    return rounds(measure)


def cpu_name():
    with open("/proc/cpuinfo") as lines:
        return next((text.split(":")[1].strip() for text in lines if text.startswith("model name")), "unknown")


def report(place):
    idle = rounds(place.idle)
    print(f"cp of {ARGS.scale * 1500:.0f} MB in a cgroup of 600 MiB, beside an idle SQLite database of "
          f"{ARGS.scale * 293:.0f} MiB")
    line("  of the database in the page cache afterwards", "%", idle["share"])
    line("  pages read from storage a query afterwards", "", idle["pages"])
    line("  of source and target in the page cache afterwards", "%", idle["left"])
    ratio_line("  the copy", idle["time"])
    busy = rounds(place.busy)
    print("the same beside a busy database")
    line("  of the database in the page cache afterwards", "%", busy["share"])
    line("  pages read from storage a query meanwhile", "", busy["pages"])
    line("  queries meanwhile", "thousand/s", busy["rate"])
    ratio_line("  the copy", busy["time"])
    print("where it costs")
    ratio_line("  cp, then sha256sum of the copy", rounds(place.read_again)["time"])
    blocks = int(ARGS.scale * 500 * MIB) // PAGE
    for label, words in (
        ("dd bs=4k of zeros", ["dd", "if=/dev/zero", f"of={place.target}", "bs=4k", f"count={blocks}"]),
        ("dd bs=4k of a cold file", ["dd", f"if={place.source}", f"of={place.target}", "bs=4k", f"count={blocks}"]),
        ("tar of a cold file (records of 10 KiB)", ["tar", "cPf", place.target, place.base]),
    ):
        small = small_records(place, words)
        ratio_line(f"  {label}, until it returns", small["returned"])
        ratio_line(f"  {label}, until sync returns", small["on disk"])
    print("CPU time of the same cp, without a cgroup")
    touch = rounds(place.first_touch)
    ratio_line("  on memory that is touched for the first time", touch["fresh"])
    ratio_line("  on memory that was in use just before", touch["warm"])


def main():
    print(f"{cpu_name()}, {os.cpu_count()} CPUs, Linux {os.uname().release}; all figures are measured; "
          f"{ARGS.rounds} rounds a side")
    group = Cgroup()
    try:
        with tempfile.TemporaryDirectory(dir=ARGS.directory) as directory:
            report(Place(pathlib.Path(directory), group))
    finally:
        group.end()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nearmiss", default="target/release/nearmiss")
    parser.add_argument("--directory", default=".")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0)
    return parser.parse_args()


ARGS = arguments()
main()
