#!/usr/bin/env python3
"""Two CPUs that share only their last level: do tasks do more beside their like?

Two chases through 4 MiB each and two streams over 64 MiB each take turns, two at a time, like with like or a chase with a
stream, in rounds with halves that a coin orders. Printed is what each kind did beside its like, of what it did beside the
other kind: measured, medians of rounds with the quartiles and the extremes. SMT and a shared second level cannot be shown
on a machine without them, and counters cannot on one without a PMU.

    experiments/pair/hardware.py [--rounds N] [--slice MS] [--cpus A,B]
"""
import argparse
import pathlib
import statistics
import subprocess
import tempfile

HERE = pathlib.Path(__file__).parent


def shared_level(cpus):
    """The innermost cache level that both CPUs share, by the kernel's word."""
    for index in sorted(pathlib.Path(f"/sys/devices/system/cpu/cpu{cpus[0]}/cache").glob("index*")):
        numbers = set()
        for part in (index / "shared_cpu_list").read_text().strip().split(","):
            first, _, last = part.partition("-")
            numbers |= set(range(int(first), int(last or first) + 1))
        if set(cpus) <= numbers:
            return f"L{(index / 'level').read_text().strip()}"
    return "no cache"


def line(what, ratios):
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"{what:8} beside its like, of beside the other: median {middle:.2f} "
          f"(quartiles {low:.2f} to {high:.2f}, extremes {min(ratios):.2f} to {max(ratios):.2f})")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=40)
    options.add_argument("--slice", type=int, default=200, help="ms")
    options.add_argument("--chase", type=int, default=4, help="MiB")
    options.add_argument("--stream", type=int, default=64, help="MiB")
    options.add_argument("--cpus", default="0,1")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    cpus = [int(cpu) for cpu in given.cpus.split(",")]
    with tempfile.TemporaryDirectory() as place:
        program = f"{place}/neighbours"
        subprocess.run(["cc", "-O2", "-Wall", "-o", program, HERE / "neighbours.c"], check=True)
        numbers = [given.rounds, given.slice, given.chase, given.stream, *cpus, given.seed]
        output = subprocess.run([program, *map(str, numbers)], check=True, capture_output=True, text=True).stdout
    rounds = [[int(number) for number in row.split()] for row in output.splitlines()]
    print(f"measured: {len(rounds)} rounds of four slices of {given.slice} ms, CPUs {given.cpus}, "
          f"which share {shared_level(cpus)}; seed {given.seed}")
    line("chases", [like / mixed for like, mixed, _, _ in rounds if mixed])
    line("streams", [like / mixed for _, _, like, mixed in rounds if mixed])


if __name__ == "__main__":
    main()
