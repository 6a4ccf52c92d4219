"""Figures 12 and 15: one to four DataNodes, each with a disk of its own."""

from functools import partial

from papers import svg
from papers.outcome import Outcome, Section, over

from ...near.pairs import CONTENDERS, DEVICE_BYTES, DEVICE_FILES, DEVICES, FAST, SLOW, Pair
from ..published import JOB_GAIN, ideal, near_ideal
from .study import busy, elapsed_s, maps_s, medians_rows, reach_row, told_row

DISKS = ((SLOW, "disks of 16 MB/s"), (FAST, "disks of any speed"))


def pair(disk, devices):
    """The word count on DataNodes with these disks."""
    return Pair("wordcount", DEVICE_BYTES, DEVICE_FILES, devices, disk)


def outcome(study):
    """The figures of a study."""
    sections, series = [], []
    for disk, name in DISKS:
        gains = Section(f"{name}: stock's seconds over the node's (12a, 15)")
        scale = Section(f"{name}: times as fast as with one")
        seconds = Section(f"{name}: seconds of the maps")
        processors = Section(f"{name}: processors busy while the client ran, of 2")
        one = study.both(pair(disk, 1), maps_s)
        points = {who: [] for who in CONTENDERS}
        for devices in DEVICES:
            of = f"{devices} DataNode{'s' * (devices > 1)}"
            reach_row(gains, f"job, {of}", study.gain(pair(disk, devices), elapsed_s), JOB_GAIN, JOB_GAIN)
            maps = study.both(pair(disk, devices), maps_s)
            medians_rows(seconds, of, maps)
            if devices > 1:
                stock, node = map(over, one, maps) if one and maps else (None, None)
                reach_row(scale, f"maps, {of}, node", node, near_ideal(devices), ideal(devices))
                told_row(scale, f"maps, {of}, stock", stock)
            medians_rows(processors, of, study.both(pair(disk, devices), busy))
            for who, ours in zip(CONTENDERS, maps or ()):
                points[who].append((devices, ours))
        series += [(f"{name}, {who}", False, of) for who, of in points.items()]
        sections += [gains, scale, seconds, processors]
    differs = [
        *study.differs(),
        "All DataNodes are on this machine with two cores, each with a loop device; `16 MB/s` is a throttle of control groups. 4 maps "
        "of 64 MB are divided evenly among one, two or four DataNodes, and as many maps run at once. One process maps for all of "
        "them, as a task knows one socket. The paper's machines have processors of their own: here, two cores bind when the "
        "machine's processors are busy all the time.",
    ]
    axes = ("DataNodes, each with a disk", "seconds of the maps")
    return Outcome(sections, differs, partial(svg.lines, "Word count of 256 MB by DataNodes", axes, series), study.machine)
