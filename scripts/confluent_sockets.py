#!/usr/bin/env python3
"""Means of unusable packets on real sockets and in the simulator, and the interval of their difference.

    confluent_sockets.py FILE     every value, as `anabranch lab emulate --out FILE` writes them
"""
import statistics
import sys

import emulated


def main():
    different = False
    print(f"{'':<22}{'sockets %':>12}{'simulator %':>13}{'difference':>18}")
    for at, both in emulated.read(sys.argv[1], "stream.unusable-packets", scale=100).items():
        if both is None:
            print(f"{at:<22} too few runs")
            different = True
            continue
        real, simulated = both
        mean, half = emulated.difference(real, simulated)
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
