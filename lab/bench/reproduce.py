#!/usr/bin/env python3
"""Repeats experiments of papers with whole processes on this machine. See lab/bench/README.md.

Prints tables of the paper's figures, ours and the ratio (ours over the paper's), and what differs from the paper's machine.
Every call measures again; its data goes into a folder in --dir that is removed. Experiments that run in one process are in
`merganser reproduce`.
"""

import argparse
import datetime
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.limits import NoSwap
from harness.measure import JobError
from harness.report import gist
from harness.signals import end_orderly
from harness.tools import BENCH, REPOSITORY, cores
from papers import mcsd, ppblast, triton
from papers.lab import ExperimentError, Lab
from papers.outcome import as_json, text

EXPERIMENTS = {**triton.EXPERIMENTS, **mcsd.EXPERIMENTS, **ppblast.EXPERIMENTS}
LEAST_BYTES = 1000
"""Ten records of the Sort Benchmark."""


def size(told):
    """A size such as 512M, 512MiB or 8GB, in bytes."""
    found = re.fullmatch(r"(\d+)([KMGT]?)(B|iB)?", told)
    if not found:
        raise argparse.ArgumentTypeError(f"{told!r} is no size: write 512M, 512MiB or 8GB")
    return int(found[1]) * (1000 if found[3] == "B" else 1024) ** " KMGT".index(found[2] or " ")


def arguments(words=None):
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", metavar="NAME", help="the experiment")
    parser.add_argument("--list", action="store_true", help="name the experiments")
    parser.add_argument("--size", type=size, metavar="SIZE", help="bytes of data; of several sizes, the largest")
    parser.add_argument("--rounds", type=int, metavar="N", help="measure so often and take the median, minute-sort the mean [1]")
    parser.add_argument("--memory", type=size, metavar="SIZE", help="memory of a whole sort [the sort's default]")
    parser.add_argument("--threads", type=int, default=cores(), metavar="N", help="threads of a whole sort [one a processor]")
    parser.add_argument("--seconds", type=float, default=60.0, metavar="S", help="how long minute-sort's minute is [60]")
    parser.add_argument("--cost", type=float, metavar="USD", help="the price of this machine, for triton-efficiency's bytes/s/$")
    parser.add_argument("--dir", type=Path, default=BENCH / ".work", help="where data goes: the disk that is measured")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures and every run to FILE, not rounded")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw the figures into FILE, as SVG")
    parser.add_argument("--timeout", type=float, default=1800, metavar="S", help="longest that one command may run [1800]")
    parser.add_argument("--quiet", action="store_true", help="print no progress")
    parser.add_argument("--merganser", type=Path, default=REPOSITORY / "target/release/merganser")
    parser.add_argument("--examples", type=Path, default=REPOSITORY / "target/release/examples")
    args = parser.parse_args(words)
    if args.name and args.name not in EXPERIMENTS:
        parser.error(f"no experiment is called {args.name}; --list names them")
    if args.size is not None and args.size < LEAST_BYTES:
        parser.error(f"--size: at least {LEAST_BYTES} bytes")
    if (args.rounds is not None and args.rounds < 1) or args.threads < 1:
        parser.error("--rounds and --threads must be at least 1")
    if not 0 < args.seconds < float("inf") or (args.cost is not None and not 0 < args.cost < float("inf")):
        parser.error("--seconds and --cost must be above 0")
    if args.plot and args.plot.suffix != ".svg":
        parser.error(f"--plot: '{args.plot}' does not end in .svg, the one kind of plot")
    return args


def reproduce(args):
    """Runs an experiment. Returns its outcome, and what was measured for it."""
    args.dir.mkdir(parents=True, exist_ok=True)
    args.merganser, args.examples = args.merganser.resolve(), args.examples.resolve()
    if not args.merganser.exists():
        raise ExperimentError(f"{args.merganser} is not there: `make build` makes it")
    with tempfile.TemporaryDirectory(prefix=".reproduce-", dir=args.dir.resolve()) as folder:
        lab = Lab(args, Path(folder))
        try:
            outcome = EXPERIMENTS[args.name].run(lab)
        except JobError as error:
            how, _, said = str(error).partition("\n")
            raise ExperimentError(f"{how}: {gist(said)}" if said else how) from error
        return outcome, lab.kept()


def main(words=None):
    """Parse, measure, compare, print, write."""
    args = arguments(words)
    if args.list or not args.name:
        for name, experiment in EXPERIMENTS.items():
            print(f"{name:<20}{experiment.about}")
        return 0
    end_orderly()
    experiment = EXPERIMENTS[args.name]
    told = (args.name, experiment.about, experiment.source)
    try:
        outcome, kept = reproduce(args)
        print(text(*told, outcome), end="", flush=True)
        if args.json:
            command = " ".join(["lab/bench/reproduce.py", *(words or sys.argv[1:])])
            made = {**as_json(*told, outcome), "date": datetime.date.today().isoformat(), "command": command, **kept}
            args.json.write_text(json.dumps(made, indent=1) + "\n")
        if args.plot:
            args.plot.write_text(outcome.chart())
    except (ExperimentError, NoSwap, subprocess.SubprocessError) as error:
        sys.exit(f"reproduce: {error}")
    except OSError as error:
        sys.exit(f"reproduce: {error.filename}: {error.strerror}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
