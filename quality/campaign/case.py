"""A case, how it can end, and the id that repeats it.

An id is KIND:SCENARIO:NAME=VALUE,…  Everything that is random in a case is drawn from a generator that is seeded with
the id, so the id is all that is needed to repeat the case.
"""

import random
from dataclasses import dataclass, field


class Lost(Exception):
    """Records are gone."""


class Wrong(Exception):
    """No record is gone, but a promise of the documentation is broken."""


class Skipped(Exception):
    """This machine can't run the case; the text gives the reason."""


SURVIVED, REFUSED, LOST, WRONG, SKIPPED = "survived", "refused", "lost", "wrong", "skipped"


@dataclass(frozen=True)
class Case:
    """One try."""

    kind: str
    scenario: str
    values: tuple

    @staticmethod
    def of(kind, scenario, **values):
        """A case with these values."""
        return Case(kind, str(scenario), tuple((name, str(value)) for name, value in values.items()))

    @staticmethod
    def parse(text):
        """The case with this id."""
        kind, scenario, values = text.split(":", 2)
        return Case(kind, scenario, tuple(tuple(pair.split("=", 1)) for pair in values.split(",") if pair))

    def __str__(self):
        return f"{self.kind}:{self.scenario}:" + ",".join(f"{name}={value}" for name, value in self.values)

    def __getitem__(self, name):
        return dict(self.values)[name]

    def number(self, name):
        """A value that is a number."""
        return int(self[name])

    def chance(self):
        """The generator of the case, from its start."""
        return random.Random(str(self))


@dataclass
class Outcome:
    """How a case ended."""

    case: Case
    verdict: str
    reason: str = ""
    disturbed: int = 0
    """Kills, power cuts or failed calls that really happened."""
    killed: int = 0
    """Processes that were ended by SIGKILL."""
    seconds: float = 0.0
    kept: str = ""
    """The path of its folder and log."""
    log: list = field(default_factory=list)
