"""Logs of many hosts come in as lines, are laid out by host in one buffer, and leave as packets with a sum."""
import sys
import zlib


def lines(host, count):
    return b"".join(b"%08d host%03d service[%d]: request took %d ms\n" % (i, host, i % 97, i * 7 % 1000) for i in range(count))


def aggregate(batch, sources, size):
    buffer = bytearray(size)
    at = 0
    while at < size:
        text = sources[(batch + at) % len(sources)]
        end = min(size, at + len(text))
        buffer[at:end] = text[:end - at]
        at = end
    packet = bytes(memoryview(buffer)[batch * 64:])
    return zlib.adler32(memoryview(packet)[:1 << 22]), packet.count(b"\0") + len(packet)


def main():
    batches = int(sys.argv[1]) if len(sys.argv) > 1 else 22
    sources = [lines(h, 700 + h) for h in range(40)]
    total = 0
    check = 0
    for b in range(batches):
        a, n = aggregate(b, sources, 44 << 20)
        check = (check * 31 + a) & 0xFFFFFFFF
        total += n
    print(batches, total, "%08x" % check)


main()
