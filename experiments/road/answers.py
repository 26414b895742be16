#!/usr/bin/env python3
"""Time to the answer of `nearmiss diagnose` and nearmiss's own peak memory, for two builds, interleaved.

Run from the repository's root after `make subjects`: experiments/road/answers.py OLD NEW [ROUNDS [PROGRAM...]]    (5, all)
OLD and NEW are two binaries. Times and memory are measured: wall time, and the high-water mark of nearmiss's resident
memory, without the emulator's. An answer that takes longer than 10 minutes is ended, and counts as 10 minutes.
"""

import os, signal, statistics, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from traced import cpu

OLD, NEW = (os.path.realpath(path) for path in sys.argv[1:3])
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
CHOSEN = sys.argv[4:]
LONGEST_SECONDS = 600
SUBJECTS = os.path.realpath("target/subjects")


def programs(place):
    words = os.path.join(place, "words")
    with open(words, "w") as file:
        file.writelines(f"{n * 0x9E3779B97F4A7C15 % 2**64}\n" for n in range(60_000))
    return {
        "sort": ["sort", "-o", "/dev/null", words],
        "gzip": ["gzip", "-kc", words],
        "python3": ["python3", "-c", "print(sum(i * i for i in range(20000)))"],
        "aligned-tasks": [f"{SUBJECTS}/aligned-tasks", "--objects", "64", "--visits", "100000"],
        "matrix-rows": [f"{SUBJECTS}/matrix-rows"],
    }


def answer(binary, command, place):
    """Wall seconds, and the peak of resident memory in MiB."""
    began, peak, ended = time.monotonic(), 0, False
    running = subprocess.Popen([binary, "diagnose", "--", *command], cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while running.poll() is None:
        try:
            with open(f"/proc/{running.pid}/status") as status:
                peak = max([peak] + [int(line.split()[1]) for line in status if line.startswith("VmHWM")])
        except (OSError, ProcessLookupError):
            pass
        if not ended and time.monotonic() - began > LONGEST_SECONDS:
            running.send_signal(signal.SIGTERM)
            ended = True
        time.sleep(0.02)
    if ended:
        return LONGEST_SECONDS, peak / 1024
    if running.returncode:
        sys.exit(f"{binary} diagnose {' '.join(command)}: ended with {running.returncode}")
    return time.monotonic() - began, peak / 1024


def main():
    print(f"nearmiss diagnose by two builds, {ROUNDS} interleaved rounds, measured; {cpu()}; load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as place:
        for name, command in programs(place).items():
            if CHOSEN and name not in CHOSEN:
                continue
            taken = {OLD: [], NEW: []}
            for round in range(ROUNDS):
                for binary in sorted(taken, reverse=round % 2 == 1, key=lambda binary: binary == NEW):
                    taken[binary].append(answer(binary, command, place))
            (old, new), (was, now) = ([statistics.median(one[at] for one in taken[side]) for side in (OLD, NEW)] for at in (0, 1))
            spread = ", ".join(f"{min(t for t, _ in taken[side]):.1f} to {max(t for t, _ in taken[side]):.1f}" for side in (OLD, NEW))
            over = "over " if old >= LONGEST_SECONDS else ""
            print(f"{name:<14} answer {over}{old:5.2f} s, now {new:5.2f} s, ratio {new / old:.2f} ({spread}); peak {was:4.0f} MiB, now {now:4.0f} MiB", flush=True)


main()
