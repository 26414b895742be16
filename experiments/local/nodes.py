"""Shared by the experiments with nodes: one recording, and its reads by task."""

import os, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from traced import NEARMISS, SUBJECTS, cpu, trace

MACHINE = "pentium3-xeon-numa-2x2"


def recorded(command, *options):
    """The model of a recording, without a trace of it."""
    return trace(4, command, "--no-trace", "--no-curve", *options, machine=MACHINE)[1]


def tasks(model, name):
    """The rows of the command's tasks of this name."""
    return [task for task in model["tasks"] if task["of_command"] and task["comm"] == name]


def reads(bus):
    return sum(bus[kind] for kind in ("read_remote", "read_local_none", "read_local_shared", "read_local_modified"))


def figures(model, name):
    """Counts of the tasks of this name: remote reads, all bus reads and cycles of user mode; all cycles."""
    rows = tasks(model, name)
    user = [row["user"] for row in rows]
    return (sum(u["bus"]["read_remote"] for u in user), sum(reads(u["bus"]) for u in user),
            sum(u["cycles"] for u in user), sum(u["cycles"] for u in user) + sum(row["kernel"]["cycles"] for row in rows))
