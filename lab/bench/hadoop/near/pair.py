"""Measures a pair: the same job by stock Hadoop and with the node, and compares their outputs byte for byte.

    evict the blocks ── job ── history, output ── evict the blocks ── the other one's job ── ...
        ▲ counts before  ▲ counts after

NodeManager, DataNodes and the node are the same processes for both. Times of tasks are those of the job's history.
"""

import hashlib
import os
import time

from .. import config, history
from ..cluster import ClusterError
from ..config import ACTIVE, STOCK as STOCK_FLAVOUR
from . import inputs, jobs, web
from .pairs import NODE, SORT_MB
from .processes import MASTER, Watch, machine_cpu_s

REDUCES = 2
REDUCE_HEAP_MB = 256
OUTPUT = "/output"
COLLECTOR = "org.apache.hadoop.mapred.NodeMapOutput"
INPUT_FORMAT = "io.merganser.hadoop.node.NodeInputFormat"
COUNTERS = (
    "MAP_INPUT_RECORDS", "MAP_OUTPUT_RECORDS", "MAP_OUTPUT_BYTES", "SPILLED_RECORDS", "HDFS_BYTES_READ", "FILE_BYTES_READ",
    "CPU_MILLISECONDS", "GC_TIME_MILLIS", "NODE_BYTES_READ", "NODE_BYTES_SENT", "NODE_CPU_MILLISECONDS", "MAPS_ON_NODE",
)  # fmt: skip


class Invalid(Exception):
    """A pair that did not measure what it should; the text says why."""


def measure(pair, bench, cluster):
    """Runs a pair. Returns its result, ready for JSON. `bench` has the path of the socket, and options."""
    runs, outputs = {}, {}
    for who in pair.contenders:
        evict(cluster.data_dirs)
        try:
            runs[who], outputs[who] = _run(pair, who, bench, cluster)
        except ClusterError as error:
            if not pair.only:
                raise
            runs[who] = {"failed": str(error).strip().splitlines()[0]}
    if len(set(outputs.values())) > 1:
        raise Invalid(f"{pair.name}: the outputs differ")
    return {**runs, "output_sha256": next(iter(outputs.values()), None)}


def evict(folders):
    """Drops blocks from the page cache, and nothing else: jars and libraries stay there for both."""
    for folder in folders:
        for path in folder.glob("**/blk_*"):
            with open(path, "rb") as block:
                os.fsync(block.fileno())
                os.posix_fadvise(block.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def settings(pair, who, socket):
    """All settings of a job of a contender."""
    chosen = {
        "mapreduce.task.io.sort.mb": SORT_MB,
        "mapreduce.map.sort.spill.percent": "0.80",
        "mapreduce.map.java.opts": config.heap(pair.heap_mb),
        "mapreduce.reduce.java.opts": config.heap(REDUCE_HEAP_MB),
        "mapreduce.job.reduces": REDUCES,
        "mapreduce.job.running.map.limit": pair.devices,
        "mapreduce.job.running.reduce.limit": REDUCES,
    }
    if pair.only:
        chosen["mapreduce.map.maxattempts"] = 1
    if who == NODE:
        chosen |= {
            "mapreduce.job.inputformat.class": INPUT_FORMAT,
            "mapreduce.job.map.output.collector.class": f"{COLLECTOR},{config.STOCK_COLLECTOR}",
            "merganser.node.socket": socket,
        }
    return chosen


def digest(cluster, output):
    """A digest of all parts of an output, in the order of their names."""
    found = hashlib.sha256()
    for path in sorted(web.files(cluster, output)):
        if "/part-" in path:
            found.update(path.encode() + b"\0")
            found.update(web.read(cluster, path))
    return found.hexdigest()


def told_by(cluster, job_id, timeout_s=30):
    """A job's history."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        for path in web.files(cluster, "/history"):
            if job_id in path and path.endswith(".jhist"):
                try:
                    return history.parse(web.read(cluster, path).decode())
                except (OSError, history.BadHistory):
                    # It is moved from one folder to another while we look.
                    break
        time.sleep(0.2)
    raise ClusterError(f"{job_id} left no history below /history")


def _daemons_cpu(cluster):
    """Processor seconds of the node, of all DataNodes, and of the NodeManager."""
    of = {"node": ["map"], "datanodes": [name for name in cluster.running if name.startswith("datanode")], "manager": ["node-0"]}
    return {kind: sum(map(cluster.cpu_seconds, names)) for kind, names in of.items()}


def _run(pair, who, bench, cluster):
    web.remove(cluster, OUTPUT)
    words = jobs.words_of(pair.job, inputs.source(pair), OUTPUT)
    flavour = ACTIVE if who == NODE else STOCK_FLAVOUR
    before, machine_before = _daemons_cpu(cluster), machine_cpu_s()
    with Watch(others={"node": lambda: cluster.cpu_seconds("map"), "machine": machine_cpu_s}) as watch:
        done = cluster.run(jobs.JOBS[pair.job].program, words, flavour, settings(pair, who, bench.socket), bench.timeout_s)
    machine_s = machine_cpu_s() - machine_before
    after = _daemons_cpu(cluster)
    if not done.job_ids:
        raise ClusterError(f"{pair.name}: no job was seen")
    told = [told_by(cluster, one) for one in done.job_ids]
    seen = watch.by_kind()
    check(pair, who, told[0], len(seen["m"]))
    run = {
        **of_history(told),
        "wall_s": done.wall_s,
        "cpu_s": {
            "maps": sum(one.cpu_s for one in seen["m"]),
            "reduces": sum(one.cpu_s for one in seen["r"]),
            "master": sum(one.cpu_s for one in seen[MASTER]),
            **{kind: after[kind] - before[kind] for kind in after},
            "machine": machine_s,
        },
        "read_bytes": {
            "hdfs": told[0].counter("HDFS_BYTES_READ"),
            "calls": sum(one.read_chars for one in seen["m"]),
            "disk": sum(one.read_disk_bytes for one in seen["m"]),
        },
        "map_rss_bytes": max(one.rss_peak_bytes for one in seen["m"]),
        "series": watch.series(),
        "counters": {name: told[0].counter(name) for name in COUNTERS if told[0].counter(name)},
    }
    return run, digest(cluster, OUTPUT)


def of_history(told):
    """Times of a run, from the histories of its jobs. The first one has the maps that are compared."""
    maps = [attempt for attempt in told[0].attempts if attempt.name.startswith("m")]
    begins, ends = [one.bars[0].start_ms for one in maps], [one.bars[-1].end_ms for one in maps]
    return {
        "elapsed_s": sum(one.elapsed_s for one in told),
        "maps_s": (max(ends) - min(begins)) / 1000,
        "task_s": [(end - begin) / 1000 for begin, end in zip(begins, ends)],
    }


def check(pair, who, told, seen):
    """Fails if a job did not do what its contender should."""
    if told.state != "SUCCEEDED":
        raise ClusterError(f"{pair.name}: {who}'s job ended as {told.state}")
    maps = sum(1 for attempt in told.attempts if attempt.name.startswith("m"))
    if maps != pair.files:
        raise Invalid(f"{pair.name}: {maps} maps instead of {pair.files}")
    if who == NODE and told.counter("MAPS_ON_NODE") != maps:
        reasons = sorted(name for group in told.counters.values() for name in group if name.startswith("MAPS_ON_HOST_"))
        raise Invalid(f"{pair.name}: only {told.counter('MAPS_ON_NODE')} of {maps} maps were on the node: {', '.join(reasons)}")
    if seen < maps:
        raise Invalid(f"{pair.name}: only {seen} of {maps} map tasks were seen in /proc")
