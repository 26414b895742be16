#!/usr/bin/env python3
"""Diagnoses programs of realistic size with default options: the time to the answer, and what it covers.

Usage: experiments/answer/real.py [NAME ...]    (all without names; those whose program is missing are skipped)
Prints for each: its native seconds, the seconds to the answer, its coverage and its first line. All times are measured.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEARMISS = ROOT / "target/release/nearmiss"
THREADS = r"""
#include <thread>
#include <unordered_map>
#include <vector>
int main() {
    std::vector<std::thread> all;
    for (int t = 0; t < 4; t++) all.emplace_back([t] {
        std::unordered_map<long, long> m;
        for (long i = 0; i < 6000000; i++) m[i * 2654435761 % 300000] += t;
    });
    for (auto &t : all) t.join();
}
"""


def prepared(place):
    """Commands by name; each runs in `place`."""
    (place / "many.c").write_text("".join(f"int f{i}(int x) {{ return x * {i} + (x >> {i % 31}); }}\n" for i in range(4000)))
    (place / "threads.cc").write_text(THREADS)
    (place / "lines").write_text("".join(f"{i * 7919 % 1000003} a line to be sorted\n" for i in range(1000000)))
    with open("/usr/bin/python3", "rb") as file:
        (place / "blob").write_bytes((file.read() * 4)[:20_000_000])
    (place / "n.js").write_text("let m = new Map(); for (let i = 0; i < 9000000; i++) m.set(i % 100000, i); console.log(m.size)")
    subprocess.run(["g++", "-O2", "-pthread", "-o", "threads", "threads.cc"], cwd=place, check=False)
    sql = "create table t(a,b); with recursive n(i) as (select 1 union all select i+1 from n where i<1000000) insert into t select i, i*7%1000 from n; select b, count(*) from t group by b limit 3;"
    return {
        "gcc": ["gcc", "-O2", "-c", "-o", "/dev/null", "many.c"],
        "python3": ["python3", "-c", "print(sum(i * i % 7 for i in range(40000000)))"],
        "node": ["node", "n.js"],
        "sqlite3": ["sqlite3", ":memory:", sql],
        "xz": ["xz", "-9", "-k", "-c", "blob"],
        "git": ["git", "-C", str(ROOT), "log", "-p", "-n", "200"],
        "tar": ["tar", "-cf", "/dev/null", "/usr/share/doc"],
        "sort": ["sort", "-o", "/dev/null", "lines"],
        "threads": ["./threads"],
    }


def main():
    wanted = sys.argv[1:]
    model = next(l.split(": ")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name"))
    print(f"{time.strftime('%F')} {model}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f} at the start; measured seconds")
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        for program, command in prepared(place).items():
            if wanted and program not in wanted:
                continue
            if not shutil.which(command[0], path=f"{place}:{os.environ['PATH']}") and not (place / command[0]).exists():
                print(f"{program:9} skipped: not here")
                continue
            begun = time.monotonic()
            subprocess.run(command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            native = time.monotonic() - begun
            begun = time.monotonic()
            done = subprocess.run([NEARMISS, "diagnose", "--", *command], cwd=place, capture_output=True, text=True, check=False)
            taken = time.monotonic() - begun
            words = " ".join(done.stdout.split())
            covered = words.split("Recorded: ")[1].split(" Note ")[0] if "Recorded: " in words else "the whole run"
            head = next((l for l in done.stdout.splitlines() if l[:1].isdigit()), words.split("Modelled ")[-1][:100])
            print(f"{program:9} native {native:5.1f}  answer {taken:5.1f}  status {done.returncode}  {covered}\n{'':10}{head}", flush=True)


if __name__ == "__main__":
    main()
