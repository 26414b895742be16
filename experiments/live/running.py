#!/usr/bin/env python3
"""Diagnoses programs that run already (`diagnose -p`): the pause of each, the time to the answer, and its headline.

Run from the repository's root after `make build`, as root: experiments/live/running.py [--pauses 10] [NAME ...]
All figures are measured. The pause is CRIU's own figure of the time for which the process stood still; with --pauses,
the median of so many snapshots more, held to 0.4 s and 1 s for each GiB of its memory.
"""

import argparse, os, pathlib, re, statistics, subprocess, sys, tempfile, time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "experiments"), str(ROOT / "experiments/answer")]
from ports import wait_for
from real import Program, servers
from traced import cpu

NEARMISS = os.environ.get("NEARMISS", str(ROOT / "target/release/nearmiss"))
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
JAVA = """
import java.util.HashMap;
public class Fill {
    public static void main(String[] words) {
        for (long sum = 0;;) {
            HashMap<Integer, String> map = new HashMap<>();
            for (int i = 0; i < 600000; i++) map.put(i * 31, "value " + i);
            sum += map.size();
        }
    }
}
"""
GO = """
package main

func main() {
	all := map[int]int{}
	for i := 0; ; i++ {
		all[i*7919%1000003] += i
	}
}
"""
PYTHON = "m = {}\nwhile True:\n    for i in range(1000000): m[i * 7919 % 1000003] = i"


def computing(place):
    """Programs that compute until they are ended."""
    (place / "Fill.java").write_text(JAVA)
    (place / "fill.go").write_text(GO)
    subprocess.run(["javac", "Fill.java"], cwd=place, check=False)
    subprocess.run(["go", "build", "-o", "fill-go", "fill.go"], cwd=place, check=False, env=os.environ | {"GO111MODULE": "off"})
    return {
        "crowded-sets": Program([str(ROOT / "target/subjects/aligned-tasks"), "--objects", "64", "--visits", "1000000000000"]),
        "python3": Program(["/usr/bin/python3", "-c", PYTHON]),
        "java": Program(["java", "-Xmx1g", "-cp", str(place), "Fill"]),
        "go": Program([str(place / "fill-go")]),
    }


def may_read_limits():
    """Whether the limits of other users' processes can be read: CAP_SYS_RESOURCE, which containers often lack."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"CapEff:\s*(\w+)", status)[1], 16) >> 24 & 1 == 1


def filled(program):
    """A million keys for redis, as its load has them."""
    if program.command[0] == "redis-server":
        keys = "for i = 1, 1000000 do redis.call('set', 'key:' .. i, i) end"
        fill = ["redis-cli", "-p", str(program.port), "eval", keys, "0"]
        subprocess.run(fill, check=True, **QUIET)


def resident_gib(pid):
    """Memory of the process and its descendants."""
    kib = int(next(line.split()[1] for line in open(f"/proc/{pid}/status") if line.startswith("VmRSS")))
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return kib / 2**20 + sum(resident_gib(int(child)) for child in children)


def pause(errors):
    """Seconds, as nearmiss printed them."""
    found = re.search(r"paused ([\d.]+) s \(measured\)", errors)
    return float(found[1]) if found else None


def nearmiss(pid, verb, options, place):
    words = [NEARMISS, *verb, "-p", str(pid), "--runs", f"{place}/runs", *options]
    began = time.monotonic()
    done = subprocess.run(words, cwd=place, capture_output=True, text=True)
    return done, time.monotonic() - began


def headline(done):
    lines = done.stdout.splitlines()
    nothing = " ".join(done.stdout.split()).split(" modelled on host ")[-1][:160]
    first = next((line for line in lines if re.match(r"\d+\. ", line)), nothing)
    return first if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no word"])[-1]


def look(name, program, place, pauses):
    """Prints one program's lines; returns whether it has an answer and a short pause."""
    child = subprocess.Popen(program.command, cwd=place, start_new_session=True, **QUIET)
    try:
        if program.port:
            wait_for(program.port, name)
            filled(program)
        time.sleep(3)
        gib = resident_gib(child.pid)
        done, took = nearmiss(child.pid, ["diagnose"], program.options(), place)
        # A load that takes long must not be waited for.
        short = [*program.options(), "--within", "1s", "--no-trace", "--quiet"]
        more = [pause(nearmiss(child.pid, ["trace"], short, place)[0].stderr) for _ in range(pauses)]
        all_pauses = [seconds for seconds in [pause(done.stderr), *more] if seconds is not None]
        unharmed = child.poll() is None
    finally:
        child.terminate()
        try:
            child.wait(20)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    median, most = statistics.median(all_pauses or [0]), 0.4 + gib
    spread = f"paused {median:.2f} s ({min(all_pauses):.2f} to {max(all_pauses):.2f}, {len(all_pauses)} snapshots)" if all_pauses else "no snapshot"
    right = done.returncode == 0 and unharmed and median <= most
    wrong = "" if right else "   " + ("NO ANSWER" if done.returncode else "ENDED" if not unharmed else f"OVER {most:.2f} s")
    print(f"{name:13} {gib * 1024:5.0f} MiB  {spread}  answer {took:5.1f} s{wrong}\n{'':14}{headline(done)}", flush=True)
    return right


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pauses", type=int, default=0)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    print(f"diagnose -p, {cpu()}, {time.strftime('%F')}, load {os.getloadavg()[0]:.1f} at the start; measured")
    os.environ["PATH"] = f"{pathlib.Path(NEARMISS).parent}:{os.environ['PATH']}"
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        if not may_read_limits():
            print("no CAP_SYS_RESOURCE here: nginx's workers run as root, and PostgreSQL, which refuses that, has no snapshot")
        for program, what in {**computing(place), **servers(place, not may_read_limits())}.items():
            if given.names and program not in given.names:
                continue
            if not look(program, what, place, given.pauses):
                wrong.append(program)
    sys.exit(f"not as it should be: {', '.join(wrong)}" if wrong else 0)


main()
