"""System calls that fail, once or from then on, or that transfer less than was requested. Then the same command runs
without the fault, or another step is taken that a user may take.
"""

import errno
import random

import settle
import shim
from case import Case
from scenarios import ALL, Scenario, Stage

from . import calls

WEIGHT = 20
SMOKE = 120
NEEDS_ROOT = False

ERRORS = ["EIO", "ENOSPC", "EDQUOT", "EINTR", "EPIPE", "ENOMEM", "EMFILE", "ESTALE", "ECONNABORTED"]
CLASSES = {"my": 4, "w": 3, "r": 2, "o": 2, "y": 2, "a": 1}
"""Which calls can fail in a case: changes of names and syncs, writes, reads, opens, syncs alone, memory and threads."""


def cases(setup, seed):
    """Endless: scenarios, calls and errors drawn at random."""
    chance = random.Random(f"failures {seed}")
    number = 0
    while True:
        for scenario in chance.sample(ALL, len(ALL)):
            number += 1
            classes = chance.choices(list(CLASSES), CLASSES.values())[0]
            at = chance.randrange(1, calls.count(setup, scenario, classes) + 1)
            how = "short" if classes in "wr" and chance.random() < 0.25 else chance.choice(ERRORS)
            how = "ENOMEM" if classes == "a" else how
            on = int(how not in ("short", "EINTR") and chance.random() < 0.25)
            yield Case.of("fail", scenario, calls=classes, at=at, how=how, on=on, n=number, seed=seed)


def run(case, trial):
    """Lets the call fail, then takes the next step."""
    stage = Stage(trial, Scenario.parse(case.scenario), calls.SIZE)
    stage.prepare()
    short = case["how"] == "short"
    _, ended = trial.disturb(
        stage.words(),
        classes=case["calls"],
        at=case.number("at"),
        do="short" if short else "fail",
        error=0 if short else getattr(errno, case["how"]),
        on=case["on"] == "1",
    )
    following = settle.choose(stage) if trial.chance.random() < 0.4 else "same"
    return settle.after(stage, ended, following)
