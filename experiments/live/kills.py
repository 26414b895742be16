#!/usr/bin/env python3
"""Harm to running processes when nearmiss or CRIU is killed at a random instant of a snapshot.

Run from the repository's root after `make build`, as root: experiments/live/kills.py [--nearmiss 200] [--criu 100]
The processes are a redis-server under load, a program of 16 threads and a tree of four processes, in turn. After each
kill CRIU must have ended, and every process must run, have no tracer, answer or get on. Mappings that stay are counted.
Ends with status 1 if a process is harmed or something of nearmiss's own is left.
"""

import argparse, glob, os, random, shutil, signal, socket, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from ports import free_port, wait_for
from traced import cpu

NEARMISS = os.path.abspath(os.environ.get("NEARMISS", "target/release/nearmiss"))
# CRIU has so long to end by itself.
SETTLE_S = 20
THREADS = """
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>
static _Atomic long rounds[16 * 8];
static void *loop(void *at) { for (;;) atomic_fetch_add((_Atomic long *)at, 1); }
int main(int argc, char **argv)
{
    pthread_t thread;
    for (int i = 0; i < 16; i++)
        pthread_create(&thread, 0, loop, (void *)&rounds[8 * i]);
    for (FILE *file;; usleep(20000))
        if ((file = fopen(argv[1], "w"))) {
            for (int i = 0; i < 16; i++)
                fprintf(file, "%ld ", (long)rounds[8 * i]);
            fclose(file);
        }
}
"""
TREE = 'i=0; for n in 1 2 3; do (while :; do i=$((i+1)); echo $i >"$0.$n"; done) & done; wait'


def processes():
    """By id: command line."""
    found = {}
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            found[int(path.split("/")[2])] = open(path, "rb").read().split(b"\0")
        except OSError:
            pass
    return found


def dumpers(pid):
    """Numbers of the CRIU processes that copy this one."""
    wanted = [b"-t", str(pid).encode()]
    return [number for number, words in processes().items() if b"dump" in words and b"--leave-running" in words
            and any(words[at : at + 2] == wanted for at in range(len(words))) and not is_wrapper(words)]


def is_wrapper(words):
    """Whether it only waits for CRIU, to tidy up behind it."""
    return os.path.basename(words[0]) in (b"sh", b"setsid", b"nice")


def wait_until(done, seconds, what):
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            return what
        time.sleep(0.002)
    return None


def below(pid):
    """The process and all that descend from it."""
    found = [pid]
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        found += [number for child in open(path).read().split() for number in below(int(child))]
    return found


def mappings(pids):
    """Mappings of those that live."""
    places = [f"/proc/{pid}/maps" for pid in pids]
    return sum(len(open(place).readlines()) for place in places if os.path.exists(place))


def states(pids):
    """Every thread that neither runs nor waits, or has a tracer."""
    harm = []
    for pid in pids:
        for path in glob.glob(f"/proc/{pid}/task/*/status"):
            fields = dict(line.rstrip("\n").split(":\t", 1) for line in open(path) if ":\t" in line)
            if fields["State"][0] not in "RSD" or fields["TracerPid"] != "0":
                harm.append(f"thread {fields['Pid']} of {pid}: {fields['State']}, tracer {fields['TracerPid']}")
    return harm


class Subject:
    """A process that computes or serves, started in a session of its own."""

    def start(self, words, **more):
        null = subprocess.DEVNULL
        self.child = subprocess.Popen(words, stdin=null, stdout=null, stderr=null, start_new_session=True, **more)
        self.pid = self.child.pid

    def harm(self, before):
        """Returns what is wrong with it, or with one that descended from it before."""
        if self.child.poll() is not None:
            return [f"it ended with status {self.child.returncode}"]
        pids = below(self.pid)
        if len(pids) < len(before):
            return [f"{len(before) - len(pids)} of its processes ended"]
        stopped = wait_until(lambda: not states(pids), 2, "stopped")
        return (states(pids) if stopped else []) + self.progress()

    def end(self):
        for pid in below(self.pid) if self.child.poll() is None else []:
            os.kill(pid, signal.SIGKILL)
        self.child.wait()


class Files(Subject):
    """Writes how far it got into files; each figure must grow."""

    def __init__(self, files):
        self.files = files

    def figures(self):
        # A file that is being written is empty.
        texts = [open(path).read().split() for path in self.files if os.path.exists(path)]
        return [int(word) for text in texts for word in text]

    def progress(self):
        before = max((self.figures() for _ in range(50)), key=len)
        grown = lambda: len(now := self.figures()) == len(before) and all(a > b for a, b in zip(now, before))
        late = wait_until(grown, 10, f"it does not get on: {before}")
        return [late] if late else []


class Redis(Subject):
    name = "redis-server under load"

    def __init__(self, place):
        self.port = free_port()
        self.start(["redis-server", "--port", str(self.port), "--save", "", "--dir", place])
        wait_for(self.port, "redis-server")
        load = ["redis-benchmark", "-p", str(self.port), "-c", "4", "-n", "1000000000", "-r", "100000", "-t", "set,get", "-q"]
        self.load = subprocess.Popen(load, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(100)
        except OSError:
            return None

    def progress(self):
        answer = self.ask()
        return ([] if answer == b"+PONG\r\n" else [f"it answers {answer}"]) + (
            ["the load's connections broke"] if self.load.poll() is not None else [])

    def end(self):
        self.load.kill()
        self.load.wait()
        super().end()


class Threads(Files):
    name = "a program of 16 threads"

    def __init__(self, place):
        super().__init__([f"{place}/rounds"])
        open(f"{place}/threads.c", "w").write(THREADS)
        subprocess.run(["cc", "-O1", "-pthread", "-o", f"{place}/threads", f"{place}/threads.c"], check=True)
        self.start([f"{place}/threads", f"{place}/rounds"])


class Tree(Files):
    name = "a tree of four processes"

    def __init__(self, place):
        super().__init__([f"{place}/tree.{n}" for n in (1, 2, 3)])
        self.start(["/bin/dash", "-c", TREE, f"{place}/tree"])


def killed(number):
    """Whether the process was still there to be killed."""
    try:
        os.kill(number, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def left_behind(place):
    mounts = open("/proc/self/mountinfo").read()
    found = ["a mount of images"] if "nearmiss/images" in mounts else []
    found += ["/run/criu.kdat.tmp"] if os.path.exists("/run/criu.kdat.tmp") else []
    return found + os.listdir(f"{place}/tmp")


def kill(subject, place, of_criu, rng):
    """Kills one of the two; returns whether CRIU was at work, the harm, and the mappings more."""
    pids = below(subject.pid)
    before = mappings(pids)
    words = [NEARMISS, "trace", "-p", str(subject.pid), "--load", "sleep 9", "--quiet", "--runs", f"{place}/runs"]
    null = subprocess.DEVNULL
    nearmiss = subprocess.Popen(words, stdin=null, stdout=null, stderr=null, cwd=place, env=os.environ | {"TMPDIR": f"{place}/tmp"})
    began = wait_until(lambda: dumpers(subject.pid) or nearmiss.poll() is not None, 30, "CRIU never began")
    time.sleep(rng.uniform(0, 0.15))
    at_work = dumpers(subject.pid)
    if of_criu:
        at_work = [number for number in at_work if killed(number)]
        time.sleep(0.05)
    nearmiss.kill()
    nearmiss.wait()
    ended = wait_until(lambda: not dumpers(subject.pid), SETTLE_S, "CRIU goes on")
    harm = [problem for problem in (began, ended) if problem] + subject.harm(pids)
    late = wait_until(lambda: not left_behind(place), SETTLE_S, "left behind")
    harm += left_behind(place) if late else []
    return bool(at_work), harm, mappings(pids) - before


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nearmiss", type=int, default=200)
    parser.add_argument("--criu", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rng, harmed = random.Random(given.seed), 0
    print(f"{given.nearmiss} kills of nearmiss and {given.criu} of CRIU, {cpu()}, {time.strftime('%F')}, seed {given.seed}")
    for kind in (Redis, Threads, Tree):
        for of_criu, kills in ((False, given.nearmiss), (True, given.criu)):
            harmed += report(kind, of_criu, share(kills, kind), rng)
    sys.exit(1 if harmed else 0)


def share(kills, kind):
    """Kills of one kind of three."""
    return (kills + (Redis, Threads, Tree).index(kind)) // 3


def report(kind, of_criu, kills, rng):
    """Kills so often; a process that is harmed makes room for a new one. Returns how many were."""
    working = harmed = kept = 0
    subject = None
    with tempfile.TemporaryDirectory() as place:
        os.mkdir(f"{place}/tmp")
        for number in range(kills):
            if not subject:
                subject = kind(place)
                time.sleep(0.5)
            at_work, harm, more = kill(subject, place, of_criu, rng)
            working, harmed, kept = working + at_work, harmed + bool(harm), kept + max(more, 0)
            if harm:
                print(f"  kill {number + 1}: {'; '.join(map(str, harm))}", flush=True)
                subject.end()
                subject = None
            shutil.rmtree(f"{place}/runs", ignore_errors=True)
        if subject:
            subject.end()
    what = "CRIU" if of_criu else "nearmiss"
    print(f"{kind.name}: {kills} kills of {what}, CRIU at work in {working}; {harmed} harmed, {kept} mappings stay", flush=True)
    return harmed


main()
