"""The chapter's equations, straight lines through figures, and formatdb's reads in order of length on modelled disks.

formatdb writes sequences "in a descending order based on entry length" (4.5.2), so it reads them at random places of the database.
As long as the database fits in the page cache, that costs nothing:

    seconds(bytes) = rate * bytes + max(0, bytes - cache) / gap * random read

`rate` is the SSD's row of Table 4.3 where the database fits. `cache` and `gap`, the bytes between two reads that miss, are fitted to
the row of the hard disks; the SSD's other figures are predicted.
"""

import json
import math
from dataclasses import dataclass

from ..statistics import mean
from .published import FORMAT

DISK, SSD = "wd5000aakx", "830"
"""The profiles nearest to the paper's WD5000AAKS and X25-M."""
SPAN_BYTES = 1_750_000_000 // 4096 * 4096
"""The places that are read: the largest database of the table."""
CALLS, CALL_BYTES, REQUESTS = 256, 2**20, 2000
"""Requests in order; reads of a page at random places, enough for a mean within a few percent."""
FIXED_S_MIN = 1e-3
"""The least that starting a command takes."""


@dataclass(frozen=True)
class Line:
    """`at_zero + slope x`."""

    at_zero: float
    slope: float

    def at(self, x):
        """Its height."""
        return self.at_zero + self.slope * x

    def meets(self, other):
        """Where two lines meet; None if they are parallel."""
        return None if self.slope == other.slope else (other.at_zero - self.at_zero) / (self.slope - other.slope)


def fitted(points):
    """The line with the least squares of vertical distances; None for fewer than two places."""
    if len({x for x, _ in points}) < 2:
        return None
    x, y = (mean(values) for values in zip(*points))
    slope = sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)
    return Line(y - slope * x, slope)


def through(small, large):
    """The line of a stage's seconds over the bytes of a partition, through two partitions. Noise may turn it: a rate is never less
    than 0, and neither is the fixed part less than a process takes to start."""
    slope = (large[1] - small[1]) / (large[0] - small[0])
    slope = min(max(slope, 0.0), max(large[1] - FIXED_S_MIN, 0.0) / large[0])
    return Line(max(large[1] - slope * large[0], FIXED_S_MIN), slope)


def pipelined(partitions, stages):
    """Equation 4.5: the time of the pipeline, T_response + (n-1) max(T)."""
    return sum(stages) + (partitions - 1) * max(stages)


def best_partitions(size_bytes, stages):
    """n* = sqrt(S_o / c_b): the number of partitions for which Equation 4.5 is least, where c_b is the fixed part of a partition of
    the longer stage, and S_o what the other takes for all bytes without its fixed parts."""
    longest = max(stages, key=lambda line: line.slope)
    rest = sum(line.slope for line in stages if line is not longest) * size_bytes
    return max(math.sqrt(rest / max(longest.at_zero, FIXED_S_MIN)), 1.0)


@dataclass(frozen=True)
class Speed:
    """A modelled disk: bytes per second in order, b_i and b_o of Equations 4.7 and 4.8, and the mean seconds of a read at a random
    place, one at a time."""

    read_rate: float
    write_rate: float
    random_s: float

    def first_stage(self, read_bytes, written_bytes, computing_s):
        """Equation 4.7: the time of formatting."""
        return read_bytes / self.read_rate + computing_s + written_bytes / self.write_rate


def speed(lab, device):
    """The speed of a modelled disk, from `merganser simulate`. Reads of pages that were never written would take no time of flash."""

    def seconds(*words):
        told = lab.told(
            lab.merganser, "simulate", "run", "--json", "--device", device, f"--filled={SPAN_BYTES}", "--span", SPAN_BYTES, *words
        )
        return json.loads(told)["results"]["elapsed_ns"] / 1e9

    def rate(read):
        order = ("--workload", "sequential", "--size", CALL_BYTES, "--align", 512, "--depth", 8, "--requests", CALLS)
        return CALLS * CALL_BYTES / seconds(*order, "--read", read)

    at_random = ("--workload", "random", "--size", 4096, "--depth", 1, "--requests", REQUESTS)
    return Speed(rate(1), rate(0), seconds(*at_random) / REQUESTS)


@dataclass(frozen=True)
class Reorder:
    """formatdb by Table 4.3: seconds per MB while all of it is cached, MB that are cached, bytes between two reads that miss."""

    rate: float
    cache_mb: float
    gap_bytes: float

    @staticmethod
    def fitted(random_s):
        """Fitted to the hard disks of the table, where a read at a random place takes `random_s`."""
        first_mb, _, first_ssd = FORMAT[0]
        rate = first_ssd / first_mb
        # What the hard disks add, beyond the first size, which fits.
        line = fitted([(megabytes, hdd - rate * megabytes) for megabytes, hdd, _ in FORMAT[1:]])
        return Reorder(rate, -line.at_zero / line.slope, random_s / line.slope * 1e6)

    def seconds(self, megabytes, random_s):
        """Seconds for a database on a disk."""
        missed = max(megabytes - self.cache_mb, 0.0) * 1e6 / self.gap_bytes
        return self.rate * megabytes + missed * random_s
