#!/usr/bin/env python3
"""Runs one point in ns-2.35 and in anabranch with the same packets lost and compares packet by packet. See README.md."""

import argparse
import csv
import pathlib
import random
import subprocess
import sys
import tempfile

import crosscheck

# Positions in the data direction of each path at which our sender answers a HEARTBEAT of the receiver, which ns-2's
# does not send before 30 s: nothing is lost there, and the others keep their places.
ANSWERS = {"sctp": (3, 1), "cmt": (3, 1)}
# The handshake is not disturbed.
SPARED = 6
MOST = 100_000


def masks(point, seed):
    """For each path which packets of the data direction are lost, as ns-2 counts them."""
    rng = random.Random(f"packets {seed}")
    for share in (float(point["loss"]) / 100, float(point["loss2"]) / 100):
        yield [share > 0 and rng.random() < share and n >= SPARED for n in range(MOST)]


def theirs(ns, point, folder, lost):
    """Packets of ns-2: time, path and direction, kind, number, size."""
    args = [f"{k}={v}" for k, v in point.items() if k != "id"]
    for suffix, mask in zip(("", "2"), lost, strict=True):
        (folder / f"lost{suffix}").write_text(" ".join(str(n) for n, gone in enumerate(mask) if gone), encoding="utf-8")
        args.append(f"lost{suffix}={folder / f'lost{suffix}'}")
    trace = folder / "ns.tr"
    run = subprocess.run([ns, str(crosscheck.HERE / "point.tcl"), *args, "watch=0", f"trace={trace}"],
                         capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"packets: ns-2 failed: {run.stderr.strip() or run.stdout.strip()}")
    packets, ways, sctp = [], {}, point["proto"] in ("sctp", "cmt")
    for line in trace.read_text(encoding="utf-8").splitlines():
        f = line.split()
        if f[0] == "paths":
            for n, (there, here) in enumerate(zip(f[1::2], f[2::2], strict=True)):
                ways[here, there], ways[there, here] = f"{n + 1} >", f"{n + 1} <"
        elif f[0] == "+":
            kind = {"D": "data", "S": "ack"}.get(f[6][-1]) if sctp else {"tcp": "data", "ack": "ack"}.get(f[4])
            number = int(f[11 if sctp else 10])
            if kind:
                packets.append((float(f[1]), ways[f[2], f[3]], kind, number, int(f[5])))
    return packets


def ours(program, point, folder, lost, extra):
    """The same of anabranch; numbers of SACKs are not told."""
    scenario, keys = crosscheck.settings(point)
    text = (crosscheck.HERE / scenario).read_text(encoding="utf-8")
    for n, mask in enumerate(lost):
        at = ANSWERS.get(point["proto"], (0, 0))[n]
        mask = mask[:at] + [False] * (point["proto"] in ANSWERS) + mask[at:]
        (folder / f"{n}.txt").write_text("".join("01"[gone] for gone in mask), encoding="utf-8")
        text = text.replace('loss = "1%"', f'loss = {{ file = "{folder / f"{n}.txt"}" }}', 1)
    (folder / "point.toml").write_text(text, encoding="utf-8")
    sets = [f"--set={k}={v}" for k, v in keys.items() if not k.endswith(".loss")] + [f"--set={e}" for e in extra]
    run = subprocess.run([program, "lab", "run", str(folder / "point.toml"), "--seeds", "1", "--csv", "--out",
                          str(folder / "out"), *sets], capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"packets: anabranch failed: {run.stderr.strip()}")
    packets, first = [], None
    with open(next((folder / "out" / "trace").glob("*.csv")), newline="", encoding="utf-8") as f:
        for r in csv.DictReader(f):
            kind = {"DATA": "data", "SACK": "ack", "TCP": "data", "TCP-ACK": "ack"}.get(r["kind"])
            if r["event"] != "enqueued" or not kind:
                continue
            path, direction = r["place"].split(".")
            number = int(r["tsn"]) if r["tsn"] else None
            if r["kind"] == "DATA":
                first = number if first is None else first
                number -= first - 1
            elif r["kind"] == "TCP-ACK":
                number -= 1
            way = f"{path.removeprefix('path') or 1} {'>' if direction == 'forward' else '<'}"
            packets.append((float(r["time"]), way, kind, number, int(r["size"])))
    return packets


def same(a, b, offset):
    """Are these one packet? A SACK's number is not told, but its size tells its blocks."""
    number = a[3] == b[3] if b[3] is not None else a[4] == b[4]
    return abs(a[0] + offset - b[0]) < 1e-3 and a[1:3] == b[1:3] and number


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("point", help="a point of the grid")
    parser.add_argument("--grid", default=crosscheck.HERE / "grid.csv", help="points, one per line [default: grid.csv]")
    parser.add_argument("--seed", type=int, default=1, help="which packets are lost [default: 1]")
    parser.add_argument("--time", help="seconds, in place of the point's; the runs part at 30 s, when HEARTBEATs leave")
    parser.add_argument("--program", default="anabranch", help="the program [default: anabranch]")
    parser.add_argument("--ns", default="ns", help="ns-2.35 [default: ns]")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="another key for our side")
    args = parser.parse_args()
    with open(args.grid, newline="", encoding="utf-8") as f:
        point = next((p for p in csv.DictReader(f) if p["id"] == args.point), None)
    if point is None:
        print(f"packets: no point of {args.grid} is called `{args.point}`", file=sys.stderr)
        return 2
    point["time"] = args.time or point["time"]
    lost = list(masks(point, args.seed))
    with tempfile.TemporaryDirectory() as folder:
        a = theirs(args.ns, point, pathlib.Path(folder), lost)
        b = ours(args.program, point, pathlib.Path(folder), lost[:2 if float(point["rate2"]) > 0 else 1], args.set)
    if not a or not b:
        print("packets: one of both sent nothing", file=sys.stderr)
        return 1
    # Our handshake's packets have other sizes.
    offset = b[0][0] - a[0][0]
    equal = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if not same(x, y, offset)), min(len(a), len(b)))
    if equal == len(a) == len(b):
        print(f"{args.point}: all {equal} packets of {point['time']} s are the same")
        return 0
    print(f"{args.point}: the first {equal} packets are the same, of {len(a)} and {len(b)}\n{'ns-2':36} anabranch")
    for n in range(max(0, equal - 12), equal + 12):
        sides = [f"{p[0]:10.5f} {p[1]} {p[2]:4} {'' if p[3] is None else p[3]:>7} {p[4]:>5}" if p else ""
                 for p in (s[n] if n < len(s) else None for s in (a, b))]
        print(f"{sides[0]:36} {sides[1]}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
