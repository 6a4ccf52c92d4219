"""Inputs and outputs that a command does not expect: the same input twice, links, an output inside the view that is
consumed, names that leave no room for helper names, targets of other kinds, helper names that are taken, and inputs
that another program changes while they are sorted. Either the command refuses before anything changes, or the result is right.
"""

import os
import random
import stat
import time

import names
import settle
from case import REFUSED, SURVIVED, Case, Lost, Wrong
from scenarios import PRECIOUS, Scenario, Stage

from . import kills

WEIGHT = 4
SMOKE = 60
NEEDS_ROOT = False

SORTS = ["sort.merge.1", "sort.distribute.1", "view.merge.1", "consume.merge.1", "consume-view.merge.1"]
COPIES = ["materialize.merge.0", "materialize-consume.merge.0"]
CONSUMERS = ["consume.merge.1", "consume-view.merge.1", "consume-onto.merge.1"]
ODD = {
    "twice": SORTS,
    "twice-by-link": SORTS,
    "twice-by-name": SORTS,
    "hard-link": CONSUMERS,
    "symlink": SORTS + ["consume-onto.merge.1"],
    "output-in-view": COPIES,
    "output-is-view-file": COPIES,
    "own-file-in-view": ["materialize-consume.merge.0"],
    "folder-in-view": ["materialize-consume.merge.0"],
    "output-folder": SORTS + COPIES,
    "output-fifo": CONSUMERS[:1] + ["materialize-consume.merge.0"],
    "output-symlink": ["sort.merge.1", "consume.merge.1", *COPIES],
    "long-name": SORTS + COPIES,
    "not-utf8": SORTS + COPIES,
    "junk-manifest": CONSUMERS,
    "other-view-unfinished": CONSUMERS,
    "stale-resume": ["sort.merge.1", *CONSUMERS, *COPIES],
    "stale-partial": ["sort.merge.1", *CONSUMERS, *COPIES],
    "appended": CONSUMERS,
    "replaced": CONSUMERS,
    "truncated": SORTS,
    "missing": SORTS + COPIES,
}


def cases(_setup, seed):
    """Endless: each oddity with each of its scenarios."""
    chance = random.Random(f"odd {seed}")
    number = 0
    while True:
        pairs = [(what, scenario) for what, scenarios in ODD.items() for scenario in scenarios]
        for what, scenario in chance.sample(pairs, len(pairs)):
            number += 1
            yield Case.of("odd", scenario, what=what, n=number, seed=seed)


def run(case, trial):
    """Makes it odd and runs the command."""
    what = case["what"]
    if what in ("appended", "replaced", "truncated"):
        return changing(case, trial, what)
    stage = Stage(trial, Scenario.parse(case.scenario), "small", plain=True)
    stage.prepare()
    trial.disturbed += 1
    return globals()[what.replace("-", "_")](stage)


def judged(stage, words, result=None, expected=None, inputs=None, kept=()):
    """Runs a command. With status 0 the result must be right; otherwise no file may have changed."""
    trial = stage.trial
    result, expected = result or stage.result, expected or stage.expected
    ended = trial.run(words)
    whole = inputs() if inputs else stage.snapshot().inputs
    right = os.path.lexists(os.path.join(trial.folder, result)) and output(stage, result, expected)
    for path, content in kept:
        if not path.is_file() or path.read_bytes() != content:
            raise Lost(f"{path.name}, which is no input, is changed or gone (status {ended.code})")
    if ended.code == 0:
        if not right:
            raise (Wrong if whole else Lost)("status 0, but the result is wrong")
        return SURVIVED
    if not whole and not right:
        again = trial.run(words)
        if again.code == 0 and output(stage, result, expected):
            raise Wrong("refused only after it had changed its input, then done by the same command")
        raise Lost("refused after it had changed its input, and so for ever")
    return REFUSED


def output(stage, result, expected):
    """Whether the result is right."""
    return stage.output(result, expected) == "right"


def twice(stage):
    """The same name twice."""
    return both(stage, "in")


def twice_by_link(stage):
    """An input, and a hard link of it."""
    os.link(stage.folder / "in", stage.folder / "in2")
    return both(stage, "in2")


def twice_by_name(stage):
    """An input, and a symlink to it."""
    (stage.folder / "in2").symlink_to("in")
    return both(stage, "in2")


def both(stage, second):
    content = stage.sources["in"][0]
    expected = stage.merged({"a": (content, None), "b": (content, None)})
    return judged(stage, stage.words(["in", second]), expected=expected)


def hard_link(stage):
    """An input with a second name, which belongs to someone else."""
    other = stage.folder / "t1" / "link"
    os.link(stage.folder / "in", other)
    return judged(stage, stage.words(), kept=[(other, stage.sources["in"][0])])


def symlink(stage):
    """An input that is a symlink."""
    content = stage.sources["in"][0]
    target = stage.folder / "t1" / "target"
    (stage.folder / "in").rename(target)
    (stage.folder / "in").symlink_to("t1/target")

    def whole():
        return target.is_file() and target.read_bytes() == content

    verdict = judged(stage, stage.words(), inputs=whole)
    if stage.plan.consumes and target.exists() and target.read_bytes() not in (content, stage.expected):
        raise Wrong("what the symlink named stays behind without its content")
    return verdict


def output_in_view(stage):
    """An output inside the view."""
    return judged(stage, stage.words(result="v/sorted"), result="v/sorted")


def output_is_view_file(stage):
    """An output that is a file of the view."""
    return judged(stage, stage.words(result="v/000000.run"), result="v/000000.run")


def own_file_in_view(stage):
    """A file of the user in the view's folder."""
    mine = stage.folder / "v" / "notes"
    mine.write_bytes(PRECIOUS)
    return judged(stage, stage.words(), kept=[(mine, PRECIOUS)])


def folder_in_view(stage):
    """A folder of the user in the view's folder."""
    (stage.folder / "v" / "folder").mkdir()
    mine = stage.folder / "v" / "folder" / "notes"
    mine.write_bytes(PRECIOUS)
    return judged(stage, stage.words(), kept=[(mine, PRECIOUS)])


def output_folder(stage):
    """An output that is a folder."""
    (stage.folder / "out").mkdir()
    return judged(stage, stage.words())


def output_fifo(stage):
    """An output that is a named pipe without a reader: refused, not replaced."""
    path = stage.folder / "out"
    os.mkfifo(path)
    process = stage.trial.start(stage.words(), patience_s=2)
    if not process.ended_within(1.5) and stage.snapshot().inputs:
        # It waits for a reader and has taken nothing.
        process.signal(15)
    ended = stage.trial.finish(process, expected_signal=True)
    if not stat.S_ISFIFO(path.lstat().st_mode):
        raise Wrong("a named pipe was replaced by a file")
    if not stage.snapshot().inputs:
        raise Lost(f"status {ended.code}, the output is a pipe, and the input is not whole")
    return REFUSED


def output_symlink(stage):
    """An output that is the user's own symlink. It is written through or replaced; its target is unchanged or the result."""
    target = stage.folder / "t1" / "target"
    target.write_bytes(PRECIOUS)
    (stage.folder / "out").symlink_to("t1/target")
    verdict = judged(stage, stage.words())
    if target.read_bytes() not in (PRECIOUS, stage.expected):
        raise Lost("the file that the output's link names is neither old nor new")
    return verdict


def long_name(stage):
    """A name of the greatest length, or a little shorter, so that helper names may be too long."""
    name = "n" * stage.trial.chance.randrange(225, 257)
    return judged(stage, stage.words(result=name), result=name)


def not_utf8(stage):
    """A name that is no UTF-8."""
    name = os.fsdecode(b"out-\xff\xfe")
    return judged(stage, stage.words(result=name), result=name)


def junk_manifest(stage):
    """Any bytes as the manifest of the unfinished folder."""
    folder = stage.folder / names.unfinished(stage.result)
    folder.mkdir()
    (folder / names.MANIFEST).write_bytes(b"junk\n")
    return retried(stage, folder)


def other_view_unfinished(stage):
    """A finished view of other records as the unfinished folder."""
    folder = stage.folder / names.unfinished(stage.result)
    stage.put_view(folder, stage.source(2))
    return retried(stage, folder)


def retried(stage, folder):
    """The command with something in its way; refused, it works when that is gone."""
    verdict = judged(stage, stage.words())
    if verdict == REFUSED and stage.snapshot().inputs:
        settle.remove(folder)
        return judged(stage, stage.words())
    return verdict


def stale_resume(stage):
    """A resume point of another copy."""
    path = stage.folder / names.resume(stage.result)
    path.parent.mkdir(mode=0o700)
    path.write_bytes(b"junk")
    return retried(stage, path.parent)


def stale_partial(stage):
    """Part of another copy."""
    path = stage.folder / names.partial(stage.result)
    path.parent.mkdir(mode=0o700)
    path.write_bytes(b"junk")
    return retried(stage, path.parent)


def missing(stage):
    """An input that is not there: refused, and nothing is made."""
    name = stage.plan.inputs[0]
    settle.remove(stage.folder / name)
    ended = stage.trial.run(stage.words())
    left = [entry for entry in stage.debris() if entry != name]
    if ended.code != 2:
        raise Wrong(f"an input that is not there: status {ended.code}")
    if left:
        raise Wrong(f"an input that is not there leaves {', '.join(left)}")
    return REFUSED


# Inputs that change.


def changing(case, trial, what):
    """Another program changes the input while it is sorted."""
    took = kills.undisturbed_s(trial, Case.of("kill", case.scenario, size="middle"))
    stage = Stage(trial, Scenario.parse(case.scenario), "middle", plain=True)
    stage.prepare()
    path, content = trial.folder / "in", stage.sources["in"][0]
    process = trial.start(stage.words())
    time.sleep(trial.chance.random() * took)
    if process.ended_within(0) or not path.exists() or (stage.plan.onto and path.stat().st_size != len(content)):
        ended = trial.finish(process)
        return settle.after(stage, ended)
    trial.disturbed += 1
    change = {"appended": append, "replaced": replace, "truncated": truncate}[what]
    more, kept, legal = change(stage, path, content)
    ended = trial.finish(process)
    result = trial.folder / stage.result
    out = result.read_bytes() if result.is_file() else trial.run(["cat", stage.result]).out if result.is_dir() else b""
    # Onto itself, the name may be the finished output's already when something is appended to it.
    if stage.plan.onto:
        legal += [more, stage.expected + more]
    if ended.code == 0 and out not in legal:
        raise Wrong(f"{what}: status 0 and {len(out)} bytes that are neither the input before nor after")
    lines = [line for line in more.splitlines(keepends=True)]
    if lines and not (kept() or all(line in out for line in (lines[0], lines[-1]))):
        raise Lost(f"{what}: what was added meanwhile is neither in the input nor in the output (status {ended.code})")
    return SURVIVED if ended.code == 0 else REFUSED


def append(stage, path, content):
    """Lines are appended through a handle that a logging program keeps."""
    more = stage.source(2)[0][:5000].rpartition(b"\n")[0] + b"\n"
    try:
        with open(path, "r+b") as file:
            file.seek(0, os.SEEK_END)
            file.write(more)
            file.flush()
            handle = os.dup(file.fileno())
    except FileNotFoundError:
        return b"", lambda: True, [stage.expected]
    stage.trial.cleanup.append(lambda: os.close(handle))
    both_sorted = stage.merged({"a": (content, None), "b": (more, None)})
    return more, lambda: path.is_file() and path.read_bytes().endswith(more), [stage.expected, both_sorted]


def replace(stage, path, content):
    """The input is renamed and a new one made, as by logrotate."""
    more, more_sorted = stage.source(2)
    try:
        path.rename(path.with_name("in.1"))
    except FileNotFoundError:
        return b"", lambda: True, [stage.expected]
    path.write_bytes(more)
    # On a busy machine the command may look at its input only now.
    return more, lambda: path.is_file() and path.read_bytes() == more, [stage.expected, more_sorted]


def truncate(stage, path, content):
    """The input loses its end: an error, or what was there at the beginning."""
    size = stage.trial.chance.randrange(1, len(content))
    try:
        os.truncate(path, size)
    except FileNotFoundError:
        pass
    left = content[:size] if content[size - 1 : size] == b"\n" else content[:size] + b"\n"
    return b"", lambda: True, [stage.expected, stage.merged({"a": (left, None), "b": (b"", None)})]
