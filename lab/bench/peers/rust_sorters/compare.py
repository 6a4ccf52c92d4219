#!/usr/bin/env python3
"""Ratios of crates.io's external sorters to ours, in the same memory and on two threads, in turn.

    cargo build --release --manifest-path lab/bench/peers/rust_sorters/Cargo.toml
    lab/bench/peers/rust_sorters/compare.py FOLDER [--items records|pairs] [--rounds 5] [--memory 128] [--scale 1]

Temporary files go to FOLDER. Each job makes its items itself, 1 GB of them, so nothing is read before the first spill. It has a
control group of the memory and 128 MiB more, page cache included: a sorter can't keep its spills in the rest of the
machine's memory. extsort-iter keeps the texts of pairs in memory, so pairs get no group there.
"""

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from harness import limits  # noqa: E402

SORTERS = ("merganser", "extsort", "ext-sort", "extsort-iter")
COUNTS = {"records": 10_000_000, "pairs": 31_250_000}
PAGE_CACHE_MIB = 128


def run(program, sorter, items, count, memory_mib, folder):
    """Seconds, peak memory in MiB and the sum of one job."""
    kept = sorter == "extsort-iter" and items == "pairs"
    with limits.memory(None if kept else (memory_mib + PAGE_CACHE_MIB) << 20) as group:
        enter = (lambda: (group / "cgroup.procs").write_text(str(os.getpid()))) if group else None
        words = [program, sorter, items, str(count), str(memory_mib), str(folder)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, preexec_fn=enter)
    if done.returncode != 0:
        return None, f"ended with {done.returncode} {done.stderr.strip()[-200:]}", None
    _, _, seconds, _, peak, _, _, total = done.stdout.split()
    return float(seconds), int(peak), total


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--program", default=HERE / "target/release/rust-sorters", type=Path)
    parser.add_argument("--rounds", default=5, type=int)
    parser.add_argument("--memory", default=128, type=int, help="MiB")
    parser.add_argument("--items", choices=sorted(COUNTS), help="only these")
    parser.add_argument("--scale", default=1.0, type=float)
    args = parser.parse_args()
    for items, whole in COUNTS.items():
        if args.items not in (None, items):
            continue
        count = int(whole * args.scale)
        seconds = {sorter: [] for sorter in SORTERS}
        peaks = {sorter: [] for sorter in SORTERS}
        for number in range(args.rounds):
            sums = set()
            for sorter in SORTERS[number % 4:] + SORTERS[:number % 4]:
                wall, peak, total = run(args.program, sorter, items, count, args.memory, args.folder)
                print(f"  round {number + 1} {items} {sorter}: {wall} s, {peak} MiB", flush=True)
                if wall is not None:
                    seconds[sorter].append((number, wall))
                    peaks[sorter].append(peak)
                    sums.add(total)
            assert len(sums) <= 1, "results differ"
        ours = dict(seconds["merganser"])
        for sorter in SORTERS:
            ratios = [wall / ours[number] for number, wall in seconds[sorter] if number in ours]
            if not ratios:
                print(f"{items} {sorter}: failed")
                continue
            walls = [wall for _, wall in seconds[sorter]]
            print(
                f"{items} {sorter}: time over ours {statistics.median(ratios):.2f} "
                f"({min(ratios):.2f} to {max(ratios):.2f}), median {statistics.median(walls):.1f} s, "
                f"peak {max(peaks[sorter])} MiB",
                flush=True,
            )


if __name__ == "__main__":
    main()
