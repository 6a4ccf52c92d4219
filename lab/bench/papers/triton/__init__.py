"""TritonSort, and the Sort Benchmark that it takes part in: whole sorts, from file to file.

`published` has the paper's systems and tables, `whole_sort` makes data and sorts it; the others have an experiment each.
"""

from ..lab import Experiment
from . import efficiency, gray_sort, minute_sort

EXPERIMENTS = {
    "triton-efficiency": Experiment(
        "throughput per node, core, disk and dollar of large sorts, and of a sort here", "TritonSort, Tables 12 to 18", efficiency.run,
    ),
    "minute-sort": Experiment(
        "the most data that is sorted in a minute, from file to file",
        "TritonSort, Tables 17 and 18; Sort Benchmark, MinuteSort Indy", minute_sort.run,
    ),
    "gray-sort": Experiment(
        "TB sorted a minute, from file to file", "TritonSort, Tables 15 and 16; Sort Benchmark, GraySort Indy", gray_sort.run,
    ),
}  # fmt: skip
