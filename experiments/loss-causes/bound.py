#!/usr/bin/env python3
"""How well does what a sender sees part losses by a queue from losses by a radio? A classifier learned from runs.

usage: bound.py [--program anabranch] [--scenario grid] [--train 3] [--test 4] [--policy full_queue] [--within 5]

Runs every point of a scenario (grid, paper, paper-shared) with `--log` (some minutes, some hundred MB in a temporary folder),
with one seed to learn from and another, which draws other links, to be tested with; `--train 1,2,3` learns from several. For
each loss it takes what a sender could know of its path when it judged: round trips before and after, where they lie among those
of ten seconds, how losses before were placed, rates and counts. Gradient-boosted trees learn the true cause (pip install
scikit-learn). Beside it stands what the policy in those runs said of the same losses. Exit code 1 where the mean of what the
policy has right of both kinds is more than WITHIN points below the learned one's.
"""
import argparse
import bisect
import json
import os
import subprocess
import sys
import tempfile
from collections import deque

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

HERE = os.path.dirname(os.path.abspath(__file__))
WINDOW = 10.0
TRUTH = {"queue": 1, "random-loss": 0}


def events(path):
    """Of a trace: ("sample", t, path, serial, round trip) and ("loss", t, path, serial, truth, named). Serials are a path's."""
    open_, order, copies, serials, newest, gaps_before = set(), deque(), {}, {}, None, {}
    for line in open(path):
        kind = line[10:line.index('"', 10)]
        if kind not in ("data", "retransmission", "sack", "judged"):
            continue
        e = json.loads(line)
        if e["flow"] != "main":
            continue
        if kind == "judged":
            at = next((c for c in copies.get(e["tsn"], []) if c[0] == e["sent"] and c[1] == e["path"]), None)
            if at is not None and e.get("cause") in TRUTH:
                yield "loss", e["t"], at[1], at[2], TRUTH[e["cause"]], e.get("named")
        elif kind == "sack":
            new = []
            while order and order[0] <= e["cumulative"]:
                new.append(order.popleft())
            before, gaps_before = gaps_before, {a: b for a, b in e["gaps"]}
            for a, b in e["gaps"]:
                new += range(max(a, before.get(a, a - 1) + 1), b + 1)
            # What was sent once only: of anything else it is not known which copy came.
            new = [copies[x][0] for x in new if x in open_ and len(copies[x]) == 1 and not open_.discard(x)]
            latest = {}
            for t, at, n in new:
                latest[at] = max(latest.get(at, (-1, 0)), (n, t))
            for at, (n, t) in latest.items():
                yield "sample", e["t"], at, n, e["t"] - t
        else:
            at = e["path"]
            if e["packet"] != newest:
                newest, serials[at] = e["packet"], serials.get(at, -1) + 1
            for tsn in e["tsn"] if kind == "data" else [e["tsn"]]:
                if tsn not in copies:
                    order.append(tsn)
                    open_.add(tsn)
                copies.setdefault(tsn, []).append((e["t"], at, serials[at]))


class Seen:
    """What is known of a path."""

    def __init__(self):
        self.trips, self.gaps, self.past, self.newest = deque(maxlen=4000), deque(maxlen=128), deque(maxlen=200), None

    def sample(self, t, n, rtt):
        if self.newest and n > self.newest[1]:
            self.gaps.append((t - self.newest[0]) / (n - self.newest[1]))
        self.trips.append((t, n, rtt, min(rtt, self.newest[2]) if self.newest else rtt))
        self.newest = (t, n, rtt)

    def loss(self, t, n):
        trips, gaps, past, newest = self.trips, self.gaps, self.past, self.newest
        times = [s[0] for s in trips]
        seen = list(trips)[min(bisect.bisect_left(times, t - WINDOW), len(trips) - 1):]
        r, m = np.array([s[2] for s in seen]), np.array([s[3] for s in seen])
        base, top = r.min(), m.max()
        span, packet = max(top - base, 1e-6), np.quantile(gaps, 0.2) if gaps else 0.0
        before = [s[2] for s in reversed(trips) if s[1] < n][:3]
        after = [s[2] for s in trips if s[1] > n][:3]
        near = np.median((before[:2] + after[:2]) or [newest[2]])
        lost = [p for p in past if p[0] > t - WINDOW]
        upper = near - max(0.1 * span, packet)
        rates = [(sum(p[1] >= upper for p in lost) + 1) / ((m >= upper).sum() + 1), (sum(p[1] < upper for p in lost) + 0.5) / ((m < upper).sum() + 1)]
        put = lambda v: [(v[i] - base) / span if i < len(v) else np.nan for i in range(3)]
        row = put(before) + put(after) + [
            (near - base) / span, (top - near) / max(packet, 1e-6), span / max(packet, 1e-6), span / base, base, packet, np.mean(r >= near),
            np.log(rates[0] / rates[1]), len(lost) / len(seen), len(lost), len(seen), t - past[-1][0] if past else np.nan,
            n - past[-1][2] if past else np.nan, r.std() / span, *((np.quantile(m, q) - base) / span for q in (0.25, 0.5, 0.75, 0.9, 0.98)),
            newest[1] - n, (newest[2] - base) / span,
        ]
        past.append((t, near, n))
        return row


def features(path):
    """Rows of numbers, the truth, what was named."""
    paths, x, y, said = {}, [], [], []
    for kind, t, at, n, *rest in events(path):
        of = paths.setdefault(at, Seen())
        if kind == "sample":
            of.sample(t, n, *rest)
        elif of.trips:
            truth, named = rest
            x.append(of.loss(t, n))
            y.append(truth)
            said.append(named == "congestion" or named == "path-failure")
    return x, y, said


def parts(scenario):
    """Runs of one part of a scenario each, so that not all traces lie on the disk at once."""
    if scenario == "grid":
        return [["--points", f"radio={band}"] for band in ("0.1 to 0.5 %", "0.5 to 2 %", "2 to 10 %")]
    return [[]]


def runs(program, scenario, policy, seeds):
    out = []
    for seed in seeds.split(","):
        for part in parts(scenario):
            with tempfile.TemporaryDirectory() as d:
                at = ["--points", f"policy={policy}", *part, "--trace-at", f"policy={policy}"]
                cmd = [program, "lab", "run", f"{HERE}/{scenario}.toml", "--seeds", f"{seed}-{seed}", "--trace-seed", seed, "--log", "--out", d, *at]
                subprocess.run(cmd, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                trace = os.path.join(d, "trace")
                out += [features(os.path.join(trace, f)) for f in sorted(os.listdir(trace)) if f.endswith(".jsonl")]
    return out


def shares(truth, said):
    truth, said = np.array(truth, bool), np.array(said, bool)
    return said[truth].mean(), (~said[~truth]).mean()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--program", default="anabranch")
    p.add_argument("--scenario", default="grid", choices=["grid", "paper", "paper-shared"])
    p.add_argument("--train", default="3", help="seeds, with commas between them")
    p.add_argument("--test", default="4")
    p.add_argument("--policy", default="full_queue")
    p.add_argument("--within", type=float, default=5.0, help="points")
    a = p.parse_args()
    train, test = (runs(a.program, a.scenario, a.policy, seeds) for seeds in (a.train, a.test))
    join = lambda rs, i: sum((list(r[i]) for r in rs), [])
    x, y = np.array(join(train, 0), float), np.array(join(train, 1))
    weight = np.where(y == 1, 0.5 / max(1, (y == 1).sum()), 0.5 / max(1, (y == 0).sum())) * len(y)
    model = HistGradientBoostingClassifier(max_iter=300, learning_rate=0.06, random_state=1).fit(x, y, sample_weight=weight)
    xt, yt = np.array(join(test, 0), float), np.array(join(test, 1))
    score = model.predict_proba(xt)[:, 1]
    print(f"losses: {len(y)} to learn from, {len(yt)} to be tested with, {yt.sum()} of them by a queue")
    print("                     queue   radio   balanced")
    show = lambda name, q, r: print(f"{name:20} {q:6.1%}  {r:6.1%}  {(q + r) / 2:6.1%}")
    ours = shares(yt, join(test, 2))
    show(a.policy, *ours)
    show("learned", *shares(yt, score > 0.5))
    even = min((abs(np.subtract(*shares(yt, score > c))), c) for c in np.linspace(0.02, 0.98, 97))[1]
    bound = shares(yt, score > even)
    show("learned, both alike", *bound)
    sys.exit(int(100 * (sum(bound) - sum(ours)) / 2 > a.within))


if __name__ == "__main__":
    main()
