#!/usr/bin/env python3
"""Copies past the caches beside copies through them: times of programs with copies that pollute, are read at once, or fit the
caches; a neighbour on the same CPU; how fast the copy is; and gzip and zstd. Measured, interleaved in a shuffled order.

Usage: experiments/bypass/copies.py [--runs N] [--seed N] [PART…]; from the root, after `make` and `make -C subjects`.
Parts: pollutes read fits beside speed tools."""
import argparse
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEARMISS = str(ROOT / "target/release/nearmiss")
SUBJECT = str(ROOT / "target/subjects/stream-copy")
THRESHOLD = {"GLIBC_TUNABLES": "glibc.cpu.x86_non_temporal_threshold=16448"}
MIB = 1 << 20


def cpu():
    model = re.search("model name\\s*: (.*)", open("/proc/cpuinfo").read())
    return f"{model[1] if model else 'an unnamed CPU'}, {os.cpu_count()} CPUs"


def bypassing(sites, command, least="4k"):
    options = [word for site in sites for word in ("--site", site)]
    return [NEARMISS, "apply", "bypass", "--copies", "--min", least, *options, "--", *command]


def run(command, variables=None, output=subprocess.PIPE):
    """Output and the report of `apply`."""
    environment = {**os.environ, **(variables or {})}
    done = subprocess.run(command, env=environment, stdout=output, stderr=subprocess.PIPE, text=True, errors="replace")
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return done.stdout, done.stderr


def figure(name, text):
    return float(re.search(f"{name}=([0-9.]+)", text)[1])


def spread(values):
    return f"{statistics.median(values):9.2f} [{min(values):.2f}, {max(values):.2f}]"


def interleaved(sides, runs, seed):
    """Runs each side (a name and a function that returns figures by name) so often; figures by side, in order of runs."""
    rng = random.Random(seed)
    kept = {name: [] for name, _ in sides}
    for _ in range(runs):
        for name, measure in rng.sample(sides, len(sides)):
            kept[name].append(measure())
    return kept


def show(title, sides, runs, seed, against):
    """One line a side and figure: median, least and most; ratio to the side named `against` in the same round."""
    print(f"\n{title}")
    kept = interleaved(sides, runs, seed)
    for name, rounds in kept.items():
        for what in rounds[0]:
            values = [one[what] for one in rounds]
            ratios = [one[what] / other[what] for one, other in zip(rounds, kept[against]) if other[what]]
            beside = "" if name == against or not ratios else f"   ratio {spread(ratios)}"
            print(f"  {name:34} {what:20} {spread(values)}{beside}")
    sys.stdout.flush()


def subject(*words):
    return [SUBJECT, "--calls", "--rounds", "400", *words]


def of_subject(command, variables=None):
    def measure():
        text, _ = run(command, variables)
        return {"ns a table line": figure("ns_per_table_line", text), "us a round": figure("us_per_round", text)}
    return measure


def beside_the_plain(title, command, site, options):
    sides = [("through the caches", of_subject(command)), (f"{site} past", of_subject(bypassing([site], command)))]
    show(title, sides, options.runs, options.seed, "through the caches")


def pollutes(options):
    table = ["--table", "512K"]
    two, large = ["--copy", "2M", *table], ["--copy", "32M", *table, "--rounds", "60"]
    beside_the_plain("What pollutes: 2 MiB of 4 KiB records a round, a table of 512 KiB", subject(*two, "--record", "4K"), "keep_records", options)
    beside_the_plain("The same from a source as large as the target", subject(*two, "--record", "2M"), "keep_records", options)
    beside_the_plain("32 MiB of 4 KiB records a round, more than the last level leaves us", subject(*large, "--record", "4K"), "keep_records", options)
    beside_the_plain("The same of 64 KiB records, which need fewer fences", subject(*large, "--record", "64K"), "keep_records", options)


def read(options):
    command = subject("--copy", "0", "--read", "2M", "--table", "512K")
    beside_the_plain("What is read at once: 2 MiB a round", command, "read_records", options)


def fits(options):
    command = subject("--copy", "256K", "--table", "512K")
    beside_the_plain("Copies that fit: 256 KiB a round", command, "keep_records", options)


def beside(options):
    """A walk that shares its CPU with copies, by turns of the scheduler."""
    pin = ["taskset", "-c", "0"]
    rounds, lines = 20000, (512 << 10) // 64
    walk = pin + [SUBJECT, "--calls", "--copy", "0", "--table", "512K", "--rounds", str(rounds)]
    copies = pin + [SUBJECT, "--calls", "--copy", "8M", "--table", "64", "--rounds", "1000000"]

    def measure(neighbour):
        def with_neighbour():
            other = neighbour and subprocess.Popen(neighbour, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                # By its CPU time: the other half of the time is the neighbour's.
                one = subprocess.Popen(walk, stdout=subprocess.DEVNULL)
                _, _, used = os.wait4(one.pid, 0)
                return {"CPU ns a table line": (used.ru_utime + used.ru_stime) * 1e9 / rounds / lines}
            finally:
                if other:
                    other.terminate()
                    other.wait()
        return with_neighbour

    past = pin + bypassing(["keep_records"], copies[3:])
    sides = [("alone", measure(None)), ("beside copies", measure(copies)), ("beside copies past the caches", measure(past))]
    show("A walk of 512 KiB on the CPU of a program that copies", sides, options.runs, options.seed, "alone")


def speed(options):
    with tempfile.TemporaryDirectory() as place:
        program = f"{place}/throughput"
        source = str(ROOT / "experiments/bypass/throughput.c")
        subprocess.run(["cc", "-O2", "-o", program, source], check=True)
        def of(command, variables=None):
            return lambda: {"GB/s": figure("gb_per_s", run(command, variables)[0])}

        for piece, source, name in ((MIB, 256 * MIB, "uncached"), (4 * MIB, 256 * MIB, "uncached"), (16 << 10, 16 << 10, "cached")):
            command = [program, str(piece), str(source), str(256 * MIB), str(1024 * MIB)]
            sides = [("glibc's default", of(command)), ("past the caches", of(bypassing(["copies"], command)))]
            # Copies of 16 KiB are under the least threshold that glibc takes.
            if piece >= MIB:
                sides.insert(0, ("glibc's non-temporal path", of(command, THRESHOLD)))
            show(f"Copies of {piece >> 10} KiB, {name} source", sides, options.runs, options.seed, sides[0][0])


def tools(options):
    """gzip and zstd, all of their calls of 16 KiB and more past the caches: what is copied is read soon."""
    with tempfile.TemporaryDirectory() as place:
        rng = random.Random(1)
        words = [bytes(rng.randrange(97, 123) for _ in range(rng.randrange(3, 9))) for _ in range(3000)]
        text = f"{place}/text"
        with open(text, "wb") as file:
            while file.tell() < 24 * MIB:
                file.write(b" ".join(rng.choice(words) for _ in range(2000)))
        for tool, command in (("gzip", ["gzip", "-1", "-c", text]), ("zstd", ["zstd", "-q", "-3", "-c", text])):
            if not shutil.which(tool):
                print(f"\nskipped: {tool} is not installed")
                continue
            sites = found(command, tool)
            print(f"\n{tool}: calls of 16 KiB and more from {len(sites)} sites: {' '.join(sites) or 'none'}")
            if not sites:
                continue

            def seconds(command):
                def measure():
                    before = os.times()
                    run(command, output=subprocess.DEVNULL)
                    after = os.times()
                    return {"CPU s": after.children_user + after.children_system - before.children_user - before.children_system}
                return measure
            sides = [("through the caches", seconds(bypassing([], command, "16k"))), ("all sites past", seconds(bypassing(sites, command, "16k")))]
            show(f"{' '.join(command[:-1])} of 24 MiB", sides, options.runs, options.seed, "through the caches")


def found(command, tool):
    """The calls of copies in a program and its libraries that copy 16 KiB and more when it runs."""
    program = os.path.realpath(shutil.which(tool))
    files = [program] + [os.path.realpath(path) for path in re.findall(r"=> (/\S+)", run(["ldd", program])[0]) if "/libc.so" not in path]
    copying = re.compile(r"^\s*([0-9a-f]+):\s.*\bcall\b.*<(?:mem(?:cpy|move|set|pcpy)|__mem\w+_chk)(?:@plt|@@?GLIBC\S*)?>")
    calls = []
    for file in files:
        shown = run(["objdump", "-d", "--no-show-raw-insn", file])[0]
        calls += [f"{os.path.basename(file)}+0x{match[1]}" for line in shown.splitlines() if (match := copying.match(line))]
    active = []
    for at in range(0, len(calls), 20):
        _, report = run(bypassing(calls[at:at + 20], command, "16k"), output=subprocess.DEVNULL)
        active += [name for name, copies in re.findall(r"(\S+\+0x[0-9a-f]+): ([0-9,]+) cop", report) if copies != "0"]
    return active


PARTS = [pollutes, read, fits, beside, speed, tools]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("parts", nargs="*", metavar="PART")
    options = parser.parse_args()
    print(f"measured on {cpu()}, {options.runs} rounds, seed {options.seed}: medians [least, most]")
    for part in PARTS:
        if not options.parts or part.__name__ in options.parts:
            part(options)


main()
