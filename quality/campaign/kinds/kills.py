"""Kills at random moments: SIGKILL, some of them after SIGSTOP and SIGCONT, some at the Nth change of a name or sync
while io_uring is at work. After the kill comes a step that a user may take. Some cases end with SIGTERM or SIGINT.

A moment is a share of the time that the command takes without a disturbance. It differs between two runs, so repeat
such a case with `--only ID --repeat 100`.
"""

import random
import signal
import time

import settle
import shim
from case import Case, Wrong
from scenarios import ALL, Scenario, Stage
from trial import Trial

WEIGHT = 30
SMOKE = 160
NEEDS_ROOT = False

SIZES = {"small": 4, "middle": 4, "large": 1}
HUGE_AFTER, HUGE_ONCE_IN = 300, 100
"""A copy has resume points only every 64 MiB, so only a huge input sees them. Such a case takes seconds, so it is rare, and
the short campaign has none."""

_times = {}


def cases(_setup, seed):
    """Endless: each scenario in turn, those that consume twice as often."""
    chance = random.Random(f"kills {seed}")
    scenarios = ALL + [scenario for scenario in ALL if scenario.plan.consumes]
    number = 0
    while True:
        for scenario in chance.sample(scenarios, len(scenarios)):
            number += 1
            size = chance.choices(list(SIZES), SIZES.values())[0]
            if scenario.plan.consumes and chance.randrange(HUGE_ONCE_IN) == 0 and number > HUGE_AFTER:
                size = "huge"
            yield Case.of("kill", scenario, size=size, n=number, seed=seed)


def run(case, trial):
    """Kills the command up to three times, then takes the next step."""
    chance = trial.chance
    trial.patience_s *= 10 if case["size"] == "huge" else 1
    stage = Stage(trial, Scenario.parse(case.scenario), case["size"])
    took = undisturbed_s(trial, case)
    stage.prepare()
    ended = None
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        before = stage.snapshot() if ended else None
        if before and before.output == "right":
            break
        ended = kill_once(trial, stage, took)
        if ended.code == 0:
            break
        if ended.code != 2:
            settle.check_between(stage)
    following = settle.choose(stage)
    return settle.after(stage, ended, following)


def kill_once(trial, stage, took):
    """Starts the command and ends it at some moment, if it does not end before."""
    chance = trial.chance
    if chance.random() < 0.3:
        _, ended = trial.disturb(
            stage.words(), classes=shim.NAMES, at=chance.randrange(1, 60), do=chance.choice(["kill", "late"]), ring=True
        )
        return ended
    process = trial.start(stage.words())
    moment = chance.random() * took * 1.05
    how = chance.choices(["kill", "stop", "end"], [16, 3, 1])[0]
    trial.say(f"  {how} after {moment * 1000:.2f} ms of {took * 1000:.2f}")
    if not process.ended_within(moment):
        trial.disturbed += 1
        if how == "stop":
            process.signal(signal.SIGSTOP)
            time.sleep(chance.random() * 0.003)
            if chance.random() < 0.5:
                process.signal(signal.SIGCONT)
                time.sleep(chance.random() * 0.002)
        process.signal(chance.choice([signal.SIGTERM, signal.SIGINT]) if how == "end" else signal.SIGKILL)
    ended = trial.finish(process, expected_signal=how == "end")
    if how == "end" and ended.code in (130, 143) and not stage.plan.consumes:
        left = [name for name in stage.debris(also=stage.plan.inputs) if name != stage.result]
        if left:
            raise Wrong(f"left behind after SIGTERM or SIGINT: {', '.join(left[:5])}")
    return ended


def undisturbed_s(trial, case):
    """How long the scenario takes when nothing disturbs it, measured once in each process."""
    key = (case.scenario, case["size"])
    if key not in _times:
        measured = Trial(trial.setup, Case.of("time", case.scenario, size=case["size"]), place="time")
        measured.patience_s = trial.patience_s
        stage = Stage(measured, Scenario.parse(case.scenario), case["size"], plain=True)
        stage.prepare()
        ended = measured.run(stage.words())
        if stage.output(stage.result, stage.expected) != "right":
            raise Wrong("undisturbed, the command does not make the right result")
        _times[key] = max(ended.seconds, 0.004)
        measured.end(keep=False)
    return _times[key]
