#!/usr/bin/env python3
"""Where low-latency is later than the best of the others: python3 scripts/messages_grid.py results/messages-grid

At each point of the scenario `messages/grid` the 99th percentile of the delay of low-latency is compared with that of each
other sender, paired by seed, the best by its mean. It is behind where the mean difference is more than 2 % of the other's
and its 95 % interval lies above zero, ahead where the interval lies below zero, level where it lies within 2 % to either
side, and else not decided. Prints those points that are behind, and a summary; `--table` prints all points. Exit code 1 when
the points that are behind are not those in `experiments/messages/grid-behind.txt`.
"""

import argparse
import csv
import math
import os
import statistics
import sys
from collections import defaultdict

OURS = "low-latency"
# Two-sided 95 % quantiles of Student's t by degrees of freedom.
T95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}


def interval(values):
    mean = statistics.mean(values)
    if len(values) < 2:
        return mean, mean, mean
    t = T95.get(len(values) - 1, 1.96 + 2.4 / (len(values) - 1))
    half = t * statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", help="folder that `anabranch lab run messages/grid` wrote")
    parser.add_argument("--table", action="store_true", help="print every point")
    parser.add_argument("--known", default=os.path.join(os.path.dirname(__file__), "../experiments/messages/grid-behind.txt"))
    args = parser.parse_args()
    p99 = defaultdict(lambda: defaultdict(dict))
    needless = defaultdict(list)
    try:
        with open(os.path.join(args.results, "results.csv"), newline="", encoding="utf-8") as f:
            for row in csv.DictReader(f):
                if row["scenario"] not in ("grid", "messages/grid"):
                    continue
                point = (row["network"], row["interval"], row["loss"])
                # A connection that handed over too little for a percentile, as after a handshake of minutes, does not count.
                if row["sender"] == OURS or row["game.message-delay-p99"]:
                    p99[point][row["sender"]][row["seed"]] = float(row["game.message-delay-p99"])
                if row["sender"] == OURS:
                    needless[point].append(float(row["game.needless"]))
    except (OSError, KeyError, ValueError) as e:
        print(f"{args.results}: not the results of messages/grid ({e})", file=sys.stderr)
        return 2
    known = set()
    if os.path.exists(args.known):
        with open(args.known, encoding="utf-8") as f:
            known = {tuple(line.strip().split(" | ")) for line in f if line.strip() and not line.startswith("#")}
    behind, best_count = [], defaultdict(int)
    for point, senders in p99.items():
        ours = senders[OURS]
        means = {s: statistics.mean(v.values()) for s, v in senders.items() if s != OURS}
        best = min(means, key=means.get)
        seeds = sorted(set(ours) & set(senders[best]))
        mean, low, high = interval([ours[s] - senders[best][s] for s in seeds])
        is_behind = low > 0 and mean > 0.02 * means[best]
        within = 0.02 * means[best]
        level = -within <= low and high <= within
        word = "behind" if is_behind else "ahead" if high < 0 else "level" if level else "open"
        best_count[word] += 1
        if is_behind:
            behind.append(point)
        if is_behind or args.table:
            print(f"{word:6} {point[0]:13} each {point[1]:6} {point[2]:12}"
                  f" {statistics.mean(ours.values()) * 1000:7.1f} ms, {best} {means[best] * 1000:7.1f} ms,"
                  f" difference {mean * 1000:+.1f} ({low * 1000:+.1f} to {high * 1000:+.1f})")
    worst = max(needless.items(), key=lambda kv: statistics.mean(kv[1]))
    print(f"{len(p99)} points: low-latency is ahead of the best of the others at {best_count['ahead']},"
          f" level at {best_count['level']}, behind at {best_count['behind']}, not decided at {best_count['open']};"
          f" needless at most {statistics.mean(worst[1]) * 100:.1f} % ({' | '.join(worst[0])})")
    new = [p for p in behind if p not in known]
    for point in new:
        print("not known before: " + " | ".join(point))
    gone = known - set(behind)
    for point in sorted(gone):
        print("no longer behind, or no point: " + " | ".join(point))
    return 1 if new or gone else 0


if __name__ == "__main__":
    sys.exit(main())
