#!/usr/bin/env python3
"""Lets headless Chromium read a site through nearmiss-accelerator, and checks what it got.

Debian's nginx serves the site: text that it compresses, images, sounds longer and shorter than what the accelerator
stores. The accelerator runs with examples/accelerator.toml, where only the three ports are others. Chromium is
driven through its DevTools, by a pipe. Each check prints one line, `ok` or `FAILED`; the exit status is 1 where one
failed. The figures are counts of answers, as Chromium and nginx saw them.

  experiments/accelerator/chromium.py
  experiments/accelerator/chromium.py --engine poll --keep      # keeps the folder with the logs

Needs chromium, nginx (Debian: chromium, nginx-light) and target/release/nearmiss-accelerator.
"""

import argparse
import fcntl
import gzip
import json
import os
import pathlib
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
import wave
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ports import free_port, wait_for  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGES = 12
TABS = 20
PATIENCE_S = 60

NGINX = """
worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx-error.log;
events {{ worker_connections 1024; }}
http {{ include /etc/nginx/mime.types; sendfile on; tcp_nopush on; gzip on; gzip_vary on; gzip_proxied any;
  gzip_types text/css application/javascript application/json; log_format requests
    '$request_method $request_uri $status "$http_if_none_match" "$http_range" "$http_cache_control"';
  access_log {folder}/requests.log requests;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{ listen 127.0.0.1:{port}; root {folder}/site; absolute_redirect off;
    location / {{ add_header Cache-Control "max-age=3600"; }}
    location ~ \\.html$ {{ add_header Cache-Control "max-age=1"; }}
    location /always/ {{ add_header Cache-Control "no-cache"; }}
    location = /old.html {{ return 301 /two.html; }}
    location = /method {{ add_header Cache-Control "no-store"; return 200 "$request_method"; }}
    location = /who {{ add_header Cache-Control "private"; add_header Set-Cookie "who=$request_id"; return 200 "$request_id"; }}
  }} }}
"""

PAGE = """<!doctype html><html><head><meta charset="utf-8"><title>{title}</title>
<link rel="stylesheet" href="/style.css"></head><body><h1 id="head">{title}</h1>
<p id="script">not run</p><script src="/script.js"></script>
{images}<a href="/two.html">on</a></body></html>
"""


def image(number):
    """A PNG of its own width."""
    width, height = 16 + number, 24
    def part(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    rows = b"".join(b"\0" + bytes([number * 20 % 256, 90, 160]) * width for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b"")


def sound(path, seconds):
    """A saw, 44.1 kHz and 16 bits: 88,200 bytes a second."""
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 44100, 0, "NONE", "not compressed"))
        period = b"".join(struct.pack("<h", step * 80) for step in range(-50, 50))
        file.writeframes(period * (441 * seconds))


def build(site):
    (site / "always").mkdir(parents=True)
    for number in range(IMAGES):
        (site / f"{number}.png").write_bytes(image(number))
    (site / "favicon.ico").write_bytes(image(0))
    (site / "always/0.png").write_bytes(image(50))
    images = "".join(f'<img src="/{number}.png">' for number in range(IMAGES)) + '<img src="/always/0.png">'
    for name in ("index", "two", "three"):
        (site / f"{name}.html").write_text(PAGE.format(title=name, images=images))
    (site / "style.css").write_text("h1 { color: rgb(1, 2, 3); }\n" + "/* filling */\n" * 500)
    script = "document.getElementById('script').textContent = 'run';\n"
    (site / "script.js").write_text(script + "// filling\n" * 2000)
    (site / "data.json").write_text(json.dumps({"numbers": list(range(3000))}))
    for name, seconds in (("short", 80), ("long", 240)):
        sound(site / f"{name}.wav", seconds)
        page = f'<!doctype html><title>{name}</title><audio id="sound" preload="metadata" src="/{name}.wav"></audio>'
        (site / f"{name}.html").write_text(page)


class Chromium:
    """A headless browser and the answers that it got, spoken to through a pipe."""

    def __init__(self, folder):
        from_us, to_browser = os.pipe()
        from_browser, to_us = os.pipe()
        def lay_pipes():
            # Copies far from 3 and 4, so that neither is overwritten before it is copied.
            reading, writing = (fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (from_us, to_us))
            os.dup2(reading, 3)
            os.dup2(writing, 4)
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--mute-audio", "--remote-debugging-pipe",
                   "--autoplay-policy=no-user-gesture-required", f"--user-data-dir={folder}/profile", "about:blank"]
        log = open(folder / "chromium.log", "wb")
        self.process = subprocess.Popen(command, preexec_fn=lay_pipes, close_fds=False, stdout=log, stderr=log)
        os.close(from_us)
        os.close(to_us)
        self.output, self.input, self.unread, self.serial = to_browser, from_browser, b"", 0
        self.events = []

    def take(self, until):
        """Reads messages until `until(message)` holds, and returns that message."""
        end = time.monotonic() + PATIENCE_S
        while True:
            while b"\0" in self.unread:
                text, self.unread = self.unread.split(b"\0", 1)
                message = json.loads(text)
                if "method" in message:
                    self.events.append(message)
                if until(message):
                    return message
            if not select.select([self.input], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError
            more = os.read(self.input, 1 << 20)
            if not more:
                raise EOFError("chromium ended")
            self.unread += more

    def call(self, method, session=None, **parameters):
        self.serial += 1
        serial = self.serial
        message = {"id": serial, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        os.write(self.output, json.dumps(message).encode() + b"\0")
        answer = self.take(lambda message: message.get("id") == serial)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def tab(self, context=None):
        where = {"browserContextId": context} if context else {}
        target = self.call("Target.createTarget", url="about:blank", **where)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            self.call(f"{domain}.enable", session)
        return Tab(self, session, target)

    def end(self):
        try:
            self.call("Browser.close")
            self.process.wait(10)
        except (OSError, EOFError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


class Tab:
    def __init__(self, browser, session, target):
        self.browser, self.session, self.target = browser, session, target

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def loaded(self, what):
        """Does `what` and waits for the page's load event; returns the answers that came meanwhile."""
        begin = len(self.browser.events)
        what()
        ends = lambda message: message.get("method") == "Page.loadEventFired" and message.get("sessionId") == self.session
        if not any(ends(message) for message in self.browser.events[begin:]):
            self.browser.take(ends)
        self.settle()
        return self.answers(begin)

    def settle(self):
        """Waits: Chromium reports the last answers after the load event."""
        self.run("new Promise(done => setTimeout(done, 300))")

    def go(self, url):
        return self.loaded(lambda: self.call("Page.navigate", url=url))

    def run(self, script):
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            return str(result["exceptionDetails"].get("exception", {}).get("description", "an exception"))
        return result["result"].get("value")

    def answers(self, begin):
        """Path → (status on the wire, header fields) for each answer from the network since event `begin`."""
        paths, found = {}, []
        for event in self.browser.events[begin:]:
            if event.get("sessionId") != self.session:
                continue
            of = event["params"]
            if event["method"] == "Network.requestWillBeSent":
                paths[of["requestId"]] = re.sub(r"^https?://[^/]*", "", of["request"]["url"])
            elif event["method"] == "Network.responseReceivedExtraInfo":
                fields = {name.lower(): value for name, value in of["headers"].items()}
                found.append((of["requestId"], of["statusCode"], fields))
        return [(paths.get(request, "?"), status, fields) for request, status, fields in found]


class Checks:
    def __init__(self):
        self.failed = 0

    def that(self, what, holds, seen=""):
        self.failed += not holds
        print(f"{'ok    ' if holds else 'FAILED'}  {what}" + (f": {seen}" if seen != "" else ""), flush=True)


def word(fields):
    """`hit`, or the reason for a request to the origin in Cache-Status."""
    status = fields.get("cache-status", "no Cache-Status")
    return "hit" if "; hit" in status else status.split("fwd=")[-1].split(";")[0]


def of(answers, path):
    return [(status, fields) for found, status, fields in answers if found == path]


def shown(tab):
    return tab.run("""[document.title, document.getElementById('head').textContent,
        getComputedStyle(document.getElementById('head')).color, document.getElementById('script').textContent,
        [...document.images].map(image => image.naturalWidth)]""")


def page(name):
    return [name, name, "rgb(1, 2, 3)", "run", [16 + number for number in range(IMAGES)] + [66]]


def pages(checks, browser, site):
    tab = browser.tab()
    answers = tab.go(f"{site.url}/index.html")
    checks.that("a page with its style, script and images", shown(tab) == page("index"), f"{len(answers)} answers")
    checks.that("every answer names its source in Cache-Status",
                answers and all("nearmiss;" in fields.get("cache-status", "") for _, _, fields in answers))
    checks.that("each went to the origin", all(word(fields) == "uri-miss" for _, _, fields in answers))
    other = browser.tab(browser.call("Target.createBrowserContext")["browserContextId"])
    answers = other.go(f"{site.url}/two.html")
    words = {path: word(fields) for path, _, fields in answers}
    shared = [path for path in words if path.endswith((".css", ".js")) or re.fullmatch(r"/\d+\.png", path)]
    checks.that("a second browser's page", shown(other) == page("two"))
    checks.that("its style, script and images are hits", len(shared) == IMAGES + 2
                and all(words[path] == "hit" for path in shared), f"{len(shared)} hits")
    return tab


def reloads(checks, tab, site):
    time.sleep(1.2)
    answers = tab.loaded(lambda: tab.call("Page.reload"))
    checks.that("a reload is conditional", [s for s, _ in of(answers, "/index.html")] == [304], "304")
    checks.that("an image that is always requested is requested with a condition",
                [s for s, _ in of(answers, "/always/0.png")] == [304], "304")
    checks.that("the page is whole after the reload", shown(tab) == page("index"))
    before = len(site.requests())
    answers = tab.loaded(lambda: tab.call("Page.reload", ignoreCache=True))
    requests = site.requests()[before:]
    checks.that("a hard reload is answered whole", {s for _, s, _ in answers} == {200} and shown(tab) == page("index"),
                f"{len(answers)} answers")
    validated = {line.split()[1] for line in requests if '"no-cache"' in line and " 304 " in line}
    checks.that("and sends each to the origin", validated >= {path for path, _, _ in answers}, f"{len(validated)} validations")
    (site.folder / "site/index.html").write_text((site.folder / "site/index.html").read_text().replace("index", "new"))
    time.sleep(1.2)
    tab.loaded(lambda: tab.call("Page.reload"))
    checks.that("a page that changed is new after a reload", shown(tab) == page("new"))


def history(checks, tab, site):
    tab.go(f"{site.url}/two.html")
    tab.go(f"{site.url}/old.html")
    checks.that("a redirection is followed", tab.run("location.href") == f"{site.url}/two.html")
    for step, name in ((-1, "two"), (-1, "new"), (1, "two")):
        entries = tab.call("Page.getNavigationHistory")
        entry = entries["entries"][entries["currentIndex"] + step]
        tab.call("Page.navigateToHistoryEntry", entryId=entry["id"])
        end = time.monotonic() + 10
        while time.monotonic() < end and tab.run("document.readyState + document.title") != f"complete{name}":
            time.sleep(0.1)
        way = "back" if step < 0 else "forward"
        checks.that(f"{way} to `{name}`", shown(tab) == page(name))


def text(checks, tab, site):
    answers = tab.loaded(lambda: tab.call("Page.reload", ignoreCache=True))
    fields = of(answers, "/style.css")[0][1]
    checks.that("text comes compressed", fields.get("content-encoding") == "gzip" and "Accept-Encoding" in fields.get("vary", ""))
    with urllib.request.urlopen(f"{site.url}/style.css") as plain:
        body, coding = plain.read(), plain.headers["Content-Encoding"]
    request = urllib.request.Request(f"{site.url}/style.css", headers={"Accept-Encoding": "gzip, deflate"})
    with urllib.request.urlopen(request) as packed:
        unpacked = gzip.decompress(packed.read())
    right = (site.folder / "site/style.css").read_bytes()
    checks.that("a client without gzip gets it plain, one with gzip gets the same text", coding is None and body == unpacked == right)
    script = "fetch('/data.json', {cache: 'no-store'}).then(answer => answer.json()).then(data => data.numbers.length)"
    checks.that("a script's fetch of JSON", tab.run(script) == 3000)
    script = "fetch('/method', {method: 'POST', body: 'x'.repeat(200000)}).then(answer => answer.text())"
    checks.that("a script's POST of 200 KB", tab.run(script) == "POST")
    script = "fetch('/none.html').then(answer => answer.status)"
    checks.that("what is not there is 404", tab.run(script) == 404)
    names = [tab.run("fetch('/who', {cache: 'no-store'}).then(answer => answer.text())") for _ in range(2)]
    checks.that("a private answer with a cookie is nobody else's", len(set(names)) == 2)
    script = f"Promise.all([...Array(200).keys()].map(n => fetch('/' + n % {IMAGES} + '.png', {{cache: 'no-store'}})" \
             ".then(answer => answer.arrayBuffer()).then(bytes => bytes.byteLength))).then(all => all.filter(n => n > 0).length)"
    checks.that("200 fetches at once", tab.run(script) == 200)


SEEK = """new Promise(done => {{ const sound = document.getElementById('sound');
  sound.onerror = () => done('error ' + sound.error.message);
  sound.onseeked = () => done(Math.round(sound.currentTime)); sound.currentTime = {to}; }})"""
PLAY = """new Promise(done => {{ const sound = document.getElementById('sound'); const from = sound.currentTime;
  sound.ontimeupdate = () => {{ if (sound.currentTime > from + 0.5) {{ sound.pause(); done('played'); }} }};
  sound.play().catch(error => done('' + error)); }})"""


def media(checks, browser, site, name, seconds, is_stored):
    tab = browser.tab()
    begin = len(browser.events)
    tab.go(f"{site.url}/{name}.html")
    ready = """new Promise(done => { const sound = document.getElementById('sound');
        if (sound.readyState > 0) done(sound.duration); sound.onloadedmetadata = () => done(sound.duration);
        sound.onerror = () => done('error ' + sound.error.message); })"""
    checks.that(f"{name} sound: its length", tab.run(ready) == seconds, f"{seconds} s")
    checks.that(f"{name} sound: plays", tab.run(PLAY.format()) == "played")
    for to in (seconds - 10, seconds // 2, 3):
        checks.that(f"{name} sound: a seek to {to} s", tab.run(SEEK.format(to=to)) == to and tab.run(PLAY.format()) == "played")
    tab.settle()
    answers = of(tab.answers(begin), f"/{name}.wav")
    words = [word(fields) for _, fields in answers]
    checks.that(f"{name} sound: parts only", len(answers) > 1 and {status for status, _ in answers} == {206},
                f"{len(answers)} answers of 206: {', '.join(words)}")
    size = (site.folder / f"site/{name}.wav").stat().st_size
    checks.that(f"{name} sound: Content-Range", all(fields["content-range"].endswith(f"/{size}") for _, fields in answers))
    if is_stored:
        whole = [line for line in site.requests() if f"/{name}.wav" in line]
        checks.that(f"{name} sound: seeks are hits, the origin got one request", words[1:] == ["hit"] * (len(words) - 1)
                    and len(whole) == 1)
    browser.call("Target.closeTarget", targetId=tab.target)


def tabs(checks, browser, site):
    all_tabs = [browser.tab(browser.call("Target.createBrowserContext")["browserContextId"]) for _ in range(TABS)]
    for number, tab in enumerate(all_tabs):
        tab.call("Page.navigate", url=f"{site.url}/three.html?{number}")
    end = time.monotonic() + PATIENCE_S
    waiting = list(all_tabs)
    while waiting and time.monotonic() < end:
        waiting = [tab for tab in waiting if tab.run("document.readyState + document.title") != "completethree"]
    right = sum(shown(tab) == page("three") for tab in all_tabs)
    checks.that("many tabs at once, each a browser of its own", right == TABS, f"{right} of {TABS} pages whole")


class Site:
    def __init__(self, folder, options):
        self.folder = folder
        build(folder / "site")
        ports = {8080: free_port(), 8081: free_port(), 8082: free_port()}
        (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=ports[8080]))
        settings = (ROOT / "examples/accelerator.toml").read_text()
        for usual, port in ports.items():
            settings = settings.replace(f"127.0.0.1:{usual}", f"127.0.0.1:{port}")
        settings = settings.replace('engine = "epoll"', f'engine = "{options.engine}"').replace('pace = "off"', f'pace = "{options.pace}"')
        (folder / "accelerator.toml").write_text(settings)
        self.url = f"http://127.0.0.1:{ports[8081]}"
        binary = str(ROOT / "target/release/nearmiss-accelerator")
        self.servers = []
        for who, port, command in (("nginx", ports[8080], ["nginx", "-c", f"{folder}/nginx.conf"]),
                                   ("accelerator", ports[8081], [binary, "--config", f"{folder}/accelerator.toml"])):
            log = open(folder / f"{who}.log", "wb")
            self.servers.append(subprocess.Popen(command, stdout=log, stderr=log))
            wait_for(port, who)

    def requests(self):
        """The requests that nginx got so far."""
        return (self.folder / "requests.log").read_text().splitlines()

    def end(self):
        for server in reversed(self.servers):
            server.send_signal(signal.SIGTERM)
        return [server.wait(20) for server in reversed(self.servers)]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="epoll")
    parser.add_argument("--pace", default="off")
    parser.add_argument("--keep", action="store_true", help="keep the folder with the logs")
    return parser.parse_args()


def main():
    options = arguments()
    for tool in ("nginx", "chromium"):
        if not shutil.which(tool):
            sys.exit(f"chromium.py: {tool}: not installed; apt-get install nginx-light chromium")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="chromium-"))
    folder.chmod(0o755)
    checks, site, browser = Checks(), None, None
    try:
        site = Site(folder, options)
        browser = Chromium(folder)
        tab = pages(checks, browser, site)
        reloads(checks, tab, site)
        history(checks, tab, site)
        text(checks, tab, site)
        media(checks, browser, site, "short", 80, True)
        media(checks, browser, site, "long", 240, False)
        tabs(checks, browser, site)
    finally:
        if browser:
            browser.end()
        if site:
            checks.that("the accelerator ends well", site.end()[0] == 0)
        if options.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{checks.failed} failed")
    sys.exit(1 if checks.failed else 0)


if __name__ == "__main__":
    main()
