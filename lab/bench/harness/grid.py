"""The grid that compares `--strategy auto` with both strategies: a scenario for each cell.

A cell is a length of records, a memory budget, a spread of keys and a kind of result.
"""

import os
from contextlib import contextmanager

from . import data
from .measure import Job
from .plan import Claim, Contender, Plan, Step

RECORDS = {"10B": 10, "16B": 16, "50B": 50, "100B": 100, "1000B": 1000, "10KB": 10_000, "1MiB": 2**20}
MEMORIES = {"sixteenth": 1 / 16, "quarter": 1 / 4, "double": 2}
"""Memory divided by the size of the data."""
RESULTS = ("file", "view", "stream")
STRATEGIES = ("merge", "distribute", "auto")
SLOWER_AT_MOST = 1.05
"""The largest allowed ratio of `auto`'s time to the better strategy's time."""


def names():
    """Every cell, as `grid-100B-quarter-uniform-file`."""
    return [
        f"grid-{record}-{memory}-{keys}-{result}"
        for record in RECORDS
        for memory in MEMORIES
        for keys in data.FIXED_KEYS
        for result in RESULTS
    ]


def input_kind(name):
    """The input of a cell."""
    _, record, _, keys, _ = name.split("-")
    return f"fixed-{RECORDS[record]}-{keys}"


def _steps(bench, source, name, memory, strategy):
    """The commands of one strategy, the files that they leave behind, and the source of their output bytes."""
    _, record, _, _, result = name.split("-")
    record_bytes = RECORDS[record]
    order = ("--format", f"fixed:{record_bytes}", "--key", f"0:{min(record_bytes, data.FIXED_KEY_BYTES)}")

    def sort(*result):
        words = bench.tools.merganser_sort(source, order, memory, bench.temp, result)
        return Job(((*words, "--strategy", strategy),))

    if result == "view":
        view = bench.path(f"grid-{strategy}.view")
        read = (bench.tools.merganser, "cat", view, "--memory", memory)
        return (Step("make", sort("--view", view)), Step("read", Job((read,)))), (view,), read
    if result == "file":
        out = bench.path(f"grid-{strategy}.out")
        return (Step("sort", sort("-o", out)),), (out,), out
    return (Step("sort", sort()),), (), None


@contextmanager
def cell(bench, name, full_bytes):
    """One cell: merge, distribute and auto on the same input."""
    source = bench.input(input_kind(name), full_bytes)
    size = os.path.getsize(source)
    memory = bench.memory(full_bytes * MEMORIES[name.split("-")[2]])
    contenders = []
    for strategy in STRATEGIES:
        steps, outputs, result = _steps(bench, source, name, memory, strategy)
        # Some options exclude a strategy; a strategy that refuses them is left out.
        ours = strategy != "distribute"
        contenders.append(Contender(strategy, steps, outputs=outputs, result=result, ours=ours))

    def over_better(of):
        better = min(of[one].wall_s for one in ("merge", "distribute") if one in of)
        return of["auto"].wall_s / better

    yield Plan(
        folder=bench.folder,
        input_bytes=size,
        memory_bytes=memory,
        contenders=tuple(contenders),
        claims=(
            Claim("auto's time over the better strategy's", over_better, at_most=SLOWER_AT_MOST),
            Claim(
                "merge's time over distribute's", lambda of: of["merge"].wall_s / of["distribute"].wall_s, at_least=0
            ),
        ),
    )
