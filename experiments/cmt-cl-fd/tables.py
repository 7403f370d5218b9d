#!/usr/bin/env python3
"""The tables of this experiment's README.md, from the folder of a whole run.

    anabranch lab run cmt-cl-fd --out FOLDER && tables.py FOLDER

Means over the seeds with their 95 % intervals by Student's t; after them what the text beside the tables quotes.
"""
import collections
import csv
import math
import os
import re
import statistics
import sys

# Student's t, 97.5 %, by degrees of freedom.
T = [0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
     2.110, 2.101, 2.093, 2.086]
READINGS = ["", "-CALIBRATED", "-NEUTRAL"]


def mean(values):
    """Mean and half of the interval."""
    if not values:
        return math.nan, math.nan
    half = T[len(values) - 1] * statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return statistics.fmean(values), half


class Runs:
    """Values by scenario, sender or change, and point."""

    def __init__(self, folder):
        self.values = collections.defaultdict(dict)
        self.order = collections.defaultdict(list)
        for row in csv.DictReader(open(os.path.join(folder, "results.csv"))):
            scenario = row["scenario"]
            who = row["sender"] or row.get("change") or ""
            if who not in self.order[scenario]:
                self.order[scenario].append(who)
            self.values[scenario].setdefault(who, []).append(row)

    def of(self, scenario, who, metric, factor=1.0, **at):
        """A metric of all seeds at a point."""
        at = {k.replace("_", " "): v for k, v in at.items()}
        rows = [r for r in self.values[scenario][who] if all(r[k] == v for k, v in at.items())]
        return [float(r[metric]) * factor for r in rows if r[metric] != ""]

    def shown(self, digits, *args, **at):
        m, half = mean(self.of(*args, **at))
        return f"{m:.{digits}f} ± {half:.{digits}f}"

    def table(self, scenario, columns, digits, leave=()):
        """`columns`: name, metric, factor, point."""
        print("\n| sender | " + " | ".join(c[0] for c in columns) + " |\n|---" + "|---" * len(columns) + "|")
        for who in (w for w in self.order[scenario] if w not in leave):
            cells = [self.shown(digits, scenario, who, metric, factor, **at) for _, metric, factor, at in columns]
            print(f"| {who} | " + " | ".join(cells) + " |")


def tables(runs):
    rates = ["0.5 Mbit/s", "1 Mbit/s", "1.5 Mbit/s", "2 Mbit/s"]
    print("## f1: share, %")
    runs.table("f1", [(r, "main.share", 100, {"bottleneck": r}) for r in rates], 1)
    print("\n## f1b: kbit/s")
    runs.table("f1b", [("throughput", "main.goodput", 1e-3, {}), ("on A", "on-a", 1, {}), ("on B", "on-b", 1, {})], 0)
    print("\n## f2: on path A, kbit/s")
    runs.table("f2", [(r, "on-a", 1, {"bottleneck": r}) for r in rates], 0, ["TCP on B"])
    print("\n## f2: throughput, kbit/s")
    runs.table("f2", [(r, "main.goodput", 1e-3, {"bottleneck": r}) for r in rates], 0)
    print("\n## f2: the TCP flow beside it, kbit/s")
    runs.table("f2", [(r, "tcp-on-a", 1, {"bottleneck": r}) for r in rates], 0)
    losses = [(b, c) for b in ("1%", "4%") for c in ("0%", "5%", "10%")]
    print("\n## s1a: kbit/s by the losses of B and C")
    runs.table("s1a", [(f"{b}, {c}", "main.goodput", 1e-3, {"loss_B": b, "loss_C": c}) for b, c in losses], 0)
    losses = [(b, c) for b in ("1%", "4%") for c in ("0%", "3%")]
    for name, metric in (("s1b", "main.psnr"), ("s1c", "main.underflows")):
        print(f"\n## {name}")
        runs.table(name, [(f"{b}, {c}", metric, 1, {"loss_B": b, "loss_C": c}) for b, c in losses], 1)
    points = [(d, f"{p} {s}") for d in ("100ms", "150ms") for p in ("5%", "20%") for s in ("one", "both")]
    print("\n## s2: kbit/s by delay and loss")
    runs.table("s2", [(f"{d}, {p}", "main.goodput", 1e-3, {"delay": d, "sides": p}) for d, p in points], 0)
    print("\n## way-back: kbit/s")
    runs.table("way-back", [(a, "main.goodput", 1e-3, {"acknowledgements": a}) for a in ("lost", "not lost")], 0)
    for name, bottlenecks in (("f1c", ["2.5 Mbit/s", "3.2 Mbit/s", "3.5 Mbit/s"]), ("f2b", ["1.5 Mbit/s", "2 Mbit/s", "2.5 Mbit/s"])):
        print(f"\n## {name}: PSNR, dB")
        runs.table(name, [(r, "main.psnr", 1, {"bottleneck": r}) for r in bottlenecks], 1)
    print("\n## ablation: S1a, kbit/s, and F1, %\n\n| change to literal | S1a, kbit/s | F1, % of 1 Mbit/s |\n|---|---|---|")
    for who in runs.order["ablation-radio"]:
        there = who in runs.values["ablation-shared"]
        share = runs.shown(1, "ablation-shared", who, "main.share", 100) if there else ""
        print(f"| {who} | {runs.shown(0, 'ablation-radio', who, 'main.goodput', 1e-3)} | {share} |")


def quoted(runs):
    """Numbers that the text quotes."""
    print("\n## f1 over all bandwidths: share, times the TCP flows' mean, %; causes named right at 1 Mbit/s, %")
    for who in runs.order["f1"]:
        share, beside = (statistics.fmean(runs.of("f1", who, m, f)) for m, f in (("main.share", 100), ("beside", 1)))
        each = [f"{mean(runs.of('f1', who, 'beside', bottleneck=r))[0]:.2f}" for r in ("0.5 Mbit/s", "1 Mbit/s", "1.5 Mbit/s", "2 Mbit/s")]
        causes = [
            f"{m} {mean(runs.of('f1', who, m, 100, bottleneck='1 Mbit/s'))[0]:.1f}"
            for m in ("radio-right", "queue-right", "main.causes-right")
        ]
        print(f"{who}: share {share:.1f}, beside {beside:.2f} ({', '.join(each)}), {', '.join(causes)}")
    print("\n## f2: path A's part of the bottleneck, mean, and how many runs have so much of it")
    for who in runs.order["f2"]:
        parts = runs.of("f2", who, "part")
        by_seed = collections.defaultdict(list)
        for row in runs.values["f2"][who]:
            if row["part"] != "":
                by_seed[row["seed"]].append(float(row["part"]))
        m, half = mean([statistics.fmean(v) for v in by_seed.values()])
        count = [sum(a <= p < b for p in parts) for a, b in ((0, 0.05), (0.05, 0.3), (0.3, 0.4), (0.4, 0.5), (0.5, 1.1))]
        print(f"{who}: {m:.3f} ± {half:.3f}; under 0.05, to 0.3, to 0.4, to 0.5, above: {count} of {len(parts)}")
    print("\n## f1b: convergence from the second TCP flow on, s")
    for who in runs.order["f1b"]:
        values = runs.of("f1b", who, "main.convergence@three")
        print(f"{who}: {mean(values)[0]:.0f} in {len(values)} runs of {len(runs.values['f1b'][who])}")
    print("\n## live, kbit/s")
    for who in runs.order["live"]:
        for report in ("100ms", "none"):
            print(f"{who}, {report}: {runs.shown(0, 'live', who, 'main.goodput', 1e-3, report=report)}")


def verdicts(folder):
    found, says = {}, {}
    for row in csv.DictReader(open(os.path.join(folder, "claims.csv"))):
        found[row["id"].removeprefix("CMTCLFD-")] = row["verdict"]
    here = os.path.dirname(os.path.abspath(__file__))
    for name in ("claims.toml", "claims-own.toml"):
        text = open(os.path.join(here, name)).read()
        says.update(re.findall(r'^id = "CMTCLFD-(.*?)"\nsays = "(.*?)"$', text, re.M))
    print("\n## verdicts\n\n| id | claim | literal | calibrated | neutral |\n|---|---|---|---|---|")
    for name, text in says.items():
        print(f"| {name} | {text} | " + " | ".join(found.get(name + r, "") for r in READINGS) + " |")
    print(f"\n{collections.Counter(found.values())}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    all_runs = Runs(sys.argv[1])
    tables(all_runs)
    quoted(all_runs)
    verdicts(sys.argv[1])
