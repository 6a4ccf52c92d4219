"""Files planted by another user (uid 65534) in a folder that everybody may write, with the sticky bit: helper files under
the names that the command will use, and links from them, or from the output, to a file of the victim.

The command runs as root or as a third user. In half of the cases the shim refuses to follow links as the kernel does with
fs.protected_symlinks=1, whatever this machine is set to.
"""

import os
import random
import shutil
import signal

import checksum
import names
import settle
from case import REFUSED, SURVIVED, Case, Lost, Wrong
from scenarios import PRECIOUS, Scenario, Stage, view_of

WEIGHT = 4
SMOKE = 48
NEEDS_ROOT = True

STRANGER, THIRD = 65534, 12345
SCENARIOS = [
    Scenario.parse(text)
    for text in (
        "sort.merge.1", "sort.distribute.1", "view.merge.1", "two.merge.1", "consume.merge.1", "consume-view.merge.1",
        "materialize.merge.0", "materialize-consume.merge.0", "generate.any.0", "merge.any.1",
    )
]  # fmt: skip
PLANTS = [
    "output-link", "unfinished-empty", "unfinished-view", "unfinished-junk", "unfinished-journal", "unfinished-open",
    "unfinished-link", "unfinished-file", "partial-file", "partial-link", "partial-fifo", "resume-junk", "resume-link",
    "resume-fifo", "partial-and-resume", "partial-link-and-resume",
    "output-fifo", "output-file",
]  # fmt: skip


def cases(_setup, seed):
    """Endless: each plant with each scenario."""
    chance = random.Random(f"planted {seed}")
    number = 0
    while True:
        pairs = [(scenario, plant) for scenario in SCENARIOS for plant in PLANTS]
        for scenario, plant in chance.sample(pairs, len(pairs)):
            number += 1
            user, sticky = chance.choice([0, THIRD]), chance.randrange(2)
            yield Case.of("planted", scenario, plant=plant, user=user, sticky=sticky, n=number, seed=seed)


class Planted(Stage):
    """A stage whose result is in the shared folder."""

    def __init__(self, trial, scenario, user):
        super().__init__(trial, scenario, "small", plain=True)
        self.user = user
        self.name = self.result
        self.result = f"shared/{self.name}"

    def prepare(self):
        super().prepare()
        self.shared = self.folder / "shared"
        self.shared.mkdir()
        os.chown(self.shared, 0, 0)
        self.shared.chmod(0o1777)
        self.victim = self.folder / "victim"
        self.victim.write_bytes(PRECIOUS)
        self.victim.chmod(0o600)
        for folder, folders, files in os.walk(self.folder):
            for entry in (*folders, *files):
                path = os.path.join(folder, entry)
                if not path.startswith(str(self.shared)):
                    os.chown(path, self.user, self.user, follow_symlinks=False)
        os.chown(self.folder, self.user, self.user)


def run(case, trial):
    """Plants, runs the command, and checks that it served its own user."""
    user = case.number("user")
    stage = Planted(trial, Scenario.parse(case.scenario), user)
    stage.prepare()
    before = set(os.listdir(stage.shared))
    plant(stage, case["plant"])
    planted = set(os.listdir(stage.shared)) - before
    for name in planted:
        give_to_stranger(stage.shared / name)
    trial.disturbed += 1
    sticky = case["sticky"] == "1"
    following = may_follow(stage, sticky)
    environment = trial.setup.disturbed(trial.folder, classes="", ring=True, sticky=sticky)
    process = trial.start(stage.words(), environment, user=user or None, patience_s=6)
    if case["plant"] == "output-fifo" and not process.ended_within(1) and stage_inputs(stage):
        # It waits for a reader, as any program does that writes to a pipe, and has taken nothing.
        process.signal(signal.SIGTERM)
    ended = trial.finish(process, expected_signal=True)
    victim = stage.victim.read_bytes() if stage.victim.exists() else None
    if victim != PRECIOUS and not (following and victim == stage.expected):
        raise Lost(f"{case['plant']}: the victim's file is {'overwritten' if victim is not None else 'gone'}")
    now = snapshot(stage, user, following)
    if ended.code == 0:
        if now != "right":
            whole = stage_inputs(stage)
            raise (Wrong if whole else Lost)(f"{case['plant']}: status 0, but the output is {now}")
        return SURVIVED
    if now == "right" or stage_inputs(stage):
        return REFUSED
    # Without what was planted, the same command ends.
    for name in planted:
        path = stage.shared / name
        if path.is_symlink() or (path.exists() and path.stat().st_uid == STRANGER):
            settle.remove(path)
    again = trial.finish(trial.start(stage.words(), user=user or None))
    if again.code == 0 and snapshot(stage, user, False) == "right":
        return REFUSED
    raise Lost(f"{case['plant']}: refused, but the input is not whole and the same command ends with status {again.code}")


def stage_inputs(stage):
    """Whether all inputs are whole."""
    return all(stage.is_input(name, source) for name, source in stage.sources.items())


def snapshot(stage, user, following):
    """The state of the output, and whether it belongs to the right user."""
    path = stage.folder / stage.result
    if path.is_symlink() and not following:
        return "a link that another user planted"
    if not path.exists():
        return "absent"
    if not (path.is_dir() if stage.plan.makes_view else path.is_file()):
        return "of another kind"
    # A file that is replaced keeps its owner.
    owners = {user, STRANGER} if stage.trial.case["plant"] == "output-file" else {user}
    if not path.is_symlink() and path.stat().st_uid not in owners:
        return f"owned by user {path.stat().st_uid}"
    return stage.output(stage.result, stage.expected)


def may_follow(stage, sticky):
    """Whether the kernel would follow the output's link, if it is one."""
    path = stage.shared / stage.name
    if not path.is_symlink() or sticky:
        return False
    with open("/proc/sys/fs/protected_symlinks") as setting:
        return setting.read().strip() == "0"


def give_to_stranger(path):
    """Makes the other user the owner of all of it."""
    os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
    if path.is_dir() and not path.is_symlink():
        for entry in path.iterdir():
            os.chown(entry, STRANGER, STRANGER, follow_symlinks=False)


def plant(stage, what):
    """Makes the other user's files."""
    shared, name = stage.shared, stage.name
    unfinished, partial, resume = (shared / of(name) for of in (names.unfinished, names.partial, names.resume))
    evil = stage.source(3)
    if what.startswith(("partial", "resume")):
        unfinished.mkdir()
        unfinished.chmod(0o777)
    if what == "output-link":
        (shared / name).symlink_to("../victim")
    elif what == "output-fifo":
        os.mkfifo(shared / name)
    elif what == "output-file":
        (shared / name).write_bytes(b"the stranger's\n")
        (shared / name).chmod(0o666)
    elif what.startswith("unfinished"):
        plant_unfinished(stage, what, unfinished, evil)
    elif what == "partial-file":
        partial.write_bytes(evil[1])
        partial.chmod(0o666)
    elif what == "partial-link":
        partial.symlink_to("../../victim")
    elif what == "partial-fifo":
        os.mkfifo(partial, 0o666)
        partial.chmod(0o666)
    elif what == "resume-junk":
        resume.write_bytes(b"junk")
    elif what == "resume-link":
        resume.symlink_to("../victim")
    elif what == "resume-fifo":
        os.mkfifo(resume)
        resume.chmod(0o666)
    elif what in ("partial-and-resume", "partial-link-and-resume"):
        content = evil[1][: len(stage.expected)].ljust(len(stage.expected), b"\n")
        view = stage.folder / "v" / names.MANIFEST
        if what == "partial-link-and-resume":
            content = b""
            partial.symlink_to("../victim")
        else:
            partial.write_bytes(content)
            partial.chmod(0o666)
        manifest = checksum.crc32c(view.read_bytes()) if view.exists() else 1
        complete = bool(content) and stage.trial.chance.random() < 0.7
        head = {"format": "merganser-resume", "version": 1, "view_crc": manifest, "consume": False}
        paths = {"view": str(stage.folder / "v"), "output": str(shared / name)}
        point = {"written": len(content), "total": len(content), "key": [], "tie": None, "complete": complete}
        point = head | paths | point
        resume.write_bytes(checksum.sealed(point))


def plant_unfinished(stage, what, path, evil):
    """The folder in which a view is made."""
    if what == "unfinished-link":
        (stage.folder / "elsewhere").mkdir(mode=0o777)
        path.symlink_to("../elsewhere")
        return
    if what == "unfinished-file":
        path.write_bytes(b"junk")
        return
    if what == "unfinished-view":
        shutil.copytree(view_of(stage.setup, hash(evil[0]), evil[0], "merge", "off", stage.memory_bytes), path)
    else:
        path.mkdir()
    if what == "unfinished-junk":
        (path / names.MANIFEST).write_bytes(b"junk\n")
    if what == "unfinished-journal":
        (path / names.JOURNAL).write_bytes(b"junk\n")
    path.chmod(0o777 if what in ("unfinished-open", "unfinished-view") else 0o755)
