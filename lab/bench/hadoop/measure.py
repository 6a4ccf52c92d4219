"""Runs the points of a scenario and counts what each job cost.

    settle the disks, drop the caches ── fresh NodeManagers ── job ── settle ── count, check the output

Bytes are those of the intermediate disks alone, since HDFS is on another disk. Pages that are dirty when the job
ends are written back before the bytes are counted.
"""

import re
import shutil
import time
from contextlib import contextmanager
from dataclasses import asdict, replace

from harness import limits
from harness.measure import settle
from harness.report import judge

from . import chart, config, history, workloads
from .cluster import Cluster, ClusterError
from .config import ACTIVE, STOCK
from .disks import disks, traffic
from .scenarios import GIB, MAP_ONLY, MIB

COUNTERS = (
    "MAP_OUTPUT_BYTES", "MAP_OUTPUT_RECORDS", "MAP_OUTPUT_MATERIALIZED_BYTES", "SPILLED_RECORDS", "FILE_BYTES_READ",
    "FILE_BYTES_WRITTEN", "REDUCE_SHUFFLE_BYTES", "REDUCE_INPUT_RECORDS", "CPU_MILLISECONDS", "GC_TIME_MILLIS",
    "FAILED_SHUFFLE", "NUM_UBER_SUBMAPS",
)  # fmt: skip
BLOCK_BYTES = GIB
"""The block size of HDFS: more than any map's input, so that each file is one split."""
NAMES = {STOCK: "Stock", ACTIVE: "Merganser", MAP_ONLY: "Merganser in map tasks only"}


class Bench:
    """Everything that the points of all scenarios share."""

    def __init__(self, args, jars, say):
        self.args, self.jars, self.say = args, jars, say

    def scenario(self, name, scenario):
        """Runs a scenario. Returns its result, ready for JSON, and its execution charts by name."""
        size_bytes = round(self.args.size * self.args.scale)
        self.say(f"{name}: {scenario.title}, {size_bytes / MIB:.0f} MiB, {self.args.device} disk")
        contenders = self.args.contenders or scenario.contenders
        points, charts = [], {}
        for point in self._chosen(scenario):
            rounds, histories = self._point(point, contenders)
            points.append(
                {
                    "name": point.name,
                    "settings": _told(point),
                    "rounds": rounds,
                    "claims": [judge(claim, rounds) for claim in scenario.claims],
                }
            )
            title = f"{scenario.title}{', ' * bool(point.name)}{point.name}"
            note = f"{point.size_bytes / MIB:.0f} MiB, {self.args.device} disk, the first round."
            charts["-".join([name, *re.findall(r"\w+", point.name)])] = chart.page(
                title, note, [(NAMES[who], one) for who, one in histories.items()]
            )
        return {"scenario": name, "title": scenario.title, "input_bytes": size_bytes, "points": points}, charts

    def make_inputs(self, name, scenario):
        """Makes the inputs of a scenario, and measures nothing."""
        for point in self._chosen(scenario):
            self.say(f"{name}{', ' * bool(point.name)}{point.name}: making the input")
            with self._cluster(point) as (cluster, _):
                self._inputs(cluster, point)

    def _chosen(self, scenario):
        size_bytes = round(self.args.size * self.args.scale)
        wanted = self.args.points or ""
        points = [point for point in scenario.points(size_bytes) if wanted in point.name]
        if not points:
            raise ClusterError(f"no point of it has {wanted!r} in its name")
        return points

    def _inputs(self, cluster, point):
        """Starts stock NodeManagers and makes missing inputs. Returns the paths of all inputs in HDFS."""
        for index in range(point.nodes):
            cluster.start_node(index)
        return workloads.make_inputs(
            cluster, point.workload, point.size_bytes, point.record_bytes, point.maps, self.args.timeout
        )

    @contextmanager
    def _cluster(self, point):
        """HDFS and a ResourceManager, limited to the point's memory, with fresh intermediate disks."""
        folder = self.args.dir
        image_bytes = round(point.size_bytes * point.workload.expansion * 4 / point.nodes) + GIB
        throttled = self.args.device == "throttled"
        with (
            limits.memory(point.memory_limit_bytes) as group,
            disks(folder, point.nodes, image_bytes, throttled, point.dirty_bytes) as mounted,
        ):
            local_dirs = [(disk / "local",) for disk in mounted]
            node_mb = config.AM_MB + 2 * config.TASK_MB + point.reduces_at_once * point.reduce_mb
            with Cluster(folder / "cluster", self.jars, point.nodes, local_dirs, BLOCK_BYTES, group) as cluster:
                cluster.nodes = [replace(node, memory_mb=node_mb) for node in cluster.nodes]
                yield cluster, mounted

    def _point(self, point, contenders):
        """All rounds of a point, each a run by contender, and the first round's histories."""
        rounds, histories, right = [], {}, None
        with self._cluster(point) as (cluster, mounted):
            inputs = self._inputs(cluster, point)
            for number in range(1, self.args.pairs + 1):
                one = {}
                for who in contenders:
                    run, told, content = self._run(cluster, mounted, point, who, inputs)
                    if right is not None and content != right:
                        raise ClusterError(f"{who}'s output differs: {content}, and the first was {right}")
                    right = content
                    histories.setdefault(who, told)
                    one[who] = run
                    self.say(
                        f"  {point.name or 'round'} {number}/{self.args.pairs}  {who:<10} {run['elapsed_s']:7.1f} s  "
                        f"written {run['device_written_bytes'] / MIB:7.0f} MiB  read {run['device_read_bytes'] / MIB:7.0f} MiB"
                    )
                rounds.append(one)
        return rounds, histories

    def _run(self, cluster, mounted, point, who, inputs):
        """Runs one job of one contender. Returns its cost, its history, and a summary of its output."""
        flavour = flavour_of(who)
        for index in range(point.nodes):
            cluster.stop_node(index)
        for disk in mounted:
            shutil.rmtree(disk / "local", ignore_errors=True)
        for index in range(point.nodes):
            cluster.start_node(index, flavour, self.args.merganser, heap_mb=256)
        settings = self._job_settings(point, who)
        output = "/output"
        cluster.hdfs("-rm", "-r", "-f", "-skipTrash", output)
        settle(cold=True)
        before = traffic(mounted)
        words = workloads.words_of(point.workload, inputs, output, point.reduces)
        done = cluster.run(point.workload.program, words, flavour, settings, self.args.timeout)
        ended = time.monotonic()
        settle(cold=False)
        settle_s = time.monotonic() - ended
        after = traffic(mounted)
        memory = {
            f"{kind}_rss_bytes": max((cluster.resident_bytes(f"{name}-{index}") for index in range(point.nodes)), default=0)
            for kind, name in (("node_manager", "node"), ("merge", "merge"))
        }
        cpu = {
            f"{kind}_cpu_s": sum(cluster.cpu_seconds(f"{name}-{index}") for index in range(point.nodes))
            for kind, name in (("node_manager", "node"), ("merge", "merge"))
        }
        if len(done.job_ids) != 1:
            raise ClusterError(f"one job was to run, and these were seen: {done.job_ids}")
        told = history.parse(cluster.history(done.job_ids[0]))
        content = workloads.check(cluster, point.workload, output, point.record_bytes, self.args.timeout)
        cluster.hdfs("-rm", "-r", "-f", "-skipTrash", output)
        run = {
            "elapsed_s": told.elapsed_s,
            "wall_s": done.wall_s,
            "settle_s": settle_s,
            "device_read_bytes": after[0] - before[0],
            "device_written_bytes": after[1] - before[1],
            **memory,
            **cpu,
            "spills_per_map": _spills(cluster.task_logs(done.job_ids[0])),
            "failures": [asdict(failure) for failure in told.failures],
            "phase_s": {phase: told.phase_s(phase) for phase in chart.PHASES},
            "counters": {name: told.counter(name) for name in COUNTERS if told.counter(name)},
            "merganser": {
                name: value
                for group, counters in told.counters.items()
                if "merganser" in group.lower()
                for name, value in counters.items()
            },
            "output": content,
        }
        return run, told, content

    def _job_settings(self, point, who):
        output_bytes = point.size_bytes * point.workload.expansion / point.maps
        record_bytes = point.workload.output_record_bytes or point.record_bytes
        sort_mb = workloads.sort_mb(output_bytes, record_bytes, point.spills)
        return {
            "mapreduce.task.io.sort.mb": sort_mb,
            "mapreduce.map.java.opts": config.heap(sort_mb + 160),
            "mapreduce.reduce.java.opts": config.heap(point.reduce_heap_mb),
            "mapreduce.reduce.memory.mb": point.reduce_mb,
            "mapreduce.job.reduces": point.reduces,
            "mapreduce.job.running.map.limit": config.MAPS_AT_ONCE * point.nodes,
            "mapreduce.job.running.reduce.limit": point.reduces_at_once * point.nodes,
            "merganser.workloads.record-bytes": point.record_bytes,
            **config.flavour_settings(flavour_of(who), reduce_side=who != MAP_ONLY),
            **point.settings,
            **self.args.set,
        }


def flavour_of(who):
    """The flavour of a contender's nodes and jobs."""
    return STOCK if who == STOCK else ACTIVE


def _spills(logs):
    """The largest number of spills in the log of any map."""
    return max((len(re.findall(r"Finished spill \d+", path.read_text(errors="replace"))) for path in logs), default=0)


def _told(point):
    """The parameters of a point, for its result."""
    return {
        "size_bytes": point.size_bytes,
        "record_bytes": point.workload.output_record_bytes or point.record_bytes,
        "maps": point.maps,
        "reduces": point.reduces,
        "reduces_at_once": point.reduces_at_once,
        "spills": point.spills,
        "nodes": point.nodes,
        "memory_limit_bytes": point.memory_limit_bytes,
        "dirty_bytes": point.dirty_bytes,
        "reduce_heap_mb": point.reduce_heap_mb,
    }
