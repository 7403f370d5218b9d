#!/usr/bin/env python3
"""The lab beside a Linux kernel: delays of messages over SCTP and TCP at the 24 points of streams.toml, or, where delays
vary and packets are lost in a row, at the 8 of rough.toml.

    beside.py [rough] [--program anabranch] [--out FOLDER] [--messages 3000] [--seeds 10] [--kernel FOLDER] [--quick]

Both send as many messages, with losses of their own. The means have to agree within 5 %, the 99th percentiles within 10 %,
and the 95 % interval of the difference has to be as narrow; what differs, or stays open because the interval is wider, is
in explained.csv (explained-rough.csv) with its cause, or the exit code is 1. It is 1 too where a line there is not needed
any more. --quick has one point of each sender and asks only that none surely differs. OUT/streams.csv (OUT/rough.csv; OUT is
results/kernel or results/kernel-rough) has what the kernel came to, in the form
that a [[reference]] reads. --kernel takes the kernel's runs from the folder of an earlier comparison and runs the lab alone.
"""

import argparse
import csv
import subprocess
import sys
import tomllib
from pathlib import Path

import measure

HERE = Path(__file__).resolve().parent
KEYS = ["sender", "rtt", "loss", "interval"]
TOLERANCES = {"game.message-delay": 5.0, "game.message-delay-p99": 10.0}
# What is held beside the kernel's runs of another sender: the kernel has one SCTP.
BESIDE = {"lksctp": "SCTP"}
# What is measured begins here.
BEFORE = 60


def arguments():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("scenario", nargs="?", choices=["streams", "rough"], default="streams")
    a.add_argument("--program", default="target/release/anabranch")
    a.add_argument("--out", type=Path)
    a.add_argument("--programs", type=Path, default=Path("target/kernel-streams"), help="where what the kernel runs is built")
    a.add_argument("--messages", type=int, default=3000)
    a.add_argument("--seeds", type=int, default=10)
    a.add_argument("--kernel", type=Path, help="folder of an earlier comparison, whose runs of the kernel are taken")
    a.add_argument("--quick", action="store_true")
    o = a.parse_args()
    suffix = "" if o.scenario == "streams" else f"-{o.scenario}"
    o.out = o.out or Path("results") / f"kernel{suffix}"
    o.explained = HERE / f"explained{suffix}.csv"
    o.file = HERE / f"{o.scenario}.toml"
    spec = tomllib.loads(o.file.read_text())
    o.name, o.small = spec["name"], spec["quick"]["sweep"]
    intervals = o.small["interval"] if o.quick else next(s["values"] for s in spec["sweep"] if s["name"] == "interval")
    o.intervals = {interval: float(interval.removesuffix("ms")) / 1000 for interval in intervals}
    return o


def run_both(o, interval):
    """Rows of the lab and of the kernel; None where there is no kernel."""
    points = ["--points", f"interval={interval}"]
    for key, values in o.small.items():
        points += [f"--points={key}={v}" for v in values if o.quick and key != "interval"]
    lab, kernel = o.out / f"lab-{interval}", o.out / f"kernel-{interval}"
    duration = BEFORE + round(o.messages * o.intervals[interval])
    subprocess.run([o.program, "lab", "run", o.file, *points, "--seeds", str(o.seeds),
                    "--set", f"duration={duration}s", "--out", lab], check=True, stdout=subprocess.DEVNULL)
    if o.kernel:
        return rows(lab), rows(o.kernel / f"kernel-{interval}")
    points += [f"--points=sender={name}" for name in dict.fromkeys(row["sender"] for row in rows(lab)) if name not in BESIDE]
    done = subprocess.run([sys.executable, HERE / "run.py", lab / "manifest.json", o.name, *points,
                           "--seeds", str(o.seeds), "--messages", str(o.messages), "--out", kernel, "--programs", o.programs, "--reference"],
                          stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="", flush=True)
    if done.returncode:
        sys.exit(done.returncode)
    return None if "SKIPPED" in done.stdout else (rows(lab), rows(kernel))


def rows(folder):
    with open(folder / "results.csv", newline="") as f:
        return list(csv.DictReader(f))


def write_reference(o):
    """What the kernel came to at all points in one file."""
    lines = []
    for interval in o.intervals:
        version, _, header, *values = (o.out / f"kernel-{interval}" / f"{o.name}.csv").read_text().splitlines()
        command = f"# kernel/beside.py {o.scenario} --seeds {o.seeds} --messages {o.messages}"
        lines += values if lines else [version, command, header, *values]
    (o.out / f"{o.scenario}.csv").write_text("".join(f"{line}\n" for line in lines))


def by_point(some, metric):
    out = {}
    for row in some:
        point = tuple(row[key] for key in KEYS)
        if not row[metric]:
            sys.exit(f"{' '.join(point)}, seed {row['seed']}: no message came, as of a handshake that lost its packets to the end")
        out.setdefault(point, []).append(float(row[metric]))
    return {point: measure.interval(values) for point, values in out.items()}


def difference(lab, kernel):
    """The lab's value beyond the kernel's in per cent, and half its interval."""
    (ours, our_half), (theirs, their_half) = lab, kernel
    ratio = ours / theirs
    half = ratio * (((our_half or 0) / ours) ** 2 + ((their_half or 0) / theirs) ** 2) ** 0.5
    return (ratio - 1) * 100, half * 100


def verdict(apart, half, tolerance):
    if abs(apart) <= tolerance:
        return "agrees" if half <= tolerance else "open"
    return "differs" if half <= tolerance or abs(apart) - half > tolerance else "open"


class Explained:
    """What is known not to agree; a `*` in place of a value is for all. The first line that fits counts."""

    def __init__(self, name):
        with open(name, newline="") as f:
            columns = (*KEYS, "metric", "verdict")
            self.rows = [(tuple(row[key] for key in columns), row["cause"]) for row in csv.DictReader(f)]
        self.needed = set()

    def cause(self, point, says):
        for i, (pattern, cause) in enumerate(self.rows):
            if says != "agrees" and all(p in ("*", value) for p, value in zip(pattern, (*point, says))):
                self.needed.add(i)
                return cause
        return None

    def not_needed(self):
        return [" ".join(pattern) for i, (pattern, _) in enumerate(self.rows) if i not in self.needed]


def table(o, interval, both, known):
    """Prints the lines of an interval; how often each verdict came, and what is not explained."""
    counts, bad = {"agrees": 0, "differs": 0, "open": 0}, []
    for metric, tolerance in TOLERANCES.items():
        lab, kernel = (by_point(some, metric) for some in both)
        name = "p99" if metric.endswith("p99") else "mean"
        for point in sorted(lab, key=lambda p: (p[0], int(p[1].split("ms")[0]), p[2])):
            theirs = kernel[BESIDE.get(point[0], point[0]), *point[1:]]
            apart, half = difference(lab[point], theirs)
            says = verdict(apart, half, tolerance)
            cause = known.cause((*point, name), says)
            counts[says] += 1
            shown = [f"{mean * 1e3:.1f} ±{(h or 0) * 1e3:.1f}" for mean, h in (lab[point], theirs)]
            why = f": {cause}" if cause else ""
            print(f"{point[0]:<10}{point[1]:>14}{point[2]:>14}{interval:>9}{name:>7}{shown[0]:>18}{shown[1]:>18}"
                  f"{apart:>8.1f} ±{half:<5.1f}  {says}{why}", flush=True)
            if says != "agrees" and not cause and not (o.quick and says == "open"):
                bad.append(f"{' '.join(point)} {name}: {says}, and {o.explained.name} does not say why")
    return counts, bad


def main():
    o = arguments()
    known, bad, counts = Explained(o.explained), [], {}
    print(f"{'sender':<10}{'rtt':>14}{'loss':>14}{'interval':>9}{'metric':>7}{'lab, ms':>18}{'kernel, ms':>18}{'apart, %':>15}"
          "  verdict")
    for interval in o.intervals:
        both = run_both(o, interval)
        if both is None:
            return 0
        some, more = table(o, interval, both, known)
        counts = {word: counts.get(word, 0) + n for word, n in some.items()}
        bad += more
    if not o.quick:
        if not o.kernel:
            write_reference(o)
        bad += [f"{pattern}: {o.explained.name} says why it would not agree, and it does" for pattern in known.not_needed()]
    print(", ".join(f"{n} {word}" for word, n in counts.items()))
    print("".join(f"{line}\n" for line in bad), end="")
    return 1 if bad else 0


sys.exit(main())
