#!/usr/bin/env python3
"""Savings of pace where one `poll` watches 7,000 sockets: the accelerator's CPU time a request and its 99th percentile,
paced and not, under one open-loop load. The two sides take turns within one run, on one CPU; the load has the others. All
figures are measured. If that is allowed, the programs go ahead of the machine's neighbours.

    experiments/pace/sockets.py [--pace 3ms] [--rate 10000] [--connections 7000] [--pairs 8] [--seconds 4]
"""
import argparse
import statistics

from accelerators import Ahead, Bench, of_median


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pace", default="3ms", help="an interval, or auto")
    parser.add_argument("--budget", default="5ms", help="of auto")
    parser.add_argument("--engine", default="poll")
    parser.add_argument("--rate", type=int, default=10_000, help="requests a second")
    parser.add_argument("--connections", type=int, default=7000)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=4, help="measured time of a turn")
    return parser.parse_args()


def main():
    chosen = arguments()
    with Ahead(), Bench() as bench:
        sides = [bench.accelerator(chosen.engine, pace, chosen.budget) for pace in ("off", chosen.pace)]
        pairs = []
        for number in range(chosen.pairs):
            # Each side goes first in every other pair.
            order = sides if number % 2 == 0 else sides[::-1]
            turns = {side.name: bench.turn(side, (chosen.rate, chosen.connections), chosen.seconds) for side in order}
            pairs.append([turns[side.name] for side in sides])
    print(f"{chosen.engine}, {chosen.connections} sockets, {chosen.rate} requests/s open loop, {chosen.pairs} pairs; measured")
    for side, turns in zip(sides, zip(*pairs)):
        held = sum(turn["held"] for turn in turns)
        print(f"  pace {side.name:5}  CPU a request {of_median(turns, 'cpu_us')} µs, mean {of_median(turns, 'mean_ms')} ms, "
              f"p99 {of_median(turns, 'p99_ms')} ms; rate held {held} of {len(turns)} times")
    for figure, what, wanted in (("cpu_us", "CPU a request", 0.5), ("p99_ms", "p99", 1.3)):
        print(f"  {what}, paced / unpaced: {ratio(pairs, figure)}; wanted {wanted} at most")


def ratio(pairs, figure):
    """Change of the medians, and of each pair the lowest and highest. A pair counts where both of its turns have the figure.

    >>> ratio([[{"p99_ms": 2}, {"p99_ms": 3}], [{"p99_ms": 2}, {"p99_ms": None}]], "p99_ms")
    '1.50 (pairs 1.50–1.50)'
    >>> ratio([[{"p99_ms": None}, {"p99_ms": 3}]], "p99_ms")
    'unknown (nothing was answered)'
    """
    pairs = [pair for pair in pairs if None not in (pair[0][figure], pair[1][figure])]
    if not pairs:
        return "unknown (nothing was answered)"
    unpaced, paced = (statistics.median(side) for side in zip(*[[turn[figure] for turn in pair] for pair in pairs]))
    each = [pair[1][figure] / pair[0][figure] for pair in pairs]
    return f"{paced / unpaced:.2f} (pairs {min(each):.2f}–{max(each):.2f})"


if __name__ == "__main__":
    main()
