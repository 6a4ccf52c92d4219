"""A kill at every change of a name or size, every sync and every write in turn. io_uring is refused, so that the shim
sees all of these calls. After the kill comes a step that a user may take. One round tries every call of every scenario,
in an order that the seed decides. The next round draws other data and other steps.
"""

import functools
import random

import settle
import shim
from case import Case
from scenarios import ALL, Scenario, Stage
from trial import Trial

WEIGHT = 30
SMOKE = 160
NEEDS_ROOT = False

SIZE = "small"


def cases(setup, seed):
    """Every call of every scenario, round after round."""
    chance = random.Random(f"calls {seed}")
    number = 0
    while True:
        number += 1
        points = [(scenario, at) for scenario in ALL for at in range(1, count(setup, scenario) + 1)]
        for scenario, at in chance.sample(points, len(points)):
            yield Case.of("call", scenario, at=at, round=number, seed=seed)


@functools.lru_cache(maxsize=None)
def count(setup, scenario, classes=shim.CHANGES):
    """How many calls a scenario makes, at least 1; counted once."""
    trial = Trial(setup, Case.of("count", scenario), place="count")
    try:
        stage = Stage(trial, scenario, SIZE, plain=True)
        stage.prepare()
        log = trial.root / "calls"
        words = stage.words()
        trial.finish(trial.start(words, setup.disturbed(trial.folder, classes=classes, log=log)))
        return max(1, len(log.read_bytes().splitlines()) if log.exists() else 0)
    finally:
        trial.end(keep=False)


def run(case, trial):
    """Kills at the call, sometimes the repetition too, then takes the next step."""
    chance = trial.chance
    stage = Stage(trial, Scenario.parse(case.scenario), SIZE)
    stage.prepare()
    how = chance.choices(["kill", "late", "torn"], [3, 1, 1])[0]
    hit, ended = trial.disturb(stage.words(), at=case.number("at"), do=how)
    if hit and chance.random() < 0.25 and stage.snapshot().output != "right":
        settle.check_between(stage)
        _, ended = trial.disturb(stage.words(), at=chance.randrange(1, 80), do="kill")
    return settle.after(stage, ended, settle.choose(stage))
