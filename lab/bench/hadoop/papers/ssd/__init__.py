""""A Case for Flash Memory SSD in Hadoop Applications": stock Hadoop on an emulated hard disk and an emulated SSD.

Times are predictions of the device models: nothing is fitted to the paper's. A cell whose emulation was late is shown as not
valid, and no ratio uses it. Each figure of the paper has a file, with a function from a `study.Study` to an outcome.
"""

from . import beyond, energy, jobs, settings, size, traces

COMPARISONS = {
    "ssd-hadoop-size": ("a sort and a join on Hadoop, on an emulated hard disk and an SSD, by data", "Figure 5", "size", size.outcome),
    "ssd-hadoop-settings": (
        "a sort and a join by sort buffer and block; what `hadoop advise --job` makes of it", "Table 1 and Figure 6",
        "settings settings-advised settings-join", settings.outcome,
    ),
    "ssd-hadoop-traces": ("what the disk sees of a sort and a join, and which share is sequential", "Figures 3 and 4", "traces", traces.outcome),
    "ssd-hadoop-cpu": ("jobs that wait for the processor, on both devices", "Figure 7", "cpu-bound", jobs.cpu_bound),
    "ssd-hadoop-io": ("jobs that wait for the disk, on both devices", "Figure 8", "io-bound", jobs.io_bound),
    "ssd-hadoop-energy": ("energy of a sort and a join, and the paper's arithmetic", "Table 2 and 4.5", "energy", energy.outcome),
    "ssd-hadoop-beyond": ("the sort and the join with Merganser's shuffle on both devices", "beyond it", "beyond", beyond.outcome),
}  # fmt: skip
"""By name: what it compares, the part of the paper, the figures of study.py, and the function."""
