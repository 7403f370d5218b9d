#!/usr/bin/env python3
"""How well does what a sender sees part losses by a queue from losses by a radio? A classifier learned from runs of the grid.

usage: bound.py [--program anabranch] [--train 3] [--test 4] [--policy full_queue]

Runs every link of grid.toml with `--log` (some minutes, some hundred MB in a temporary folder), with one seed to learn from and
another, which draws other links, to be tested with. For each loss it takes what a sender could know when it judged: round trips
before and after, where they lie among those of ten seconds, how losses before were placed, rates and counts. Gradient-boosted
trees learn the true cause (pip install scikit-learn). Beside it stands what the policy in those runs said of the same losses.
"""
import argparse
import bisect
import json
import os
import subprocess
import tempfile
from collections import deque

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

HERE = os.path.dirname(os.path.abspath(__file__))
BANDS = ["0.1 to 0.5 %", "0.5 to 2 %", "2 to 10 %"]
WINDOW = 10.0
TRUTH = {"queue": 1, "random-loss": 0}


def events(path):
    """Of a trace: ("sample", t, serial, round trip) and ("loss", t, serial, truth, named, timed out)."""
    open_, order, copies, serial, packet, gaps_before = set(), deque(), {}, -1, None, {}
    for line in open(path):
        kind = line[10:line.index('"', 10)]
        if kind not in ("data", "retransmission", "sack", "judged"):
            continue
        e = json.loads(line)
        if e["flow"] != "main":
            continue
        if kind == "judged":
            n = next((n for t, n in copies.get(e["tsn"], []) if t == e["sent"]), None)
            if n is not None and e.get("cause") in TRUTH:
                yield "loss", e["t"], n, TRUTH[e["cause"]], e.get("named")
        elif kind == "sack":
            new = []
            while order and order[0] <= e["cumulative"]:
                new.append(order.popleft())
            before, gaps_before = gaps_before, {a: b for a, b in e["gaps"]}
            for a, b in e["gaps"]:
                new += range(max(a, before.get(a, a - 1) + 1), b + 1)
            # What was sent once only: of anything else it is not known which copy came.
            new = [copies[x][0] for x in new if x in open_ and len(copies[x]) == 1 and not open_.discard(x)]
            if new:
                t, n = max(new, key=lambda c: c[1])
                yield "sample", e["t"], n, e["t"] - t
        else:
            if e["packet"] != packet:
                packet, serial = e["packet"], serial + 1
            for tsn in e["tsn"] if kind == "data" else [e["tsn"]]:
                if tsn not in copies:
                    order.append(tsn)
                    open_.add(tsn)
                copies.setdefault(tsn, []).append((e["t"], serial))


def features(path):
    """Rows of numbers, the truth, what was named."""
    trips, gaps, past, x, y, said = deque(maxlen=4000), deque(maxlen=128), deque(maxlen=200), [], [], []
    newest = None
    for e in events(path):
        t = e[1]
        if e[0] == "sample":
            _, _, n, rtt = e
            both = min(rtt, newest[2]) if newest else rtt
            if newest and n > newest[1]:
                gaps.append((t - newest[0]) / (n - newest[1]))
            newest = (t, n, rtt)
            trips.append((t, n, rtt, both))
            continue
        if not trips:
            continue
        _, _, n, truth, named = e
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
        x.append(put(before) + put(after) + [
            (near - base) / span, (top - near) / max(packet, 1e-6), span / max(packet, 1e-6), span / base, base, packet, np.mean(r >= near),
            np.log(rates[0] / rates[1]), len(lost) / len(seen), len(lost), len(seen), t - past[-1][0] if past else np.nan,
            n - past[-1][2] if past else np.nan, r.std() / span, *((np.quantile(m, q) - base) / span for q in (0.25, 0.5, 0.75, 0.9, 0.98)),
            newest[1] - n, (newest[2] - base) / span,
        ])
        y.append(truth)
        said.append(named == "congestion" or named == "path-failure")
        past.append((t, near, n))
    return x, y, said


def runs(program, policy, seed):
    out = []
    for band in BANDS:
        with tempfile.TemporaryDirectory() as d:
            at = ["--points", f"policy={policy}", "--points", f"radio={band}", "--trace-at", f"policy={policy}"]
            cmd = [program, "lab", "run", f"{HERE}/grid.toml", "--seeds", f"{seed}-{seed}", "--trace-seed", str(seed), "--log", "--out", d, *at]
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
    p.add_argument("--train", type=int, default=3)
    p.add_argument("--test", type=int, default=4)
    p.add_argument("--policy", default="full_queue")
    a = p.parse_args()
    train, test = runs(a.program, a.policy, a.train), runs(a.program, a.policy, a.test)
    join = lambda rs, i: sum((list(r[i]) for r in rs), [])
    x, y = np.array(join(train, 0), float), np.array(join(train, 1))
    weight = np.where(y == 1, 0.5 / max(1, (y == 1).sum()), 0.5 / max(1, (y == 0).sum())) * len(y)
    model = HistGradientBoostingClassifier(max_iter=300, learning_rate=0.06, random_state=1).fit(x, y, sample_weight=weight)
    xt, yt = np.array(join(test, 0), float), np.array(join(test, 1))
    score = model.predict_proba(xt)[:, 1]
    print(f"losses: {len(y)} to learn from, {len(yt)} to be tested with, {yt.sum()} of them by a queue")
    print("                     queue   radio   balanced")
    show = lambda name, q, r: print(f"{name:20} {q:6.1%}  {r:6.1%}  {(q + r) / 2:6.1%}")
    show(a.policy, *shares(yt, join(test, 2)))
    show("learned", *shares(yt, score > 0.5))
    even = min((abs(np.subtract(*shares(yt, score > c))), c) for c in np.linspace(0.02, 0.98, 97))[1]
    show("learned, both alike", *shares(yt, score > even))


if __name__ == "__main__":
    main()
