# SPDX-License-Identifier: MIT OR Apache-2.0
"""Does not gain: reads the sources of Python's library whole, one after the other: files.py [TIMES].

Each file is a block of less than 32 MiB that is freed. After the largest one glibc keeps such blocks by itself.
"""

import os
import sys
import zlib

LIBRARY = os.path.dirname(os.__file__)


def main():
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    checksum = 0
    names = sorted(name for name in os.listdir(LIBRARY) if name.endswith(".py"))
    for _ in range(times):
        for name in names:
            with open(os.path.join(LIBRARY, name), "rb") as file:
                text = file.read()
            checksum = zlib.crc32(text, checksum + text.count(b"\n"))
            del text
    print(f"{checksum:08x}")


if __name__ == "__main__":
    main()
