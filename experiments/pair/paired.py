"""Shared by the experiments on pairs: a recording of `groups`, and its rehearsal."""

import json, os, subprocess, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from traced import NEARMISS, SUBJECTS, cpu

MACHINE, CPUS = "xeon-ht-2x2", "4"


def recorded(shape, before=()):
    """Traces `groups` in this shape; returns the run's directory."""
    return recorded_program([*before, f"{SUBJECTS}/groups", *shape])


def recorded_program(command):
    """Traces a command in user mode; returns the run's directory."""
    words = [NEARMISS, "trace", "-q", "--no-curve", "--only", "user", "-m", MACHINE, "--cpus", CPUS, "--"]
    subprocess.run([*words, *command], check=True, stdout=subprocess.DEVNULL)
    return max(os.scandir("nearmiss-runs"), key=lambda entry: entry.stat().st_mtime_ns).path


def rehearsed(run, *options):
    """The rehearsal of a run, and its seconds."""
    begun = time.monotonic()
    done = subprocess.run([NEARMISS, "rehearse", "pair", run, "--json", *options], check=True, capture_output=True)
    return json.loads(done.stdout)["tables"][0], time.monotonic() - begun


def task(cell):
    """The thread id of a task's cell."""
    return int(cell["text"].split()[-1])


def rows(rehearsal):
    """By way of placing tasks: cycles, of alone, saved."""
    return {row[1]["text"]: (row[2]["cycles"], row[3]["share"], row[4]["share"]) for row in rehearsal["table"]["rows"]}


def pairs(rehearsal):
    """Pairs as numbers of their threads, best first, with what both take of alone."""
    tasks = [task(row[0]) for row in rehearsal["more"][0]["rows"]]
    number = lambda cell: tasks.index(task(cell))
    both = lambda row: (row[2]["share"] + row[4]["share"]) / 2
    return [(number(row[0]), number(row[1]), both(row)) for row in rehearsal["more"][1]["rows"]]
