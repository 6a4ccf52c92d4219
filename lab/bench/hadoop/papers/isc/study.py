"""The pairs of jobs that isc.py measured, as a comparison looks them up."""

import json
from collections import Counter
from dataclasses import fields, replace

from papers.outcome import CompareError, over
from papers.statistics import mean, median

from .. import measured
from ...near.pairs import CONTENDERS, Pair

_DECIDING = [field.name for field in fields(Pair) if field.name != "round"]
_PROCESSORS = ("maps", "reduces", "master", "node", "datanodes", "machine")


def task_s(run):
    """Seconds of a map task."""
    return mean(run["task_s"])


def elapsed_s(run):
    """Seconds of a job, from its submission to its end."""
    return run["elapsed_s"]


def maps_s(run):
    """From the start of the first map task to the end of the last."""
    return run["maps_s"]


def map_cpu_s(run):
    """Processor seconds of the JVMs of map tasks."""
    return run["cpu_s"]["maps"]


def job_cpu_s(run):
    """Processor seconds of all JVMs of the job."""
    return run["cpu_s"]["maps"] + run["cpu_s"]["reduces"] + run["cpu_s"]["master"]


def machine_cpu_s(run):
    """Processor seconds of the whole machine, from the client's start to its end."""
    return run["cpu_s"]["machine"]


def busy(run):
    """Processors of the machine that were busy on average, in the same time. The client starts before the job is submitted and
    ends after it."""
    return over(run["cpu_s"]["machine"], run["wall_s"])


class Study:
    """All that was measured."""

    def __init__(self, told):
        self.machine, self.calls = told.get("machine", {}), told.get("calls", [])
        self._pairs = [(Pair(**{name: one["cell"][name] for name in _DECIDING}), one) for one in told["pairs"]]
        for _, one in self._pairs:
            for who in CONTENDERS:
                if _well(one, who):
                    _check(one[who])
        for call in self.calls:
            call["name"] + ""
            sum(call["wall_s"]) + sum(call["cpu_s"]) + sum(call["node_cpu_s"])

    def measured(self):
        """When, how often and with which build it was measured, in lines."""
        counts = Counter(replace(pair, round=1) for pair, _ in self._pairs)
        return measured.pairs([one for _, one in self._pairs], list(counts.values()))

    def _rounds(self, pair):
        """Both runs of each round."""
        for one, result in self._pairs:
            if one == replace(pair, round=one.round) and all(_well(result, who) for who in CONTENDERS):
                yield tuple(result[who] for who in CONTENDERS)

    def _figures(self, pair, figure):
        """A figure of both runs, of each round that has it for both."""
        found = (tuple(map(figure, runs)) for runs in self._rounds(pair))
        return [both for both in found if None not in both]

    def series(self, pair):
        """The processor seconds by time of stock and of the node, in the first round that has both; or None."""
        both = (tuple(run.get("series") for run in runs) for runs in self._rounds(pair))
        return next(filter(all, both), None)

    def count(self, pair):
        """How often a pair was measured."""
        return sum(1 for _ in self._rounds(pair))

    def both(self, pair, figure):
        """The medians of a figure, of stock and of the node; or None."""
        rounds = self._figures(pair, figure)
        return tuple(map(median, zip(*rounds))) if rounds else None

    def gain(self, pair, figure):
        """Stock's figure over the node's in each round; the median, or None."""
        gains = [over(stock, node) for stock, node in self._figures(pair, figure)]
        return median(gains) if gains else None

    def least_heap(self, who):
        """The least heap in MB that let a contender's job end well, and its memory in bytes then; or None."""
        well = [(pair.heap_mb, one[who]["map_rss_bytes"]) for pair, one in self._pairs if pair.only == who and _well(one, who)]
        return min(well, key=lambda one: one[0], default=None)

    @staticmethod
    def differs():
        """How the machine and the method differ from the paper's."""
        return [
            "Theirs: Hadoop 0.20.205, splits of 64 MB, mappers in the firmware of an SSD, with processors of its own. Here: "
            "Hadoop 3.4.2, splits of 128 MB (files of 126,000,000 bytes), mappers in a process on the DataNode's machine. It uses "
            "the machine's processors, so the row of the whole machine counts it.",
            "Stock's task has Hadoop's mapper in Java and the node the same program in Rust, so most of the gain is the language. "
            "The paper compares Java on the host with C in the device in the same way.",
            "Ratios are medians over rounds of stock's figure over the node's; of an even number of rounds, the lower of the "
            "middle two. Both run in turn on one cluster, and their outputs are the same bytes.",
        ]


def _well(result, who):
    """Whether a contender ran, and its job ended well."""
    return result.get(who) is not None and "failed" not in result[who]


def _check(run):
    """Reads what the comparisons read of a run."""
    elapsed_s(run) + run["wall_s"] + maps_s(run) + task_s(run) + sum(run["cpu_s"][name] for name in _PROCESSORS)
    run["read_bytes"]["hdfs"] + run["read_bytes"]["calls"] + run["map_rss_bytes"] + run["counters"].get("NODE_BYTES_READ", 0)
    if run.get("series"):
        sum(sum(run["series"][name]) for name in ("tasks", "node", "machine")) + run["series"]["every_s"]


def read(path):
    """Reads the results that isc.py wrote. Fails if the file is something else."""
    text = path.read_text()
    try:
        told = json.loads(text)
        name = told["study"]
        study = Study(told) if name == "isc-hadoop" else None
    except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        missing = " is missing" if isinstance(error, KeyError) else ""
        raise CompareError(f"{path}: no isc.json of lab/bench/hadoop/isc.py: {error}{missing}") from error
    if study is None:
        raise CompareError(f"{path}: is of the study '{name}', not isc-hadoop")
    return study


def reach_row(section, what, ours, least, paper=None):
    """Adds a ratio that should be at least `least`, a figure of the paper, next to the paper's own if it has one."""
    if ours is None:
        section.row(f"{what}: not measured", paper=paper)
        return
    verdict = "held" if ours >= least.value else "missed"
    section.row(f"{what}; at least {least.value:g}: {verdict}", ours, paper)


def told_row(section, what, ours):
    """Adds a figure of ours, or that it was not measured."""
    section.row(what if ours is not None else f"{what}: not measured", ours)


def medians_rows(section, what, both):
    """Adds the medians of stock and of the node."""
    for who, ours in zip(CONTENDERS, both or (None, None)):
        told_row(section, f"{what}, {who}", ours)
