"""Runs the scenarios of speed.sh in turn and tabulates what they cost."""

import csv
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
# Scenario: simulated seconds, and how many times as fast as ns-2 it is to be. In a run with losses ns-2 may stop for
# ever at 65,536 chunks (95 MB), which the one with background would reach soon after 180 s.
CASES = {"single": (300, 2.0), "background": (150, 4.0), "two": (60, 8.0)}


def cpu(command, **more):
    """User and system time of a command, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
        sys.exit(f"speed.sh: failed: {' '.join(map(str, command))}")
    spent = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
    return spent, done.stdout


def peak(command, **more):
    """The most memory that a command had, in MB: what the kernel noted of it when it was last looked at."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)
    most = 0
    while child.poll() is None:
        try:
            status = pathlib.Path(f"/proc/{child.pid}/status").read_text()
        except OSError:
            break
        most = max([most] + [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")])
        time.sleep(0.005)
    child.wait()
    return most / 1024


def command(program, name, seconds, folder):
    out = pathlib.Path(folder) / "out"
    # What is done is not run again in the same folder.
    shutil.rmtree(out, ignore_errors=True)
    run = [program, "lab", "run", HERE / f"{name}.toml", "--jobs", "1", "--out", out]
    return out, run + ["--set", f"duration={seconds}s"]


def ours(program, name, seconds, folder):
    out, run = command(program, name, seconds, folder)
    spent, _ = cpu(run)
    with open(out / "results.csv") as f:
        goodput = float(next(csv.DictReader(f))["main.goodput"])
    return spent, goodput


def main():
    program, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2])
    missed = False
    print("scenario    simulated  ns-2 Mbit/s  ours Mbit/s  ns-2 sim s/CPU s  ours sim s/CPU s  ratio min/median/max  bound"
          "  peak MB ns-2/ours")
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, TMPDIR=folder)
        for name, (seconds, bound) in CASES.items():
            tcl = ["ns", HERE / f"{name}.tcl", str(seconds)]
            theirs_goodput = float(cpu(tcl + ["goodput"], env=env)[1].split()[1])
            theirs, mine, goodput = [], [], 0.0
            for _ in range(rounds):
                theirs.append(cpu(tcl, env=env)[0])
                spent, goodput = ours(program, name, seconds, folder)
                mine.append(spent)
            memory = (peak(tcl, env=env), peak(command(program, name, seconds, folder)[1]))
            ratios = sorted(t / m for t, m in zip(theirs, mine))
            ratio = statistics.median(ratios)
            same = abs(goodput / theirs_goodput - 1) <= 0.1
            missed |= ratio < bound or not same
            note = ("" if ratio >= bound else "  MISSED") + ("" if same else "  GOODPUT DIFFERS")
            print(
                f"{name:<11} {seconds:>7} s  {theirs_goodput / 1e6:>11.3f}  {goodput / 1e6:>11.3f}"
                f"  {seconds / statistics.median(theirs):>16.1f}  {seconds / statistics.median(mine):>16.1f}"
                f"  {ratios[0]:>6.2f}/{ratio:.2f}/{ratios[-1]:.2f}  {bound:>12.1f}"
                f"  {memory[0]:>10.0f}/{memory[1]:.0f}{note}",
                flush=True,
            )
    sys.exit(1 if missed else 0)


main()
