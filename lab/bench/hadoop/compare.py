#!/usr/bin/env python3
"""Compares what run.py, study.py and isc.py measured on Hadoop with the figures of three papers. See lab/bench/README.md.

Prints tables of the paper's figures, ours and the ratio (ours over the paper's), figures that were missed included, and what
differs from the paper's machine. It runs no job and needs no root.
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hadoop.papers import active, isc, measured, published, ssd  # noqa: E402
from hadoop.papers.isc import study as isc_study  # noqa: E402
from hadoop.papers.ssd import study as ssd_study  # noqa: E402
from papers.outcome import CompareError, as_json, text  # noqa: E402

ENERGY = "ssd-hadoop-energy"
"""The comparison that has figures without results: the paper's arithmetic."""
PAPERS = {
    "hadoop": (active.COMPARISONS, published.ACTIVE_SORT),
    "ssd-hadoop": (ssd.COMPARISONS, published.SSD),
    "isc-hadoop": (isc.COMPARISONS, published.ISC),
}
"""By the beginning of a comparison's name: the paper's comparisons, and the paper."""
NAMES = {name: kind for kind, (comparisons, _) in PAPERS.items() for name in comparisons}


def arguments(words=None):
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", metavar="NAME", help="the comparison")
    parser.add_argument("--list", action="store_true", help="name the comparisons")
    parser.add_argument("--results", type=Path, metavar="FILE", help="what run.py, study.py or isc.py wrote with --json, or keep in results/")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE, not rounded, with their sources")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw them into FILE, as SVG")
    args = parser.parse_args(words)
    if args.name and args.name not in NAMES:
        parser.error(f"no comparison is called {args.name}; --list names them")
    if args.plot and args.plot.suffix != ".svg":
        parser.error(f"--plot: '{args.plot}' does not end in .svg, the one kind of plot")
    if args.name and not args.results and args.name != ENERGY:
        parser.error(f"{args.name} needs --results FILE; as root, {needs(args.name)}")
    return args


def needs(name):
    """The commands that measure what a comparison reads."""
    words = PAPERS[NAMES[name]][0][name][2]
    if NAMES[name] == "hadoop":
        return f"`python3 lab/bench/hadoop/run.py {' '.join(words)} --json FILE` measures and writes it"
    if NAMES[name] == "ssd-hadoop":
        return f"`python3 lab/bench/hadoop/study.py {words} --json FILE` measures and writes it"
    return (
        f"`python3 lab/bench/hadoop/isc.py {words} --make-inputs` and then `python3 lab/bench/hadoop/isc.py {words} --json FILE` "
        "measure and write it"
    )


def compare(name, results):
    """The outcome of a comparison; `results` is the path of the file."""
    _, _, needed, outcome = PAPERS[NAMES[name]][0][name]
    if results is None:
        return outcome()
    if NAMES[name] == "hadoop":
        found = active.read(results, needed)
        return replace(outcome(found), measured=measured.scenarios(found))
    study = (ssd_study if NAMES[name] == "ssd-hadoop" else isc_study).read(results)
    return replace(outcome(study), measured=study.measured())


def main(words=None):
    """Parse, read, compare, print, write."""
    args = arguments(words)
    if args.list or not args.name:
        for name, kind in NAMES.items():
            print(f"{name:<22}{PAPERS[kind][0][name][0]}")
        return 0
    comparisons, paper = PAPERS[NAMES[args.name]]
    about, place, _, _ = comparisons[args.name]
    told = (args.name, about, f"{paper}, {place}")
    try:
        outcome = compare(args.name, args.results)
        print(text(*told, outcome), end="", flush=True)
        if args.json:
            args.json.write_text(json.dumps(as_json(*told, outcome), indent=2) + "\n")
        if args.plot:
            args.plot.write_text(outcome.chart())
    except CompareError as error:
        sys.exit(f"compare: {error}")
    except OSError as error:
        sys.exit(f"compare: {error.filename}: {error.strerror}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
