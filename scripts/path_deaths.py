#!/usr/bin/env python3
"""Take-over times, read from a capture of the network in the middle (scripts/path-deaths.sh).

    path_deaths.py NAME CAPTURE DEATHS LIMIT_MS INTERFACE=INDEX...

CAPTURE is a pcap of all interfaces (Linux cooked v2): n1 and n2 lead to the sender, f1 and f2 to the receiver. DATA
that comes in by n1 was put on path 1; what goes out by f1 was delivered by it. DEATHS has a line `KIND PATH BEGUN DEAD BACK`
for each death, in seconds: before and after the path was cut, and before it was mended.

The take-over time runs from the last packet that the path delivered to the moment when each chunk it did not deliver
has left by the other one and nothing new is put on it. It is stated for 20 packets a second and more on the path, so it
begins at most 50 ms before the first packet that was lost: between equal paths a sender may have left this one by itself,
and a path that carries nothing cannot be seen to be dead. Prints a row; with LIMIT_MS above 0 the median is held against
it and the worst against twice that. Without deaths (the control) all must be delivered and hardly a chunk
sent twice: a busy machine looks like a silent path now and then.
"""
import bisect
import struct
import sys

DATA, HEARTBEAT_ACK, I_DATA, ASCONF_ACK = 0, 5, 64, 128
OUTGOING = 4
# Seconds between packets at the lowest rate that the bound is stated for.
SLOWEST = 0.05


def packets(path):
    """Time, interface, direction and bytes of each IPv4 packet, as far as it was captured."""
    data = open(path, "rb").read()
    magic, link = struct.unpack_from("<I", data)[0], struct.unpack_from("<I", data, 20)[0]
    assert magic in (0xA1B2C3D4, 0xA1B23C4D) and link == 276, f"{path} is no capture of all interfaces"
    fraction = 1e-6 if magic == 0xA1B2C3D4 else 1e-9
    at = 24
    while at + 16 <= len(data):
        seconds, parts, size = struct.unpack_from("<III", data, at)
        frame, at = data[at + 16 : at + 16 + size], at + 16 + size
        protocol, _, index, _, kind = struct.unpack_from(">HHIHB", frame)
        if protocol == 0x0800:
            yield seconds + parts * fraction, index, kind, frame[20 : 20 + struct.unpack_from(">H", frame, 22)[0]]


def frames(path):
    """Time, interface, whether it goes out, protocol and payload of each IPv4 packet."""
    for time, index, kind, ip in packets(path):
        yield time, index, kind == OUTGOING, ip[9], ip[(ip[0] & 15) * 4 :]


def chunks(packet):
    """Type of each chunk of an SCTP packet, and its first four bytes."""
    at = 12
    while at + 8 <= len(packet):
        kind, _, size, first = struct.unpack_from(">BBHI", packet, at)
        if size < 4:
            break
        yield kind, first
        at += (size + 3) // 4 * 4


def tsns(packet):
    """TSNs of the DATA in an SCTP packet."""
    return [first for kind, first in chunks(packet) if kind in (DATA, I_DATA)]


def read(path, interfaces):
    """DATA as it was put on paths and as it was delivered, lists of (time, path, TSNs); answers of the receiver."""
    put, came, answers = [], [], []
    for time, index, outgoing, protocol, payload in frames(path):
        name = interfaces.get(index, "")
        packet = payload[8:] if protocol == 17 else payload if protocol == 132 else b""
        if name[:1] == "n" and not outgoing:
            put.append((time, int(name[1:]), tsns(packet)))
        elif name[:1] == "f" and outgoing:
            came.append((time, int(name[1:]), tsns(packet)))
        elif name[:1] == "n" and any(kind in (HEARTBEAT_ACK, ASCONF_ACK) for kind, _ in chunks(packet)):
            answers.append((time, int(name[1:])))
    return [p for p in put if p[2]], [c for c in came if c[2]], answers


def takeover(put, came, answers, kind, path, begun, dead, back):
    """Seconds that the take-over took, or why there is none."""
    # A path that has been made known by its new address lives.
    back = min([back] + [t for t, p in answers if p == path and dead < t])
    rate = sum(1 for t, p, _ in put if p == path and begun - 1 <= t < begun)
    if rate < 20:
        return f"{rate} packets in the second before: too few"
    times = [t for t, p, _ in came if p == path and t <= dead]
    last_came = times[-1]
    # The clocks of the capture and of the deaths are one: something came just before, and nothing while it was dead.
    if last_came < begun - 0.2:
        return "the last packet came long before the death"
    # (An address that the receiver does not know looks alive from here.)
    if kind != "address" and any(p == path and dead < t < back for t, p, _ in came):
        return "packets came by a path that was dead"
    if not any(p != path and dead < t < back for t, p, _ in put):
        return "nothing left by the other path"
    arrived = {n for t, _, list in came if t <= dead for n in list}
    kept, elsewhere, last = set(), set(), None
    lost = [t for t, p, _ in put if p == path and last_came < t < back]
    start = max(last_came, lost[0] - SLOWEST) if lost else last_came
    for t, p, list in put[: bisect.bisect(put, (back,))]:
        if p == path:
            if t > last_came:
                last = t
            kept.update(n for n in list if n not in arrived and n not in elsewhere)
        else:
            for n in list:
                if t > last_came:
                    elsewhere.add(n)
                if n in kept:
                    kept.remove(n)
                    last = max(last or t, t)
    if kept:
        return f"{len(kept)} chunks never left elsewhere"
    if last is None:
        return 0.0
    if back - last < 0.1:
        return f"still going on after {back - start:.1f} s"
    return max(0.0, last - start)


def main():
    name, capture, deaths, limit = sys.argv[1:5]
    interfaces = {int(i): n for n, i in (w.split("=") for w in sys.argv[5:])}
    put, came, answers = read(capture, interfaces)
    rows = [line.split() for line in open(deaths)]
    if not rows:
        seen, twice = set(), 0
        for _, _, list in put:
            twice += sum(n in seen for n in list)
            seen.update(list)
        by = [sum(1 for _, p, _ in put if p == i) for i in (1, 2)]
        lost = len(seen - {n for _, _, list in came for n in list})
        print(f"{name:34} {len(seen)} chunks, packets by path {by}, sent twice {twice}, not delivered {lost}")
        return 1 if twice * 10 > len(seen) or lost or not seen else 0
    results = [takeover(put, came, answers, kind, int(p), *map(float, rest)) for kind, p, *rest in rows]
    times = sorted(1e3 * r for r in results if isinstance(r, float))
    wrong = sorted({r for r in results if isinstance(r, str)})
    text = f"{len(times)} deaths"
    if times:
        median, worst = times[len(times) // 2], times[-1]
        text += f", median {median:.0f} ms, worst {worst:.0f} ms"
        if float(limit) and (median > float(limit) or worst > 2 * float(limit)):
            wrong.append(f"above {limit} ms or twice that: {[round(t) for t in times]}")
    print(f"{name:34} {text}{'  ' if wrong else ''}{'; '.join(wrong)}")
    return 1 if wrong and float(limit) else 0


if __name__ == "__main__":
    sys.exit(main())
