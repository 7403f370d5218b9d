#!/usr/bin/env python3
"""Tests of the scripts beside it: python3 scripts/encoder/test_follow.py. OBS is played by a small server here."""

import argparse
import base64
import hashlib
import importlib.util
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest

HERE = pathlib.Path(__file__).parent


def load(name):
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class FakeObs(threading.Thread):
    """obs-websocket 5 as its protocol has it: challenge, requests, events in between."""

    SALT, CHALLENGE = "lM1GncleQOaCu9lT1yeUZhFYnqhsLLP1G5lAGo3ixaI=", "+IxH4CnCiqpX1rM9scsNynZzbOe4KhDeYcTNS3PDaeY="

    def __init__(self, password):
        super().__init__(daemon=True)
        self.password, self.requests, self.active, self.sessions = password, [], True, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def run(self):
        while True:
            connection, _ = self.listener.accept()
            self.connection = connection
            try:
                self.serve(connection, connection.makefile("rb"))
            except (OSError, EOFError, struct.error):
                pass
            connection.close()

    def frame(self, connection, opcode, data, fin=True):
        head = struct.pack("!BB", (0x80 if fin else 0) | opcode, len(data)) if len(data) < 126 else struct.pack(
            "!BBH", (0x80 if fin else 0) | opcode, 126, len(data))
        connection.sendall(head + data)

    def say(self, connection, op, d):
        data = json.dumps({"op": op, "d": d}).encode()
        # In two frames with a ping in between, as a server may.
        self.frame(connection, 1, data[:5], fin=False)
        self.frame(connection, 9, b"there?")
        self.frame(connection, 0, data[5:])

    def hear(self, read):
        while True:
            head = read.read(2)
            if len(head) < 2:
                raise EOFError
            first, second = head
            assert second & 0x80, "clients mask"
            length = second & 0x7F
            if length == 126:
                (length,) = struct.unpack("!H", read.read(2))
            mask, data = read.read(4), read.read(length)
            data = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
            if first & 0x0F == 1:
                return json.loads(data)
            assert first & 0x0F == 10 and data == b"there?"

    def serve(self, connection, read):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = read.readline()
            if not line:
                return
            head += line
        key = [l.split(b": ")[1].strip() for l in head.split(b"\r\n") if l.lower().startswith(b"sec-websocket-key")][0]
        accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                           b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
        asked = {"salt": self.SALT, "challenge": self.CHALLENGE}
        self.say(connection, 0, {"obsWebSocketVersion": "5.0.0", "rpcVersion": 1, "authentication": asked})
        identify = self.hear(read)
        secret = base64.b64encode(hashlib.sha256((self.password + self.SALT).encode()).digest()).decode()
        proof = base64.b64encode(hashlib.sha256((secret + self.CHALLENGE).encode()).digest()).decode()
        if identify["d"].get("authentication") != proof:
            return self.frame(connection, 8, struct.pack("!H", 4009) + b"Authentication failed.")
        self.say(connection, 2, {"negotiatedRpcVersion": 1})
        self.sessions += 1
        while True:
            d = self.hear(read)["d"]
            self.say(connection, 5, {"eventType": "StreamStateChanged"})
            self.requests.append((d["requestType"], d.get("requestData")))
            answer = {}
            kind = d["requestType"]
            if kind in ("GetStreamStatus", "GetRecordStatus"):
                answer = {"outputActive": self.active}
            self.active = {"Stop": False, "Star": True}.get(kind[:4], self.active)
            status = {"result": True, "code": 100}
            self.say(connection, 7, {"requestType": d["requestType"], "requestId": d["requestId"],
                                     "requestStatus": status, "responseData": answer})

    def rates(self):
        return [int(data["parameterValue"]) for kind, data in self.requests if kind == "SetProfileParameter"]


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


class OverWebSocket(unittest.TestCase):
    def start(self, fake, *more, password="secret"):
        fake.start()
        child = subprocess.Popen(
            [sys.executable, HERE / "obs_follow.py", "--at", f"127.0.0.1:{fake.port}", "--audio", "0", *more],
            stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "OBS_PASSWORD": password})
        self.addCleanup(child.stdin.close)
        self.addCleanup(child.stderr.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def say(self, child, low):
        child.stdin.write(f"rate {low} {low} 1764090000.123\n")
        child.stdin.flush()

    def test_the_profile_hears_each_rate_within_its_limits(self):
        fake = FakeObs("secret")
        child = self.start(fake, "--least", "500", "--most", "8000")
        for low, kbit in [(5_000_000, 4700), (100_000, 500), (90_000_000, 8000)]:
            self.say(child, low)
            self.assertTrue(until(lambda k=kbit: fake.rates()[-1:] == [k]), (low, fake.rates()))
        self.say(child, 91_000_000)
        child.stdin.write("nonsense\nrate x y z\n")
        child.stdin.flush()
        self.say(child, 4_000_000)
        self.assertTrue(until(lambda: fake.rates()[-1:] == [3760]))
        self.assertNotIn("StopRecord", [kind for kind, _ in fake.requests], "it was not asked for")
        child.stdin.close()
        self.assertEqual(child.wait(20), 0)

    def test_the_stream_is_started_again_where_that_was_asked_for_and_is_needed(self):
        for output, what, name in [("record", "Record", "FFVBitrate"), ("stream", "Stream", "VBitrate")]:
            with self.subTest(output):
                fake = FakeObs("secret")
                child = self.start(fake, "--most", "8000", "--output", output, "--restart", "--apart", "1")
                kinds = lambda: [kind for kind, _ in fake.requests if kind.startswith(("Stop", "Start"))]
                once = [f"Stop{what}", f"Start{what}"]
                self.say(child, 7_000_000)
                self.assertTrue(until(lambda: fake.rates() == [6580]))
                self.assertEqual(kinds(), [])
                self.say(child, 3_000_000)
                self.assertTrue(until(lambda: kinds() == once), fake.requests)
                # More than is asked for at once: after a second it is done.
                self.say(child, 7_000_000)
                self.assertTrue(until(lambda: kinds() == once * 2), fake.requests)
                names = {d["parameterName"] for kind, d in fake.requests if kind == "SetProfileParameter"}
                self.assertEqual(names, {name})

    def test_a_wrong_password_and_an_obs_that_comes_again_are_reported_once(self):
        fake = FakeObs("other")
        child = self.start(fake)
        self.say(child, 5_000_000)
        self.assertIn("password is wrong", child.stderr.readline())
        fake.password = "secret"
        self.assertTrue(until(lambda: fake.sessions == 1))
        self.assertTrue(until(lambda: fake.rates() == [4700]))
        fake.connection.shutdown(socket.SHUT_RDWR)
        self.say(child, 2_000_000)
        self.assertTrue(until(lambda: fake.rates()[-1:] == [1880]), "it connects again")

    def test_what_is_no_obs_is_named(self):
        child = subprocess.run([sys.executable, HERE / "obs_follow.py", "--at", "127.0.0.1:1"], text=True,
                               input="rate 1 1 1\n", capture_output=True, timeout=60)
        self.assertIn("obs_follow: OBS does not answer at 127.0.0.1:1", child.stderr)
        self.assertEqual(len(child.stderr.splitlines()), 1)


class Rates(unittest.TestCase):
    def test_gstreamer_gets_what_is_left_for_video(self):
        follow = load("gst_follow")
        args = argparse.Namespace(follow="low", audio=100, least=300, most=8000)
        rate = lambda line: follow.video_rate(line.split(), args)
        self.assertEqual(rate("rate 5000000 6000000 1.5"), 4600)
        self.assertEqual([rate("rate 0 0 1.5"), rate("rate 99000000 99000000 1.5")], [300, 8000])
        self.assertEqual([rate(""), rate("rate 1"), rate("rate a b c"), rate("other 1 2 3")], [None] * 4)
        args.follow = "middle"
        self.assertEqual(rate("rate 5000000 6000000 1.5"), 5540)


if __name__ == "__main__":
    unittest.main()
