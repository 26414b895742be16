#!/usr/bin/env python3
"""Does the one sentence of a report name the function or the object that was planted? Whole machine, default options.

Run from anywhere after `make build`: experiments/recall/headline.py [--only GLOB]
Ends with status 1 if the sentence of more than one program does not, or if a run failed.
"""

import glob, json, os, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from judging import COMPILERS, HERE, Judge, names, options, program_of, table

MOST_WRONG = 1
PYTHON = "/usr/bin/python3"


def command_of(judge, source):
    if os.path.splitext(source)[1] in COMPILERS:
        command = [judge.build(source, program_of(source))]
    else:
        command = [PYTHON, source]
    return [*command, str(table(source)["size"])]


def judge_headline(judge, source, command):
    """Traces the command, and reads the sentence of its report."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(dir=judge.place.name) as folder:
        _, failed = judge.call(folder, "trace", "-q", "--", *command)
        out, failed = (None, failed) if failed else judge.call(folder, "report", "--json")
    sentence = json.loads(out)["sentence"]["text"] if out else None
    return {
        "name": program_of(source),
        "wanted": table(source)["names"],
        "sentence": sentence,
        "right": bool(sentence) and names(sentence, table(source)["names"]),
        "failed": failed,
        "seconds": round(time.monotonic() - begun, 1),
    }


def main():
    judge = Judge(options(__doc__).parse_args())
    sources = [s for s in sorted(glob.glob(f"{HERE}/headline/*.*")) if judge.wanted(program_of(s))]
    commands = {source: command_of(judge, source) for source in sources}
    for command in commands.values():
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    if judge.chosen.build_only:
        return 0
    judge.record["headlines"] = []
    for result in judge.each(lambda item: judge_headline(judge, *item), commands.items()):
        judge.record["headlines"].append(result)
        verdict = "FAILED" if result["failed"] else "right" if result["right"] else "WRONG"
        judge.log(f"{result['name']:16} {verdict:7} {result['seconds']:4.0f} s  wanted {' or '.join(result['wanted'])}\n"
                  f"    {result['failed'] or result['sentence']}")
    right = sum(result["right"] for result in judge.record["headlines"])
    judge.log(f"headlines that name what was planted: {right} of {len(sources)}")
    return judge.end(right + MOST_WRONG >= len(sources) and not any(s["failed"] for s in judge.record["headlines"]))


if __name__ == "__main__":
    sys.exit(main())
