#!/usr/bin/env python3
"""Debian's servers with and without `pace`: CPU time a request, latency and rates of interleaved pairs under one open-loop
load, by `nearmiss verify pace --load`. Servers that are not installed are named and left out.

    experiments/pace/servers.py [--aims 1ms,5ms,budget=1ms] [--rate 5000] [--pairs 8] [NAME…]
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parents[2] / "target/release"
PORT = 18090

NGINX = """daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/errors;
events {{ worker_connections 4096; {method} }}
http {{ access_log off; keepalive_requests 100000000; keepalive_timeout 600s;
  server {{ listen 127.0.0.1:{port}; root {dir}; }} }}
"""
HAPROXY = """global
  maxconn 4000
  nbthread 1
defaults
  mode http
  timeout client 60s
  timeout http-keep-alive 60s
  timeout connect 5s
  timeout server 5s
frontend front
  bind 127.0.0.1:{port}
  http-request return status 200 content-type text/plain string {body}
"""
LIGHTTPD = """server.document-root = "{dir}"
server.port = {port}
server.bind = "127.0.0.1"
server.event-handler = "poll"
server.max-keep-alive-requests = 0
server.max-fds = 4096
"""


def servers(place):
    """Name: program, command, protocol, target."""
    (place / "page").write_text("x" * 1024)
    (place / "nginx.conf").write_text(NGINX.format(dir=place, port=PORT, method=""))
    (place / "nginx-poll.conf").write_text(NGINX.format(dir=place, port=PORT, method="use poll;"))
    (place / "haproxy.cfg").write_text(HAPROXY.format(port=PORT, body="x" * 1024))
    (place / "lighttpd.conf").write_text(LIGHTTPD.format(dir=place, port=PORT))
    here, url = f"127.0.0.1:{PORT}", f"http://127.0.0.1:{PORT}/page"
    haproxy = ["haproxy", "-db", "-f", f"{place}/haproxy.cfg"]
    memcached = ["memcached", "-u", "root", "-l", "127.0.0.1", "-p", str(PORT), "-c", "4000", "-t"]
    return {
        "nginx": (["nginx", "-c", f"{place}/nginx.conf", "-p", f"{place}"], "http", url),
        "nginx-poll": (["nginx", "-c", f"{place}/nginx-poll.conf", "-p", f"{place}"], "http", url),
        "redis": (["redis-server", "--port", str(PORT), "--save", "", "--appendonly", "no"], "resp", here),
        "haproxy": (haproxy, "http", url),
        "haproxy-poll": (haproxy + ["-de"], "http", url),
        "lighttpd-poll": (["lighttpd", "-D", "-f", f"{place}/lighttpd.conf"], "http", url),
        "memcached-1": (memcached + ["1"], "memcached", here),
        "memcached-4": (memcached + ["4"], "memcached", here),
    }


def verdict(aim, arguments, command, protocol, target):
    load = f"{HERE}/nearmiss-webload rate --rps {arguments.rate} --connections 300 --for 4s --protocol {protocol} {target}"
    how = ["--budget", aim.removeprefix("budget=")] if aim.startswith("budget=") else ["--interval", aim]
    line = [HERE / "nearmiss", "verify", "pace", *how, "--pairs", str(arguments.pairs), "--load", load, "--json", "--", *command]
    done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return json.loads(done.stdout) if done.stdout else done.stderr.strip().splitlines()[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--aims", default="1ms,5ms,budget=5ms")
    parser.add_argument("--rate", type=int, default=5000)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        for name, (command, protocol, target) in servers(pathlib.Path(place)).items():
            if arguments.names and name not in arguments.names:
                continue
            if not shutil.which(command[0]):
                print(f"{name}: {command[0]} is not installed, left out", flush=True)
                continue
            for aim in arguments.aims.split(","):
                print(line_of(name, aim, verdict(aim, arguments, command, protocol, target)), flush=True)


def line_of(name, aim, told):
    if isinstance(told, str):
        return f"{name:14} {aim:10} {told}"
    figures = [told["comparison"], *told["others"]]
    wanted = [figure for figure in figures if "cpu" in figure["metric"].lower() or figure["metric"] in ("mean", "p99")]
    parts = [f"{figure['metric']} {ratio(figure)}" for figure in wanted]
    return f"{name:14} {aim:10} {told['outcome']}, {told['pairs']} pairs; {'; '.join(parts)}; {told['engaged']}"


def ratio(figure):
    interval = figure["interval"] or (float("nan"),) * 2
    return f"x{figure['ratio']:.2f} [{interval[0]:.2f}, {interval[1]:.2f}]"


if __name__ == "__main__":
    main()
