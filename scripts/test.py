#!/usr/bin/env python3
"""Runs every test of the workspace and ends with one line in the runner's form, summed over its test binaries.

Usage: scripts/test.py [arguments of cargo test] [-- arguments of the test binaries]
The test binaries that boot guests run beside each other, since one alone leaves CPUs idle. The others follow one by one,
as under `cargo test`, and those that only compute beside them, on one CPU while another binary runs. All output is in
target/test.log as well.
"""

import contextlib, json, os, queue, re, subprocess, sys, tempfile, threading

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CARGO = os.environ.get("CARGO", "cargo")
PROFILE = ["--profile", "checks", "--workspace"]
# Test binaries whose tests boot guests.
OF_GUESTS = ("guest", "walls")
# Test binaries that compute, and neither wait for anything nor measure: they run beside those that do, longest first.
OF_COMPUTING = ("papers", "streams", "report", "nearmiss_machine", "nearmiss_remedies", "record", "code")
# A guest's start waits more than it computes: one test more than CPUs keeps them busy.
THREADS = (os.cpu_count() or 1) + 1


class Log:
    """Prints, and keeps what it printed."""

    def __init__(self, path):
        self.file = open(path, "wb")
        self.passed = self.failed = self.ignored = 0

    def line(self, line):
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
        self.file.write(line)
        counts = re.match(rb"test result: .*?(\d+) passed; (\d+) failed; (\d+) ignored", line)
        if counts:
            self.passed, self.failed, self.ignored = (
                before + int(more) for before, more in zip((self.passed, self.failed, self.ignored), counts.groups()))

    def follow(self, output):
        for line in output:
            self.line(line)


def built(arguments):
    """Test binaries in cargo's order: target, path and package directory. Ends with cargo's status where it fails."""
    command = [CARGO, "test", *PROFILE, "--no-run", "--message-format", "json-render-diagnostics", *arguments]
    cargo = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
    messages = [json.loads(line) for line in cargo.stdout]
    if cargo.wait():
        sys.exit(cargo.returncode)
    artifacts = [message for message in messages if message.get("executable") and message["profile"]["test"]]
    return sorted((os.path.dirname(one["manifest_path"]), one["target"]["kind"] != ["lib"], one["target"]["name"], one["executable"])
                  for one in artifacts)


def start(binary, options, threads, output):
    directory, _, _, path = binary
    environment = os.environ | {"RUST_TEST_THREADS": os.environ.get("RUST_TEST_THREADS", str(threads))}
    return subprocess.Popen([path, *options], cwd=directory, env=environment, stdout=output, stderr=subprocess.STDOUT)


def run(binary, options, threads, log):
    """Runs a binary; returns whether it failed."""
    log.line(title(binary))
    running = start(binary, options, threads, subprocess.PIPE)
    log.follow(running.stdout)
    return running.wait() != 0


def run_beside(foreground, background, options, threads, log):
    """Runs two lists of binaries beside each other, each one by one; returns whether one failed.

    The background has one thread; its outputs follow those of the foreground that they met. Once the foreground is done,
    a second binary of the background may run beside the first.
    """
    waiting, done = queue.SimpleQueue(), queue.SimpleQueue()
    [waiting.put(binary) for binary in background]

    def work():
        while not waiting.empty():
            with contextlib.suppress(queue.Empty):
                binary, output = waiting.get_nowait(), tempfile.TemporaryFile()
                done.put((binary, output, start(binary, options, 1, output).wait() != 0))

    def show():
        failed = False
        while not done.empty():
            binary, output, status = done.get()
            log.line(title(binary))
            output.seek(0)
            log.follow(output)
            failed |= status
        return failed

    beside = threading.Thread(target=work)
    beside.start()
    failed = any([run(binary, options, threads, log) | show() for binary in foreground])
    work()
    beside.join()
    return failed | show()


def title(binary):
    return f"     Running {os.path.relpath(binary[0], ROOT)}: {os.path.basename(binary[3])}\n".encode()


def documented(arguments, options, log):
    """Runs the examples in documents; returns whether one failed."""
    command = [CARGO, "test", *PROFILE, "--no-fail-fast", "--doc", *arguments, "--", *options]
    cargo = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT)
    log.follow(cargo.stdout)
    return cargo.wait() != 0


def main():
    arguments, options = split(sys.argv[1:])
    os.makedirs(f"{ROOT}/target", exist_ok=True)
    log = Log(f"{ROOT}/target/test.log")
    binaries = built(arguments)
    of_guests = [binary for binary in binaries if binary[2] in OF_GUESTS]
    computing = sorted((binary for binary in binaries if binary[2] in OF_COMPUTING), key=lambda one: OF_COMPUTING.index(one[2]))
    others = [binary for binary in binaries if binary not in of_guests + computing]
    failed = run_beside(of_guests[:1], of_guests[1:], options, THREADS, log)
    failed |= run_beside(others, computing, options, THREADS - 1, log)
    if not {"--test", "--lib", "--bin", "--bins", "--tests"} & set(arguments):
        failed |= documented(arguments, options, log)
    verdict = "FAILED" if failed or log.failed else "ok"
    log.line(f"test result: {verdict}. {log.passed} passed; {log.failed} failed; {log.ignored} ignored\n".encode())
    sys.exit(1 if failed else 0)


def split(words):
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


try:
    main()
except KeyboardInterrupt:
    sys.exit(130)
