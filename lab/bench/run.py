#!/usr/bin/env python3
"""Runs benchmark scenarios side by side and keeps their results. See lab/bench/README.md."""

import argparse
import datetime
import fnmatch
import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

from harness import machine, report
from harness.limits import can_limit_memory
from harness.measure import JobError, run as measure
from harness.plan import Outcome
from harness.scenarios import GB, GRID, MIB, SCENARIOS, Bench, Unavailable, remove
from harness.signals import end_orderly
from harness.tools import BENCH, PEERS, REPOSITORY, MissingTool, Tools

CHUNK_BYTES = MIB
SPARE_DISK_BYTES = GB


class Failed(Exception):
    """A scenario that can't give a result; the text says why."""


def size(text):
    """A size such as 512M, in bytes."""
    found = re.fullmatch(r"(\d+)([KMG]?)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no size: write 512M")
    return int(found[1]) * 1024 ** " KMG".index(found[2] or " ")


def match(cell, given):
    """Whether `given` means this cell of the grid: `grid`, or its name with `*` for any of a part."""
    return given == "grid" or "*" in given and fnmatch.fnmatchcase(cell, given)


def arguments():
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenario", nargs="*", metavar="SCENARIO", help="names, or `all`")
    parser.add_argument("--list", action="store_true", help="name the scenarios")
    parser.add_argument("--pairs", type=int, default=5, metavar="N", help="rounds of each scenario [5]")
    parser.add_argument("--scale", type=float, default=1.0, metavar="X", help="shrink data and memory by this [1]")
    parser.add_argument("--dir", type=Path, default=BENCH / ".work", help="where data goes: the disk that is measured")
    parser.add_argument("--results", type=Path, help="where results go [lab/bench/results/<date>-<machine>]")
    parser.add_argument("--peers", default=",".join(PEERS), help="which to run, of gnu,stxxl,duckdb,ripgrep,phoenix; or none")
    parser.add_argument("--overhead", type=size, default=512 * MIB, metavar="SIZE",
                        help="what each job's memory limit allows beyond its --memory, page cache included [512M]")  # fmt: skip
    parser.add_argument("--timeout", type=float, default=1800, metavar="S", help="longest that one command may run [1800]")
    parser.add_argument("--warm", action="store_true", help="leave the page cache alone: to try things, not to measure")
    parser.add_argument("--keep-data", action="store_true", help="leave the inputs for the next run")
    parser.add_argument("--merganser", type=Path, default=REPOSITORY / "target/release/merganser")
    parser.add_argument("--examples", type=Path, default=REPOSITORY / "target/release/examples")
    args = parser.parse_args()
    args.scenario = [
        name for given in args.scenario for name in ([n for n in GRID if match(n, given)] or [given])
    ]
    unknown = set(args.scenario) - set(SCENARIOS) - {"all"}
    if unknown:
        parser.error(f"no scenario is called {', '.join(sorted(unknown))}; --list names them")
    if args.pairs < 1 or args.scale <= 0:
        parser.error("--pairs must be at least 1, and --scale above 0")
    args.peers = set(args.peers.split(",")) - {"none", ""}
    if args.peers - set(PEERS):
        parser.error(f"no peer is called {', '.join(sorted(args.peers - set(PEERS)))}")
    if "all" in args.scenario:
        args.scenario = [name for name in SCENARIOS if name not in GRID]
    return args


def say(text):
    """Prints progress."""
    print(text, flush=True)


def digest(result):
    """SHA-256 of a file, or of the output of a command."""
    hasher = hashlib.sha256()
    if isinstance(result, Path):
        with open(result, "rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                hasher.update(chunk)
    else:
        with subprocess.Popen([str(word) for word in result], stdout=subprocess.PIPE) as process:
            while chunk := process.stdout.read(CHUNK_BYTES):
                hasher.update(chunk)
        if process.returncode != 0:
            raise Failed(f"exit {process.returncode}: {' '.join(map(str, result))}")
    return hasher.hexdigest()


def check_result(contender, digests, timeout_s):
    """Compares a contender's first result with earlier results, and verifies its order."""
    if contender.check:
        verified = subprocess.run(
            [str(word) for word in contender.check], capture_output=True, text=True, timeout=timeout_s
        )
        if verified.returncode != 0:
            raise Failed(f"{contender.name}'s result is not valid: {verified.stderr.strip()}")
    if contender.result:
        digests[contender.name] = digest(contender.result)
        if len(set(digests.values())) > 1:
            raise Failed(f"results differ: {digests}")


def run_contender(contender, bench, plan, args, digests):
    """One contender's turn: each step measured, its result checked the first time, then removed."""
    for output in contender.outputs:
        remove(output)
    try:
        costs = {
            step.name: measure(step.job, plan.folder, plan.memory_bytes + args.overhead, args.timeout, not args.warm)
            for step in contender.steps
        }
        if contender.name not in digests:
            check_result(contender, digests, args.timeout)
        return Outcome(costs)
    finally:
        for output in contender.outputs:
            remove(output)
        bench.clear_temp()


def run_scenario(name, bench, args, described):
    """All rounds of a scenario, and its result."""
    scenario = SCENARIOS[name]
    say(f"{name}: {scenario.title}" + (f", at scale {args.scale:g}" if args.scale != 1 else ""))
    need = round(scenario.disk_bytes * args.scale) + SPARE_DISK_BYTES
    held = sum(bench.held(kind, size) for kind, size in scenario.inputs)
    free = shutil.disk_usage(args.dir).free
    if free + held < need:
        raise Failed(f"{need / GB:.0f} GB must be free in {args.dir}, and {free / GB:.0f} GB are")
    rounds, errors, digests = [], {}, {}
    with scenario.open(bench) as plan:
        for number in range(1, args.pairs + 1):
            one = {}
            for contender in plan.contenders:
                if contender.name in errors:
                    continue
                try:
                    outcome = run_contender(contender, bench, plan, args, digests)
                except JobError as error:
                    if contender.ours:
                        raise Failed(f"{contender.name}: {error}") from error
                    errors[contender.name] = str(error)
                    say(f"  {contender.name} left out: {error}")
                    continue
                one[contender.name] = outcome
                say(f"  round {number}/{args.pairs}  {contender.name:<12} {outcome.wall_s:8.2f} s")
            rounds.append(one)
        any_cost = next(iter(next(iter(rounds[0].values())).costs.values()))
        settings = {
            "date": datetime.date.today().isoformat(),
            "scale": args.scale,
            "machine": described,
            "versions": bench.tools.versions(),
            "command": " ".join(["lab/bench/run.py", *sys.argv[1:]]),
            "memory_limit_bytes": any_cost.memory_limit_bytes,
            "caches_dropped": any_cost.caches_dropped,
        }
        return report.result(name, scenario, plan, rounds, errors, settings)


def main():
    """Parse, find the programs, run the scenarios in turn, write the results."""
    args = arguments()
    if args.list or not args.scenario:
        for name, scenario in SCENARIOS.items():
            if name not in GRID:
                say(f"{name:<14} {scenario.title}")
        say(f"{'grid':<14} auto compared with merge and distribute, {len(GRID)} cells such as {next(iter(GRID))}")
        return 0

    end_orderly()
    args.dir.mkdir(parents=True, exist_ok=True)
    args.dir = args.dir.resolve()
    described = machine.describe(args.dir)
    results = args.results or BENCH / "results" / machine.results_folder(described)
    bench = Bench(Tools.find(args.merganser.resolve(), args.examples.resolve(), args.peers, args.dir), args.dir, args.scale)
    if not can_limit_memory():
        say("no memory control group can be made here: the page cache is not limited, so all seconds are too good")

    failed = []
    for index, name in enumerate(args.scenario):
        try:
            result = run_scenario(name, bench, args, described)
            report.write(results, result, described)
            if args.scale == 1:  # small runs only show that the work succeeds
                say(report.claims_table(result["claims"]))
        except Unavailable as error:
            say(f"{name} skipped: {error}")
        except (Failed, MissingTool, subprocess.CalledProcessError) as error:
            failed.append(name)
            say(f"{name} failed: {error}")
        finally:
            if not args.keep_data:
                still = {one for later in args.scenario[index + 1 :] for one in SCENARIOS[later].inputs}
                bench.forget(set(SCENARIOS[name].inputs) - still)
    say(f"results in {results}")
    if failed:
        say(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except MissingTool as missing:
        sys.exit(f"bench: {missing}")
    except KeyboardInterrupt:
        sys.exit(130)
