"""Power cuts: the command works on ext4 or XFS on a loop device, the file system is shut down without a flush of its
log, and mounted again. The cut comes at the Nth change, sync or write, at a random moment while io_uring works, or just
after the end. Usually the process dies with the power; in some cases it meets the dead file system first. Its status says
nothing then: on XFS the sync of a folder succeeds on a file system that is shut down.
"""

import fcntl
import os
import random
import shutil
import signal
import struct
import subprocess
import time

import settle
from case import Case, Lost, Skipped, Wrong
from scenarios import ALL, Scenario, Stage

from . import calls, kills

WEIGHT = 4
SMOKE = 16
NEEDS_ROOT = True

SHUTDOWN = 0x8004587D
"""EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN."""
WITHOUT_LOG_FLUSH = 2
UNMOUNT_S = 10
IMAGE_BYTES = {"ext4": 96 << 20, "xfs": 320 << 20}
MAKE = {
    "ext4": ["mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=1"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
}


def cases(setup, seed):
    """Endless: each scenario, both file systems in turn."""
    chance = random.Random(f"power {seed}")
    number = 0
    while True:
        for scenario in chance.sample(ALL, len(ALL)):
            number += 1
            system = chance.choice([name for name in MAKE if shutil.which(MAKE[name][0])] or ["ext4"])
            # 0: at a random moment.
            at = 0 if chance.random() < 0.3 else chance.randrange(1, calls.count(setup, scenario) * 11 // 10 + 2)
            yield Case.of("power", scenario, fs=system, at=at, n=number, seed=seed)


def run(case, trial):
    """Cuts the power, mounts again, and does what is next."""
    system = case["fs"]
    took = kills.undisturbed_s(trial, Case.of("kill", case.scenario, size="small"))
    image = trial.root / "image"
    make_image(trial.setup, system, image)
    mount(trial, system, image)
    trial.folder = trial.folder / "work"
    trial.folder.mkdir()
    stage = Stage(trial, Scenario.parse(case.scenario), "small")
    stage.prepare()
    sync(trial.folder)
    in_time = True
    if case["at"] == "0":
        process = trial.start(stage.words())
        in_time = process.ended_within(trial.chance.random() * took * 2)
        cut(trial.folder)
        trial.disturbed += 1
        if trial.chance.random() < 0.75:
            process.signal(signal.SIGKILL)
        ended = trial.finish(process)
    else:
        how = trial.chance.choice(["cut", "cut", "cut", "dead"])
        hit, ended = trial.disturb(stage.words(), at=case.number("at"), do=how)
        in_time = not hit
        cut(trial.folder)
        trial.disturbed += in_time
    unmount(trial)
    mount(trial, system, image)
    trial.say("# mounted again")
    now = stage.snapshot()
    if in_time and ended.code == 0 and now.output != "right":
        raise (Wrong if now.inputs else Lost)(f"status 0 before the cut, but afterwards the output is {now.output}")
    # A name that was removed just before the cut may be back, so nothing is checked about leftovers yet.
    return settle.after(stage, None, settle.choose(stage))


def make_image(setup, system, image):
    """An empty file system, made once in each process and copied."""
    if not shutil.which(MAKE[system][0]):
        raise Skipped(f"{MAKE[system][0]} is not installed")
    empty = setup.own / f"empty.{system}"
    if not empty.exists():
        with open(empty, "wb") as file:
            file.truncate(IMAGE_BYTES[system])
        subprocess.run([*MAKE[system], empty], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cp", "--sparse=always", empty, image], check=True)


def mount(trial, system, image):
    """Mounts the image where the case works."""
    place = trial.root / "work"
    subprocess.run(["mount", "-t", system, "-o", "loop", image, place], check=True)
    trial.cleanup.append(lambda: subprocess.run(["umount", "-l", place], check=True))


def unmount(trial):
    """Unmounts it before its time. The ring of a killed process may hold files a moment longer than the process lives."""
    deadline = time.monotonic() + UNMOUNT_S
    while subprocess.run(["umount", trial.root / "work"], capture_output=True).returncode:
        if time.monotonic() > deadline:
            raise RuntimeError("the file system stays busy")
        time.sleep(0.01)
    trial.cleanup.pop()


def sync(folder):
    """Makes the inputs survive the cut."""
    subprocess.run(["sync", "-f", folder], check=True)


def cut(folder):
    """The power goes, if it is not gone yet."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        fcntl.ioctl(handle, SHUTDOWN, struct.pack("I", WITHOUT_LOG_FLUSH))
    except OSError:
        pass
    finally:
        os.close(handle)
