#!/usr/bin/env python3
"""What the preloaded libraries add to the start of an empty program, in milliseconds.

Usage: start-up.py LIBRARY...   (the libraries as `nearmiss apply color` writes them; keep a command
running under it and take them from its LD_PRELOAD)
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 400


def start_ms(program, environment):
    begin = time.perf_counter()
    subprocess.run([program], env=environment, check=True)
    return (time.perf_counter() - begin) * 1e3


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
            "NEARMISS_COLOR_PRELOAD": "colors=32,line=64,blocks=131072",
        }
        # Interleaved, so that what the machine does meanwhile hits both alike.
        added = [start_ms(program, with_libraries) - start_ms(program, {}) for _ in range(ROUNDS)]
    median = statistics.median(added)
    print(f"start-up (measured): {median:.3f} ms added, median of {ROUNDS} pairs")
    sys.exit(median >= 1.0)


main()
