"""Figures 13 and 14: processor, reads and memory of the host."""

from functools import partial

from papers import svg
from papers.outcome import Outcome, Section, over

from ...near.pairs import CONTENDERS, TASK_BYTES, Pair
from ..published import MEMORY, PROCESSOR_MAPS, PROCESSOR_TOTAL, READ
from .study import busy, job_cpu_s, machine_cpu_s, map_cpu_s, medians_rows, reach_row, told_row

PAIR = Pair("wordcount", TASK_BYTES, 4)
PARTS = (
    ("map tasks' JVMs", map_cpu_s),
    ("reduce tasks' JVMs", lambda run: run["cpu_s"]["reduces"]),
    ("the master's JVM", lambda run: run["cpu_s"]["master"]),
    ("the node", lambda run: run["cpu_s"]["node"]),
    ("the DataNode", lambda run: run["cpu_s"]["datanodes"]),
    ("tasks and master together", job_cpu_s),
    ("the whole machine", machine_cpu_s),
)
"""Parts of the processor seconds."""


def _hdfs(run):
    return run["read_bytes"]["hdfs"]


def _tasks_and_node(run):
    """Bytes of blocks that tasks and the node read. In the paper, what a device reads for itself does not cross to the host; the
    node is a process of the host. None if the node worked, and the file does not say how much it read."""
    node = run["counters"].get("NODE_BYTES_READ")
    if node is None and run["cpu_s"]["node"]:
        return None
    return _hdfs(run) + (node or 0)


def _calls(run):
    return run["read_bytes"]["calls"]


def _resident(run):
    return run["map_rss_bytes"]


def outcome(study):
    """The figures of a study."""
    heaps = [study.least_heap(who) for who in CONTENDERS]
    stock, node = heaps if all(heaps) else (None, None)
    gains = Section("stock's over the node's, wordcount of 512 MB (14)")
    reach_row(gains, "busy processors of the host, on average, node included", study.gain(PAIR, busy), PROCESSOR_TOTAL, PROCESSOR_TOTAL)
    gains.row("the same during the map tasks: not measured", paper=PROCESSOR_MAPS)
    told_row(gains, "processor seconds of the machine, node included", study.gain(PAIR, machine_cpu_s))
    told_row(gains, "processor seconds of map tasks' JVMs", study.gain(PAIR, map_cpu_s))
    told_row(gains, "processor seconds of tasks and master", study.gain(PAIR, job_cpu_s))
    reach_row(gains, "bytes of blocks read by tasks and node", study.gain(PAIR, _tasks_and_node), READ, READ)
    told_row(gains, "bytes of HDFS read by map tasks alone (counter)", study.gain(PAIR, _hdfs))
    told_row(gains, "bytes read by system calls of map tasks (rchar)", study.gain(PAIR, _calls))
    reach_row(gains, "the least heap of a map task", stock and stock[0] / node[0], MEMORY)
    reach_row(gains, "peak memory of its JVM, with its least heap", stock and over(stock[1], node[1]), MEMORY, MEMORY)
    told_row(gains, "peak memory of its JVM, with the same heap", study.gain(PAIR, _resident))

    processor, bars = Section("seconds of processors"), []
    for name, figure in PARTS:
        both = study.both(PAIR, figure)
        medians_rows(processor, name, both)
        bars += [(f"{name}, {who}", seconds, False) for who, seconds in zip(CONTENDERS, both or ())]
    amounts = Section("amounts")
    medians_rows(amounts, "busy processors of the host, on average", study.both(PAIR, busy))
    for name, figure, unit in (
        ("blocks read by tasks and node, MB", _tasks_and_node, 1e6),
        ("HDFS read by map tasks, MB", _hdfs, 1e6),
        ("read by system calls, MB", _calls, 1e6),
        ("peak memory of a map's JVM, same heap, MiB", _resident, 2**20),
    ):
        both = study.both(PAIR, figure)
        medians_rows(amounts, name, both and [ours / unit for ours in both])
    for who, heap in zip(CONTENDERS, heaps):
        told_row(amounts, f"the least heap, {who}, MB", heap and heap[0])
        told_row(amounts, f"peak memory with the least heap, {who}, MiB", heap and heap[1] / 2**20)
    differs = [
        *study.differs(),
        "Processor and memory are those of the tasks' JVMs in /proc, read every 40 ms; the machine's is that of /proc/stat. Reads "
        "are Hadoop's counter HDFS_BYTES_READ, with NODE_BYTES_READ for the node. System calls (rchar) also read jars, which every "
        "JVM does.",
        "The paper shows averages over the time of a job (Figure 14): of processors in use, and of reads. So does the row of busy "
        "processors, from the client's start to its end. The node's job is so much shorter that fewer seconds of processors are a "
        "larger part of it.",
        "The node is a process of the host: what it reads crosses to the host, unlike what the paper's device reads.",
        "The least heap is the smallest -Xmx of a series that lets a map task of 128 MB end well, with the default sort buffer "
        "of 100 MB. A task with the node's least heap has no room for that buffer, so it could not map by itself.",
    ]
    series = study.series(PAIR)
    chart = _over_time(*series) if series else partial(svg.bars, "Word count of 512 MB", "s of processors", bars)
    return Outcome([gains, processor, amounts], differs, chart, study.machine)


def _over_time(stock, node):
    """Figure 13: the processors that are busy, by time."""

    def line(name, of, kind):
        # A step is as wide as its time.
        every_s = of["every_s"]
        points = [(edge * every_s, seconds / every_s) for at, seconds in enumerate(of[kind]) for edge in (at, at + 1)]
        return name, points

    series = [
        line("tasks' JVMs, stock", stock, "tasks"),
        line("the machine, stock", stock, "machine"),
        line("tasks' JVMs, node", node, "tasks"),
        line("the machine, node", node, "machine"),
        line("the node", node, "node"),
    ]
    return partial(svg.plane, "Word count of 512 MB (Figure 13)", ("seconds", "busy processors"), series, joined=True)
