#!/usr/bin/env python3
"""Judges a run of wireless.sh: what `anabranch send` reported of frames beside what the kernel counted.

    wireless_judge.py LOG

LOG has the kernel's counts (`#begin`, `#away`, `#back` and `#end`, each with lines of `iw station dump`), behind `#log` what
the programs wrote, and behind `#stats` the sender's statistics. Exit code 1 when they disagree.
"""
import json
import re
import sys


def sections(lines):
    """The lines that follow each one with #, by its first word."""
    found, name = {}, ""
    for line in lines:
        if line.startswith("#"):
            name = line[1:].split()[0]
        found.setdefault(name, []).append(line)
    return found


def counts(lines):
    """Transmissions, and those that were repeated or given up."""
    by = {k: int(v) for line in lines for k, v in re.findall(r"tx (packets|retries|failed):\s*(\d+)", line)}
    if len(by) < 3:
        sys.exit("the kernel counted nothing: " + " ".join(lines))
    return by["packets"] + by["retries"], by["retries"] + by["failed"]


def main():
    text = open(sys.argv[1], errors="replace").read()
    parts = sections(text.splitlines())
    if not {"begin", "away", "back", "end", "log", "stats"} <= parts.keys():
        sys.exit("the run is not whole:\n" + text[-2000:])
    at = {name: counts(parts[name]) for name in ("begin", "away", "back", "end")}
    rows = [json.loads(line) for line in parts["stats"] if line.startswith("{")]
    rows = [r for r in rows if r["event"] == "stats"]
    log = "\n".join(parts["log"])
    wrong = []

    def expect(condition, what):
        if not condition:
            wrong.append(what)

    radio = [(r["t"], r.get("frames", 0), r.get("frame_errors", 0)) for r in rows if r["local"] == "wlan0"]
    wire = [r for r in rows if r["local"] == "wire" and (r.get("frames") or r.get("frame_errors"))]
    counted = [at["end"][i] - at["begin"][i] for i in (0, 1)]
    reported = [sum(r[i] for r in radio) for i in (1, 2)]
    print(f"{'':24}{'the kernel':>12}{'reported':>12}")
    print(f"{'frames':24}{counted[0]:12}{reported[0]:12}")
    print(f"{'repeated or given up':24}{counted[1]:12}{reported[1]:12}")
    for name, other in (("begin", "away"), ("away", "back"), ("back", "end")):
        frames, errors = (at[other][i] - at[name][i] for i in (0, 1))
        print(f"  {name + ' to ' + other:22}{errors:12} of {frames}")
        expect((errors > 10) == (name == "away"), f"the radio was to lose frames from away to back alone: {errors} from {name}")
    # Looks are 100 ms apart, and the first one is where counting begins.
    expect(counted[0] > 1000, "hardly anything was sent")
    expect(0.9 * counted[0] <= reported[0] <= counted[0], "frames disagree")
    expect(0.9 * counted[1] <= reported[1] <= counted[1], "errors disagree")
    expect(not wire, "a wire has frames")
    expect(re.search(r"no reports on frames: .*wire", log), "there is no warning that the wire has no counts")
    modulation = re.search(r"reports on frames.*modulation=(\S+)", log)
    print("modulation", modulation.group(1) if modulation else "is not reported")
    expect(modulation and modulation.group(1) != "Unknown", "no modulation is reported")
    for line in wrong:
        print("WRONG:", line)
    if wrong:
        print(log[-1500:])
    return 1 if wrong else 0


sys.exit(main())
