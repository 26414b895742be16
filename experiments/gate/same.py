#!/usr/bin/env python3
"""A = A: how often `nearmiss gate` fails a program compared with itself, how noisy figures are, and how long it takes.

Run from the repository's root after `make build`: experiments/gate/same.py [ROUNDS]    (3; 5 are 50 gates)
Ends with status 1 if any gate fails, or if user instructions or system calls of a program with one thread differ between
recordings; the subjects print their own time, whose digits may take other instructions, one of 10,000 at most. Beside them the noise of wall time (measured) and of cachegrind's counts, if it is installed: Student's interval
of the same confidence for as many runs a side. All other figures but the seconds are modelled.
"""

import os, re, shlex, shutil, statistics, subprocess, sys, tempfile, time

from gated import by, cpu, gate, noise, numbers, shares
from traced import SUBJECTS

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
PROGRAMS = [
    "sort numbers",
    "gzip -c numbers",
    "grep -c 77 numbers",
    "/usr/bin/python3 -c 'print(len(set(str(i) for i in range(20000))))'",
    "sqlite3 :memory: 'create table t(a); insert into t values(1),(2),(3); select sum(a) from t'",
    *(f"{SUBJECTS}/{name}" for name in ("matrix-rows", "matmul", "pointer-chase", "far-fields", "false-sharing")),
]
FIGURES = ["user.instructions", "user.l1", "user.l2", "user.l3", "user.cycles", "kernel.instructions", "kernel.l2", "syscalls", "faults"]
# Programs with threads: which one stores first is no property of the program.
THREADS = f"{SUBJECTS}/false-sharing"
RECORDINGS = 3
# Quantile of Student's t for two sides of three at the gate's confidence of 99.9%.
STUDENT = 8.610
CACHEGRIND = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null"]


def of_runs(run):
    """The noise of figures of a program against itself, as shares: what as many runs as a gate's recordings give."""
    sides = [run() for _ in range(2 * RECORDINGS)]
    shares = {}
    for name in sides[0]:
        old, new = ([side[name] for side in sides[at::2]] for at in (0, 1))
        of_mean = (statistics.variance(old) + statistics.variance(new)) / 2 * 2 / RECORDINGS
        shares[name] = STUDENT * of_mean**0.5 / statistics.mean(old)
    return "  ".join(f"{name} {share:.3%}" for name, share in shares.items())


def wall(command):
    begin = time.perf_counter()
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return {"wall": time.perf_counter() - begin}


def cachegrind(command):
    """Instructions, and misses of the first and the last level, as its summary has them."""
    done = subprocess.run([*CACHEGRIND, *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    figures = {"instructions": "I +refs", "D1": "D1 +misses", "LLd": "LLd misses"}
    return {name: int(re.search(rf"{words}: +([\d,]+)", done.stderr)[1].replace(",", "")) for name, words in figures.items()}


def varies(record, program):
    """Which of user instructions and system calls are not the same in every recording."""
    digits = 1e-4 if program.startswith(SUBJECTS) else 0
    allowed = lambda figure: digits * figure["old"] if figure["name"] == "user.instructions" else 0
    exact = [f for f in record["figures"] if f["name"] == "user.instructions" or f["name"].startswith("syscalls")]
    return [f["name"] for f in exact if max(f["noise"], abs(f["difference"])) > allowed(f)]


def summed_up(seen):
    """A table of the noise of each figure by program."""
    print("noise of a gate's figures in percent, median and most of all rounds (modelled)")
    print(" " * 14 + "".join(f"{name.replace('instructions', 'insns'):>16}" for name in FIGURES))
    for program, gated in seen.items():
        cells = ([100 * shares[name] for shares in gated if name in shares] for name in FIGURES)
        cells = (f"{statistics.median(those):.3f} {max(those):.3f}" if those else "" for those in cells)
        print(f"{os.path.basename(program.split()[0]):14}" + "".join(f"{cell:>16}" for cell in cells))


def main():
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        print(cpu())
        numbers()
        programs = [program for program in PROGRAMS if shutil.which(program.split()[0])]
        for program in programs:
            command = shlex.split(program)
            of_wall = of_runs(lambda: wall(command))
            counted = of_runs(lambda: cachegrind(command)) if shutil.which("valgrind") else "not installed"
            print(f"{program}\n    noise of {RECORDINGS} runs a side: {of_wall} (measured); cachegrind {counted}", flush=True)
        gates = failed = unequal = 0
        seen = {}
        for number in range(ROUNDS):
            for program in programs:
                status, record, seconds = gate(program, program)
                gates += 1
                failed += status
                varying = varies(record, program)
                unequal += program != THREADS and bool(varying)
                seen.setdefault(program, []).append(shares(record, *FIGURES))
                print(f"round {number + 1}, {program}\n"
                      f"    status {status}, {record['new']['recordings']} recordings a side, {seconds:.0f} s (measured)\n"
                      f"    noise: {noise(record, *FIGURES)}\n"
                      f"    beyond: {by(record, 'beyond')}; unclear: {by(record, 'unclear')}; not exact: {', '.join(varying) or 'none'}", flush=True)
        summed_up(seen)
        print(f"{gates} gates of a program against itself, {failed} failed; user instructions or system calls of {unequal} of "
              f"those with one thread differ between recordings")
        sys.exit(1 if failed or unequal else 0)


main()
