"""Figures of chapter 4, as printed, and where they contradict one another."""

import math

from ..published import COMPUTED, DERIVED, FITTED, GIVEN, MEASURED, PREDICTED, STATED, Published

DISSERTATION = "McSD/HcDD dissertation"
OWN = "Merganser"


def given(value, place, kind=GIVEN, ours=MEASURED):
    """A figure of the chapter."""
    return Published(float(value), DISSERTATION, place, kind, ours)


def computed(value, place):
    """A figure in the paper's column that one of its equations gives for what was measured here."""
    return Published(value, DISSERTATION, place, DERIVED, MEASURED)


MEMORY_MB = 2000.0
"""Memory of a node (Table 4.2)."""
FORMAT = (
    (500.0, 108.4, 101.9), (750.0, 369.5, 164.4), (1000.0, 639.1, 225.9),
    (1250.0, 945.6, 291.1), (1500.0, 1385.0, 369.5), (1750.0, 1845.1, 441.1),
)  # fmt: skip
"""Table 4.3: MB, seconds of mpiformatdb with the hard disks and with the SSD."""


def table_43(value, kind=GIVEN, ours=MEASURED):
    """A figure of Table 4.3, or one that follows from it."""
    return given(value, "Table 4.3", kind, ours)


FITTED_DISK = {megabytes: table_43(hdd, ours=FITTED) for megabytes, hdd, _ in FORMAT}
PREDICTED_SSD = {megabytes: table_43(ssd, ours=PREDICTED) for megabytes, _, ssd in FORMAT}
DISK_OVER_SSD = {megabytes: table_43(hdd / ssd, DERIVED, COMPUTED) for megabytes, hdd, ssd in FORMAT}

SIZES = (1000.0, 1250.0, 1500.0, 1750.0, 2000.0)
"""The databases of Figures 4.7 to 4.10, in MB."""
PARTITIONS = (250.0, 500.0, 750.0)
"""The partitions of the same figures, in MB."""
BEST_PARTITION = given(500, "4.5.3", STATED)
"""The one that "provides a better performance in general"."""

SPEEDUP_MEAN = given(2, "4.5.3", STATED)
"""On average: "averagely reducing the execution time by 50% (i.e. 2X speedup)" over both controls."""
SAVED_MEAN = given(50, "4.5.3", STATED)
"""The same as time saved, in percent."""
SAVED_CLAIMED = given(75, "4.1.2", STATED)
"""At most: "improves mpiBLAST's overall performance by up to 75%"."""
SAVED_MOST = given(50, "4.6", STATED)
"""At most: "reduce mpiBLAST's overall execution time by up to 50%"."""
SPEEDUP_AXIS = tuple((given(least, "Figure 4.9, axis"), given(most, "Figure 4.9, axis")) for least, most in ((1.2, 2.1), (1.2, 2.0)))
"""The ends of the axis, for the controls of twelve and of thirteen nodes. Its points have no numbers."""
PARTITION_AXIS = tuple(given(seconds, "Figure 4.10, axis") for seconds in (300, 650))
CROSSING_AXIS_MB = 2500
"""The end of the axis of Figure 4.6."""

TEST_BED = (
    "Theirs (Table 4.2): 12 or 13 nodes with an Intel Xeon X3430, and a storage node with an Intel Q9400; 2 GB of memory each, Ubuntu "
    "9.04 with Linux 2.6.28-15, an Ethernet of 1 Gbit/s, an Intel X25-M of 80 GB, four WD5000AAKS as RAID 0, MPICH2-1.0.7, "
    "mpiBLAST-1.5.0 with NCBI BLAST 2.2.24, gcc 4.4.1. Neither its database nor its queries are named."
)
CONTRADICTIONS = (
    "The chapter contradicts itself: the text and the sub-figures of Figures 4.7 and 4.8 say partitions of 250, 500 and 750 MB, both "
    "captions say 1.25 GB for the third; performance improves \"by up to 75%\" (4.1.2), execution time falls \"by up to 50%\" (4.6) and "
    "\"averagely\" by 50 %, \"i.e. 2X\" (4.5.3). An average of 50 % and a most of 50 % can both hold only if all runs saved the same, "
    "and the axes of Figure 4.9 begin at speedups of 1.2."
)
BOUND = (
    "By Equation 4.6 overlap alone gives at most 2n/(n+1), 1.33 for two partitions and 1.78 for eight. The average of 2 is above that "
    "for the 2 to 8 partitions of these figures, so part of the paper's gain is that partitions fit in memory and the whole database "
    "does not. The two causes are therefore measured apart here."
)
"""What the chapter's equation allows, and its figures exceed."""


def name_of(megabytes):
    """A size as the paper writes it."""
    return f"{megabytes:g} MB" if megabytes < 1000 else f"{megabytes / 1000:g} GB"


def count_of(database_mb, partition_mb):
    """The number of partitions of a size that a database is cut into."""
    return math.ceil(database_mb / partition_mb)
