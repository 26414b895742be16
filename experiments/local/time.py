#!/usr/bin/env python3
"""How long recordings take, and how much of them are timer ticks, by clock: `ls -lR /usr/share/doc`, and nginx with 64
workers under a load.

Run from the repository's root after `make build`: experiments/local/time.py [ls] [server] [clock]
Needs nginx (apt-get install nginx-light) for the server.
Ends with status 1 if `ls`, or 1,000 requests by the clock of instructions, takes 90 s or more.
"""

import os, shutil, sys, tempfile, time

from nodes import MACHINE, SUBJECTS, cpu, trace

LIMIT_S = 90
CONFIG = """daemon off; worker_processes 64; pid {place}/nginx.pid; error_log /dev/null;
events {{ worker_connections 64; }}
http {{ access_log off; server {{ listen 127.0.0.1:8081; root {place}/www; }}
  client_body_temp_path {place}/b; proxy_temp_path {place}/p; fastcgi_temp_path {place}/f; uwsgi_temp_path {place}/u;
  scgi_temp_path {place}/s; }}
"""
CLIENTS = 8


def timed(what, clock, command, *options):
    begun = time.monotonic()
    manifest, model = trace(4, command, "--no-trace", "--clock", clock, *options, machine=MACHINE)
    took = time.monotonic() - begun
    parts = [model[part]["instructions"] for part in ("totals", "others", "idle", "ticks")]
    print(f"{what}, --clock {clock}: {took:.0f} s in all, window {manifest['window_ns'] / 1e9:.1f} s (measured); "
          f"ticks are {parts[3] / sum(parts):.0%} of {sum(parts) / 1e6:.0f} M instructions", flush=True)
    return took < LIMIT_S


def server(place, requests, clock):
    if not shutil.which("nginx"):
        print("64 workers: skipped, nginx is not installed")
        return True
    os.makedirs(f"{place}/www", exist_ok=True)
    for name, text in (("www/index.html", "x" * 4096), ("nginx.conf", CONFIG.format(place=place))):
        with open(f"{place}/{name}", "w") as file:
            file.write(text)
    os.chmod(place, 0o755)
    load = f"{SUBJECTS}/mixed-server --get --port 8081 --processes {CLIENTS} --transactions {requests // CLIENTS}"
    return timed(f"64 workers, {requests:,} requests", clock, [shutil.which("nginx"), "-c", f"{place}/nginx.conf"],
                 "--load", load, "--ready", "127.0.0.1:8081")


def main():
    chosen = sys.argv[1:] or ["ls", "server", "clock"]
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        print(cpu())
        good = True
        if "ls" in chosen:
            good &= timed("ls -lR /usr/share/doc", "host", ["ls", "-lR", "/usr/share/doc"])
            good &= timed("ls -lR /usr/share/doc", "instructions", ["ls", "-lR", "/usr/share/doc"])
        if "server" in chosen:
            good &= server(place, 1000, "instructions")
        if "clock" in chosen:
            # The figures under the host's clock are printed, not judged.
            server(place, 200, "instructions")
            server(place, 200, "host")
        sys.exit(0 if good else 1)


main()
