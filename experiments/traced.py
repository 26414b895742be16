"""Shared by the experiments that trace: the input, the machine, one trace, one record of any verb, one verdict."""

import json, os, random, re, resource, subprocess, sys

NEARMISS = os.path.realpath("target/release/nearmiss")
SUBJECTS = os.path.realpath("target/subjects")
MACHINE = "xeon-mp-4way-l3"


def cpu():
    """The CPU that this runs on, as the first line of a figure's output names it."""
    model = re.search("model name\\s*: (.*)", open("/proc/cpuinfo").read())
    return f"on {model[1] if model else 'an unnamed CPU'}, {os.cpu_count()} CPUs"


def cpu_s(command):
    """CPU seconds that a run of a command takes, with its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def numbers():
    """Writes 0.8 MB of shuffled numbers, the same in every run."""
    lines = [str(n) for n in range(120000)]
    random.Random(1).shuffle(lines)
    with open("numbers", "w") as file:
        file.write("\n".join(lines) + "\n")


def trace(cpus, command, *options, machine=MACHINE):
    """Traces a command; returns the run's manifest and model. A guest that its emulator ends is tried again, with a message."""
    for _ in range(3):
        words = [NEARMISS, "trace", "-q", "-m", machine, "--cpus", str(cpus), *options, "--", *command]
        done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode == 0:
            break
        print(f"    again: {done.stderr.strip()}")
    else:
        sys.exit(1)
    run = max(os.scandir("nearmiss-runs"), key=lambda entry: entry.name).path
    manifest, model = (json.load(open(f"{run}/{name}.json")) for name in ("manifest", "model"))
    subprocess.run(["rm", "-r", run], check=True)
    return manifest, model


def call(nearmiss, place, *words):
    """The record of a call; wrong use and a machine that cannot do it end the experiment."""
    done = subprocess.run([nearmiss, *words], cwd=place, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"nearmiss {' '.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def verified(nearmiss, place, remedy, pairs, command, *options):
    """The share of its CPU time that a command saves under a remedy, its seconds, and what the remedy counted."""
    verdict = call(nearmiss, place, "verify", remedy, "--json", "--pairs", str(pairs), *options, "--", *command)
    cpu_s = next(known for known in [verdict["comparison"], *verdict["others"]] if known["metric"] == "cpu_s")
    seconds = {side: cpu_s[side]["median"] for side in ("without", "with")}
    return {"gain": 1 - seconds["with"] / seconds["without"], "engaged": verdict["engaged"], **seconds}
