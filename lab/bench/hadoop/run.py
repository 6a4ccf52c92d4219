#!/usr/bin/env python3
"""Runs Hadoop jobs with stock shuffle and Merganser's in turn, on the same input. See lab/bench/README.md."""

import argparse
import datetime
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import build, limits, machine  # noqa: E402
from harness.signals import end_orderly  # noqa: E402
from harness.tools import BENCH, REPOSITORY  # noqa: E402

from hadoop import report  # noqa: E402
from hadoop.cluster import ClusterError  # noqa: E402
from hadoop.config import Jars  # noqa: E402
from hadoop.measure import Bench  # noqa: E402
from hadoop.scenarios import CONTENDERS, GIB, SCENARIOS  # noqa: E402

JARS_TIMEOUT_S = 900
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def size(text):
    """A size such as 512M, in bytes."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS and text[-1:] else (text, "")
    if not number.isdigit() or int(number) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no size: write 512M")
    return int(number) * UNITS[unit]


def arguments(words=None):
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenario", nargs="*", metavar="SCENARIO", help="names, or `all`")
    parser.add_argument("--list", action="store_true", help="name the scenarios")
    parser.add_argument("--pairs", type=int, default=3, metavar="N", help="rounds of each scenario [3]")
    parser.add_argument("--size", type=size, default=GIB, metavar="SIZE", help="bytes of input [1G]")
    parser.add_argument("--scale", type=float, default=1.0, metavar="X", help="shrink the input by this [1]")
    parser.add_argument("--device", choices=("throttled", "plain"), default="throttled",
                        help="intermediate data on a disk of 140 MB/s read and 65 MB/s write, or on an unlimited one [throttled]")  # fmt: skip
    parser.add_argument("--points", metavar="TEXT", help="only points whose name has this")
    parser.add_argument("--contenders", metavar="A,B", help=f"which, of {','.join(CONTENDERS)} [stock,active]")
    parser.add_argument("--dir", type=Path, default=BENCH / ".work" / "hadoop", help="where HDFS, disks and logs go")
    parser.add_argument("--results", type=Path, help="where results go [lab/bench/results/<date>-<machine>-hadoop]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also all results of this call as one JSON file")
    parser.add_argument("--jars", type=Path, help="Hadoop's jars [fetched by Maven into --dir]")
    parser.add_argument("--plugin", type=Path, default=REPOSITORY / "hadoop/java/plugin/target/merganser-hadoop-0.1.0.jar")
    parser.add_argument("--workloads", type=Path, default=REPOSITORY / "hadoop/java/workloads/target/merganser-workloads-0.1.0.jar")
    parser.add_argument("--merganser", type=Path, default=REPOSITORY / "target/release/merganser",
                        help="for `merganser hadoop serve` next to an active NodeManager")  # fmt: skip
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of every job; repeatable")
    parser.add_argument("--timeout", type=float, default=900, metavar="S", help="longest that one job may run [900]")
    parser.add_argument("--make-inputs", action="store_true", help="make the inputs, keep them, and measure nothing")
    parser.add_argument("--keep-data", action="store_true", help="leave HDFS with its inputs for the next run")
    args = parser.parse_args(words)
    if "all" in args.scenario:
        args.scenario = list(SCENARIOS)
    unknown = [name for name in args.scenario if name not in SCENARIOS]
    if unknown:
        parser.error(f"no scenario is called {', '.join(unknown)}; --list names them")
    if args.pairs < 1 or args.scale <= 0:
        parser.error("--pairs must be at least 1, and --scale above 0")
    if args.contenders:
        args.contenders = tuple(args.contenders.split(","))
        unknown = [name for name in args.contenders if name not in CONTENDERS]
        if unknown:
            parser.error(f"no contender is called {', '.join(unknown)}")
    args.keep_data = args.keep_data or args.make_inputs
    pairs = [one.partition("=") for one in args.set]
    if not all(equals for _, equals, _ in pairs):
        parser.error("--set takes KEY=VALUE")
    args.set = {key: value for key, _, value in pairs}
    return args


def say(text):
    """Prints progress."""
    print(text, flush=True)


def fetch_jars(folder):
    """Hadoop's jars, from the local Maven repository or the network."""
    jars = folder / "jars"
    if not any(jars.glob("hadoop-mapreduce-client-shuffle-*.jar")):
        say("fetching Hadoop's jars")
        subprocess.run(
            ["mvn", "-q", "-B", "-f", str(Path(__file__).resolve().parent / "pom.xml"), "dependency:copy-dependencies",
             "-DincludeScope=runtime", f"-DoutputDirectory={jars}"],
            check=True, timeout=JARS_TIMEOUT_S,
        )  # fmt: skip
    return jars


def find_jars(args):
    """All jars. If one is missing, the message names the command that makes it."""
    active = [name for name in args.contenders or CONTENDERS if name != "stock"]
    needed = [(args.workloads, "mvn -f hadoop/java/pom.xml package")]
    if active:
        needed += [(args.plugin, "mvn -f hadoop/java/pom.xml package"), (args.merganser, "make build")]
    for path, how in needed:
        if not path.exists():
            sys.exit(f"bench: {path} is not there: `{how}` makes it")
    return Jars(args.jars or fetch_jars(args.dir), args.plugin.resolve() if active else None, args.workloads.resolve())


def main():
    """Parse, find the programs, run the scenarios in turn, write the results."""
    args = arguments()
    if args.list or not args.scenario:
        for name, scenario in SCENARIOS.items():
            say(f"{name:<16} {scenario.title}")
        return 0
    end_orderly()
    if not limits.can_throttle():
        sys.exit("bench: the intermediate disk is a loop device, which needs root and version 1 control groups")
    args.dir.mkdir(parents=True, exist_ok=True)
    args.dir = args.dir.resolve()
    described = machine.describe(args.dir)
    folder = args.results or BENCH / "results" / machine.results_folder(described, "-hadoop")
    jars = find_jars(args)
    built = build.describe(merganser=args.merganser, plugin=args.plugin, workloads=args.workloads)
    bench = Bench(args, jars, say)
    failed, results = [], []
    try:
        for name in args.scenario:
            settings = {
                "date": datetime.date.today().isoformat(),
                "scale": args.scale,
                "device": args.device,
                "machine": described,
                "build": built,
                "command": " ".join(["lab/bench/hadoop/run.py", *report.without_paths(sys.argv[1:])]),
            }
            try:
                if args.make_inputs:
                    bench.make_inputs(name, SCENARIOS[name])
                    continue
                result, charts = bench.scenario(name, SCENARIOS[name])
            except (ClusterError, subprocess.SubprocessError, OSError) as error:
                failed.append(name)
                say(f"{name} failed: {error}")
                continue
            results.append({**settings, **result})
            report.write(folder, results[-1], charts)
            say(report.page_of(results[-1]))
            if args.json:
                report.write_json(args.json, results)
    finally:
        if not args.keep_data:
            for place in ("namenode", "datanode"):
                shutil.rmtree(args.dir / "cluster" / place, ignore_errors=True)
    if results:
        say(f"results in {folder}")
    if failed:
        say(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
