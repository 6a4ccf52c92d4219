#!/usr/bin/env python3
"""A stand-in for merganser in the campaign's own tests. The test sets BREAK, which names its fault.

It knows `sort [options] INPUT... -o OUTPUT`, with --consume, and `generate`.
"""

import os
import sys

BREAK = "nothing"


def main():
    words = sys.argv[1:]
    if words[0] == "generate":
        sys.stdout.write("generated\n")
        return 0
    if "1" in words[1:3]:
        sys.stderr.write("merganser: --memory 1 is too small for sorting: at least 3000000 bytes are needed\n")
        return 2
    inputs, output, consume, at = [], None, False, 1
    while at < len(words):
        word = words[at]
        if word == "--consume":
            consume = True
        elif word.startswith("-"):
            at += 1
            output = words[at] if word in ("-o", "--view") else output
        else:
            inputs.append(word)
        at += 1
    if not all(os.path.exists(name) for name in inputs):
        sys.stderr.write("merganser: in: No such file or directory\n")
        return 2
    lines = [line for name in inputs for line in open(name, "rb")]
    if BREAK == "panic":
        sys.stderr.write("thread 'main' panicked at src/main.rs:1:1:\n")
        return 101
    if BREAK == "silent":
        return 2
    if BREAK == "hang":
        import time

        time.sleep(60)
    if BREAK == "unread":
        for name in inputs:
            os.remove(name)
        return 0
    if BREAK == "torn":
        lines = lines[: len(lines) // 2]
    if BREAK == "refuse-late":
        for name in inputs:
            os.truncate(name, 0)
        sys.stderr.write("merganser: out: is a directory\n")
        return 2
    with open("stand-in.new", "wb") as file:
        file.write(b"".join(sorted(lines)))
    os.rename("stand-in.new", output)
    if BREAK == "debris":
        open("debris", "w").close()
    for name in inputs if consume else []:
        if name != output:
            os.remove(name)
    return 0


sys.exit(main())
