"""Splits an image of 256 rows into its columns, as a transposition does. Usage: columns.py WIDTH TIMES"""
import sys
width, times = int(sys.argv[1]), int(sys.argv[2])
image = bytes(range(256)) * width
for _ in range(times):
    columns = [image[x::width] for x in range(4096)]
