"""The build that a result was measured with: the commit of the sources, and a digest of each program and jar."""

import hashlib
from pathlib import Path

from .tools import sources

DIGITS = 16
"""Hexadecimal digits of a digest."""


def digest(path):
    """The first digits of the SHA-256 of a file and of the programs next to it that have commands of it, such as
    `merganser-lab` next to `merganser`; None if they can't be read."""
    path, found = Path(path), hashlib.sha256()
    wings = (wing for wing in path.parent.glob(f"{path.name}-*") if wing.is_file() and not wing.suffix)
    try:
        for one in [path, *sorted(wings)]:
            with open(one, "rb") as file:
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
