#!/usr/bin/env python3
"""The weather suite as a table in Markdown: every sender beside both bounds.

    weather_table.py DIR

DIR is the --out of `anabranch lab run weather`, perhaps of some senders alone (`--points sender=cmt`). Frames are shares that came whole and in time, means over the seeds; the
last columns are of `live`: frames lost for each event beyond the plan, on the mean and of the worst seed, and seconds
from the end of an event until the stream is whole again, of the worst seed.
"""

import csv
import pathlib
import sys
from collections import defaultdict

SENDERS = ["live", "cmt", "media", "low-latency", "alone"]


def number(row, column):
    value = row.get(f"film.{column}", "")
    return float(value) if value not in ("", "nan") else None


def mean(values):
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None


def share(value):
    return "" if value is None else f"{value:.3f}"


def main():
    if len(sys.argv) != 2:
        print(__doc__.strip(), file=sys.stderr)
        sys.exit(2)
    rows = defaultdict(list)
    results = pathlib.Path(sys.argv[1]) / "results.csv"
    if not results.is_file():
        print(f"weather_table: there is no {results}; run `anabranch lab run weather` first", file=sys.stderr)
        sys.exit(2)
    with open(results, newline="") as file:
        for row in csv.DictReader(file):
            rows[row["scenario"], row["sender"]].append(row)
    scenarios = list(dict.fromkeys(name for name, _ in rows))
    print(f"| scenario | possible | planned | {' | '.join(SENDERS)} | live: beyond the plan | worst seed | whole again, s |")
    print("|---|---|---|" + "---|" * (len(SENDERS) + 3))
    sums, seeds = [0.0, 0.0], len({r["seed"] for of in rows.values() for r in of})
    for name in scenarios:
        live = rows[name, "live"]
        shown = [mean(number(r, "whole-frames") for r in rows[name, s]) for s in SENDERS]
        beyond = [number(r, "lost-beyond-offline") for r in live]
        recovery = [v for r in live if (v := number(r, "recovery")) is not None]
        cells = [share(mean(number(r, f"{bound}-frames") for r in live)) for bound in ("possible", "offline")]
        cells += [share(v) for v in shown]
        cells += [f"{mean(beyond):.1f}", f"{max(beyond):.0f}"] if beyond else ["", ""]
        cells += [f"{max(recovery):.2f}" if recovery else ""]
        print(f"| `{name}` | {' | '.join(cells)} |")
        if beyond:
            sums = [sums[0] + mean(beyond), max(sums[1], max(beyond))]
    print(f"\n{len(scenarios)} scenarios, {seeds} seeds: {sums[0]:.0f} frames beyond the plan in sum of means, {sums[1]:.0f} at most.")


main()
