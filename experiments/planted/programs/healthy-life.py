"""A board of cells, sparse: only the live ones are kept."""
import sys


def step(live):
    near = {}
    for x, y in live:
        for dx in (-1, 0, 1):
            for dy in (-1, 0, 1):
                if dx or dy:
                    k = (x + dx, y + dy)
                    near[k] = near.get(k, 0) + 1
    return {k for k, n in near.items() if n == 3 or (n == 2 and k in live)}


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 2600
    live = {(1, 0), (3, 1), (0, 2), (1, 2), (4, 2), (5, 2), (6, 2)}
    total = 0
    for _ in range(steps):
        live = step(live)
        total += len(live)
    print(steps, len(live), total)


main()
