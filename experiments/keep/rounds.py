# SPDX-License-Identifier: MIT OR Apache-2.0
"""Rounds of a table of 48 MiB that is filled by rows, read by samples, and dropped: rounds.py [ROUNDS] [twin].

The twin fills the same table again.
"""

import sys
import zlib

ROW = 1 << 16
ROWS = 768


def filled(table, seed):
    for row in range(ROWS):
        table[row * ROW:(row + 1) * ROW] = bytes([(seed + row) & 255]) * ROW


def main():
    words = sys.argv[1:]
    keeps = words[-1:] == ["twin"]
    rounds = next((int(word) for word in words if word != "twin"), 6)
    checksum = 0
    table = None
    for number in range(rounds):
        if not keeps or table is None:
            table = bytearray(ROW * ROWS)
        filled(table, number)
        checksum = zlib.crc32(table[::4093], checksum)
        if not keeps:
            table = None
    print(f"{checksum:08x}")


if __name__ == "__main__":
    main()
