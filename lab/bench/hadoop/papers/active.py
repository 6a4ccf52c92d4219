"""ActiveSort's jobs on Hadoop, with its merge in a process next to the NodeManager: the results of run.py."""

import json
from functools import partial

from papers import svg
from papers.outcome import SAYS, CompareError, Outcome, Section, over
from papers.statistics import median

from . import published

WORKLOADS = (("sort-4k", "Sort"), ("terasort-4k", "TeraSort"), ("join", "join (Hive-join)"))
"""Scenarios, and the paper's workloads that they are held against."""
STEADY = 1.2
"""The slowest within this of the fastest is steady."""
MIB = 2**20


def elapsed_s(run):
    """Seconds from a job's submission to its end."""
    return run["elapsed_s"]


def written(run):
    """MiB written to the disks of intermediate data."""
    return run["device_written_bytes"] / MIB


def read_back(run):
    """MiB read from them."""
    return run["device_read_bytes"] / MIB


def read(path, needed):
    """The scenarios of these names in a file, in this order."""
    text = path.read_text()
    try:
        found = json.loads(text)
        found = found if isinstance(found, list) else [found]
        for scenario in found:
            _check(scenario)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CompareError(f"{path}: no result of lab/bench/hadoop/run.py: {_told(error)}") from error
    if any(not point["rounds"] for one in found for point in one["points"]):
        raise CompareError(f"{path}: a point without rounds")
    by_name = {}
    for one in found:
        by_name.setdefault(one["scenario"], one)
    for name in needed:
        if name not in by_name:
            raise CompareError(f"{path}: no result of {name}; `run.py {' '.join(needed)} --json FILE` makes one")
    return [by_name[name] for name in needed]


def _told(error):
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def _check(scenario):
    """Reads what the comparisons read."""
    scenario["scenario"] + scenario["device"]
    for point in scenario["points"]:
        point["name"] + ""
        sum(point["settings"][name] for name in ("size_bytes", "record_bytes", "nodes", "reduces_at_once"))
        for one in point["rounds"]:
            for run in (one["stock"], one["active"]):
                elapsed_s(run) + written(run) + read_back(run)


def both(point, figure):
    """The medians of a figure over the rounds, of stock and of ours."""
    return tuple(median(figure(one[who]) for one in point["rounds"]) for who in ("stock", "active"))


def less(point, figure):
    """How much less ours is than stock in each round, in percent; the median."""
    return median(100 * (1 - over(figure(one["active"]), figure(one["stock"]))) for one in point["rounds"])


def differs(scenario):
    """What differs from the paper's method in all comparisons."""
    disk = "held to 140 MB/s read and 65 MB/s write" if scenario["device"] == "throttled" else "with no limit"
    return [
        "Theirs: Hadoop 1.1.2, HiBench, a server with 8 cores and 8 GB, HDFS on a hard disk, intermediate data on a Jasmine "
        "board that merges. Here: Hadoop 3.4.2, daemons and tasks as processes on one machine, the merge in a process next "
        "to the NodeManager.",
        f"Intermediate data is on a loop device of its own, {disk}; bytes are that device's. Daemons, tasks and the page "
        "cache are held to a control group.",
        "Inputs have the sizes above instead of 7.6 GB, in as many splits with as many spills.",
        "Each output is checked to be stock Hadoop's, byte for byte; a join's but for the order of a key's lines, which Hadoop "
        "leaves to chance.",
    ]


def _outcome(scenario, sections, chart, more=()):
    return Outcome(sections, [*differs(scenario), *more], chart, scenario.get("machine", {}))


def elapsed(scenarios):
    """Figure 10: how long jobs take, stock and with deferred merges."""
    points = [(name, scenario["points"][0]) for (_, name), scenario in zip(WORKLOADS, scenarios)]
    gains = Section("elapsed, less than stock, percent (Figure 10)")
    gains.row("the best workload", max(less(point, elapsed_s) for _, point in points), published.LESS_TIME)
    for name, point in points:
        gains.row(name, less(point, elapsed_s))
    says = Section(SAYS)
    says.holds("faster for all workloads", published.FASTER, all(less(point, elapsed_s) > 0 for _, point in points))
    seconds, bars = Section("seconds"), []
    for name, point in points:
        for who, figure in zip(("stock", "ours"), both(point, elapsed_s)):
            seconds.row(f"{name}, {who}", figure)
            bars.append((f"{name}, {who}", figure, who == "stock"))
    return _outcome(scenarios[0], [gains, says, seconds], partial(svg.bars, "Jobs on Hadoop", "seconds", bars))


def io(scenarios):
    """Figure 11: what jobs read from and write to the disk of intermediate data, stock and with deferred merges."""
    points = [(name, scenario["points"][0]) for (_, name), scenario in zip(WORKLOADS, scenarios)]
    gains = Section("bytes written, less than stock, percent (Figure 11)")
    gains.row("the best workload", max(less(point, written) for _, point in points), published.LESS_WRITTEN)
    for name, point in points:
        gains.row(name, less(point, written))
    times, bars = Section("bytes over the input's"), []
    for name, point in points:
        size = point["settings"]["size_bytes"] / MIB
        for what, figure in (("written", written), ("read", read_back)):
            for who, mebibytes in zip(("stock", "ours"), both(point, figure)):
                times.row(f"{name}, {what}, {who}", mebibytes / size)
                # A logarithmic scale has no 0, and a page cache may leave nothing to read.
                bars.append((f"{name}, {what}, {who}", max(mebibytes, 1.0), who == "stock"))
    return _outcome(scenarios[0], [gains, times], partial(svg.bars, "Intermediate data", "MiB", bars))


def memory(scenarios):
    """Figure 15: Sort by the memory that the machine has."""
    scenario, = scenarios
    seconds = Section("seconds, by memory for 2 GB of data (Figure 15)")
    stock, ours = [], []
    for point in scenario["points"]:
        try:
            gigabytes = float(point["name"].split(" ")[0])
        except ValueError:
            raise CompareError(f"memory: the point '{point['name']}' names no memory") from None
        theirs, own = both(point, elapsed_s)
        seconds.row(f"{point['name']}, stock", theirs)
        seconds.row(f"{point['name']}, ours", own)
        stock.append((gigabytes, theirs))
        ours.append((gigabytes, own))
    says = Section(SAYS)
    faster = all(own < theirs for (_, theirs), (_, own) in zip(stock, ours))
    says.holds("faster with any memory", published.BY_MEMORY, faster)
    ample = _spread([own for gigabytes, own in ours if gigabytes >= 2])
    says.holds("steady from 2 GB on: the slowest within a fifth of the fastest", published.BY_MEMORY, ample < STEADY)
    suffers = _spread([theirs for _, theirs in stock]) > STEADY
    says.holds("the original suffers from too little memory", published.BY_MEMORY, suffers)
    chart = partial(
        svg.lines, "Sort on Hadoop by memory", ("memory for 2 GB of data, GB", "seconds"), [("stock", True, stock), ("ours", False, ours)]
    )
    return _outcome(scenario, [seconds, says], chart, [
        "Memory is the page cache that a control group leaves next to the processes, in the paper's proportion to the data; "
        "nothing is ever swapped.",
    ])  # fmt: skip


def _spread(figures):
    """The largest over the least; of no figures, 0."""
    return max(figures) / min(figures) if figures else 0.0


def reducers(scenarios):
    """Figure 16: TeraSort by the number of reducers, at once and in all."""
    scenario, = scenarios
    points = scenario["points"]
    seconds, bars = Section("seconds (Figure 16)"), []
    for point in points:
        for who, figure in zip(("stock", "ours"), both(point, elapsed_s)):
            seconds.row(f"{point['name']}, {who}", figure)
            bars.append((f"{point['name']}, {who}", figure, who == "stock"))
    says = Section(SAYS)
    steady = _spread([both(point, elapsed_s)[1] for point in points]) < STEADY
    says.holds("ours is steady: the slowest within a fifth of the fastest", published.BY_REDUCERS, steady)
    best = min(points, key=lambda point: both(point, elapsed_s)[0])
    two = best["settings"]["reduces_at_once"] == 2
    says.holds("the original is best with two reducers at once", published.BY_REDUCERS, two)
    faster = all(less(point, elapsed_s) > 0 for point in points)
    says.holds("ours is faster with any number", published.BY_REDUCERS, faster)
    return _outcome(scenario, [seconds, says], partial(svg.bars, "TeraSort by reducers", "seconds", bars))


def nodes(scenarios):
    """Figure 17: TeraSort by the number of nodes, data growing with them."""
    scenario, = scenarios
    times = Section("records per second, over stock's (Figure 17)")
    rates, stock, ours = Section("records a second"), [], []
    for point in scenario["points"]:
        told = point["settings"]
        records = told["size_bytes"] / told["record_bytes"]
        theirs, own = both(point, elapsed_s)
        times.row(point["name"], theirs / own, published.NODES_GAIN if told["nodes"] != 1 else None)
        rates.row(f"{point['name']}, stock", records / theirs)
        rates.row(f"{point['name']}, ours", records / own)
        stock.append((told["nodes"], records / theirs))
        ours.append((told["nodes"], records / own))
    chart = partial(svg.lines, "TeraSort by nodes", ("nodes", "records a second"), [("stock", True, stock), ("ours", False, ours)])
    return _outcome(scenario, [times, rates], chart, [
        "Nodes are NodeManagers on one machine, each with a disk of its own; they share its two cores, so more of them bring "
        "more disks and no more processors. The paper has up to 8 servers.",
    ])  # fmt: skip


COMPARISONS = {
    "hadoop-elapsed": (
        "sorts and a join on Hadoop, stock and with deferred merges: time", "Figure 10", [name for name, _ in WORKLOADS], elapsed,
    ),
    "hadoop-io": (
        "the same: bytes read from and written to the disk of intermediate data", "Figure 11", [name for name, _ in WORKLOADS], io,
    ),
    "hadoop-memory": ("a sort on Hadoop by the machine's memory", "Figure 15", ["memory"], memory),
    "hadoop-reducers": ("TeraSort on Hadoop by the number of reducers, at once and in all", "Figure 16", ["reducers"], reducers),
    "hadoop-nodes": ("TeraSort on Hadoop by the number of nodes", "Figure 17", ["nodes"], nodes),
}  # fmt: skip
"""By name: what it compares, the part of the paper, the scenarios that it needs, and the function."""
