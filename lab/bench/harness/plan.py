"""The parts of a scenario: contenders that do the same work, and claims on their costs.

A *round* runs every contender once, one after the other, and a scenario is several rounds: A B, A B,
A B. A claim is computed in each round, from costs measured minutes apart at most, and the median of
those figures is the result. So a disk that is slow for an hour is slow for both.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .measure import Job


@dataclass(frozen=True)
class Step:
    """One measured job of a contender, such as making a view or reading it."""

    name: str
    job: Job


@dataclass(frozen=True)
class Contender:
    """One way to do the work."""

    name: str
    steps: tuple
    outputs: tuple = ()
    """The files that it leaves behind; removed before and after each round."""
    result: Path | tuple | None = None
    """A file, or the words of a command that prints. Its bytes must be the same for all contenders."""
    check: tuple | None = None
    """A command that must succeed on the result, once."""
    ours: bool = False
    """Whether this is Merganser: if it fails, the scenario fails. A peer that fails is only left out."""


class Outcome:
    """The costs of one contender in one round: its steps, and sums over them."""

    def __init__(self, costs):
        self.costs = costs  # step name -> Cost

    def __getitem__(self, step):
        return self.costs[step]

    def _sum(self, name):
        values = [getattr(cost, name) for cost in self.costs.values()]
        return None if None in values else sum(values)

    def _most(self, name):
        return max(getattr(cost, name) for cost in self.costs.values())

    wall_s = property(lambda self: self._sum("wall_s"))
    durable_s = property(lambda self: self._sum("durable_s"))
    cpu_s = property(lambda self: self._sum("cpu_s"))
    device_read_bytes = property(lambda self: self._sum("device_read_bytes"))
    device_written_bytes = property(lambda self: self._sum("device_written_bytes"))
    rss_peak_bytes = property(lambda self: self._most("rss_peak_bytes"))
    disk_peak_bytes = property(lambda self: self._most("disk_peak_bytes"))

    def printed(self):
        """The output of its only step, as JSON."""
        (cost,) = self.costs.values()
        return json.loads(cost.text)


@dataclass(frozen=True)
class Claim:
    """A figure and its target."""

    what: str
    figure: Callable
    """A function of a round (contender name -> Outcome). A KeyError or TypeError means that it was not measured."""
    at_least: float | None = None
    at_most: float | None = None
    unit: str = ""

    def met(self, value):
        """Whether `value`, rounded as it is shown, reaches the target."""
        shown = round(value, 2)
        return shown >= self.at_least if self.at_least is not None else shown <= self.at_most

    def reach(self):
        """The target in words."""
        if self.at_least is not None:
            return f"at least {self.at_least:g}{self.unit}"
        return f"at most {self.at_most:g}{self.unit}"


@dataclass(frozen=True)
class Plan:
    """A scenario that is ready to run."""

    folder: Path
    """Its working folder; the file system and device of this folder are watched."""
    input_bytes: int
    memory_bytes: int
    """The memory budget of each program."""
    contenders: tuple
    claims: tuple
    notes: tuple = field(default=())
