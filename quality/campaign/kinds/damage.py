"""Damaged and hostile files. Three ways:

    view      bits, lengths and kinds of the files of a view are changed; a command that reads it gives the right bytes
              or one sentence, and materialize --consume, when the damage is undone, can be repeated
    hostile   the JSON of a manifest, or of the journal or resume point of interrupted work, is changed and its checksum
              made right: no panic, no hang, one sentence
    work      helper files of interrupted work are damaged; the command refuses or is right, and when the damage is
              undone, the same command ends as if nothing had been
"""

import copy
import os
import re
import random

import checksum
import data
import names
import serving
import settle
from case import REFUSED, SURVIVED, Case, Lost, Wrong
from process import Ended
from scenarios import Scenario, Stage

from . import calls

WEIGHT = 12
SMOKE = 100
NEEDS_ROOT = False

READERS = ["cat", "verify", "info", "materialize", "materialize-consume", "range", "nbd", "mount"]
WAYS = ["flip", "flip", "flip", "zeros", "truncate", "extend", "junk", "empty", "missing", "fifo", "link", "folder"]
VIEWS = [Scenario.parse("materialize.merge.0"), Scenario.parse("materialize.distribute.0")]
CONSUMERS = [
    Scenario.parse(text)
    for text in (
        "consume.merge.1", "consume-onto.merge.1", "consume-view.merge.1", "consume-two.merge.1",
        "materialize-consume.merge.0", "materialize-consume.distribute.0", "materialize.merge.0",
    )
]  # fmt: skip


def cases(_setup, seed):
    """Endless: the three ways in turn."""
    chance = random.Random(f"damage {seed}")
    number = 0
    while True:
        number += 1
        yield Case.of("damage", chance.choice(VIEWS), do="view", n=number, seed=seed)
        yield Case.of("damage", chance.choice(VIEWS), do="hostile", n=number, seed=seed)
        yield Case.of("damage", chance.choice(CONSUMERS), do="work", n=number, seed=seed)
        yield Case.of("damage", chance.choice(CONSUMERS), do="hostile-work", n=number, seed=seed)


def run(case, trial):
    """Tries one of the ways."""
    stage = Stage(trial, Scenario.parse(case.scenario), "small")
    stage.prepare()
    ways = {"view": damaged_view, "hostile": hostile_view, "work": damaged_work, "hostile-work": hostile_work}
    return ways[case["do"]](trial, stage)


# Damage, and its reversal.


class Damage:
    """A change of one file that can be undone."""

    def __init__(self, trial, path, ways=WAYS):
        self.trial, self.path, self.chance = trial, path, trial.chance
        self.way = self.chance.choice(ways)
        self.before = path.read_bytes() if path.is_file() else None
        self.changed_ns = path.stat().st_mtime_ns if path.is_file() else None
        self.flips = []
        getattr(self, self.way)()
        trial.disturbed += 1
        trial.say(f"# {self.way} {path.relative_to(trial.folder)} of {len(self.before)} bytes {self.flips}")

    def undo(self):
        """Makes the file as it was. Blocks that a command has given back meanwhile stay holes: flips undo themselves."""
        if self.flips:
            if self.path.is_file():
                with open(self.path, "r+b") as file:
                    for at, mask in self.flips:
                        file.seek(at)
                        byte = file.read(1)
                        if byte:
                            file.seek(at)
                            file.write(bytes([byte[0] ^ mask]))
                self.restore_time()
            return
        settle.remove(self.path)
        self.path.write_bytes(self.before)
        self.restore_time()

    def restore_time(self):
        """Restores the file with its times, like a user who copies it back."""
        os.utime(self.path, ns=(self.changed_ns, self.changed_ns))

    def flip(self):
        size = len(self.before)
        for _ in range(self.chance.choice([1, 1, 1, 2, 8])):
            # Heads, footers and indexes are hit as often as records.
            head, tail = self.chance.randrange(min(size, 4200)), size - 1 - self.chance.randrange(min(size, 2000))
            at = self.chance.choice([self.chance.randrange(size), head, tail])
            if at not in [place for place, _ in self.flips]:
                self.flips.append((at, 1 << self.chance.randrange(8)))
        with open(self.path, "r+b") as file:
            for at, mask in self.flips:
                file.seek(at)
                file.write(bytes([self.before[at] ^ mask]))

    def zeros(self):
        at = self.chance.randrange(len(self.before))
        length = self.chance.choice([1, 64, 4096, 65536])
        with open(self.path, "r+b") as file:
            file.seek(at)
            file.write(bytes(min(length, len(self.before) - at)))

    def truncate(self):
        os.truncate(self.path, self.chance.randrange(len(self.before)))

    def extend(self):
        with open(self.path, "ab") as file:
            file.write(self.chance.randbytes(self.chance.choice([1, 64, 4096])))

    def junk(self):
        self.path.write_bytes(self.chance.randbytes(self.chance.choice([1, 5, 64, 8192])))

    def empty(self):
        os.truncate(self.path, 0)

    def missing(self):
        self.path.unlink()

    def fifo(self):
        self.path.unlink()
        os.mkfifo(self.path)

    def link(self):
        self.path.unlink()
        self.path.symlink_to(self.chance.choice(["nowhere", "/dev/null", "/dev/zero", self.path.name, "."]))

    def folder(self):
        self.path.unlink()
        self.path.mkdir()


# A view.


def damaged_view(trial, stage):
    """Damages a file of a view, reads it in some way, then undoes the damage and finishes."""
    view = trial.folder / "v"
    path = view / trial.chance.choice(sorted(os.listdir(view)))
    damage = Damage(trial, path)
    reader = trial.chance.choice(READERS)
    ended = read(trial, stage, reader)
    if ended.code == 0:
        check_read(trial, stage, reader, ended)
    elif reader == "cat" and not stage.expected.startswith(ended.out):
        raise Wrong(f"cat of a damaged view (status {ended.code}) prints bytes that are not those of the view")
    if reader == "verify" and ended.code == 1:
        raise Wrong("verify calls a damaged view out of order")
    if reader == "materialize-consume" and ended.code == 0:
        return SURVIVED
    damage.undo()
    settle.remove(trial.folder / "out")
    words = ["materialize", *stage.memory(), *["--consume"] * (reader == "materialize-consume"), "v", "-o", "out"]
    again = trial.run(words)
    out = trial.folder / "out"
    if again.code != 0 or out.read_bytes() != stage.expected:
        raise Lost(f"after {reader}, with the damage undone, materialize ends with status {again.code} and "
                   f"{'other bytes' if out.exists() else 'nothing'}")  # fmt: skip
    return REFUSED if ended.code else SURVIVED


def read(trial, stage, reader):
    """Reads the view in one of the ways."""
    if reader in ("nbd", "mount"):
        serve = serving.exported if reader == "nbd" else serving.mounted
        content = serve(trial, "v", len(stage.expected))
        return Ended(2 if content is None else 0, content or b"", "", False, 0.0)
    if reader in ("cat", "verify", "info"):
        return trial.run([reader, "v"])
    if reader == "range":
        start = trial.chance.randrange(len(stage.expected))
        trial.range = (start, min(len(stage.expected), start + trial.chance.choice([1, 1000, 100_000])))
        return trial.run(["cat", "v", "--bytes", f"{trial.range[0]}..{trial.range[1]}"])
    return trial.run(["materialize", *stage.memory(), *["--consume"] * (reader != "materialize"), "v", "-o", "out"])


def check_read(trial, stage, reader, ended):
    """Status 0 means the right bytes."""
    wanted, got = stage.expected, ended.out
    if reader in ("verify", "info"):
        return
    if reader == "range":
        wanted = wanted[trial.range[0] : trial.range[1]]
    elif reader.startswith("materialize"):
        got = (trial.folder / "out").read_bytes()
    if got != wanted:
        raise Wrong(f"{reader} of a damaged view: status 0 and {len(got)} bytes, not the {len(wanted)} right ones")


def hostile_view(trial, stage):
    """Changes the manifest's JSON and makes its checksum right."""
    path = trial.folder / "v" / names.MANIFEST
    value = checksum.read_sealed(path.read_bytes())
    changed = mutate(trial, value)
    path.write_bytes(checksum.sealed(changed))
    trial.disturbed += 1
    ended = [read(trial, stage, reader) for reader in trial.chance.sample(READERS, 2)]
    return REFUSED if any(one.code for one in ended) else SURVIVED


NUMBERS = [0, 1, -1, 2, 7, 255, 4096, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 53, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 64, 0.5]
TEXTS = ["", "/", "..", "../in", "/etc/passwd", "a\x00b", "\x1b[2J", "000000.run", "x" * 300, "zz", "\n", "nrf", "R"]


def mutate(trial, value):
    """A copy with some changed values."""
    value = copy.deepcopy(value)
    chance = trial.chance
    known = chance.random()
    if known < 0.1 and isinstance(value, dict) and isinstance(value.get("order"), dict):
        value["order"]["format"] = chance.choice(
            [{"fixed": {"bytes": chance.choice([0, 1, 100, 1 << 40])}}, "keyed", {"csv": {"separator": 44, "header": True}}]
        )
        trial.say(f"# format {value['order']['format']}")
        return value
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        places = list(walk(value))
        if not places:
            return value
        holder, key = chance.choice(places)
        old = holder[key]
        new = another(chance, old)
        trial.say(f"# {key}: {str(old)[:60]!r} becomes {str(new)[:60]!r}")
        if new is GONE:
            del holder[key]
        else:
            holder[key] = new
    return value


GONE = object()


def walk(value):
    """Every place in a JSON value."""
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = list(enumerate(value))[:200]
    else:
        return
    for key, child in children:
        yield value, key
        yield from walk(child)


def another(chance, old):
    """Another value for this place."""
    kind = chance.randrange(10)
    if kind == 0:
        return GONE
    if kind == 1:
        return chance.choice([None, [], {}, True, "text", 5, [[]], {"a": 1}])
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        return chance.choice([old + 1, old - 1, old * 2, chance.choice(NUMBERS), chance.choice(NUMBERS)])
    if isinstance(old, str):
        return chance.choice([chance.choice(TEXTS), old + "0", old[:-1], old.upper()])
    if isinstance(old, list) and old:
        return chance.choice([old + old, old[:-1], old[::-1], old + [old[0]], []])
    return chance.choice([[], {}, None, 3])


# Interrupted work.


def interrupt(trial, stage):
    """Kills the command somewhere where it has left helper files; gives their paths."""
    for _ in range(6):
        last = calls.count(trial.setup, stage.scenario)
        trial.disturb(stage.words(), at=trial.chance.randrange(min(2, last), last + 1), do="kill")
        if stage.snapshot().output == "right":
            return []
        found = [path for path in helpers(trial.folder, stage) if path.is_file() and path.stat().st_size]
        if found:
            return found
    return []


def helpers(folder, stage):
    """All files of interrupted work."""
    own = {*stage.plan.inputs, stage.result, "t1", "t2"}
    for entry in sorted(folder.iterdir()):
        if stage.plan.reads_view and entry.name in stage.plan.inputs:
            yield from (file for file in sorted(entry.iterdir()) if not names.is_run(file.name))
        elif entry.name in own:
            continue
        elif entry.is_dir():
            yield from sorted(entry.iterdir())
        else:
            yield entry


def damaged_work(trial, stage):
    """Damages a helper file of interrupted work; then the same command; then the damage is undone."""
    found = interrupt(trial, stage)
    if not found:
        return settle.same(stage)
    path = trial.chance.choice(found)
    is_small = not names.is_run(path.name) and "partial" not in path.name
    # If blocks were given back meanwhile, only flips of records can be undone.
    damage = Damage(trial, path, WAYS if is_small else ["flip", "fifo", "link"])
    whole_before = stage.snapshot().inputs
    changed = changed_input(stage, path)
    ended = trial.run(stage.words())
    state = stage.snapshot()
    if ended.code == 0:
        if state.output != "right" and not is_sorted_as_it_is(stage, changed):
            what = f"{damage.way} of {path.name}: status 0, but the output is {state.output}"
            raise (Wrong if state.inputs else Lost)(what)
        return SURVIVED
    if state.output == "right" or state.inputs:
        return REFUSED
    if whole_before:
        raise Lost(f"{damage.way} of {path.name}: the input was whole, the command refuses and has changed it")
    if path.exists() or path.is_symlink() or damage.way == "missing":
        damage.undo()
    trial.say("# the damage is undone")
    follow_advice(trial, ended)
    return settle.same(stage)


def is_sorted_as_it_is(stage, changed):
    """Whether the result is that of the input as it was after the damage. Right after a kill, when the time of its last change
    is that of the bytes that were just given back, nothing tells such a change from the user's own.
    """
    if changed is None:
        return False
    name, content = changed
    result = stage.folder / stage.result
    got = stage.trial.run(["cat", stage.result]).out if result.is_dir() else result.read_bytes()
    return stage.merged({**stage.sources, name: (content, data.ordered(content))}) == got


def changed_input(stage, path):
    """The name and content that an input has for the next command, if `path` is one: what is sorted already is in runs."""
    names_of = {names.claimed(name): name for name in stage.sources}
    journal = stage.folder / names.unfinished(stage.result) / names.JOURNAL
    if path.name not in names_of or not path.is_file() or not journal.is_file():
        return None
    name = names_of[path.name]
    for note in checksum.read_sealed(journal.read_bytes())["inputs"]:
        if note["path"].endswith(f"/{name}"):
            return name, stage.sources[name][0][: note["taken"]] + path.read_bytes()[note["taken"] :]
    return None


def follow_advice(trial, ended):
    """Follows the advice of the sentence for a restored file: gives it the time that is in the journal."""
    for seconds, rest, name in re.findall(r"touch -d @(\d+)\.(\d{9}) ([^ ;']+|'[^']*')", "\n".join(ended.lines)):
        path = trial.folder / name.strip("'")
        if path.is_file():
            trial.say(f"# touch {path.name}")
            os.utime(path, ns=(int(seconds) * 10**9 + int(rest),) * 2)


def hostile_work(trial, stage):
    """Changes the JSON of a helper file of interrupted work, with a right checksum: no panic and no hang."""
    found = [path for path in interrupt(trial, stage) if names.is_small(path.name) and path.name != names.MARKER]
    if not found:
        return settle.same(stage)
    path = trial.chance.choice(found)
    content = path.read_bytes()
    try:
        value = checksum.read_sealed(content)
    except ValueError:
        return settle.same(stage)
    trial.say(f"# hostile {path.relative_to(trial.folder)}")
    changed = mutate(trial, value)
    path.write_bytes(checksum.sealed(changed))
    trial.disturbed += 1
    # Only the owner can write there with right checksums, so only the end of the command is judged.
    ended = trial.run(stage.words())
    return REFUSED if ended.code else SURVIVED
