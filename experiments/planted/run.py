#!/usr/bin/env python3
"""Small versions of what programs do, with one planted fault each, and fourteen without: does `diagnose` find it?

    experiments/planted/run.py [build|times|answers|twins|table ...] [--work DIR] [--pairs 5] [--only GLOB]

Without a part named, all are done but `twins`, the answers on the twins. DIR keeps binaries, times and answers, so that
parts, and programs by --only, can be done at other hours.
The programs were written by three who had not read the detectors. A twin has the fault no more: twins/NAME.patch, or
variables of the environment. Both print the same. In 13 programs the fault lies behind a set-up of about a third of
the run, in three it comes in bursts. Measured: the share of CPU time (user and system) that the twin saves, median and
quartiles of interleaved pairs. Predicted: the largest gain among the findings of the planted remedy, with its range, by
`diagnose` within its default minute. A twin is one remedy, and the finding may propose a better one.
"""

import argparse, fnmatch, json, os, statistics, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.dirname(HERE))
from traced import cpu  # noqa: E402

LATE = {"color-btree", "apart-ledger", "huge-marksweep", "keep-query", "layout-kdtree", "layout-intern",
        "apart-walkers", "color-blur", "keep-uploads", "layout-flows", "keep-docindex", "huge-bufpool", "layout-cache"}
# Remedies whose names no program begins with.
REMEDIES = {"copy-blit": "bypass"}
KEPT = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=8589934592"
TUNABLES = {
    "huge-columns": "glibc.malloc.hugetlb=1",
    "huge-handler": "glibc.malloc.hugetlb=1",
    "huge-join": "glibc.malloc.hugetlb=1",
    "huge-kv": "glibc.malloc.hugetlb=1",
    "keep-events": KEPT,
    "keep-frames": KEPT,
    "keep-thumbs": KEPT,
    "keep-json": "glibc.malloc.trim_threshold=268435456",
    "keep-logs": "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1073741824",
    "keep-uploads": "glibc.malloc.trim_threshold=268435456:glibc.malloc.mmap_threshold=134217728",
}
BUILD = {
    ".c": ["gcc", "-O2", "-g", "{source}", "-o", "{binary}", "-lm", "-lpthread"],
    ".cc": ["g++", "-O2", "-g", "-std=c++17", "{source}", "-o", "{binary}", "-lpthread"],
    ".rs": ["rustc", "-O", "-g", "--edition", "2021", "{source}", "-o", "{binary}"],
    ".go": ["go", "build", "-o", "{binary}", "{source}"],
}
NEAR = 0.15


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help="build, times, answers, twins, table")
    parser.add_argument("--nearmiss", default=os.environ.get("NEARMISS", f"{ROOT}/target/release/nearmiss"))
    parser.add_argument("--work", metavar="DIR", default="planted-work")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--only", metavar="GLOB", default="*")
    given = parser.parse_args()
    given.work = os.path.abspath(given.work)
    return given


def remedy(name):
    return REMEDIES.get(name, name.split("-")[0])


def source_of(name, work, is_twin):
    """The program's source, or its twin's, which is made of it."""
    file = next(file for file in os.listdir(f"{HERE}/programs") if os.path.splitext(file)[0] == name)
    patch = f"{HERE}/twins/{name}.patch"
    if not is_twin or not os.path.exists(patch):
        return f"{HERE}/programs/{file}"
    twin = f"{work}/{name}-twin{os.path.splitext(file)[1]}"
    subprocess.run(["patch", "-s", "-o", twin, f"{HERE}/programs/{file}", patch], check=True)
    return twin


def command(name, work, is_twin):
    ending = os.path.splitext(source_of(name, work, is_twin))[1]
    binary = f"{work}/{name}{'-twin' if is_twin else ''}"
    return ["/usr/bin/python3", source_of(name, work, is_twin)] if ending == ".py" else [binary]


def build(names, work):
    for name in names:
        for is_twin in (False, True) if remedy(name) != "healthy" else (False,):
            source, binary = source_of(name, work, is_twin), command(name, work, is_twin)[0]
            words = BUILD.get(os.path.splitext(source)[1], [])
            if words:
                subprocess.run([word.format(source=source, binary=binary) for word in words], check=True)


def cpu_s(words, environment):
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    child = os.posix_spawn(words[0], words, environment, file_actions=silent)
    _, status, used = os.wait4(child, 0)
    if status:
        sys.exit(f"{' '.join(words)}: status {status}")
    return used.ru_utime + used.ru_stime


def times(names, work, pairs):
    """CPU seconds of each program and its twin; all take turns, so that a noisy minute disturbs every one."""
    seconds = {name: [] for name in names if remedy(name) != "healthy"}
    for pair in range(pairs):
        for name, taken in seconds.items():
            tunables = {"GLIBC_TUNABLES": TUNABLES[name]} if name in TUNABLES else {}
            sides = [(False, dict(os.environ)), (True, {**os.environ, **tunables})]
            both = {is_twin: cpu_s(command(name, work, is_twin), environment)
                    for is_twin, environment in (sides if pair % 2 else reversed(sides))}
            taken.append([both[False], both[True]])
    return seconds


def answers(names, work, nearmiss, is_twin):
    for name in names:
        begun = time.monotonic()
        tunables = [f"GLIBC_TUNABLES={TUNABLES[name]}"] if is_twin and name in TUNABLES else []
        runs = f"{work}/runs/{name}{'-twin' if is_twin else ''}"
        words = [nearmiss, "diagnose", "--json", "--runs", runs, "--", *(["env"] if tunables else []), *tunables,
                 *command(name, work, is_twin)]
        done = subprocess.run(words, capture_output=True, text=True)
        answer = json.loads(done.stdout) if done.returncode == 0 else {"findings": [], "error": done.stderr[-400:]}
        yield name, {**answer, "seconds": time.monotonic() - begun}


def row(name, taken, answer):
    """A line of the table; whether the fault is found, and whether its gain is near the measured one."""
    found = [finding for finding in answer["findings"] if finding.get("prediction")]
    words = [f"{finding['remedy']} {finding['prediction']['gain']:.0%}" for finding in found]
    if remedy(name) == "healthy":
        return f"{name:18} {'':37} {', '.join(words) or 'no finding'}  ({answer['seconds']:.0f} s)", not found, True
    low, measured, high = statistics.quantiles([1 - twin / faulty for faulty, twin in taken], n=4)
    its = max((finding["prediction"] for finding in found if finding["remedy"] == remedy(name)),
              key=lambda prediction: prediction["gain"], default=None)
    gain = its["gain"] if its else 0.0
    ends = f"({its['low']:.0%} to {its['high']:.0%})" if its else ""
    others = ", ".join(word for word in words if not word.startswith(remedy(name)))
    both = f"saves {measured:4.0%} [{low:4.0%}, {high:4.0%}]  predicted {gain:4.0%} {ends:16} {gain - measured:+5.0%}"
    return (f"{name:18} {both}{'  late' if name in LATE else ''}{'  and ' + others if others else ''}  ({answer['seconds']:.0f} s)",
            its is not None, abs(gain - measured) <= NEAR)


def twin_row(name, answer):
    """A line of the twins' table, and whether the remedied fault is none any more."""
    words = [f"{finding['remedy']} {finding['prediction']['gain']:.0%}"
             for finding in answer["findings"] if finding.get("prediction")]
    its = [word for word in words if word.startswith(remedy(name))]
    others = [word for word in words if word not in its]
    return f"{name:18} its fault: {', '.join(its) or 'none':12} others: {', '.join(others) or 'none'}", not its


def twins_table(answers):
    print(f"their twins under `diagnose`, {cpu()}, {time.strftime('%Y-%m-%d')}")
    rows = [twin_row(name, answer) for name, answer in answers.items()]
    print("\n".join(line for line, _ in rows))
    print(f"twins without a finding of what was planted: {sum(of[1] for of in rows)} of {len(rows)}")


def table(seconds, found):
    print(f"planted faults under `diagnose`, {cpu()}, {time.strftime('%Y-%m-%d')}; "
          f"{max(map(len, seconds.values()))} pairs")
    rows = {name: row(name, seconds.get(name), answer) for name, answer in found.items()}
    faulty = [rows[name] for name in rows if remedy(name) != "healthy"]
    healthy = [rows[name] for name in rows if remedy(name) == "healthy"]
    print("\n".join(line for line, _, _ in rows.values()))
    late = [rows[name] for name in rows if name in LATE]
    print(f"found: {sum(of[1] for of in faulty)} of {len(faulty)}, "
          f"of these {sum(of[1] for of in late)} of {len(late)} behind a set-up; within 15 points {sum(of[2] for of in faulty)} of {len(faulty)}; healthy programs without a finding: "
          f"{sum(of[1] for of in healthy)} of {len(healthy)}")


def kept(path, made):
    """Keeps what was made of some programs beside what was made of the others."""
    before = json.load(open(path)) if os.path.exists(path) else {}
    with open(path, "w") as file:
        json.dump(dict(sorted({**before, **made}.items())), file, indent=1)


def main():
    given = options()
    parts = given.parts or ["build", "times", "answers", "table"]
    os.makedirs(given.work, exist_ok=True)
    every = sorted(os.path.splitext(file)[0] for file in os.listdir(f"{HERE}/programs"))
    names = [name for name in every if fnmatch.fnmatch(name, given.only)]
    if "build" in parts:
        build(names, given.work)
    if "times" in parts:
        kept(f"{given.work}/times.json", times(names, given.work, given.pairs))
    if "answers" in parts:
        kept(f"{given.work}/answers.json", dict(answers(names, given.work, given.nearmiss, False)))
    if "twins" in parts:
        faulty = [name for name in names if remedy(name) != "healthy"]
        kept(f"{given.work}/twins.json", dict(answers(faulty, given.work, given.nearmiss, True)))
    if "table" in parts:
        read = [json.load(open(f"{given.work}/{file}.json")) for file in ("times", "answers")]
        table(*read)
        if os.path.exists(f"{given.work}/twins.json"):
            twins_table(json.load(open(f"{given.work}/twins.json")))


main()
