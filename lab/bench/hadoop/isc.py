#!/usr/bin/env python3
"""Runs Hadoop jobs with map tasks on the node where the block is, and the same jobs with stock Hadoop, as "In-Storage
Computing for Hadoop MapReduce Framework" did with an SSD. See lab/bench/README.md.

Pairs that were measured are kept, with the build that measured them, so the same command continues where an earlier
one ended. A line near the end says for how many no time was left. `compare.py isc-hadoop-... --results isc.json`
compares them with the paper's.
"""

import argparse
import datetime
import json
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import build, emulated, limits, machine  # noqa: E402
from harness.signals import end_orderly, raise_if_interrupted  # noqa: E402
from harness.tools import BENCH, REPOSITORY  # noqa: E402

from hadoop import config, report  # noqa: E402
from hadoop.budget import Budget  # noqa: E402
from hadoop.cluster import Cluster, ClusterError  # noqa: E402
from hadoop.config import Jars  # noqa: E402
from hadoop.history import BadHistory  # noqa: E402
from hadoop.near import calls, devices, inputs  # noqa: E402
from hadoop.near import pair as one  # noqa: E402
from hadoop.near.pairs import (  # noqa: E402
    DEVICE_MB_S, DEVICES, FIGURES, LINE_BYTES, NODE, OWN, SLOW, TASK_BYTES, Pair, pairs_of,
)  # fmt: skip
from hadoop.run import fetch_jars  # noqa: E402
from hadoop.kept import Kept, of_cell  # noqa: E402

BLOCK_BYTES = 128 << 20
TEXT = "text/words"
"""A local copy of the input of a map task, for calls outside of Hadoop."""
ROUNDS_MAX = 99
"""Rounds that are looked for when results are written."""
NODE_MB_PER_MAP = 160
"""`--memory` of the node: a map may have as much as a task's sort buffer."""
FAILURES = (ClusterError, BadHistory, one.Invalid, emulated.EmulationError, subprocess.SubprocessError, OSError)


def arguments(words=None):
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figure", nargs="*", metavar="FIGURE", help="names, or `all`")
    parser.add_argument("--list", action="store_true", help="name the figures")
    parser.add_argument("--pairs", action="store_true", help="name the pairs of the figures in their order, and whether they are kept")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="how often to measure each pair [3]")
    parser.add_argument("--minutes", type=float, metavar="M", help="begin no pair that would end later than this")
    parser.add_argument("--only", metavar="TEXT", help="only pairs whose name has this")
    parser.add_argument("--make-inputs", action="store_true", help="make the inputs of the figures, and measure nothing")
    parser.add_argument("--calls", action="store_true", help="also the same SSDlet outside of Hadoop")
    parser.add_argument("--results", type=Path, help="the folder for isc.json [this machine's newest lab/bench/results/<date>-<machine>-isc]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also everything as one JSON file, besides isc.json there")
    parser.add_argument("--dir", type=Path, default=BENCH / ".work" / "isc", help="where pairs are kept, and HDFS, disks and logs go")
    parser.add_argument("--jars", type=Path, help="Hadoop's jars [fetched by Maven into --dir]")
    parser.add_argument("--plugin", type=Path, default=REPOSITORY / "hadoop/java/plugin/target/merganser-hadoop-0.1.0.jar")
    parser.add_argument("--workloads", type=Path, default=REPOSITORY / "hadoop/java/workloads/target/merganser-workloads-0.1.0.jar")
    parser.add_argument("--merganser", type=Path, default=REPOSITORY / "target/release/merganser")
    parser.add_argument("--timeout", type=float, default=900, metavar="S", help="longest that one job may run [900]")
    args = parser.parse_args(words)
    if "all" in args.figure:
        args.figure = list(FIGURES)
    unknown = [name for name in args.figure if name not in FIGURES]
    if unknown:
        parser.error(f"no figure is called {', '.join(unknown)}; --list names them")
    if args.rounds < 1 or args.minutes is not None and args.minutes <= 0:
        parser.error("--rounds must be at least 1, and --minutes above 0")
    return args


def say(text):
    """Prints progress."""
    print(text, flush=True)


@contextmanager
def cluster_for(disk, bench, node=True, made=None):
    """A cluster with the blocks on this kind of disk, and the node. `made`: the only DataNode, whose disk is to be filled."""
    maps = 1 if disk == OWN else max(DEVICES)
    with ExitStack() as stack:
        folder, data_dirs, more = bench.dir / "cluster", None, None
        if disk != OWN:
            folder = bench.dir / "devices" / "cluster"
            mounted = stack.enter_context(devices.disks(folder.parent, max(DEVICES), DEVICE_MB_S if disk == SLOW else 0))
            data_dirs = [place / "datanode" for place in mounted]
        if made is not None:
            # The NameNode would wait for the blocks of all DataNodes.
            data_dirs, more = [data_dirs[made]], {"dfs.namenode.safemode.threshold-pct": "0"}
        cluster = Cluster(folder, bench.jars, 1, None, BLOCK_BYTES, data_dirs=data_dirs, hdfs_more=more)
        stack.enter_context(cluster)
        node_mb = config.AM_MB + (max(maps, config.MAPS_AT_ONCE) + one.REDUCES) * config.TASK_MB
        cluster.nodes = [replace(node, memory_mb=node_mb) for node in cluster.nodes]
        cluster.start_node(0)
        if node:
            bench.socket = cluster.start_map(bench.merganser, maps, maps * NODE_MB_PER_MAP)
        yield cluster


def make_inputs(pairs, bench):
    """Makes missing inputs."""
    own = [pair for pair in pairs if pair.disk == OWN]
    if own:
        with cluster_for(OWN, bench, node=False) as cluster:
            for pair in own:
                folder = inputs.folder_of(pair)
                files = max(other.files for other in own if inputs.folder_of(other) == folder)
                if inputs.make(cluster, pair, files, bench.timeout_s):
                    say(f"made {folder}")
            task = Pair("wordcount", TASK_BYTES)
            if task in own and not (bench.dir / TEXT).exists():
                (bench.dir / TEXT).parent.mkdir(exist_ok=True)
                (bench.dir / TEXT).write_bytes(one.web.read(cluster, *inputs.source(task)))
    if any(pair.disk != OWN for pair in pairs):
        done = bench.dir / "devices" / "made"
        for index in range(int(done.read_text()) if done.exists() else 0, max(DEVICES)):
            with cluster_for(SLOW, bench, node=False, made=index) as cluster:
                inputs.make_on_device(cluster, index, bench.dir / "devices" / "text", bench.timeout_s)
            done.write_text(str(index + 1))
            say(f"made /device-{index}")


def warm_up(cluster, bench):
    """A job with the node that is not measured: jars come into the cache, and daemons are compiled."""
    source = "/input/warm-up"
    if not one.web.files(cluster, source):
        inputs.text(cluster, source, LINE_BYTES, 1, bench.timeout_s)
    one.web.remove(cluster, one.OUTPUT)
    settings = one.settings(Pair("wordcount", LINE_BYTES), NODE, bench.socket)
    cluster.run(one.jobs.JOBS["wordcount"].program, [source, one.OUTPUT], config.ACTIVE, settings, bench.timeout_s)


def line_of(pair, result):
    """One line about a result."""
    told = []
    for who in pair.contenders:
        run = result[who]
        if "failed" in run:
            told.append(f"{who} failed")
            continue
        task = sum(run["task_s"]) / len(run["task_s"])
        told.append(
            f"{who} {run['elapsed_s']:.1f} s, task {task:.2f} s, maps' JVMs {run['cpu_s']['maps']:.1f} s of processor, "
            f"machine {run['cpu_s']['machine']:.1f} s, RSS {run['map_rss_bytes'] / 2**20:.0f} MiB"
        )
    return f"  {pair.name}: " + "; ".join(told)


def build_of(args):
    """The build that measures."""
    return build.describe(merganser=args.merganser, plugin=args.plugin, workloads=args.workloads)


def other_build(pair, result, here):
    """Words about a kept result of another build. Stock Hadoop alone has nothing of the node."""
    return build.told(result.get("build"), here, ["workloads"] + ["merganser", "plugin"] * (NODE in pair.contenders))


def state_of(pair, kept, here):
    """One line about what is kept of a pair."""
    result = kept.get(pair)
    if not result:
        return f"{pair.name}: missing, about {pair.expected_s:.0f} s"
    other = other_build(pair, result, here)
    return line_of(pair, result).strip() + (f"; {other}" if other else "")


def written(path):
    """The results of an earlier call, maybe in another checkout; nothing if there is no such file."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return [], []
    return found["pairs"], found["calls"]


def write(kept, args, pairs, described):
    """Writes all kept results as one file, in addition to those that it has. Returns its folder."""
    folder = args.results or machine.kept_results(BENCH / "results", described, "-isc")
    there, called = written(folder / "isc.json")
    here = {pair: kept.get(pair) for pair in pairs}
    study = {
        "study": "isc-hadoop",
        "machine": described,
        "pairs": [found for pair, found in ((pair, here[pair] or of_cell(there, pair)) for pair in pairs) if found],
        "calls": calls.read(kept.folder / "calls.json") or called,
    }
    report.write_json(folder / "isc.json", study)
    if args.json:
        report.write_json(args.json, study)
    return folder


def run(pairs, bench, budget, kept, built):
    """Measures the pairs. Returns the names of those that failed."""
    for jar in [*bench.jars.hadoop.glob("*.jar"), bench.jars.plugin, bench.jars.workloads]:
        jar.read_bytes()
    failed, left, disk = [], [], None
    with ExitStack() as stack:
        for pair in pairs:
            if not budget.has_room(pair):
                left.append(pair.name)
                continue
            if pair.disk != disk:
                stack.close()
                cluster, disk = stack.enter_context(cluster_for(pair.disk, bench)), pair.disk
                warm_up(cluster, bench)
            started = time.monotonic()
            try:
                result = one.measure(pair, bench, cluster)
            except FAILURES as error:
                raise_if_interrupted(error)
                failed.append(pair.name)
                say(f"  {pair.name} failed: {error}")
                continue
            budget.took(pair, time.monotonic() - started)
            kept.put(pair, {**result, "date": datetime.date.today().isoformat(), "build": built})
            say(line_of(pair, result))
    if left:
        say(f"no time was left for {len(left)} pairs; the same command continues")
    return failed


def main():
    """Parse, find the programs, measure what is missing, write the results."""
    args = arguments()
    if args.list or not (args.figure or args.calls):
        for name, (about, _) in FIGURES.items():
            say(f"{name:<8} {about}")
        return 0
    described = machine.describe(BENCH)
    kept = Kept(args.dir / "pairs")
    pairs = [pair for pair in pairs_of(args.figure, args.rounds) if (args.only or "") in pair.name]
    if args.pairs:
        here = build_of(args)
        for pair in pairs:
            say(state_of(pair, kept, here))
        return 0
    end_orderly()
    if not limits.can_throttle():
        sys.exit("isc: throttled disks need root and version 1 control groups")
    build = "mvn -f hadoop/java/pom.xml package"
    for path, how in ((args.merganser, "make build"), (args.plugin, build), (args.workloads, build)):
        if not path.exists():
            sys.exit(f"isc: {path} is not there: `{how}` makes it")
    args.dir.mkdir(parents=True, exist_ok=True)
    budget = Budget(args.minutes)
    bench = SimpleNamespace(
        dir=args.dir.resolve(), merganser=args.merganser.resolve(), timeout_s=args.timeout, socket=None,
        jars=Jars((args.jars or fetch_jars(args.dir)).resolve(), args.plugin.resolve(), args.workloads.resolve()),
    )  # fmt: skip
    built = build_of(args)
    missing = [pair for pair in pairs if kept.get(pair) is None]
    found = [(pair, kept.get(pair)) for pair in pairs]
    others = sum(1 for pair, result in found if result and other_build(pair, result, built))
    if others:
        say(f"{others} kept pairs are of another build, or of one that was not recorded; --pairs names them")
    failed = []
    try:
        if args.make_inputs:
            make_inputs(pairs, bench)
            return 0
        if missing:
            failed = run(missing, bench, budget, kept, built)
        if args.calls:
            calls.measure(bench, bench.dir / TEXT, kept.folder / "calls.json", args.rounds, built, say)
    except FAILURES as error:
        sys.exit(f"isc: {error}")
    say(f"results in {write(kept, args, pairs_of(FIGURES, ROUNDS_MAX), described)}")
    if failed:
        say(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
