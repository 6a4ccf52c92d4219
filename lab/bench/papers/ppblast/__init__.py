"""pp-mpiBLAST, chapter 4 of the dissertation: a storage node formats a partition of a database while the compute nodes search the
one before.

    formatting, elapsed, speedup, partition     one experiment each: what is measured, what is compared
         │
         ├──► runs      a database that is formatted and searched: whole, in partitions, in two pools
         │      └──► bed      two processors, a memory group, a database
         │             └──► data     real and generated sequences, and queries
         ├──► model     the chapter's equations, straight lines, and formatdb's reads on modelled disks
         └──► published the chapter's figures, and where they contradict one another

The paper has a storage node, twelve compute nodes, and 2 GB of memory in each. Here one processor is the storage node and another
one the compute nodes, and a memory group keeps the ratio of data to memory.
"""

from ..lab import Experiment
from . import elapsed, formatting, partition, speedup

DISSERTATION = "McSD/HcDD dissertation"


EXPERIMENTS = {
    "ppblast-format": Experiment(
        "formatting a database by its size, on hard disks and on an SSD", f"{DISSERTATION}, Table 4.3 and Figure 4.6", formatting.run,
    ),
    "ppblast-elapsed": Experiment(
        "BLAST on a database: whole, in partitions, and in partitions that are pipelined",
        f"{DISSERTATION}, Figures 4.6 to 4.8 and Table 4.2", elapsed.run,
    ),
    "ppblast-speedup": Experiment(
        "the same by size of partitions: speedup, and what equations and recurrence predict",
        f"{DISSERTATION}, Figure 4.9 and Equations 4.1 to 4.8", speedup.run,
    ),
    "ppblast-partition": Experiment(
        "the same by the number of partitions: the best one, found and predicted", f"{DISSERTATION}, Figure 4.10", partition.run,
    ),
}  # fmt: skip
