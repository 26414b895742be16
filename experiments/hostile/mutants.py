#!/usr/bin/env python3
"""nearmiss on damaged and hostile files: it reads them or refuses them in one line.

Run from anywhere after `make build`: experiments/hostile/mutants.py [--mutants 3000] [--only 'trace/*']
Makes one small run of each verb that keeps files, damages every kept file at random, and lets nearmiss read what came
of it. Ends with status 1 if a mutant makes nearmiss panic, hang, grow, print anything but one line, or end with a status
other than 0 (read) and 2 (refused).
"""

import argparse, fnmatch, glob, json, os, random, resource, shutil, signal, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TIME_LIMIT_S = 60
# Over what the undamaged file takes.
GROWTH = 2
ROOM_MIB = 64
# Tables for other programs, which no verb reads; the tests of crates/record damage these.
NOT_READ = ("io.parquet", "locks.parquet", "polls.parquet", "samples.parquet", "sched.parquet", ".out", ".err")
NUMBERS = [b"-1", b"0", b"1e308", b"18446744073709551615", b"99999999999999999999", b"null", b"[]", b"{}", b'"\x1b[2J"', b'""']


def surroundings(place):
    """Keeps in the place what nearmiss remembers of this machine, too."""
    return {**os.environ, "XDG_CACHE_HOME": f"{place}/cache"}


def make_runs(nearmiss, place):
    """One run of each kind: its folder, by name."""
    def call(*words):
        done = subprocess.run([nearmiss, *words], cwd=place, env=surroundings(place), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"nearmiss {' '.join(words)}: status {done.returncode}: {done.stderr}")

    remembered = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    os.makedirs(f"{place}/cache/nearmiss")
    os.symlink(f"{remembered}/nearmiss/kernel", f"{place}/cache/nearmiss/kernel")
    program = f"{place}/walk"
    subprocess.run(["gcc", "-O1", "-g", "-x", "c", "-o", program, "-"], input=WALK, text=True, check=True)
    call("trace", "-q", "--only", "user", "--memory", "1GiB", "-m", "xeon-icelake-sp", "--runs", "trace", "--", program)
    call("diagnose", "--runs", "trace")
    call("observe", "--log", "--runs", "observe", "--", "sh", "-c", "sleep 0.05; ls / > ls")
    call("verify", "commands", "--runs", "verify", "true", "sleep 0.002")
    for name in ("trace", "observe", "verify"):
        (folder,) = glob.glob(f"{place}/{name}/*")
        os.rename(folder, f"{place}/{name}/run")
    shown = subprocess.run([nearmiss, "machine", "show", "xeon-icelake-sp"], capture_output=True)
    os.mkdir(f"{place}/machine")
    open(f"{place}/machine/own.toml", "wb").write(shown.stdout)
    call("machine", "host")


# Blocks that crowd: the trace has a finding, and diagnose replays it.
WALK = """
#include <stdlib.h>
int main(void) {
    volatile char *block[16];
    for (int i = 0; i < 16; i++) block[i] = malloc(140000);
    for (int round = 0; round < 3000; round++) for (int i = 0; i < 16; i++) block[i][0]++;
    return 0;
}
"""


def readers(kind, file):
    """The calls that read a file, as arguments."""
    run = f"{kind}/run"
    match kind:
        case "cache":
            return [["machine", "host"]]
        case "machine":
            return [["machine", "show", "machine/own.toml"]]
        case "verify":
            return [["report", run], ["report", run, "--json"], ["report", run, "--top", "3"]]
        case "observe":
            forms = [["--log"], ["--json"], ["--html=page.html"], ["--perfetto", "out"], ["--folded", "out"]]
            return [["report", run, *form] for form in forms] + [["report", "--compare", run, "observe/twin"]]
    if file.endswith(".nmt"):
        return [["report", run, "--validate"], ["diagnose", run], ["report", run, "-m", "zen4-genoa"],
                ["rehearse", "color", run]]
    if file.endswith("findings.json"):
        return [["verify", "color", "--against", run, "--time-limit", "1s", "--pairs", "8", "--runs", "verified", "--", "./walk"]]
    forms = [[], ["--json"], ["--html=page.html"], ["--callgrind", "out"], ["--folded", "out"], ["--code"]]
    return [["report", run, *form] for form in forms] + [["report", "--compare", run, "trace/twin"], ["diagnose", run]]


ODD = [None, True, -1, 0, 2**63, 2**64, 1e308, -0.5, "", "\x1b[2J", "a" * 100_000, [], {}, [[]], ["x"] * 1000]


def mutant(good, chance):
    """Damages a record: every other time a value is replaced by an odd one; else bytes are damaged."""
    if good.startswith(b"{") and chance.random() < 0.5:
        record = json.loads(good)
        # Without a seal a record is read as older versions wrote it.
        record.pop("checksum", None)
        for _ in range(chance.randint(1, 2)):
            replace_a_value(record, chance)
        return json.dumps(record).encode()
    return damaged(good, chance)


def replace_a_value(record, chance):
    """Replaces, removes or repeats one value, at any depth."""
    at = record
    while True:
        key = chance.choice(list(at) if isinstance(at, dict) else range(len(at)))
        deeper = isinstance(at[key], (dict, list)) and at[key]
        if not deeper or chance.random() < 0.1:
            break
        at = at[key]
    match chance.randrange(8):
        case 0 if isinstance(at, dict): at[f"{key}x"] = at.pop(key)
        case 1 if isinstance(at, list): at.extend([at[key]] * 100)
        case 2: del at[key]
        case _: at[key] = chance.choice(ODD)


def damaged(good, chance):
    """One to four changes of bytes."""
    bytes_ = bytearray(good)
    for _ in range(chance.randint(1, 4)):
        if not bytes_:
            break
        at = chance.randrange(len(bytes_))
        end = min(at + chance.randint(1, 40), len(bytes_))
        match chance.randrange(9):
            case 0: bytes_[at] = chance.randrange(256)
            case 1: bytes_[at] ^= 1 << chance.randrange(8)
            case 2: bytes_[at:end] = b"\xff" * (end - at)
            case 3: del bytes_[at:end]
            case 4: bytes_[at:at] = bytes_[at:end]
            case 5: del bytes_[at:]
            case 6: bytes_[at:end] = b"\0" * (end - at)
            case 7: bytes_[at:at] = b"[" * 100_000
            case _: number(bytes_, at, chance)
    return bytes(bytes_)


def number(bytes_, at, chance):
    """Replaces the next number of a text by an odd one."""
    while at < len(bytes_) and not chr(bytes_[at]).isdigit():
        at += 1
    end = at
    while end < len(bytes_) and chr(bytes_[end]).isdigit():
        end += 1
    bytes_[at:end] = chance.choice(NUMBERS)


class Call:
    """One call of nearmiss, and what it took."""

    def __init__(self, nearmiss, words, place):
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen([nearmiss, *words], cwd=place, env=surroundings(place), stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=err,
                                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (TIME_LIMIT_S, TIME_LIMIT_S)))
            _, status, used = os.wait4(process.pid, 0)
            self.status, self.mib = os.waitstatus_to_exitcode(status), used.ru_maxrss / 1024
            err.seek(0)
            out.seek(0)
            self.stderr, self.stdout = err.read().decode(errors="replace"), out.read()

    def wrong(self, usual_mib):
        """An action that nearmiss must not take; `None` if all is well."""
        if self.status in (-signal.SIGXCPU, -signal.SIGKILL):
            return f"took more than {TIME_LIMIT_S} s"
        if self.status not in (0, 2):
            return f"status {self.status}"
        lines = self.stderr.strip().splitlines()
        if self.status == 2 and len(lines) != 1:
            return f"{len(lines)} lines"
        if "panicked" in self.stderr or "\x1b" in self.stderr or b"\x1b[2J" in self.stdout:
            return "a panic, or an escape for the terminal"
        if self.mib > GROWTH * usual_mib + ROOM_MIB:
            return f"{self.mib:.0f} MiB, {usual_mib:.0f} for the undamaged file"
        return None


def files_of(place, only):
    """Kind and path of every file that a verb reads."""
    found = []
    kept = ["*/run/*", "machine/*", "cache/nearmiss/*.json"]
    for path in sorted(path for pattern in kept for path in glob.glob(f"{place}/{pattern}")):
        name = os.path.relpath(path, place)
        if not name.endswith(NOT_READ) and fnmatch.fnmatch(name.replace("/run/", "/"), only):
            found.append((name.split("/")[0], path))
    return found


def usual_mib(nearmiss, words, place, known):
    """The memory that a call takes on undamaged files, measured once."""
    if tuple(words) not in known:
        call = Call(nearmiss, words, place)
        if call.status != 0:
            sys.exit(f"nearmiss {' '.join(words)} on undamaged files: status {call.status}: {call.stderr}")
        known[tuple(words)] = call.mib
    return known[tuple(words)]


def try_file(chosen, place, kind, path, chance, known):
    """Mutants of one file, each read in one of the ways, in turn from a random one: counts of read, refused and wrong."""
    good, name = open(path, "rb").read(), os.path.relpath(path, place)
    if kind == "cache":
        # A damaged cache of measurements is measured again.
        os.remove(path)
    ways = readers(kind, name)
    first = chance.randrange(len(ways))
    # The cached measurements take two seconds to measure again.
    count = -(-chosen.each // 10) if kind == "cache" else chosen.each
    calls = [(words, usual_mib(chosen.nearmiss, words, place, known)) for words in (ways[first:] + ways[:first])[:count]]
    counts = {"read": 0, "refused": 0, "wrong": 0}
    for n in range(count):
        open(path, "wb").write(mutant(good, chance))
        words, usual = calls[n % len(calls)]
        call = Call(chosen.nearmiss, words, place)
        why = call.wrong(usual)
        counts["wrong" if why else "read" if call.status == 0 else "refused"] += 1
        if why:
            kept = f"{chosen.keep}/{kind}-{n}-{os.path.basename(path)}"
            shutil.copy(path, kept)
            print(f"  nearmiss {' '.join(words)}: {why}: {call.stderr.strip()[:300]}\n  the mutant is {kept}", flush=True)
    open(path, "wb").write(good)
    print(f"{name.replace('/run/', '/'):32} {counts['read']:5} read {counts['refused']:5} refused {counts['wrong']:3} wrong", flush=True)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nearmiss", default=f"{ROOT}/target/release/nearmiss", help="the binary that reads")
    parser.add_argument("--mutants", type=int, default=3000, help="in all, of the files in equal parts")
    parser.add_argument("--only", metavar="GLOB", default="*", help="only such files, as trace/model.json")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", metavar="FOLDER", default=tempfile.gettempdir(), help="where mutants go that were wrong")
    chosen = parser.parse_args()
    if not os.access(chosen.nearmiss, os.X_OK):
        sys.exit(f"{chosen.nearmiss} is no program: build nearmiss first, or name the binary with --nearmiss")
    chosen.nearmiss, chance = os.path.realpath(chosen.nearmiss), random.Random(chosen.seed)
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        make_runs(chosen.nearmiss, place)
        for kind in ("trace", "observe", "verify"):
            shutil.copytree(f"{place}/{kind}/run", f"{place}/{kind}/twin")
        files = files_of(place, chosen.only)
        if not files:
            sys.exit("no file has such a name")
        chosen.each = -(-chosen.mutants // len(files))
        known = {}
        all_counts = [try_file(chosen, place, kind, path, chance, known) for kind, path in files]
    sums = {what: sum(counts[what] for counts in all_counts) for what in all_counts[0]}
    print(f"{sum(sums.values())} mutants of {len(files)} files: " + ", ".join(f"{n} {what}" for what, n in sums.items()))
    return 1 if sums["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
