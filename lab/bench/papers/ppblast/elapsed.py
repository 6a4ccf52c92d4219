"""Figures 4.6 to 4.8: the time of a database that is formatted and searched, by its size: whole, in partitions one after the other, and
in partitions that are pipelined.

The paper compares pp-mpiBLAST on 12 + 1 nodes with mpiBLAST on 12 (Figure 4.7) and on 13 (Figure 4.8). Here there are 1 + 1 processors,
compared with a search on one and on both.
"""

from dataclasses import dataclass
from functools import partial

from .. import svg
from ..outcome import Outcome, Section
from ..published import DERIVED
from ..statistics import mean
from . import published
from .bed import bed
from .model import fitted
from .published import BEST_PARTITION, CROSSING_AXIS_MB, FORMAT, SIZES, count_of, name_of, table_43
from .runs import Parts, Runs, Whole

PARTITION_MB = BEST_PARTITION.value


@dataclass(frozen=True)
class Point:
    """One size."""

    megabytes: float
    whole: Whole
    serial: Parts
    pipelined: Parts


def run(lab):
    """Measures all sizes."""
    points = []
    with bed(lab, "ppblast-elapsed", SIZES[-1]) as here:
        runs = Runs(here)
        for megabytes in reversed(SIZES):
            here.cut(megabytes)
            count = count_of(megabytes, PARTITION_MB)
            point = Point(megabytes, runs.whole(), runs.parts(count, serial=True), runs.parts(count))
            runs.compare(point.whole, [point.serial, point.pipelined], name_of(megabytes))
            points.insert(0, point)
        return outcome(lab, points, runs.differs())


def outcome(lab, points, differs):
    """The figures of these sizes."""
    seconds = Section("seconds, measured (Figures 4.7 and 4.8; paper: plots only)")
    causes = Section("why: partitions alone, then overlap; their product is the gain over one processor")
    for point in points:
        name, whole, serial, pipelined = name_of(point.megabytes), point.whole, point.serial, point.pipelined
        seconds.row(f"{name}, whole: makeblastdb", whole.format_s)
        seconds.row(f"{name}, whole: search, one processor", whole.search_s)
        seconds.row(f"{name}, whole: search, both processors", whole.both_s)
        if whole.ranks_s:
            seconds.row(f"{name}, whole: search, two ranks", whole.ranks_s)
        seconds.row(f"{name}, {serial.count} partitions, serial", serial.seconds)
        seconds.row(f"{name}, {pipelined.count} partitions, pipelined", pipelined.seconds)
        causes.row(f"{name}, whole over serial", whole.seconds / serial.seconds)
        causes.row(f"{name}, serial over pipelined", serial.seconds / pipelined.seconds)
    gain = Section("whole over pipelined, mean of all sizes, measured (4.5.3)")
    saved = Section("time saved, percent, measured (4.5.3, 4.1.2, 4.6)")
    for name, speedups in (
        ("one processor for the search (12 nodes, Figure 4.7)", [one.whole.seconds / one.pipelined.seconds for one in points]),
        ("both for the search (13 nodes, Figure 4.8)", [one.whole.both_seconds / one.pipelined.seconds for one in points]),
    ):
        percents = [100 - 100 / speedup for speedup in speedups]
        gain.row(name, mean(speedups), published.SPEEDUP_MEAN)
        saved.row(f"{name}, mean", mean(percents), published.SAVED_MEAN)
        saved.row(f"{name}, most: \"up to 75%\"", max(percents), published.SAVED_CLAIMED)
        saved.row(f"{name}, most: \"up to 50%\"", max(percents), published.SAVED_MOST)
    slopes, sentence = crossing(points)
    return Outcome([seconds, gain, causes, saved, slopes], [
        *differs,
        sentence,
        published.BOUND,
        "Twelve and thirteen nodes differ by a twelfth, one and two processors by a factor of 2: the second control is much stronger here "
        "than in Figure 4.8.",
        f"Partitions of {name_of(PARTITION_MB)}, which the paper finds best; it has figures for 250 and 750 MB as well, see "
        "ppblast-partition. The last partition of the paper is smaller, ours are equal.",
    ], chart(points), lab.machine)  # fmt: skip


def crossing(points):
    """Figure 4.6: where the line of formatting crosses that of the search."""
    section = Section("seconds per GB: lines fitted to what was measured (Figure 4.6; Table 4.3)")
    format_line = fitted([(point.megabytes, point.whole.format_s) for point in points])
    search_line = fitted([(point.megabytes, point.whole.search_s) for point in points])
    hdd, ssd = (fitted([(row[0], row[place]) for row in FORMAT]).slope * 1000 for place in (1, 2))
    section.row("makeblastdb (paper: SSD)", format_line.slope * 1000, table_43(ssd, DERIVED))
    section.row("mpiformatdb on hard disks", None, table_43(hdd, DERIVED))
    section.row("search, one processor", search_line.slope * 1000)
    meets = format_line.meets(search_line)
    if meets is not None and 0 <= meets < CROSSING_AXIS_MB:
        section.row("MB at which formatting takes as long as the search", meets)
        steeper = "formatting" if format_line.slope > search_line.slope else "the search"
        sentence = (
            f"Formatting and search take equally long at {meets:.0f} MB of the paper's scale. Beyond it, the one that grows faster is the "
            f"bottleneck: {steeper}."
        )
    else:
        longer = sum(point.whole.format_s > point.whole.search_s for point in points)
        sentence = (
            f"The lines of formatting and search do not cross between 0 and {CROSSING_AXIS_MB} MB here; formatting takes longer at {longer} "
            f"of {len(points)} sizes."
        )
    return section, f"{sentence} Figure 4.6 shows the search of 12 nodes as well, without numbers; Table 4.3 has those of mpiformatdb."


def chart(points):
    """The seconds as lines."""
    lines = (
        ("whole, search on one processor", lambda one: one.whole.seconds),
        ("whole, search on both processors", lambda one: one.whole.both_seconds),
        ("partitions, serial", lambda one: one.serial.seconds),
        ("partitions, pipelined", lambda one: one.pipelined.seconds),
        ("makeblastdb alone", lambda one: one.whole.format_s),
        ("search alone, one processor", lambda one: one.whole.search_s),
    )
    series = [(name, False, [(one.megabytes, of(one)) for one in points]) for name, of in lines]
    return partial(svg.lines, "A database formatted and searched, by its size", ("MB, of nodes with 2 GB", "seconds"), series)
