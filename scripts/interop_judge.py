#!/usr/bin/env python3
"""Judges one interoperation run and prints its row of the table.

    interop_judge.py NAME NEAR.log FAR.log [KEY=VALUE...]

NEAR is our side, FAR the foreign peer's; each ends with a JSON line (interop/usrsctp/peer.c). Keys:
  messages=N   each side sent so many messages, and the other got them all
  near=N far=N the same with numbers of their own
  gives_up=near|far|both   that side sent with partial reliability: something must be given up, nothing else go wrong
  least=N      of what is given up so many arrive nevertheless (a fifth)
  tosses=near|far          that side throws away ordered messages that had arrived when it has to skip others, so
                           what is missing there cannot be accounted for to the last one
  untold=near|far          that side gives up more than it tells its user of
  end=shutdown|abort       how both ends saw the end
  lost=N       paths that our side saw fail, at least
  back=N       paths that our side saw return, at least
  paths=N      paths that our side knew in the end, at least
  resets=N     times that the streams of each side began anew, at least: usrsctp resets some at a time
  restarts=near|far        that side reported that the other one lost its memory and began anew
  swaps=near|far           that side added an address of its own and removed another by ASCONF under AUTH, and the other
                           agreed: then DATA flows to and from the new one, and none to and from the old one
  unheard=near|far         that side asked for such a change and got no answer
  inits=SIDE[,SIDE]        the INITs of the capture: which sides sent them, in this order, all from one pair of ports
  moved=FILE               a file with the two times between which link 1 was dead: DATA of both sides had moved to link 2
                           by its last second
  families=4|6|46          the versions of IP by which both sides sent DATA
  wire=NAME[,NAME...]   chunks that both ends sent: I-DATA, RE-CONFIG, NR-SACK, FORWARD-TSN, I-FORWARD-TSN; `NAME:1`
               is one end
  pcap=FILE[,FILE...]      captures, in which to look for them: our side's own, or tcpdump's of several links
"""
import ipaddress
import json
import struct
import sys

DATA, INIT, AUTH, I_DATA, ASCONF_ACK, ASCONF = 0, 1, 15, 64, 128, 193
ADD, DELETE, ERROR_CAUSE = 0xC001, 0xC002, 0xC003
KINDS = {"NR-SACK": 16, "I-DATA": 64, "RE-CONFIG": 130, "FORWARD-TSN": 192, "I-FORWARD-TSN": 194}
RAW_IP, UDP, TCPDUMP = 101, 17, 0xA1B2C3D4


def shown(address):
    return str(ipaddress.ip_address(bytes(address)))


class Packet:
    """An SCTP packet: seconds since the epoch, addresses, its bytes, its chunks as (type, bytes)."""

    def __init__(self, at, ip):
        self.at = at
        self.family = ip[0] >> 4
        # IPv6 is written without extension headers.
        begin, size, protocol, end = (12, 4, ip[9], (ip[0] & 15) * 4) if self.family == 4 else (8, 16, ip[6], 40)
        self.source, self.to = (shown(ip[i : i + size]) for i in (begin, begin + size))
        self.bytes = ip[end + (8 if protocol == UDP else 0) :]
        self.chunks = []
        at = 12
        while at + 4 <= len(self.bytes):
            kind, _, size = struct.unpack_from(">BBH", self.bytes, at)
            self.chunks.append((kind, self.bytes[at : at + size]))
            if size < 4:
                break
            at += (size + 3) // 4 * 4

    def has(self, *kinds):
        return any(k in kinds for k, _ in self.chunks)


def packets(path):
    """Those of a pcapng file of raw IP, little-endian and in nanoseconds as we write it, or of Ethernet as tcpdump does."""
    data, at = open(path, "rb").read(), 0
    if struct.unpack_from("<I", data)[0] == TCPDUMP:
        at = 24
        while at + 16 <= len(data):
            seconds, micros, length, _ = struct.unpack_from("<IIII", data, at)
            yield Packet(seconds + micros / 1e6, data[at + 30 : at + 16 + length])
            at += 16 + length
        return
    while at + 12 <= len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if kind == 1:
            assert struct.unpack_from("<H", data, at + 8)[0] == RAW_IP
        if kind == 6:
            high, low, length = struct.unpack_from("<III", data, at + 12)
            yield Packet((high << 32 | low) / 1e9, data[at + 28 : at + 28 + length])
        at += size


def senders(all_packets):
    """SCTP source ports by chunk type."""
    found = {}
    for packet in all_packets:
        for kind, _ in packet.chunks:
            found.setdefault(kind, set()).add(packet.bytes[:2])
    return found


def parameters(chunk, at):
    while at + 4 <= len(chunk):
        kind, size = struct.unpack_from(">HH", chunk, at)
        yield kind, chunk[at : at + size]
        at += max(4, (size + 3) // 4 * 4)


def is_ours(side, packet):
    """The hosts are 1 and 2 of each network of a run."""
    return packet.source.endswith((".1", ":1")) == (side == "near")


def changes(all_packets, side):
    """What `side` asked for by ASCONF: {serial: (kind, address)}; when that was agreed to: {serial: time}."""
    asked, agreed, unsigned = {}, {}, 0
    for p in all_packets:
        for kind, chunk in p.chunks:
            unsigned += kind in (ASCONF, ASCONF_ACK) and p.chunks[0][0] != AUTH
            if kind == ASCONF and is_ours(side, p):
                first, *requests = parameters(chunk, 8)
                for request, value in requests:
                    address = next(parameters(value, 8))[1]
                    asked[chunk[4:8]] = (request, shown(address[4:]))
            if kind == ASCONF_ACK and not is_ours(side, p) and chunk[4:8] in asked:
                if all(k != ERROR_CAUSE for k, _ in parameters(chunk, 8)):
                    agreed.setdefault(chunk[4:8], p.at)
    return asked, agreed, unsigned


def judge_swap(all_packets, side, expect):
    asked, agreed, unsigned = changes(all_packets, side)
    expect(unsigned == 0, f"{unsigned} ASCONF or ASCONF-ACK without AUTH")
    times = {asked[serial]: at for serial, at in agreed.items()}
    # The wildcard means the source of a path that joins.
    added = [(at, address) for (kind, address), at in times.items() if kind == ADD and address != "0.0.0.0"]
    gone = [(at, address) for (kind, address), at in times.items() if kind == DELETE]
    expect(added and gone, f"{side} asked for {sorted(asked.values())}, agreed to were {sorted(times)}")
    if not added or not gone:
        return
    data = [p for p in all_packets if p.has(DATA, I_DATA)]
    for sender in ("near", "far"):
        own = [(p.at, p.source if sender == side else p.to) for p in data if is_ours(sender, p)]
        new = sum(a == added[0][1] and at > gone[0][0] for at, a in own)
        # What was on its way by then.
        old = sum(a == gone[0][1] and at > gone[0][0] + 0.3 for at, a in own)
        early = sum(a == added[0][1] and at < added[0][0] - 0.1 for at, a in own)
        expect(new > 50 and old == 0, f"DATA of {sender}: {new} by the new address, {old} by the old one")
        expect(early == 0, f"DATA of {sender} by the new address before it was agreed on: {early}")


def judge_moved(all_packets, file, expect):
    down, up = (float(t) for t in open(file).read().split())
    for side in ("near", "far"):
        def count(link, begin, end):
            own = (p for p in all_packets if is_ours(side, p) and begin <= p.at < end and p.has(DATA, I_DATA))
            # The destination decides which way a packet takes, whatever its source is.
            return sum(p.to.startswith((f"10.89.{link}.", f"fd89:{link}::")) for p in own)

        before, dead, moved = count(1, down - 1, down), count(1, up - 1, up), count(2, up - 1, up)
        expect(before > 0, f"{side} did not use the link before it died")
        expect(moved > 50 and dead * 10 <= moved, f"{side} sent {moved} on the other link and {dead} on the dead one")


def judge_inits(all_packets, sides, expect):
    ports, order = set(), []
    for p in all_packets:
        if p.has(INIT):
            ports.add(frozenset(struct.unpack_from(">HH", p.bytes)))
            side = "near" if is_ours("near", p) else "far"
            order += [side] if order[-1:] != [side] else []
    expect(order == sides and len(ports) == 1, f"INITs came from {order}, with {len(ports)} pairs of ports")


def judge_families(all_packets, wanted, expect):
    for side in ("near", "far"):
        used = {str(p.family) for p in all_packets if is_ours(side, p) and p.has(DATA, I_DATA)}
        expect(used == set(wanted), f"DATA of {side} went by IPv{' and IPv'.join(sorted(used))}")


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
            accounted = s.get("abandoned", 0) >= missing or want.get("tosses") == side or want.get("untold") == other
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
    if "restarts" in want:
        restarts = {side: r.get("restarts") for side, r in sides.items()}
        expect(restarts[want["restarts"]] == 1 and sum(restarts.values()) == 1, f"reported a restart: {restarts}")
    files = want["pcap"].split(",") if "pcap" in want else []
    seen = sorted((p for file in files for p in packets(file)), key=lambda p: p.at)
    if "swaps" in want:
        judge_swap(seen, want["swaps"], expect)
    if "unheard" in want:
        asked, agreed, _ = changes(seen, want["unheard"])
        expect(asked and not agreed, f"{want['unheard']} asked for {list(asked.values())}, agreed: {len(agreed)}")
    if "moved" in want:
        judge_moved(seen, want["moved"], expect)
    if "inits" in want:
        judge_inits(seen, want["inits"].split(","), expect)
    if "families" in want:
        judge_families(seen, want["families"], expect)
    if "wire" in want:
        seen = senders(seen)
        for chunk in want["wire"].split(","):
            chunk, _, wanted = chunk.partition(":")
            ends = len(seen.get(KINDS[chunk], ()))
            expect(ends == int(wanted or 2), f"{chunk} was sent by {ends} ends")
    row = [n.get("received"), f.get("received"), n.get("abandoned"), f.get("abandoned"), n.get("end"), n.get("seconds")]
    print(f"{name:52}" + "".join(f"{'' if v is None else v!s:>11}" for v in row), "  " + ("; ".join(wrong) or "ok"))
    return 1 if wrong else 0


sys.exit(main())
