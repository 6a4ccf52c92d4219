"""The measurements, the most telling first.

A *pair* is one job, run by stock Hadoop and with the node, one after the other. Pairs of odd rounds begin with stock,
others with the node. Figures share pairs: the host's resources are those of the jobs by size.
"""

from dataclasses import dataclass, replace

from .jobs import JOBS

MB = 10**6
STOCK, NODE = "stock", "node"
OWN, SLOW, FAST = "own", "slow", "fast"
"""Where blocks are: on the machine's own disk, or on a disk for each DataNode that reads `DEVICE_MB_S`, or any speed."""
CONTENDERS = (STOCK, NODE)

LINE_BYTES = 850
"""One line of text: a task with nothing to do. Its time is the constant part of a task."""
TASK_BYTES = 128 * MB
HALF_BYTES = TASK_BYTES // 2
JOB_FILES = (2, 4, 8)
"""Files of 128 MB in the figures by size: 256 MB to 1 GB."""
DEVICE_FILES, DEVICE_BYTES, DEVICE_MB_S = 4, 64 * MB, 16
"""Divided evenly among the disks. A map reads a file in 4 s."""
DEVICES = (1, 2, 4)
SORT_MB = 100
"""Hadoop's default of `mapreduce.task.io.sort.mb`."""
HEAP_MB = SORT_MB + 160
"""The heap of a map task. Both contenders have the same, since a map that the node refuses runs in the task."""
HEAPS = {STOCK: (128, 144, 160, 192), NODE: (16, 24, 32, 48)}
"""The heaps that are tried, in MB."""


@dataclass(frozen=True)
class Pair:
    """One measurement."""

    job: str
    file_bytes: int
    """Of each file; a file is one block, one split, and one map."""
    files: int = 1
    devices: int = 1
    """DataNodes that have the files, and maps at once."""
    disk: str = OWN
    """`own`, `slow` or `fast`."""
    heap_mb: int = HEAP_MB
    only: str = ""
    """The only contender, when a task's least heap is looked for: then it may fail."""
    round: int = 1

    @property
    def data_bytes(self):
        """All input."""
        return self.files * self.file_bytes

    @property
    def contenders(self):
        """In the order of their turns."""
        if self.only:
            return (self.only,)
        return CONTENDERS if self.round % 2 else CONTENDERS[::-1]

    @property
    def name(self):
        """A name for files: all that decides the pair."""
        parts = [self.job, f"{self.files}x{self.file_bytes}"]
        parts += [f"{self.devices}-{self.disk}"] * (self.disk != OWN)
        parts += [f"heap{self.heap_mb}"] * (self.heap_mb != HEAP_MB) + [self.only] * bool(self.only)
        return "-".join([*parts, f"round{self.round}"])

    @property
    def alike(self):
        """The fields that are equal for pairs that take about as long."""
        return replace(self, round=1)

    @property
    def expected_s(self):
        """A guess of its seconds, for the time budget, until one like it was measured."""
        each = 12 + self.files * 3 / min(2, self.devices) + self.data_bytes / 12e6 / min(2, self.devices)
        return len(self.contenders) * (8 + each)


def _task():
    return [Pair("wordcount", size) for size in (LINE_BYTES, TASK_BYTES, HALF_BYTES)]


def _size():
    return [Pair("wordcount", TASK_BYTES, files) for files in JOB_FILES]


def _host():
    heaps = [
        Pair("wordcount", TASK_BYTES, heap_mb=heap, only=who)
        for who in CONTENDERS
        for heap in HEAPS[who]
    ]
    return [*_size(), *heaps]


def _devices():
    return [
        Pair("wordcount", DEVICE_BYTES, DEVICE_FILES, devices, disk)
        for disk in (SLOW, FAST)
        for devices in DEVICES
    ]


def _jobs():
    return [Pair(job, HALF_BYTES) for job in JOBS]


FIGURES = {
    "task": ("Figures 10b, 10c: a map task, and its constant part", _task),
    "size": ("Figure 11: a job and its maps by the size of the data", _size),
    "host": ("Figures 13, 14: processor, reads and memory of tasks", _host),
    "devices": ("Figures 12, 15: one to four DataNodes, each with a disk of its own", _devices),
    "jobs": ("the jobs of 3.4, and a search", _jobs),
}
"""By name: the part of the paper, and its pairs."""


def pairs_of(figures, rounds):
    """All pairs of these figures, each once, in the order in which they should be measured: a round of all before the
    next. A least heap is looked for once."""
    every = list(dict.fromkeys(pair for name in FIGURES if name in figures for pair in FIGURES[name][1]()))
    return [
        replace(pair, round=number)
        for number in range(1, rounds + 1)
        for pair in every
        if number == 1 or not pair.only
    ]
