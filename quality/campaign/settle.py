"""The steps after a disturbance: what the user does next, and whether every record is still there at the end.

    disturbed ──► what next ──────────────────────────────────► the same command, until it ends ──► every record?
                  same            nothing else
                  new             a new file has the input's name (the old one was moved to NAME.old)
                  other           the command with another input and the same output
                  elsewhere       the command with the same input and another output
                  consume-other   sort --consume of another input to the same output
                  sort-other      sort of another input to the same output
                  view-other      sort --view of another input to the same output
                  copy-other      materialize of another view to the same output

The rule: the original records are in the input (byte for byte), or in the finished output, or the same command
repeated ends with exactly the sorted bytes. A new file or another input is never removed unread. Status 0 means that
the result is right, and that nothing else is left behind. Files that were moved aside are moved back before the same
command is repeated, as its sentence asks.
"""

import shutil

from case import REFUSED, SURVIVED, Lost, Wrong

REPEATS = 3


def choices(stage):
    """The next steps that a scenario can have, each with its weight."""
    plan = stage.plan
    if not plan.inputs:
        return {"same": 4, "consume-other": 2, "view-other": 1, "copy-other": 1}
    if plan.of_table:
        # The other commands take lines.
        return {"same": 8, "new": 3, "other": 3, "elsewhere": 2}
    weights = {"same": 8, "new": 3, "other": 3, "elsewhere": 2, "view-other": 1, "consume-other": 2}
    # Another sort onto a file that is half consumed replaces it because the user says so.
    if not plan.onto and not plan.makes_view:
        weights |= {"sort-other": 1, "copy-other": 2}
    return weights


def choose(stage):
    """The next step of this case."""
    weights = choices(stage)
    return stage.trial.chance.choices(list(weights), weights.values())[0]


def check_between(stage, before_was_right=False):
    """Checks that hold at any moment, however the command ended."""
    now = stage.snapshot()
    plan = stage.plan
    if not plan.consumes:
        if plan.onto:
            if not now.inputs and now.output != "right":
                raise Lost("the file that is sorted onto itself is neither the old nor the new one")
        elif not now.inputs:
            raise Lost("an input is changed by a command that does not consume it")
    if not plan.onto:
        allowed = {"right", "precious" if stage.precious else "absent"}
        if now.output not in allowed:
            half = f"the output is {now.output}, neither old nor new"
            raise (Wrong if now.inputs else Lost)(half)
    stage.check_privacy()
    return now


def after(stage, ended, following="same"):
    """Judges the end of a disturbed command, takes the next step, and returns the verdict."""
    now = check_between(stage)
    if ended is not None and ended.code == 0:
        if now.output != "right":
            raise (Wrong if now.inputs else Lost)(f"status 0, but the output is {now.output}")
        stage.check_success()
    stage.trial.say(f"# inputs {'whole' if now.inputs else 'not whole'}, output {now.output}; next: {following}")
    if following != "same":
        done = Following(stage, now).run(following)
        if done:
            return done
    return same(stage)


class Following:
    """A different command as the next step, and the limits on what it may do."""

    def __init__(self, stage, before):
        self.stage, self.before, self.trial, self.folder = stage, before, stage.trial, stage.folder
        self.sources = {}
        """Content and sorted content of the files that are new."""

    def run(self, following):
        """Takes the step. Returns a verdict if the fate of the original records is decided, else None."""
        stage = self.stage
        words, result, expected = getattr(self, following.replace("-", "_"))()
        ended = self.trial.run(words)
        if following == "elsewhere":
            return self.check_elsewhere(ended, result)
        is_view = stage.plan.makes_view or "--view" in words
        reached = self.reached(result, expected, is_view)
        safe = reached or self.whole()
        if not safe:
            raise Lost(f"{following}: {', '.join(self.sources)} removed or changed (status {ended.code}), "
                       f"and its records are not in {result}")  # fmt: skip
        finished_old = following == "new" and ended.code == 0 and self.whole() and stage.snapshot().output == "right"
        if ended.code == 0 and not reached and not finished_old:
            raise Wrong(f"{following}: status 0, but {result} is not what was asked for")
        # A user may replace a finished output, or a whole input by -o onto it, on purpose.
        meant = self.before.output == "right" or (stage.plan.onto and self.before.inputs)
        self.undo(following, reached)
        if reached and meant and stage.snapshot().output != "right" and not stage.snapshot().inputs:
            return SURVIVED
        return None

    def reached(self, result, expected, is_view):
        """Whether the result is the new one."""
        path = self.folder / result
        if self.stage.plan.of_table:
            return self.stage.output(result, expected) == "right"
        if is_view:
            if not path.is_dir():
                return False
            ended = self.trial.run(["cat", result])
            return ended.code == 0 and ended.out == expected
        return path.is_file() and path.read_bytes() == expected

    def whole(self):
        """Whether the new files are there as they were."""
        return all(self.is_whole(name, source) for name, source in self.sources.items())

    def is_whole(self, name, source):
        path = self.folder / name
        if path.is_dir():
            pristine = self.stage.view_of(source)
            files = [(path / file.name, file) for file in pristine.iterdir()]
            return all(file.is_file() and file.read_bytes() == other.read_bytes() for file, other in files)
        return path.is_file() and path.read_bytes() == source[0]

    def check_elsewhere(self, ended, result):
        stage = self.stage
        state = stage.output(result, stage.expected)
        if ended.code == 0:
            if state != "right":
                whole = stage.snapshot().inputs
                raise (Wrong if whole else Lost)(f"elsewhere: status 0, but {result} is {state}")
            if stage.plan.consumes:
                return SURVIVED
        elif state not in ("absent", "right"):
            raise Wrong(f"elsewhere: status {ended.code} and half a result")
        remove(self.folder / result)
        return None

    def undo(self, following, reached):
        """Removes the new files, and puts the old ones back where they were."""
        for name in self.sources:
            remove(self.folder / name)
            old = self.folder / f"{name}.old"
            if following == "new" and old.exists():
                old.rename(self.folder / name)
        if following == "view-other" and reached and not self.stage.plan.makes_view:
            remove(self.folder / self.stage.result)

    # The commands: words, result, and what it must be.

    def new(self):
        stage = self.stage
        for number, name in enumerate(stage.plan.inputs):
            path = self.folder / name
            if path.exists():
                path.rename(self.folder / f"{name}.old")
            self.sources[name] = stage.source(number + 2)
            stage.put(name, self.sources[name])
        return stage.words(), stage.result, stage.merged(self.sources)

    def other(self):
        stage = self.stage
        self.sources = {f"other{number}": stage.source(number + 2) for number, _ in enumerate(stage.plan.inputs)}
        for name, source in self.sources.items():
            stage.put(name, source)
        return stage.words(self.sources), stage.result, stage.merged(self.sources)

    def elsewhere(self):
        return self.stage.words(result="elsewhere"), "elsewhere", self.stage.expected

    def another_file(self):
        stage = self.stage
        source = stage.source(2)
        self.sources = {"other": source}
        (self.folder / "other").write_bytes(source[0])
        return source[1]

    def consume_other(self):
        expected, stage = self.another_file(), self.stage
        how = "--view" if stage.plan.makes_view else "-o"
        return ["sort", *stage.memory(), "--consume", "other", how, stage.result], stage.result, expected

    def sort_other(self):
        expected, stage = self.another_file(), self.stage
        return ["sort", *stage.memory(), "-T", "t1", "other", "-o", stage.result], stage.result, expected

    def view_other(self):
        expected, stage = self.another_file(), self.stage
        return ["sort", *stage.memory(), "other", "--view", stage.result], stage.result, expected

    def copy_other(self):
        stage = self.stage
        source = stage.source(2)
        self.sources = {"other": source}
        stage.put_view(self.folder / "other", source)
        return ["materialize", *stage.memory(), "other", "-o", stage.result], stage.result, source[1]


def same(stage, also=()):
    """Repeats the same command until it succeeds, and returns the verdict."""
    trial, plan = stage.trial, stage.plan
    before = stage.snapshot()
    if plan.makes_view and before.output == "right" and before.inputs:
        # The view is complete. Another one can be made, and the remains of the first are removed.
        remove(stage.folder / stage.result)
    sentence = ""
    for _ in range(REPEATS):
        ended = trial.run(stage.words())
        now = stage.snapshot()
        if ended.code == 0:
            if now.output != "right":
                raise (Wrong if now.inputs else Lost)(f"repeated: status 0, but the output is {now.output}")
            stage.check_success(also)
            return SURVIVED
        if now.output == "right" or now.inputs:
            # Nothing is lost: the command refuses to continue until its user acts.
            return REFUSED
        sentence = ended.lines[-1] if ended.lines else f"status {ended.code}"
    raise Lost(f"the same command never ends, and neither input nor output is whole: {sentence[:200]}")


def remove(path):
    """Removes a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
