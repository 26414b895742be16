#!/usr/bin/env python3
"""Diagnoses programs of realistic size with default options: the time to the answer, and what it covers.

Run after `make build`: experiments/answer/real.py [NAME ...]    (all without names; those with a missing program are skipped)
Prints for each: its native seconds (of a server: those of its load), the seconds to the answer, its coverage and its
headline, and the time of each stage. All times are measured. Ends with status 1 if an answer is missing, or takes over 60 s beside the native seconds.
"""
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "experiments"))
from ports import free_port, wait_for

NEARMISS = os.environ.get("NEARMISS", ROOT / "target/release/nearmiss")
MOST_BESIDE_NATIVE = 60
THREADS = r"""
#include <thread>
#include <unordered_map>
#include <vector>
int main() {
    std::vector<std::thread> all;
    for (int t = 0; t < 4; t++) all.emplace_back([t] {
        std::unordered_map<long, long> m;
        for (long i = 0; i < 90000000; i++) m[i * 2654435761 % 300000] += t;
    });
    for (auto &t : all) t.join();
}
"""
JAVA = r"""
import java.util.HashMap;
public class Many {
    public static void main(String[] words) {
        long sum = 0;
        for (int round = 0; round < 30; round++) {
            HashMap<Integer, String> map = new HashMap<>();
            for (int i = 0; i < 600000; i++) map.put(i * 31, "value " + i);
            sum += map.get(31).length() + map.size();
        }
        System.out.println(sum);
    }
}
"""
GO = r"""
package main

import (
	"fmt"
	"sync"
)

func main() {
	var wait sync.WaitGroup
	var lock sync.Mutex
	all := map[int]int{}
	for g := 0; g < 4; g++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := 0; i < 8000000; i++ {
				lock.Lock()
				all[i%100000] += g
				lock.Unlock()
			}
		}()
	}
	wait.Wait()
	fmt.Println(len(all))
}
"""
SQL = (
    "create table t(a,b); with recursive n(i) as (select 1 union all select i+1 from n where i<1000000) "
    "insert into t select i, i*7%1000 from n; select b, count(*) from t group by b limit 3;"
)
NODE = "let m = new Map(); for (let i = 0; i < 40000000; i++) m.set(i % 100000, i); console.log(m.size)"


@dataclass
class Program:
    """A command; of a server also its load, and the port where it answers."""

    command: list
    load: list = field(default_factory=list)
    port: int = 0

    def native(self, place):
        """Seconds that it, or its load, takes."""
        quiet = {"cwd": place, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        if not self.load:
            begun = time.monotonic()
            subprocess.run(self.command, check=False, **quiet)
            return time.monotonic() - begun
        server = subprocess.Popen(self.command, **quiet)
        try:
            wait_for(self.port, self.command[0])
            begun = time.monotonic()
            subprocess.run(self.load, check=False, **quiet)
            return time.monotonic() - begun
        finally:
            server.terminate()
            server.wait()

    def options(self):
        return ["--load", shlex.join(self.load)] if self.load else []


def compiled(place):
    """Programs that are compiled first, where there is a compiler."""
    made = {"threads.cc": THREADS, "Many.java": JAVA, "many.go": GO}
    for file, text in made.items():
        (place / file).write_text(text)
    (place / "many.c").write_text("".join(f"int f{i}(int x) {{ return x * {i} + (x >> {i % 31}); }}\n" for i in range(4000)))
    for words in (
        ["g++", "-O2", "-g", "-pthread", "-o", "threads", "threads.cc"],
        ["javac", "Many.java"],
        ["go", "build", "-o", "many-go", "many.go"],
    ):
        if shutil.which(words[0]):
            subprocess.run(words, cwd=place, check=False, env={**os.environ, "GOFLAGS": "-mod=mod", "GO111MODULE": "off"})
    return {
        "gcc": Program(["gcc", "-O2", "-c", "-o", "/dev/null", "many.c"]),
        "java": Program(["java", "-cp", ".", "Many"]),
        "go": Program(["./many-go"]),
        "threads": Program(["./threads"]),
    }


def interpreted_and_tools(place):
    (place / "lines").write_text("".join(f"{i * 7919 % 1000003} a line to be sorted\n" for i in range(1000000)))
    with open("/usr/bin/python3", "rb") as file:
        (place / "blob").write_bytes((file.read() * 4)[:20_000_000])
    (place / "n.js").write_text(NODE)
    return {
        "python3": Program(["python3", "-c", "print(sum(i * i % 7 for i in range(80000000)))"]),
        "node": Program(["node", "n.js"]),
        "sqlite3": Program(["sqlite3", ":memory:", SQL]),
        "xz": Program(["xz", "-9", "-k", "-c", "blob"]),
        "git": Program(["git", "-C", str(ROOT), "log", "-p", "-n", "200"]),
        "tar": Program(["tar", "-cf", "/dev/null", "/usr/share/doc"]),
        "sort": Program(["sort", "-o", "/dev/null", "lines"]),
    }


def servers(place, of_this_user=False):
    """`of_this_user`: no process of them is another user's, as far as they can be started so."""
    redis, nginx, postgres = free_port(), free_port(), free_port()
    (place / "nginx.conf").write_text(
        ("user root;\n" if of_this_user and os.getuid() == 0 else "") +
        f"daemon off; master_process on; worker_processes 2; pid {place}/nginx.pid; error_log /dev/null;\n"
        f"events {{}} http {{ access_log off; server {{ listen 127.0.0.1:{nginx}; root /usr/share/doc; }} }}\n"
    )
    page = next(pathlib.Path("/usr/share/doc").glob("*/copyright"))
    found = {
        "redis": Program(
            ["redis-server", "--port", str(redis), "--save", "", "--logfile", "/dev/null"],
            ["redis-benchmark", "-p", str(redis), "-n", "300000", "-c", "50", "-r", "1000000", "-t", "set,get", "-q"],
            redis,
        ),
        "nginx": Program(
            ["nginx", "-p", str(place), "-c", str(place / "nginx.conf")],
            ["nearmiss-webload", "rate", "--rps", "2000", "--connections", "40", "--for", "3s",
             f"http://127.0.0.1:{nginx}/{page.relative_to('/usr/share/doc')}"],
            nginx,
        ),
    }
    if shutil.which("initdb") and shutil.which("postgres"):
        found["postgres"] = postgresql(place, postgres)
    return found


def postgresql(place, port):
    """20 connections that read one row each; its own user, where we are root."""
    data = place / "postgres"
    data.mkdir()
    user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []
    if user:
        shutil.chown(data, "postgres", "postgres")
        place.chmod(0o755)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([*user, "initdb", "-A", "trust", "-U", "postgres", "-D", data], check=True, cwd="/", **quiet)
    command = [*user, "postgres", "-D", str(data), "-p", str(port), "-k", str(data)]
    bench = ["pgbench", "-h", str(data), "-p", str(port), "-U", "postgres"]
    server = subprocess.Popen(command, cwd="/", **quiet)
    try:
        wait_for(port, "postgres")
        subprocess.run([*bench, "-i", "-s", "5", "postgres"], check=True, **quiet)
    finally:
        server.terminate()
        server.wait()
    return Program(command, [*bench, "-n", "-S", "-c", "20", "-t", "2000", "postgres"], port)


def answer(name, program, place):
    """Prints one program's line; whether it has an answer in time."""
    native = program.native(place)
    begun = time.monotonic()
    words = [NEARMISS, "diagnose", *program.options(), "--", *program.command]
    done = subprocess.run(words, cwd=place, capture_output=True, text=True, check=False)
    taken = time.monotonic() - begun
    text = " ".join(done.stdout.split())
    covered = text.split("Recorded: ")[1].split(" Note ")[0] if "Recorded: " in text else "the whole run"
    head = next((l for l in done.stdout.splitlines() if l[:1].isdigit()), text.split("Modelled ")[-1][:150])
    if done.returncode:
        head = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no word"
    in_time = done.returncode == 0 and taken <= MOST_BESIDE_NATIVE + native
    verdict = "" if in_time else "   NO ANSWER IN TIME"
    parts = next((line for line in done.stderr.splitlines() if "took " in line), "")
    print(f"{name:9} native {native:5.1f}  answer {taken:5.1f}  status {done.returncode}{verdict}  {covered}", flush=True)
    print(*(f"{'':10}{line}" for line in (head, parts) if line), sep="\n", flush=True)
    return in_time


def is_here(program, place):
    words = [program.command[0], *program.load[:1]]
    path = f"{place}:{ROOT}/target/release:{os.environ['PATH']}"
    return all(shutil.which(word, path=path) or (place / word).exists() for word in words)


def main():
    wanted = sys.argv[1:]
    model = next(l.split(": ")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name"))
    print(f"{time.strftime('%F')} {model}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f} at the start; measured seconds", flush=True)
    os.environ["PATH"] = f"{pathlib.Path(NEARMISS).parent}:{os.environ['PATH']}"
    late = []
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        for program, what in {**compiled(place), **interpreted_and_tools(place), **servers(place)}.items():
            if wanted and program not in wanted:
                continue
            if not is_here(what, place):
                print(f"{program:9} skipped: not here")
            elif not answer(program, what, place):
                late.append(program)
    sys.exit(f"no answer in time: {', '.join(late)}" if late else 0)


if __name__ == "__main__":
    main()
