#!/usr/bin/env python3
"""Does a quick run of a shipped experiment deliver, packet by packet, what it did?

    check_fingerprints.py RESULTS experiments/NAME/fingerprints.csv

RESULTS is the folder of `anabranch lab run NAME --quick`. Exit code 1 and a line for each run that differs, is missing or is
not in the list. With UPDATE=1 in the environment the list becomes what was delivered, by the first seed.
"""
import json
import os
import sys


def mistake(text):
    print(text, file=sys.stderr)
    sys.exit(2)


def main():
    if len(sys.argv) != 3:
        mistake(__doc__)
    results, committed = sys.argv[1:]
    update = "UPDATE" in os.environ
    came = {}
    try:
        with open(os.path.join(results, "journal.jsonl"), encoding="utf-8") as f:
            for line in f:
                run = json.loads(line)
                row = run["row"]
                came[f"{run['scenario']},{' '.join(row['point'])},{row['seed']}"] = f"{row['fingerprint']:016x}"
        if update:
            # Runs end in any order.
            first = sorted(f"{name},{seen}\n" for name, seen in came.items() if name.endswith(",1"))
            with open(committed, "w", encoding="utf-8") as f:
                f.writelines(["scenario,point,seed,fingerprint\n"] + first)
        with open(committed, encoding="utf-8") as f:
            wanted = [line.rstrip("\n").rpartition(",") for line in f][1:]
    except OSError as why:
        mistake(f"check_fingerprints.py: {why.filename}: {why.strerror}")
    wrong = [w for w in wanted if came.get(w[0]) != w[2]]
    for w in wrong:
        print(f"WRONG {w[0]}: {came.get(w[0], 'no such run')}, not {w[2]}")
    new = [name for name in came if name.endswith(",1") and name not in {w[0] for w in wanted}]
    for name in new:
        print(f"WRONG {name}: not in the list")
    print(f"{len(wanted) - len(wrong)} of {len(wanted)} runs as committed: {committed}")
    sys.exit(1 if wrong or new or not wanted else 0)


main()
