"""Scenarios of `merganser map`: SSDlets compared with other programs that do the same work.

Word counts and searches are bound by the processor, so the claims on one core compare seconds of the
processor: the disk of the day has no part in them. Claims on cores, compressed inputs and memory compare
seconds of the clock.
"""

import os
import shutil
import subprocess
from contextlib import contextmanager

from . import data, tools
from .measure import Job
from .plan import Claim, Contender, Plan, Step

MIB = 2**20
GB = 10**9

CPU = ("taskset", "-c", "0")
"""All programs of the rows for one core run on the same one."""
TOP = 20


def _one(name, words, **extra):
    return Contender(name, (Step("map", Job((words,), output=extra.pop("output", None))),), **extra)


def _map(bench, ssdlet, source, memory, *words):
    return (
        bench.tools.merganser, "map", ssdlet, source, "--memory", memory, "--temp-dir", bench.temp, "--quiet", *words,
    )  # fmt: skip


def _ratio(what, other, ours, figure="cpu_s", **target):
    return Claim(what, lambda of: getattr(of[other], figure) / getattr(of[ours], figure), **target)


@contextmanager
def words_one_core(bench):
    """Word count on one core, next to DuckDB and Phoenix++."""
    source, memory = bench.input("words", GB), bench.memory(2 * GB)
    out = {name: bench.path(f"{name}.out") for name in ("merganser", "letters", "duckdb", "phoenix")}
    ours = (*CPU, *_map(bench, "wordcount", source, memory, "--threads", 1))
    contenders = [
        _one("merganser", (*ours, "-o", out["merganser"]), outputs=(out["merganser"],), result=out["merganser"], ours=True),
        _one("letters", (*ours, "--rule", "letters", "--top", TOP), ours=True),
    ]
    if bench.tools.duckdb:
        words = (*CPU, bench.tools.duckdb, tools.BENCH / "peers" / "duckdb_words.py", source, out["duckdb"],
                 "--memory", memory, "--temp", bench.temp, "--threads", 1)  # fmt: skip
        contenders.append(_one("duckdb", words, outputs=(out["duckdb"],), result=out["duckdb"]))
    notes = []
    if bench.tools.phoenix:
        words = (*CPU, "env", "MR_NUMTHREADS=1", bench.tools.phoenix, source, TOP)
        contenders.append(_one("phoenix", words))
    else:
        notes.append("Phoenix++ was skipped: PHOENIX_DIR is not set. It names a checkout of Phoenix.")
    claims = (
        _ratio("DuckDB's processor time over ours", "duckdb", "merganser", at_least=1.5),
        _ratio("Phoenix++'s processor time over ours, with its words", "phoenix", "letters", at_least=2),
        Claim("peak RSS over --memory", lambda of: (of["merganser"].rss_peak_bytes - memory) / MIB, at_most=64, unit=" MiB"),
    )
    yield Plan(bench.folder, os.path.getsize(source), memory, tuple(contenders), claims, tuple(notes))


@contextmanager
def words_two_cores(bench):
    """Word count with one thread and with two."""
    source, memory = bench.input("words", GB), bench.memory(2 * GB)
    contenders = tuple(
        _one(name, _map(bench, "wordcount", source, memory, "--threads", threads, "--top", TOP), ours=True)
        for name, threads in (("one", 1), ("two", 2))
    )
    claims = (_ratio("time of one thread over that of two", "one", "two", "wall_s", at_least=1.8),)
    yield Plan(bench.folder, os.path.getsize(source), memory, contenders, claims)


@contextmanager
def match_literals(bench):
    """A search for a few texts on one core, next to ripgrep."""
    source, memory = bench.input("words", GB), bench.memory(GB)
    keys = bench.path("keys")
    keys.write_text("qzxqzx\nnosuchword\n")
    out = {name: bench.path(f"{name}.out") for name in ("merganser", "ripgrep", "one", "ripgrep-one")}
    ours = (*CPU, *_map(bench, "match", source, memory, "--threads", 1))
    contenders = [
        _one("merganser", (*ours, "--keys", keys, "-o", out["merganser"]), outputs=(out["merganser"],), ours=True),
        _one("one", (*ours, "--key", "qzxqzx", "-o", out["one"]), outputs=(out["one"],), ours=True),
    ]
    notes = []
    if bench.tools.ripgrep:
        quiet = ("--no-config", "--no-line-number", "--text", "-j1")
        # It ends with 1 where it finds nothing, and the generator puts one hit into the words.
        for name, what in (("ripgrep", ("-F", "-f", keys)), ("ripgrep-one", ("-F", "qzxqzx"))):
            contenders.append(_one(name, (*CPU, bench.tools.ripgrep, *quiet, *what, source), output=out[name], outputs=(out[name],)))
    else:
        notes.append("ripgrep was skipped: it is not installed.")
    claims = (
        _ratio("ripgrep's processor time over ours, two texts", "ripgrep", "merganser", at_least=0.7),
        _ratio("ripgrep's processor time over ours, one text", "ripgrep-one", "one", at_least=0.7),
        _ratio("ripgrep's time over ours, two texts", "ripgrep", "merganser", "wall_s", at_least=0.7),
        _ratio("ripgrep's time over ours, one text", "ripgrep-one", "one", "wall_s", at_least=0.7),
    )
    yield Plan(bench.folder, os.path.getsize(source), memory, tuple(contenders), claims, tuple(notes))
    keys.unlink()


@contextmanager
def packed(bench):
    """Compressed inputs, next to the decompressor and to the same words as they are."""
    source, memory = bench.input("words", GB // 2), bench.memory(GB)
    def count(threads, file):
        return _map(bench, "wordcount", file, memory, "--top", TOP, "--threads", threads)

    # With one thread, the decompressor has a core of its own. With two, the three share two cores.
    contenders = [_one(f"plain-{threads}", count(threads, source), ours=True) for threads in (1, 2)]
    claims = []
    for name, compress, unpack in (
        ("gz", ("gzip", "-c"), ("zcat",)),
        ("zst", ("zstd", "-q", "-c"), ("zstd", "-q", "-d", "-c")),
    ):
        if shutil.which(compress[0]) is None:
            continue
        file = bench.path(f"words.{name}")
        with open(file, "wb") as to:
            subprocess.run([*compress, str(source)], stdout=to, check=True, timeout=data.GENERATE_TIMEOUT_S)
        contenders.append(_one(f"un{name}", (*unpack, file)))
        for threads in (1, 2):
            ours, piped, plain = f"{name}-{threads}", f"piped-{name}-{threads}", f"plain-{threads}"
            contenders.append(_one(ours, count(threads, file), ours=True))
            pipe = Job(((*unpack, file), count(threads, "-")))
            contenders.append(Contender(piped, (Step("map", pipe),)))
            claims.append(
                Claim(
                    f"time of {ours} over the slower of {' '.join(unpack)} and {plain}",
                    lambda of, name=name, ours=ours, plain=plain:
                        of[ours].wall_s / max(of[f"un{name}"].wall_s, of[plain].wall_s),
                    at_most=1.1,
                )
            )  # fmt: skip
            claims.append(_ratio(f"time of {' '.join(unpack)} piped into map, over that of {ours}", piped, ours, "wall_s", at_least=1.0))
    yield Plan(bench.folder, os.path.getsize(source), memory, tuple(contenders), tuple(claims))
    for name in ("gz", "zst"):
        (bench.folder / f"words.{name}").unlink(missing_ok=True)


@contextmanager
def beyond_memory(bench):
    """Words that nearly all differ: data of twice the memory, and of 20 times."""
    memory = bench.memory(GB // 5)
    small, large = bench.input("ascii", 2 * GB // 5), bench.input("ascii", 4 * GB)
    contenders = tuple(
        _one(name, _map(bench, "wordcount", source, memory, "-o", bench.path(f"{name}.out")), outputs=(bench.path(f"{name}.out"),), ours=True)
        for name, source in (("twice", small), ("20 times", large))
    )  # fmt: skip
    factor = os.path.getsize(large) / os.path.getsize(small)
    claims = (
        Claim(
            f"time of {factor:.0f} times the data, over {factor:.0f} times the time",
            lambda of: of["20 times"].wall_s / of["twice"].wall_s / factor,
            at_most=1.3,
        ),
        Claim("peak RSS over --memory", lambda of: (of["20 times"].rss_peak_bytes - memory) / MIB, at_most=64, unit=" MiB"),
    )
    yield Plan(bench.folder, os.path.getsize(large), memory, contenders, claims)
