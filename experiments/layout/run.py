#!/usr/bin/env python3
"""Programs with structures that waste cache lines, and programs without, under `diagnose`.

    experiments/layout/run.py [--only GLOB] [--pairs 7] [--within 60s]

Each program has a twin (-DFIXED) in which its author placed the fields otherwise. Neither is vectorised, and loops
begin at a line of the code: vectors that the compiler finds in one of the two alone, or a loop across two lines of the
cache of operations, save and cost what no order of fields does. A gain is the share of the command's CPU time (user and
system) that is saved: predicted by the finding of `layout` of `nearmiss diagnose`, for the whole run where that is
known, and measured between program and twin, medians of interleaved pairs with quartiles. The twin is one change, the
finding may propose another: in round brackets is what the finding predicts for a change of the twin's kind, and how
many points off that is. Twins and the other programs should have no finding of `layout`, except where the proposal was
built as well (-DPROPOSED), saves what the finding predicts, and has no finding any more.
The environment's NEARMISS names another binary than target/release/nearmiss.
"""

import argparse, fnmatch, glob, os, re, statistics, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.dirname(HERE))
from traced import call, cpu, cpu_s  # noqa: E402

# Programs that gain, and the kind of change that the twin is.
GAIN = {"session-walk": "split", "sensor-scan": "split", "trie-straddle": "split", "particles": "columns", "hash-probe": "split",
        "bst-payload": "order", "agents": "order", "entities": "columns", "orders": "order", "routers": "order", "hot-first": "split",
        "graphwalk": "split", "lrucache": "split"}
DO_NOT = ["quote-honest", "quads-random", "small-table", "ledger-seq"]
NEAR = 0.15
ALIKE = ["-fno-tree-vectorize", "-falign-loops=64"]


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nearmiss", default=os.environ.get("NEARMISS", f"{ROOT}/target/release/nearmiss"))
    parser.add_argument("--only", metavar="GLOB", default="*")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--within", metavar="TIME", default="60s")
    return parser.parse_args()


def built(name, place):
    """The commands of a program, of its twin, and with what a finding proposes if the source has that too."""
    source = glob.glob(f"{HERE}/{name}.c*")[0]
    text = open(source).read()
    sides = [("", []), *((f"-{side.lower()}", [f"-D{side}"]) for side in ("FIXED", "PROPOSED") if side in text)]
    for side, flags in sides:
        compiler = "g++" if source.endswith(".cc") else "gcc"
        subprocess.run([compiler, "-O2", *ALIKE, "-g", *flags, "-o", f"{place}/{name}{side}", source], check=True)
    return [[f"{place}/{name}{side}"] for side, _ in sides]


def measured(plain, twin, pairs):
    """The median of the pairs' savings, and their quartiles."""
    saved = []
    for pair in range(pairs):
        sides = {side: cpu_s(plain if side else twin) for side in ((0, 1) if pair % 2 else (1, 0))}
        saved.append(1 - sides[0] / sides[1])
    low, middle, high = statistics.quantiles(saved, n=4)
    return {"gain": middle, "low": low, "high": high}


def ranged(saved):
    return f"{saved['gain']:4.0%} [{saved['low']:.0%}, {saved['high']:.0%}]"


def found(command, chosen, place):
    """The finding of `layout` with its prediction, for the whole run where that is known; None without one."""
    findings = call(chosen.nearmiss, place, "diagnose", "--json", "--within", chosen.within, "--", *command)["findings"]
    of_layout = [finding for finding in findings if finding["remedy"] == "layout"]
    if not of_layout:
        return None
    prediction = of_layout[0]["prediction"]
    lines = {line["label"]: line["text"] for line in of_layout[0]["evidence"]["lines"]}
    kinds = {kind: float(share) / 100 for kind, share in re.findall(r"(\w+) (-?[\d.]+)%", lines["Changes"])}
    return {**of_layout[0], "model": {**prediction, **(prediction.get("of_whole_run") or {})}, "kinds": kinds}


def judge(name, commands, chosen, place):
    """Prints the program's line; whether `layout` is found, whether its prediction is near, and whether the twin has none."""
    finding = found(commands[0], chosen, place)
    saved = measured(*commands[:2], chosen.pairs) if commands[1:] else {"gain": 0.0, "low": 0.0, "high": 0.0}
    alike = finding["kinds"].get(GAIN.get(name), finding["model"]["gain"]) if finding else 0.0
    off = max(alike, 0.0) - max(saved["gain"], 0.0)
    of_twin = found(commands[1], chosen, place) if name in GAIN else None
    what = f"{ranged(finding['model'])}: {finding['treatment']}" if finding else "no finding"
    twin = f"; twin: {ranged(of_twin['model'])}: {of_twin['treatment']}" if of_twin else ""
    healthy = of_twin is None
    if commands[2:]:
        of_plain, left = (measured(command, commands[2], chosen.pairs) for command in commands[:2])
        twin += f"; as proposed measured {ranged(of_plain)}, of the twin {ranged(left)}"
        of_proposed = found(commands[2], chosen, place)
        twin += f", then {ranged(of_proposed['model']) if of_proposed else 'no finding'}"
        is_right = left["gain"] > 0 and abs(of_twin["model"]["gain"] - left["gain"]) <= NEAR if of_twin else True
        healthy = is_right and of_proposed is None
    print(f"{name:13} measured {ranged(saved) if commands[1:] else 'no twin':17} ({GAIN.get(name, 'none')} {alike:.0%}, {off * 100:+.0f}) predicted {what}{twin}", flush=True)
    return finding is not None, abs(off) <= NEAR, healthy


def main():
    chosen = options()
    names = [name for name in [*GAIN, *DO_NOT] if fnmatch.fnmatch(name, chosen.only)]
    print(f"# experiments/layout/run.py --pairs {chosen.pairs}, {time.strftime('%F %H:%M')}, {cpu()},"
          f" load {os.getloadavg()[0]:.1f}{' (busy)' if os.getloadavg()[0] > 0.5 else ''}")
    with tempfile.TemporaryDirectory() as place:
        judged = {name: judge(name, built(name, place), chosen, place) for name in names}
    sick, others = ([judged[name] for name in names if (name in GAIN) == gains] for gains in (True, False))
    print(f"found {sum(found for found, _, _ in sick)} of {len(sick)}, within {NEAR * 100:.0f} points"
          f" {sum(found and near for found, near, _ in sick)} of {len(sick)}; false in {sum(found for found, _, _ in others)} of {len(others)}"
          f" others, in {sum(not none for _, _, none in sick)} of {len(sick)} twins")


if __name__ == "__main__":
    main()
