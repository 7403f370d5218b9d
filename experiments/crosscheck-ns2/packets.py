#!/usr/bin/env python3
"""Runs one point in ns-2.35 and in anabranch with the same packets lost and compares packet by packet. See README.md."""

import argparse
import csv
import itertools
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import crosscheck

# Packets of ns-2's handshake in the direction of the data: INIT, COOKIE ECHO and HEARTBEAT, and a HEARTBEAT by the second
# path. Nothing is lost of it.
HANDSHAKE = (3, 1)
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


def run_ours(program, point, folder, lost, extra):
    """The rows of a run's table of packets."""
    scenario, keys = crosscheck.settings(point)
    text = (crosscheck.HERE / scenario).read_text(encoding="utf-8")
    for n, mask in enumerate(lost):
        (folder / f"{n}.txt").write_text("".join("01"[gone] for gone in mask), encoding="utf-8")
        text = text.replace('loss = "1%"', f'loss = {{ file = "{folder / f"{n}.txt"}" }}', 1)
    (folder / "point.toml").write_text(text, encoding="utf-8")
    sets = [f"--set={k}={v}" for k, v in keys.items() if not k.endswith(".loss")] + [f"--set={e}" for e in extra]
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    run = subprocess.run([program, "lab", "run", str(folder / "point.toml"), "--seeds", "1", "--csv", "--out", str(out),
                          *sets], capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"packets: anabranch failed: {run.stderr.strip()}")
    with open(next((out / "trace").glob("*.csv")), newline="", encoding="utf-8") as f:
        return [r for r in csv.DictReader(f) if r["event"] == "enqueued"]


def way_of(row):
    path, direction = row["place"].split(".")
    return f"{path.removeprefix('path') or 1} {'>' if direction == 'forward' else '<'}"


def ours(program, point, folder, lost, extra):
    """The packets of anabranch; numbers of SACKs are not shown."""
    # Our receiver asks with HEARTBEATs of its own before the first DATA. Nothing is lost of the answers, and what follows
    # keeps its number.
    rows = run_ours(program, {**point, "time": "6"}, folder, lost, extra)
    rows = list(itertools.takewhile(lambda r: r["kind"] not in ("DATA", "TCP"), rows))
    for n, mask in enumerate(lost if rows else []):
        sent = sum(way_of(r) == f"{n + 1} >" for r in rows)
        if sent < HANDSHAKE[n]:
            raise SystemExit("packets: no DATA within 6 s on our side: the handshake is not like ns-2's")
        mask[:0] = [False] * (sent - HANDSHAKE[n])
    packets, first = [], None
    for r in run_ours(program, point, folder, lost, extra):
        kind = {"DATA": "data", "SACK": "ack", "TCP": "data", "TCP-ACK": "ack"}.get(r["kind"])
        if not kind:
            continue
        number = int(r["tsn"]) if r["tsn"] else None
        if r["kind"] == "DATA":
            first = number if first is None else first
            number -= first - 1
        elif r["kind"] == "TCP-ACK":
            number -= 1
        packets.append((float(r["time"]), way_of(r), kind, number, int(r["size"])))
    return packets


def same(a, b, offset):
    """Are these one packet? A SACK's number is not shown, but its size says how many blocks it has."""
    number = a[3] == b[3] if b[3] is not None else a[4] == b[4]
    return abs(a[0] + offset - b[0]) < 1e-3 and a[1:3] == b[1:3] and number


def parting(a, b, way, offset):
    """When the packets of one direction of a path part, on ns-2's clock."""
    a, b = ([p for p in packets if p[1] == way] for packets in (a, b))
    for x, y in itertools.zip_longest(a, b):
        if x is None or y is None or not same(x, y, offset):
            return min(([x[0]] if x else []) + ([y[0] - offset] if y else []))
    return None


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
    for what, name in (("ns-2.35 (Debian: apt-get install ns2)", args.ns), ("anabranch (--program)", args.program)):
        if shutil.which(name) is None:
            print(f"packets: there is no {what}: `{name}`", file=sys.stderr)
            return 2
    if not pathlib.Path(args.grid).is_file():
        print(f"packets: there is no grid `{args.grid}`", file=sys.stderr)
        return 2
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
    # Our handshake's packets have other sizes; what leaves in the last instants counts on neither side.
    offset = b[0][0] - a[0][0]
    end = float(point["time"]) - abs(offset) - 1e-3
    a, b = [p for p in a if p[0] < end], [p for p in b if p[0] - offset < end]
    parted = min((t for t in (parting(a, b, way, offset) for way in {p[1] for p in a + b}) if t is not None), default=None)
    if parted is None:
        print(f"{args.point}: all {len(a)} packets of {point['time']} s are the same")
        return 0
    before = sum(p[0] < parted for p in a)
    print(f"{args.point}: the first {before} packets are the same, of {len(a)} and {len(b)}, up to {parted:.3f} s\n"
          f"{'ns-2':36} anabranch")
    sides = [[p for p in packets if parted - 0.1 <= p[0] - late <= parted + 0.1][:60] for packets, late in
             ((a, 0), (b, offset))]
    for pair in itertools.zip_longest(*sides):
        left, right = (f"{p[0]:10.5f} {p[1]} {p[2]:4} {'' if p[3] is None else p[3]:>7} {p[4]:>5}" if p else ""
                       for p in pair)
        print(f"{left:36} {right}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
