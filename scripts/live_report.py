#!/usr/bin/env python3
"""What a live stream over several paths came to, from the statistics of both ends and from ffmpeg.

    live_report.py FOLDER [--left PATH ...] [--returned PATH ...]

FOLDER holds send.json and recv.json (`anabranch … -J --stats-file`), and what ffmpeg wrote with `-progress`
at both ends. Prints every switch of a path, the take-over times, the frames lost and the frames decoded.
Ends with 1 when a path named with --left was not left, when one named with --returned did not carry
media again, or when more frames are missing at the decoder than the receiver knows of.
"""

import argparse
import json
import pathlib
import sys

# Frames a decoder may lack at its start: it joins a running stream and waits for a key frame (25 frames apart).
JOIN = 30
# Frames that may refer to a lost one: until the next key frame.
GROUP = 25


def rows(path):
    with open(path) as file:
        return [json.loads(line) for line in file if line.strip()]


def progress(path):
    """The last value of each key; ffmpeg writes them again and again."""
    with open(path) as file:
        return dict(line.strip().split("=", 1) for line in file if "=" in line)


def one(events, name, where):
    found = [e for e in events if e["event"] == name]
    if len(found) != 1:
        sys.exit(f"{where}: expected one line `{name}`, found {len(found)}")
    return found[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--left", action="append", default=[], help="a path that must have been left")
    parser.add_argument("--returned", action="append", default=[], help="a path that must carry media at the end")
    args = parser.parse_args()
    wrong = []

    send, recv = rows(args.folder / "send.json"), rows(args.folder / "recv.json")
    sent, received = one(send, "totals", "send.json"), one(recv, "totals", "recv.json")
    names = {p["path"]: f"{p['path']} ({p['local']})" for p in sent["paths"]}
    numbers = {p["local"]: p["path"] for p in sent["paths"]}
    for wanted in args.left + args.returned:
        if wanted not in numbers:
            sys.exit(f"there is no path {wanted}; there are {', '.join(numbers)}")

    for e in send:
        name = names.get(e.get("path"), e.get("path"))
        if e["event"] == "path":
            print(f"{e['t']:7.2f} s  path {name}: {e['from']} -> {e['to']} ({e['reason']})")
        elif e["event"] == "taken_over":
            print(f"{e['t']:7.2f} s  path {name}: taken over {e['after_ms']:.0f} ms after its last delivery")

    for wanted in args.left:
        # One that held nothing at that moment is left without anything to take over.
        if not any(e["event"] == "path" and e["from"] == "active" and e["path"] == numbers[wanted] for e in send):
            wrong.append(f"path {wanted} was cut but never left")
    # The last whole seconds before the end.
    intervals = [e for e in send if e["event"] == "stats"]
    ends = sorted({e["t"] for e in intervals})[-3:]
    for wanted in args.returned:
        late = sum(e["data_sent"] for e in intervals if e["path"] == numbers[wanted] and e["t"] in ends)
        print(f"path {wanted}: {late} bytes of media in the last {len(ends)} intervals")
        if late == 0:
            wrong.append(f"path {wanted} came back but carries nothing")

    for p in sent["paths"]:
        print(
            f"path {names[p['path']]}: sent {p['packets_sent']} packets, {p['data_sent']} bytes of media "
            f"({p['data_retransmitted']} again)"
        )
    encoder, decoder = (progress(args.folder / f"{end}.progress") for end in ("encoder", "decoder"))
    encoded, decoded = int(encoder["frame"]), int(decoder["frame"])
    stream = received["stream"]
    unusable = stream["frames_unusable"]
    print(
        f"frames: {encoded} encoded, {decoded} decoded at the other end; the receiver counted "
        f"{unusable} of {stream['frames']} unusable"
    )
    if encoded - decoded > JOIN + unusable * GROUP:
        wrong.append(f"{encoded - decoded} frames are missing at the decoder, {unusable} known to be lost")
    if decoded == 0:
        wrong.append("nothing was decoded")
    for what in wrong:
        print(f"WRONG: {what}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
