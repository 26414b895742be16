"""Upload gateway: each request's body is assembled, tagged and digested in fresh multi-megabyte buffers."""
import zlib

REQUESTS = 170
ROUTES = 700000


def body(n, seed):
    return bytes((seed * 31 + i * 7) & 255 for i in range(997)) * (n // 997 + 1)


def handle(src, n, key):
    head = src[1:n]                       # the body as received
    flipped = head.translate(key)         # obfuscation
    joined = b"--boundary\r\n" + flipped + b"\r\n--boundary--"
    step = joined[::64]
    return zlib.crc32(step) ^ joined.count(b"\x07\x0e", 0, 65536)


def compile_routes():
    table, h = {}, 0
    for i in range(ROUTES):
        path = "/api/v%d/%s/%d" % (i % 3, ("users", "items", "carts")[i % 3], i)
        parts = path.split("/")
        h = (h * 31 + len(parts[2]) + i) & 0xFFFFFFFF
        table[parts[3] + str(i % 1000)] = h
    return len(table) + h


def main():
    src = body(4 << 20, 5)
    key = bytes((i * 5 + 3) & 255 for i in range(256))
    total = compile_routes()
    for r in range(REQUESTS):
        n = (2 << 20) + (r * 7919 % 17) * (100 << 10)
        total = (total * 33 + handle(src, n, key)) & 0xFFFFFFFFFFFF
    print(total)


main()
