"""The commands that write or destroy, each with its inputs, its result and its sorted bytes.

    action               command                                    strategies           temporary folders
    sort                 sort in -o out                             merge, distribute    1, 2
    sort-onto            sort in -o in                              merge, distribute    1, 2
    view                 sort in --view out                         merge, distribute    1, 2
    two                  sort in in2 -o out                         merge, distribute    1, 2
    consume              sort --consume in -o out                   merge                1, 2
    consume-onto         sort --consume in -o in                    merge                1, 2
    consume-view         sort --consume in --view out               merge                1, 2
    consume-two          sort --consume in in2 -o out               merge                1, 2
    materialize          materialize v -o out                       merge, distribute    -
    materialize-consume  materialize --consume v -o out             merge, distribute    -
    generate             generate -o out                            -                    -
    merge                sort -m in in2 -o out                      -                    1
    table                sort in -o out.parquet, of Parquet         -                    1
    table-view           the same, --view out                       -                    1
    table-folder         the same, -o out --partition-by part       -                    1

A scenario is written ACTION.STRATEGY.TEMPS, for example consume-onto.merge.1. `--consume` refuses to distribute.
"""

import functools
import shutil
import subprocess
from dataclasses import dataclass

import data
import names
import rows
from case import Wrong
from setup import environment

RESULT = "out"
PRECIOUS = b"what was in the output before\n"
TEMPS = ("t1", "t2")
RECORDS_GENERATED = 6000
TABLE_MEMORY, TABLE_VIEW_MEMORY = 600_000, 10 << 20
"""Memory for tables. In the first, the smallest one makes several runs; the second is about the least for a view."""

MERGE, BOTH = ("merge",), ("merge", "distribute")


@dataclass(frozen=True)
class Action:
    """A command with its options."""

    strategies: tuple = BOTH
    temps: tuple = (1, 2)
    inputs: tuple = ("in",)
    consumes: bool = False
    onto: bool = False
    makes_view: bool = False
    makes_folder: bool = False
    reads_view: bool = False
    of_table: bool = False


ACTIONS = {
    "sort": Action(),
    "sort-onto": Action(onto=True),
    "view": Action(makes_view=True),
    "two": Action(inputs=("in", "in2")),
    "consume": Action(MERGE, consumes=True),
    "consume-onto": Action(MERGE, consumes=True, onto=True),
    "consume-view": Action(MERGE, consumes=True, makes_view=True),
    "consume-two": Action(MERGE, consumes=True, inputs=("in", "in2")),
    "materialize": Action(temps=(0,), inputs=("v",), reads_view=True),
    "materialize-consume": Action(temps=(0,), inputs=("v",), reads_view=True, consumes=True),
    "generate": Action(("any",), (0,), ()),
    "merge": Action(("any",), (1,), ("in", "in2")),
    "table": Action(("any",), (1,), of_table=True),
    "table-view": Action(("any",), (1,), makes_view=True, of_table=True),
    "table-folder": Action(("any",), (1,), makes_folder=True, of_table=True),
}


@dataclass(frozen=True)
class Scenario:
    """An action with a strategy and a number of temporary folders."""

    action: str
    strategy: str
    temps: int

    @staticmethod
    def parse(text):
        """The scenario of this name."""
        action, strategy, temps = text.split(".")
        return Scenario(action, strategy, int(temps))

    def __str__(self):
        return f"{self.action}.{self.strategy}.{self.temps}"

    @property
    def plan(self):
        """The action's options."""
        return ACTIONS[self.action]


ALL = [Scenario(name, s, t) for name, action in ACTIONS.items() for s in action.strategies for t in action.temps]


@dataclass
class Snapshot:
    """Where the original records are."""

    inputs: bool
    """Every input is there, byte for byte."""
    output: str
    """absent, precious, right or wrong."""


class Stage:
    """A scenario with its data in a folder."""

    def __init__(self, trial, scenario, size="middle", plain=False):
        self.trial, self.scenario, self.plan, self.size = trial, scenario, scenario.plan, size
        chance, self.setup, self.folder = trial.chance, trial.setup, trial.folder
        self.number = 0 if size == "huge" else chance.randrange(data.KINDS)
        """Which data. Other inputs of the case have other numbers."""
        # 150 MB in the least memory would be thousands of runs.
        self.memory_bytes = self.setup.memory * (5 if size == "huge" else 1)
        if self.plan.of_table:
            self.memory_bytes = TABLE_VIEW_MEMORY if self.plan.makes_view else TABLE_MEMORY
        self.result = self.plan.inputs[0] if self.plan.onto else RESULT
        may_replace = not self.plan.makes_view and not self.plan.makes_folder
        self.precious = not plain and not self.plan.onto and may_replace and chance.random() < 0.4
        self.private = not plain and bool(self.plan.inputs) and not self.plan.reads_view and chance.random() < 0.15
        packable = scenario.strategy == "merge" and size != "huge" and chance.random() < 0.25
        self.packing = chance.choice(["lz4", "zstd"]) if packable and not plain else "off"
        self.sources = {name: self.source(i) for i, name in enumerate(self.plan.inputs)}
        """Content and sorted content of each input."""
        self.expected = self.merged(self.sources)

    def source(self, number):
        """The `number`th data of this case, and the same sorted."""
        size = "small" if number and self.size == "huge" else self.size
        content, in_order = data.lines(self.setup.seed, self.number + number, size)
        if self.plan.of_table:
            table, in_order = tables(content)
            return table, rows.folders(in_order) if self.plan.makes_folder else in_order
        return (in_order if self.scenario.action == "merge" else content), in_order

    def merged(self, sources):
        """What must come out."""
        if not sources:
            return generated(self.setup.merganser)
        if len(sources) == 1:
            return next(iter(sources.values()))[1]
        return data.ordered(b"".join(content for content, _ in sources.values()))

    # The commands.

    def memory(self):
        """The option that keeps the memory small."""
        return ["--memory", str(self.memory_bytes)]

    def temps(self):
        """The options that name the temporary folders."""
        return [word for name in TEMPS[: max(1, self.scenario.temps)] for word in ("-T", name)]

    def words(self, inputs=None, result=None):
        """The command, of other inputs or with another result if they are given."""
        plan, action = self.plan, self.scenario.action
        inputs = list(plan.inputs if inputs is None else inputs)
        result = result or self.result
        if action == "generate":
            return ["generate", "--format", "ascii", "--records", str(RECORDS_GENERATED), "-o", result]
        if plan.reads_view:
            return ["materialize", *self.memory(), *["--consume"] * plan.consumes, *inputs, "-o", result]
        words = ["sort", *self.memory(), *self.temps()]
        if plan.of_table:
            # The end of the result's name says nothing.
            words += ["--key", "text", "--threads", "2", *inputs]
            if plan.makes_folder:
                return [*words, "--partition-by", "part", "--file-size", "64K", "-o", result]
            return [*words, "--view" if plan.makes_view else "-o", result]
        if action == "merge":
            return [*words, "-m", *inputs, "-o", result]
        words += ["--strategy", self.scenario.strategy]
        words += ["--compress", self.packing] if self.packing != "off" else []
        words += ["--consume"] * plan.consumes
        return [*words, *inputs, "--view" if plan.makes_view else "-o", result]

    # The folder.

    def prepare(self):
        """Makes inputs, temporary folders and, sometimes, an older result."""
        for name in TEMPS:
            (self.folder / name).mkdir()
        for name, source in self.sources.items():
            self.put(name, source)
        if self.precious:
            (self.folder / self.result).write_bytes(PRECIOUS)
        self.trial.say(f"# {self.size} data {self.number}, {'private, ' * self.private}"
                       f"{'an older output, ' * self.precious}memory {self.memory_bytes}")  # fmt: skip

    def put(self, name, source):
        """Makes an input: a file, or a view for a command that reads one."""
        path = self.folder / name
        if self.plan.reads_view:
            self.put_view(path, source)
            return
        path.write_bytes(source[0])
        path.chmod(0o600 if self.private else 0o644)

    def put_view(self, path, source):
        """Makes a view of some data."""
        shutil.copytree(self.view_of(source), path)

    def view_of(self, source):
        """A view of this data that is made once and only copied."""
        strategy = self.scenario.strategy if self.scenario.strategy in BOTH else "merge"
        packing = self.packing if strategy == "merge" else "off"
        return view_of(self.setup, hash(source[0]), source[0], strategy, packing, self.memory_bytes)

    # Where the records are.

    def is_input(self, name, source):
        """Whether this input is there and byte for byte what it was."""
        path = self.folder / name
        if not self.plan.reads_view:
            return path.is_file() and not path.is_symlink() and path.read_bytes() == source[0]
        pristine = self.view_of(source)
        if not path.is_dir() or (path / names.MARKER).exists():
            return False
        files = [entry.name for entry in pristine.iterdir()]
        return all((path / f).is_file() and (path / f).read_bytes() == (pristine / f).read_bytes() for f in files)

    def snapshot(self):
        """Where the original records are now."""
        inputs = all(self.is_input(name, source) for name, source in self.sources.items())
        return Snapshot(inputs, self.output(self.result, self.expected))

    def output(self, result, expected):
        """The state of a result: absent, precious, right or wrong."""
        path = self.folder / result
        if self.plan.makes_view:
            if not path.exists():
                return "absent"
            if not path.is_dir():
                return "wrong"
            ended = self.trial.run(["cat", result])
            return "right" if ended.code == 0 and ended.out == expected else "wrong"
        if not path.exists():
            return "absent"
        if self.plan.of_table:
            if path.is_file() and path.read_bytes() == PRECIOUS:
                return "precious"
            return "right" if self.rows_of(path) == expected else "wrong"
        content = path.read_bytes() if path.is_file() else None
        return "right" if content == expected else "precious" if content == PRECIOUS else "wrong"

    def rows_of(self, path):
        """The rows of a table's result as csv, in the order of its files; nothing if it has none."""
        if path.is_dir() != self.plan.makes_folder:
            return None
        found = b""
        files = sorted(file for file in path.rglob("*") if not file.is_dir()) if path.is_dir() else [path]
        for file in files:
            # Merging one file gives its rows as they are, and checks their order.
            words = ["sort", "-m", "--key", "text", file.relative_to(self.folder), "--output-format", "csv"]
            ended = self.trial.run(words)
            if ended.code:
                return None
            header, lines = ended.out.split(b"\n", 1)
            if header != b"n,text,part" and header != rows.HEADER[:-1]:
                return None
            found += lines if header == rows.HEADER[:-1] else rows.with_part_second(lines)
        return rows.HEADER + found

    def debris(self, also=()):
        """Names that may not be here after success."""
        wanted = {*TEMPS, self.result, *also}
        wanted |= set() if self.plan.consumes else set(self.plan.inputs)
        there = {entry.name for entry in self.folder.iterdir()}
        left = sorted(there - wanted)
        for name in TEMPS:
            left += [f"{name}/{entry.name}" for entry in (self.folder / name).iterdir()]
        result = self.folder / self.result
        if self.plan.makes_view and result.is_dir():
            there = {entry.name for entry in result.iterdir()}
            known = names.files_of_view((result / names.MANIFEST).read_bytes()) | {names.NOTE}
            left += [f"{self.result}/{name}" for name in there - known]
        return left

    def check_success(self, also=()):
        """After status 0: nothing is left behind, and a private file stayed private."""
        left = self.debris(also)
        if left:
            raise Wrong(f"left behind after success: {', '.join(left[:5])}")
        if not self.plan.consumes and not self.plan.onto:
            gone = [name for name, source in self.sources.items() if not self.is_input(name, source)]
            if gone:
                raise Wrong(f"input {gone[0]} is changed after success")
        result = self.folder / self.result
        if self.private and self.plan.onto and result.stat().st_mode & 0o077:
            raise Wrong(f"the input was private (0600), the result has mode {result.stat().st_mode & 0o777:o}")

    def check_privacy(self):
        """While a private input is consumed, no other user may read its records elsewhere."""
        if not (self.private and self.plan.consumes):
            return
        own = {*self.plan.inputs, self.result, *TEMPS}
        for entry in self.folder.iterdir():
            if entry.name in own or entry.is_symlink():
                continue
            files = [entry] if entry.is_file() else []
            if entry.is_dir() and entry.stat().st_mode & 0o077:
                files = [file for file in entry.iterdir() if file.is_file()]
            for file in files:
                if file.stat().st_mode & 0o044 and file.stat().st_size:
                    self.trial.complaints.append(f"other users can read helper files of a private input: {file.name}")
                    return


@functools.lru_cache(maxsize=24)
def tables(content):
    """Some lines as a table, made once in this process."""
    return rows.table(content)


@functools.lru_cache(maxsize=1)
def generated(merganser):
    """What `generate` writes when nothing disturbs it."""
    words = [merganser, "generate", "--format", "ascii", "--records", str(RECORDS_GENERATED)]
    return subprocess.run(words, check=True, capture_output=True, env=environment()).stdout


@functools.lru_cache(maxsize=64)
def view_of(setup, key, content, strategy, packing, memory_bytes):
    """A view of some lines, made once in this process."""
    source = setup.own / "source"
    view = setup.own / f"view-{key & 0xFFFFFFFFFFFF:x}-{strategy}-{packing}"
    source.write_bytes(content)
    shutil.rmtree(view, ignore_errors=True)
    words = [setup.merganser, "sort", "--memory", str(memory_bytes), "--strategy", strategy, source, "--view", view]
    words += ["--compress", packing] if packing != "off" else []
    subprocess.run(words, check=True, env=environment())
    source.unlink()
    return view
