"""The build that a result was measured with: the commit of the sources, and a digest of each program and jar."""

import hashlib

from .tools import sources

DIGITS = 16
"""Hexadecimal digits of a digest."""


def digest(path):
    """The first digits of a file's SHA-256; None if it can't be read."""
    found = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while piece := file.read(1 << 20):
                found.update(piece)
    except OSError:
        return None
    return found.hexdigest()[:DIGITS]


def describe(**files):
    """The build, as a dict for results: `commit`, and a digest under each name."""
    return {"commit": sources(), **{name: digest(path) for name, path in files.items()}}


def told(kept, here, names):
    """Words about a kept result that was measured with another build than the one here, else an empty text.

    `kept` is the build in the result, and `names` are the files that matter to it. A file that is not there now can't
    be compared. Two commits may build the same program, so they decide nothing."""
    compared = [name for name in names if here.get(name)]
    if not compared:
        return ""
    if not kept:
        return "its build was not recorded"
    if all(kept.get(name) == here[name] for name in compared):
        return ""
    return f"of another build ({kept.get('commit') or 'no commit'})"
