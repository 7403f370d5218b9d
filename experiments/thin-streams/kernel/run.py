#!/usr/bin/env python3
"""Runs a scenario of the lab on a Linux kernel, in virtual time.

    run.py MANIFEST SCENARIO --out FOLDER [--points KEY=VALUE]... [--seeds N] [--seconds S] [--wire] [--reference]

MANIFEST is the manifest.json of a `lab run`, which has every parameter of every point; a run with one seed is enough. The
kernel is Debian's user-mode one with the clock of clock.c. OUT/results.csv has the form of the lab's own; --wire follows
every packet and adds the delays of repetitions; --reference writes OUT/SCENARIO.csv, which a [[reference]] reads. Points
that ask for what no kernel has, or what is not mapped to one (kept.json has what is taken for granted), are left out and
listed. A run that was stopped goes on where it was.
"""

import argparse
import csv
import json
import shutil
import sys
import time
from pathlib import Path

import boot
import measure
import streams

# Streams of one boot: what they note has to find room on the disk.
TOGETHER = 48
# Measuring begins after so many seconds, or earlier if the scenario says so: no handshake loses anything here.
SETTLED = 10.0


def mistake(text):
    print(f"run.py: {text}", file=sys.stderr)
    sys.exit(2)


def arguments():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("manifest", type=Path)
    a.add_argument("scenario")
    a.add_argument("--out", type=Path, required=True)
    a.add_argument("--points", action="append", default=[], metavar="KEY=VALUE")
    a.add_argument("--seeds", type=int, help="runs of each point [default: the scenario's]")
    a.add_argument("--seconds", type=float, help="how long each stream is measured [default: the scenario's]")
    a.add_argument("--messages", type=int, help="how many messages are measured, in place of how long")
    a.add_argument("--wire", action="store_true")
    a.add_argument("--keep", action="store_true", help="leave captures and messages in OUT/boots")
    a.add_argument("--reference", action="store_true")
    a.add_argument("--programs", type=Path, default=Path("target/kernel-streams"), help="where they are built")
    return a.parse_args()


def wanted(o, keys, points):
    """The points that are asked for, as streams; and those that no kernel can run, with the reason."""
    chosen = {}
    for pair in o.points:
        key, _, value = pair.partition("=")
        if key not in keys:
            mistake(f"{o.scenario} has no sweep key {key}; it has {', '.join(keys)}")
        chosen.setdefault(key, set()).add(value)
    out, left_out = [], []
    for values, parameters in points:
        if any(dict(zip(keys, values))[key] not in some for key, some in chosen.items()):
            continue
        try:
            s = streams.stream(parameters)
            if o.wire and s["link"]["up"]["jitter"]:
                raise streams.NotInKernel("what came when of a link whose delay varies (--wire)")
            out.append((values, {**s, "from": min(s["from"], SETTLED), "measured": s["duration"] - s["from"]}))
        except streams.NotInKernel as why:
            left_out.append((values, str(why)))
    return out, left_out


def planned(o, points, seeds):
    """Every run, the longest first so that those of a boot end together."""
    runs = []
    for values, s in points:
        every = s["words"]["interval"] / 1e9
        measured = o.messages or int((o.seconds or s["measured"]) / every)
        count = measured + int(s["from"] / every)
        runs += [{**s, "values": values, "seed": seed, "count": count, "key": (*values, str(seed))} for seed in range(1, seeds + 1)]
    return sorted(runs, key=lambda r: -r["count"] * r["words"]["interval"])


def measured(o, folder, i, run):
    flow = run["flow"]
    row = measure.delays(folder, i, run["from"])
    if o.wire:
        row |= measure.repairs(folder, i, run["words"]["size"], run["from"], run["link"]["up"]["delay"])
    return {f"{flow}.{name}": value for name, value in row.items()}


def read(name):
    if not name.exists():
        return []
    with open(name, newline="") as f:
        return list(csv.DictReader(f))


def write_reference(o, keys, rows, version):
    metrics = [name for name in rows[0] if name not in {"scenario", *keys, "seed"}]
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    with open(o.out / f"{o.scenario}.csv", "w", newline="") as f:
        count = max(map(len, groups.values()))
        f.write(f"# Linux {version} in user mode, HZ=100, virtual time; means of {count} runs with their 95 % t-interval:\n")
        f.write(f"# kernel/run.py MANIFEST {o.scenario} --seeds {count}{' --wire' if o.wire else ''} --reference --out FOLDER\n")
        w = csv.writer(f, lineterminator="\n")
        w.writerow(["scenario", "metric", *keys, "value", "low", "high"])
        for values, some in groups.items():
            for metric in metrics:
                numbers = [float(row[metric]) for row in some if row[metric] not in ("", None)]
                if len(numbers) == len(some):
                    mean, half = measure.interval(numbers)
                    ends = ["", ""] if half is None else [f"{mean - half:.6g}", f"{mean + half:.6g}"]
                    w.writerow([o.scenario, metric, *values, f"{mean:.6g}", *ends])


def main():
    o = arguments()
    try:
        manifest = json.loads(o.manifest.read_text())
    except (OSError, ValueError) as why:
        mistake(f"{o.manifest} is no manifest of a lab run: {why}")
    if o.scenario not in (names := [s["name"] for s in manifest["scenarios"]]):
        mistake(f"{o.manifest} has no scenario {o.scenario}, but {', '.join(names)}")
    keys, points = streams.points(manifest, o.scenario)
    seeds = o.seeds or next(s["seeds"] for s in manifest["scenarios"] if s["name"] == o.scenario)
    try:
        kernel = boot.Kernel(o.programs.resolve())
    except boot.Skipped as why:
        print(f"SKIPPED kernel-streams: {why}")
        return
    o.out.mkdir(parents=True, exist_ok=True)
    points, left_out = wanted(o, keys, points)
    for values, why in left_out:
        print(f"not in the kernel: {' '.join(values)} ({why})")
    results = o.out / "results.csv"
    rows = read(results)
    done = {tuple(row[key] for key in keys) + (row["seed"],) for row in rows}
    runs = [run for run in planned(o, points, seeds) if run["key"] not in done]
    for at in range(0, len(runs), TOGETHER):
        some, began = runs[at : at + TOGETHER], time.monotonic()
        folder = o.out.resolve() / "boots" / f"{len(rows)}"
        shutil.rmtree(folder, ignore_errors=True)
        try:
            kernel.run(some, wire=o.wire, keep=folder)
        except boot.Skipped as why:
            print(f"SKIPPED kernel-streams: {why}")
            return
        for i, run in enumerate(some, 1):
            row = {"scenario": o.scenario, **dict(zip(keys, run["values"])), "seed": run["seed"], **measured(o, folder, i, run)}
            rows.append({name: "" if value is None else value for name, value in row.items()})
        if not o.keep:
            shutil.rmtree(folder)
        with open(results, "w", newline="") as f:
            w = csv.DictWriter(f, list(rows[0]), lineterminator="\n")
            w.writeheader()
            w.writerows(rows)
        print(f"{len(rows)} of {len(rows) + len(runs) - at - len(some)} runs, this boot of {len(some)} in {time.monotonic() - began:.1f} s", flush=True)
    if o.reference:
        write_reference(o, keys, rows, kernel.version)


main()
