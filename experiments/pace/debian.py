"""Debian's servers as the experiments with pace start them, each with a load at a fixed rate."""
import dataclasses
import datetime
import os
import pathlib
import re
import shutil
import subprocess

BINARIES = pathlib.Path(__file__).resolve().parents[2] / "target/release"
NEARMISS = BINARIES / "nearmiss"
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
server.max-keep-alive-requests = 60000
server.max-fds = 4096
"""
VARNISH = """vcl 4.1;
backend none none;
sub vcl_recv { return (synth(200)); }
"""
NODE = """const body = 'x'.repeat(1024);
const server = require('http').createServer((request, response) => response.end(body));
server.keepAliveTimeout = 600000;
server.listen({port}, '127.0.0.1');
"""

# Figures that `nearmiss verify` reads of loads that it does not know.
DNSPERF = ["--work", r"Queries completed: +([0-9]+)", "--achieved", r"Queries per second: +([0-9.]+)",
           "--metric", r"Average Latency \(s\): +([0-9.]+)"]
PGBENCH = ["--work", r"actually processed: ([0-9]+)", "--achieved", r"tps = ([0-9.]+)",
           "--metric", r"latency average = ([0-9.]+)"]


@dataclasses.dataclass
class Server:
    """A server: its command, and the load for a number of seconds."""
    command: list
    load: object
    rate: int
    options: list = dataclasses.field(default_factory=list)
    # Programs beside the server's own.
    needs: tuple = ()
    # Share that a run may miss of its rate: of a load of a second or two, some answers are still under way at its end.
    within: str = "3%"
    # Done once before the server's first start.
    prepare: object = lambda: None

    def missing(self):
        return [program for program in (self.command[0], *self.needs) if not shutil.which(program)]


def webload(protocol, target, rate, *more):
    def line(seconds):
        words = [f"{BINARIES}/nearmiss-webload", "rate", "--rps", str(rate), "--connections", "300", "--warm-up", "500ms",
                 "--for", f"{seconds}s", "--protocol", protocol, *more, target]
        return " ".join(words)
    return line


def servers(place, rate):
    """Servers by name; those of which a gain is wanted come first."""
    files = {"nginx.conf": NGINX.format(dir=place, port=PORT, method=""), "page": "x" * 1024,
             "nginx-poll.conf": NGINX.format(dir=place, port=PORT, method="use poll;"),
             "haproxy.cfg": HAPROXY.format(port=PORT, body="x" * 1024),
             "lighttpd.conf": LIGHTTPD.format(dir=place, port=PORT), "varnish.vcl": VARNISH,
             "server.js": NODE.replace("{port}", str(PORT)), "queries": "server.test A\n"}
    for name, text in files.items():
        (place / name).write_text(text)
    # Workers and PostgreSQL give up root's rights.
    place.chmod(0o755)
    here, url = f"127.0.0.1:{PORT}", f"http://127.0.0.1:{PORT}/page"
    nginx = ["nginx", "-p", str(place), "-c"]
    haproxy = ["haproxy", "-db", "-f", f"{place}/haproxy.cfg"]
    memcached = ["memcached", "-u", "root", "-l", "127.0.0.1", "-p", str(PORT), "-c", "4000", "-t"]
    http = webload("http", url, rate)
    slower = rate * 3 // 5
    return {
        "nginx": Server([*nginx, f"{place}/nginx.conf"], http, rate),
        "redis": Server(["redis-server", "--port", str(PORT), "--save", "", "--appendonly", "no"], webload("resp", here, rate), rate),
        "haproxy": Server(haproxy, http, rate),
        "haproxy-poll": Server([*haproxy, "-de"], http, rate),
        "lighttpd-poll": Server(["lighttpd", "-D", "-f", f"{place}/lighttpd.conf"], http, rate),
        "memcached-1": Server([*memcached, "1"], webload("memcached", here, rate), rate),
        "nginx-poll": Server([*nginx, f"{place}/nginx-poll.conf"], http, rate),
        "node": Server(["node", f"{place}/server.js"], webload("http", url, slower), slower),
        "postgres": postgres(place, rate // 5),
        "varnish": Server(["varnishd", "-F", "-n", f"{place}/varnish", "-a", here, "-f", f"{place}/varnish.vcl"], http, rate),
        "dnsmasq": dnsmasq(place, rate),
        "memcached-4": Server([*memcached, "4"], webload("memcached", here, rate), rate),
        # Several source addresses: ports of ended connections rest for a minute.
        "nginx-close": Server([*nginx, f"{place}/nginx.conf"],
                              webload("http", url, slower, "--connection-a-request", "--sources", "16"), slower),
    }


# Servers that must gain, and servers that must not get worse.
GAIN = ["nginx", "redis", "haproxy", "haproxy-poll", "lighttpd-poll", "memcached-1"]
NO_WORSE = ["node", "postgres", "varnish", "dnsmasq", "memcached-4", "nginx-close"]


def dnsmasq(place, rate):
    command = ["dnsmasq", "-k", "-u", "root", "-p", str(PORT), "--listen-address=127.0.0.1", "--bind-interfaces",
               "--no-resolv", "--no-hosts", "--conf-file=/dev/null", "--pid-file=", "--address=/test/10.0.0.1"]
    load = lambda seconds: f"dnsperf -s 127.0.0.1 -p {PORT} -d {place}/queries -l {max(2, round(seconds))} -Q {rate} -c 50"
    return Server(command, load, rate, [*DNSPERF, "--offered", str(rate)], ("dnsperf",))


def postgres(place, rate):
    """A cluster of its own; root may not run it."""
    data, query = f"{place}/postgres", place / "query"
    user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []

    def prepare():
        os.mkdir(data)
        if user:
            shutil.chown(data, "postgres", "postgres")
        done = subprocess.run([*user, "initdb", "-A", "trust", "-U", "postgres", "-D", data], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"initdb: {done.stderr.strip()}")

    command = [*user, "postgres", "-D", data, "-p", str(PORT), "-k", data, "-c", "autovacuum=off"]
    query.write_text("SELECT 1;\n")
    # Each transaction is due at a random time, and pgbench counts its latency from there: the rate differs by itself.
    load = lambda seconds: (f"pgbench -n -f {query} -h {data} -p {PORT} -U postgres -c 20 -R {rate} "
                            f"-T {max(2, round(seconds))} postgres")
    return Server(command, load, rate, [*PGBENCH, "--offered", str(rate)], ("postgres", "initdb", "pgbench"), "10%", prepare)


def machine():
    """The first line of an output: where and when its figures were measured."""
    model = re.search("model name\\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    load = os.getloadavg()[0]
    today = datetime.date.today().isoformat()
    return f"measured on {today}, {model[1] if model else 'an unnamed CPU'}, {os.cpu_count()} CPUs, load average {load:.1f} at the start"
