#!/usr/bin/env python3
"""Looks into captures of SCTP over UDP for addresses that have no business there.

    check_nat_wire.py FILE PORT ADDRESS... [--silent]

FILE is a pcap of Ethernet as tcpdump writes it, PORT a UDP port of one end. No chunk but DATA may hold one of the
addresses in its four bytes. With --silent there may be no packet of the first address at all. Prints what was seen.
"""
import collections
import ipaddress
import struct
import sys

NAMES = {0: "DATA", 1: "INIT", 2: "INIT ACK", 3: "SACK", 4: "HEARTBEAT", 5: "HEARTBEAT ACK", 10: "COOKIE ECHO",
         11: "COOKIE ACK", 15: "AUTH", 0x80: "ASCONF-ACK", 0xC1: "ASCONF"}


def datagrams(path, port):
    data = open(path, "rb").read()
    assert struct.unpack_from("<I", data)[0] in (0xA1B2C3D4, 0xA1B23C4D), f"{path} is no pcap"
    at = 24
    while at + 16 <= len(data):
        size = struct.unpack_from("<I", data, at + 8)[0]
        frame, at = data[at + 16 : at + 16 + size], at + 16 + size
        if frame[12:14] != b"\x08\x00" or frame[23] != 17:
            continue
        ip = frame[14:]
        udp = ip[(ip[0] & 15) * 4 :]
        if port in struct.unpack_from(">HH", udp):
            yield str(ipaddress.IPv4Address(ip[12:16])), udp[8:]


def chunks(packet):
    at = 12
    while at + 4 <= len(packet):
        kind, _, size = struct.unpack_from(">BBH", packet, at)
        if size < 4:
            return
        yield kind, packet[at : at + size]
        at += (size + 3) // 4 * 4


def main():
    words = [w for w in sys.argv[1:] if w != "--silent"]
    path, port, addresses = words[0], int(words[1]), words[2:]
    seen, wrong = collections.Counter(), []
    of_first = 0
    for source, packet in datagrams(path, port):
        of_first += source == addresses[0]
        for kind, chunk in chunks(packet):
            name = NAMES.get(kind, hex(kind))
            seen[name] += 1
            for a in addresses:
                if kind != 0 and ipaddress.IPv4Address(a).packed in chunk:
                    wrong.append(f"{name} holds {a}")
    if "--silent" in sys.argv and of_first:
        wrong.append(f"{of_first} packets of {addresses[0]}")
    if "--silent" not in sys.argv and not seen["ASCONF"] + seen["INIT"]:
        wrong.append("neither INIT nor ASCONF was captured, so nothing is known")
    print("  " + (", ".join(f"{n} {name}" for name, n in sorted(seen.items())) or "nothing"))
    for w in sorted(set(wrong)):
        print(f"  WRONG: {w}")
    return 1 if wrong else 0


sys.exit(main())
