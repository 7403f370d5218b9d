#!/usr/bin/env python3
"""A small SCTP peer over UDP, by hand: enough of RFC 9260 and RFC 6951 to come in as a stranger and behave badly.

It shares no code with the engine. Standard library only. `Peer` is one association; `python3 peer.py --help` runs attacks.
"""

import argparse
import os
import socket
import struct
import sys
import time

# Chunk types, RFC 9260 section 3.2.
DATA, INIT, INIT_ACK, SACK, HEARTBEAT, HEARTBEAT_ACK, ABORT = 0, 1, 2, 3, 4, 5, 6
SHUTDOWN, SHUTDOWN_ACK, ERROR, COOKIE_ECHO, COOKIE_ACK, SHUTDOWN_COMPLETE = 7, 8, 9, 10, 11, 14
FORWARD_TSN = 192  # RFC 3758.

# The session on top: payload protocol identifiers and kinds of control messages (crates/cli/src/session.rs).
CONTROL, MEDIA, BYTES, DATAGRAM, TUNNEL = (0x616E6200 + n for n in (0, 1, 2, 3, 5))
CONTROL_STREAM, DATA_STREAM = 3, 4
MEDIA_MODE, DATAGRAM_MODE, FILE_MODE, TUNNEL_MODE = 1, 2, 3, 4


def crc_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


TABLE = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def chunk(kind, value=b"", flags=0):
    return struct.pack("!BBH", kind, flags, 4 + len(value)) + value + bytes(-len(value) % 4)


def packet(source, destination, tag, *chunks):
    body = b"".join(chunks)
    head = struct.pack("!HHI", source, destination, tag)
    # The checksum travels with its lowest byte first.
    return head + struct.pack("<I", crc32c(head + bytes(4) + body)) + body


def chunks_of(datagram):
    at = 12
    while at + 4 <= len(datagram):
        kind, flags, length = struct.unpack_from("!BBH", datagram, at)
        if length < 4 or at + length > len(datagram):
            return
        yield kind, flags, datagram[at + 4 : at + length]
        at += length + (-length % 4)


def control(kind, value=b""):
    return b"anb\x01" + bytes([kind]) + value


def hello(mode=MEDIA_MODE, latency=300):
    return control(1, struct.pack("!BI", mode, latency) + b"stranger")


def end(messages=0, frames=0, size=0, interrupted=False):
    return control(5, struct.pack("!BQQQ", interrupted, messages, frames, size))


def here():
    return control(7, bytes(8))


def media(sequence, frame=0, timestamp=0, payload=bytes(188)):
    """A media message that is a frame of its own (crates/media/src/header.rs)."""
    return struct.pack("!BBHHIII", 0xA1, 0x20, 0, 1, sequence, frame, timestamp) + payload


class Peer:
    """One association as the side that begins it."""

    def __init__(self, host, port, source="127.0.0.1", sctp_port=9899):
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind((source, 0))
        self.udp.connect((host, port))
        self.udp.settimeout(0.05)
        self.source, self.destination = self.udp.getsockname()[1], sctp_port
        self.tag = int.from_bytes(os.urandom(4), "big") | 1
        self.peer_tag = 0
        self.tsn = int.from_bytes(os.urandom(4), "big")
        self.ssn = {}
        self.cumulative = None
        self.early = set()
        self.acked = None
        self.connected = self.closed = False
        self.said = []
        self.bytes_out = self.bytes_in = 0

    def send(self, *chunks, tag=None):
        data = packet(self.source, self.destination, self.peer_tag if tag is None else tag, *chunks)
        self.bytes_out += len(data)
        try:
            self.udp.send(data)
        except OSError:
            pass

    def connect(self, seconds=2.0):
        """The four packets of the handshake; false without an answer or when the peer refuses."""
        first = struct.pack("!IIHHI", self.tag, 1 << 20, 16, 16, self.tsn)
        # Forward-TSN is supported.
        first += struct.pack("!HH", 0xC000, 4)
        until, again = time.monotonic() + seconds, 0.0
        cookie = None
        while not self.connected and not self.closed and time.monotonic() < until:
            if time.monotonic() >= again:
                again = time.monotonic() + 0.5
                self.send(chunk(COOKIE_ECHO, cookie)) if cookie else self.send(chunk(INIT, first), tag=0)
            for kind, _, value in self.receive():
                if kind == INIT_ACK and cookie is None:
                    self.peer_tag, _, _, _, initial = struct.unpack_from("!IIHHI", value)
                    self.cumulative = initial - 1 & 0xFFFFFFFF
                    at = 16
                    while at + 4 <= len(value):
                        parameter, length = struct.unpack_from("!HH", value, at)
                        if parameter == 7:
                            cookie = value[at + 4 : at + length]
                        at += max(4, length + (-length % 4))
                    again = 0.0
                elif kind == COOKIE_ACK:
                    self.connected = True
        return self.connected

    def receive(self):
        """The chunks of one datagram, if one comes soon; what has to be answered is."""
        try:
            datagram = self.udp.recv(65535)
        except OSError:
            return []
        self.bytes_in += len(datagram)
        all_chunks = list(chunks_of(datagram))
        for kind, _, value in all_chunks:
            if kind == HEARTBEAT:
                self.send(chunk(HEARTBEAT_ACK, value))
            elif kind == DATA and len(value) >= 12:
                tsn, stream, _, ppid = struct.unpack_from("!IHHI", value)
                self.note(tsn)
                if ppid == CONTROL:
                    self.said.append(value[12:])
                self.sack()
            elif kind == SACK:
                self.acked = struct.unpack_from("!I", value)[0]
            elif kind == SHUTDOWN:
                self.send(chunk(SHUTDOWN_ACK))
            elif kind in (ABORT, SHUTDOWN_COMPLETE):
                self.closed = True
        return all_chunks

    def note(self, tsn):
        self.early.add(tsn)
        while (self.cumulative + 1 & 0xFFFFFFFF) in self.early:
            self.cumulative = self.cumulative + 1 & 0xFFFFFFFF
            self.early.discard(self.cumulative)

    def sack(self):
        self.send(chunk(SACK, struct.pack("!IIHH", self.cumulative, 1 << 20, 0, 0)))

    def data(self, payload, ppid=CONTROL, stream=CONTROL_STREAM, unordered=False):
        """A DATA chunk, as it will be sent."""
        ssn = self.ssn.get(stream, 0)
        if not unordered:
            self.ssn[stream] = ssn + 1 & 0xFFFF
        value = struct.pack("!IHHI", self.tsn, stream, ssn, ppid) + payload
        self.tsn = self.tsn + 1 & 0xFFFFFFFF
        return chunk(DATA, value, flags=7 if unordered else 3)

    def say(self, message):
        self.send(self.data(message))

    def listen(self, seconds):
        until = time.monotonic() + seconds
        while not self.closed and time.monotonic() < until:
            self.receive()

    def welcomed(self, seconds=2.0):
        """The answer to a hello: true, false when refused, none when nothing comes."""
        until = time.monotonic() + seconds
        while not self.closed and time.monotonic() < until:
            for message in self.said:
                if message[:3] == b"anb" and message[4] in (2, 3):
                    return message[4] == 2
            self.receive()
        return None

    def abort(self):
        self.send(chunk(ABORT))
        self.udp.close()

    def vanish(self):
        """Without a word."""
        self.udp.close()


# Attacks. Each runs until `stop()` or until it has done its worst, and returns what it saw.


def silent(host, port, stop, count=64, source="127.0.0.1"):
    """Associations that say nothing, renewed when they are closed, and kept alive by answers to heartbeats."""
    peers, refused, closed = [], 0, 0
    while not stop():
        peers = [p for p in peers if not p.closed]
        while len(peers) < count and not stop():
            peer = Peer(host, port, source)
            if not peer.connect(0.3):
                refused += 1
                peer.vanish()
                break
            peer.udp.settimeout(0)
            peers.append(peer)
        for peer in peers:
            peer.receive()
            if peer.closed:
                closed += 1
                peer.udp.close()
        time.sleep(0.002)
    for peer in peers:
        peer.vanish()
    return {"refused": refused, "sent away": closed}


def hello_and_gone(host, port, stop, latency=0xFFFFFFFF):
    """A hello with an absurd latency, a media message, and nothing more: not even an answer to a heartbeat."""
    peer = Peer(host, port)
    if not peer.connect():
        return {"connected": False}
    peer.say(hello(latency=latency))
    answer = peer.welcomed()
    peer.send(peer.data(media(0), MEDIA, 0))
    peer.vanish()
    return {"welcomed": answer}


def hello_for_ever(host, port, stop, mode=MEDIA_MODE):
    """A hello, then heartbeats answered for ever; again when it is sent away."""
    peer, times = None, 0
    while not stop():
        if peer is None or peer.closed:
            peer = Peer(host, port)
            if not peer.connect(0.5):
                peer = None
                continue
            peer.say(hello(mode))
            times += 1
        peer.receive()
    return {"hellos": times}


def here_for_ever(host, port, stop):
    """Only the news that it is here, and that something may come."""
    peers = []
    while not stop():
        peers = [p for p in peers if not p.closed]
        if len(peers) < 20:
            peer = Peer(host, port)
            if peer.connect(0.3):
                peer.say(here())
                peer.udp.settimeout(0.001)
                peers.append(peer)
        for peer in peers:
            peer.receive()
    return {"waiting": len(peers)}


def hello_and_end(host, port, stop, mode=MEDIA_MODE, times=3, **counts):
    """Sessions that are over at once."""
    for _ in range(times):
        peer = Peer(host, port)
        if peer.connect():
            peer.say(hello(mode))
            peer.welcomed(0.5)
            peer.say(end(**counts))
            peer.listen(0.3)
            peer.abort()
    return {"sessions": times}


def lying_end(host, port, stop):
    """One message, and an end that says there were 2^64 - 1."""
    peer = Peer(host, port)
    if peer.connect():
        peer.say(hello(latency=50))
        peer.welcomed()
        peer.send(peer.data(media(0), MEDIA, 0))
        peer.say(end(messages=2**64 - 1, frames=2**64 - 1, size=2**64 - 1))
        peer.listen(2)
    return {}


def flows(host, port, stop, strangers=5, count=400):
    """Tunnels with more flows each than there are descriptors, again and again."""
    peers, sent = [], 0
    for _ in range(strangers):
        peer = Peer(host, port)
        if peer.connect():
            peer.say(hello(TUNNEL_MODE, 100))
            peer.welcomed()
            peer.udp.settimeout(0)
            peers.append(peer)
    flow = 0
    while not stop() and peers:
        for peer in peers:
            flow += 1
            peer.send(peer.data(struct.pack("!I", flow % count) + b"x", TUNNEL, DATA_STREAM, unordered=True))
            peer.receive()
            sent += 1
        time.sleep(0.0005)
    for peer in peers:
        peer.vanish()
    return {"tunnels": len(peers), "datagrams": sent}


def damaged(host, port, stop):
    """Control messages without meaning, and a stream that was not asked for, from peers without end."""
    times = 0
    while not stop():
        peer = Peer(host, port)
        if peer.connect(0.3):
            peer.say(b"anb\x01\x01\x09\0\0\0\0" if times % 2 else b"GET / HTTP/1.1")
            peer.listen(0.01)
            times += 1
        peer.vanish()
    return {"peers": times}


def flood(host, port, stop):
    """INITs, forged cookies and packets without an association, as fast as this goes."""
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.connect((host, port))
    udp.setblocking(False)
    first = struct.pack("!IIHHI", 7, 1 << 20, 16, 16, 1)
    packets = [
        packet(5000, 9899, 0, chunk(INIT, first)),
        packet(5001, 9899, 77, chunk(COOKIE_ECHO, bytes(300))),
        packet(5002, 9899, 78, chunk(DATA, bytes(12) + b"abc", 3)),
        packet(5003, 9899, 79, chunk(HEARTBEAT, struct.pack("!HH", 1, 8) + b"abcd")),
        os.urandom(1200),
    ]
    sent = 0
    while not stop():
        for p in packets:
            try:
                udp.send(p)
                sent += 1
            except OSError:
                pass
        try:
            while True:
                udp.recv(65535)
        except OSError:
            pass
    return {"packets": sent}


ATTACKS = {
    a.__name__: a
    for a in (silent, hello_and_gone, hello_for_ever, here_for_ever, hello_and_end, lying_end, flows, damaged, flood)
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("attack", choices=sorted(ATTACKS))
    parser.add_argument("port", type=int)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--seconds", type=float, default=5.0)
    args = parser.parse_args()
    until = time.monotonic() + args.seconds
    seen = ATTACKS[args.attack](args.host, args.port, lambda: time.monotonic() >= until)
    print(" ".join(f"{k}={v}" for k, v in seen.items()))
    sys.stdout.flush()


if __name__ == "__main__":
    assert crc32c(b"123456789") == 0xE3069283
    main()
