"""The comparisons, and the claims on their results.

A scenario is one or more *points* (a record size, a number of reducers); at each point every contender does the
same job on the same input, in turn, as often as there are pairs.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from harness.plan import Claim

from .config import ACTIVE, STOCK
from .papers.published import LESS_TIME, LESS_WRITTEN
from .workloads import WORKLOADS, Workload

GIB, MIB = 2**30, 2**20

MAP_ONLY = "active-map"
"""Deferred map outputs, stock reducers: the paper's ActiveSort+map."""
CONTENDERS = (STOCK, ACTIVE, MAP_ONLY)

PAPER_MAPS = 16
"""Splits of 500 MB, of 8 GB (5.1.2)."""
PAPER_SPILLS = 4
DAEMONS_BYTES, NODE_BYTES = GIB, 768 * MIB
"""The resident memory of the cluster's daemons, and of a NodeManager with the tasks that run at once. The rest of the
memory limit is page cache."""
REDUCER_BYTES = 384 * MIB
"""Memory for each reducer in addition to the two that `NODE_BYTES` counts: 256 MB of heap, and its JVM."""
LEAST_REDUCE_HEAP_MB = 256
"""A reducer with less is busy collecting garbage."""


@dataclass(frozen=True)
class Point:
    """One job, with everything that decides how it runs."""

    name: str
    workload: Workload
    size_bytes: int
    record_bytes: int = 4096
    maps: int = PAPER_MAPS
    reduces: int = 1
    spills: int = PAPER_SPILLS
    nodes: int = 1
    cache_bytes: int | None = None
    """Page cache in addition to the processes' memory. None means half the input, about as much as the paper's 8 GB
    machine had left for 8 GB of data."""
    reduces_at_once: int = 2
    """On one node."""
    reduce_mb: int = 1024
    """The memory that YARN counts for a reducer."""
    settings: dict = field(default_factory=dict)

    @property
    def memory_limit_bytes(self):
        """The memory limit of the control group that all daemons and tasks run in."""
        cache = self.size_bytes // 2 if self.cache_bytes is None else self.cache_bytes
        return DAEMONS_BYTES + self.nodes * NODE_BYTES + cache

    @property
    def dirty_bytes(self):
        """A tenth of the data may wait to be written: Linux's own share of the paper's memory."""
        return max(16 * MIB, self.size_bytes // 10)

    @property
    def reduce_heap_mb(self):
        """An eighth of the data that a reducer gets, as in the paper, so that the output of a map does not fit in it."""
        return max(LEAST_REDUCE_HEAP_MB, self.size_bytes // self.reduces // 8 // MIB)


def _less(of):
    """How much less than stock, in percent."""
    return lambda runs: 100 * (1 - of(runs[ACTIVE]) / of(runs[STOCK]))


def _elapsed(run):
    return run["elapsed_s"]


def _written(run):
    return run["device_written_bytes"]


def _writes(at_least):
    return Claim("bytes written to the intermediate disk, less than stock", _less(_written), at_least=at_least, unit=" %")


def _faster(at_least):
    return Claim("elapsed, less than stock", _less(_elapsed), at_least=at_least, unit=" %")


SAME_TIME = _faster(-2)


@dataclass(frozen=True)
class Scenario:
    """Points and claims; a claim is judged at each point."""

    title: str
    points: Callable
    """A function from the input's size in bytes to the points."""
    claims: tuple = (SAME_TIME,)
    contenders: tuple = (STOCK, ACTIVE)


def _one(workload, **more):
    return lambda size: [Point("", WORKLOADS[workload], size, **more)]


def _sweep(size):
    sizes = {"100 B": 100, "512 B": 512, "1 KiB": 1024, "4 KiB": 4096, "32 KiB": 32768}
    return [Point(name, WORKLOADS["sort"], size, record_bytes=record) for name, record in sizes.items()]


def _memory(size):
    # Figure 15: 1, 2, 4 and 8 GB for 2 GB of data, on a machine that takes 0.45 GB for itself.
    shares = {"1 GB": 0.275, "2 GB": 0.775, "4 GB": 1.775, "8 GB": 3.775}
    return [
        Point(name, WORKLOADS["sort"], size, cache_bytes=max(128 * MIB, round(size * share)))
        for name, share in shares.items()
    ]


def _reducers(size):
    # Figure 16: pairs of reducers at once and reducers in total.
    pairs = ((1, 1), (1, 2), (2, 2), (1, 4), (2, 4), (4, 4))
    return [
        Point(f"{at_once} at once, {count} in all", WORKLOADS["record-sort"], size, reduces=count, reduces_at_once=at_once,
              cache_bytes=size // 2 + max(0, at_once - 2) * REDUCER_BYTES)
        for at_once, count in pairs
    ]


def _nodes(size):
    # Figure 17: data, maps and reducers grow with the nodes.
    return [
        Point(f"{nodes} node{'s' * (nodes > 1)}", WORKLOADS["record-sort"], size * nodes,
              maps=PAPER_MAPS * nodes, reduces=nodes, nodes=nodes)
        for nodes in (1, 2)
    ]  # fmt: skip


def _uber(size):
    # One process for master and tasks, so the job must be small.
    point = Point("", WORKLOADS["sort"], size // 16, maps=2)
    return [
        replace(
            point,
            settings={
                "mapreduce.job.ubertask.enable": "true",
                "mapreduce.job.ubertask.maxbytes": str(2 * size),
                "yarn.app.mapreduce.am.command-opts": "-Xmx640m --add-opens=java.base/java.lang=ALL-UNNAMED",
            },
        )
    ]


def _fetchers(size):
    return [
        Point("", WORKLOADS["sort"], size, reduces=64, reduces_at_once=64, reduce_mb=256,
              settings={
                  "yarn.app.mapreduce.am.job.reduce.rampup.limit": "1.0",
                  "mapreduce.job.reduce.slowstart.completedmaps": "0.05",
                  "mapreduce.reduce.java.opts": "-Xmx96m -XX:+UseSerialGC --add-opens=java.base/java.lang=ALL-UNNAMED",
              }, cache_bytes=size // 2 + 10 * GIB)
    ]  # fmt: skip


SERVICE_MEMORY_BYTES = 256 * MIB
"""The memory limit of merganser hadoop serve, and of merges in Java, on a node."""
NODE_MANAGER_BYTES = 512 * MIB
"""Resident memory that a NodeManager with 256 MB of heap may have in addition."""


def _node_memory(runs):
    return (runs[ACTIVE]["node_manager_rss_bytes"] + runs[ACTIVE]["merge_rss_bytes"]) / MIB


COMPRESSED = {"mapreduce.map.output.compress": "true"}
ENCRYPTED = {"mapreduce.job.encrypted-intermediate-data": "true"}

SCENARIOS = {
    "sort-4k": Scenario(
        "Sort, records of 4 KiB, four spills per map, one reducer",
        _one("sort"),
        (_writes(LESS_WRITTEN.value), _faster(LESS_TIME.value)),
    ),
    "terasort-4k": Scenario(
        "TeraSort, records of 4 KiB, four spills per map, one reducer",
        _one("record-sort"),
        (_writes(LESS_WRITTEN.value), _faster(LESS_TIME.value)),
    ),
    "terasort-100": Scenario(
        "TeraSort of the examples, records of 100 bytes", _one("terasort", record_bytes=100), (_writes(0), SAME_TIME)
    ),
    "record-sweep": Scenario("Sort, by size of records", _sweep, (_writes(0), SAME_TIME)),
    "text-sort": Scenario("Sort of lines by a text", _one("text-sort"), (_writes(0), SAME_TIME)),
    "join": Scenario("repartition join of visits and users", _one("join"), (_writes(0), SAME_TIME)),
    "inverted-index": Scenario("inverted index of a text", _one("inverted-index", reduces=2), (_writes(0), SAME_TIME)),
    "wordcount": Scenario("WordCount with its combiner: the stock path", _one("wordcount", reduces=2)),
    "memory": Scenario("Sort, records of 4 KiB, by the machine's memory", _memory, (_writes(0), SAME_TIME)),
    "reducers": Scenario("TeraSort, records of 4 KiB, by reducers", _reducers, (_writes(0), SAME_TIME)),
    "nodes": Scenario("TeraSort, records of 4 KiB, by NodeManagers", _nodes, (_writes(0), SAME_TIME)),
    "compressed": Scenario("text sort with compressed map outputs", _one("text-sort", settings=COMPRESSED)),
    "encrypted": Scenario("Sort with encrypted intermediate data: the stock path", _one("sort", settings=ENCRYPTED)),
    "one-spill": Scenario("Sort whose maps spill once: the stock path", _one("sort", spills=1)),
    "uber": Scenario("a small Sort inside its master: the stock path", _uber),
    "fetchers64": Scenario(
        "64 reducers that fetch at once",
        _fetchers,
        (
            Claim(
                "resident in the NodeManager and its merge process",
                _node_memory,
                at_most=(NODE_MANAGER_BYTES + SERVICE_MEMORY_BYTES) / MIB,
                unit=" MiB",
            ),
        ),
    ),
}
"""By name, the most telling first."""
