#!/usr/bin/env python3
"""Predicted gains beside measured ones: programs with a known fault, each with a twin that has the fault no more.

    experiments/gains/run.py [--names NAME,NAME] [--machines host] [--pairs 25] [--predictions FILE [--predict-only]]
                             [--times FILE [--measure-only]]

A gain is the share of the command's CPU time (user and system) that is saved. Predicted: the top finding of `nearmiss
diagnose` on the command; no finding predicts 0. Measured: program and twin in interleaved pairs of runs, pinned, with the
very arguments that were traced; the median of the pairs and its quartiles. Programs of the second half were written
after the model was frozen, those of the third and fourth after it was mended, and none was changed since. Predictions take minutes
and no quiet machine, so that they can be made ahead: --predictions keeps them in a file, and takes from it what is there.
So does --times with what is measured, which needs a quiet machine and a minute.
"""

import glob, json, os, statistics, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "recall"))
from judging import ROOT, Judge, options, program_of

FAULTS = f"{ROOT}/experiments/recall/faults"
HALVES = {"before": "written before the model was frozen", "after": "written after",
          "since": "written after loads behind walks and stores behind chained loads were mended",
          "contended": "written after lines that other CPUs store to were modelled",
          "contenders": "written to model what stores, atomics and loads take that contend",
          "strangers": "written by somebody who had not read the model, before its second level had banks",
          "remedies": "of large pages, kept memory and layout, written by somebody who had not read the detectors"}
NEAR = 0.15
ALL_CPUS = sorted(os.sched_getaffinity(0))

# Name: the subject, its arguments, and what makes it the twin.
SUBJECTS = {
    "aligned-tasks": (["--objects", "64", "--visits", "1500000"], ["--colors", "16"]),
    "matrix-rows": (["--rounds", "200"], ["--pad", "64"]),
}
# Name: the planted fault and its arguments.
PLANTED = {
    "buckets": ("buckets", ["1500"]),
    "tasks-300": ("tasks", ["1500", "300"]),
    "records-32": ("records", ["9", "32", "32"]),
    "connections-80": ("connections", ["800", "80"]),
    "deal-32": ("deal", ["2800", "32"]),
    "stencil-4": ("stencil", ["240", "4"]),
    "butterflies-32": ("butterflies", ["1800", "32"]),
    "btree-8": ("btree", ["250", "8"]),
    "fields": ("fields", ["1500"]),
}
# Programs of this folder, and their arguments.
LATER = {
    "binary-search": ["60"],
    "particles": ["120"],
    "slab-tree": ["400"],
    "histogram": ["2000"],
    "tiles": ["120"],
    "merge": ["4"],
    "lookup-tables": ["800"],
    "page-heads": ["5000"],
}
LATEST = {
    "transpose": ["60"],
    "ledger": ["800"],
    "rings": ["1500"],
}
LAST = {
    "planes": ["150"],
    "tallies": ["200"],
    "progress": ["800"],
    "blocks": ["600"],
}
# Programs named by what they do: `contenders` with these arguments.
CONTENDERS = {
    "stores-static": "stores static 8 2 200000",
    "stores-heap": "stores heap 24 2 200000",
    "stores-stack": "stores stack 8 2 200000",
    "stores-shared": "stores shared 8 2 200000",
    "stores-four": "stores static 16 4 100000",
    "stores-odd": "stores odd 64 2 200000",
    "adds-static": "adds static 8 2 200000",
    "adds-heap": "adds heap 24 2 200000",
    "adds-stack": "adds stack 16 2 200000",
    "adds-shared": "adds shared 8 2 200000",
    "adds-four": "adds static 8 4 100000",
    "adds-odd": "adds odd 64 2 200000",
    "adds-odd-four": "adds odd 64 4 100000",
    "adds-short": "adds static 8 2 20000",
    "adds-working": "adds static 8 2 40000 20",
    "atomics-static": "atomics static 8 2 100000",
    "atomics-heap": "atomics heap 24 2 100000",
    "atomics-four": "atomics static 16 4 50000",
    "atomics-shared": "atomics shared 8 2 100000",
    "atomics-working": "atomics static 8 2 40000 20",
    "word-static": "word static 8 2 100000",
    "word-four": "word static 8 4 50000",
    "mixed-static": "mixed static 8 2 200000",
    "one-four": "one static 8 4 100000",
}
# The third half of the planted faults, and their arguments.
REMEDIES = {
    "groups": ["12000"],
    "orders": ["700"],
    "documents": ["80"],
    "frames": ["15"],
    "expressions": ["60"],
    "replies": ["200"],
    "accounts": ["300"],
    "timeouts": ["400000"],
    "entities": ["1000"],
}
# Programs of strangers/, without arguments.
STRANGERS = sorted(map(program_of, glob.glob(f"{HERE}/strangers/*.c")))
# Programs with two threads at work, which run on all CPUs; all others have one.
SHARING = {"fields", "histogram", "tallies", "progress", "blocks", "shared-bins", "checksums", "seldom", *CONTENDERS}


def pairs_of_commands(judge):
    """Name: half, the program's command, the twin's command."""
    found = {}
    for name, (arguments, twin) in SUBJECTS.items():
        command = [f"{ROOT}/target/subjects/{name}", *arguments]
        found[name] = ("before", lambda command=command, twin=twin: (command, [*command, *twin]))
    for name, (program, arguments) in PLANTED.items():
        found[name] = ("before", built(judge, glob.glob(f"{FAULTS}/{program}.c*")[0], arguments))
    for name, arguments in LATER.items():
        found[name] = ("after", built(judge, f"{HERE}/{name}.c", arguments))
    for half, programs in (("since", LATEST), ("contended", LAST)):
        for name, arguments in programs.items():
            found[name] = (half, built(judge, f"{HERE}/{name}.c", arguments))
    for name, arguments in CONTENDERS.items():
        found[name] = ("contenders", built(judge, f"{HERE}/contenders.c", arguments.split(), name))
    for name in STRANGERS:
        found[name] = ("strangers", built(judge, f"{HERE}/strangers/{name}.c", []))
    for name, arguments in REMEDIES.items():
        found[name] = ("remedies", built(judge, glob.glob(f"{FAULTS}/{name}.c*")[0], arguments))
    return found


def built(judge, source, arguments, name=None):
    """Builds a planted fault and its twin on request, and holds that both do the same work."""
    def build():
        called = name or program_of(source)
        sides = [[judge.build(source, called + ending, *flags), *arguments]
                 for ending, flags in (("", []), ("-twin", ["-DTWIN"]))]
        digests = {subprocess.check_output(side, text=True).split()[0] for side in sides}
        if len(digests) != 1:
            sys.exit(f"{source}: the program and its twin print unlike digests, so they do unlike work")
        return sides
    return build


def cpus_of(name):
    return ALL_CPUS if name in SHARING else ALL_CPUS[-1:]


def cpu_seconds(command, cpus):
    """The CPU time of one run, user and system: their split follows the timer's ticks, their sum does not."""
    os.sched_setaffinity(0, cpus)
    quiet = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in range(3)]
    child = os.posix_spawn(command[0], command, os.environ, file_actions=quiet)
    _, status, used = os.wait4(child, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)}: status {status}")
    return used.ru_utime + used.ru_stime


def measure(commands, pairs):
    """By name: all programs take turns, so that a noisy minute disturbs every one of them."""
    seconds = {name: [] for name in commands}
    for pair in range(pairs):
        for name, sides in commands.items():
            order = (0, 1) if pair % 2 else (1, 0)
            taken = {side: cpu_seconds(sides[side], cpus_of(name)) for side in order}
            seconds[name].append([taken[0], taken[1]])
    return {name: measured(taken) for name, taken in seconds.items()}


def kept_or_measured(chosen, commands):
    """Kept measurements of the same arguments, and the rest measured now."""
    kept = json.load(open(chosen.times)) if chosen.times and os.path.exists(chosen.times) else {}
    words = {name: [side[1:] for side in sides] for name, sides in commands.items()}
    missing = {name: sides for name, sides in commands.items() if kept.get(name, {}).get("arguments") != words[name]}
    kept.update({name: {"arguments": words[name], **taken} for name, taken in measure(missing, chosen.pairs).items()})
    if chosen.times:
        with open(chosen.times, "w") as file:
            json.dump(kept, file, indent=1)
    return kept


def measured(taken):
    gains = [1 - twin / sick for sick, twin in taken]
    low, middle, high = statistics.quantiles(gains, n=4)
    return {"gain": middle, "low": low, "high": high, "pairs": len(gains),
            "milliseconds": [1e3 * statistics.median(side) for side in zip(*taken)]}


def predict(judge, command, machines):
    """The top finding on each machine, from one trace."""
    with tempfile.TemporaryDirectory(dir=judge.place.name) as runs:
        predicted = {}
        for machine in machines:
            of = ["--", *command] if not predicted else [next(os.scandir(runs)).path]
            out, why = judge.call(runs, "diagnose", "--json", "-m", machine, *(["--runs", runs] if not predicted else []), *of)
            if not out:
                sys.exit(f"{' '.join(command)}: {why}")
            predicted[machine] = top(json.loads(out))
    return predicted


def top(findings):
    if not findings["findings"]:
        return {"gain": 0.0, "low": 0.0, "high": 0.0, "symptom": "no finding"}
    finding = findings["findings"][0]
    return {**{key: finding["prediction"][key] for key in ("gain", "low", "high")}, "remedy": finding["remedy"],
            "symptom": finding["symptom"]}


def predictions(judge, chosen, commands):
    """Kept predictions count while the arguments are the same."""
    kept = json.load(open(chosen.predictions)) if chosen.predictions and os.path.exists(chosen.predictions) else {}
    predicted = {}
    for name, (sick, _) in commands.items():
        arguments = sick[1:]
        if kept.get(name, {}).get("arguments") != arguments:
            kept[name] = {"arguments": arguments, "machines": predict(judge, sick, chosen.machines.split(","))}
            if chosen.predictions:
                with open(chosen.predictions + ".new", "w") as file:
                    json.dump(kept, file, indent=1)
                os.rename(chosen.predictions + ".new", chosen.predictions)
            judge.log(f"predicted {name}: " + ", ".join(f"{m} {p['gain']:.0%}" for m, p in kept[name]["machines"].items()))
        predicted[name] = kept[name]["machines"]
    return predicted


def text_of(row):
    measured = row["measured"]
    cells = [f"{machine} {p['gain']:5.0%} ({100 * (p['gain'] - measured['gain']):+4.0f})"
             for machine, p in row["predicted"].items()]
    sick, twin = measured["milliseconds"]
    return (f"{row['name']:16} predicted {'  '.join(cells)}   measured {measured['gain']:4.0%} "
            f"[{measured['low']:.0%}, {measured['high']:.0%}]  {sick:6.1f} ms, twin {twin:6.1f} ms")


def summary(rows, title):
    lines = []
    for machine in rows[0]["predicted"] if rows else []:
        errors = [abs(row["predicted"][machine]["gain"] - row["measured"]["gain"]) for row in rows]
        near = sum(error <= NEAR for error in errors)
        lines.append(f"{title}, {machine}: median error {100 * statistics.median(errors):.0f} points, "
                     f"{near} of {len(rows)} ({near / len(rows):.0%}) within {100 * NEAR:.0f} points")
    return lines


def main():
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("--names", help="only these, with commas between them")
    parser.add_argument("--machines", default="host-overlap,host", help="that predict, with commas between them")
    parser.add_argument("--pairs", type=int, default=25, help="of runs of each program and its twin")
    parser.add_argument("--predictions", metavar="FILE", help="where predictions are kept")
    parser.add_argument("--predict-only", action="store_true", help="measure nothing")
    parser.add_argument("--times", metavar="FILE", help="where measured times are kept")
    parser.add_argument("--measure-only", action="store_true", help="predict nothing")
    chosen = parser.parse_args()
    judge = Judge(chosen)
    every = pairs_of_commands(judge)
    names = chosen.names.split(",") if chosen.names else every
    if unknown := set(names) - set(every):
        sys.exit(f"no program is called {', '.join(sorted(unknown))}; there are {', '.join(every)}")
    halves = {name: every[name][0] for name in names if judge.wanted(name)}
    commands = {name: every[name][1]() for name in halves}
    if chosen.build_only:
        return 0
    if chosen.measure_only:
        kept_or_measured(chosen, commands)
        return 0
    predicted = predictions(judge, chosen, commands)
    if chosen.predict_only:
        return 0
    taken = kept_or_measured(chosen, commands)
    rows = [{"name": name, "half": half, "predicted": predicted[name], "measured": taken[name]}
            for name, half in halves.items()]
    judge.log("A gain is the share of the command's CPU time saved; in round brackets, points from predicted to measured; "
              "in square ones, quartiles.")
    for half, title in HALVES.items():
        of_half = [row for row in rows if row["half"] == half]
        if of_half:
            judge.log("\n".join(["", f"Programs {title}:", *map(text_of, of_half), *summary(of_half, title)]))
    judge.log("\n".join(["", *summary(rows, "all")]))
    judge.record["rows"] = rows
    return judge.end(True)


if __name__ == "__main__":
    sys.exit(main())
