#!/usr/bin/env python3
"""Time that the preloaded libraries add to the start of an empty program, in milliseconds of CPU time.

Usage: start-up.py LIBRARY...   (the libraries as `nearmiss apply color` writes them; keep a command
running under it and take them from its LD_PRELOAD)
"""

import os
import statistics
import subprocess
import sys
import tempfile

ROUNDS = 1000


def start_ms(program, environment):
    nothing = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    process = os.posix_spawn(program, [program], environment, file_actions=nothing)
    _, status, usage = os.wait4(process, 0)
    if status != 0:
        sys.exit(f"{program} ended with status {status}")
    return (usage.ru_utime + usage.ru_stime) * 1e3


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as directory:
        source, program = os.path.join(directory, "empty.c"), os.path.join(directory, "empty")
        with open(source, "w") as out:
            out.write("int main(void) { return 0; }\n")
        subprocess.run(["cc", "-O1", "-o", program, source], check=True)
        with_libraries = {
            "LD_PRELOAD": ":".join(sys.argv[1:]),
            "NEARMISS_COLOR_PRELOAD": "colors=32,line=64,least=131072",
        }
        # Interleaved, so that what the machine does meanwhile hits both alike.
        added = [start_ms(program, with_libraries) - start_ms(program, {}) for _ in range(ROUNDS)]
    median = statistics.median(added)
    print(f"start-up (measured): {median:.3f} ms added, median of {ROUNDS} pairs")
    sys.exit(median >= 1.0)


main()
