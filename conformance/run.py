#!/usr/bin/env python3
"""Runs packetdrill's SCTP scripts over the preload library in virtual time.

  conformance/run.py PATH [--suite NAME]... [--only REGEX] [--jobs N] [--logs DIR]
  conformance/run.py PATH --control

PATH holds the checked-out suites, one folder each, and a packetdrill that is linked dynamically, anywhere below.
docs/SOCKETS.md says where they come from and how to build it. Nothing of them is kept here; neither root nor a network
is needed. The verdicts go to conformance/results.csv with our commit; the table of each suite is printed.

Verdicts: pass, fail, timeout, crash; unparseable: packetdrill cannot read the script; expected: it fails, and the
suite's authors marked it so (NAME.exfail).

--control shows that a verdict can be another one: without the library no script passes, and none with another flag in
the last packet that it expects.
"""

import argparse
import csv
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

# Constants of Linux's <linux/sctp.h> and of RFC 6458 and 9653 that packetdrill's table for Linux does not have.
DEFINES = {
    "SCTP_RECVRCVINFO": 32, "SCTP_RECVNXTINFO": 33, "SCTP_DEFAULT_SNDINFO": 34, "SCTP_REUSE_PORT": 36,
    "SCTP_GET_ASSOC_ID_LIST": 29, "SCTP_AUTO_ASCONF": 30, "SCTP_AUTH_DEACTIVATE_KEY": 35,
    "SCTP_DEFAULT_PRINFO": 114, "SCTP_ENABLE_STREAM_RESET": 118, "SCTP_RESET_STREAMS": 119, "SCTP_RESET_ASSOC": 120,
    "SCTP_ADD_STREAMS": 121, "SCTP_INTERLEAVING_SUPPORTED": 125, "SCTP_EVENT": 127,
    "SCTP_REMOTE_UDP_ENCAPS_PORT": 132, "SCTP_AUTHINFO": 6, "SCTP_AUTH_NO_AUTH": 2,
    "SCTP_INIT": 0, "SCTP_SNDRCV": 1, "SCTP_SNDINFO": 2, "SCTP_RCVINFO": 3, "SCTP_NXTINFO": 4, "SCTP_PRINFO": 5,
    "SCTP_DSTADDRV4": 7, "SCTP_DSTADDRV6": 8, "SCTP_AUTHENTICATION_EVENT": 0x8008,
    "SCTP_PR_SCTP_TTL": 0x10, "SCTP_PR_SCTP_RTX": 0x20, "SCTP_SENDALL": 0x40,
    "SCTP_SENDV_NOINFO": 0, "SCTP_SENDV_SNDINFO": 1, "SCTP_SENDV_PRINFO": 2, "SCTP_SENDV_AUTHINFO": 3,
    "SCTP_SENDV_SPA": 4, "SCTP_SEND_SNDINFO_VALID": 1, "SCTP_SEND_PRINFO_VALID": 2,
    "SCTP_RECVV_NOINFO": 0, "SCTP_RECVV_RCVINFO": 1, "SCTP_RECVV_NXTINFO": 2, "SCTP_RECVV_RN": 3,
    "SCTP_STREAM_RESET_EVENT": 0x800A, "SCTP_ASSOC_RESET_EVENT": 0x800B, "SCTP_STREAM_CHANGE_EVENT": 0x800C,
    "SCTP_SEND_FAILED_EVENT": 0x800D, "SCTP_STREAM_RESET_INCOMING": 1, "SCTP_STREAM_RESET_OUTGOING": 2,
    "SCTP_ENABLE_RESET_STREAM_REQ": 1, "SCTP_ENABLE_RESET_ASSOC_REQ": 2, "SCTP_ENABLE_CHANGE_ASSOC_REQ": 4,
    "SPP_DSCP": 512, "SCTP_EXPLICIT_EOR": 0x1001B,
    "SCTP_ACCEPT_ZERO_CHECKSUM": 0x10033, "SCTP_EDMID_NONE": 0, "SCTP_EDMID_LOWER_LAYER_DTLS": 1,
}

UNREADABLE = re.compile(r"syntax error|parse error|semantic error", re.I)


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("path", type=Path)
    p.add_argument("--suite", action="append", help="only these folders of PATH")
    p.add_argument("--only", help="only scripts whose path matches; results.csv is left alone")
    p.add_argument("--packetdrill", type=Path, help="the program, if it is not below PATH")
    p.add_argument("--library", type=Path, help="the preload library; built if not named")
    p.add_argument("--platform", default="FreeBSD", help="which #ifdef branches of the scripts are taken (%(default)s)")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    p.add_argument("--set", default="", help="settings of docs/SOCKETS.md that hold where a script says nothing, by commas")
    p.add_argument("--timeout", type=float, default=60, help="real seconds for one script (%(default)s)")
    p.add_argument("--logs", type=Path, help="keep what packetdrill printed here")
    p.add_argument("--control", action="store_true", help="count what passes although it must not; should be 0 twice")
    p.add_argument("--verbose", action="store_true", help="packetdrill shows every packet (for --logs)")
    return p.parse_args()


def build():
    subprocess.run(["cargo", "build", "--quiet", "-p", "anabranch-sockets"], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "debug" / "libanabranch_sockets.so"


def find_packetdrill(path):
    found = [p for p in path.rglob("packetdrill") if p.is_file() and os.access(p, os.X_OK)]
    if not found:
        sys.exit(f"no packetdrill below {path}; see docs/SOCKETS.md")
    return found[0].resolve()


def branch(text, platform):
    """Blanks the #ifdef blocks of other platforms; packetdrill knows only the one it was built on."""
    keep, out = True, []
    for line in text.split("\n"):
        if m := re.match(r"\s*#ifdef\s+(\w+)", line):
            keep, line = m.group(1) == platform, ""
        elif re.match(r"\s*#endif", line):
            keep, line = True, ""
        out.append(line if keep else "")
    return "\n".join(out)


def altered(text):
    """The script with another flag in the last packet that it expects; none when it expects no flags."""
    expected = list(re.finditer(r"^[^/\n]*>\s*sctp:[^\n]*?flgs=(\w+)", text, re.M))
    if not expected:
        return None
    start, end = expected[-1].span(1)
    return text[:start] + ("0x20" if text[start:end] != "0x20" else "0x40") + text[end:]


class Runner:
    def __init__(self, a, alters=False, preloads=True):
        self.a, self.alters, self.preloads = a, alters, preloads
        self.library = (a.library or build()).resolve()
        self.packetdrill = a.packetdrill.resolve() if a.packetdrill else find_packetdrill(a.path)
        self.flags = [f"--define={k}={v}" for k, v in DEFINES.items()] + (["-v"] if a.verbose else [])

    def run(self, script):
        with tempfile.TemporaryDirectory(prefix="conformance-") as tmp:
            copy = Path(tmp) / script.name
            text = script.read_text(encoding="utf-8", errors="surrogateescape")
            text = branch(text, self.a.platform)
            if self.alters and (text := altered(text)) is None:
                return "unalterable", ""
            copy.write_text(text, encoding="utf-8", errors="surrogateescape")
            env = ["env", "ANABRANCH_WORLD=virtual", f"ANABRANCH_SET={self.a.set}"] + [f"LD_PRELOAD={self.library}"] * self.preloads
            command = env + [str(self.packetdrill), *self.flags, str(copy)]
            try:
                r = subprocess.run(command, capture_output=True, timeout=self.a.timeout, cwd=tmp)
                code, out = r.returncode, (r.stdout + r.stderr).decode("utf-8", "replace")
            except subprocess.TimeoutExpired as e:
                code, out = None, ((e.stdout or b"") + (e.stderr or b"")).decode("utf-8", "replace")
        verdict = self.judge(script, code, out)
        if self.a.logs:
            name = str(script.relative_to(self.a.path)).replace("/", "__")
            (self.a.logs / f"{name}.{verdict}").write_text(out)
        lines = [line.replace(tmp + "/", "") for line in out.splitlines() if line.strip()]
        return verdict, next((line for line in lines if ".pkt:" in line), lines[-1] if lines else "")

    @staticmethod
    def judge(script, code, out):
        if code == 0:
            return "pass"
        if code is None:
            return "timeout"
        if code < 0:
            return "crash"
        if UNREADABLE.search(out):
            return "unparseable"
        return "expected" if script.with_suffix(".exfail").exists() else "fail"


def suites(a):
    for folder in sorted(p for p in a.path.iterdir() if p.is_dir()):
        if a.suite and folder.name not in a.suite:
            continue
        # packetdrill's own scripts are written for the socket calls of one kernel.
        if not a.suite and (folder / "gtests").is_dir():
            continue
        scripts = sorted(folder.rglob("*.pkt"))
        if a.only:
            scripts = [s for s in scripts if re.search(a.only, str(s.relative_to(folder)))]
        if scripts:
            yield folder, scripts


def table(name, counts):
    print(f"\n{name}")
    for group in sorted(counts):
        c = counts[group]
        rest = "  ".join(f"{v} {c[v]}" for v in sorted(c) if v != "pass")
        print(f"  {group:<44} {c['pass']:>4} of {sum(c.values()):>4}  {rest}")
    total = sum(counts.values(), Counter())
    judged = sum(n for v, n in total.items() if v not in ("unparseable", "expected"))
    print(f"  {'together':<44} {total['pass']:>4} of {judged:>4} that can be read and are not marked")
    return total["pass"] == judged


def control(a):
    """Runs everything so that nothing may pass; true when nothing did."""
    good = True
    for name, runner in (("without the library", Runner(a, preloads=False)), ("altered", Runner(a, alters=True))):
        total = Counter()
        for folder, scripts in suites(a):
            with ThreadPoolExecutor(max(1, a.jobs)) as pool:
                for script, (verdict, _) in zip(scripts, pool.map(runner.run, scripts)):
                    total[verdict] += 1
                    if verdict == "pass":
                        print(f"passes {name}: {script.relative_to(folder)}", flush=True)
        good &= total["pass"] == 0 and total.total() > 0
        print(f"{name}: {total['pass']} of {total.total()} pass  ", dict(total), flush=True)
    return good


def main():
    a = arguments()
    if a.control:
        sys.exit(0 if control(a) else 1)
    runner = Runner(a)
    if a.logs:
        a.logs.mkdir(parents=True, exist_ok=True)
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    rows, good = [], True
    for folder, scripts in suites(a):
        counts = {}
        with ThreadPoolExecutor(max(1, a.jobs)) as pool:
            for script, (verdict, why) in zip(scripts, pool.map(runner.run, scripts)):
                relative = script.relative_to(folder)
                group = relative.parts[0] if len(relative.parts) > 1 else "."
                counts.setdefault(group, Counter())[verdict] += 1
                rows.append((folder.name, relative, verdict, commit))
                if verdict not in ("pass", "expected"):
                    print(f"{verdict:<12} {relative}  {why}", flush=True)
        good &= table(folder.name, counts)
    if not rows:
        sys.exit(f"no scripts below {a.path}")
    if not a.only:
        with open(HERE / "results.csv", "w", newline="") as f:
            w = csv.writer(f, lineterminator="\n")
            w.writerow(("suite", "script", "verdict", "commit"))
            w.writerows(rows)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
