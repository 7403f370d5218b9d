#!/usr/bin/env python3
"""The parts of scripts/rivals.sh that are the same for every tool: what feeds it, what listens to it, and the judge.

    rivals.py feed CLIP RATE HOST:PORT START LOG     a transport stream over UDP at a steady rate (bit/s), from START on
    rivals.py tap PORT LOG                           what comes out, with the kernel's time of arrival
    rivals.py control LOG                            how late this machine wakes whoever waits, ms, until it is ended
    rivals.py mptcp-in PORT HOST:PORT                a live source over a connection of Multipath TCP
    rivals.py mptcp-out PORT HOST:PORT               its other end
    rivals.py judge CLIP SENT TAPPED LATENCY GRACE   one line: what of the stream was usable
    rivals.py table RESULTS.CSV                      the means as a table
    rivals.py usable CLIP SENT TAPPED LATENCY GRACE TO   the stream as far as it was usable, in its order
    rivals.py picture NETWORK TOOL RUN QUALITY.JSON  one line: what a decoder made of it
    rivals.py pictures PICTURES.CSV                  the means as a table

A packet is known by its content: packets of the video whose 188 bytes occur more than once in the clip are not counted.
It is usable when it came out at most LATENCY + GRACE milliseconds after it went in, and a frame is clean when all of its
packets are. Times are of the one clock that both namespaces share.
"""

import csv
import json
import select
import signal
import socket
import struct
import sys
import time
from collections import defaultdict

PACKET = 188
DATAGRAM = 7 * PACKET
SO_TIMESTAMPNS = 35
SO_RCVBUFFORCE = 33
IPPROTO_MPTCP = 262
RECORD = struct.Struct("<dI")


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


def uptime():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def feed(clip, rate, to, start, log):
    """Sends the clip, seven packets a datagram, each at its time, and notes when it left."""
    data = open(clip, "rb").read()
    gap = DATAGRAM * 8 / float(rate)
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    to, start = address(to), float(start)
    sent = []
    for number, at in enumerate(range(0, len(data), DATAGRAM)):
        wait = start + number * gap - uptime()
        if wait > 0:
            time.sleep(wait)
        sent.append(time.time())
        try:
            out.sendto(data[at : at + DATAGRAM], to)
        except OSError:
            # The port is closed just now: what is lost by that is the tool's loss.
            pass
    with open(log, "wb") as file:
        file.write(struct.pack(f"<{len(sent)}d", *sent))


def tap(port, log):
    """Notes what comes until it is ended."""
    into = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    into.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    into.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
    into.bind(("0.0.0.0", int(port)))
    with open(log, "wb", buffering=1 << 16) as file:
        while True:
            if not select.select([into], [], [], 0.5)[0]:
                file.flush()
                continue
            data, extra, _, _ = into.recvmsg(65536, 256)
            seconds, nanos = struct.unpack("qq", extra[0][2][:16])
            file.write(RECORD.pack(seconds + nanos / 1e9, len(data)) + data)


def control(log):
    """Wakes every 5 ms beside a run, as its programs do, and notes the 99th percentile of how late, and the longest."""
    late, ended = [], []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    at = uptime()
    while not ended:
        at += 0.005
        wait = at - uptime()
        if wait > 0:
            time.sleep(wait)
        late.append(uptime() - at)
    late.sort()
    with open(log, "w") as file:
        file.write(f"{1000 * late[int(0.99 * (len(late) - 1))]:.1f},{1000 * late[-1]:.1f}\n")


def mptcp_socket():
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)


def mptcp_in(port, to):
    """Passes datagrams on as bytes. A live source cannot wait: a datagram for which there is no room is dropped."""
    source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    source.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 4 << 20)
    source.bind(("127.0.0.1", int(port)))
    while True:
        try:
            stream = mptcp_socket()
            stream.settimeout(2)
            stream.connect(address(to))
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            stream.setblocking(False)
            relay(source, stream)
        except OSError as error:
            print(f"connection: {error}; once more", flush=True)
            time.sleep(0.2)


def relay(source, stream):
    rest = b""
    while True:
        readable, writable, _ = select.select([source, stream], [stream] if rest else [], [])
        if stream in readable and not stream.recv(100):
            raise OSError("the other end went away")
        try:
            if source in readable:
                data = source.recv(65536)
                if not rest:
                    rest = data[stream.send(data) :]
            elif writable:
                rest = rest[stream.send(rest) :]
        except BlockingIOError:
            pass


def mptcp_out(port, to):
    """Passes bytes on as datagrams of seven packets."""
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener = mptcp_socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("0.0.0.0", int(port)))
    listener.listen()
    while True:
        stream, _ = listener.accept()
        rest = b""
        try:
            while data := stream.recv(65536):
                rest += data
                while len(rest) >= DATAGRAM:
                    out.sendto(rest[:DATAGRAM], address(to))
                    rest = rest[DATAGRAM:]
        except OSError as error:
            print(f"connection: {error}", flush=True)


def video_pid(packets):
    """The stream with the most packets that is no padding."""
    counts = defaultdict(int)
    for p in packets:
        counts[pid(p)] += 1
    counts.pop(0x1FFF, None)
    return max(counts, key=counts.get)


def pid(packet):
    return (packet[1] & 0x1F) << 8 | packet[2]


def arrivals(tapped):
    """First arrival of each content."""
    came, at = {}, 0
    data = open(tapped, "rb").read()
    while at + RECORD.size <= len(data):
        when, length = RECORD.unpack_from(data, at)
        at += RECORD.size
        for i in range(at, at + length - PACKET + 1, PACKET):
            came.setdefault(data[i : i + PACKET], when)
        at += length
    return came


def run_of(clip, sent, tapped):
    """The clip's packets, when each datagram of them left, when each content came, and how often each occurs."""
    data = open(clip, "rb").read()
    packets = [data[i : i + PACKET] for i in range(0, len(data), PACKET)]
    times = open(sent, "rb").read()
    times = struct.unpack(f"<{len(times) // 8}d", times)
    seen = defaultdict(int)
    for p in packets:
        seen[p] += 1
    return packets, times, arrivals(tapped), seen


def judge(clip, sent, tapped, latency, grace):
    packets, times, came, seen = run_of(clip, sent, tapped)
    video = video_pid(packets)
    limit = (float(latency) + float(grace)) / 1000
    frames, delays, counted, usable, late, early_lost = [], [], 0, 0, 0, 0
    for number, packet in enumerate(packets):
        if pid(packet) != video or seen[packet] > 1:
            continue
        if packet[1] & 0x40:
            frames.append([times[number // 7], True])
        counted += 1
        left, arrived = times[number // 7], came.get(packet)
        delay = None if arrived is None else arrived - left
        fine = delay is not None and delay <= limit
        usable += fine
        late += delay is not None and not fine
        early_lost += not fine and left - times[0] < 2
        if delay is not None:
            delays.append(delay)
        if frames and not fine:
            frames[-1][1] = False
    delays.sort()
    share = lambda part, whole: 100 * part / whole if whole else 0
    quantile = lambda q: 1000 * delays[int(q * (len(delays) - 1))] if delays else float("nan")
    first = sum(1 for n, p in enumerate(packets) if pid(p) == video and seen[p] == 1 and times[n // 7] - times[0] < 2)
    after = [f for f in frames if f[0] - times[0] >= 2]
    print(
        f"{share(usable, counted):.2f},{share(sum(f[1] for f in frames), len(frames)):.2f},"
        f"{share(usable - (first - early_lost), counted - first):.2f},"
        f"{share(sum(f[1] for f in after), len(after)):.2f},"
        f"{share(late, counted):.2f},{quantile(0.5):.0f},{quantile(0.99):.0f},{counted},{len(frames)}"
    )


def usable(clip, sent, tapped, latency, grace, to):
    """Packets that occur more than once, tables and sound, count as in time when they came at all."""
    packets, times, came, seen = run_of(clip, sent, tapped)
    limit = (float(latency) + float(grace)) / 1000
    with open(to, "wb") as file:
        for number, packet in enumerate(packets):
            at = came.get(packet)
            if at is not None and (seen[packet] > 1 or at - times[number // 7] <= limit):
                file.write(packet)


def picture(network, tool, run, quality):
    said = json.load(open(quality))
    cells = [said.get(key) for key in ("decodable_share", "psnr_db", "ssim")]
    # All pictures equal have no PSNR, and a stream that no decoder reads has none either.
    print(",".join([network, tool, run] + ["" if c is None else f"{c:.5f}" for c in cells]))


def pictures(results):
    rows = list(csv.DictReader(open(results)))
    print("\nFrames that can be decoded, per cent, and the picture, dB and SSIM, mean of the runs:\n")
    print("| network | tool | decodable | PSNR | SSIM |\n|---|---|---|---|---|")
    for network, tool in dict.fromkeys((r["network"], r["tool"]) for r in rows):
        mine = [r for r in rows if (r["tool"], r["network"]) == (tool, network)]

        def mean(key, form, scale=1):
            known = [scale * float(r[key]) for r in mine if r[key]]
            return form.format(sum(known) / len(known)) if known else ""

        cells = mean("decodable", "{:.1f}", 100), mean("psnr_db", "{:.1f}"), mean("ssim", "{:.4f}")
        print(f"| {network} | {tool} | " + " | ".join(cells) + " |")


def table(results):
    rows = list(csv.DictReader(open(results)))
    networks = list(dict.fromkeys(r["network"] for r in rows))
    tools = list(dict.fromkeys(r["tool"] for r in rows))
    for title, packets, frames in (
        ("of the whole stream", "usable", "clean"),
        ("from its third second on", "usable_after_2s", "clean_after_2s"),
    ):
        print(f"\nUsable packets / clean frames, per cent {title}, mean of the runs:\n")
        print("| tool | " + " | ".join(networks) + " |")
        print("|---" * (len(networks) + 1) + "|")
        best = {}
        cells = {}
        for tool in tools:
            for network in networks:
                mine = [r for r in rows if (r["tool"], r["network"]) == (tool, network)]
                if mine:
                    mean = lambda key: sum(float(r[key]) for r in mine) / len(mine)
                    cells[tool, network] = (mean(packets), mean(frames))
                    if tool != "udp":
                        best[network] = max(best.get(network, 0), mean(frames))
        for tool in tools:
            line = []
            for network in networks:
                cell = cells.get((tool, network))
                mark = "**" if cell and tool != "udp" and cell[1] >= best[network] - 0.005 else ""
                line.append(f"{mark}{cell[0]:.2f} / {cell[1]:.2f}{mark}" if cell else "")
            print(f"| {tool} | " + " | ".join(line) + " |")


if __name__ == "__main__":
    parts = {
        "feed": feed,
        "tap": tap,
        "control": control,
        "mptcp-in": mptcp_in,
        "mptcp-out": mptcp_out,
        "judge": judge,
        "table": table,
        "usable": usable,
        "picture": picture,
        "pictures": pictures,
    }
    if len(sys.argv) < 2 or sys.argv[1] not in parts:
        sys.exit(__doc__)
    parts[sys.argv[1]](*sys.argv[2:])
