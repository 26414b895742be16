#!/usr/bin/env python3
"""Ctrl-C at many instants of `nearmiss diagnose -- CMD`: what ends when, and what the user sees.

Run after `make build`: experiments/answer/interrupts.py [INSTANTS]    (20)
The command would run for minutes. Each instant is interrupted once; every fourth also a second time, and the instant
after it is asked to terminate. All times are measured. Ends with status 1 if the guest runs on for more than 3 s, the
answer takes more than 20 s after that, no line states why there is none, a second interrupt leaves nearmiss running for
more than 1 s, or a termination for more than 3 s.
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEARMISS = os.environ.get("NEARMISS", ROOT / "target/release/nearmiss")
COMMAND = ["python3", "-c", "print(sum(i * i % 7 for i in range(4000000000)))"]
LAST_INSTANT = 50.0


def guests_of(pid):
    """Emulators among the descendants of a process."""
    parents = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)
            parents[int(entry.name)] = (int(fields[1].split()[1]), fields[0].split("(", 1)[1], fields[1].split()[0])
        except OSError:
            continue
    def descends(one):
        while one in parents and one != pid:
            one = parents[one][0]
        return one == pid
    return [one for one, (_, name, state) in parents.items() if name.startswith("qemu") and state != "Z" and descends(one)]


def seconds_until(condition, most):
    begun = time.monotonic()
    while time.monotonic() - begun < most:
        if condition():
            return time.monotonic() - begun
        time.sleep(0.02)
    return None


def instant(at, second, terminate, place):
    """The line about one instant, and what went wrong; None where all is well, or the answer was there already."""
    out, err = open(place / "out", "w+"), open(place / "err", "w+")
    running = subprocess.Popen([NEARMISS, "diagnose", "--", *COMMAND], cwd=place, stdout=out, stderr=err, start_new_session=True)
    time.sleep(at)
    if running.poll() is not None:
        return f"at {at:4.1f} s: it had ended by itself", None
    running.send_signal(signal.SIGTERM if terminate else signal.SIGINT)
    what = "terminated" if terminate else "interrupted"
    if terminate or second:
        if second:
            time.sleep(0.3)
            running.send_signal(signal.SIGINT)
            what = "interrupted twice"
        ended = seconds_until(lambda: running.poll() is not None, 30)
        left = guests_of(running.pid)
        late = ended is None or ended > (1 if second else 3) or left
        line = f"at {at:4.1f} s: {what}, ended after {ended and round(ended, 2)} s"
    else:
        guest = seconds_until(lambda: not guests_of(running.pid), 30)
        ended = seconds_until(lambda: running.poll() is not None, 60)
        late = guest is None or guest > 3 or ended is None or ended > 20
        line = f"at {at:4.1f} s: {what}, guest ended after {guest and round(guest, 2)} s, answer after {ended and round(ended, 2)} s more"
    if running.poll() is None:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    out.seek(0), err.seek(0)
    answer, lines = out.read(), [line for line in err.read().splitlines() if line.strip()]
    seen = answer.split("\n\n")[1].splitlines()[0] if "\n\n" in answer else (lines[-1] if lines else "")
    if not seen:
        late = True
    return f"{line}, status {running.returncode}: {seen[:110]}", "late or silent" if late else None


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print(f"{time.strftime('%F')} {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f} at the start; measured seconds", flush=True)
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        for number in range(count):
            at = 0.2 + LAST_INSTANT * number / max(count - 1, 1) * (number / max(count - 1, 1))
            line, why = instant(at, number % 4 == 2, number % 4 == 3, pathlib.Path(name))
            print(line + (f"   WRONG: {why}" if why else ""), flush=True)
            wrong += why is not None
    print(f"{wrong} of {count} instants went wrong")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
