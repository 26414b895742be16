#!/usr/bin/env python3
"""For every task of an observation, on CPU + runnable + waiting against the task's time in the observation: by how much
the sum is off, for real programs with a load beside them. "futexes": by how much the lock rows differ from the tasks' futex waits; "time
line": the CPU time of the steps from that of the tasks; "account": share of the time on CPU that the kernel's own account
of the tasks lacks.

Usage, as root: experiments/observe/sums.py [path of nearmiss] [hogs beside] > experiments/observe/sums.txt"""

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

NEARMISS = os.path.realpath(sys.argv[1] if len(sys.argv) > 1 else "target/release/nearmiss")
HOGS = int(sys.argv[2]) if len(sys.argv) > 2 else 3

PYTHON = """
import threading, time
lock = threading.Lock()
def work():
    for _ in range(60):
        with lock: time.sleep(0.002)
        sum(range(20000))
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
"""

PROGRAMS = [
    ("dd", "dd if=/dev/zero of=file bs=1M count=200 conv=fsync"),
    ("gzip", "gzip -k -c text > text.gz"),
    ("xz -T2", "xz -1 -T2 --block-size=1MiB -k -c text > text.xz"),
    ("sort", "sort --parallel=2 text -o sorted"),
    ("git", "git init -q repo && cp text repo && git -C repo add text && git -C repo -c user.name=a -c user.email=a@b commit -qm a"),
    ("pipe", "cat text | tr a-z A-Z | sort | uniq -c | tail -1"),
    ("forks", "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done"),
    ("python", f"python3 -c '{PYTHON}'"),
    ("sleep", "sleep 1"),
    ("redis", "redis-server --port 7399 --save '' --daemonize no & sleep 0.5; redis-benchmark -p 7399 -n 20000 -c 20 -t set,get -q; kill $!"),
]


def cpu_name():
    with open("/proc/cpuinfo") as info:
        model = {}
        for line in info:
            key, _, value = line.partition(":")
            model.setdefault(key.strip(), value.strip())
    return f"{model.get('model name', platform.machine())}, family {model.get('cpu family')} model {model.get('model')}"


def observe(line, directory):
    record = os.path.join(directory, "record.json")
    words = [NEARMISS, "observe", "--runs", os.path.join(directory, "runs"), "--json", record, "--", "sh", "-c", line]
    subprocess.run(words, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    with open(record) as file:
        return json.load(file)


def figures(o):
    waited = lambda task: sum(row[1] for row in task["off"])
    off = []
    for task in o["tasks"]:
        states = task["cpu_ns"] + task["wait_ns"] + waited(task)
        off.append(abs(states - task["life_ns"]) / max(task["life_ns"], 1))
    futex = sum(row[1] for task in o["tasks"] for row in task["off"] if row[0] == "futex")
    locks = sum(lock["total_ns"] for lock in o["locks"] if lock["process"] is not None)
    line = sum(tick["cpu_ns"] for tick in o["timeline"])
    cpu = sum(task["cpu_ns"] for task in o["tasks"])
    stolen = sum(task["stolen_ns"] for task in o["tasks"]) / max(cpu, 1)
    return off, stolen, abs(futex - locks) / max(futex, 1), abs(line - o["cpu_ns"]) / max(o["cpu_ns"], 1)


def main():
    hogs = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(HOGS)]
    try:
        print(f"{cpu_name()}; {os.cpu_count()} CPUs, {HOGS} hogs beside; kernel {platform.release()}; {time.strftime('%Y-%m-%d')}")
        print(f"{'program':<10} {'seconds':>8} {'tasks':>6} {'worst':>9} {'median':>9} {'futexes':>9} {'time line':>9} {'account':>9} {'lost':>5}")
        everything = []
        for name, line in PROGRAMS:
            program = line.split()[0]
            if not shutil.which(program) and program not in ("i=0;",):
                print(f"{name:<10} skipped: not installed")
                continue
            with tempfile.TemporaryDirectory() as directory:
                with open(os.path.join(directory, "text"), "w") as text:
                    for i in range(400_000):
                        text.write(f"{i * 2654435761 % 1_000_003} a line of text\n")
                o = observe(line, directory)
            off, stolen, futexes, timeline = figures(o)
            everything += off
            lost = sum(n for _, n in o["lost"])
            print(f"{name:<10} {o['duration_ns'] / 1e9:8.2f} {len(off):6} {max(off):9.4%} {statistics.median(off):9.4%} {futexes:9.4%} {timeline:9.4%} {stolen:9.4%} {lost:5}")
        print(f"{'all':<10} {'':8} {len(everything):6} {max(everything):9.4%} {statistics.median(everything):9.4%}")
        return 0 if max(everything) <= 0.02 else 1
    finally:
        for hog in hogs:
            hog.kill()


sys.exit(main())
