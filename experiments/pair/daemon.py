#!/usr/bin/env python3
"""Cost of the daemon of `apply pair`: its share of a CPU beside a process of many tasks.

Counts that every kernel has stand in for hardware counters, which cost as much to read. The tasks take turns on the CPUs
and give them back often; the daemon reads two counts of each task a period, looks at its mask, and plans.

    experiments/pair/daemon.py [--nearmiss PATH] [--tasks 64] [--period 1s] [--seconds 30]
"""
import argparse
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

TASKS = """
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
static void *work(void *given) {
    struct timespec nap = {0, 20000000};
    for (volatile unsigned long n = 0;; n++)
        if (n % 200000 == 0) nanosleep(&nap, NULL);
    return given;
}
int main(int argc, char **argv) {
    pthread_t thread;
    for (int n = atoi(argv[1]); n > 1; n--) pthread_create(&thread, NULL, work, NULL);
    work(NULL);
}
"""


def cpu_seconds(pid):
    """Time on a CPU of all its threads, by the scheduler's own account."""
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--nearmiss", default="target/release/nearmiss")
    options.add_argument("--tasks", type=int, default=64)
    options.add_argument("--period", default="1s")
    options.add_argument("--seconds", type=float, default=30)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as place:
        source, program = f"{place}/tasks.c", f"{place}/tasks"
        pathlib.Path(source).write_text(TASKS)
        subprocess.run(["cc", "-O2", "-pthread", "-o", program, source], check=True)
        tasks = subprocess.Popen([program, str(given.tasks)])
        time.sleep(1)
        daemon = subprocess.Popen([given.nearmiss, "apply", "pair", "--stand-in-counters", "--period", given.period,
                                   "-p", str(tasks.pid)], stderr=subprocess.PIPE, text=True)
        try:
            time.sleep(2)
            if daemon.poll() is not None:
                sys.exit(daemon.stderr.read())
            before, begun = cpu_seconds(daemon.pid), time.monotonic()
            time.sleep(given.seconds)
            took, over = cpu_seconds(daemon.pid) - before, time.monotonic() - begun
            daemon.send_signal(signal.SIGINT)
            stderr = daemon.communicate(timeout=20)[1].strip()
        finally:
            daemon.kill()
            tasks.kill()
            tasks.wait()
    print(f"measured: the daemon takes {100 * took / over:.3f}% of a CPU beside {given.tasks} tasks, at a period of "
          f"{given.period}, over {over:.0f} s")
    print(stderr)


if __name__ == "__main__":
    main()
