"""Measures one cell: a job on a fresh copy of its input, on an emulated disk, with a page cache of a fixed size."""

import shutil
from contextlib import ExitStack
from dataclasses import replace

from harness import emulated, limits

from .. import config, history
from ..cluster import Cluster, ClusterError
from ..config import ACTIVE
from ..disks import dirty_limit, traffic
from . import jobs, memory, phases
from .image import hdfs_of, input_paths

MIB = 2**20
DIRTY_SHARE, DIRTY_LEAST_BYTES = 0.2, 16 * MIB
"""The part of the page cache that may wait to be written: Linux's own default."""
MAP_HEAP_MB = 160
"""The heap of a map task in addition to its sort buffer."""
REDUCE_HEAP_MB = 256
"""The paper's Hadoop gave each task 200 MB; Hadoop 3 needs a little more."""
REDUCES_AT_ONCE = 1
POINTS = 4000
GROUP_BYTES = 1 << 40
"""The control group's limit until the cache's rule begins."""
COUNTERS = (
    "MAP_OUTPUT_BYTES", "MAP_OUTPUT_RECORDS", "REDUCE_OUTPUT_RECORDS", "SPILLED_RECORDS", "TOTAL_LAUNCHED_MAPS",
    "CPU_MILLISECONDS", "GC_TIME_MILLIS", "HDFS_BYTES_READ", "HDFS_BYTES_WRITTEN",
)  # fmt: skip


class Invalid(Exception):
    """A job's counters say that it did not do its work."""


def measure(cell, bench):
    """Runs a cell. Returns its result, ready for JSON. `bench` has jars, images, folders and options."""
    image = bench.memory / "cell.img"
    bench.images.copy(cell, image)
    try:
        result, told, ended_ms = _run(cell, bench, image)
        bench.images.note(cell, image)
        report = result.pop("report")
    finally:
        image.unlink(missing_ok=True)
    spans = phases.spans(told[-1], ended_ms)
    result["phases"] = phases.split(report, report["started_unix_ms"], spans, cell.slower)
    result["submitted_s"] = (told[0].submitted_ms - report["started_unix_ms"]) / 1000 / cell.slower
    result.update(_of_report(report))
    # Only traces are drawn. Results are kept, so they should be small.
    result["points"] = _thinned(report["activity"], POINTS if cell.scale == 1 else 0)
    return result


def _thinned(activity, most):
    """At most `most` points, evenly chosen."""
    points = activity["points"]
    every = -(-len(points) // most) if most and points else len(points) + 1
    return {"each": activity["requests_per_point"] * every, "list": points[::every] if most else []}


def _of_report(report):
    activity, results = report["activity"], report["results"]
    return {
        "valid": report["valid"],
        "lag": report["lag"],
        "device_seconds": results["elapsed_ns"] / 1e9,
        "device_joules": results["joules"],
        "emulated_reads": {key: activity["reads"][key] for key in ("requests", "in_order")},
        "emulated_writes": {key: activity["writes"][key] for key in ("requests", "in_order")},
    }


def _run(cell, bench, image):
    folder, mount = bench.work, bench.work / "disk"
    shutil.rmtree(folder / "cluster", ignore_errors=True)
    active = cell.flavour == ACTIVE
    with ExitStack() as stack:
        group = stack.enter_context(limits.memory(GROUP_BYTES))
        if group is None:
            raise ClusterError("memory can't be limited: that needs root and version 1 control groups")
        emulation = stack.enter_context(emulated.emulated(bench.merganser, cell.device, image, folder, mount, bench.path_us, cell.slower))
        stack.enter_context(dirty_limit(mount, max(DIRTY_LEAST_BYTES, round(cell.cache_bytes * DIRTY_SHARE))))
        with ExitStack() as running:
            held = running.enter_context(memory.cache_of(group, cell.cache_bytes))
            cluster = Cluster(
                folder / "cluster", bench.jars, 1, [(mount / "local",)], cell.block_mb << 20, group, hdfs=hdfs_of(mount)
            )
            running.enter_context(cluster)
            node_mb = config.AM_MB + (config.MAPS_AT_ONCE + REDUCES_AT_ONCE) * config.TASK_MB
            cluster.nodes = [replace(node, memory_mb=node_mb) for node in cluster.nodes]
            cluster.start_node(0, cell.flavour, bench.merganser if active else None)
            result, told = _job(cell, bench, cluster, mount)
            result["processes_peak_bytes"] = held.processes_peak_bytes
    result["report"] = emulation.report()
    return result, told, told[-1].submitted_ms + round(told[-1].elapsed_s * 1000)


def _job(cell, bench, cluster, mount):
    named = jobs.values(cell.data_bytes, bench.work / "dfsio.log", input_paths(cell.job))
    before = traffic([mount])
    done = cluster.run(
        jobs.JOBS[cell.job].program, jobs.job_words(cell.job, named), cell.flavour, settings(cell, named), bench.timeout_s
    )
    after = traffic([mount])
    if not done.job_ids:
        raise ClusterError(f"{cell.job}: no job was seen")
    told = [history.parse(cluster.history(one)) for one in done.job_ids]
    check(cell, told)
    counters = {name: sum(one.counter(name) for one in told) for name in COUNTERS}
    return {
        # In the time of the disk.
        "elapsed_s": sum(one.elapsed_s for one in told) / cell.slower,
        "wall_s": done.wall_s,
        "phase_s": {phase: sum(one.phase_s(phase) for one in told) / cell.slower for phase in ("map", "spill", "shuffle", "sort", "reduce")},
        "device_read_bytes": after[0] - before[0],
        "device_written_bytes": after[1] - before[1],
        "maps": sum(1 for one in told for attempt in one.attempts if attempt.name.startswith("m")),
        "counters": counters,
        "failures": [f"{failure.name}: {failure.reason}" for one in told for failure in one.failures],
    }, told


def check(cell, told):
    """Fails if a job did not succeed, or lost records."""
    for one in told:
        if one.state != "SUCCEEDED":
            raise Invalid(f"{cell.name}: {one.job_id} ended as {one.state}")
        put, got = one.counter("MAP_OUTPUT_RECORDS"), one.counter("REDUCE_OUTPUT_RECORDS")
        if jobs.JOBS[cell.job].counted and (put != got or put == 0):
            raise Invalid(f"{cell.name}: {put} records of map output, but {got} of output")


def settings(cell, named):
    """All settings of the job."""
    chosen = {
        "mapreduce.task.io.sort.mb": cell.sort_mb,
        "mapreduce.task.io.sort.factor": cell.factor,
        "mapreduce.map.sort.spill.percent": "0.80",
        "mapreduce.map.java.opts": config.heap(cell.sort_mb + MAP_HEAP_MB),
        "mapreduce.reduce.java.opts": config.heap(REDUCE_HEAP_MB),
        "mapreduce.job.running.map.limit": config.MAPS_AT_ONCE,
        "mapreduce.job.running.reduce.limit": REDUCES_AT_ONCE,
        **jobs.job_settings(cell.job, named),
        **config.flavour_settings(cell.flavour),
    }
    if cell.least_segment:
        chosen["merganser.shuffle.defer.min-segment-bytes"] = cell.least_segment
    return chosen
