"""The Sort Benchmark's GraySort on this machine: TB per minute, and the paper's (Tables 15 and 16)."""

from functools import partial

from .. import svg
from ..outcome import Outcome, Section
from .published import DEMSORT, HADOOP, TRITONSORT
from .whole_sort import WholeSort, shares, sorted_here


def per_minute(system):
    """TB a minute."""
    return system.throughput * 60 / 1e6


def run(lab):
    """Sorts one data set."""
    return outcome(lab, *sorted_here(lab, WholeSort(lab)))


def outcome(lab, here, moved, costs):
    """The figures of the sorts."""
    gray = Section("GraySort, TB/min (Tables 15 and 16)")
    gray.row("here, compared with Tritonsort's 47 nodes", per_minute(here), TRITONSORT.published(per_minute(TRITONSORT)))
    gray.row("DEMSort, 195 nodes", None, DEMSORT.published(per_minute(DEMSORT)))
    gray.row("Hadoop, 3,452 nodes", None, HADOOP.published(per_minute(HADOOP)))
    told = Section("the run")
    told.row("sorted, TB", here.megabytes / 1e6, TRITONSORT.published(TRITONSORT.megabytes / 1e6))
    told.row("seconds", here.seconds, TRITONSORT.published(TRITONSORT.seconds))
    told.row("memory of the sort, MB", costs[0].memory_bytes / 1e6)
    told.row("peak memory, MB", max(cost.peak_rss_bytes for cost in costs) / 1e6)
    told.row("bytes read and written on the disk, over the data's", moved)
    bars = [(f"{one.name}, a node", one.relative[0], True) for one in (TRITONSORT, DEMSORT, HADOOP)]
    bars.append(("here, a node", here.relative[0], False))
    return Outcome([gray, shares(here, TRITONSORT), told], [
        "Theirs: 47 nodes with 8 cores and 16 hard disks each, and a network between them. Here: one node with one disk.",
        "The rules ask for at least 100 TB, which takes hours; here the size is smaller, so this is no entry to the benchmark. Data "
        "that fits into memory is sorted in one pass, which GraySort's never is.",
        "By its rules otherwise: the benchmark's own records, input and output are files, the time is that of the whole process "
        "from start to end with the result synced, the input is not in the page cache, and order and checksum are verified.",
    ], partial(svg.bars, "GraySort, a node", "MB/s", bars), lab.machine)  # fmt: skip
