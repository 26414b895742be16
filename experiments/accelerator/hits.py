#!/usr/bin/env python3
"""Measures how many hits a CPU-second buys: nearmiss-accelerator beside nginx's proxy_cache on tmpfs, and Varnish.

nginx has Debian's settings (sendfile, tcp_nopush) and --nginx adds others; Varnish has Debian's settings and keeps its
store in memory (malloc). All stand before the same nginx, run on the same CPU, and take turns within one run. nginx has
one worker, the accelerator one thread; Varnish has its usual pools of threads on that CPU.
wrk drives them from the other CPUs by keep-alive connections; a server's CPU time is the scheduler's, in nanoseconds,
of all its processes and threads. Ratios compare medians, against the better of nginx and Varnish; the spread is from the
lowest to the highest turn.

  experiments/accelerator/hits.py                                  # 4 KB, 25 KB, 60 KB; 50 and 5,000 connections
  experiments/accelerator/hits.py --turns 3 --seconds 2            # the same in two minutes, as `make bench` runs it
  experiments/accelerator/hits.py --bodies 4096 --connections 50 --turns 9 --json hits.json

Needs nginx, varnish and wrk (Debian's packages of these names) and target/release/nearmiss-accelerator.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ports import free_port, wait_for  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]

ORIGIN = """
worker_processes 1; daemon off; pid {folder}/origin.pid; error_log {folder}/origin.log;
events {{ worker_connections 1024; }}
http {{ access_log off;
  server {{ listen 127.0.0.1:{port}; root {folder}/files; add_header Cache-Control "max-age=36000"; }} }}
"""

CACHE = """
worker_processes 1; daemon off; pid {folder}/cache.pid; error_log {folder}/cache.log; worker_rlimit_nofile 16384;
events {{ worker_connections 8000; }}
http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000; {more}
  proxy_cache_path {folder}/store keys_zone=hits:10m max_size=256m use_temp_path=off;
  server {{ listen 127.0.0.1:{port} backlog=8192;
    location / {{ proxy_pass http://127.0.0.1:{origin}; proxy_cache hits; }} }} }}
"""

VARNISH = """
vcl 4.1;
backend origin {{ .host = "127.0.0.1"; .port = "{origin}"; }}
"""

ACCELERATOR = """
listen = ["127.0.0.1:{port}"]
threads = 1
engine = "{engine}"
pace = "{pace}"
[[origin]]
address = "127.0.0.1:{origin}"
[limits]
connections = 10000
shorten_from = 9999
"""


class Server:
    """One of the servers under measurement."""

    def __init__(self, name, command, port, cpu):
        self.name, self.port = name, port
        pinned = ["taskset", "-c", str(cpu)] + command
        self.process = subprocess.Popen(pinned, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(port, name)
        time.sleep(0.2)

    def processes(self):
        """The process and its children: nginx's worker, Varnish's cache."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [str(self.process.pid), *children]

    def cpu_seconds(self):
        total = 0
        for pid in self.processes():
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                total += int((task / "schedstat").read_text().split()[0])
        return total / 1e9

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()


def turn(server, path, connections, seconds, cpus):
    """One turn of load. Returns requests and requests a CPU-second."""
    command = ["taskset", "-c", cpus, "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s",
               f"http://127.0.0.1:{server.port}{path}"]
    before = server.cpu_seconds()
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    used = server.cpu_seconds() - before
    requests = int(re.search(r"(\d+) requests in", text).group(1))
    if "Non-2xx" in text:
        sys.exit(f"hits.py: {server.name} answered with errors:\n{text}")
    return requests, requests / used


def compare(servers, size, connections, options, cpus):
    path = f"/{size}.bin"
    figures = {server.name: [] for server in servers}
    for server in servers:
        turn(server, path, min(connections, 50), 1, cpus)
    for _ in range(options.turns):
        for server in servers:
            figures[server.name].append(turn(server, path, connections, options.seconds, cpus))
    row = {"body_bytes": size, "connections": connections}
    for name, turns in figures.items():
        values = sorted(value for _, value in turns)
        row[name] = {"median": statistics.median(values), "lowest": values[0], "highest": values[-1],
                     "requests": [requests for requests, _ in turns]}
    better = max(("nginx", "varnish"), key=lambda name: row[name]["median"])
    row |= {"better": better, "ratio": row["accelerator"]["median"] / row[better]["median"]}
    return row


def show(row):
    parts = [f"{row['body_bytes']:>6} B {row['connections']:>5} connections"]
    for name in ("accelerator", "nginx", "varnish"):
        figure = row[name]
        parts.append(f"{name} {figure['median']:>8,.0f} ({figure['lowest']:,.0f}–{figure['highest']:,.0f})")
    print("  ".join(parts) + f"  ratio to {row['better']} {row['ratio']:.2f}", flush=True)


def start(folder, options):
    ports = {name: free_port() for name in ("origin", "nginx", "varnish", "accelerator")}
    files = folder / "files"
    files.mkdir()
    for size in options.bodies:
        (files / f"{size}.bin").write_bytes(os.urandom(size))
    for name, text in (("origin", ORIGIN), ("cache", CACHE)):
        port = ports["origin" if name == "origin" else "nginx"]
        settings = text.format(folder=folder, port=port, origin=ports["origin"], more=options.nginx)
        (folder / f"{name}.conf").write_text(settings)
    (folder / "varnish.vcl").write_text(VARNISH.format(origin=ports["origin"]))
    toml = ACCELERATOR.format(port=ports["accelerator"], origin=ports["origin"], engine=options.engine, pace=options.pace)
    (folder / "accelerator.toml").write_text(toml)
    origin = Server("origin", ["nginx", "-c", f"{folder}/origin.conf"], ports["origin"], options.cpu)
    binary = str(ROOT / "target/release/nearmiss-accelerator")
    accelerator = Server("accelerator", [binary, "--config", f"{folder}/accelerator.toml"], ports["accelerator"], options.cpu)
    nginx = Server("nginx", ["nginx", "-c", f"{folder}/cache.conf"], ports["nginx"], options.cpu)
    # The folder belongs to this user alone, so Varnish may not change to another one.
    command = ["varnishd", "-F", "-j", "none", "-f", f"{folder}/varnish.vcl", "-a", f"127.0.0.1:{ports['varnish']}",
               "-s", "malloc,256m", "-n", f"{folder}/varnish", "-p", "listen_depth=8192"]
    varnish = Server("varnish", command, ports["varnish"], options.cpu)
    return [origin, accelerator, nginx, varnish]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: [int(part) for part in text.split(",")]
    parser.add_argument("--bodies", type=numbers, default=[4096, 25600, 61440], help="sizes in bytes")
    parser.add_argument("--connections", type=numbers, default=[50, 5000])
    parser.add_argument("--seconds", type=int, default=4, help="length of a turn")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--cpu", type=int, default=0, help="the servers' CPU; wrk runs on the others")
    parser.add_argument("--nginx", default="", help="more settings, such as 'open_file_cache max=1000;'")
    parser.add_argument("--engine", default="epoll")
    parser.add_argument("--pace", default="off")
    parser.add_argument("--json", help="also write the figures here")
    return parser.parse_args()


def main():
    options = arguments()
    for tool in ("nginx", "varnishd", "wrk", "taskset"):
        if not shutil.which(tool):
            sys.exit(f"hits.py: {tool}: not installed; apt-get install nginx varnish wrk util-linux")
    cpus = ",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0)) if cpu != options.cpu) or "0"
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hits-", dir="/dev/shm"))
    started = []
    try:
        folder.chmod(0o755)
        started = start(folder, options)
        print("Measured: hits a CPU-second, median of the turns (lowest–highest)")
        rows = []
        for connections in options.connections:
            for size in options.bodies:
                rows.append(compare(started[1:], size, connections, options, cpus))
                show(rows[-1])
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")
    finally:
        for server in started:
            server.end()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
