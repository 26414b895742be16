"""Shared by the judges: the options, the build of the programs, one call of nearmiss, and how a finding is read."""

import argparse, concurrent.futures, fnmatch, json, os, re, signal, subprocess, sys, tempfile, time, tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
COMPILERS = {".c": ["gcc", "-std=gnu11"], ".cpp": ["g++", "-std=gnu++17"]}
FLAGS = ["-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"]


def options(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--nearmiss", default=f"{ROOT}/target/release/nearmiss", help="the binary that is judged")
    parser.add_argument("--only", metavar="GLOB", default="*", help="only what has such a name")
    parser.add_argument("--json", action="store_true", help="print a record, and the progress to standard error")
    parser.add_argument("--jobs", type=int, default=1, help="so many at a time; more than one makes times worthless")
    parser.add_argument("--time-limit", type=float, default=600, metavar="SECONDS", help="of one call of nearmiss")
    parser.add_argument("--build-only", action="store_true", help="build the programs and end")
    return parser


class Judge:
    """One run of a judge: its place on disk, its progress, its record."""

    def __init__(self, chosen):
        self.chosen = chosen
        self.nearmiss = os.path.realpath(chosen.nearmiss)
        if not chosen.build_only and not os.access(self.nearmiss, os.X_OK):
            sys.exit(f"{chosen.nearmiss} is no program: build nearmiss first, or name the binary with --nearmiss")
        self.running = set()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: sys.exit(130))
        self.place = tempfile.TemporaryDirectory(prefix="nearmiss-recall-")
        self.record = {"cpu": cpu(), "date": time.strftime("%Y-%m-%d %H:%M"), "binary": version(chosen, self.nearmiss)}
        self.log(f"{self.record['cpu']}, {self.record['date']}; {self.record['binary']}")

    def log(self, line):
        print(line, flush=True, file=sys.stderr if self.chosen.json else sys.stdout)

    def wanted(self, name):
        return fnmatch.fnmatch(name, self.chosen.only)

    def each(self, work, items):
        """The results of `work` on all items, in their order, as they come."""
        pool = concurrent.futures.ThreadPoolExecutor(self.chosen.jobs)
        try:
            yield from pool.map(work, items)
        finally:
            for process in list(self.running):
                end(process)
            pool.shutdown(cancel_futures=True)

    def build(self, source, name, *flags):
        """Compiles a program of this folder; its name ends so that no name in its source is the same."""
        out = f"{self.place.name}/{name}.bin"
        words = [*COMPILERS[os.path.splitext(source)[1]], *FLAGS, *flags, "-o", out, source]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(words)}:\n{done.stderr}")
        return out

    def call(self, folder, *words):
        """Calls nearmiss in a folder of its own; returns its output, or a line with the reason why there is none."""
        process = subprocess.Popen([self.nearmiss, *words], cwd=folder, stdin=subprocess.DEVNULL, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        self.running.add(process)
        try:
            out, err = process.communicate(timeout=self.chosen.time_limit)
        except subprocess.TimeoutExpired:
            end(process)
            return None, f"not done after {self.chosen.time_limit:.0f} s"
        finally:
            self.running.discard(process)
        if process.returncode == 0:
            return out, None
        return None, f"status {process.returncode}: {(err.strip().splitlines() or ['no message'])[-1]}"

    def diagnose(self, command, files=None):
        """The findings of a command with default options, or why there are none. `files` is the folder it starts in."""
        with tempfile.TemporaryDirectory(dir=self.place.name) as runs:
            begun = time.monotonic()
            out, why = self.call(files or runs, "diagnose", "--json", "--runs", runs, "--", *command)
            seconds = time.monotonic() - begun
        return {"findings": json.loads(out)["findings"] if out else None, "failed": why, "seconds": round(seconds, 1)}

    def end(self, good):
        self.record["good"] = good
        if self.chosen.json:
            json.dump(self.record, sys.stdout, indent=1)
            print()
        return 0 if good else 1


def table(source):
    """The description in the head of a program: TOML in the lines that begin with ` *:`, `//:` or `#:`."""
    lines = re.findall(r"^(?: \*|//|#):(?: (.*))?$", open(source).read(), re.M)
    try:
        return tomllib.loads("\n".join(lines))
    except tomllib.TOMLDecodeError as why:
        sys.exit(f"{source}: the table in its head is no TOML: {why}")


def program_of(source):
    return os.path.splitext(os.path.basename(source))[0]


def cpu():
    model = re.search("model name\\s*: (.*)", open("/proc/cpuinfo").read())
    return f"on {model[1] if model else 'an unnamed CPU'}, {os.cpu_count()} CPUs"


def version(chosen, nearmiss):
    if chosen.build_only:
        return "build only"
    return subprocess.run([nearmiss, "--version"], capture_output=True, text=True).stdout.strip()


def end(process):
    """Sends our own child SIGTERM, and ends its session if it stays."""
    process.terminate()
    try:
        process.wait(timeout=15)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def kind(finding):
    """crowd, aliasing, sharing; or the name of the remedy."""
    if finding["remedy"] == "color":
        return "crowd" if rows(finding, "levels") else "aliasing"
    return {"apart": "sharing"}.get(finding["remedy"], finding["remedy"])


def rows(finding, title):
    return [row for table in finding["evidence"]["tables"] if table["title"] == title for row in table["rows"]]


def text_of_finding(finding):
    """All text of a finding for its reader, without the command lines."""
    inside = finding["reach"]["inside"] if isinstance(finding["reach"], dict) else {}
    cells = [cell["text"] for table in finding["evidence"]["tables"] for row in table["rows"] for cell in row
             if isinstance(cell, dict) and "text" in cell]
    function = (finding["prediction"].get("function") or {}).get("name", "")
    return "\n".join([finding["symptom"], finding["cause"], finding["treatment"], *inside.values(), function,
                      *(line["text"] for line in finding["evidence"]["lines"]), *cells])


def names(text, wanted):
    """Whether a text names one of the wanted functions or objects. A file's name or a command's is not one."""
    return any(re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w-]|\.[a-z])", text) for name in wanted)
