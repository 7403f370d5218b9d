#!/usr/bin/env python3
"""Strangers at the door of the real program, beside a real sender: what each attack costs, and who is served.

`scripts/strangers.sh` runs this; see its header.
"""

import argparse
import os
import random
import re
import socket
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peer  # noqa: E402
from actors import Attack, Program, Relays, Sender, free_port, listening  # noqa: E402

# What a row may cost at most. The program listens with an empty buffer; a stranger before its hello holds 16 KiB at most.
MEMORY_MAX_MB = 24
LINES_A_SECOND = 4
# Of the soak: who holds the only place keeps it for three seconds, and two paths may be down at once for two.
PAUSE_MAX_S = 6


# Name, attacks with their arguments, whether the real sender is there before them, and flags. A stranger that sends a
# stream of its own and ends it is a sender like others: only --keep, --from or stream ids keep a file from ending by it.
ROWS = [
    ("none", [], False, []),
    ("64 silent associations from one address", [("silent", {})], False, []),
    ("10 silent from each of nine addresses", [("silent", {"count": 10, "source": f"127.0.0.{n}"}) for n in range(2, 11)], False, []),
    ("20 that are here for ever", [("here_for_ever", {})], False, []),
    ("hello, latency 2^32 - 1, one message, gone", [("hello_and_gone", {})], False, []),
    ("hello and heartbeats for ever", [("hello_for_ever", {})], False, []),
    ("the same for a file", [("hello_for_ever", {"mode": peer.FILE_MODE})], False, []),
    ("hello and end", [("hello_and_end", {})], False, []),
    ("hello and end beside the sender", [("hello_and_end", {}), ("hello_for_ever", {})], True, []),
    ("an end that lies", [("lying_end", {})], False, ["--keep"]),
    ("damaged control messages", [("damaged", {})], False, []),
    ("floods of packets", [("flood", {})], False, []),
]


def receiver_row(anabranch, name, attacks, before, flags, seconds):
    with tempfile.TemporaryDirectory() as folder:
        out, stats = os.path.join(folder, "out"), os.path.join(folder, "stats")
        port = free_port()
        program = Program(anabranch, "recv", f"anabranch://127.0.0.1:{port}", out, "-J", "--stats-file", stats, *flags)
        listening(port)
        program.look()
        sender = Sender(anabranch, port) if before else None
        if before:
            time.sleep(0.7)
        running = [Attack(a, port, **how) for a, how in attacks]
        time.sleep(0.7)
        sender = sender or Sender(anabranch, port)
        served, until = None, time.monotonic() + seconds
        while time.monotonic() < until:
            program.look()
            if served is None and os.path.exists(out) and b"real" in open(out, "rb").read(100_000):
                served = time.monotonic() - sender.began
            if served is not None and time.monotonic() > sender.began + 1.5:
                break
            time.sleep(0.02)
        for attack in running:
            attack.stop()
        took = time.monotonic() - program.began
        survived = program.alive()
        # The sender ends well, and so does a file's receiver.
        sender.stop()
        # Strangers may have left their hello; the signal ends it then.
        time.sleep(0.2)
        ending = program.end()
        text = open(out, "rb").read() if os.path.exists(out) else b""
        numbers = [int(n) for n in re.findall(rb"real (\d{7})\n", text)]
        whole = numbers == list(range(numbers[0], numbers[-1] + 1)) if numbers else False
        lost = max((int(n) for n in re.findall(r'"lost":(\d+)', open(stats).read())), default=0)
        row = Row(name, program, took, served, ending)
        row.want("served", served is not None and served < 9)
        row.want("alive until the end", survived)
        row.want("nothing of the sender is missing", whole)
        row.want("no absurd counts", lost < 10**7)
        return row


def far_row(anabranch, count, worst):
    """A sender 10 and 40 ms away begins again and again while silent strangers of its own address fill the room."""
    player = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    player.bind(("127.0.0.1", 0))
    port = free_port()
    program = Program(anabranch, "recv", f"anabranch://127.0.0.1:{port}", f"udp://127.0.0.1:{player.getsockname()[1]}")
    listening(port)
    program.look()
    relays, attack = Relays(anabranch, port), Attack("silent", port, count=count)
    time.sleep(0.7)
    served = []
    for _ in range(7):
        # What the one before sent may still be played out.
        time.sleep(0.3)
        player.setblocking(False)
        while heard(player):
            pass
        player.settimeout(0.05)
        sender = Sender(anabranch, port, more=relays.flags)
        while not heard(player) and time.monotonic() < sender.began + 15:
            program.look()
        served.append(time.monotonic() - sender.began)
        sender.stop()
    attack.stop()
    took = time.monotonic() - program.began
    relays.end()
    name = f"{count} silent, a sender 10 and 40 ms away, median"
    row = Row(name, program, took, statistics.median(served), program.end())
    row.want(f"half of seven within {worst} s: {[round(s, 1) for s in served]}", row.served <= worst)
    return row


def heard(player):
    try:
        return player.recv(65535).startswith(b"real")
    except OSError:
        return False


def tunnel_row(anabranch, seconds):
    """Five strangers with 400 flows each, at a process that may open 256 files, beside a client that asks for echoes."""
    echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    echo.bind(("127.0.0.1", 0))
    echo.settimeout(0.2)
    stopping = threading.Event()

    def answer():
        while not stopping.is_set():
            try:
                data, who = echo.recvfrom(65535)
                if data != b"x":
                    echo.sendto(data, who)
            except OSError:
                pass

    thread = threading.Thread(target=answer)
    thread.start()
    port, entry = free_port(), free_port()
    target = f"udp://127.0.0.1:{echo.getsockname()[1]}"
    program = Program(anabranch, "tunnel", "--accept", f"anabranch://127.0.0.1:{port}", "--forward", target, files=256)
    listening(port)
    program.look()
    attack = Attack("flows", port)
    time.sleep(1)
    began = time.monotonic()
    way_in = Program(anabranch, "tunnel", "--listen", f"udp://127.0.0.1:{entry}", f"anabranch://127.0.0.1:{port}")
    listening(entry)
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.connect(("127.0.0.1", entry))
    client.settimeout(0.1)
    served, sent, came = None, 0, 0
    while time.monotonic() < began + seconds:
        program.look()
        try:
            client.send(b"echo %d" % sent)
            sent += 1
            client.recv(100)
            came += 1
            served = served or time.monotonic() - began
        except OSError:
            pass
        time.sleep(0.02)
    attack.stop()
    survived, took = program.alive(), time.monotonic() - program.began
    way_in.end()
    ending = program.end()
    stopping.set()
    thread.join()
    row = Row("five tunnels with 400 flows each, 256 files", program, took, served, ending)
    row.want("served", served is not None and came > sent * 0.8)
    row.want("alive until the end", survived)
    return row


def restart_row(anabranch, latency_ms=500):
    """No stranger: the sender is killed and begun again at once. How long the player then sees nothing."""
    player = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    player.bind(("127.0.0.1", 0))
    player.settimeout(0.02)
    port = free_port()
    to = f"udp://127.0.0.1:{player.getsockname()[1]}"
    program = Program(anabranch, "recv", f"anabranch://127.0.0.1:{port}", to)
    listening(port)
    program.look()
    clip = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../crates/media/clips/demo.ts")
    address = f"anabranch://127.0.0.1:{port}?latency={latency_ms}"
    sender = Program(anabranch, "send", clip, address, "-q")
    heard, killed = [], None
    until = time.monotonic() + 6
    while time.monotonic() < until:
        program.look()
        try:
            player.recv(65535)
            heard.append(time.monotonic())
        except OSError:
            pass
        if killed is None and heard and time.monotonic() > heard[0] + 1.5:
            sender.end("SIGKILL")
            killed = time.monotonic()
            sender = Program(anabranch, "send", clip, address, "-q")
    pause = max((b - a for a, b in zip(heard, heard[1:]) if killed and b > killed), default=None)
    took = time.monotonic() - program.began
    sender.end("SIGKILL")
    row = Row(f"sender killed and begun again, {latency_ms} ms: pause", program, took, pause, program.end())
    row.want("flows again", pause is not None and pause < 3 and heard[-1] > killed + 2)
    return row


class Row:
    """A line of the table."""

    def __init__(self, name, program, took, served, ending):
        self.name, self.served, self.ending = name, served, ending
        self.memory = (program.peak_kb - program.first_kb) / 1024
        self.files, self.cpu = program.peak_files, getattr(program, "cpu", 0) / took
        self.log = program.lines()
        self.missed = []
        self.want("memory", self.memory < MEMORY_MAX_MB)
        self.want("log lines", len(self.log) <= LINES_A_SECOND * took)
        self.want("ends within 2 s of SIGTERM", ending < 3.5)

    def want(self, what, fulfilled):
        if not fulfilled:
            self.missed.append(what)

    def show(self):
        served = "never" if self.served is None else f"{self.served:.1f} s"
        print(
            f"{self.name:45} {served:>7} {self.memory:7.1f} {self.files:5} {self.cpu * 100:5.0f} {len(self.log):6}"
            f" {self.ending:7.2f}  {'ok' if not self.missed else 'FAULT: ' + ', '.join(self.missed)}",
            flush=True,
        )
        if self.missed:
            for line in self.log[:5]:
                print(f"    {line}")


def table(anabranch, seconds):
    print(f"{'strangers':45} {'served':>7} {'MB more':>7} {'files':>5} {'CPU %':>5} {'lines':>6} {'end, s':>7}")
    rows = []
    for row in ROWS:
        rows.append(receiver_row(anabranch, *row, seconds))
        rows[-1].show()
    for count in (64, 600):
        rows.append(far_row(anabranch, count, 1))
        rows[-1].show()
    rows.append(restart_row(anabranch))
    rows[-1].show()
    rows.append(tunnel_row(anabranch, min(seconds, 3)))
    rows[-1].show()
    return not any(r.missed for r in rows)


def soak(anabranch, seconds, seed):
    """Two paths that flap, senders that are killed and begin again, one attacker after another; memory and descriptors."""
    rng = random.Random(seed)
    player = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    player.bind(("127.0.0.1", 0))
    player.settimeout(0.2)
    port, relays = free_port(), None
    program = Program(anabranch, "recv", f"anabranch://127.0.0.1:{port}", f"udp://127.0.0.1:{player.getsockname()[1]}")
    listening(port)
    heard, stopping = [], threading.Event()

    def play():
        while not stopping.is_set():
            try:
                if player.recv(65535).startswith(b"real"):
                    heard.append(time.monotonic())
            except OSError:
                pass

    thread = threading.Thread(target=play)
    thread.start()
    began, looks, sender, attack = time.monotonic(), [], None, None
    story = []
    next_look = next_sender = next_attack = began
    while time.monotonic() < began + seconds and program.alive():
        now = time.monotonic()
        if now >= next_sender:
            next_sender = now + rng.uniform(10, 30)
            if sender:
                sender.stop()
            if relays:
                relays.end()
            flaps = [f"at {a}s down at {a + 2}s up" for a in sorted(rng.sample(range(2, 27, 4), 3))]
            relays = Relays(anabranch, port, what=flaps)
            sender = Sender(anabranch, port, more=relays.flags)
            story.append((time.monotonic(), f"a sender begins, its paths: {flaps}"))
        if now >= next_attack:
            next_attack = now + rng.uniform(3, 8)
            if attack:
                attack.stop()
            name = rng.choice([n for n in peer.ATTACKS if n != "flows"])
            attack = Attack(name, port)
            story.append((time.monotonic(), f"attack {name}"))
        if now >= next_look:
            next_look = now + min(10, seconds / 30)
            look = program.look()
            if look:
                looks.append(look)
        time.sleep(0.05)
    survived = program.alive()
    for running in (attack, sender):
        if running:
            running.stop()
    if relays:
        relays.end()
    stopping.set()
    thread.join()
    ending = program.end()
    # The first tenth fills what is kept.
    looks = looks[len(looks) // 10 :]
    half = len(looks) // 2
    mean = lambda values: sum(values) / max(1, len(values))  # noqa: E731
    memory = [mean([kb for kb, _ in part]) / 1024 for part in (looks[:half], looks[half:])]
    files = [mean([f for _, f in part]) for part in (looks[:half], looks[half:])]
    pauses = sorted(((b - a, a) for a, b in zip(heard, heard[1:])), reverse=True)[:3]
    longest = pauses[0][0] if pauses else 0
    print(f"{seconds:.0f} s, seed {seed}: {len(heard)} datagrams of the sender put out, longest pause {longest:.1f} s")
    print(f"memory, mean of each half: {memory[0]:.1f} and {memory[1]:.1f} MB; descriptors: {files[0]:.1f} and {files[1]:.1f}")
    # What went on when the stream paused for longest.
    for gap, at in pauses:
        events = [f"{t - at:+.1f} s {what}" for t, what in story if at - 5 <= t <= at + gap]
        print(f"pause of {gap:.1f} s at {at - began:.0f} s: {'; '.join(events)}")
    lines = len(program.lines())
    print(f"{lines} lines of log, {program.cpu / seconds * 100:.0f} % of a core, ended {ending:.2f} s after SIGTERM")
    faults = [
        what
        for what, good in (
            ("it has ended", survived),
            ("memory grows", memory[1] < memory[0] * 1.2 + 4),
            ("descriptors grow", files[1] < files[0] + 6),
            ("nothing was put out", bool(heard)),
            (f"a pause of {longest:.1f} s", longest < PAUSE_MAX_S),
            ("too many lines", lines <= LINES_A_SECOND * seconds),
        )
        if not good
    ]
    print("ok" if not faults else "FAULT: " + ", ".join(faults))
    return not faults


def span(text):
    number, unit = re.fullmatch(r"([\d.]+)(s|min|m|h)?", text).groups()
    return float(number) * {None: 1, "s": 1, "min": 60, "m": 60, "h": 3600}[unit]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("anabranch", help="the program")
    parser.add_argument("--seconds", type=float, default=9, help="longest time for one row")
    parser.add_argument("--soak", type=span, help="for so long, such as 5min or 2h, instead of the table")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    good = soak(args.anabranch, args.soak, args.seed) if args.soak else table(args.anabranch, args.seconds)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
