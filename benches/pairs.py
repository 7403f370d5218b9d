#!/usr/bin/env python3
"""Processor time of the rows of `anabranch bench`, of one program beside another, in many short runs by turns.

  benches/pairs.py BEFORE NOW [--pairs N] [TEST...]

For each row: how many times as fast the second program is, the median over the pairs, with its 95 % interval (bootstrap).
On a machine whose speed changes from second to second the two runs of a pair, one after the other, have much alike, and the
runs of a long round have not.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys

# Test, transport, message, bytes (or round trips, or set-ups), window.
ROWS = [
    ("bulk", "mem", 1024, 50_000_000, 1 << 20),
    ("bulk", "mem", 16384, 50_000_000, 1 << 20),
    ("bulk", "mem", 65536, 50_000_000, 1 << 20),
    ("bulk", "udp", 1024, 30_000_000, 1 << 20),
    ("bulk", "udp", 16384, 30_000_000, 1 << 20),
    ("bulk", "udp", 65536, 30_000_000, 1 << 20),
    ("bulk", "mem", 1024, 50_000_000, 64 << 10),
    ("bulk", "mem", 1024, 50_000_000, 256 << 10),
    ("bulk", "mem", 1024, 50_000_000, 4 << 20),
    ("bulk", "mem", 1024, 50_000_000, 16 << 20),
    ("small", "mem", 100, 20_000_000, 1 << 20),
    ("small", "udp", 100, 10_000_000, 1 << 20),
    ("pingpong", "mem", 100, 50_000, 1 << 20),
    ("pingpong", "udp", 100, 3_000, 1 << 20),
    ("setup", "mem", 0, 5_000, 1 << 20),
]


def cost(program, row, seed):
    """Processor time of a byte, a round trip or a set-up, in a unit of its own."""
    test, transport, size, amount, window = row
    settings = {"MTU": "1200", "RWND": str(window), "SNDBUF": str(window), "PROFILE": "sctp"}
    command = [program, "bench", "row", test, transport, str(size), str(amount), str(seed)]
    done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True)
    rows = [line.split(",") for line in done.stdout.splitlines() if done.returncode == 0]
    for metric, value in (fields[4:6] for fields in rows if len(fields) == 6):
        if metric in ("cpu_s_per_GB", "cpu_us_per_round"):
            return float(value)
        if metric == "setups_per_cpu_s":
            return 1 / float(value)
    sys.exit(f"{' '.join(command)}: {done.stderr.strip()[-300:] or 'no processor time was printed'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("now")
    parser.add_argument("tests", nargs="*", metavar="TEST", help="only these: " + ", ".join(dict.fromkeys(r[0] for r in ROWS)))
    parser.add_argument("--pairs", type=int, default=40)
    args = parser.parse_intermixed_args()
    unknown = set(args.tests) - {r[0] for r in ROWS}
    if unknown or args.pairs < 2:
        parser.error(f"there is no test {', '.join(sorted(unknown))}" if unknown else "two pairs at least")
    draw = random.Random(1)
    print(f"{'row':14}{'message':>8}{'window':>10}{'times as fast':>15}")
    for row in ROWS:
        if args.tests and row[0] not in args.tests:
            continue
        ratios = []
        for turn in range(args.pairs):
            order = [args.before, args.now] if turn % 2 == 0 else [args.now, args.before]
            took = {p: cost(p, row, turn + 1) for p in order}
            ratios.append(took[args.before] / took[args.now])
        medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
        print(f"{row[0]:9}{row[1]:5}{row[2]:8}{row[4]:10}{statistics.median(ratios):15.2f}"
              f"  ({medians[50]:.2f} to {medians[1949]:.2f})", flush=True)


main()
