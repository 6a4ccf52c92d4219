"""Lines to sort, the same for the same seed."""

import functools
import random

SIZES = {"small": 420_000, "middle": 1_000_000, "large": 3_000_000, "huge": 150_000_000}
"""Bytes. With the least memory a merge makes 4, 8 and 24 runs of the first three (the last needs an extra pass). `huge`
has more than one resume point of a copy."""

KINDS = 4
"""Kinds of data: random lines twice, lines with many repetitions, and two ordered halves."""

_LETTERS = bytes(97 + byte % 26 for byte in range(256))


@functools.lru_cache(maxsize=24)
def _lines(seed, number, size):
    chance = random.Random(f"{seed} {number} {size}")
    total = SIZES[size]
    letters = chance.randbytes(total + 120).translate(_LETTERS)
    lines, at = [], 0
    for length in chance.choices(range(20, 120), k=total // 65):
        if at >= total:
            break
        lines.append(letters[at : at + length] + b"\n")
        at += length + 1
    kind = number % KINDS
    if kind == 2:
        lines = chance.choices(lines[:150], k=len(lines))
    in_order = sorted(lines)
    if kind == 3:
        half = len(lines) // 2
        lines = in_order[half:] + in_order[:half]
    return b"".join(lines), b"".join(in_order)


def lines(seed, number, size):
    """Some lines and the same lines sorted by their bytes. Two numbers share no line."""
    if size == "huge":
        return _huge(seed, number)
    return _lines(seed, number, size)


@functools.lru_cache(maxsize=1)
def _huge(seed, number):
    return _lines.__wrapped__(seed, number, "huge")


def ordered(content):
    """Lines sorted by their bytes."""
    return b"".join(sorted(content.splitlines(keepends=True)))
