#!/usr/bin/env python3
"""Holds `live` in the results of `anabranch lab run weather` against what could be reached.

    check_weather.py DIR [--known FILE] [--most FRAMES]

DIR is the --out of a run in any form. In no run of `live` may more frames be lost, for each event, than FRAMES (25)
beyond the plan that knows the links' future (film.lost-beyond-offline). Scenarios in FILE, one a line, are known to fail.
One of them that holds in every run has to leave that list, and one that is not there fails the check; what may join the
list is said in its head.
"""

import argparse
import csv
import pathlib
import sys

KNOWN = pathlib.Path(__file__).parent.parent / "experiments/weather/known-failures.txt"


def worst(path):
    """For each scenario the most frames that a run of `live` lost beyond the plan."""
    lost = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            if row["sender"] == "live":
                value = float(row["film.lost-beyond-offline"])
                lost[row["scenario"]] = max(value, lost.get(row["scenario"], value))
    return lost


def names(path):
    lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    return {line for line in lines if line}


def main():
    parser = argparse.ArgumentParser(description="Holds live against what could be reached.")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--known", type=pathlib.Path, default=KNOWN)
    parser.add_argument("--most", type=float, default=25.0)
    args = parser.parse_args()
    lost, known = worst(args.folder / "results.csv"), names(args.known)
    if not lost:
        sys.exit(f"{args.folder}: no run of live")
    wrong = [f"FAIL {name}: there is no such scenario in the results" for name in sorted(known - lost.keys())]
    for name, frames in sorted(lost.items()):
        if frames > args.most and name not in known:
            wrong.append(f"FAIL {name}: {frames:.1f} frames for each event beyond the plan, at most {args.most:g} allowed")
        elif frames <= args.most and name in known:
            wrong.append(f"FAIL {name}: it holds now ({frames:.1f} frames): remove it from {args.known.name}")
    held = sum(frames <= args.most for frames in lost.values())
    print(f"{held} of {len(lost)} scenarios hold, {len(known)} are known to fail")
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(1 if wrong else 0)


main()
