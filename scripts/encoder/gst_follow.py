#!/usr/bin/env python3
"""An x264 encoder whose bit rate follows what the paths carry, without a restart and without a gap.

    anabranch send udp://127.0.0.1:5001 anabranch://server:9899?latency=500 --path wlan0 --path wwan0 \\
        --on-rate 'scripts/encoder/gst_follow.py --to 127.0.0.1:5001 --source "v4l2src ! videoconvert"'

Reads lines `rate LOW MIDDLE TIME` (bit/s, docs/USE.md) on standard input, and ends when that ends. The source is any piece
of a GStreamer pipeline that ends in raw video; x264enc takes a new `bitrate` between two pictures, together with its
buffer model (--buffer ms of it). Needs Debian's python3-gst-1.0, gstreamer1.0-plugins-bad (the multiplexer) and
gstreamer1.0-plugins-ugly (x264).
"""

import argparse
import sys
import threading

# Of a transport stream a part is headers: of packets, of frames, and tables.
MUX = 0.94


def video_rate(fields, args):
    """The encoder's rate in kbit/s for a line, or none where the line is not one of ours."""
    if len(fields) != 4 or fields[0] != "rate":
        return None
    try:
        rate = int(fields[1] if args.follow == "low" else fields[2])
    except ValueError:
        return None
    kbit = rate / 1000 * MUX - args.audio
    return int(min(max(kbit, args.least), args.most))


def main():
    parser = argparse.ArgumentParser(description="x264 that follows what the paths carry.")
    parser.add_argument("--to", default="127.0.0.1:5001", help="address and UDP port of the transport stream")
    parser.add_argument("--source", default="videotestsrc is-live=true ! video/x-raw,width=1280,height=720,framerate=25/1")
    parser.add_argument("--follow", choices=["low", "middle"], default="low")
    parser.add_argument("--most", type=float, default=8000, help="most that the encoder makes, kbit/s")
    parser.add_argument("--least", type=float, default=300, help="least that it makes, kbit/s")
    parser.add_argument("--audio", type=float, default=0, help="left for audio and other streams, kbit/s")
    parser.add_argument("--fixed", action="store_true", help="stays at --most: for comparison")
    parser.add_argument("--buffer", type=int, default=500, help="buffer model of the encoder, ms")
    parser.add_argument("--preset", default="veryfast")
    parser.add_argument("--key", type=int, default=50, help="pictures from one key frame to the next")
    args = parser.parse_args()

    try:
        import gi

        gi.require_version("Gst", "1.0")
        from gi.repository import GLib, Gst
    except (ImportError, ValueError):
        sys.exit("gst_follow: install python3-gst-1.0, and run this with the system's python3")
    Gst.init(None)
    for name, package in [("x264enc", "ugly"), ("mpegtsmux", "bad"), ("udpsink", "good")]:
        if Gst.ElementFactory.find(name) is None:
            sys.exit(f"gst_follow: there is no {name}: install gstreamer1.0-plugins-{package}")
    host, _, port = args.to.rpartition(":")
    encoder = (
        f"x264enc name=encoder tune=zerolatency speed-preset={args.preset} key-int-max={args.key} "
        f"bitrate={int(args.most)} vbv-buf-capacity={args.buffer}"
    )
    line = f"{args.source} ! videoconvert ! {encoder} ! mpegtsmux alignment=7 ! udpsink host={host} port={port} sync=false"
    try:
        pipeline = Gst.parse_launch(line)
    except GLib.Error as error:
        sys.exit(f"gst_follow: {error.message}")
    element, loop, failed = pipeline.get_by_name("encoder"), GLib.MainLoop(), []

    def listen():
        for text in sys.stdin:
            kbit = video_rate(text.split(), args)
            if kbit is not None and not args.fixed and kbit != element.get_property("bitrate"):
                element.set_property("bitrate", kbit)
                print(f"gst_follow: {kbit} kbit/s", file=sys.stderr, flush=True)
        loop.quit()

    def on_message(_, message):
        if message.type == Gst.MessageType.ERROR:
            failed.append(message.parse_error()[0].message)
            loop.quit()
        elif message.type == Gst.MessageType.EOS:
            loop.quit()

    bus = pipeline.get_bus()
    bus.add_signal_watch()
    bus.connect("message", on_message)
    pipeline.set_state(Gst.State.PLAYING)
    threading.Thread(target=listen, daemon=True).start()
    loop.run()
    pipeline.set_state(Gst.State.NULL)
    if failed:
        sys.exit(f"gst_follow: {failed[0]}")


if __name__ == "__main__":
    main()
