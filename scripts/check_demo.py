#!/usr/bin/env python3
"""Checks what the demo left behind.

    check_demo.py DIR [DIR ...]

Each DIR is the --out of one demo. In each: the control passed, all files are there, `best` has fewer unusable frames
than each network alone, and every received file has at least as many pictures as frames were sent, less those that
are unusable or refer to one that is (needs ffprobe, else that is skipped by name). Over all of them: `best` has in sum
at most half of the unusable frames of the better network alone, and no more than round_robin.
"""

import json
import pathlib
import shutil
import subprocess
import sys

RUNS = ["wlan", "3g", "round_robin", "best"]
wrong = []


def check(holds, what):
    if not holds:
        wrong.append(what)


def pictures(path):
    """Video frames that a decoder gets out of a file."""
    command = ["ffprobe", "-v", "error", "-select_streams", "v:0", "-count_frames"]
    command += ["-show_entries", "stream=nb_read_frames", "-of", "default=nokey=1:noprint_wrappers=1", str(path)]
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    return int(out.split()[0])


def read(folder, probe):
    summary = json.loads((folder / "summary.json").read_text())
    if not summary["control"]["ok"]:
        sys.exit(f"{folder}: control failed: {summary['control'].get('reason')}; nothing to check")
    check((folder / "report.html").stat().st_size > 10_000, f"{folder}: report.html is all but empty")
    runs = {run["name"]: run for run in summary["runs"]}
    missing = [name for name in RUNS if name not in runs]
    if missing:
        sys.exit(f"{folder}: no run {', '.join(missing)}")
    unusable = {name: runs[name]["frames_unusable"] for name in RUNS}
    line = ", ".join(f"{name} {n}" for name, n in unusable.items())
    print(f"{folder}: unusable of {runs['best']['frames']} frames: {line}")
    for alone in ("wlan", "3g"):
        check(unusable["best"] < unusable[alone], f"{folder}: best is not better than {alone}")
    for run in runs.values() if probe else []:
        found, floor = pictures(folder / run["file"]), run["frames"] - run["frames_undecodable"]
        print(f"  {run['file']}: {found} pictures decoded, at least {floor} expected")
        check(found >= floor, f"{folder}/{run['file']}: {found} pictures decoded, fewer than {floor}")
    return unusable


def main(folders):
    probe = shutil.which("ffprobe") is not None
    if not probe:
        print("SKIPPED demo-pictures: ffprobe is not installed")
    demos = [read(pathlib.Path(folder), probe) for folder in folders]
    total = {name: sum(d[name] for d in demos) for name in RUNS}
    single = min(total["wlan"], total["3g"])
    print(f"in sum: best {total['best']}, better network alone {single}, round_robin {total['round_robin']}")
    check(total["best"] * 2 <= single, f"in sum best has {total['best']} unusable frames, more than half of {single}")
    check(total["best"] <= total["round_robin"], "in sum best has more unusable frames than round_robin")
    for what in wrong:
        print(f"WRONG: {what}")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
