""""In-Storage Computing for Hadoop MapReduce Framework" on real Hadoop: map tasks run on the node where the block is, next to
stock Hadoop.

The measurements take an hour, need root and an idle machine, and are made in pieces. Each figure of the paper has a file, with a
function from a `study.Study` to an outcome.
"""

from . import devices, host, jobs, size, task

COMPARISONS = {
    "isc-hadoop-task": ("a map task on Hadoop, stock and on the node, and its constant part", "Figures 10b and 10c", "task --calls", task.outcome),
    "isc-hadoop-size": ("word counts on Hadoop, stock and on the node, by data: jobs and maps", "Figure 11", "size", size.outcome),
    "isc-hadoop-host": ("the same: processor, reads and memory of tasks, and of the machine", "Figures 13 and 14", "host", host.outcome),
    "isc-hadoop-devices": ("the same on one to four DataNodes, each with a disk of its own", "Figures 12a and 15", "devices", devices.outcome),
    "isc-hadoop-jobs": ("seven jobs and a search on Hadoop, stock and on the node", "3.4", "jobs", jobs.outcome),
}
"""By name: what it compares, the part of the paper, the words of isc.py, and the function."""
