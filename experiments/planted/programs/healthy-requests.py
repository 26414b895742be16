#!/usr/bin/python3
"""Request handler: decodes a request, looks up and renders, and keeps a cache
of the last answers."""
import collections
import hashlib
import json

REQUESTS = 30000
CACHE = 1500


def random_numbers(seed):
    while True:
        seed = (seed * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        yield seed >> 33


def make_request(rnd):
    items = [{"sku": next(rnd) % 5000, "count": next(rnd) % 9 + 1} for _ in range(next(rnd) % 60 + 5)]
    return json.dumps({"user": next(rnd) % 2000, "items": items})


def handle(text, prices):
    request = json.loads(text)
    lines, total = [], 0
    for item in request["items"]:
        cost = prices[item["sku"]] * item["count"]
        total += cost
        lines.append("%6d x %2d = %8d\n" % (item["sku"], item["count"], cost))
    body = "".join(lines) * (1 + request["user"] % 12)
    return ("user %d\n%stotal %d\n" % (request["user"], body, total)).encode()


def main():
    rnd = random_numbers(42)
    prices = {sku: 100 + next(rnd) % 9000 for sku in range(5000)}
    cache = collections.OrderedDict()
    digest = hashlib.md5()
    for number in range(REQUESTS):
        answer = handle(make_request(rnd), prices)
        cache[number] = answer
        if len(cache) > CACHE:
            cache.popitem(last=False)
        scratch = bytearray(answer)
        scratch += b"#" * (next(rnd) % 50000)
        digest.update(scratch[::64])
        digest.update(answer)
    print(digest.hexdigest())


main()
