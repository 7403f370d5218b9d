"""Bytes of the way back beside a live stream, by network; `way-back.sh` runs this."""

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import time

# Name, bound on the share, links. What a link says holds both ways, but for jitter, which is of the data's direction.
NETWORKS = [
    ("one calm path", 0.01, ["rate 20mbit delay 20ms"]),
    ("two calm paths, alike", 0.01, ["rate 20mbit delay 20ms"] * 2),
    ("two paths, 20 and 60 ms", 0.03, ["rate 6mbit delay 20ms", "rate 6mbit delay 60ms"]),
    ("three paths, 10, 40 and 90 ms", 0.03, [f"rate 4mbit delay {d}ms" for d in (10, 40, 90)]),
    ("one path, jitter of 10 ms in any order", 0.03, ["rate 20mbit delay 30ms up.jitter 10ms up.order free"]),
    ("two paths, jitter of 10 ms in any order", 0.03, ["rate 10mbit delay 30ms up.jitter 10ms up.order free"] * 2),
    ("two paths, 1 % of the packets skip the delay", 0.03, ["rate 10mbit delay 30ms up.reorder 1%"] * 2),
]


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def measure(program, clip, links, policies):
    """Bytes each way, packets each way, and what the receiver missed."""
    port, relays = free_port(), [free_port() for _ in links]
    with tempfile.TemporaryDirectory() as folder:
        running = []

        def start(name, *args):
            out = open(f"{folder}/{name}", "w+")
            running.append(subprocess.Popen([program, *args], stdout=out, stderr=subprocess.STDOUT))
            return running[-1], out

        paths = [f"listen 127.0.0.1:{r} to 127.0.0.1:{port} {link}" for r, link in zip(relays, links)]
        try:
            emulate, report = start("emulate", "emulate", "--stats", "json", *(a for p in paths for a in ("--path", p)))
            recv, said = start("recv", "recv", f"anabranch://127.0.0.1:{port}", f"{folder}/out.ts", "--once", "-J", *policies)
            time.sleep(0.7)
            via = [a for i, r in enumerate(relays) for a in ("--path", f"127.0.0.{i + 1},via=127.0.0.1:{r}")]
            send, _ = start("send", "send", clip, f"anabranch://127.0.0.1:{port}?latency=300", "-q", *via)
            if send.wait(90) != 0 or recv.wait(20) != 0:
                sys.exit("way-back: the stream failed")
            emulate.terminate()
            emulate.wait(10)
        finally:
            for child in running:
                if child.poll() is None:
                    child.kill()
                    child.wait()
        report.seek(0)
        totals = [row for row in map(json.loads, report) if row.get("event") == "total"]
        said.seek(0)
        stream = [row for row in map(json.loads, said) if row.get("event") == "totals"][-1]["stream"]
        ways = {way: [r for r in totals if r["direction"] == way] for way in ("up", "down")}
        count = {way: (sum(r["bytes"] for r in rows), sum(r["packets"] for r in rows)) for way, rows in ways.items()}
        return count, stream


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--clip", required=True)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="", help="networks whose names have this text")
    parser.add_argument("--set", action="append", default=[], help="a policy of the receiver, as acknowledge=...")
    args = parser.parse_args()
    networks = [n for n in NETWORKS if args.only in n[0]]
    if not networks:
        print(f"way-back: no network's name has `{args.only}`: {'; '.join(n[0] for n in NETWORKS)}", file=sys.stderr)
        sys.exit(2)
    good = True
    print(f"{'network':46} {'share back':>20} {'with UDP and IP':>16} {'packets back':>13} {'unusable':>9}")
    for name, bound, links in networks:
        shares, headed, packets, unusable = [], [], [], 0
        for _ in range(args.rounds):
            count, stream = measure(args.program, args.clip, links, [a for p in args.set for a in ("--set", p)])
            (up, up_packets), (down, down_packets) = count["up"], count["down"]
            shares.append(down / up)
            headed.append((down + 28 * down_packets) / (up + 28 * up_packets))
            packets.append(down_packets / up_packets)
            unusable += stream["frames_unusable"]
        missed = max(shares) > bound
        good = good and not missed
        print(
            f"{name:46} {min(shares):8.2%} to {max(shares):6.2%} {max(headed):16.2%} {max(packets):13.2%} {unusable:9}"
            + (f"  above {bound:.0%}" if missed else ""),
            flush=True,
        )
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
