"""Figure 11: a job and its maps by the size of the data."""

from functools import partial

from papers import svg
from papers.outcome import Outcome, Section

from ...near.pairs import CONTENDERS, JOB_FILES, TASK_BYTES, Pair
from ..published import JOB_GAIN
from .study import elapsed_s, machine_cpu_s, maps_s, medians_rows, reach_row, told_row


def outcome(study):
    """The figures of a study."""
    gains = Section("stock's seconds over the node's, wordcount (Figure 11)")
    seconds, processor = Section("seconds"), Section("stock's processor seconds of the machine over the node's")
    pairs = {128 * files: Pair("wordcount", TASK_BYTES, files) for files in JOB_FILES}
    series = []
    for what, figure in (("job", elapsed_s), ("maps", maps_s)):
        points = {who: [] for who in CONTENDERS}
        for megabytes, pair in pairs.items():
            name, both = f"{what}, {megabytes} MB", study.both(pair, figure)
            reach_row(gains, name, study.gain(pair, figure), JOB_GAIN, JOB_GAIN)
            medians_rows(seconds, name, both)
            for who, ours in zip(CONTENDERS, both or ()):
                points[who].append((megabytes, ours))
        series += [(f"{what}, {who}", False, of) for who, of in points.items()]
    for megabytes, pair in pairs.items():
        told_row(processor, f"{megabytes} MB, {study.count(pair)} rounds", study.gain(pair, machine_cpu_s))
    differs = [
        *study.differs(),
        "One DataNode, one map at a time, two reducers, as the paper's single node. The maps' time is from the start of the first "
        "map task to the end of the last.",
    ]
    chart = partial(svg.lines, "Word count by data", ("data, MB", "seconds"), series)
    return Outcome([gains, seconds, processor], differs, chart, study.machine)
