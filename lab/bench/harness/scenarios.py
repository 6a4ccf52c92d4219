"""The scenarios: the work that is compared, the data, and the targets.

A scenario is a context manager that makes its inputs, yields a `Plan` and cleans up.
"""

import os
import shutil
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from . import data, grid, limits, near, tools
from .measure import Job
from .plan import Claim, Contender, Plan, Step

GB = 10**9
MIB = 2**20
GIB = 2**30

SMALLEST_MEMORY_BYTES = 32 * MIB
"""However small the scale: the programs have needs that do not shrink with the data."""

RSS_OVERHEAD_MIB = 64
RANDOM_READS = 2000
RANDOM_READ_BYTES = 64 * 1024

# A SATA drive of 2016, ActiveSort's.
THROTTLE_READ_BYTES_S = 140_000_000
THROTTLE_WRITE_BYTES_S = 65_000_000


class Unavailable(Exception):
    """A scenario that this machine can't run, although the project is correct; the text gives the reason."""


class Bench:
    """The arguments of every scenario: the programs, a working folder, and the scale."""

    def __init__(self, programs, folder, scale):
        self.tools = programs
        self.folder = folder
        self.scale = scale
        self.temp = folder / "temp"
        self.temp.mkdir(parents=True, exist_ok=True)

    def clear_temp(self):
        """Removes temporary files of programs that were ended."""
        for path in self.temp.iterdir():
            remove(path)

    def bytes(self, full):
        """`full` bytes of data, at this scale."""
        return max(MIB, round(full * self.scale))

    def memory(self, full):
        """`full` bytes of memory, at this scale."""
        return max(SMALLEST_MEMORY_BYTES, round(full * self.scale))

    def _input_path(self, kind, full_bytes):
        return self.folder / f"{kind}-{self.bytes(full_bytes)}"

    def held(self, kind, full_bytes):
        """Bytes that an input takes on the disk already."""
        path = self._input_path(kind, full_bytes)
        return path.stat().st_size if path.exists() else 0

    def forget(self, inputs):
        """Removes inputs that no later scenario will read."""
        for kind, full_bytes in inputs:
            remove(self._input_path(kind, full_bytes))

    def input(self, kind, full_bytes):
        """The path of an input, which is made if it is missing."""
        path = self._input_path(kind, full_bytes)
        if not path.exists():
            unfinished = path.with_suffix(".partial")
            if kind.startswith("fixed-"):
                _, record_bytes, keys = kind.split("-")
                data.make_fixed(self.tools.merganser, unfinished, self.bytes(full_bytes), int(record_bytes), keys)
                unfinished.rename(path)
                return path
            make = {
                "ascii": data.make_ascii,
                "ascii-4096": lambda *args: data.make_ascii(*args, record_bytes=tools.WIDE_RECORD_BYTES),
                "lines": data.make_lines,
                "csv": data.make_csv,
                "words": data.make_words,
            }[kind]
            make(self.tools.merganser, unfinished, self.bytes(full_bytes))
            unfinished.rename(path)
        return path

    def path(self, name):
        """A path for an output; an old file at the path is removed."""
        path = self.folder / name
        remove(path)
        return path


@dataclass(frozen=True)
class Scenario:
    """A named comparison."""

    title: str
    inputs: tuple
    """`(kind, bytes)` of its inputs, so that the runner knows which inputs it can remove afterwards."""
    disk_bytes: int
    """Free space it needs at full scale, its inputs included."""
    open: Callable


def remove(path):
    """Removes a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _one_step(name, words, **extra):
    return Contender(name, (Step("sort", Job((words,))),), **extra)


def _rss_claim(name, memory_bytes):
    return Claim(
        "peak RSS over --memory",
        lambda of: (of[name].rss_peak_bytes - memory_bytes) / MIB,
        at_most=RSS_OVERHEAD_MIB,
        unit=" MiB",
    )


def _sorters(bench, source, memory, order, gnu_order, duckdb_kind, check=None):
    """Merganser and its peers, each sorting the file `source` into a file."""
    out = {name: bench.path(f"{name}.out") for name in ("merganser", "gnu", "stxxl", "duckdb")}
    programs = bench.tools
    contenders = [
        _one_step(
            "merganser",
            programs.merganser_sort(source, order, memory, bench.temp, ("-o", out["merganser"])),
            outputs=(out["merganser"],),
            result=out["merganser"],
            check=(programs.merganser, "verify", out["merganser"], *order),
            ours=True,
        )
    ]
    if programs.gnu:
        contenders.append(
            _one_step(
                "gnu",
                programs.gnu_sort(source, gnu_order, memory, bench.temp, out["gnu"]),
                outputs=(out["gnu"],),
                result=out["gnu"],
            )
        )
    if programs.duckdb:
        # Its bytes are not compared: it drops the carriage returns of gensort's printable records.
        contenders.append(
            _one_step(
                "duckdb",
                programs.duckdb_sort(duckdb_kind, source, memory, bench.temp, out["duckdb"]),
                outputs=(out["duckdb"],),
            )
        )
    return contenders, out


def _times(slower, faster):
    """How many times as long `slower` takes as `faster`."""
    return lambda of: of[slower].wall_s / of[faster].wall_s


@contextmanager
def gensort_file(bench):
    """`sort -o` of 100-byte records, against every peer and the disk's own floor."""
    source = bench.input("ascii", 10 * GB)
    size = os.path.getsize(source)
    memory = bench.memory(GIB)
    contenders, out = _sorters(bench, source, memory, tools.GENSORT_ORDER, (), "lines")
    if bench.tools.stxxl:
        contenders.append(
            _one_step(
                "stxxl",
                bench.tools.stxxl_sort(source, memory, bench.temp, out["stxxl"]),
                outputs=(out["stxxl"], bench.temp / "stxxl.disk"),
                result=out["stxxl"],
            )
        )
    copies = tuple(source.with_name(source.name + end) for end in (".1", ".2"))
    contenders.append(_one_step("floor", bench.tools.two_pass_floor(source), outputs=copies))
    yield Plan(
        folder=bench.folder,
        input_bytes=size,
        memory_bytes=memory,
        contenders=tuple(contenders),
        claims=(
            Claim("GNU sort's time over ours", _times("gnu", "merganser"), at_least=4),
            Claim("STXXL's time over ours", _times("stxxl", "merganser"), at_least=1.5),
            Claim("our time over the disk's two-pass floor", _times("merganser", "floor"), at_most=1.3),
            Claim("peak extra disk over the input", lambda of: of["merganser"].disk_peak_bytes / size, at_most=1.1),
            Claim("DuckDB's time over ours", _times("duckdb", "merganser"), at_least=1),
            _rss_claim("merganser", memory),
        ),
    )


@contextmanager
def gensort_view(bench):
    """`sort --view` against our own `sort -o`."""
    source = bench.input("ascii", 10 * GB)
    size = os.path.getsize(source)
    memory = bench.memory(GIB)
    view, file = bench.path("gensort.view"), bench.path("file.out")
    sort = bench.tools.merganser_sort
    yield Plan(
        folder=bench.folder,
        input_bytes=size,
        memory_bytes=memory,
        contenders=(
            _one_step(
                "view",
                sort(source, tools.GENSORT_ORDER, memory, bench.temp, ("--view", view)),
                outputs=(view,),
                result=(bench.tools.merganser, "cat", view),
                check=(bench.tools.merganser, "verify", view),
                ours=True,
            ),
            _one_step(
                "file",
                sort(source, tools.GENSORT_ORDER, memory, bench.temp, ("-o", file)),
                outputs=(file,),
                result=file,
                ours=True,
            ),
        ),
        claims=(
            Claim("time of --view over that of -o", _times("view", "file"), at_most=0.55),
            Claim("bytes written over the input", lambda of: of["view"].device_written_bytes / size, at_most=1.02),
            _rss_claim("view", memory),
        ),
    )


@contextmanager
def _text_file(bench, kind, order, gnu_order):
    source = bench.input(kind, 4 * GB)
    memory = bench.memory(GIB // 2)
    contenders, _ = _sorters(bench, source, memory, order, gnu_order, kind)
    yield Plan(
        folder=bench.folder,
        input_bytes=os.path.getsize(source),
        memory_bytes=memory,
        contenders=tuple(contenders),
        claims=(
            Claim("GNU sort's time over ours", _times("gnu", "merganser"), at_least=4),
            Claim("DuckDB's time over ours", _times("duckdb", "merganser"), at_least=2.5),
            _rss_claim("merganser", memory),
        ),
    )


def lines_file(bench):
    """Text lines, by all their bytes."""
    return _text_file(bench, "lines", tools.LINES_ORDER, ())


def csv_file(bench):
    """Csv rows, by a text and then a numeric column."""
    return _text_file(bench, "csv", tools.CSV_ORDER, tools.CSV_GNU_ORDER)


def _make_view(bench, source, order, memory, name):
    """A view to be read, made without measuring."""
    view = bench.path(name)
    words = bench.tools.merganser_sort(source, order, memory, bench.temp, ("--view", view))
    data.run(words)
    return view


@contextmanager
def _read_view(bench, kind, full_bytes, order, reach):
    source = bench.input(kind, full_bytes)
    memory = bench.memory(GIB)
    view = _make_view(bench, source, order, memory, "read.view")
    try:
        yield Plan(
            folder=bench.folder,
            input_bytes=os.path.getsize(source),
            memory_bytes=memory,
            contenders=(
                Contender(
                    "view",
                    (Step("read", Job(((bench.tools.merganser, "cat", view, "--memory", memory),))),),
                    ours=True,
                ),
                Contender("raw", (Step("read", Job((bench.tools.raw_read(source),))),)),
            ),
            claims=(
                Claim("speed of the view over the raw direct read", _times("raw", "view"), at_least=reach),
                _rss_claim("view", memory),
            ),
        )
    finally:
        remove(view)


def read_view_4k(bench):
    """A view of 4 KiB records, read from end to end."""
    return _read_view(bench, "ascii-4096", 10 * GB, tools.WIDE_ORDER, 0.85)


def read_view_100(bench):
    """A view of 100-byte records, read from end to end."""
    return _read_view(bench, "ascii", 10 * GB, tools.GENSORT_ORDER, 0.5)


@contextmanager
def random_reads(bench):
    """One process that reads 64 KiB at random offsets of views of three sizes."""
    memory = bench.memory(GIB)
    views = {}
    try:
        for size in (1, 4, 10):
            source = bench.input("ascii", size * GB)
            views[f"{size} GB"] = _make_view(bench, source, tools.GENSORT_ORDER, memory, f"random-{size}.view")
        program = bench.tools.example("view_reads")
        yield Plan(
            folder=bench.folder,
            input_bytes=bench.bytes(10 * GB),
            memory_bytes=memory,
            contenders=tuple(
                Contender(
                    name,
                    (
                        Step(
                            "read",
                            Job(
                                ((program, view, "--reads", RANDOM_READS, "--size", RANDOM_READ_BYTES),),
                                capture=True,
                            ),
                        ),
                    ),
                    ours=True,
                )
                for name, view in views.items()
            ),
            claims=(
                Claim(
                    "median read of the 10 GB view",
                    lambda of: of["10 GB"].printed()["p50_us"] / 1000,
                    at_most=5,
                    unit=" ms",
                ),
                Claim(
                    "its median over the 1 GB view's",
                    lambda of: of["10 GB"].printed()["p50_us"] / of["1 GB"].printed()["p50_us"],
                    at_most=1.5,
                ),
            ),
        )
    finally:
        for view in views.values():
            remove(view)


@contextmanager
def throttled(bench):
    """Records piped into the sort on a slow disk, and the result read once."""
    if not limits.can_throttle():
        raise Unavailable("throttling a disk needs root and the version 1 blkio control group")
    size = bench.bytes(2 * GB)
    memory = bench.memory(GIB // 2)
    records = max(1, size // tools.WIDE_RECORD_BYTES)
    size = records * tools.WIDE_RECORD_BYTES
    programs = bench.tools
    room = round(size * 3.5) + 512 * MIB
    with limits.throttled_disk(bench.folder, room, THROTTLE_READ_BYTES_S, THROTTLE_WRITE_BYTES_S) as disk:
        view, file, temp = disk / "throttled.view", disk / "gnu.out", disk / "temp"
        temp.mkdir()
        make = data.ascii_words(programs.merganser, records, tools.WIDE_RECORD_BYTES)
        ours = programs.merganser_sort("-", tools.WIDE_ORDER, memory, temp, ("--view", view))
        read_view = (programs.merganser, "cat", view, "--memory", memory)
        contenders = [
            Contender(
                "view",
                (Step("make", Job((make, ours))), Step("read", Job((read_view,)))),
                outputs=(view,),
                result=read_view,
                ours=True,
            )
        ]
        if programs.gnu:
            gnu = programs.gnu_sort("-", (), memory, temp, file)
            contenders.append(
                Contender(
                    "gnu",
                    (Step("make", Job((make, gnu))), Step("read", Job((("cat", file),)))),
                    outputs=(file,),
                    result=file,
                )
            )
        yield Plan(
            folder=disk,
            input_bytes=size,
            memory_bytes=memory,
            contenders=tuple(contenders),
            claims=(
                Claim(
                    "time to make and read, over GNU sort's",
                    lambda of: of["view"].durable_s / of["gnu"].durable_s,
                    at_most=0.62,
                ),
                Claim(
                    "bytes read from the device, over GNU sort's",
                    lambda of: of["view"].device_read_bytes / of["gnu"].device_read_bytes,
                    at_most=0.5,
                ),
                Claim(
                    "bytes written to the device, over GNU sort's",
                    lambda of: of["view"].device_written_bytes / of["gnu"].device_written_bytes,
                    at_most=0.5,
                ),
                _rss_claim("view", memory),
            ),
            notes=("Seconds include the time until all written bytes were on the device.",),
        )


@contextmanager
def disks(bench):
    """Temporary files on two slow disks and on one of them, input and output on the fast one."""
    if not limits.can_throttle():
        raise Unavailable("throttling a disk needs root and the version 1 blkio control group")
    source = bench.input("ascii", GB)
    size = os.path.getsize(source)
    memory = bench.memory(GIB // 4)
    out = bench.path("disks.out")
    room = round(size * 1.3) + 256 * MIB
    speeds = (THROTTLE_READ_BYTES_S, THROTTLE_WRITE_BYTES_S)
    with (
        limits.throttled_disk(bench.folder, room, *speeds, name="throttled-1") as first,
        limits.throttled_disk(bench.folder, room, *speeds, name="throttled-2") as second,
    ):

        def contender(strategy, count):
            words = bench.tools.merganser_sort(source, tools.GENSORT_ORDER, memory, first, ("-o", out))
            more = () if count == 1 else ("--temp-dir", second)
            return _one_step(
                f"{strategy}-{count}", (*words, *more, "--strategy", strategy), outputs=(out,), result=out, ours=True
            )

        yield Plan(
            folder=bench.folder,
            input_bytes=size,
            memory_bytes=memory,
            contenders=tuple(contender(strategy, count) for strategy in ("distribute", "merge") for count in (1, 2)),
            claims=tuple(
                Claim(f"{strategy}: one disk's time over two disks'", _times(f"{strategy}-1", f"{strategy}-2"), at_least=1.8)
                for strategy in ("distribute", "merge")
            ),
            notes=("Bytes are those of the fast disk, which also holds the images of the slow disks.",),
        )


@contextmanager
def one_pass(bench):
    """A sort of data that fits in memory, compared with a plain read and write of as many bytes."""
    source = bench.input("ascii", 4 * GB)
    size = os.path.getsize(source)
    memory = bench.memory(8 * GIB)
    out, copy = bench.path("one-pass.out"), bench.path("raw.out")
    programs = bench.tools
    yield Plan(
        folder=bench.folder,
        input_bytes=size,
        memory_bytes=memory,
        contenders=(
            _one_step(
                "merganser",
                programs.merganser_sort(source, tools.GENSORT_ORDER, memory, bench.temp, ("-o", out)),
                outputs=(out,),
                check=(programs.merganser, "verify", out, *tools.GENSORT_ORDER),
                ours=True,
            ),
            Contender(
                "raw",
                (
                    Step("read", Job((programs.raw_read(source),))),
                    Step("write", Job((programs.raw_write(copy, size),))),
                ),
                outputs=(copy,),
            ),
        ),
        claims=(
            Claim("time over the disk's to read, then write", _times("merganser", "raw"), at_most=1.3),
            _rss_claim("merganser", memory),
        ),
    )


SCENARIOS = {
    "gensort-file": Scenario(
        "sort -o, 10 GB of 100-byte records, 1 GiB", (("ascii", 10 * GB),), 35 * GB, gensort_file
    ),
    "gensort-view": Scenario(
        "sort --view, 10 GB of 100-byte records, 1 GiB", (("ascii", 10 * GB),), 35 * GB, gensort_view
    ),
    "lines-file": Scenario("sort -o, 4 GB of text lines, 512 MiB", (("lines", 4 * GB),), 17 * GB, lines_file),
    "csv-file": Scenario(
        "sort -o, 4 GB of csv by a text, then a numeric column, 512 MiB", (("csv", 4 * GB),), 17 * GB, csv_file
    ),
    "read-view-4k": Scenario(
        "a view read from end to end, 10 GB of 4 KiB records", (("ascii-4096", 10 * GB),), 21 * GB, read_view_4k
    ),
    "read-view-100": Scenario(
        "a view read from end to end, 10 GB of 100-byte records", (("ascii", 10 * GB),), 21 * GB, read_view_100
    ),
    "random-reads": Scenario(
        "64 KiB reads at random offsets of views of 1, 4 and 10 GB",
        (("ascii", 10 * GB), ("ascii", 4 * GB), ("ascii", 1 * GB)),
        32 * GB,
        random_reads,
    ),
    "throttled": Scenario(
        "a disk of 140 MB/s read, 65 MB/s write: 2 GB of 4 KiB records piped in, 512 MiB, result read once",
        (),
        9 * GB,
        throttled,
    ),
    "disks": Scenario(
        "sort -o, 1 GB of 100-byte records, 256 MiB: temporary files on one or two disks of 140 MB/s read, 65 MB/s write",
        (("ascii", GB),),
        6 * GB,
        disks,
    ),
    "map-words": Scenario("map wordcount, 1 GB of words, one core", (("words", GB),), 2 * GB, near.words_one_core),
    "map-cores": Scenario(
        "map wordcount, 1 GB of words, one thread and two", (("words", GB),), 2 * GB, near.words_two_cores
    ),
    "map-match": Scenario("map match, 1 GB of words, one core", (("words", GB),), 2 * GB, near.match_literals),
    "map-packed": Scenario(
        "map wordcount, 500 MB of words, compressed by gzip and zstd", (("words", GB // 2),), 2 * GB, near.packed
    ),
    "map-spill": Scenario(
        "map wordcount, words that differ, 200 MB of memory: 400 MB and 4 GB",
        (("ascii", 2 * GB // 5), ("ascii", 4 * GB)),
        14 * GB,
        near.beyond_memory,
    ),
    "one-pass": Scenario("sort -o, 4 GB of 100-byte records, 8 GiB", (("ascii", 4 * GB),), 13 * GB, one_pass),
}
"""By name, in the order of docs/benchmarks.md."""

GRID = {
    name: Scenario(
        "auto compared with merge and distribute: " + " ".join(name.split("-")[1:]),
        ((grid.input_kind(name), GB),),
        5 * GB,
        partial(grid.cell, name=name, full_bytes=GB),
    )
    for name in grid.names()
}
"""The cells of `grid`, which `all` leaves out."""

SCENARIOS.update(GRID)
