#!/usr/bin/env python3
"""Which changes of a crate its own tests notice: a sample of cargo-mutants' mutants, drawn by a seed.

    scripts/mutants.py anabranch-policy
    scripts/mutants.py anabranch-engine --under association --under path --sample 40

cargo-mutants (cargo install --locked cargo-mutants) makes the list; this draws from it, so that two people with the same
sources judge the same mutants, and stops at the first test program that fails, with the unit tests first and what takes
longest last. It works in a clone of the last commit under target/mutants; a run that was cut goes on where it stopped.
"""
import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

# The programs of a crate in the order of what they cost; of one that is not named all at once.
ORDER = {
    "anabranch-engine": [
        ["--lib"],
        ["--test", "setup", "--test", "seams"],
        ["--test", "transfer"],
        ["--test", "attacks", "--test", "conformance"],
        ["--test", "endurance", "--test", "paths"],
        ["--test", "weather"],
    ],
}
MUTANT_SECONDS = 400


def output(command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def tests(where, package, programs, environment):
    """What the tests say of the sources as they are: none failed, some did, it does not build, or it does not end."""
    command = ["cargo", "test", "--quiet", "-p", package, *programs]
    child = subprocess.Popen(command, cwd=where, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, start_new_session=True)
    try:
        said, _ = child.communicate(timeout=MUTANT_SECONDS)
    except subprocess.TimeoutExpired:
        return "timeout"
    finally:
        # Also when this is interrupted: cargo and what it began go with it.
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    if child.returncode == 0:
        return "passed"
    return "unviable" if "could not compile" in said else "failed"


def programs_of(package):
    return ORDER.get(package, [["--lib"], ["--tests"]])


def judge(where, package, mutant, environment):
    # Its paths are those of the tree; the second one of its head is a description.
    subprocess.run(["patch", "-p0", "-s", mutant["file"]], input=mutant["diff"], text=True, cwd=where, check=True)
    try:
        for programs in programs_of(package):
            verdict = tests(where, package, programs, environment)
            if verdict != "passed":
                by = " ".join(p for p in programs if p != "--test")
                return {"failed": f"caught by {by}", "timeout": f"caught by {by}, which does not end"}.get(verdict, verdict)
        return "missed"
    finally:
        output(["git", "checkout", "--quiet", "."], cwd=where)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package")
    parser.add_argument("--under", action="append", default=[], help="a folder below the crate's src; may be repeated")
    parser.add_argument("--sample", type=int, default=40)
    parser.add_argument("--seed", type=int, default=18)
    a = parser.parse_args()

    for tool in ["cargo-mutants", "patch"]:
        if not shutil.which(tool):
            sys.exit(f"{tool} is missing; cargo install --locked cargo-mutants, and patch from your system")
    root = Path(output(["git", "rev-parse", "--show-toplevel"]).strip())
    commit = output(["git", "rev-parse", "HEAD"], cwd=root).strip()
    folder = root / "target/mutants"
    where = folder / "tree"
    if not where.exists():
        output(["git", "clone", "--quiet", str(root), str(where)])
    output(["git", "fetch", "--quiet", "origin"], cwd=where)
    output(["git", "checkout", "--quiet", "--force", commit], cwd=where)

    listed = json.loads(output(["cargo", "mutants", "--list", "--json", "--diff", "-p", a.package], cwd=where))
    source = f"crates/{a.package.removeprefix('anabranch-')}/src/"
    prefixes = tuple(f"{source}{u}/" for u in a.under) or (source,)
    mutants = [m for m in listed if m["file"].startswith(prefixes)]
    if not mutants:
        sys.exit(f"no mutants of {a.package} under {', '.join(prefixes)}")
    random.Random(a.seed).shuffle(mutants)

    environment = {**os.environ, "CARGO_TARGET_DIR": str(folder / "build"), "CARGO_INCREMENTAL": "1"}
    record = folder / f"{a.package}-{commit[:8]}.jsonl"
    known = {r["name"]: r["verdict"] for r in map(json.loads, record.read_text().splitlines())} if record.exists() else {}
    verdicts = {}
    # Tests that fail anyway would catch everything.
    for programs in programs_of(a.package) if not known else []:
        if tests(where, a.package, programs, environment) != "passed":
            sys.exit(f"without any mutant cargo test -p {a.package} {' '.join(programs)} does not pass")
    print(f"{min(a.sample, len(mutants))} of {len(mutants)} mutants", flush=True)
    for m in mutants[: a.sample]:
        began = time.monotonic()
        verdict = known.get(m["name"]) or judge(where, a.package, m, environment)
        if m["name"] not in known:
            with record.open("a") as out:
                out.write(json.dumps({"name": m["name"], "verdict": verdict}) + "\n")
        verdicts[m["name"]] = verdict
        print(f"{time.monotonic() - began:5.0f} s  {verdict}: {m['name']}", flush=True)

    viable = [v for v in verdicts.values() if v != "unviable"]
    caught = [v for v in viable if v != "missed"]
    print(f"{len(caught)} of {len(viable)} caught, {sum(v.startswith('caught by --lib') for v in caught)} by unit tests")


if __name__ == "__main__":
    main()
