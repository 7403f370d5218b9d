#!/usr/bin/env python3
"""What restarts.sh runs: an encoder, a viewer, and the ends between them that are disturbed.

    restarts.py ANABRANCH CLIP FOLDER [--short]

The encoder sends the clip again and again at its own pace, with continuity counters that go on and a number in the
time stamp (PTS) of each video frame. The viewer counts a frame when all its packets have come, without a gap in the
continuity counter. So each frame that was sent is known to have been seen, or not.
"""

import argparse
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

PACKET = 188
DATAGRAM = 7 * PACKET
CLIP_SECONDS = 3.84
LATENCY = 0.5
# A picture that is not back after so long will not come.
LIMIT = 30.0
# So long the stream flows between two disturbances, and after the last one.
CALM = 1.5


def pid(packet):
    return (packet[1] & 0x1F) << 8 | packet[2]


def begins(packet):
    return packet[1] & 0x40 != 0


def payload(packet):
    """Where the payload begins; none without one."""
    if not packet[3] & 0x10:
        return None
    start = 4 + (1 + packet[4] if packet[3] & 0x20 else 0)
    return start if start < PACKET else None


def is_video(packet):
    """Does a video frame with a time stamp begin here?"""
    at = payload(packet)
    if not begins(packet) or at is None or at + 14 > PACKET:
        return False
    head = packet[at : at + 14]
    return head[:3] == b"\0\0\1" and 0xE0 <= head[3] <= 0xEF and head[7] & 0x80 != 0


def stamp(packet, number):
    at = payload(packet) + 9
    packet[at] = packet[at] & 0xF0 | (number >> 30 & 7) << 1 | 1
    packet[at + 1] = number >> 22 & 0xFF
    packet[at + 2] = (number >> 15 & 0x7F) << 1 | 1
    packet[at + 3] = number >> 7 & 0xFF
    packet[at + 4] = (number & 0x7F) << 1 | 1


def stamped(packet):
    b = packet[payload(packet) + 9 :]
    return (b[0] >> 1 & 7) << 30 | b[1] << 22 | (b[2] >> 1) << 15 | b[3] << 7 | b[4] >> 1


class Encoder(threading.Thread):
    """Sends frames with numbers from 1 on; knows when each began."""

    def __init__(self, clip, port):
        super().__init__(daemon=True)
        self.packets = [clip[i : i + PACKET] for i in range(0, len(clip), PACKET)]
        self.to = ("127.0.0.1", port)
        self.sent = []
        self.over = threading.Event()

    def run(self):
        out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        counters, number, batch, began, done = {}, 0, bytearray(), time.monotonic(), 0
        while not self.over.is_set():
            for original in self.packets:
                packet = bytearray(original)
                if packet[3] & 0x10:
                    counters[pid(packet)] = counters.get(pid(packet), -1) + 1 & 0xF
                packet[3] = packet[3] & 0xF0 | counters.get(pid(packet), 0)
                if is_video(packet):
                    number += 1
                    stamp(packet, number)
                    self.sent.append((time.monotonic(), number))
                batch += packet
                done += 1
                if len(batch) >= DATAGRAM:
                    wait = began + CLIP_SECONDS * done / len(self.packets) - time.monotonic()
                    if wait > 0:
                        time.sleep(wait)
                    try:
                        out.sendto(batch, self.to)
                    except OSError:
                        pass
                    batch = bytearray()
                if self.over.is_set():
                    return


class Viewer(threading.Thread):
    """Notes each frame that came whole, and when."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.whole = {}

    def run(self):
        video = number = counter = None
        clean = False
        while True:
            datagram = self.socket.recv(65536)
            for i in range(0, len(datagram) - PACKET + 1, PACKET):
                packet = datagram[i : i + PACKET]
                if is_video(packet):
                    video = pid(packet)
                if pid(packet) != video or payload(packet) is None:
                    continue
                gap = counter is not None and packet[3] & 0xF != counter + 1 & 0xF
                counter = packet[3] & 0xF
                if gap:
                    clean = False
                if is_video(packet):
                    if number is not None and clean:
                        self.whole[number] = time.monotonic()
                    number, clean = stamped(packet), True


class Ends:
    """The programs between encoder and viewer."""

    def __init__(self, program, folder, viewer):
        ports = [free_port() for _ in range(4)]
        self.program, self.folder, self.viewer = program, folder, viewer
        self.input, self.port, self.relays = ports[0], ports[1], ports[2:]
        self.running = {}
        self.logs = []

    def command(self, name):
        if name == "receiver":
            return ["recv", f"anabranch://127.0.0.1:{self.port}", f"udp://127.0.0.1:{self.viewer.port}", "--keep"]
        if name == "network":
            words = "rate 20mbit delay 20ms limit 200"
            paths = [f"listen 127.0.0.1:{r} to 127.0.0.1:{self.port} {words}" for r in self.relays]
            return ["emulate", "--stats", "none", "--path", paths[0], "--path", paths[1]]
        latency = int(LATENCY * 1000)
        paths = [f"127.0.0.{i + 1},via=127.0.0.1:{r}" for i, r in enumerate(self.relays)]
        return ["send", f"udp://127.0.0.1:{self.input}", f"anabranch://127.0.0.1:{self.port}?latency={latency}",
                "--path", paths[0], "--path", paths[1]]

    def start(self, name):
        log = open(self.folder / f"{name}.log", "ab")
        self.logs.append(log)
        command = [self.program, *self.command(name)]
        self.running[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def signal(self, name, number):
        self.running[name].send_signal(number)

    def end(self, name, number):
        """Sends a signal and waits for the end."""
        self.signal(name, number)
        self.running.pop(name).wait(timeout=20)

    def clean_up(self):
        for child in self.running.values():
            child.send_signal(signal.SIGCONT)
            child.kill()
            child.wait()


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def restart(name, number, pause):
    def act(ends):
        ends.end(name, number)
        time.sleep(pause)
        ends.start(name)

    word = {signal.SIGTERM: "stopped", signal.SIGINT: "interrupted", signal.SIGKILL: "killed"}[number]
    return f"{name} {word}, started again after {pause} s", act


def hang(name, seconds):
    def act(ends):
        ends.signal(name, signal.SIGSTOP)
        time.sleep(seconds)
        ends.signal(name, signal.SIGCONT)

    return f"{name} hangs for {seconds} s", act


def disturbances(short):
    term, kill, interrupt = signal.SIGTERM, signal.SIGKILL, signal.SIGINT
    few = [
        restart("receiver", term, 0), restart("receiver", kill, 0), hang("receiver", 2),
        restart("sender", term, 0), restart("sender", kill, 0), hang("network", 3),
    ]
    if short:
        return few
    return few + [
        restart("receiver", interrupt, 1), restart("receiver", kill, 1), restart("receiver", term, 5),
        restart("receiver", kill, 5), restart("receiver", kill, 15), hang("receiver", 1), hang("receiver", 5),
        restart("sender", interrupt, 1), restart("sender", kill, 1), restart("sender", term, 5), hang("sender", 1),
        hang("sender", 4), hang("network", 12), restart("network", kill, 3),
    ]


def disturb(what, act, ends, encoder, viewer):
    """One disturbance: the seconds until the picture was back, and the frames lost because of it."""
    began = time.monotonic()
    act(ends)
    back = time.monotonic()
    # Only frames that the encoder began after that tell that it works again; they take the latency at least.
    while True:
        fresh = [viewer.whole[n] for at, n in list(encoder.sent) if at > back and n in viewer.whole]
        if fresh:
            first = min(fresh)
            break
        if time.monotonic() - back > LIMIT:
            return back - began, None, None
        time.sleep(0.02)
    time.sleep(CALM + LATENCY)
    # What was on its way when it began counts too.
    window = [n for at, n in list(encoder.sent) if began - 2 * LATENCY < at < time.monotonic() - 2 * LATENCY]
    return back - began, first - back, sum(n not in viewer.whole for n in window)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("clip", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--short", action="store_true", help="a few disturbances only")
    args = parser.parse_args()
    viewer = Viewer()
    ends = Ends(args.program, args.folder, viewer)
    encoder = Encoder(args.clip.read_bytes(), ends.input)
    failed = 0
    try:
        viewer.start()
        # The sender is there before its encoder, the network and the receiver.
        ends.start("sender")
        time.sleep(0.5)
        encoder.start()
        rows = [("all start, the receiver last, 2 s after the sender", lambda e: (time.sleep(2), e.start("network"),
                                                                               e.start("receiver")))]
        print(f"seconds until a frame that was new by then was seen, {LATENCY} s of latency included")
        print(f"{'what happened':55} {'lasted':>7} {'back after':>10} {'frames lost':>11}", flush=True)
        for what, act in rows + disturbances(args.short):
            lasted, after, lost = disturb(what, act, ends, encoder, viewer)
            if after is None:
                failed += 1
                print(f"{what:55} {lasted:6.1f}s {'never':>10}", flush=True)
                break
            print(f"{what:55} {lasted:6.1f}s {after:9.2f}s {lost:11}", flush=True)
        seen, sent = len(viewer.whole), len(encoder.sent)
        print(f"{seen} of {sent} frames were seen, {sent / 25:.0f} s of video")
    finally:
        encoder.over.set()
        ends.clean_up()
    sys.exit(1 if failed else 0)


main()
