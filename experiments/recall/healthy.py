#!/usr/bin/env python3
"""Findings of `nearmiss diagnose` on healthy commands: each is a false finding.

Run from anywhere after `make build`: experiments/recall/healthy.py [--only GLOB]
Ends with status 1 if a command has a finding or fails, or if fewer than 30 commands could be run.
"""

import glob, os, random, shutil, subprocess, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from judging import HERE, Judge, kind, options, program_of

ENOUGH = 30
OWN = {
    "blocked-matmul": ["1"],
    "random-hash": ["400"],
    "random-chase-L1": ["800", "32"],
    "random-chase-L2": ["800", "1024"],
    "random-chase-memory": ["400", "16384"],
    "streams-3": ["3", "3"],
    "streams-6": ["3", "6"],
    "padded-pool-2": ["600", "2"],
    "padded-pool-4": ["600", "4"],
    "mergesort": ["100"],
    "search-tree": ["150"],
    "shared-readers": ["500"],
    "partitions": ["900"],
    "scratch-kept": ["300", "1024", "3"],
    "scratch-mapped": ["7", "1024", "220", "256"],
    "transforms": ["8000"],
}
SQL = ("create table t(a, b); with recursive c(n) as (select 1 union all select n+1 from c where n<8000) insert into t "
       "select n*7919%8011, n from c; create index i on t(a); select sum(x.a*y.b) from t x join t y on x.a=y.b;")
GROUPS = """
groups = {}
for i in range(60000):
    groups.setdefault(hash(str(i * 7919 % 10007)), []).append(i)
print(len(groups), sum(map(len, groups.values())))
"""
SYSTEM = {
    "sort": ["sort", "-o", "sorted", "words"],
    "sort-numbers": ["sort", "-n", "--parallel=2", "-o", "sorted", "numbers"],
    "gzip": ["gzip", "-k", "text"],
    "gunzip": ["gzip", "-dkc", "packed.gz"],
    "bzip2": ["bzip2", "-k", "words"],
    "xz": ["xz", "-k", "-1", "words"],
    "zstd": ["zstd", "-q", "text"],
    "sha256sum": ["sha256sum", "text"],
    "md5sum": ["md5sum", "text"],
    "cksum": ["cksum", "text"],
    "grep": ["grep", "-c", "a.*f.*3", "text"],
    "awk": ["awk", "{ n[substr($1, 1, 3)]++ } END { for (k in n) s += n[k] * length(k); print s }", "words"],
    "sed": ["sed", "-n", "s/a\\(.\\)/\\1b/gp", "words"],
    "find": ["find", "tree", "-name", "*7*", "-size", "+0"],
    "tar": ["tar", "cf", "tree.tar", "tree"],
    "git-log": ["git", "-C", "tree", "log", "--stat", "--oneline"],
    "git-status": ["git", "-C", "tree", "status", "--short"],
    "python3-dict": ["/usr/bin/python3", "-c", GROUPS],
    "python3-json": ["/usr/bin/python3", "-c", "import json; print(len(json.dumps(json.load(open('data.json')))))"],
    "perl": ["perl", "-ne", "$n{lc substr($_, 0, 4)}++; END { print scalar(keys %n), qq(\n) }", "words"],
    "sqlite3": ["sqlite3", ":memory:", SQL],
    "bc": ["bc", "-q", "sums.bc"],
    "gcc": ["gcc", "-O1", "-c", "source.c"],
    "make": ["make", "-n", "-f", "rules.mk"],
    "openssl": ["openssl", "enc", "-aes-256-cbc", "-pbkdf2", "-k", "x", "-in", "text", "-out", "sealed"],
    "diff": ["diff", "text", "same"],
    "cut": ["cut", "-c", "2-5", "words"],
    "wc": ["wc", "text"],
    "dd": ["dd", "if=text", "of=copy", "bs=4k"],
    "factor": ["factor", "1000000007000000049", "600851475143000003", "1000000016000000063"],
    "jq": ["jq", "-c", "map(.a) | add", "data.json"],
    "shuf": ["shuf", "--random-source=text", "-o", "shuffled", "words"],
}


def prepare(folder):
    """The files that the commands read: the same in every run."""
    dice = random.Random(1)
    words = [f"{dice.getrandbits(32):08x}" for _ in range(20000)]
    inputs = {
        "words": "\n".join(words) + "\n",
        "numbers": "\n".join(str(dice.getrandbits(40)) for _ in range(40000)) + "\n",
        "text": "\n".join(" ".join(dice.choices(words[:999], k=10)) for _ in range(12000)) + "\n",
        "data.json": str([{"a": n, "b": words[n]} for n in range(5000)]).replace("'", '"'),
        "sums.bc": "scale=600\n4*a(1)\n",
        "source.c": "#include <stdio.h>\n#include <stdlib.h>\n" + "".join(
            f"int f{n}(int x) {{ for (int i = 0; i < x; i++) x += i * {n} ^ x >> 3; return x ? x : {n}; }}\n"
            for n in range(60)),
        "rules.mk": "all: " + " ".join(f"o{n}" for n in range(900)) + "\n" + "".join(
            f"o{n}: words\n\techo $(subst o,x,o{n})\n" for n in range(900)),
    }
    inputs["same"] = inputs["text"]
    for name, content in inputs.items():
        with open(f"{folder}/{name}", "w") as file:
            file.write(content)
    with open(f"{folder}/packed.gz", "wb") as packed:
        subprocess.run(["gzip", "-c", f"{folder}/text"], stdout=packed, check=True)
    plant_tree(f"{folder}/tree", words)


def plant_tree(tree, words):
    """A small history of files."""
    git = ["git", "-C", tree, "-c", "user.name=n", "-c", "user.email=n@localhost", "-c", "commit.gpgsign=false"]
    os.makedirs(tree)
    subprocess.run(["git", "init", "-q", tree], check=True)
    for commit in range(6):
        for n in range(10):
            os.makedirs(f"{tree}/{n}", exist_ok=True)
            with open(f"{tree}/{n}/{commit}", "w") as file:
                file.write("\n".join(words[commit * 10 + n:][:100]))
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "-m", f"Change {commit}"], check=True)


def own_commands(judge):
    """The healthy programs of this folder: NAME or NAME-SHAPE, as in OWN."""
    built = {}
    for name, words in OWN.items():
        if judge.wanted(name) or judge.chosen.build_only:
            program = max((p for p in map(program_of, glob.glob(f"{HERE}/healthy/*.c")) if name.startswith(p)), key=len)
            built.setdefault(program, judge.build(f"{HERE}/healthy/{program}.c", program))
            subprocess.run([built[program], *words], stdout=subprocess.DEVNULL, check=True)
            yield name, [built[program], *words]


def main():
    judge = Judge(options(__doc__).parse_args())
    commands = dict(own_commands(judge))
    if judge.chosen.build_only:
        return 0
    for name, words in SYSTEM.items():
        if judge.wanted(name):
            if shutil.which(words[0]):
                commands[name] = words
            else:
                judge.log(f"{name:20} skipped: no {words[0]} here")
    files = f"{judge.place.name}/files"
    os.makedirs(files)
    prepare(files)
    judge.record["commands"] = []
    for name, result in judge.each(lambda item: (item[0], judge.diagnose(item[1], files)), commands.items()):
        wrong = result["findings"] or []
        judge.record["commands"].append({"name": name, **result})
        verdict = f"FAILED: {result['failed']}" if result["failed"] else "FALSE FINDING" if wrong else "nothing found"
        judge.log("\n".join([f"{name:20} {result['seconds']:5.0f} s  {verdict}"]
                            + [f"    ({kind(finding)}) {finding['symptom']}" for finding in wrong]))
    done = judge.record["commands"]
    false, failed = sum(bool(c["findings"]) for c in done), sum(bool(c["failed"]) for c in done)
    judge.log(f"commands with a false finding: {false} of {len(done) - failed}; failed: {failed}")
    return judge.end(false + failed == 0 and (len(done) >= ENOUGH or judge.chosen.only != "*"))


if __name__ == "__main__":
    sys.exit(main())
