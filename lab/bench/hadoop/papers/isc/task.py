"""Figures 10b and 10c: a map task, and its constant part."""

from functools import partial

from papers import svg
from papers.outcome import Outcome, Section, over
from papers.statistics import median

from ...near.pairs import CONTENDERS, HALF_BYTES, LINE_BYTES, TASK_BYTES, Pair
from ..published import CONSTANT_BASELINE, CONSTANT_ISC, PURE_GAIN, TASK_BASELINE, TASK_GAIN, TASK_ISC
from .study import machine_cpu_s, medians_rows, reach_row, task_s, told_row

WHOLE, HALF, LINE = (Pair("wordcount", size) for size in (TASK_BYTES, HALF_BYTES, LINE_BYTES))


def outcome(study):
    """The figures of a study."""
    task, half, line = (study.both(pair, task_s) for pair in (WHOLE, HALF, LINE))
    pure = task and line and [whole - constant for whole, constant in zip(task, line)]
    fitted = task and half and [2 * part - whole for whole, part in zip(task, half)]

    gains = Section("stock's seconds over the node's, wordcount")
    reach_row(gains, "a map task of 128 MB (10b)", study.gain(WHOLE, task_s), TASK_GAIN, TASK_GAIN)
    reach_row(gains, "the map without the constant part (10c)", pure and over(*pure), PURE_GAIN, PURE_GAIN)
    told_row(gains, "a map task of 64 MB", study.gain(HALF, task_s))
    told_row(gains, "a map task of one line", study.gain(LINE, task_s))
    told_row(gains, "processor of the machine, whole job of 128 MB", study.gain(WHOLE, machine_cpu_s))

    seconds = Section("seconds of a map task (paper: 64 MB, 10b)")
    if task:
        for who, ours, paper in zip(CONTENDERS, task, (TASK_BASELINE, TASK_ISC)):
            seconds.row(f"128 MB, {who}", ours, paper)
    else:
        medians_rows(seconds, "128 MB", None)
    medians_rows(seconds, "64 MB", half)
    medians_rows(seconds, "one line: the constant part", line)
    medians_rows(seconds, "the constant part, from 64 and 128 MB", fitted)
    medians_rows(seconds, "128 MB without the constant part", pure)

    parts = Section("constant part of a task, percent (10c)")
    shares = [100 * constant / whole for whole, constant in zip(task, line)] if task and line else (None, None)
    for who, ours, paper in zip(CONTENDERS, shares, (CONSTANT_BASELINE, CONSTANT_ISC)):
        parts.row(who, ours, paper)

    calls = Section("the same program over 128 MB without Hadoop, seconds")
    for call in study.calls:
        calls.row(call["name"], median(call["wall_s"]))
        processor = [here + there for here, there in zip(call["cpu_s"], call["node_cpu_s"])]
        calls.row(f"{call['name']}: processor", median(processor))
    if not study.calls:
        calls.row("not measured")

    bars = [
        ("the paper's Hadoop, 64 MB", TASK_BASELINE.value, True),
        ("the paper's device, 64 MB", TASK_ISC.value, True),
        *((f"{who}, {name}", ours, False) for name, both in (("128 MB", task), ("one line", line)) for who, ours in zip(CONTENDERS, both or ())),
    ]
    differs = [
        *study.differs(),
        "A task's time is the job history's, from its start to its end. The constant part is the time of a task whose split is one "
        "line: the JVM's start, the mapper's, the commit. As a check, the same by a line through 64 and 128 MB; Java gets faster "
        "while it runs, so that line begins higher for stock.",
    ]
    chart = partial(svg.bars, "A map task, wordcount", "s", bars)
    return Outcome([gains, seconds, parts, calls], differs, chart, study.machine)
