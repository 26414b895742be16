#!/usr/bin/env python3
"""Writes docs/RESULTS.md from the outputs that are kept beside the experiments. Nothing in that page is typed by hand.

Usage: scripts/results.py [--check]    (--check: status 1 if the page differs from what the outputs give)

A result is an output file, the command that wrote it, and patterns of the lines that sum it up. The page quotes the
file's first line, which names machine and day, and each line that a pattern finds. A pattern that finds nothing is an
error, so that the page cannot lose a result in silence.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/RESULTS.md"
WIDTH = 160
# The line that names the machine, where that is not the first one.
MACHINE = re.compile(r"\bon .*CPUs|vCPUs|2 CPUs|virtual machine")

RESULTS = {
    "Faults that are found": [
        ("recall/first.txt", "experiments/recall/run.py", [r"found in every shape", r"counted right", r"right side", r"^twins with"]),
        ("recall/second.txt", "experiments/recall/run.py", [r"found in every shape", r"counted right", r"right side", r"^twins with"]),
        ("recall/headline.txt", "experiments/recall/headline.py", [r"^headlines that name"]),
        ("names/table.txt", "experiments/names/run.py", [r"programs: the heaviest"]),
        ("names/diagnose.txt", "experiments/names/run.py --diagnose", [r"programs: the heaviest"]),
        ("recall/healthy.txt", "experiments/recall/healthy.py", [r"^commands with a false finding"]),
        ("local/shapes.txt", "experiments/local/shapes.py", [r"wanted"]),
        ("pair/shapes.txt", "experiments/pair/shapes.py", [r": (right|WRONG)"]),
        ("pace/judges.txt", "experiments/pace/judges.py", [r"found", r"wrong$"]),
    ],
    "Predictions beside measured gains": [
        ("advice/memory.txt", "experiments/advice/run.py", [r"advice"]),
        ("advice/around.txt", "experiments/advice/walks.py d1_block d1_block_twin d2_ring d2_ring_twin d3_counts d3_counts_twin e1_archive e2_late", [r"advice"]),
        ("advice/walks.txt", "experiments/advice/walks.py (chains, columns, neither)", [r"wrong$"]),
        ("advice/reach.txt", "experiments/advice/walks.py f1_probe f1_probe_twin f2_matrix f2_matrix_twin f3_counts f3_counts_twin", [r"advice"]),
        ("huge/zen4.txt", "experiments/huge/run.py --pairs 8", [r"predicted ", r"within 15"]),
        ("layout/judged.txt", "experiments/layout/run.py --pairs 7", [r"^found"]),
        ("layout/kernel.txt", "experiments/layout/kernel.py", [r"listed fields span"]),
        ("keep/judged.txt", "experiments/keep/run.py judge --pairs 8", [r"^found"]),
        ("gains/zen5.txt", "experiments/gains/run.py --pairs 41", [r"^all, ", r"^written after"]),
        ("gains/day.txt", "experiments/gains/run.py --pairs 61", [r"^all, ", r"^written after"]),
        ("gains/emerald-rapids.txt", "experiments/gains/run.py --machines host --pairs 25", [r"^all, ", r"^written after", r"^written to"]),
        ("gains/contenders.txt", "experiments/gains/run.py (contenders)", [r"within 20 points"]),
        ("contention/table.txt", "experiments/contention/run.py", [r"^of \d+ programs", r"^gains within"]),
        ("contention/emerald-rapids.txt", "experiments/contention/run.py --table emerald-rapids.txt", [r"^of \d+ programs", r"^gains within"]),
        ("planted/judged.txt", "experiments/planted/run.py", [r"^found"]),
        ("gate/takes.txt", "experiments/gate/takes.py", [r"."]),
        ("gate/same.txt", "experiments/gate/same.py 5", [r"^(?!round|    (status|noise: |beyond))(?!#)"]),
        ("gate/planted.txt", "experiments/gate/planted.py 5", [r"judged wrongly"]),
        ("gate/engines.txt", "experiments/gate/engines.py", [r"judged wrongly"]),
        ("gains/contenders-xeon.txt", "experiments/gains/run.py (contenders)", [r"within 20 points"]),
        ("cycles/zen5.txt", "experiments/cycles/run.py", [r"within 30%"]),
        ("cycles/emerald-rapids.txt", "experiments/cycles/run.py --passes 30 --machines host", [r"within 30%"]),
        ("cycles/day.txt", "experiments/cycles/run.py", [r"within 30%"]),
        ("color-loop/loop.txt", "experiments/color-loop/run.py", [r"predicted .* measured"]),
        ("pace/predicted.txt", "experiments/pace/predicted.py", [r"within 20%", r"^whether sleeping pays"]),
        ("local/homes.txt", "experiments/local/homes.py", [r"^predicted"]),
        ("local/places.txt", "experiments/local/places.py", [r"^predicted"]),
    ],
    "Gains of remedies": [
        ("pace/servers.txt", "experiments/pace/servers.py", [r"^\S+ +\d+ms  "]),
        ("pace/sockets.txt", "experiments/pace/sockets.py", [r"paced / unpaced"]),
        ("pace/auto.txt", "experiments/pace/auto.py", [r"auto \(budget"]),
        ("color-preload/effect.txt", "experiments/color-preload/README.md names the commands", [r"in \d+ pairs"]),
        ("bypass/copies.txt", "experiments/bypass/copies.py", [r"past .*ratio"]),
        ("bypass/files.txt", "experiments/bypass/files.py", [r"without .* with"]),
        ("local/subjects.txt", "experiments/local/subjects.py", [r"predicted\)", r"as wanted"]),
        ("pair/hardware.txt", "experiments/pair/hardware.py", [r"^(chases|streams)"]),
        ("accelerator/hits.txt", "experiments/accelerator/hits.py", [r"ratio to nginx"]),
    ],
    "Time to an answer, and what recording costs": [
        ("answer/window.txt", "experiments/answer/window.py 7", [r"times"]),
        ("answer/real.txt", "experiments/answer/real.py", [r"native"]),
        ("answer/parts.txt", "experiments/answer/parts.py", [r"^(?!#)"]),
        ("answer/run.txt", "experiments/answer/run.py --no-long", [r"alone"]),
        ("answer/interrupts.txt", "experiments/answer/interrupts.py 20", [r"^at "]),
        ("answer/zen5.txt", "experiments/answer/run.py", [r"alone .*answer", r"M records:"]),
        ("foundation/slowdown.txt", "cargo bench -p nearmiss-cli --bench foundation -- slowdown", [r"×"]),
        ("foundation/bench.txt", "cargo bench -p nearmiss-cli --bench foundation", [r"^geometric mean", r"^cold:"]),
        ("engines/speed.txt", "experiments/engines/speed.py", [r"^(true|sort) "]),
        ("road/answers.txt", "experiments/road/answers.py OLD NEW 3", [r"ratio", r"^#"]),
        ("road/build.txt", "experiments/road/build.sh 050197ef 7d9a37a2", [r"CPU time", r"^#"]),
        ("same/road.txt", "experiments/same/run.py OLD NEW", [r"report --json"]),
        ("live/phases.txt", "experiments/live/phases.py", [r"after its end", r"^faults found"]),
        ("live/running.txt", "experiments/live/running.py --pauses 9", [r"paused|no snapshot"]),
        ("boot/speed.txt", "experiments/boot/speed.py", [r"^(booted|restored) +median", r"^restored takes"]),
        ("carry/carry.txt", "experiments/carry/run.py", [r"--carry"]),
        ("migration/records.txt", "experiments/migration/run.py", [r"times the smallest"]),
        ("local/time.txt", "experiments/local/time.py", [r"in all, window"]),
        ("observe/cheap.txt", "scripts/observe-cheap.sh", [r"^\S+ +--"]),
        ("pair/daemon.txt", "experiments/pair/daemon.py", [r"^measured"]),
        ("color-preload/start-up.txt", "experiments/color-preload/start-up.py", [r"^start-up"]),
    ],
    "Correctness": [
        ("engines/stable.txt", "experiments/engines/stable.sh", [r"^\d", r"^no recording"]),
        ("boot/restores.txt", "experiments/boot/restores.sh", [r"^no recording", r"random numbers"]),
        ("hostile/mutants.txt", "experiments/hostile/mutants.py", [r"mutants of"]),
        ("hostile/kills.txt", "experiments/hostile/kills.py", [r"kills,"]),
        ("live/kills.txt", "experiments/live/kills.py", [r"kills of \w+, CRIU"]),
        ("observe/right.txt", "scripts/observe-right.sh", [r" / "]),
        ("observe/sums.txt", "experiments/observe/sums.py", [r"^all"]),
        ("verify-honesty/verdicts.txt", "experiments/verify-honesty/run.sh", [r"verdicts \(measured\)"]),
        ("color-preload/programs.txt", "experiments/color-preload/programs.sh", [r"^\w+: "]),
        ("accelerator/soak.txt", "make soak SOAK_SECONDS=3600", [r"^test result"]),
        ("accelerator/chromium.txt", "experiments/accelerator/chromium.py", [r"failed$"]),
    ],
}
PAPERS = [
    ("local/paper-small.txt", "nearmiss-papers run numa --scale small"),
    ("pace/paper-small.txt", "nearmiss-papers run pacing --scale small"),
    ("lab/pollution-small.txt", "nearmiss lab run research/papers/pollution/lab.toml --scale small"),
]


def cut(line):
    line = " ".join(line.split(" ")).rstrip()
    return line if len(line) <= WIDTH else line[:WIDTH - 1] + "…"


def origin(lines):
    """The line that names machine or day: the first one of the top that does, else the first."""
    return next((line for line in lines[:6] if MACHINE.search(line)), lines[0]).lstrip("# ")


def result(output, command, patterns):
    lines = (ROOT / "experiments" / output).read_text().splitlines()
    found = [line for line in lines if any(re.search(pattern, line) for pattern in patterns)]
    for pattern in patterns:
        if not any(re.search(pattern, line) for line in lines):
            sys.exit(f"results: experiments/{output}: no line has {pattern!r}: mend the pattern in scripts/results.py")
    quoted = "\n".join(cut(line) for line in found if line != origin(lines))
    return (f"`{command}` → [{output}](../experiments/{output})\n\n```text\n{cut(origin(lines))}\n{quoted}\n```\n")


def page():
    parts = ["# Results", "`scripts/results.py` writes this page from the outputs that are kept beside the experiments: nothing here is typed by "
             "hand.\nEach block has the command, the output file, the line that names machine or day, and the lines that sum the output "
             "up, cut\nat 160 characters. *wanted* in an output is the target that was set before. [limits.md](limits.md) discusses what falls short."]
    for title, entries in RESULTS.items():
        parts.append(f"## {title}")
        parts.extend(result(*entry).rstrip() for entry in entries)
    parts.append("## Papers")
    parts.append("Each paper's figures stand beside ours in the output of `nearmiss-papers run NAME`; `research/papers/NAME/README.md` has method "
                 "and differences.\nOutputs that are kept:")
    parts.append("\n".join(f"- `{command}` → [{output}](../experiments/{output})" for output, command in PAPERS))
    return "\n\n".join(parts) + "\n"


def main():
    text = page()
    if "--check" in sys.argv[1:]:
        fresh = PAGE.exists() and PAGE.read_text() == text
        print("docs/RESULTS.md is as the outputs are" if fresh else "docs/RESULTS.md is stale: run scripts/results.py")
        sys.exit(0 if fresh else 1)
    PAGE.write_text(text)
    print(f"docs/RESULTS.md: {sum(map(len, RESULTS.values())) + len(PAPERS)} outputs")


main()
