#!/usr/bin/env python3
"""Runs a grid of points in ns-2.35 and in anabranch and sets their goodput side by side. See README.md."""

import argparse
import collections
import concurrent.futures
import csv
import math
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import zlib

HERE = pathlib.Path(__file__).resolve().parent
POLICIES = ["rtx_asap", "rtx_same", "rtx_ssthresh", "rtx_loss_rate:oracle=1", "rtx_cwnd"]
# Some of every kind for CI: what ns-2 does fast, and does not differ much from seed to seed.
QUICK = ["sctp-01", "sctp-07", "sctp-36", "sctp-41", "cmt-08", "cmt-20", "cmt-27", "cmt-37", "cmt-50", "cmt-54",
         "cmt-58", "reno-06", "reno-08", "newreno-05", "newreno-12", "sack1-06", "sack1-14"]
# Two-sided 95 % points of Student's t by degrees of freedom.
T = [0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
     2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045]


def interval(values):
    """Mean and half of the 95 % interval."""
    mean = statistics.mean(values)
    if len(values) < 2:
        return mean, 0.0
    t = T[len(values) - 1] if len(values) <= len(T) else 1.96
    return mean, t * statistics.stdev(values) / math.sqrt(len(values))


def random_parts(point):
    """Does anything depend on the seed? Of TCP the phase of the clock that round trips are measured with."""
    return point["proto"] not in ("sctp", "cmt") or any(float(point[k]) > 0 for k in ("loss", "loss2"))


def ns2(ns, point, seed, start=0):
    """Goodput of one run of ns-2, bit/s; the transfer begins at `start` seconds."""
    args = [f"{k}={v}" for k, v in point.items() if k != "id"] + [f"seed={seed}", f"start={start}"]
    run = subprocess.run([ns, str(HERE / "point.tcl"), *args], capture_output=True, text=True, check=False)
    words = run.stdout.split()
    if run.returncode or len(words) != 3:
        raise SystemExit(f"crosscheck: ns-2 failed at {point['id']}: {run.stderr.strip() or run.stdout.strip()}")
    return float(words[0])


def settings(point):
    """The scenario of a point and the keys that differ from it."""
    two = float(point["rate2"]) > 0
    keys = {"duration": f"{point['time']}s"}
    for place, suffix in [("topology.path1", ""), ("topology.path2", "2")] if two else [("topology", "")]:
        keys[f"{place}.rate"] = f"{point['rate' + suffix]}mbit"
        keys[f"{place}.delay"] = f"{float(point['rtt' + suffix]) * 500:.0f}us"
        keys[f"{place}.limit"] = f"{point['queue']}p"
        keys[f"{place}.up.loss"] = f"{point['loss' + suffix]}%"
    if point["proto"] in ("sctp", "cmt"):
        keys["flow.main.receive-buffer"] = point["rbuf"]
        keys["flow.main.profile"] = "ns2-era" if point["proto"] == "sctp" else "ns2-era-cmt"
        if point["proto"] == "cmt":
            keys["flow.main.retransmission"] = POLICIES[int(point["rtx"])]
        return ("two.toml" if two else "single.toml"), keys
    keys["flow.main.recovery"] = {"sack1": "sack-pipe"}.get(point["proto"], point["proto"])
    keys["flow.main.window"] = point["window"]
    keys["flow.main.segment"] = point["size"]
    keys["flow.main.delayed-ack"] = "100ms" if point["delack"] == "1" else "0ms"
    return "tcp.toml", keys


def ours(program, point, seeds, extra):
    """Goodput of each seed of ours, bit/s."""
    scenario, keys = settings(point)
    with tempfile.TemporaryDirectory() as folder:
        sets = [f"--set={k}={v}" for k, v in keys.items()] + [f"--set={e}" for e in extra]
        command = [program, "lab", "run", str(HERE / scenario), "--seeds", str(seeds), "--jobs", "1", "--out", folder]
        run = subprocess.run([*command, *sets], capture_output=True, text=True, check=False)
        if run.returncode:
            raise SystemExit(f"crosscheck: anabranch failed at {point['id']}: {run.stderr.strip()}")
        with open(pathlib.Path(folder) / "results.csv", newline="", encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
    if rows and "metric" in rows[0]:
        return [float(r["value"]) for r in rows if r["metric"] == "main.goodput"]
    return [float(r["main.goodput"]) for r in rows]


# What random points are drawn from: rates, round trips, losses, buffers, queues, windows, segments, most seconds.
USUAL = ((1, 100), (10, 500), (0.05, 10), [16384 << n for n in range(7)], [10, 20, 50, 100, 250], [20, 50, 100, 1000],
         [500, 1000, 1460], [60])
WIDE = ((0.5, 200), (2, 800), (0.02, 15), [8192 << n for n in range(9)], [5, 10, 20, 50, 100, 250, 500, 1000],
        [4, 8, 20, 50, 100, 400, 1000], [200, 500, 536, 1000, 1460], [10, 20, 60])


def drawn(family, number, rng, ranges):
    """A point drawn at random: rates, round trips and losses evenly on a logarithmic scale, one in four without loss."""
    rates, rtts, losses, buffers, queues, windows, sizes, times = ranges

    def path():
        def between(least, most):
            return math.exp(rng.uniform(math.log(least), math.log(most)))

        rate, rtt = float(f"{between(*rates):.2g}"), round(between(*rtts))
        loss = 0 if rng.random() < 0.25 else float(f"{between(*losses):.2g}")
        return rate, rtt, loss

    first = path()
    # Plain SCTP is multihomed at one point in four; half the pairs of CMT have two equal paths but for the loss.
    two = family == "cmt" or family == "sctp" and number % 4 == 0
    second = path() if two else (0, 0, 0)
    if family == "cmt" and number % 2 == 0:
        second = (first[0], first[1], rng.choice([first[2], second[2]]))
    tcp = family not in ("sctp", "cmt")
    point = {
        "id": f"{family}-r{number:02}", "proto": family,
        "rate": first[0], "rtt": first[1], "loss": first[2],
        "rate2": second[0], "rtt2": second[1], "loss2": second[2],
        "rbuf": 65536 if tcp else buffers[rng.randrange(len(buffers))],
        "queue": rng.choice(queues),
        "window": rng.choice(windows) if tcp else 20,
        "size": rng.choice(sizes) if tcp else 1000,
        "delack": rng.randrange(2) if tcp else 0,
        "rtx": rng.randrange(5) if family == "cmt" else 4,
    }
    # As long as 80 MB take at most: ns-2's associations stop at 65,536 chunks.
    limit = point["window"] * point["size"] if tcp else point["rbuf"]

    def most(rate, rtt, loss):
        by_loss = 16 * 1500 / rtt / math.sqrt(loss / 100) if loss else math.inf
        return min(rate * 1000, 8 * limit / rtt, by_loss)  # kbit/s

    fastest = most(*first) + (most(*second) if two else 0)
    longest = times[0] if len(times) == 1 else rng.choice(times)
    point["time"] = max(6, min(longest, int(640_000 / fastest)))
    return point


def write_random(path, per_family, seed, wide):
    """Writes a grid of random points, `per_family` of SCTP and of CMT, a third as many of each TCP."""
    points = []
    for family in ("sctp", "cmt", "reno", "newreno", "sack1"):
        rng = random.Random(f"{seed} {family}" + " wide" * wide)
        count = per_family if family in ("sctp", "cmt") else -(-per_family // 3)
        points += [drawn(family, n, rng, WIDE if wide else USUAL) for n in range(1, count + 1)]
    with open(path, "w", newline="", encoding="utf-8") as f:
        writer = csv.DictWriter(f, points[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(points)


def page(args):
    """Runs the script and the scenario that docs/COMING-FROM-NS2.md sets side by side; answers whether they agree."""
    text = (HERE / "../../docs/COMING-FROM-NS2.md").read_text(encoding="utf-8")
    tcl, toml = (text.split(f"```{language}\n")[1].split("```")[0] for language in ("tcl", "toml"))
    theirs = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1, args.seeds + 1):
            # Independent replications, as in point.tcl.
            steps = f"for {{set k 1}} {{$k < {seed}}} {{incr k}} {{ $defaultRNG next-substream }}\n"
            script = pathlib.Path(folder) / "page.tcl"
            script.write_text(steps + tcl, encoding="utf-8")
            run = subprocess.run([args.ns, str(script)], capture_output=True, text=True, check=False, cwd=folder)
            words = run.stdout.split()
            if run.returncode or len(words) != 2:
                raise SystemExit(f"crosscheck: ns-2 failed: {run.stderr.strip() or run.stdout.strip()}")
            theirs.append(float(words[0]) * 1e6)
        scenario = pathlib.Path(folder) / "page.toml"
        scenario.write_text(toml, encoding="utf-8")
        out = f"{folder}/out"
        command = [args.program, "lab", "run", str(scenario), "--seeds", str(args.seeds), "--out", out]
        subprocess.run(command, capture_output=True, check=True)
        with open(pathlib.Path(out) / "results.csv", newline="", encoding="utf-8") as f:
            mine = [float(r["main.goodput"]) for r in csv.DictReader(f)]
    r = compare({"id": "page"}, theirs, mine)
    print(f"page: ours {r['ours'] / 1e6:.3f} +- {r['ours_ci'] / 1e6:.3f} Mbit/s, ns-2 {r['ns2'] / 1e6:.3f} +- "
          f"{r['ns2_ci'] / 1e6:.3f} Mbit/s, ratio {r['ratio']}: {r['verdict']}")
    return r["verdict"] != "OUTSIDE"


def compare(point, theirs, mine):
    """One row of the table."""
    (m, mh), (t, th) = interval(mine), interval(theirs)
    ratio = m / t if t else float("inf")
    difference = abs(m - t)
    if abs(ratio - 1) <= 0.1:
        verdict = "within 10 %"
    elif difference <= mh and difference <= th:
        verdict = "inside both intervals"
    else:
        verdict = "OUTSIDE"
    return {**point, "ours": round(m), "ours_ci": round(mh), "ns2": round(t), "ns2_ci": round(th),
            "ratio": f"{ratio:.3f}", "ns2_from_64": "", "verdict": verdict}


def rounded(row, point, late, mine):
    """Says of a point outside whether it agrees with what ns-2 does from 64 s on, where its clock keeps its grain."""
    again = compare(point, late, mine)
    row["ns2_from_64"] = again["ns2"]
    if again["verdict"] != "OUTSIDE":
        row["verdict"] = f"OUTSIDE by ns-2's clock: {again['ratio']} from 64 s on"


def summary(rows):
    """Prints shares by agent; answers whether the goal is met."""
    by = collections.defaultdict(list)
    for r in rows:
        by[r["proto"]].append(not r["verdict"].startswith("OUTSIDE"))
    print()
    for proto, good in by.items():
        print(f"{proto:8} {sum(good)} of {len(good)} points agree")
    everything = [g for good in by.values() for g in good]
    tcp = all(r["verdict"] != "OUTSIDE" for r in rows if r["proto"] not in ("sctp", "cmt"))
    clock = sum(r["verdict"].startswith("OUTSIDE by") for r in rows)
    share = sum(everything) / len(everything)
    print(f"{'all':8} {sum(everything)} of {len(everything)} points agree, {100 * share:.1f} %"
          f"{f', {clock} of the others but for the rounding of its clock' if clock else ''}"
          f"{'' if tcp else '; a TCP does not at every point'}")
    return share >= 0.9 and tcp


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grid", default=HERE / "grid.csv", help="points, one per line [default: grid.csv]")
    parser.add_argument("--only", default="", metavar="PREFIX", help="points whose id begins so")
    parser.add_argument("--seeds", type=int, default=20, help="replications where anything is random [default: 20]")
    parser.add_argument("--more", type=int, default=5, metavar="N", help="so many times more on our side [default: 5]")
    parser.add_argument("--program", default="anabranch", help="the program [default: anabranch]")
    parser.add_argument("--ns", default="ns", help="ns-2.35 [default: ns]")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="another key for our side")
    parser.add_argument("--jobs", type=int, default=2, help="points at a time [default: 2]")
    parser.add_argument("--out", default="results/crosscheck-ns2", help="folder for crosscheck.csv and runs of ns-2")
    parser.add_argument("--random", type=int, metavar="N", help="another grid: N random points of SCTP and of CMT")
    parser.add_argument("--wide", action="store_true", help="random points from wider ranges")
    parser.add_argument("--quick", action="store_true", help="a few points of every kind")
    parser.add_argument("--page", action="store_true", help="the two scripts of docs/COMING-FROM-NS2.md instead")
    parser.add_argument("--seed", type=int, default=1, help="what the random points are drawn with [default: 1]")
    args = parser.parse_args()
    if args.random:
        args.out = args.out.rstrip("/") + f"-random{args.seed}" + "-wide" * args.wide
        args.grid = pathlib.Path(args.out) / "grid.csv"
        args.grid.parent.mkdir(parents=True, exist_ok=True)
        write_random(args.grid, args.random, args.seed, args.wide)
    if shutil.which(args.ns) is None:
        print("crosscheck-ns2: there is no ns-2.35 (Debian: apt-get install ns2)", file=sys.stderr)
        return 2
    if args.page:
        return 0 if page(args) else 1
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    with open(args.grid, newline="", encoding="utf-8") as f:
        points = [p for p in csv.DictReader(f) if p["id"].startswith(args.only)]
    if args.quick:
        points = [p for p in points if p["id"] in QUICK]
    if not points:
        print(f"crosscheck-ns2: no point of {args.grid} begins with `{args.only}`", file=sys.stderr)
        return 2

    script = zlib.crc32((HERE / "point.tcl").read_bytes())

    def one(point):
        seeds = args.seeds if random_parts(point) else 1
        kept = out / f"ns2-{point['id']}.csv"
        # ns-2's runs never change: what is there for this very point and script is taken.
        head = ",".join(f"{k}={v}" for k, v in point.items()) + f",script={script:08x}"
        lines = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
        theirs = [float(v) for v in lines[1:]] if lines[:1] == [head] else []
        for seed in range(len(theirs) + 1, seeds + 1):
            theirs.append(ns2(args.ns, point, seed))
        kept.write_text("\n".join([head, *map(str, theirs)]) + "\n", encoding="utf-8")
        # Ours cost little, and at high loss a run's first losses decide about much of it.
        mine = ours(args.program, point, seeds * args.more if seeds > 1 else 1, args.set)
        row = compare(point, theirs[:seeds], mine)
        if row["verdict"] == "OUTSIDE" and not args.set:
            rounded(row, point, [ns2(args.ns, point, s, start=64) for s in range(1, seeds + 1)], mine)
        return row

    rows = []
    print(f"{'point':10} {'rate rtt loss, of each path':34} {'rbuf or window':>14} {'ours Mbit/s':>17} "
          f"{'ns-2 Mbit/s':>17} {'ratio':>6}  verdict")
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for r in pool.map(one, points):
            rows.append(r)
            paths = f"{r['rate']} {r['rtt']} {r['loss']}"
            if float(r["rate2"]) > 0:
                paths += f" | {r['rate2']} {r['rtt2']} {r['loss2']}"
            limit = r["rbuf"] if r["proto"] in ("sctp", "cmt") else f"{r['window']} x {r['size']}"
            mine = f"{r['ours'] / 1e6:.3f} +- {r['ours_ci'] / 1e6:.3f}"
            theirs = f"{r['ns2'] / 1e6:.3f} +- {r['ns2_ci'] / 1e6:.3f}"
            print(f"{r['id']:10} {paths:34} {limit:>14} {mine:>17} {theirs:>17} {r['ratio']:>6}  {r['verdict']}",
                  flush=True)
    with open(out / "crosscheck.csv", "w", newline="", encoding="utf-8") as f:
        writer = csv.DictWriter(f, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return 0 if summary(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
