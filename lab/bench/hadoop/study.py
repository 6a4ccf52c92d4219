#!/usr/bin/env python3
"""Runs stock Hadoop on an emulated hard disk and an emulated SSD, as "A Case for Flash Memory SSD in Hadoop
Applications" did on real ones. See lab/bench/README.md.

Cells that were measured are kept, so the same command continues where an earlier one ended. A line near the end
says for how many no time was left. `compare.py ssd-hadoop-... --results study-xSCALE-slowerK.json` compares them with the paper's.
"""

import argparse
import datetime
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import build, emulated, limits, machine  # noqa: E402
from harness.signals import end_orderly, raise_if_interrupted  # noqa: E402
from harness.tools import BENCH, REPOSITORY  # noqa: E402

from hadoop import config, report  # noqa: E402
from hadoop.budget import Budget  # noqa: E402
from hadoop.cluster import ClusterError  # noqa: E402
from hadoop.config import ACTIVE, Jars  # noqa: E402
from hadoop.history import BadHistory  # noqa: E402
from hadoop.run import fetch_jars  # noqa: E402
from hadoop.ssd import cell as one  # noqa: E402
from hadoop.ssd.cells import ADVISED, FIGURES, SORT_MB_SWEPT, cells_of, in_pairs  # noqa: E402
from hadoop.ssd.image import Images  # noqa: E402
from hadoop.ssd.rounds import Rounds, file_name, gathered  # noqa: E402

SCALE = 0.1
RECORD_BYTES = 10_505
"""The mean of RandomWriter's keys and values."""
MEMORY_TIMES, MEMORY_MORE_BYTES = 5, 10**9
"""The disk in memory has input, spills, what the reducer fetches and merges, and output; and its file system."""
FAILURES = (ClusterError, emulated.EmulationError, BadHistory, one.Invalid, subprocess.SubprocessError, OSError)


def arguments(words=None):
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figure", nargs="*", metavar="FIGURE", help="names, or `all`")
    parser.add_argument("--list", action="store_true", help="name the figures")
    parser.add_argument("--cells", action="store_true", help="name the cells of the figures in their order, and whether they are kept")
    parser.add_argument("--scale", type=float, default=SCALE, metavar="X", help="data here over data in the paper [0.1]")
    parser.add_argument("--slower", type=int, default=1, metavar="K",
                        help="emulate disks that are K times as slow, and divide times by K: a machine that is K times as fast [1]")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="how often to measure each cell [1]")
    parser.add_argument("--make-inputs", action="store_true", help="make the inputs of the cells, and measure nothing")
    parser.add_argument("--gather", action="store_true", help="measure nothing, and write the JSON file from kept cells and today's advice")
    parser.add_argument("--minutes", type=float, metavar="M", help="begin no pair of cells that would end later than this")
    parser.add_argument("--only", metavar="TEXT", help="only cells whose name has this")
    parser.add_argument("--retry", action="store_true", help="measure cells again whose emulation was late")
    parser.add_argument("--results", type=Path, help="the folder of kept results [this machine's newest lab/bench/results/<date>-<machine>-study]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also the JSON file that is written there")
    parser.add_argument("--dir", type=Path, default=BENCH / ".work" / "study", help="where inputs, the mounted disk and logs go")
    parser.add_argument("--memory-dir", type=Path, default=Path("/dev/shm"), help="a file system in memory, for the emulated disk")
    parser.add_argument("--path-us", type=int, metavar="N", help="the way of a request [measured]")
    parser.add_argument("--jars", type=Path, help="Hadoop's jars [fetched by Maven into --dir]")
    parser.add_argument("--plugin", type=Path, default=REPOSITORY / "hadoop/java/plugin/target/merganser-hadoop-0.1.0.jar")
    parser.add_argument("--merganser", type=Path, default=REPOSITORY / "target/release/merganser")
    parser.add_argument("--timeout", type=float, default=1800, metavar="S", help="longest that one job may run [1800]")
    args = parser.parse_args(words)
    if "all" in args.figure:
        args.figure = list(FIGURES)
    unknown = [name for name in args.figure if name not in FIGURES]
    if unknown:
        parser.error(f"no figure is called {', '.join(unknown)}; --list names them")
    if not 0 < args.scale <= 1:
        parser.error("--scale must be above 0 and at most 1")
    if args.slower < 1:
        parser.error("--slower must be at least 1")
    if args.rounds < 1 or args.minutes is not None and args.minutes <= 0:
        parser.error("--rounds must be at least 1, and --minutes above 0")
    return args


def say(text):
    """Prints progress."""
    print(text, flush=True)


def advice_words(cell, cores):
    """The words of `merganser hadoop advise --job` for a sort of the sweep."""
    heap_mb = max(SORT_MB_SWEPT) + one.MAP_HEAP_MB
    memory = cell.cache_bytes + config.MAPS_AT_ONCE * heap_mb * 2**20
    words = [
        "hadoop", "advise", "--job", cell.data_bytes, "--memory", memory, "--heap", f"{heap_mb}M",
        "--cores", cores, "--processor-speed", cell.slower, "--tasks", config.MAPS_AT_ONCE, "--reducers", one.REDUCES_AT_ONCE,
        "--record-size", RECORD_BYTES, "--device", cell.device, "--json",
    ]  # fmt: skip
    return list(map(str, words))


def predicted(merganser, cells):
    """What `merganser hadoop advise --job` says about the sorts of the sweep, by device."""
    told = {}
    # The emulation has one.
    cores = max((os.cpu_count() or 1) - 1, 1)
    for cell in cells:
        if cell.job != "sort" or cell.device in told:
            continue
        words = [str(merganser), *advice_words(cell, cores)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != 0:
            raise ClusterError(f"merganser hadoop advise: {done.stderr.strip()}")
        told[cell.device] = json.loads(done.stdout)
    return told


def told_of(args):
    """The same at the scale and the clock of the options; empty if the command was not built."""
    if not args.merganser.exists():
        return {}
    try:
        return predicted(args.merganser.resolve(), cells_of(["settings"], args.scale, args.slower))
    except FAILURES as error:
        sys.exit(f"study: {error}")


def memory_bytes(cells):
    """The memory that the disk of the largest of these cells takes."""
    return MEMORY_TIMES * max((cell.data_bytes for cell in cells), default=0) + MEMORY_MORE_BYTES


def jars_of(args):
    """All jars, with absolute paths: Hadoop's containers run in folders of their own."""
    return Jars((args.jars or fetch_jars(args.dir)).resolve(), args.plugin.resolve())


def build_of(args):
    """The build that measures."""
    return build.describe(merganser=args.merganser, plugin=args.plugin)


def other_build(cell, result, here):
    """Words about a kept result of another build. Only the cells with Merganser's shuffle have its plugin."""
    return build.told(result.get("build"), here, ["merganser"] + ["plugin"] * (cell.flavour == ACTIVE))


def line_of(cell, result):
    """One line about a result."""
    lag = result["lag"]
    words = "" if result["valid"] else f", NOT VALID: {100 * lag['late_share']:.2f} % late, {100 * lag['time_share']:.2f} % of the time"
    return f"  {cell.name}: {result['elapsed_s']:.1f} s{words}; the cell took {result['cell_s']:.0f} s"


def state_of(cell, kept, here):
    """One line about what is kept of a cell."""
    result = kept.get(cell)
    late = kept.late(cell)
    if result is None and not late:
        return f"{cell.name}: missing, about {cell.expected_s:.0f} s"
    result = result or late[-1]
    other = other_build(cell, result, here)
    return line_of(cell, result).strip() + (f"; {other}" if other else "")


def write(kept, args, told, described):
    """Writes all kept cells of a scale and a clock as one file, and returns them."""
    measured, late = gathered(kept, cells_of(FIGURES, args.scale, args.slower, told=told))
    study = {
        "study": "ssd-hadoop",
        "scale": args.scale,
        "slower": args.slower,
        "machine": described,
        "cells": measured,
        "not_valid": late,
        "predicted": told,
    }
    report.write_rows(kept.folder / file_name(args.scale, args.slower), study)
    if args.json:
        report.write_json(args.json, study)
    return study


def run(args, cells, kept, described):
    """Measures the missing cells. Returns the names of those that failed."""
    needed, free = memory_bytes(cells), shutil.disk_usage(args.memory_dir).free
    if free < needed:
        raise emulated.EmulationError(f"{args.memory_dir}: {needed / 1e9:.1f} GB must be free, and {free / 1e9:.1f} GB are")
    bench = SimpleNamespace(
        work=args.dir, merganser=args.merganser.resolve(), timeout_s=args.timeout,
        jars=jars_of(args),
    )  # fmt: skip
    # Read once outside of any control group, so that they are in the cache and count for no cell.
    for jar in [*bench.jars.hadoop.glob("*.jar"), bench.jars.plugin]:
        if jar.exists():
            jar.read_bytes()
    images = Images(args.dir / "images", args.dir, bench.jars, args.timeout, say)
    if args.make_inputs:
        for cell in cells:
            images.made(cell)
        return []
    built = build_of(args)
    told = predicted(bench.merganser, cells_of(["settings"], args.scale, args.slower))
    budget, failed, left = Budget(args.minutes), [], []
    with emulated.own_cpu_left(), tempfile.TemporaryDirectory(prefix="merganser-study-", dir=args.memory_dir) as memory:
        bench.memory = Path(memory)
        bench.images = images
        bench.path_us = emulated.path_us(bench.merganser, args.dir, bench.memory) if args.path_us is None else args.path_us
        say(f"a request takes {bench.path_us} us to the model and back")
        for pair in in_pairs(cells):
            if not budget.has_room(*pair):
                left += [cell.name for cell in pair]
                continue
            for cell in pair:
                started = time.monotonic()
                try:
                    result = one.measure(cell, bench)
                except FAILURES as error:
                    raise_if_interrupted(error)
                    failed.append(cell.name)
                    say(f"  {cell.name} failed: {error}")
                    continue
                seconds = time.monotonic() - started
                budget.took(cell, seconds)
                result |= {
                    "cell_s": seconds, "path_us": bench.path_us, "date": datetime.date.today().isoformat(), "machine": described,
                    "build": built,
                }  # fmt: skip
                kept.put(cell, result)
                say(line_of(cell, result))
                write(kept, args, told, described)
    if left:
        say(f"no time was left for {len(left)} cells; the same command continues")
    write(kept, args, told, described)
    return failed


def main():
    """Parse, find the programs, measure what is missing, write the results."""
    args = arguments()
    if args.list or not args.figure:
        for name, (about, _) in FIGURES.items():
            say(f"{name:<12} {about}")
        return 0
    described = machine.describe(BENCH)
    folder = args.results or machine.kept_results(BENCH / "results", described, "-study")
    kept = Rounds(folder)
    told = told_of(args) if ADVISED in args.figure else {}
    cells = cells_of(args.figure, args.scale, args.slower, args.rounds, told)
    cells = [cell for cell in cells if (args.only or "") in cell.name]
    if args.cells:
        here = build_of(args)
        for cell in cells:
            say(state_of(cell, kept, here))
        return 0
    if args.gather:
        if not args.merganser.exists():
            sys.exit(f"study: {args.merganser} is not there: `make build` makes it")
        write(kept, args, told_of(args), described)
        say(f"results in {folder / file_name(args.scale, args.slower)}")
        return 0

    def missing(cell):
        return kept.get(cell) is None and (args.retry or not kept.late(cell))

    here = build_of(args)
    others = sum(1 for cell in cells if (result := kept.get(cell)) and other_build(cell, result, here))
    if others:
        say(f"{others} kept cells are of another build, or of one that was not recorded; --cells names them")
    cells = [cell for cell in cells if missing(cell)]
    end_orderly()
    if not limits.can_throttle():
        sys.exit("study: loop devices and memory limits need root and version 1 control groups")
    needed = [(args.merganser, "make build")] * (not args.make_inputs)
    needed += [(args.plugin, "mvn -f hadoop/java/pom.xml package")] * any(cell.flavour == ACTIVE for cell in cells)
    for path, how in needed:
        if not path.exists():
            sys.exit(f"study: {path} is not there: `{how}` makes it")
    args.dir.mkdir(parents=True, exist_ok=True)
    args.dir = args.dir.resolve()
    try:
        failed = run(args, cells, kept, described)
    except FAILURES as error:
        sys.exit(f"study: {error}")
    say(f"results in {folder / file_name(args.scale, args.slower)}")
    if failed:
        say(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
