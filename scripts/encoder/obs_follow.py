#!/usr/bin/env python3
"""Tells OBS what the paths carry, over obs-websocket 5 (in OBS: Tools, WebSocket Server Settings).

    anabranch send udp://127.0.0.1:5001 anabranch://server:9899?latency=500 --path wlan0 --path wwan0 \\
        --on-rate 'OBS_PASSWORD=secret scripts/encoder/obs_follow.py --least 800 --most 8000'

Reads lines `rate LOW MIDDLE TIME` (bit/s, docs/USE.md) on standard input, and ends when that ends. obs-websocket has no
request that changes the bit rate of an encoder that runs: this sets the profile's, which OBS takes at the next start of
its output. --output record is the recording to a URL (output mode Advanced, Custom Output (FFmpeg)), as in docs/USE.md;
--output stream is a stream in output mode Simple. With --restart the output is stopped and started for it, a gap of a
second or two: only where the paths carry less than two thirds of what the encoder makes, or half as much again, and not
more often than --apart. Only Python's standard library is needed.
"""

import argparse
import base64
import hashlib
import json
import os
import select
import socket
import struct
import sys
import time

# Of a transport stream a part is headers: of packets, of frames, and tables.
MUX = 0.94
# No message of OBS that we wait for is larger, bytes.
LARGEST = 1 << 20
# Where a profile has the bit rate of an output's video, in kbit/s.
RATE_OF = {"record": ("AdvOut", "FFVBitrate"), "stream": ("SimpleOutput", "VBitrate")}


class Lost(Exception):
    """The connection is gone, or never was."""


class WebSocket:
    """A client of RFC 6455, as far as obs-websocket needs it."""

    def __init__(self, host, port, timeout=5.0):
        try:
            self.socket = socket.create_connection((host, port), timeout)
        except OSError as error:
            raise Lost(f"OBS does not answer at {host}:{port}: {error}") from error
        self.read = self.socket.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET / HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Protocol: obswebsocket.json\r\n\r\n".encode()
        )
        status = self.read.readline(4096).decode("latin-1").split()
        if len(status) < 2 or status[1] != "101":
            raise Lost(f"what answers at {host}:{port} is no obs-websocket")
        for _ in range(100):
            if self.read.readline(4096) in (b"\r\n", b"\n", b""):
                break

    def send(self, message):
        self._frame(1, json.dumps(message).encode())

    def _frame(self, opcode, data):
        mask = os.urandom(4)
        length = len(data)
        if length < 126:
            head = struct.pack("!BB", 0x80 | opcode, 0x80 | length)
        elif length < 1 << 16:
            head = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, length)
        else:
            head = struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, length)
        masked = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
        try:
            self.socket.sendall(head + mask + masked)
        except OSError as error:
            raise Lost(f"OBS is gone: {error}") from error

    def _exactly(self, n):
        try:
            data = self.read.read(n)
        except OSError as error:
            raise Lost(f"OBS says nothing: {error}") from error
        if data is None or len(data) < n:
            raise Lost("OBS has ended the connection")
        return data

    def receive(self):
        """The next message."""
        whole = b""
        while True:
            first, second = self._exactly(2)
            length = second & 0x7F
            if length == 126:
                (length,) = struct.unpack("!H", self._exactly(2))
            elif length == 127:
                (length,) = struct.unpack("!Q", self._exactly(8))
            if length + len(whole) > LARGEST:
                raise Lost("OBS sends more than it should")
            data, opcode = self._exactly(length), first & 0x0F
            if opcode == 8:
                code = struct.unpack("!H", data[:2])[0] if len(data) >= 2 else 0
                raise Lost("the password is wrong" if code == 4009 else f"OBS has ended the connection ({code})")
            if opcode == 9:
                self._frame(10, data)
            elif opcode in (0, 1, 2):
                whole += data
                if first & 0x80:
                    try:
                        return json.loads(whole)
                    except ValueError as error:
                        raise Lost("OBS sends what is no JSON") from error


def proof(password, salt, challenge):
    """The answer to a challenge, as obs-websocket 5 wants it."""
    hashed = lambda text: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return hashed(hashed(password + salt) + challenge)


class Obs:
    """A session with OBS."""

    def __init__(self, host, port, password):
        self.socket, self.number = WebSocket(host, port), 0
        hello = self._await(0)
        identify = {"rpcVersion": 1, "eventSubscriptions": 0}
        if "authentication" in hello:
            if password is None:
                raise Lost("OBS wants a password: set OBS_PASSWORD")
            asked = hello["authentication"]
            identify["authentication"] = proof(password, asked["salt"], asked["challenge"])
        self.socket.send({"op": 1, "d": identify})
        self._await(2)

    def _await(self, op):
        for _ in range(1000):
            message = self.socket.receive()
            if message.get("op") == op:
                return message.get("d", {})
        raise Lost("OBS does not say what it should")

    def request(self, kind, **data):
        self.number += 1
        number = str(self.number)
        self.socket.send({"op": 6, "d": {"requestType": kind, "requestId": number, "requestData": data}})
        for _ in range(1000):
            answer = self._await(7)
            if answer.get("requestId") == number:
                break
        status = answer.get("requestStatus", {})
        if not status.get("result"):
            raise Lost(f"OBS refuses {kind}: {status.get('comment', status.get('code'))}")
        return answer.get("responseData") or {}

    def set_rate(self, output, kbit):
        category, name = RATE_OF[output]
        self.request("SetProfileParameter", parameterCategory=category, parameterName=name, parameterValue=str(kbit))

    def restart(self, output, patience=10.0):
        """Stops the output and starts it again, if it runs. Answers whether it did."""
        what = output.capitalize()
        if not self.request(f"Get{what}Status").get("outputActive"):
            return False
        self.request(f"Stop{what}")
        until = time.monotonic() + patience
        while self.request(f"Get{what}Status").get("outputActive"):
            if time.monotonic() > until:
                raise Lost("the output does not stop")
            time.sleep(0.1)
        self.request(f"Start{what}")
        return True


class Follower:
    """Decides when OBS gets another rate."""

    def __init__(self, args):
        self.args, self.set_to, self.runs_at, self.restarted = args, None, None, None

    def wanted(self, line):
        """kbit/s for a line; none where it is not one of ours."""
        fields = line.split()
        if len(fields) != 4 or fields[0] != "rate":
            return None
        try:
            rate = int(fields[1] if self.args.follow == "low" else fields[2])
        except ValueError:
            return None
        return int(min(max(rate / 1000 * MUX - self.args.audio, self.args.least), self.args.most))

    def act(self, obs, kbit, now):
        if self.set_to is None or abs(kbit - self.set_to) > self.set_to * 0.03:
            obs.set_rate(self.args.output, kbit)
            self.set_to = kbit
        runs = self.runs_at or self.args.most
        far = kbit * 3 < runs * 2 or kbit * 2 > runs * 3
        rested = self.restarted is None or now - self.restarted >= self.args.apart
        if self.args.restart and far and rested and obs.restart(self.args.output):
            self.runs_at, self.restarted = kbit, now
            print(f"obs_follow: started again with {kbit} kbit/s", file=sys.stderr, flush=True)


def newest(stream, wait):
    """The newest line that comes within `wait` seconds; none without one, "" at the end."""
    line = None
    while select.select([stream], [], [], wait if line is None else 0)[0]:
        data = os.read(stream.fileno(), 65536).decode("ascii", "replace")
        if not data:
            return line or ""
        line, wait = data.rstrip("\n").rsplit("\n", 1)[-1], 0
    return line


def main():
    parser = argparse.ArgumentParser(description="Tells OBS what the paths carry.")
    parser.add_argument("--at", default="127.0.0.1:4455", help="where obs-websocket listens")
    parser.add_argument("--follow", choices=["low", "middle"], default="low")
    parser.add_argument("--most", type=float, default=8000, help="most that OBS makes, kbit/s: as in its settings")
    parser.add_argument("--least", type=float, default=500, help="least that it makes, kbit/s")
    parser.add_argument("--audio", type=float, default=160, help="left for audio, kbit/s")
    parser.add_argument("--output", choices=list(RATE_OF), default="record", help="the recording to a URL, or the stream")
    parser.add_argument("--restart", action="store_true", help="stop and start the output where the rate is far off")
    parser.add_argument("--apart", type=float, default=30, help="least seconds between two starts")
    args = parser.parse_args()
    host, _, port = args.at.rpartition(":")
    password, follower, obs, kbit, said, next_try = os.environ.get("OBS_PASSWORD"), Follower(args), None, None, None, 0.0
    while True:
        line = newest(sys.stdin, 1.0)
        if line == "":
            return
        kbit = (line and follower.wanted(line)) or kbit
        now = time.monotonic()
        if kbit is None or (obs is None and now < next_try):
            continue
        try:
            if obs is None:
                obs, follower.set_to = Obs(host or "127.0.0.1", int(port), password), None
            follower.act(obs, kbit, now)
            said = None
        except (Lost, KeyError, OSError) as error:
            # OBS may not run yet, or be started again.
            obs, next_try = None, now + 5
            if str(error) != said:
                said = str(error)
                print(f"obs_follow: {error}; trying again", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
