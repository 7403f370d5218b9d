"""The programs and peers of a row: the real program, the real sender, a stranger."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peer  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Program:
    """A running `anabranch`, and what it costs."""

    def __init__(self, anabranch, *args, stdin=subprocess.DEVNULL, files=None):
        self.log = tempfile.TemporaryFile()
        command = [anabranch, *args]
        if files:
            command = ["sh", "-c", f'ulimit -n {files}; exec "$0" "$@"', *command]
        self.process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.DEVNULL, stderr=self.log)
        self.began, self.peak_kb, self.peak_files = time.monotonic(), 0, 0
        self.first_kb = None

    def look(self):
        pid = self.process.pid
        try:
            with open(f"/proc/{pid}/status") as f:
                kb = int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))
            files = len(os.listdir(f"/proc/{pid}/fd"))
            with open(f"/proc/{pid}/stat") as f:
                fields = f.read().rsplit(")", 1)[1].split()
        except (OSError, AttributeError):
            return None
        self.first_kb = kb if self.first_kb is None else self.first_kb
        self.peak_kb, self.peak_files = max(self.peak_kb, kb), max(self.peak_files, files)
        self.cpu = (int(fields[11]) + int(fields[12])) / TICKS
        return kb, files

    def lines(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace").splitlines()

    def alive(self):
        return self.process.poll() is None

    def end(self, name="SIGTERM", seconds=10):
        """Ends it; how long that took."""
        began = time.monotonic()
        if self.alive():
            self.process.send_signal(getattr(signal, name))
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return time.monotonic() - began


def listening(port, seconds=10):
    wanted = f":{port:04X} "
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with open("/proc/net/udp") as f:
            if any(wanted in line.split(":", 1)[1][:20] + " " for line in f.readlines()[1:]):
                return
        time.sleep(0.01)
    sys.exit(f"strangers: no socket listens on port {port}")


class Sender:
    """The real sender: numbered datagrams through `send`, begun again like a service whenever it ends."""

    def __init__(self, anabranch, port, rate=100, more=()):
        self.args = (anabranch, port, rate, more)
        self.stopping = threading.Event()
        self.sent = self.starts = 0
        self.thread = threading.Thread(target=self.run)
        self.began = time.monotonic()
        self.thread.start()

    def run(self):
        anabranch, port, rate, more = self.args
        while not self.stopping.is_set():
            self.starts += 1
            to = f"anabranch://127.0.0.1:{port}?streamid=real"
            args = ["send", "-", to, "--mode", "datagram", "--ordered", "-q", *more]
            program = Program(anabranch, *args, stdin=subprocess.PIPE)
            try:
                while not self.stopping.is_set() and program.alive():
                    program.process.stdin.write(b"real %07d\n" % self.sent)
                    program.process.stdin.flush()
                    self.sent += 1
                    time.sleep(1 / rate)
                program.process.stdin.close()
            except OSError:
                pass
            try:
                program.process.wait(5)
            except subprocess.TimeoutExpired:
                program.end("SIGKILL")
            if not self.stopping.is_set():
                time.sleep(0.5)

    def stop(self):
        self.stopping.set()
        self.thread.join()


class Attack:
    """An attack in a thread of its own."""

    def __init__(self, name, port, **how):
        self.stopping, self.seen = threading.Event(), {}
        self.thread = threading.Thread(target=self.run, args=(peer.ATTACKS[name], port, how))
        self.thread.start()

    def run(self, attack, port, how):
        try:
            self.seen = attack("127.0.0.1", port, self.stopping.is_set, **how)
        except Exception as error:  # The peer may have been closed under it.
            self.seen = {"error": error}

    def stop(self):
        self.stopping.set()
        self.thread.join()


class Relays:
    """Two lossy paths of ours in front of a port, and the flags with which a sender takes them."""

    def __init__(self, anabranch, port, delays_ms=(10, 40), what=("", "")):
        ports = [free_port() for _ in delays_ms]
        paths = []
        for relay, delay, more in zip(ports, delays_ms, what):
            link = f"listen 127.0.0.1:{relay} to 127.0.0.1:{port} rate 10mbit delay {delay}ms loss 0.5% {more}"
            paths += ["--path", link]
        self.program = Program(anabranch, "emulate", "--stats", "none", *paths)
        for relay in ports:
            listening(relay)
        self.flags = [f for i, r in enumerate(ports) for f in ("--path", f"127.0.0.{i + 1},via=127.0.0.1:{r}")]

    def end(self):
        self.program.end("SIGKILL")
