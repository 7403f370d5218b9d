#!/usr/bin/env python3
"""Means of unusable packets on real sockets and in the simulator, and the interval of their difference.

    confluent_sockets.py FILE     every value, as `anabranch lab emulate --out FILE` writes them
"""
import collections
import math
import statistics
import sys

METRIC = "stream.unusable-packets"


def quantile(freedom):
    """The 97.5 % quantile of Student's t, by the expansion of Cornish and Fisher; good to 0.01 from four degrees on."""
    z = 1.959964
    terms = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + sum(t / freedom ** (i + 1) for i, t in enumerate(terms))


def difference(real, simulated):
    """The mean difference and half of its interval, variances not taken to be equal."""
    parts = [(statistics.variance(v) / len(v), len(v) - 1) for v in (real, simulated)]
    whole = sum(p for p, _ in parts)
    mean = statistics.mean(real) - statistics.mean(simulated)
    if whole == 0:
        return mean, 0.0
    freedom = whole**2 / sum(p**2 / n for p, n in parts)
    return mean, quantile(freedom) * math.sqrt(whole)


def main():
    values = collections.defaultdict(lambda: collections.defaultdict(list))
    for line in open(sys.argv[1], encoding="utf-8"):
        cells = line.rstrip("\n").split(",")
        # The point may have commas of its own; what follows it has none.
        if len(cells) >= 5 and cells[-3] == METRIC:
            values[",".join(cells[1:-3])][cells[-2]].append(100 * float(cells[-1]))
    different = False
    print(f"{'':<22}{'sockets %':>12}{'simulator %':>13}{'difference':>18}")
    for at, by in values.items():
        places = sorted(by, key=lambda place: place.startswith("sim"))
        if len(places) != 2 or min(len(by[p]) for p in places) < 2:
            print(f"{at:<22} too few runs")
            different = True
            continue
        real, simulated = (by[p] for p in places)
        mean, half = difference(real, simulated)
        low, high = mean - half, mean + half
        if half > 2:
            verdict = "not shown"
        elif low <= 0 <= high or -1 <= low and high <= 1:
            verdict = "same"
        else:
            verdict, different = "differs", True
        print(f"{at:<22}{statistics.mean(real):>12.2f}{statistics.mean(simulated):>13.2f}{mean:>+10.2f} ±{half:<6.2f} {verdict}"
              f" ({len(real)} and {len(simulated)} runs)")
    sys.exit(1 if different else 0)


main()
