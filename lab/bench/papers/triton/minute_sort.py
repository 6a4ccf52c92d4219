"""The Sort Benchmark's MinuteSort on this machine: the most data that is sorted in a minute (Tables 17 and 18).

The search begins with a small data set and continues with the size that its time suggests, a little less each time, until the limit
of time or of --size is nearly reached.
"""

from functools import partial

from harness.tools import GENSORT_RECORD_BYTES

from .. import svg
from ..lab import ExperimentError
from ..outcome import Outcome, Section
from ..statistics import mean
from .published import MINUTE_DEMSORT, MINUTE_HADOOP, MINUTE_RUNS, MINUTE_SECONDS, MINUTE_TRITONSORT, System
from .whole_sort import BYTES, WholeSort, shares

FIRST_SHARE = 4
"""The first data set, of the largest: some first one must be timed to estimate the next."""
CAUTION = 0.97
"""How far the next one goes towards what the last one promises."""
CLOSE = 0.95
ATTEMPTS = 6


def whole_records(size_bytes):
    """At least one record."""
    return max(int(size_bytes) // GENSORT_RECORD_BYTES, 1) * GENSORT_RECORD_BYTES


class Search:
    """The sizes that were tried, with their seconds, and the choice of the next size."""

    def __init__(self, limit_s, bytes_max):
        self.limit_s, self.bytes_max, self.tried = limit_s, bytes_max, []

    def best(self):
        """The largest that was sorted in time, with its seconds; or None."""
        return max((one for one in self.tried if one[1] <= self.limit_s), default=None)

    def next(self):
        """The next size; None if the answer is found, or after enough attempts."""
        if not self.tried:
            return whole_records(self.bytes_max // FIRST_SHARE)
        last, seconds = self.tried[-1]
        best = (self.best() or (0, 0))[0]
        too_large = min((size for size, seconds in self.tried if seconds > self.limit_s), default=float("inf"))
        following = whole_records(min(last * self.limit_s / seconds * CAUTION, self.bytes_max))
        nearer = following > best and best < CLOSE * following and following < too_large
        wanted = nearer or (not best and following < last)
        return following if wanted and len(self.tried) < ATTEMPTS else None


def run(lab):
    """Searches, with as many sorts of each size as asked."""
    search, work = Search(lab.args.seconds, whole_records(lab.args.size or BYTES)), WholeSort(lab)
    memory = 0
    while size_bytes := search.next():
        work.generate(size_bytes)
        costs = [work.sort() for _ in lab.rounds()]
        search.tried.append((size_bytes, mean([cost.seconds for cost in costs])))
        memory = costs[0].memory_bytes
    return outcome(lab, search, memory)


def outcome(lab, search, memory_bytes):
    """The figures of a search."""
    limit = search.limit_s
    if not search.best():
        raise ExperimentError(f"--seconds: even {search.tried[-1][0]} bytes take longer than {limit:g} seconds")
    size_bytes, seconds = search.best()
    here = System("here", 1, lab.machine["cores"], 1, size_bytes / 1e6, seconds)
    minute = Section("MinuteSort, GB (Tables 17 and 18)")
    theirs = MINUTE_TRITONSORT.published(MINUTE_TRITONSORT.megabytes / 1e3)
    minute.row("here, compared with Tritonsort's 52 nodes", size_bytes / 1e9, theirs)
    minute.row("DEMSort, 195 nodes", None, MINUTE_DEMSORT.published(MINUTE_DEMSORT.megabytes / 1e3))
    minute.row("Hadoop, 1,406 nodes", None, MINUTE_HADOOP.published(MINUTE_HADOOP.megabytes / 1e3))
    told = Section("the runs")
    told.row("limit, seconds", limit, MINUTE_SECONDS)
    told.row("runs that the time is the mean of", float(len(lab.rounds())), MINUTE_RUNS)
    for tried, its_seconds in search.tried:
        told.row(f"{tried // 10**6} MB, seconds", its_seconds)
    told.row("memory of the sort, MB", memory_bytes / 1e6)
    differs = [
        "Theirs: 52 nodes with 8 cores and 16 hard disks each. Here: one node with one disk.",
        "By the benchmark's rules: its own records, from file to file, the whole process from start to end with the result synced, "
        "the input not in the page cache, order and checksum verified. The rules want the mean of 15 runs.",
    ]
    if limit != 60:
        differs.append(f"The minute lasted {limit:g} seconds here.")
    if size_bytes == search.bytes_max and seconds < limit * CLOSE:
        differs.append(f"{seconds:.1f} of {limit:g} seconds were used: the size limit ended the search, not the time.")
    points = sorted((size / 1e6, seconds) for size, seconds in search.tried)
    ends = [(points[0][0], limit), (points[-1][0], limit)]
    series = [("measured", False, points), (f"limit, {limit:g} s", True, ends)]
    chart = partial(svg.lines, "MinuteSort", ("sorted, MB", "seconds"), series)
    return Outcome([minute, shares(here, MINUTE_TRITONSORT), told], differs, chart, lab.machine)
