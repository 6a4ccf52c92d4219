"""What an experiment works with: its options, a folder for its data, and jobs that are measured and kept.

    reproduce.py ── Lab ──► an experiment's run(lab) ──► Outcome ──► a table, JSON, SVG
                     └── harness.measure, a Cost for each job ─────────────► `runs` of the JSON
"""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from harness import machine, measure, tools
from harness.measure import Job


class ExperimentError(Exception):
    """An experiment has no result; the text says why, in one sentence."""


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper."""

    about: str
    """What it measures, in one line."""
    source: str
    """The place of the paper's figures."""
    run: Callable
    """A function of a `Lab` that returns an `Outcome`."""


class Lab:
    """The options of a run, its folder, and all that was measured."""

    def __init__(self, args, folder):
        self.args = args
        self.folder = folder
        self.machine = machine.describe(folder)
        self.costs = []

    @property
    def merganser(self):
        """The command that is measured."""
        return self.args.merganser

    def rounds(self):
        """How often to measure."""
        return range(self.args.rounds or 1)

    def say(self, what):
        """Prints what is done now."""
        if not self.args.quiet:
            print(what, file=sys.stderr, flush=True)

    def measure(self, *words, cold=(), output=None, group=None, alongside=None):
        """Runs one program to its end, measured. The files in `cold` are not in the page cache then."""
        for path in cold:
            forget(path)
        self.say(f"{Path(words[0]).name} {words[1] if len(words) > 1 else ''}")
        cost = measure.run(
            Job((words,), output=output, alongside=alongside), self.folder, timeout_s=self.args.timeout, cold=False, group=group
        )
        self.costs.append(cost)
        return cost

    def told(self, *words, worst=0):
        """The output of a program that is not measured. An exit status above `worst` is an error."""
        words = [str(word) for word in words]
        ran = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=self.args.timeout)
        if not 0 <= ran.returncode <= worst:
            said = ran.stderr.strip().removeprefix("merganser: ") or f"exit {ran.returncode}"
            raise ExperimentError(f"{Path(words[0]).name} {words[1]}: {said}")
        return ran.stdout

    def example(self, name):
        """An example program of the workspace."""
        path = self.args.examples / name
        if not os.access(path, os.X_OK):
            raise ExperimentError(f"{path} is not there: `cargo build --release --workspace --examples` makes it")
        return path

    def kept(self):
        """The measurements, for the JSON file."""
        return {"sources": tools.sources(), "runs": [asdict(cost) for cost in self.costs]}


def forget(path):
    """Has the kernel forget what it holds of a file, so that the next program reads it from the disk."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        # A kernel may ignore the advice.
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
