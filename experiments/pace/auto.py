#!/usr/bin/env python3
"""Worth of the controller: the accelerator's CPU time a request under `pace = "auto"` against fixed intervals. Of those
with a 99th percentile at most the budget above the unpaced one, the interval with the least CPU time a request
is the best. All take turns within one run, on one CPU; the load has the others. All figures are measured.

    experiments/pace/auto.py [--budget 5] [--intervals 3,4,4.5,5] [--rate 10000] [--connections 300] [--engine epoll]
"""
import argparse

from accelerators import Ahead, Bench, median, of_median


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    milliseconds = lambda text: [float(part) for part in text.split(",")]
    parser.add_argument("--budget", type=float, default=5, help="what auto may add at the 99th percentile, ms")
    parser.add_argument("--intervals", type=milliseconds, default=[3, 4, 4.5, 5], help="ms")
    parser.add_argument("--engine", default="epoll")
    parser.add_argument("--rate", type=int, default=10_000, help="requests a second")
    parser.add_argument("--connections", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2, help="measured time of a turn")
    return parser.parse_args()


def main():
    chosen = arguments()
    budget = f"{chosen.budget * 1000:.0f}us"
    paces = ["off", "auto", *(f"{interval * 1000:.0f}us" for interval in chosen.intervals)]
    with Ahead(), Bench() as bench:
        sides = [bench.accelerator(chosen.engine, pace, budget) for pace in paces]
        turns = {pace: [] for pace in paces}
        for number in range(chosen.rounds):
            # Each round begins with another side.
            for side in sides[number % len(sides):] + sides[:number % len(sides)]:
                turns[side.name].append(bench.turn(side, (chosen.rate, chosen.connections), chosen.seconds))
    print(f"{chosen.engine}, {chosen.connections} sockets, {chosen.rate} requests/s open loop, {chosen.rounds} rounds; measured")
    added = {pace: median(turns[pace], "p99_ms") - median(turns["off"], "p99_ms") for pace in paces}
    for pace in paces:
        held = sum(turn["held"] for turn in turns[pace])
        print(f"  pace {pace:7}  CPU a request {of_median(turns[pace], 'cpu_us')} µs, p99 {of_median(turns[pace], 'p99_ms')} ms, "
              f"added {added[pace]:+.2f} ms; rate held {held} of {chosen.rounds} times")
    compare(turns, added, chosen.budget)


def compare(turns, added, budget):
    """`auto` beside the cheapest of the intervals that add no more than the budget, and than auto itself where that adds
    more."""
    allowed = max(budget, added["auto"])
    within = [pace for pace in turns if pace not in ("off", "auto") and added[pace] <= allowed]
    if not within:
        print(f"  no interval adds {allowed:.2f} ms at most")
        return
    best = min(within, key=lambda pace: median(turns[pace], "cpu_us"))
    ratio = median(turns["auto"], "cpu_us") / median(turns[best], "cpu_us")
    print(f"  auto (budget {budget:g} ms) / the best interval that adds {allowed:.2f} ms at most ({best}): {ratio:.2f} in CPU a request; "
          f"wanted 1.10 at most")


if __name__ == "__main__":
    main()
