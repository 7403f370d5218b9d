#!/usr/bin/env python3
"""The ways through an association, as lists of calls: which rooms each enters and leaves, and how often it comes back.

    scripts/rooms.py                  the ways of ARCHITECTURE.md, a line for each
    scripts/rooms.py --calls          with their calls in order
    scripts/rooms.py on_t3 send       other ways, by the names of their first functions
    scripts/rooms.py --most 15 40     fails when a SACK in or a packet out returns to files more often than that

A way begins with one function and follows every call of a method of `Association` in textual order, whether it is made
for each packet or for one in a thousand. A function is gone through once; calls of it after that are visits. What an
owner does behind its own interface (`self.sender.…`, `self.paths.…`, policies) is not followed: such a call hands over
or fetches a value.

A stay is a run of visits in one room, a return a stay in a room that was left before. Rooms are counted twice: as files,
and as owners, which are the folders of ARCHITECTURE.md's table.
"""

import argparse
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCES = os.path.join(ROOT, "crates/engine/src/association")
SACK, OUT = "on_sack", "poll"
WAYS = [
    ("DATA in", "on_data"),
    ("a SACK in", SACK),
    ("the next packet out", OUT),
    ("T3", "on_t3"),
    ("a message", "send"),
]


def body_from(text, at):
    """What is between the next pair of braces, and where it ends."""
    begin = at = text.index("{", at)
    depth = 0
    while True:
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
        if depth == 0:
            return text[begin:at], at


def methods():
    """Methods of Association by name, and the function that builds a packet: file, line and calls."""
    found = {}
    for folder, _, names in sorted(os.walk(SOURCES)):
        for file in sorted(n for n in names if n.endswith(".rs") and not n.endswith("tests.rs")):
            path = os.path.join(folder, file)
            with open(path) as f:
                text = f.read()
            # Comments give way to as many blanks, so that lines stay countable; unit tests come last.
            text = re.sub(r"//[^\n]*", lambda m: " " * len(m[0]), text).split("#[cfg(test)]\nmod tests")[0]
            blocks = [(m.end() - 1, r"\b(?:self)\.(\w+)\(") for m in re.finditer(r"^impl Association \{", text, re.M)]
            for begin, call in blocks:
                _, end = body_from(text, begin)
                add(found, text, begin, end, call, os.path.relpath(path, SOURCES))
            if file == "transmit.rs" and folder == SOURCES:
                begin = text.index("fn poll(")
                _, end = body_from(text, begin)
                add(found, text, begin, end, r"\b(?:a)\.(\w+)\(", file)
    return found


def add(found, text, begin, end, call, file):
    """Notes the functions between two places of a file."""
    for m in re.finditer(r"\bfn (\w+)", text[begin:end]):
        body, _ = body_from(text, begin + m.end())
        line = text.count("\n", 0, begin + m.start()) + 1
        found[m[1]] = (file, line, re.findall(call, body))


def walk(all_methods, first):
    """Visits in order: name, depth, and whether it was gone through before."""
    visits, seen = [], set()

    def visit(name, depth):
        if name in all_methods:
            visits.append((name, depth, name in seen))
            if name not in seen:
                seen.add(name)
                for callee in all_methods[name][2]:
                    visit(callee, depth + 1)

    visit(first, 0)
    return visits


def owner(file):
    """The owner's room that a file belongs to."""
    folder = os.path.dirname(file).split("/")[0]
    return folder or "association"


def count(rooms):
    """Rooms, stays, and returns to a room that was left."""
    stays = [room for i, room in enumerate(rooms) if i == 0 or rooms[i - 1] != room]
    return len(set(stays)), len(stays), len(stays) - len(set(stays))


def show(all_methods, visits):
    """The calls, room by room; what was gone through before is in brackets."""
    before = None
    for name, depth, again in visits:
        file, line, _ = all_methods[name]
        if before and owner(before) != owner(file):
            print(f"  -- leaves {owner(before)}, enters {owner(file)}")
        text = "  " * depth + (f"({name})" if again else name)
        print(f"     {text:56} {file}:{line}")
        before = file


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("first", nargs="*", help="names of first functions; the ways of ARCHITECTURE.md without any")
    p.add_argument("--calls", action="store_true", help="show the calls")
    p.add_argument("--most", nargs=2, type=int, help="most returns to files of a SACK in and a packet out")
    arguments = p.parse_args()
    sys.setrecursionlimit(10_000)
    all_methods = methods()
    most = dict(zip((SACK, OUT), arguments.most or ()))
    failed = False
    print(f"{'way':20} functions   files stays returns   owners stays returns")
    for title, first in [(f, f) for f in arguments.first] or WAYS:
        if first not in all_methods:
            sys.exit(f"rooms.py: no method of Association is called {first}")
        visits = walk(all_methods, first)
        files = [all_methods[name][0] for name, _, _ in visits]
        by_file, by_owner = count(files), count([owner(f) for f in files])
        functions = len({name for name, _, _ in visits})
        figures = "{:>7} {:>5} {:>7}".format(*by_file) + "  {:>7} {:>5} {:>7}".format(*by_owner)
        print(f"{title:20} {functions:>9} {figures}")
        if arguments.calls:
            show(all_methods, visits)
        failed |= by_file[2] > most.get(first, by_file[2])
    sys.exit("rooms.py: a way returns more often than it may" if failed else 0)


main()
