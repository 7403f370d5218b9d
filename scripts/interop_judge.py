#!/usr/bin/env python3
"""Judges one interoperation run and prints its row of the table.

    interop_judge.py NAME NEAR.log FAR.log [KEY=VALUE...]

NEAR is our side, FAR the foreign peer's; each ends with a JSON line (interop/usrsctp/peer.c). Keys:
  messages=N   each side sent so many messages, and the other got them all
  near=N far=N the same with numbers of their own
  gives_up=near|far|both   that side sent with partial reliability: something must be given up, nothing else go wrong
  least=N      of what is given up so many arrive nevertheless (a fifth)
  tosses=near|far          that side throws away ordered messages that had arrived when it is told to skip others, so
                           what is missing there cannot be accounted for to the last one
  end=shutdown|abort       how both ends saw the end
  lost=N       paths that our side saw fail, at least
  back=N       paths that our side saw return, at least
  paths=N      paths that our side knew in the end, at least
  resets=N     times that the streams of each side began anew, at least: usrsctp resets some at a time
  wire=NAME[,NAME...]   chunks that both ends sent: I-DATA, RE-CONFIG, NR-SACK, FORWARD-TSN, I-FORWARD-TSN; `NAME:1`
               is one end
  pcap=FILE    our side's capture, in which to look for them
"""
import json
import struct
import sys

KINDS = {"NR-SACK": 16, "I-DATA": 64, "RE-CONFIG": 130, "FORWARD-TSN": 192, "I-FORWARD-TSN": 194}
RAW_IP = 101


def packets(path):
    """SCTP packets of a pcapng file of raw IPv4, little-endian as we write it."""
    data, at = open(path, "rb").read(), 0
    while at + 12 <= len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if kind == 1:
            assert struct.unpack_from("<H", data, at + 8)[0] == RAW_IP
        if kind == 6:
            length = struct.unpack_from("<I", data, at + 20)[0]
            ip = data[at + 28 : at + 28 + length]
            yield ip[(ip[0] & 15) * 4 + (8 if ip[9] == 17 else 0) :]
        at += size


def senders(path):
    """SCTP source ports by chunk type."""
    found = {}
    for packet in packets(path):
        at = 12
        while at + 4 <= len(packet):
            kind, _, size = struct.unpack_from(">BBH", packet, at)
            found.setdefault(kind, set()).add(packet[:2])
            if size < 4:
                break
            at += (size + 3) // 4 * 4
    return found


def last_object(path):
    for line in reversed(open(path, errors="replace").read().splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    return {"end": "none"}


def main():
    name, near, far, *rest = sys.argv[1:]
    want = dict(word.split("=", 1) for word in rest)
    sides = {"near": last_object(near), "far": last_object(far)}
    wrong = []

    def expect(condition, what):
        if not condition:
            wrong.append(what)

    for side, other in (("near", "far"), ("far", "near")):
        r, s = sides[side], sides[other]
        sent = int(want.get(other, want.get("messages", 0)))
        gives_up = want.get("gives_up") in (other, "both")
        for key in ("doubled", "disordered", "corrupt"):
            expect(r.get(key, -1) == 0, f"{side} saw {r.get(key)} {key}")
        expect(r.get("expected") == sent, f"{side} was promised {r.get('expected')} of {sent}")
        if gives_up:
            missing = sent - r.get("received", 0)
            expect(missing > 0, f"{other} gave nothing up")
            accounted = s.get("abandoned", 0) >= missing or want.get("tosses") == side
            expect(accounted, f"{missing} lost, {other} gave up {s.get('abandoned')}")
            expect(r.get("received", 0) >= int(want.get("least", sent / 5)), f"{side} got {r.get('received')} of {sent}")
        else:
            expect(r.get("lost") == 0, f"{side} lost {r.get('lost')}")
            expect(r.get("received") == sent, f"{side} got {r.get('received')} of {sent}")
        expect(r.get("end") == want.get("end", "shutdown"), f"{side} ended: {r.get('end')} {r.get('reason', '')}")
    for key, field in (("lost", "paths_lost"), ("back", "paths_back"), ("paths", "paths")):
        if key in want:
            got = sides["near"].get(field, 0)
            expect(got >= int(want[key]), f"{field} is {got}, not {want[key]}")
    n, f = sides["near"], sides["far"]
    if "resets" in want:
        for side, r in sides.items():
            got = (r.get("resets", 0), r.get("peer_resets", 0))
            expect(min(got) >= int(want["resets"]), f"{side} saw resets {got}")
    if "wire" in want:
        seen = senders(want["pcap"])
        for chunk in want["wire"].split(","):
            chunk, _, wanted = chunk.partition(":")
            ends = len(seen.get(KINDS[chunk], ()))
            expect(ends == int(wanted or 2), f"{chunk} was sent by {ends} ends")
    row = [n.get("received"), f.get("received"), n.get("abandoned"), f.get("abandoned"), n.get("end"), n.get("seconds")]
    print(f"{name:44}" + "".join(f"{'' if v is None else v!s:>11}" for v in row), "  " + ("; ".join(wrong) or "ok"))
    return 1 if wrong else 0


sys.exit(main())
