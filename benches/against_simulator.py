#!/usr/bin/env python3
"""Processor time of one program's simulations beside another's, run by turns.

  benches/against_simulator.py BEFORE NOW [--rounds N] [--seconds N] [--before-in FOLDER] [SCENARIO...]

Without scenarios it is those in which the simulator runs against ns-2. For each: the mean of now/before over the rounds,
on a logarithmic scale, with its 95 % t-interval. Below 1 the second program needs less. Of short runs starting the program
and writing the report are much: --seconds (60) is what is simulated. --before-in: where the first program, which may not
know today's keys, finds scenarios with the names of the others.
"""

import argparse
import glob
import math
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

# Student's t, 97.5 %, by degrees of freedom.
T = [0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228]


def took_by(program, scenario, seconds):
    """Processor time of one run."""
    out = tempfile.mkdtemp()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    one = ["--jobs", "1", "--seeds", "1", "--set", f"duration={seconds}s"]
    command = [program, "lab", "run", scenario, *one, "--out", os.path.join(out, "run")]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    shutil.rmtree(out)
    if done.returncode:
        sys.exit(f"{program} {scenario}: {done.stderr.strip()}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("now")
    parser.add_argument("scenarios", nargs="*")
    parser.add_argument("--rounds", type=int, default=7, choices=range(2, 12), metavar="2..11")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--before-in", metavar="FOLDER")
    args = parser.parse_args()
    home = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "experiments", "crosscheck-ns2", "speed")
    scenarios = args.scenarios or sorted(glob.glob(os.path.join(home, "*.toml")))
    logs = {s: [] for s in scenarios}
    for turn in range(args.rounds):
        for s in scenarios:
            programs = [args.before, args.now] if turn % 2 == 0 else [args.now, args.before]
            older = os.path.join(args.before_in, os.path.basename(s)) if args.before_in else s
            took = {p: took_by(p, older if p == args.before else s, args.seconds) for p in programs}
            logs[s].append(math.log(took[args.now] / took[args.before]))
            print(f"round {turn + 1}/{args.rounds} {os.path.basename(s)}", file=sys.stderr, end="\r")
    print(file=sys.stderr)
    for s, values in logs.items():
        mean = statistics.mean(values)
        half = T[len(values) - 1] * statistics.stdev(values) / math.sqrt(len(values))
        low, high = math.exp(mean - half), math.exp(mean + half)
        print(f"{os.path.basename(s):30} {math.exp(mean):.3f}  ({low:.3f} to {high:.3f})")


main()
