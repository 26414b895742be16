#!/usr/bin/env python3
"""Which planted faults does `nearmiss diagnose` find, with default options, and what does it find on their twins?

Run from anywhere after `make build`: experiments/recall/run.py [--only GLOB] [--half first] [--gain]
Ends with status 1 if under 95% of the faults are found, if a twin has a finding, or if a run failed.
"""

import glob, os, re, statistics, subprocess, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from judging import HERE, Judge, kind, names, options, program_of, rows, table, text_of_finding

ENOUGH = 0.95
CASE_KEYS = {"shape", "pieces", "traced", "measured", "names", "reach"}
KEYS = CASE_KEYS | {"kind", "half", "split", "case"}
SPLIT = re.compile(r"alignas|align|\bpad|lines? of (its|their|his) own|\bapart\b|separate lines|another line", re.I)
COPIES = re.compile(r"\b(per|each|every)[- ](thread|cpu|task|worker)|\bcop(y|ies)\b|\blocal\b", re.I)
DENIED = re.compile(r"\bnot?\b|\bnothing\b|\bnever\b|\bcannot\b|n't\b|instead of|rather than|worse", re.I)
PIECES = re.compile(r"([\d,]+) (?:\w+ )?(?:piece|block|mapping|array|row|stack|object|part|slot|buffer|variable)s?\b")


def ways():
    """Ways of the first-level data cache of this machine."""
    return int(open("/sys/devices/system/cpu/cpu0/cache/index0/ways_of_associativity").read())


def number(value):
    return ways() + 1 if value == "ways+1" else value


def cases(source):
    """The faults of a source file: the table in its head, once for each case."""
    head = table(source)
    for case in head.get("case", [{}]):
        fault = {"half": "first", "split": True, "shape": [], "pieces": None, **head, **case}
        wrong = (set(head) - KEYS) | (set(case) - CASE_KEYS)
        missing = {"kind", "names", "reach", "traced", "measured"} - set(fault)
        if wrong or missing:
            sys.exit(f"{source}: the table in its head has keys too many {sorted(wrong)} or too few {sorted(missing)}")
        fault["pieces"] = number(fault["pieces"])
        fault["shape"] = [str(number(value)) for value in fault["shape"]]
        program = program_of(source)
        fault |= {"source": source, "program": program, "name": "-".join([program, *fault["shape"]])}
        yield fault


def run_natively(binary, fault, size):
    words = [binary, str(fault[size]), *fault["shape"]]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    printed = re.fullmatch(r"digest=(\w+) ns=(\d+)\n", done.stdout)
    if done.returncode != 0 or not printed:
        sys.exit(f"{' '.join(words)}: status {done.returncode}: {done.stdout}{done.stderr}")
    return printed[1], int(printed[2])


def build(judge, faults):
    """Builds each program and its twin, and holds that both do the same work."""
    built = {}
    for fault in faults:
        program = fault["program"]
        if program not in built:
            built[program] = (judge.build(fault["source"], program),
                              judge.build(fault["source"], program + "-twin", "-DTWIN"))
        fault["fault"], fault["twin"] = built[program]
        digests = {run_natively(binary, fault, "traced")[0] for binary in built[program]}
        if len(digests) != 1:
            sys.exit(f"{fault['name']}: the program and its twin print unlike digests, so they do unlike work")


def advice_right(fault, finding):
    """False sharing is to be split. True sharing is not, but each thread may get a copy of its own."""
    inside = finding["reach"]["inside"] if isinstance(finding["reach"], dict) else {}
    sentences = re.split(r"(?<=[.;:])\s", f"{finding['treatment']}. {inside.get('change', '')}")
    splitting = [sentence for sentence in sentences if SPLIT.search(sentence)]
    if fault["split"]:
        return bool(finding["apply"] or splitting)
    return not finding["apply"] and all(DENIED.search(s) or COPIES.search(s) for s in splitting)


def pieces_counted(finding):
    """How many pieces the symptom names; else how many objects the evidence lists."""
    spoken = PIECES.search(finding["symptom"])
    if spoken:
        return int(spoken[1].replace(",", ""))
    return sum(cell["count"] for row in rows(finding, "objects") for cell in row if isinstance(cell, dict)
               and "count" in cell) or None


def judge_finding(fault, finding):
    right_kind = kind(finding) == fault["kind"]
    reach = "outside" if finding["reach"] == "outside" else "inside"
    return {
        "kind": kind(finding),
        "found": right_kind and names(text_of_finding(finding), fault["names"]),
        "reach_right": reach == fault["reach"],
        "advice_right": fault["kind"] != "sharing" or advice_right(fault, finding),
        "pieces": pieces_counted(finding) if right_kind else None,
        "symptom": finding["symptom"],
        "prediction": {key: finding["prediction"][key] for key in ("gain", "low", "high", "function")},
    }


def judge_fault(judge, fault):
    """Traces and judges the program and its twin; with --gain, times both."""
    result = {key: fault[key] for key in ("name", "program", "kind", "split", "reach")}
    result["pieces_planted"] = fault["pieces"]
    words = [str(fault["traced"]), *fault["shape"]]
    run, twin = judge.diagnose([fault["fault"], *words]), judge.diagnose([fault["twin"], *words])
    judged = [judge_finding(fault, finding) for finding in run["findings"] or []]
    of_fault = sorted((j for j in judged if j["found"]), key=lambda j: (j["advice_right"], j["reach_right"]))
    result |= {
        "found": bool(of_fault),
        "finding": of_fault[-1] if of_fault else None,
        "others": [j for j in judged if not j["found"]],
        "twin_findings": [f["symptom"] for f in twin["findings"] or []],
        "failed": run["failed"] or twin["failed"],
        "seconds": run["seconds"] + twin["seconds"],
    }
    if judge.chosen.gain:
        result["measured"] = measure(fault, judge.chosen.pairs)
    return result


def measure(fault, pairs):
    """The share of the loop's time that the twin saves: interleaved runs, the median of the pairs."""
    gains = []
    for pair in range(pairs):
        sides = ["fault", "twin"] if pair % 2 else ["twin", "fault"]
        ns = {side: run_natively(fault[side], fault, "measured")[1] for side in sides}
        gains.append(1 - ns["twin"] / ns["fault"])
    quarters = statistics.quantiles(gains, n=4)
    return {"gain": statistics.median(gains), "low": quarters[0], "high": quarters[2], "pairs": pairs}


def text_of(result):
    if result["failed"]:
        return [f"{result['name']:18} FAILED   {result['failed']}"]
    finding, notes = result["finding"], []
    if finding and result["pieces_planted"] and finding["pieces"] != result["pieces_planted"]:
        notes.append(f"{finding['pieces']} pieces named, {result['pieces_planted']} planted")
    if finding and not finding["reach_right"]:
        notes.append(f"the remedy is from {result['reach']}")
    if finding and not finding["advice_right"]:
        notes.append("advised to split" if not result["split"] else "not advised to split")
    verdict = "found" if finding else "MISSED"
    lines = [f"{result['name']:18} {verdict:8} {result['seconds']:5.0f} s  {'; '.join(notes)}".rstrip()]
    lines += [f"    {finding['symptom']}"] if finding else []
    lines += [f"    other finding ({other['kind']}): {other['symptom']}" for other in result["others"]]
    lines += [f"    FALSE FINDING on the twin: {symptom}" for symptom in result["twin_findings"]]
    return lines + (text_of_gain(result) if "measured" in result else [])


def text_of_gain(result):
    measured, predicted = result["measured"], "nothing predicted"
    if result["finding"]:
        whole = result["finding"]["prediction"]
        function = whole["function"]
        predicted = f"predicted {whole['gain']:.0%} [{whole['low']:.0%}, {whole['high']:.0%}] of the command"
        if function:
            predicted += f", {function['gain']:.0%} to {function['dependent_gain']:.0%} of `{function['name']}`"
    return [f"    measured {measured['gain']:.0%} [{measured['low']:.0%}, {measured['high']:.0%}] of the loop's time, "
            f"{measured['pairs']} pairs; {predicted}"]


def summary(results):
    def of(part, whole):
        return f"{part} of {whole}" + (f" ({part / whole:.0%})" if whole else "")

    found = [result for result in results if result["found"]]
    lines = [f"recall: {of(len(found), len(results))} faults found"]
    for what, is_one in {
        "crowds": lambda s: s["kind"] == "crowd",
        "false sharing": lambda s: s["kind"] == "sharing" and s["split"],
        "true sharing": lambda s: s["kind"] == "sharing" and not s["split"],
        "large pages": lambda s: s["kind"] == "huge",
        "kept memory": lambda s: s["kind"] == "keep",
        "layout": lambda s: s["kind"] == "layout",
    }.items():
        lines.append(f"  {what}: {of(sum(map(is_one, found)), sum(map(is_one, results)))}")
    programs = {result["program"] for result in results}
    whole = programs - {result["program"] for result in results if not result["found"]}
    lines.append(f"  programs found in every shape: {of(len(whole), len(programs))}")
    counted = [result for result in found if result["pieces_planted"]]
    right = sum(result["finding"]["pieces"] == result["pieces_planted"] for result in counted)
    lines.append(f"pieces counted right: {of(right, len(counted))}")
    lines.append(f"remedy from the right side: {of(sum(s['finding']['reach_right'] for s in found), len(found))}")
    sharing = [result for result in found if result["kind"] == "sharing"]
    advised = sum(s["finding"]["advice_right"] for s in sharing)
    lines.append(f"right advice about splitting: {of(advised, len(sharing))}")
    lines.append(f"twins with a finding: {of(sum(bool(s['twin_findings']) for s in results), len(results))}")
    lines.append(f"failed: {sum(bool(s['failed']) for s in results)}")
    return lines


def main():
    parser = options(__doc__)
    parser.add_argument("--half", choices=["first", "second", "third"],
                        help="written before or after the freeze, or for large pages, kept memory and layout")
    parser.add_argument("--gain", action="store_true", help="time each program beside its twin, too")
    parser.add_argument("--pairs", type=int, default=9, help="of runs for --gain")
    judge = Judge(parser.parse_args())
    sources = sorted(glob.glob(f"{HERE}/faults/*.c") + glob.glob(f"{HERE}/faults/*.cpp"))
    faults = [fault for source in sources for fault in cases(source)]
    faults = [f for f in faults if judge.wanted(f["name"]) and judge.chosen.half in (None, f["half"])]
    build(judge, faults)
    judge.log(f"built {len({f['program'] for f in faults})} programs with {len(faults)} faults, and their twins")
    if judge.chosen.build_only:
        return 0
    if not faults:
        sys.exit("no fault has such a name")
    results = []
    for result in judge.each(lambda fault: judge_fault(judge, fault), faults):
        results.append(result)
        judge.log("\n".join(text_of(result)))
    lines = summary(results)
    judge.log("\n".join(lines))
    judge.record |= {"faults": results, "summary": lines}
    found = sum(result["found"] for result in results)
    return judge.end(found >= ENOUGH * len(results) and not any(s["failed"] or s["twin_findings"] for s in results))


if __name__ == "__main__":
    sys.exit(main())
