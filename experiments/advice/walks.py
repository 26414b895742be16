#!/usr/bin/env python3
"""Holds advice and findings on chains of misses, loops over columns, stores past the caches and data larger than a cache to
programs that have the fault, to their twins, and to others.

Usage: experiments/advice/walks.py [NAME ...]    (an hour; kept: A to C in walks.txt, D in around.txt, F in reach.txt)

walks/list.tsv names the programs: A has chains of misses, B loops over columns, D stores past the caches that are read at
once, F one object that is larger than a cache (some others have that too, uncounted), C none of these; the twins of each do
the same work without the fault. For each: the advice of `nearmiss diagnose` on host (modelled), whether it names the function
or the object's file, and the CPU time (measured, the least of five runs). Status 1 if an advice is missing or wrong.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from traced import NEARMISS, cpu, cpu_s  # noqa: E402

RUNS = 5
WINDOW = "60Minsn"
# Words of the advice, or of the finding's symptom, of each kind.
KINDS = {"A": "the load before returned", "B": "the inner loop steps by", "D": "wrote past the caches and that are read soon",
         "F": "No placement makes it fit"}
COMPILERS = {".c": ["cc", "-O2", "-g"], ".cc": ["c++", "-O2", "-g"], ".cpp": ["c++", "-O2", "-g"], ".rs": ["rustc", "-O", "-g"]}


def built(name, place):
    source = next(path for path in (HERE / "walks").glob(f"{name}.*") if path.suffix in COMPILERS)
    program = f"{place}/{name}"
    subprocess.run([*COMPILERS[source.suffix], "-o", program, source, *(["-lm"] if source.suffix != ".rs" else [])], check=True)
    return program


def advice(program, function):
    """Paragraphs of advice and symptoms of findings, by kind. Recorded from the function on, where the compiler kept it: half a second is long."""
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    kept = re.search(rf" [tT] (\S*{function}\S*)$", symbols, re.M)
    window = ["--from", f"symbol:{kept[1]}", "--for", WINDOW] if kept else []
    words = [NEARMISS, "diagnose", "--within", "0", *window, "--json", "--", program]
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stderr
    found = {}
    answer = json.loads(done.stdout)
    for paragraph in answer.get("advice", []) + [finding["symptom"] for finding in answer["findings"]]:
        found.update({kind: paragraph for kind, words in KINDS.items() if words in paragraph})
    return found


def main():
    print(f"experiments/advice/walks.py, {time.strftime('%F')}, {cpu()}, load {os.getloadavg()[0]:.1f}")
    rows = [line.split("\t") for line in (HERE / "walks/list.tsv").read_text().splitlines()]
    rows = [row for row in rows if not sys.argv[1:] or row[0] in sys.argv[1:]]
    wrong = 0
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        for name, kind, function in rows:
            program = built(name, place)
            found = advice(program, function)
            if not kind.startswith("F"):
                found.pop("F", None)
            good = list(found) == ([kind] if kind in KINDS else [])
            text = found.get(kind, "")
            share, named = text.split(" ")[0], "names it" if function in text or f"`{name}." in text else text[:80]
            wrong += not good
            seconds = min(cpu_s([program]) for _ in range(RUNS))
            print(f"{name:24} {kind:7} advice {','.join(found) or 'none':5} {share:5} {named:10} {seconds:6.3f} s  "
                  f"{'right' if good else 'WRONG'}", flush=True)
    print(f"{wrong} of {len(rows)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
