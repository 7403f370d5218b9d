#!/usr/bin/env python3
"""Instructions of the rows of `anabranch bench` in memory, of one program beside another (valgrind's callgrind).

  benches/instructions.py BEFORE NOW

Each row runs twice with different amounts, so that starting cancels: what is printed is instructions for one more byte of
payload, round or set-up. The processor's own SHA instructions are not there, so hashes cost more than they do.
"""

import os
import re
import subprocess
import sys

# Test, message, two amounts, window.
ROWS = [
    ("bulk", 1024, 4_000_000, 12_000_000, 1 << 20),
    ("bulk", 16384, 4_000_000, 12_000_000, 1 << 20),
    ("bulk", 65536, 4_000_000, 12_000_000, 1 << 20),
    ("bulk", 1024, 8_000_000, 16_000_000, 64 << 10),
    ("bulk", 1024, 8_000_000, 16_000_000, 4 << 20),
    ("small", 100, 20_000, 60_000, 1 << 20),
    ("pingpong", 100, 1_000, 6_000, 1 << 20),
    ("setup", 0, 200, 1_000, 1 << 20),
]


def instructions(program, test, size, amount, window):
    settings = {"MTU": "1200", "RWND": str(window), "SNDBUF": str(window), "PROFILE": "sctp"}
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program]
    command += ["bench", "row", test, "mem", str(size), str(amount), "1"]
    done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True)
    counted = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not counted:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()[-300:]}")
    return int(counted[1])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(f"{'row':9}{'message':>8}{'window':>9}{'before':>12}{'now':>12}{'ratio':>8}")
    for test, size, few, many, window in ROWS:
        before, now = (
            (instructions(p, test, size, many, window) - instructions(p, test, size, few, window)) / (many - few)
            for p in sys.argv[1:]
        )
        print(f"{test:9}{size:8}{window:9}{before:12.2f}{now:12.2f}{now / before:8.4f}", flush=True)


main()
