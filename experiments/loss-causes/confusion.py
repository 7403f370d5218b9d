#!/usr/bin/env python3
"""Prints the confusion of each policy from results of `anabranch lab run loss-causes`.

usage: confusion.py RESULTS/results.csv [...]

Counts are summed over the runs of a scenario (pooled); `mean` is the mean of the runs' shares, of runs with five such losses
at least. `arrived` was taken for lost and came. Scenario `links` has a table of its own: a row for each kind of link.
"""
import csv
import sys
from collections import defaultdict

CELLS = ["queue-as-congestion", "queue-as-radio", "radio-as-congestion", "radio-as-radio", "arrived-as-congestion", "arrived-as-radio"]


def share(right, wrong):
    return f"{100 * right / (right + wrong):.1f} %" if right + wrong else ""


def mean(pairs):
    shares = [r / (r + w) for r, w in pairs if r + w >= 5]
    return f"{100 * sum(shares) / len(shares):.1f} %" if shares else ""


def links(rows):
    """By kind of link and policy, what was lost how and taken for what; nothing where it did not happen."""
    sums = defaultdict(lambda: defaultdict(int))
    for row in rows:
        for name, value in row.items():
            if name.startswith("main.lost-") and value:
                sums[row["link"], row["policy"]][tuple(name.removeprefix("main.lost-").split("-as-"))] += int(float(value))
    cells = sorted({cell for of in sums.values() for cell, n in of.items() if n}, key=lambda c: (c[0] == "arrived", c))
    head = ["link", "policy"] + [f"{truth}: {named.replace('-', ' ')}" for truth, named in cells]
    print("\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for (link, policy), of in sums.items():
        print(f"| {link} | {policy} | " + " | ".join(str(of[cell] or "") for cell in cells) + " |")


def main():
    runs, of_links = defaultdict(list), []
    for path in sys.argv[1:]:
        for row in csv.DictReader(open(path)):
            if row["scenario"] == "links":
                of_links.append(row)
                continue
            runs[row["scenario"], row["policy"]].append([int(float(row.get(f"main.lost-{c}") or 0)) for c in CELLS])
    head = ["scenario", "policy", "queue: congestion", "queue: radio", "radio: congestion", "radio: radio", "arrived: congestion",
            "arrived: radio", "queue right", "radio right", "mean queue right", "mean radio right"]
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for (scenario, policy), counts in runs.items():
        s = [sum(c) for c in zip(*counts)]
        shares = [share(s[0], s[1]), share(s[3], s[2]), mean([(c[0], c[1]) for c in counts]), mean([(c[3], c[2]) for c in counts])]
        print(f"| {scenario} | {policy} | " + " | ".join(map(str, s)) + " | " + " | ".join(shares) + " |")
    if of_links:
        links(of_links)


if __name__ == "__main__":
    main()
