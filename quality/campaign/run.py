#!/usr/bin/env python3
"""A fault campaign over the real command. See quality/campaign/README.md and docs/testing.md."""

import argparse
import json
import os
import shutil
import signal
import sys
import time
import traceback
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from pathlib import Path

from case import LOST, SKIPPED, WRONG, Case, Lost, Outcome, Skipped, Wrong
from kinds import KINDS
from schedule import Schedule
from setup import REPOSITORY, Setup, default_folder
from table import Tally
from trial import Trial

SMOKE_SEED = 1
SHOWN_PER_REASON = 3
PROGRESS_S = 10

_setup = None


def main():
    """Runs the campaign; status 1 when a case was lost or wrong."""
    args = arguments()
    sys.stdout.reconfigure(errors="backslashreplace")
    if not args.merganser.is_file():
        sys.exit(f"campaign: {args.merganser} is not there: make build, or set MERGANSER")
    kept = args.kept.resolve()
    if not args.only:
        shutil.rmtree(kept, ignore_errors=True)
    setup = Setup.make(args.merganser.resolve(), args.dir or default_folder(), kept, args.seed)
    tally = Tally()
    try:
        if args.only:
            return repeat(setup, args)
        campaign(setup, args, tally)
    except KeyboardInterrupt:
        say("interrupted")
    finally:
        clean(setup.folder)
    report(tally, args)
    return 1 if tally.bad else 0


def arguments():
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, help="stop after this long [60, or no limit with --kills]")
    parser.add_argument("--kills", type=int, metavar="N", help="stop after N processes were ended by SIGKILL")
    parser.add_argument("--smoke", action="store_true", help="the short campaign with a fixed seed that `make check` runs")
    parser.add_argument("--seed", type=int, help="which campaign; printed [drawn from the clock]")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND",
                        help=f"of {', '.join(KINDS)} [all]")  # fmt: skip
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="cases at once [one per processor]")
    parser.add_argument("--only", metavar="ID", help="repeat one case, and print its log")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="with --only: this many times, until it fails")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write totals and failures as JSON")
    parser.add_argument("--table", type=Path, metavar="FILE", help="write the table as Markdown")
    parser.add_argument("--dir", type=Path, help="where cases run [/dev/shm if it has room, else the temporary folder]")
    parser.add_argument("--kept", type=Path, default=REPOSITORY / "target/campaign", metavar="DIR",
                        help="where folders of lost and wrong cases go [target/campaign]")  # fmt: skip
    built = REPOSITORY / "target/release/merganser"
    parser.add_argument("--merganser", type=Path, default=Path(os.environ.get("MERGANSER", built)))
    args = parser.parse_args()
    if args.only:
        # The data of a case are those of its campaign.
        args.seed = Case.parse(args.only).number("seed")
    elif args.seed is None:
        args.seed = SMOKE_SEED if args.smoke else int(time.time()) % 1_000_000
    if args.minutes is None and args.kills is None and not args.smoke:
        args.minutes = 60
    return args


def campaign(setup, args, tally):
    """Tries cases until the end, several at once."""
    kinds = {}
    for name in args.kinds:
        if KINDS[name].NEEDS_ROOT and os.geteuid() != 0:
            say(f"{name} skipped: it needs root")
        else:
            kinds[name] = KINDS[name]
    say(f"seed {args.seed}, {setup.merganser}, --memory {setup.memory}, in {setup.folder}, {args.jobs} at once")
    counts = {name: kind.SMOKE for name, kind in kinds.items()} if args.smoke else None
    schedule = Schedule(kinds, setup, args.seed, minutes=args.minutes, kills=args.kills, counts=counts)
    started = said = time.monotonic()
    with ProcessPoolExecutor(args.jobs, initializer=begin, initargs=(setup,)) as pool:
        running = set()
        ends = False
        while True:
            while not ends and len(running) < 2 * args.jobs:
                case = schedule.next(tally.killed)
                ends = case is None
                if case:
                    running.add(pool.submit(attempt, str(case)))
            if not running:
                break
            done, running = wait(running, timeout=PROGRESS_S, return_when=FIRST_COMPLETED)
            for future in done:
                count(tally, future.result())
            if time.monotonic() - said > PROGRESS_S:
                said = time.monotonic()
                cases = sum(sum(verdicts.values()) for verdicts in tally.verdicts.values())
                say(f"{said - started:.0f} s: {cases} cases, {tally.killed} kills, {tally.bad} lost or wrong")
    say(f"{time.monotonic() - started:.0f} s, {tally.killed} processes killed")


def count(tally, outcome):
    """Counts a case, and prints it when it failed."""
    known = tally.alike(outcome)
    tally.add(outcome)
    if outcome.verdict not in (LOST, WRONG):
        return
    if known < SHOWN_PER_REASON:
        print(f"{outcome.verdict.upper()} {outcome.case}\n    {outcome.reason}\n    {outcome.kept}", flush=True)
    else:
        if outcome.kept:
            shutil.rmtree(outcome.kept, ignore_errors=True)


def begin(setup):
    """A process that tries cases."""
    global _setup
    _setup = setup
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def attempt(text, setup=None):
    """Tries one case, whatever happens in it."""
    setup = setup or _setup
    case = Case.parse(text)
    started = time.monotonic()
    outcome = Outcome(case, WRONG)
    try:
        trial = Trial(setup, case)
    except OSError as error:
        outcome.reason = f"the campaign itself, at its begin: {error!r}"
        return outcome
    try:
        outcome.verdict = KINDS[case.kind].run(case, trial)
        if trial.complaints:
            raise Wrong(trial.complaints[0])
    except Lost as lost:
        outcome.verdict, outcome.reason = LOST, str(lost)
    except Wrong as wrong:
        outcome.verdict, outcome.reason = WRONG, str(wrong)
    except Skipped as skipped:
        outcome.verdict, outcome.reason = SKIPPED, str(skipped)
    except Exception as error:  # A bug of the campaign is a failure too, and must not end the others.
        outcome.reason = f"the campaign itself: {error!r}"
        trial.say(traceback.format_exc())
    outcome.disturbed, outcome.killed, outcome.log = trial.disturbed, trial.killed, trial.log
    failed = outcome.verdict in (LOST, WRONG)
    if failed:
        trial.say(f"{outcome.verdict.upper()}: {outcome.reason}")
    try:
        outcome.kept = trial.end(failed)
    except Exception as error:
        outcome.verdict, outcome.reason = WRONG, f"the campaign itself, at its end: {error!r}"
    outcome.seconds = time.monotonic() - started
    return outcome


def repeat(setup, args):
    """Tries one case again and prints its log."""
    for _ in range(args.repeat):
        outcome = attempt(args.only, setup)
        if outcome.verdict in (LOST, WRONG):
            break
    print("\n".join(outcome.log))
    print(f"{outcome.verdict}: {outcome.reason or 'as it should be'} {outcome.kept}")
    return 1 if outcome.verdict in (LOST, WRONG) else 0


def report(tally, args):
    """Prints and writes the totals."""
    for number, verdict, kind, action, reason, example in tally.groups():
        print(f"{number:5} x {verdict} {kind} {action}: {reason}\n        {example}")
    for kind, reason in tally.skipped.items():
        say(f"some cases of {kind} skipped: {reason}")
    print(tally.text())
    print(f"{tally.killed:,} processes killed; seed {args.seed}")
    if args.table:
        args.table.write_text(tally.text() + "\n")
    if args.json:
        args.json.write_text(json.dumps({"seed": args.seed, **tally.data()}, indent=1))


def clean(folder):
    """Removes the campaign's folder; what a case has mounted there was unmounted by it."""
    shutil.rmtree(folder, ignore_errors=True)


def say(text):
    """A line that is no result."""
    print(f"campaign: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
