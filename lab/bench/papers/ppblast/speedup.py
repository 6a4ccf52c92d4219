"""Figure 4.9 and Equations 4.1 to 4.8: speedup by the size of the database and of partitions, and what the equations and the recurrence
say of the same runs."""

import math
from dataclasses import dataclass
from functools import partial

from .. import svg
from ..outcome import Outcome, Section
from ..published import STATED, Published
from ..statistics import mean
from . import published
from .bed import bed
from .published import OWN, PARTITIONS, SIZES, SPEEDUP_AXIS, computed, count_of, name_of
from .runs import Parts, Runs, Whole

POOL_PARTITIONS = 8
"""The partitions of the run that is compared with the bar for two pools."""
RECURRENCE_MOST, AHEAD, POOLS_LEAST = (Published(value, OWN, "docs/near/pipeline.md", STATED) for value in (1.05, 1.0, 1.45))
"""The project's own bars."""
CONTROLS = (
    ("one processor for the search (12 nodes)", lambda whole: whole.seconds),
    ("both for the search (13 nodes)", lambda whole: whole.both_seconds),
)


@dataclass(frozen=True)
class Point:
    """One size."""

    megabytes: float
    whole: Whole
    pipelined: list
    """For each of `PARTITIONS`."""
    serial: Parts | None = None
    """`POOL_PARTITIONS` one after the other, for the size whose pipeline has as many."""


def run(lab):
    """Measures all sizes."""
    points = []
    with bed(lab, "ppblast-speedup", SIZES[-1]) as here:
        runs = Runs(here)
        for megabytes in reversed(SIZES):
            here.cut(megabytes)
            whole = runs.whole()
            pipelined = [runs.parts(count_of(megabytes, partition)) for partition in PARTITIONS]
            pool = any(one.count == POOL_PARTITIONS for one in pipelined)
            point = Point(megabytes, whole, pipelined, runs.parts(POOL_PARTITIONS, serial=True) if pool else None)
            runs.compare(whole, [*pipelined, *filter(None, [point.serial])], name_of(megabytes))
            points.insert(0, point)
        return outcome(lab, points, runs.differs())


def outcome(lab, points, differs):
    """The figures of these sizes."""
    sections = [ends(points), *controls(points), bound(points), *predictions(points), bars(points)]
    return Outcome(sections, [
        *differs,
        published.BOUND,
        "Figure 4.9 has axes and no numbers: the ends of its axes stand for its least and its greatest speedup.",
        "The printed Equation 4.8 has s_u, the unformatted size, in its first term; its arguments and the sentence before it have s_f, the "
        "formatted size. It has no term for the network, and gives the nodes the storage node's bandwidth. Computing in 4.7 and 4.8 is "
        "processor time, and the bandwidths are those at which partitions were cut on this machine.",
        "Equation 4.5 takes mean times, so it is a little low where partitions differ. The recurrence takes each partition as it was. "
        "\"Ahead\" is the recurrence from the first two partitions; with only two there is nothing to predict. The real sequences are at "
        "the front of the database, so its first partitions are not quite like the others.",
    ], chart(points), lab.machine)  # fmt: skip


def ends(points):
    """The mean, the least and the greatest speedup."""
    section = Section("speedup, measured (4.5.3; ends of the axes of Figure 4.9)")
    for (name, of), (least, most) in zip(CONTROLS, SPEEDUP_AXIS):
        every = [of(point.whole) / parts.seconds for point in points for parts in point.pipelined]
        section.row(f"{name}, mean", mean(every), published.SPEEDUP_MEAN)
        section.row(f"{name}, least", min(every), least)
        section.row(f"{name}, most", max(every), most)
    return section


def controls(points):
    """The speedup of each run."""
    for name, of in CONTROLS:
        section = Section(f"speedup over {name}, measured (Figure 4.9: plot only)")
        for point in points:
            for parts, partition in zip(point.pipelined, PARTITIONS):
                section.row(f"{name_of(point.megabytes)}, partitions of {partition:g} MB", of(point.whole) / parts.seconds)
        yield section


def distinct(points):
    """Runs with different numbers of partitions: a name, the point, and the run."""
    for point in points:
        first = {}
        for parts in point.pipelined:
            first.setdefault(parts.count, parts)
        for parts in first.values():
            yield f"{name_of(point.megabytes)}, {parts.count} partitions", point, parts


def bound(points):
    """How much of the gain is overlap, and the most that it can be."""
    section = Section("overlap alone: 2n/(n+1) in the paper's column, Equation 4.4 over measured seconds in ours")
    for name, _, parts in distinct(points):
        most = 2 * parts.count / (parts.count + 1)
        section.row(name, parts.model["unpipelined_seconds"] / parts.measured, computed(most, "Equation 4.6"))
    return section


def predictions(points):
    """The equations and the recurrence next to what was measured."""
    equation = Section("seconds: Equation 4.5 in the paper's column, measured in ours")
    recurrence = Section("seconds: the recurrence in the paper's column, measured in ours")
    ahead = Section("seconds: predicted after two partitions in the paper's column, measured in ours")
    stages = Section("seconds per partition: Equations 4.7 and 4.8 in the paper's column, measured in ours")
    for name, _, parts in distinct(points):
        for section, key, place in (
            (equation, "pipelined_seconds", "Equation 4.5"),
            (recurrence, "recurrence_seconds", "Equation 4.5, for each partition"),
            (ahead, "ahead_seconds", "Equation 4.5, for each partition"),
        ):
            if parts.model[key] is not None:
                section.row(name, parts.measured, computed(parts.model[key], place))
        for what, key, place, measured in (
            ("4.7", "first_stage_seconds", "Equation 4.7", parts.stages[0]),
            ("4.8 with s_f", "second_stage_seconds", "Equation 4.8", parts.stages[1]),
            ("4.8 as printed, s_u", "second_stage_as_printed_seconds", "Equation 4.8", parts.stages[1]),
        ):
            if parts.model[key] is not None:
                stages.row(f"{name}, {what}", measured, computed(parts.model[key], place))
    return equation, recurrence, ahead, stages


def bars(points):
    """The worst of all runs against the project's own bars."""
    section = Section("this project's own bars in the paper's column, measured")
    models = [parts.model for _, _, parts in distinct(points)]
    most = max(model["measured_seconds"] / model["recurrence_seconds"] for model in models)
    section.row("measured over the recurrence, most", most, RECURRENCE_MOST)
    ahead = [model["measured_seconds"] / model["ahead_seconds"] for model in models if model["ahead_seconds"]]
    if ahead:
        farthest = max(ahead, key=lambda quotient: abs(math.log(quotient)))
        section.row("measured over predicted ahead, farthest from 1 (0.9 to 1.1)", farthest, AHEAD)
    for name, point, parts in distinct(points):
        if parts.count != POOL_PARTITIONS:
            continue
        # Two meanings of "one after the other": the partitions, or two commands over the whole database.
        if point.serial:
            gain = point.serial.seconds / parts.seconds
            section.row(f"one partition after the other over pipelined, {name}, at least", gain, POOLS_LEAST)
        section.row(f"whole over pipelined, {name}, at least", point.whole.seconds / parts.seconds, POOLS_LEAST)
        section.row("the same run, T1 over T2 (balanced: 0.5 to 2)", parts.stages[0] / parts.stages[1])
    return section


def chart(points):
    """The speedups as lines, and what overlap alone can give."""
    series = []
    for at, partition in enumerate(PARTITIONS):
        line = [(point.megabytes, point.whole.seconds / point.pipelined[at].seconds) for point in points]
        series.append((f"over one processor, partitions of {partition:g} MB", False, line))
    for at, partition in enumerate(PARTITIONS):
        line = [(point.megabytes, 2 * point.pipelined[at].count / (point.pipelined[at].count + 1)) for point in points]
        series.append((f"2n/(n+1), partitions of {partition:g} MB", True, line))
    axes = ("MB, of nodes with 2 GB", "whole over pipelined")
    return partial(svg.lines, "Speedup of the pipeline by the size of the database", axes, series)
