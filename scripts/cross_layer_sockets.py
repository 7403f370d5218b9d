#!/usr/bin/env python3
"""Mean goodput on real sockets and in the simulator, and the interval of their difference in per cent of the simulator's.

    cross_layer_sockets.py FILE     every value, as `anabranch lab emulate --out FILE` writes them
"""
import statistics
import sys

import emulated

WITHIN = 5.0


def main():
    outside = False
    print(f"{'':<38}{'sockets':>10}{'simulator':>11} kbit/s{'difference, 95 %':>24}")
    for at, both in emulated.read(sys.argv[1], "main.goodput", scale=1e-3).items():
        if both is None:
            print(f"{at:<38} too few runs")
            outside = True
            continue
        real, simulated = both
        # The simulator's mean is taken for certain: of numbers that lie close its own scatter changes the quotient little.
        unit = statistics.mean(simulated) / 100
        mean, half = (x / unit for x in emulated.difference(real, simulated))
        fits = -WITHIN <= mean - half and mean + half <= WITHIN
        outside |= not fits
        print(f"{at:<38}{statistics.mean(real):>10.0f}{statistics.mean(simulated):>11.0f}{'':>7}"
              f"{mean - half:>+10.1f} to {mean + half:+.1f} %  {'within' if fits else 'NOT WITHIN'} {WITHIN:.0f} %"
              f" ({len(real)} and {len(simulated)} runs)")
    sys.exit(1 if outside else 0)


main()
