"""A sort as a user runs it, by the rules of the Sort Benchmark: records from `generate`, sorted by a process of its own that is
timed from its start to its end with the result synced, and checked by `verify`."""

import json
import os
from dataclasses import dataclass

from harness.tools import GENSORT_ORDER, GENSORT_RECORD_BYTES

from ..lab import ExperimentError
from ..outcome import Section
from ..statistics import median
from . import published

BYTES = 10**9
"""Without --size."""
SPACE = 2.3
"""Free space, over the data's: the data, the result, runs whose space comes back while they are merged, and a file that tells the
disk's speed."""


@dataclass(frozen=True)
class SortCost:
    """One sort. The bytes are those that it read from and wrote to devices, temporary runs included."""

    seconds: float
    device_bytes: int
    peak_rss_bytes: int
    memory_bytes: int


class WholeSort:
    """A data set, to be sorted as often as wanted."""

    def __init__(self, lab):
        self.lab = lab
        self.data, self.sorted, self.report = (lab.folder / name for name in ("data.bin", "sorted.bin", "report.json"))
        self.found = None

    def generate(self, size_bytes):
        """Makes this much in place of what was made before. Returns the exact bytes."""
        self.data.unlink(missing_ok=True)
        records = max(size_bytes // GENSORT_RECORD_BYTES, 1)
        size_bytes = records * GENSORT_RECORD_BYTES
        stat = os.statvfs(self.lab.folder)
        free, needed = stat.f_bavail * stat.f_frsize, int(size_bytes * SPACE)
        if needed > free:
            raise ExperimentError(
                f"{self.lab.args.dir}: sorting {size_bytes} bytes takes {needed} bytes of space and {free} are free; "
                "give a smaller --size or another --dir"
            )
        self.lab.say("generate")
        self.lab.told(self.lab.merganser, "generate", "--records", records, "-o", self.data)
        self.found = self._verify(self.data, worst=1)
        return size_bytes

    def sort(self):
        """Sorts the data set from a cold cache; checks and removes the result."""
        args = self.lab.args
        memory = ("--memory", args.memory) if args.memory else ()
        cost = self.lab.measure(
            args.merganser, "sort", "--quiet", *GENSORT_ORDER, *memory, "--threads", args.threads,
            "--temp-dir", self.lab.folder, "--report", self.report, "-o", self.sorted, self.data, cold=[self.data],
        )  # fmt: skip
        told = json.loads(self.report.read_text())
        found = self._verify(self.sorted)
        if found != self.found:
            raise ExperimentError(f"the sorted records are not those of the data: {found} instead of {self.found}")
        self.sorted.unlink()
        device = told["device_read_bytes"] + told["device_written_bytes"]
        return SortCost(cost.wall_s, device, told["peak_rss_bytes"], told["memory_limit_bytes"])

    def _verify(self, path, worst=0):
        """The number of records in a file, and their checksum. For a file that is not sorted the exit status is 1."""
        told = json.loads(self.lab.told(self.lab.merganser, "verify", "--json", "--quiet", *GENSORT_ORDER, path, worst=worst))
        return {name: told[name] for name in ("records", "checksum")}


def sorted_here(lab, work):
    """Sorts one data set in all rounds. Returns the sort as a system, the median bytes it moved over the data's, and the costs."""
    size_bytes = work.generate(lab.args.size or BYTES)
    costs = [work.sort() for _ in lab.rounds()]
    seconds = median(cost.seconds for cost in costs)
    here = published.System("here", 1, lab.machine["cores"], 1, size_bytes / 1e6, seconds)
    return here, median(cost.device_bytes for cost in costs) / size_bytes, costs


def shares(here, system):
    """The throughput of a node, a core and a disk, compared with a system's."""
    section = Section(f"the same as MB/s, compared with {system.name}'s")
    for what, own, theirs in zip(published.THROUGHPUTS[1:], here.relative, system.relative):
        section.row(what, own, system.published(theirs))
    return section
