"""Figure 4.10: time by the size of partitions, and the "partition-size-threshold" that the chapter leaves open.

With a fixed part c_b per partition of the slower stage, and S_o the other stage's time for all data, the best number of partitions is
n* = sqrt(S_o / c_b). Both are taken from runs with few and with many partitions; the other runs are predicted by Equation 4.5.
"""

import math
from dataclasses import dataclass
from functools import partial

from .. import svg
from ..outcome import Outcome, Section
from . import model
from .bed import bed
from .published import BEST_PARTITION, PARTITION_AXIS, PARTITIONS, SIZES, computed, count_of, name_of
from .runs import Parts, Runs

SWEPT_MB = (1000.0, 1500.0, 2000.0)
"""Sizes at which all of the paper's partitions are run."""
COUNTS = (1, 2, 4, 8, 16, 32, 64)
"""Numbers of partitions of the largest database."""
FEW, MANY = 2, 32
"""The fixed parts are taken from the runs with these."""


@dataclass(frozen=True)
class Point:
    """One run with the paper's partitions."""

    megabytes: float
    partition_mb: float
    parts: Parts


def run(lab):
    """Measures all of it."""
    points = []
    with bed(lab, "ppblast-partition", SIZES[-1]) as here:
        runs, size_bytes = Runs(here), here.bytes
        whole = runs.whole()
        sweep = [runs.parts(count) for count in COUNTS]
        runs.compare(whole, sweep, name_of(SIZES[-1]))
        for megabytes in reversed(SWEPT_MB):
            here.cut(megabytes)
            points += [Point(megabytes, one, runs.parts(count_of(megabytes, one))) for one in PARTITIONS]
        points.reverse()
        return outcome(lab, points, sweep, size_bytes, runs.differs())


def lines(sweep, size_bytes):
    """The lines of both stages' seconds over the bytes of a partition; None if all runs have few partitions."""
    # Long records make fewer partitions than were asked for.
    few = next((one for one in reversed(sweep) if one.count <= FEW), None)
    many = next((one for one in reversed(sweep) if one.count <= MANY), None)
    if not few or not many or many.count <= few.count:
        return None
    return [model.through(*((size_bytes / one.count, one.stages[stage]) for one in (many, few))) for stage in (0, 1)]


def outcome(lab, points, sweep, size_bytes, differs):
    """The figures of these runs."""
    by_size = Section("seconds by the paper's partitions, measured (Figure 4.10: plot only)")
    for point in points:
        by_size.row(f"{name_of(point.megabytes)}, partitions of {point.partition_mb:g} MB", point.parts.seconds)
    by_size.row("the axis begins at", None, PARTITION_AXIS[0])
    by_size.row("the axis ends at", None, PARTITION_AXIS[1])
    best = Section("the best of the paper's partitions, MB, measured (4.5.3)")
    for megabytes in SWEPT_MB:
        of_size = [point for point in points if point.megabytes == megabytes]
        if of_size:
            best.row(name_of(megabytes), min(of_size, key=lambda point: point.parts.seconds).partition_mb, BEST_PARTITION)
    found = lines(sweep, size_bytes)
    predicted = [(one.count, model.pipelined(one.count, [line.at(size_bytes / one.count) for line in found])) for one in sweep if found]
    by_count = Section("seconds of 2 GB by the number of partitions: Equation 4.5 in the paper's column, measured in ours")
    for place, one in enumerate(sweep):
        kind = "fitted" if one.count in (FEW, MANY) else "predicted"
        theirs = computed(predicted[place][1], "Equation 4.5") if found else None
        by_count.row(f"{one.count} partitions, {kind}", one.measured, theirs)
    optimum, more = best_count(sweep, size_bytes, found)
    series = [
        ("measured", False, [(one.count, one.measured) for one in sweep]),
        ("Equation 4.5, fitted to 2 and 32 partitions", True, predicted),
        ("formatting alone", False, [(one.count, one.stages[0] * one.count) for one in sweep]),
        ("searches alone", False, [(one.count, one.stages[1] * one.count) for one in sweep]),
    ]
    chart = partial(svg.lines, "2 GB of the paper's, by the number of partitions", ("partitions", "seconds"), series)
    return Outcome([by_size, best, by_count, optimum], [
        *differs,
        *more,
        "The paper explains the optimum by overheads of small partitions and, for large ones, breaks off: \"the larger the better is also "
        "not convinced since the .\" The model's answer is that nothing overlaps with the first format and the last search, whose time "
        "falls with n.",
        f"The fixed parts are taken from the runs of {FEW} and {MANY} partitions; the other runs are predicted with them.",
    ], chart, lab.machine)  # fmt: skip


def best_count(sweep, size_bytes, found):
    """The best number of partitions, found and predicted, and a sentence about it."""
    section = Section("the best number of partitions (open in 4.5.3)")
    if not found:
        return section, []
    fastest = min(sweep, key=lambda one: one.seconds)
    star = model.best_partitions(size_bytes, found)
    section.row("n*: sqrt(S_o/c_b) in the paper's column, the fastest run in ours", float(fastest.count), computed(star, "4.5.3"))
    nearest = min(sweep, key=lambda one: abs(math.log(one.count / star)))
    section.row(f"the run nearest to n*, {nearest.count} partitions, over the fastest", nearest.seconds / fastest.seconds)
    section.row("fixed part of formatting a partition, seconds", found[0].at_zero)
    section.row("fixed part of searching a partition, seconds", found[1].at_zero)
    where = "inside" if COUNTS[0] < fastest.count < COUNTS[-1] else "at an end"
    return section, [f"The fastest run has {fastest.count} partitions, {where} of the range that was measured."]
