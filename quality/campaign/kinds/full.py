"""Full disks: a small file system in memory (tmpfs) that holds inputs, temporary folders and results. When the command
has failed, room is made, and the user continues.
"""

import os
import random
import subprocess

import settle
from case import Case, Wrong
from scenarios import ALL, Scenario, Stage

WEIGHT = 5
SMOKE = 24
NEEDS_ROOT = True

ROOM_BYTES = 64 << 20


def cases(_setup, seed):
    """Endless: each scenario with a drawn share of the input's size as room."""
    chance = random.Random(f"full {seed}")
    number = 0
    while True:
        for scenario in chance.sample(ALL, len(ALL)):
            number += 1
            room = chance.randrange(0, 240)
            yield Case.of("full", scenario, room=room, n=number, seed=seed)


def run(case, trial):
    """Fills the disk, makes room, and takes the next step."""
    stage = Stage(trial, Scenario.parse(case.scenario), trial.chance.choice(["small", "middle"]))
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM_BYTES},mode=755", "campaign", trial.folder], check=True)
    trial.cleanup.append(lambda: subprocess.run(["umount", "-l", trial.folder], check=True))
    stage.prepare()
    used = os.statvfs(trial.folder)
    used = (used.f_blocks - used.f_bfree) * used.f_frsize
    wanted = len(stage.expected)
    resize(trial, used + wanted * case.number("room") // 100)
    ended = trial.run(tried(stage))
    if ended.code not in (0, 2):
        raise Wrong(f"a full disk ends it with status {ended.code}")
    trial.disturbed += ended.code == 2
    if trial.chance.random() < 0.3 and ended.code == 2:
        resize(trial, used + wanted * trial.chance.randrange(0, 240) // 100)
        ended = trial.run(tried(stage))
    resize(trial, ROOM_BYTES)
    return settle.after(stage, ended, settle.choose(stage))


def tried(stage):
    """The command, which most sorts begin although there is too little room, and others refuse."""
    words = stage.words()
    if words[0] != "sort" or stage.plan.of_table or stage.trial.chance.random() < 0.2:
        return words
    return ["sort", "--force", *words[1:]]


def resize(trial, size):
    """Gives the file system another size; the pages that are in use stay."""
    size = (size + 4095) // 4096 * 4096
    trial.say(f"# the file system has {size} bytes")
    done = subprocess.run(["mount", "-o", f"remount,size={size}", trial.folder], capture_output=True)
    if done.returncode:
        # More than this size is in use, so the disk stays as full as it is.
        trial.say("# more than that is in use")
