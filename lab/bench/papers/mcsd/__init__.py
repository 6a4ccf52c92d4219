"""McSD: MapReduce on a storage node whose data is nearly as large as its memory.

    single, partition, pairs      one experiment each: what is measured, what is compared
         │
         ├──► contest             programs and jobs, timed in a memory group with a swap file
         └──► published           the paper's figures

The paper's machine has 2 GB. Here a memory group has less, and the data keeps its share of it.
"""

from ..lab import Experiment
from . import pairs, partition, single

EXPERIMENTS = {
    "mcsd-single": Experiment("word count and string match in little memory, alone", "McSD, Figures 3.8 and 3.9", single.run),
    "mcsd-pairs": Experiment("the same next to a product of matrices on the host", "McSD, Figures 3.10 and 3.11", pairs.run),
    "mcsd-partition": Experiment("the same with and without partitions", "McSD/HcDD dissertation, Table 4.1", partition.run),
    "ppblast-wordcount": Experiment(
        "word count and string match with and without partitions, as mcsd-partition",
        "McSD/HcDD dissertation, Table 4.1 and Figure 4.5", partition.run_wordcount,
    ),
}  # fmt: skip
