#!/usr/bin/env python3
"""Judges one interoperation run and prints its row of the table.

    interop_judge.py NAME NEAR.log FAR.log [KEY=VALUE...]

NEAR is our side, FAR the foreign peer's; each ends with a JSON line (interop/usrsctp/peer.c). Keys:
  messages=N   each side sent so many messages, and the other got them all
  near=N far=N the same with numbers of their own
  gives_up=near|far|both   that side sent with partial reliability: something must be given up, nothing else go wrong
  tosses=near|far          that side throws away ordered messages that had arrived when it is told to skip others, so
                           what is missing there cannot be accounted for to the last one
  end=shutdown|abort       how both ends saw the end
  lost=N       paths that our side saw fail, at least
  back=N       paths that our side saw return, at least
  paths=N      paths that our side knew in the end, at least
"""
import json
import sys


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
            expect(r.get("received", 0) >= sent / 5, f"{side} got {r.get('received')} of {sent}")
        else:
            expect(r.get("lost") == 0, f"{side} lost {r.get('lost')}")
            expect(r.get("received") == sent, f"{side} got {r.get('received')} of {sent}")
        expect(r.get("end") == want.get("end", "shutdown"), f"{side} ended: {r.get('end')} {r.get('reason', '')}")
    for key, field in (("lost", "paths_lost"), ("back", "paths_back"), ("paths", "paths")):
        if key in want:
            got = sides["near"].get(field, 0)
            expect(got >= int(want[key]), f"{field} is {got}, not {want[key]}")
    n, f = sides["near"], sides["far"]
    row = [n.get("received"), f.get("received"), n.get("abandoned"), f.get("abandoned"), n.get("end"), n.get("seconds")]
    print(f"{name:44}" + "".join(f"{'' if v is None else v!s:>11}" for v in row), "  " + ("; ".join(wrong) or "ok"))
    return 1 if wrong else 0


sys.exit(main())
