#!/usr/bin/python3
"""Software compositor: scrolls a frame, draws an overlay, grades some frames."""
import hashlib
import zlib

WIDTH, HEIGHT, DEPTH = 4000, 2600, 4
FRAMES = 18


def first_frame():
    row = bytes((x * 7 + x // 64) & 255 for x in range(WIDTH * DEPTH))
    return b"".join(row[y % 97:] + row[:y % 97] for y in range(HEIGHT))


def scroll(frame, rows):
    cut = rows * WIDTH * DEPTH
    return frame[cut:] + frame[:cut]


def overlay(frame, number):
    canvas = bytearray(frame)
    bar = bytes([number & 255]) * (400 * DEPTH)
    for y in range(100, 140):
        at = (y * WIDTH + (number * 13) % 3000) * DEPTH
        canvas[at:at + len(bar)] = bar
    return canvas


def checksum(frame):
    return zlib.crc32(frame) ^ int.from_bytes(hashlib.md5(frame).digest()[:4], "big")


def main():
    gamma = bytes(min(255, int((v / 255) ** 0.9 * 255)) for v in range(256))
    frame = first_frame()
    total = 0
    for number in range(FRAMES):
        frame = scroll(frame, 11 + number % 5)
        canvas = overlay(frame, number)
        if number % 3 == 0:
            canvas = canvas.translate(gamma)
        total = (total * 31 + checksum(canvas)) & 0xFFFFFFFFFFFF
        frame = bytes(canvas)
    print(total)


main()
