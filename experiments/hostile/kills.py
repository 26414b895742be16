#!/usr/bin/env python3
"""Remains of nearmiss after SIGKILL, in any verb, at any instant.

Run from anywhere after `make build`: experiments/hostile/kills.py [--kills 200] [--verb trace]
Each kill starts a verb in places of its own, kills nearmiss alone, at a random instant or when something chosen has just
appeared, and then looks for processes, files, mounts, devices and control groups that are left. Afterwards the run
directory must still serve: what was kept is read or refused in one line, and the next run clears the rest away.
Ends with status 1 if anything is left.
"""

import argparse, ctypes, glob, os, random, shutil, signal, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# A command that outlives what killed its wrapper has so long to end by itself, and a guardian to tidy up.
SETTLE_S = 12
# Entries outside a run's own places may be another run's on this machine, which removes them within so long.
OTHERS_END_S = 180
COMMAND = ["sh", "-c", "i=0; while [ $i -lt 4000 ]; do i=$((i+1)); done; sleep 0.3"]

# By verb: its arguments, within how many seconds it is killed at the latest, and what comes into being while it runs.
VERBS = {
    "trace": (["trace", "-q", "--runs", "{runs}", "--", *COMMAND], 5.5, "child emulator scratch half_written"),
    "trace-warm": (["trace", "-q", "--warm", "--runs", "{runs}", "--", *COMMAND], 6.5, "child emulator scratch"),
    "diagnose": (["diagnose", "--runs", "{runs}", "--", *COMMAND], 7.0, "child emulator kept"),
    "observe": (["observe", "--runs", "{runs}", "--", *COMMAND], 0.6, "child half_written kept"),
    "observe-polls": (["observe", "--polls", "--locks", "--runs", "{runs}", "--", *COMMAND], 0.6, "child kept"),
    "apply-color": (["apply", "color", "--", *COMMAND], 0.3, "child scratch"),
    "apply-apart": (["apply", "apart", "--", *COMMAND], 0.3, "child scratch"),
    "apply-huge": (["apply", "huge", "--", *COMMAND], 0.3, "child scratch"),
    "apply-pair": (["apply", "pair", "--stand-in-counters", "--", *COMMAND], 0.3, "child"),
    "verify-color": (["verify", "color", "--runs", "{runs}", "--", *COMMAND], 3.0, "child scratch"),
    "verify-commands": (["verify", "commands", "--runs", "{runs}", "sleep 0.05", "sleep 0.06"], 1.0, "child kept"),
}

# Instants: something has just come into being.
INSTANTS = {
    "child": lambda child, place: any(parent == child.pid for parent, _, _ in processes().values()),
    "emulator": lambda child, place: any("qemu" in name for name in descendants().values()),
    "scratch": lambda child, place: bool(os.listdir(f"{place}/tmp")),
    "half_written": lambda child, place: bool(temporary(f"{place}/runs")),
    "kept": lambda child, place: bool(glob.glob(f"{place}/runs/*/*.json")),
}


def adopt_orphans():
    """Every process that a killed one leaves behind becomes our child, in whichever session or environment it runs."""
    pr_set_child_subreaper = 36
    if ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0) != 0:
        sys.exit("this kernel lets no process adopt orphans, so that the processes left could not be counted")


def processes():
    """By id: parent, state and name."""
    found = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            before, after = open(path).read().rsplit(")", 1)
        except OSError:
            continue
        pid, name = before.split(" (", 1)
        found[int(pid)] = (int(after.split()[1]), after.split()[0], name)
    return found


def descendants():
    """The names of the living processes below this one, by id."""
    all_of_them, below, found = processes(), {os.getpid()}, {}
    while True:
        new = {pid for pid, (parent, _, _) in all_of_them.items() if parent in below and pid not in below}
        if not new:
            return found
        found |= {pid: all_of_them[pid][2] for pid in new if all_of_them[pid][1] != "Z"}
        below |= new


def reap():
    """Takes the status of orphans that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def listing(folder):
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


def machine():
    """Entries that a run may add to the machine outside its own places."""
    groups = {path for path, _, _ in os.walk("/sys/fs/cgroup") if "nearmiss" in path}
    return {
        "mount": set(open("/proc/self/mountinfo").read().splitlines()),
        "loop device": {path for path in glob.glob("/sys/block/loop*/loop/backing_file")},
        "control group": groups,
        "tracing instance": listing("/sys/kernel/tracing/instances"),
        "shared memory": listing("/dev/shm"),
        "file in /tmp": {name for name in listing("/tmp") if "nearmiss" in name or name.startswith("nm-")},
    }


def temporary(folder):
    """Files under temporary names."""
    return [path for path in glob.glob(f"{folder}/**/*", recursive=True) if path.endswith((".part", ".tmp"))]


def places(place):
    return {**os.environ, "TMPDIR": f"{place}/tmp", "XDG_CACHE_HOME": f"{place}/cache"}


def make_places(place):
    """Places of one run. The guest's kernel and this machine's calibration are there already; no saved guest is."""
    for folder in ("tmp", "runs", "cache/nearmiss"):
        os.makedirs(f"{place}/{folder}")
    remembered = (os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) + "/nearmiss"
    os.symlink(f"{remembered}/kernel", f"{place}/cache/nearmiss/kernel")
    if os.path.exists(f"{remembered}/calibration.json"):
        shutil.copy(f"{remembered}/calibration.json", f"{place}/cache/nearmiss")


def kill_once(binary, verb, chance, place):
    """Kills one run; returns when it was killed, or `None` if it had ended."""
    words, longest, instants = VERBS[verb]
    words = [word.replace("{runs}", f"{place}/runs") for word in words]
    child = subprocess.Popen([binary, *words], cwd=place, env=places(place), stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    instant = chance.choice([None, None, *instants.split()])
    begun, wait = time.monotonic(), chance.uniform(0, longest)
    while child.poll() is None:
        passed = time.monotonic() - begun
        if passed >= (wait if instant is None else 60) or (instant and INSTANTS[instant](child, place)):
            if instant:
                time.sleep(chance.choice([0, 0.002, 0.02]))
            child.kill()
            child.wait()
            return f"after {passed:.2f} s" + (f", at {instant}" if instant else "")
        time.sleep(0.001)
    return None


def left_over(place, before):
    """Remains once everything had time to end."""
    ends, quiet = time.monotonic() + SETTLE_S, 0
    # Twice: an orphan that finds its new parent while the processes are listed is missed once.
    while time.monotonic() < ends and quiet < 2:
        reap()
        quiet = 0 if descendants() or os.listdir(f"{place}/tmp") else quiet + 1
        time.sleep(0.05)
    left = [f"process {pid} ({name})" for pid, name in descendants().items()]
    left += [f"file {path}" for path in glob.glob(f"{place}/tmp/**/*", recursive=True)]
    left += [f"file {path}" for path in temporary(f"{place}/cache")]
    for pid in descendants():
        os.kill(pid, signal.SIGKILL)
    return left + staying(before)


def added(before):
    """Entries of the machine that were not there before."""
    return {f"{what} {one}" for what, there in machine().items() for one in there - before[what]}


def staying(before):
    """Those of the entries added now that do not go when other runs on this machine end."""
    left, ends = added(before), time.monotonic() + OTHERS_END_S
    while left and time.monotonic() < ends:
        time.sleep(0.5)
        left &= added(before)
    return sorted(left)


def unreadable(binary, place):
    """Runs that `report` neither reads nor refuses in one line."""
    wrong = []
    for run in sorted(glob.glob(f"{place}/runs/*/")):
        done = subprocess.run([binary, "report", run], capture_output=True, text=True, timeout=120)
        if done.returncode != 0 and (done.returncode != 2 or len(done.stderr.strip().splitlines()) != 1):
            wrong.append(f"report of {os.path.basename(run[:-1])}: status {done.returncode}: {done.stderr.strip()}")
    return wrong


def served(binary, place):
    """Errors after a whole run into the same places."""
    done = subprocess.run([binary, "observe", "--runs", f"{place}/runs", "--", "true"], capture_output=True, text=True,
                          env=places(place), timeout=120)
    wrong = [] if done.returncode == 0 else [f"the next run ended with {done.returncode}: {done.stderr.strip()}"]
    return wrong + [f"file {path} after the next run" for path in temporary(f"{place}/runs")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nearmiss", default=f"{ROOT}/target/release/nearmiss", help="the binary that is killed")
    parser.add_argument("--kills", type=int, default=200, help="in all, of the verbs in turn")
    parser.add_argument("--verb", choices=VERBS, help="only this one")
    parser.add_argument("--seed", type=int, default=1, help="of the instants")
    chosen = parser.parse_args()
    if not os.access(chosen.nearmiss, os.X_OK):
        sys.exit(f"{chosen.nearmiss} is no program: build nearmiss first, or name the binary with --nearmiss")
    binary, chance = os.path.realpath(chosen.nearmiss), random.Random(chosen.seed)
    adopt_orphans()
    verbs = [chosen.verb] if chosen.verb else list(VERBS)
    kills, bad, ended = {verb: 0 for verb in verbs}, 0, 0
    while sum(kills.values()) < chosen.kills:
        if ended > 20 + 2 * chosen.kills:
            sys.exit("most runs ended before they were killed: try one of the verbs by hand, it may not work here")
        verb = verbs[(sum(kills.values()) + ended) % len(verbs)]
        place = tempfile.mkdtemp(prefix="killed-")
        make_places(place)
        before = machine()
        when = kill_once(binary, verb, chance, place)
        left = left_over(place, before) + unreadable(binary, place) + served(binary, place)
        kills[verb] += when is not None
        ended += when is None
        bad += bool(left)
        for one in left:
            print(f"{verb}, {f'killed {when}' if when else 'ended'}: left {one}", flush=True)
        shutil.rmtree(place)
    print("; ".join(f"{verb} {count}" for verb, count in kills.items()))
    print(f"{sum(kills.values())} kills, {ended} runs that had ended before; {bad} left something")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
