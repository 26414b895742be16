#!/usr/bin/env python3
"""Time outside a window beside that of the same guest without the tap, for each engine that is set up.

Run after `make build` and scripts/setup-engines.sh: experiments/answer/window.py [ROUNDS]    (5; some four minutes)

The program prints how long a fixed amount of work took by its own clock: in a guest of `nearmiss lab` (no tap), and under
`nearmiss trace --from time:1h`, with a window that never opens. Interleaved; wanted: 1.2 at most. All figures are measured.
"""
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from traced import NEARMISS, cpu  # noqa: E402

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "nearmiss/engines"
ENGINES = ["7.2", "10.0", "11.1"]
# Integers, memory, calls and the kernel, as in a program that does some of each.
SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static int by_value(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(void)
{
    enum { NUMBERS = 60000, ROUNDS = 30 };
    static int numbers[NUMBERS];
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int round = 0; round < ROUNDS; round++) {
        for (unsigned at = 0; at < NUMBERS; at++)
            numbers[at] = (int)((at + (unsigned)round) * 2654435761u >> 8);
        qsort(numbers, NUMBERS, sizeof *numbers, by_value);
        for (int call = 0; call < 200; call++)
            (void)getppid();
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    printf("took %.3f\\n", (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9);
    return 0;
}
"""
SPEC = """
name = "bare"
repetitions = 1
measure.took = {{ words = "took (.*)" }}
[[workload]]
name = "work"
command = "{program}"
[[axis]]
name = "guest"
level = [{{ name = "guest", guest = {{ cpus = 1, memory = "1 GiB" }} }}]
"""


def took(command, place, engine):
    environment = {**os.environ, "NEARMISS_QEMU": str(engine)}
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    found = re.search(r'took"?[: "]+([0-9.]+)', done.stdout)
    if not found:
        sys.exit(f"{' '.join(map(str, command))}: {done.stdout[-300:]}{done.stderr[-600:]}")
    return float(found[1])


def bare(program, place, engine):
    with tempfile.TemporaryDirectory(dir=place) as out:
        spec = pathlib.Path(out) / "spec.toml"
        spec.write_text(SPEC.format(program=program))
        return took([NEARMISS, "lab", "run", spec, "--out", f"{out}/lab", "--json"], place, engine)


def tapped(program, place, engine):
    words = ["--no-trace", "--no-curve", "--cpus", "1", "--memory", "1GiB", "--clock", "host", "--from", "time:1h", "-m", "zen4-genoa"]
    return took([NEARMISS, "trace", "-q", *words, "--", program], place, engine)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(f"experiments/answer/window.py, {time.strftime('%F')}, {cpu()}, load {os.getloadavg()[0]:.1f}; seconds of the work, measured")
    with tempfile.TemporaryDirectory() as place:
        program = f"{place}/work"
        subprocess.run(["cc", "-O2", "-x", "c", "-o", program, "-"], input=SOURCE, text=True, check=True)
        native = took([program], place, "")
        for engine in ENGINES:
            qemu = CACHE / engine / "bin/qemu-system-x86_64"
            if not qemu.exists():
                print(f"{engine:5} is not set up: scripts/setup-engines.sh")
                continue
            pairs = [(bare(program, place, qemu), tapped(program, place, qemu)) for _ in range(rounds)]
            ratios = sorted(closed / alone for alone, closed in pairs)
            alone, closed = (statistics.median(side) for side in zip(*pairs))
            print(f"{engine:5} native {native:.3f}, guest {alone:.2f}, with its window closed {closed:.2f}: "
                  f"{statistics.median(ratios):.2f} times ({ratios[0]:.2f} to {ratios[-1]:.2f})", flush=True)


if __name__ == "__main__":
    main()
