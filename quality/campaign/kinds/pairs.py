"""Two processes at once on one output: the same command twice, or another input with the same output. Sometimes one of
them is killed.
"""

import random
import signal
import time

import settle
from case import Case, Lost, Wrong
from process import PATIENCE_S
from scenarios import ALL, Scenario, Stage

from . import kills

WEIGHT = 5
SMOKE = 40
NEEDS_ROOT = False

POLL_S = 0.0005


def cases(_setup, seed):
    """Endless: each scenario, the second command a twin or a rival."""
    chance = random.Random(f"pairs {seed}")
    number = 0
    while True:
        for scenario in chance.sample(ALL, len(ALL)):
            number += 1
            rival = scenario.plan.inputs and not scenario.plan.onto and chance.random() < 0.5
            yield Case.of("pair", scenario, second="rival" if rival else "twin", n=number, seed=seed)


def run(case, trial):
    """Starts both, kills one or none, and looks at each result when its process ends with status 0."""
    chance = trial.chance
    took = kills.undisturbed_s(trial, Case.of("kill", case.scenario, size="small"))
    stage = Stage(trial, Scenario.parse(case.scenario), "small")
    stage.prepare()
    first, expected = stage.words(), {0: stage.expected, 1: stage.expected}
    following, second = None, first
    if case["second"] == "rival":
        following = settle.Following(stage, stage.snapshot())
        second, _, expected[1] = following.other()
    processes = [trial.start(first)]
    delay, moment = (chance.random() * took for _ in range(2))
    time.sleep(delay)
    processes.append(trial.start(second))
    victim = chance.choice([None, 0, 1])
    ended, published = watch(trial, stage, processes, expected, victim, moment)
    good = [number for number in (0, 1) if ended[number].code == 0]
    # A twin that starts after the first has ended sorts the finished output onto itself, and may be killed then.
    interrupted = stage.plan.onto and any(ended[number].code < 0 for number in (0, 1))
    # A process that is killed may have given its result the name just before.
    done = [number for number in (0, 1) if ended[number].code <= 0]
    if good and not interrupted and not any(stage.output(stage.result, expected[number]) == "right" for number in done):
        whole = stage.snapshot().inputs
        raise (Wrong if whole else Lost)("one ended with status 0, but the output is not its result")
    if following is None:
        return settle.after(stage, None)
    # The rival's records are in the output, or in its input, or its command repeated gets them there.
    if stage.output(stage.result, expected[1]) != "right" and not following.whole():
        if 1 in good and 0 in good:
            return settle.SURVIVED
        again = trial.run(second)
        if stage.output(stage.result, expected[1]) != "right":
            raise Lost(f"the rival's input is not whole, and its command repeated ends with status {again.code}")
    for name in following.sources:
        settle.remove(trial.folder / name)
    # The rival replaced the result of the first, as its user asked.
    if (0 in good or 0 in published) and stage.plan.consumes:
        return settle.SURVIVED
    return settle.same(stage)


def watch(trial, stage, processes, expected, victim, moment):
    """Waits for both, and looks at the result as soon as one has ended. Returns how they ended, and which were killed when
    their result had its name already: the other one may replace it.
    """
    started = time.monotonic()
    ended, published = {}, set()
    while len(ended) < 2:
        now = time.monotonic() - started
        if victim is not None and victim not in ended and now > moment:
            processes[victim].signal(signal.SIGKILL)
            trial.disturbed += 1
            victim = None
        for number, process in enumerate(processes):
            if number in ended or not (process.ended_within(0) or now > PATIENCE_S):
                continue
            ended[number] = trial.finish(process)
            if ended[number].code < 0 and is_there(stage, processes, ended, expected[number]):
                published.add(number)
            if ended[number].code == 0 and not stage.plan.makes_view and not stage.plan.of_table:
                path = trial.folder / stage.result
                content = path.read_bytes() if path.is_file() else None
                if content not in expected.values():
                    size = "absent" if content is None else f"{len(content)} of {len(expected[number])} bytes"
                    for other in processes:
                        other.signal(signal.SIGKILL)
                        other.wait()
                    raise Wrong(f"one of two ends with status 0, and the output is then {size}")
        time.sleep(POLL_S)
    return ended, published


def is_there(stage, processes, ended, content):
    """Whether the output is this, while the processes that have not ended stand still."""
    others = [process for number, process in enumerate(processes) if number not in ended]
    for process in others:
        process.signal(signal.SIGSTOP)
    try:
        return not stage.plan.makes_view and stage.output(stage.result, content) == "right"
    finally:
        for process in others:
            process.signal(signal.SIGCONT)
