#!/usr/bin/env python3
"""Cost of a compile in a guest, with and without a run ahead: two compiles in one guest, and one.

Run from the repository's root after `make build`: experiments/warm/run.py [RUNS]
Modelled cycles of the command's tasks, user and kernel, a compile. "recurs" leaves out the waits of first touches.
Ends with status 1 if, after a run ahead, a compile of one and a compile of two in one guest differ by more than 10%.
"""

import os, statistics, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from traced import cpu, trace

RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
MACHINE = "zen4-genoa"
NATIVE = os.path.realpath("native")
COMPILE = f"gcc -I {NATIVE}/include -c {NATIVE}/agent/init/relay.c -o /tmp/relay.o"
LIMIT = 0.10
FAST = ["--no-trace", "--no-curve", "--no-stacks", "--no-heap"]


def a_compile(model, compiles):
    """Cycles of the command a compile, those of the kernel, first touches, and what recurs."""
    tasks = [task for task in model["tasks"] if task["of_command"]]
    total = lambda key, modes=("user", "kernel"): sum(task[mode][key] for task in tasks for mode in modes) / compiles
    cycles, first = total("cycles"), total("first_touch_cycles")
    return cycles, total("cycles", ["kernel"]), first, cycles - first


def measure(what, compiles, *options):
    """Prints a row and returns the medians: cycles, kernel, first touches, what recurs."""
    rows = []
    for _ in range(RUNS):
        command = ["sh", "-c", "; ".join([COMPILE] * compiles)]
        manifest, model = trace(1, command, *FAST, *options, machine=MACHINE)
        rows.append(a_compile(model, compiles))
        warm = manifest["warm"]
        print(f"    {what}: {rows[-1][0] / 1e6:.1f} M a compile; measured: boot {manifest['boot_ns'] / 1e9:.1f} s, warm "
              f"{warm['time_ns'] / 1e9:.1f} s ({warm['files']} files, {warm['bytes'] / 1e6:.1f} MB), "
              f"window {manifest['window_ns'] / 1e9:.1f} s", flush=True)
    medians = [statistics.median(column) for column in zip(*rows)]
    cycles, kernel, first, recurs = (cycles / 1e6 for cycles in medians)
    print(f"  {what:<32} {cycles:7.1f} M a compile, kernel {kernel:6.1f} M, first touches {first:6.1f} M, recurs {recurs:6.1f} M")
    return medians


def agree(what, one, two):
    """Prints by how much a compile of two differs from one."""
    difference = two / one - 1
    print(f"{what}: {difference:+.1%} ({'within' if abs(difference) <= LIMIT else 'BEYOND'} {LIMIT:.0%})")
    return abs(difference) <= LIMIT


def main():
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        print(cpu())
        print(f"{COMPILE.replace(NATIVE, 'native')}, -m {MACHINE} --cpus 1 {' '.join(FAST)}, medians of {RUNS} runs, modelled")
        one = measure("one compile", 1)
        two = measure("two compiles", 2)
        warm_one = measure("one compile, --warm", 1, "--warm")
        warm_two = measure("two compiles, --warm", 2, "--warm")
        good = agree("two in one guest after a run ahead, against one after a run ahead", warm_one[0], warm_two[0])
        agree("  the same, what recurs", warm_one[3], warm_two[3])
        agree("two in one guest without a run ahead, against one after a run ahead", warm_one[0], two[0])
        agree("  the same, what recurs", warm_one[3], two[3])
        agree("one compile without a run ahead, against one after a run ahead", warm_one[0], one[0])
        sys.exit(0 if good else 1)


main()
