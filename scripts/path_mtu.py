#!/usr/bin/env python3
"""Sizes of packets on two paths, read from a capture of the network in the middle (scripts/path-mtu.sh).

    path_mtu.py NAME CAPTURE SHRUNK INTERFACE=INDEX...

n1 and n2 lead to the sender, f1 and f2 to the receiver; path 1 takes 1,300 bytes beyond the middle, path 2 takes 1,500 and
from the time SHRUNK on 1,260 (0: it does not shrink). Sizes are of IP packets.
"""
import sys

from path_deaths import OUTGOING, chunks, packets, DATA, I_DATA

TAKES = {1: 1_300, 2: 1_500}
SHRUNK_TO = 1_260
# `--mtu auto` looks for what fits 1,500 bytes with the header of IPv6, which is longer by 20.
MOST = 1_480
# 1,200 bytes of SCTP in UDP and IPv4.
OWN_SIZE = 1_228
# The search stops where less than this is to be gained.
STEP = 16


def read(path, interfaces):
    """What the sender put on paths and what they delivered: lists of (time, path, size, DATA?, part of a divided packet?)."""
    put, came = [], []
    for time, index, kind, ip in packets(path):
        name = interfaces.get(index, "")
        size, piece = int.from_bytes(ip[2:4], "big"), int.from_bytes(ip[6:8], "big") & 0x3FFF
        first = piece & 0x1FFF == 0
        sctp = ip[28:] if first and ip[9] == 17 else b""
        data = any(kind in (DATA, I_DATA) for kind, _ in chunks(sctp))
        row = (time, int(name[1:] or 0), size, data, piece != 0)
        if name[:1] == "n" and kind != OUTGOING:
            put.append(row)
        elif name[:1] == "f" and kind == OUTGOING:
            came.append(row)
    return put, came


def largest(rows, path, data=None):
    return max((s for _, p, s, d, _ in rows if p == path and data in (None, d)), default=0)


def sizes(name, put, came, wrong, discovers):
    """Before the change: the largest on each path, and whether that is what it takes."""
    for path in TAKES:
        offered, through = largest(put, path), largest(came, path)
        data, count = largest(came, path, True), sum(1 for r in came if r[1] == path and r[3])
        print(f"{name}: path {path}: largest packet put on it {offered}, delivered {through}, with data {data} ({count} packets)")
        if not count:
            wrong.append(f"path {path} carried nothing")
        if not discovers and offered > OWN_SIZE:
            wrong.append(f"path {path} was given {offered} bytes unasked")
        if discovers and not min(TAKES[path], MOST) - STEP < through <= TAKES[path]:
            wrong.append(f"path {path} takes {TAKES[path]} bytes, and {through} came")
        # Messages are cut for the smaller of the two.
        if discovers and not TAKES[1] - 3 * STEP < data <= TAKES[1]:
            wrong.append(f"data of path {path} came in {data} bytes")
    divided = sum(1 for r in put + came if r[4])
    if divided:
        wrong.append(f"{divided} pieces of divided packets")


def shrunk(name, put, came, at, wrong):
    """After it: the stream goes on, and nothing too large is put on the path any more."""
    after = [r for r in came if r[0] >= at]
    too_large = [t for t, p, s, d, _ in put if p == 2 and s > SHRUNK_TO and t >= at and d]
    over = max(too_large, default=at) - at
    last = max(t for t, *_ in put)
    ends = [t for t, p, s, d, _ in after if d]
    gaps = max((b - a for a, b in zip([at] + ends, ends)), default=0)
    # The path comes back, after a probe at the latest, with what fits.
    late = [r for r in after if r[1] == 2 and r[3] and r[0] > at + over]
    divided = sum(1 for r in put if r[0] >= at and r[4])
    print(
        f"{name}: path 2 shrinks to {SHRUNK_TO}: data too large for it left for {over:.2f} s ({len(too_large)} packets), "
        f"longest time without data at the receiver {1e3 * gaps:.0f} ms, "
        f"path 2 then carries {len(late)} packets of at most {largest(late, 2)} bytes, pieces of divided packets {divided}"
    )
    if over > (last - at) / 2:
        wrong.append(f"too large for {over:.1f} s")
    if len(late) < 50 or largest(late, 2) > SHRUNK_TO:
        wrong.append("path 2 did not come back")
    if gaps > 2:
        wrong.append(f"nothing came for {gaps:.1f} s")


def main():
    name, capture, at = sys.argv[1], sys.argv[2], float(sys.argv[3])
    interfaces = {int(i): n for n, i in (w.split("=") for w in sys.argv[4:])}
    put, came = read(capture, interfaces)
    wrong = []
    before = lambda rows: [r for r in rows if not at or r[0] < at]
    sizes(name, before(put), before(came), wrong, name != "control")
    if at:
        shrunk(name, put, came, at, wrong)
    for w in wrong:
        print(f"WRONG: {name}: {w}")
    return 1 if wrong else 0


sys.exit(main())
