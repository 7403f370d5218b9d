#!/usr/bin/env python3
"""What each sender has of the bottlenecks of scenario `unseen`, by the packets that pipe and queue hold.

    unseen.py RESULTS.csv [unseen-all]

Prints a table for each radio loss and kind of TCP: % of all that is delivered, the mean over the bottlenecks of a column, with its 95 %
t-interval over the seeds. Packets are those of the middle of what a bottleneck is drawn from: rate times round trip and queue,
of 1500 bytes.
"""
import collections
import csv
import os
import re
import statistics
import sys

# Student's t, 97.5 %, by degrees of freedom.
T = [0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262]
COLUMNS = [(10, "under 10"), (40, "10 to 40"), (160, "40 to 160"), (640, "160 to 640"), (float("inf"), "over 640")]
RANGES = re.compile(
    r'rate" = "(\d+)kbit\.\.(\d+)kbit per seed", "topology\.cable\.bottleneck\.delay" = "(\d+)ms\.\.(\d+)ms per seed", '
    r'"topology\.cable\.bottleneck\.limit" = "(\d+)KB\.\.(\d+)KB'
)


def columns():
    """The column of each bottleneck of the scenario."""
    text = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "unseen.toml")).read()
    names = re.findall(r'^    "(.*? Mbit/s, .*?)",$', text, re.M)
    drawn = [tuple(map(int, r)) for r in RANGES.findall(text)]
    assert len(names) == len(drawn), "unseen.toml: as many names as bottlenecks"
    found = {}
    for name, (rate1, rate2, delay1, delay2, queue1, queue2) in zip(names, drawn):
        # Both ways of the bottleneck, and four of 1 ms on either side.
        pipe = (rate1 + rate2) / 2 * 1e3 / 8 * (delay1 + delay2 + 4) / 1e3
        packets = (pipe + (queue1 + queue2) / 2 * 1e3) / 1500
        found[name] = next(i for i, (most, _) in enumerate(COLUMNS) if packets < most)
    return found


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    scenario = sys.argv[2] if len(sys.argv) == 3 else "unseen"
    column = columns()
    shares = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in csv.DictReader(open(sys.argv[1])):
        if row.get("scenario") == scenario:
            key = (row["radio"], row["tcp"]), row["sender"], column[row["bottleneck"]]
            shares[key][row["seed"]].append(100 * float(row["main.share"]))
    for network in dict.fromkeys(k[0] for k in shares):
        print(f"\nradio loss: {network[0]}; beside {network[1]}\n\n| sender | " + " | ".join(name for _, name in COLUMNS) + " |")
        print("|---" * (len(COLUMNS) + 1) + "|")
        for sender in dict.fromkeys(k[1] for k in shares if k[0] == network):
            cells = []
            for i in range(len(COLUMNS)):
                means = [statistics.mean(v) for v in shares[network, sender, i].values()]
                half = T[len(means) - 1] * statistics.stdev(means) / len(means) ** 0.5 if len(means) > 1 else 0
                cells.append(f"{statistics.mean(means):.0f} ± {half:.0f}" if means else "")
            print(f"| {sender} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
