"""Shared by the experiments on `nearmiss gate`: one gate, and its verdict in a line."""

import json, os, subprocess, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from traced import NEARMISS, cpu, numbers  # noqa: F401


def gate(old, new, *options):
    """Compares two commands; returns exit status, record and seconds. Ends the experiment where a gate cannot be had."""
    begin = time.monotonic()
    words = [NEARMISS, "gate", "--json", *options, old, new]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.returncode, json.loads(done.stdout), time.monotonic() - begin


def by(record, ruling):
    """Names of the figures with a ruling, each with its change."""
    figures = [figure for figure in record["figures"] if figure["ruling"] == ruling]
    return ", ".join(f"{f['name']} {f['difference'] / max(f['old'], 1):+.2%} (noise {f['noise'] / max(f['old'], 1):.2%})"
                     for f in figures) or "none"


def shares(record, *names):
    """The noise of some figures as shares, by name."""
    return {f["name"]: f["noise"] / max(f["old"], 1) for f in record["figures"] if f["name"] in names}


def noise(record, *names):
    """The noise of some figures in a line."""
    found = shares(record, *names)
    return "  ".join(f"{name} {found[name]:.3%}" for name in names if name in found)
