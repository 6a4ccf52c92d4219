"""McSD's figures (chapter 3 of the dissertation), and Table 4.1."""

from ..published import DERIVED, STATED, Published

MCSD, DISSERTATION = "McSD", "McSD/HcDD dissertation"

SHARES = (0.25, 0.375, 0.5, 0.625)
"""The data of the paper, as shares of its 2 GB of memory."""
SIZES = ("500 MB", "750 MB", "1 GB", "1.25 GB")
"""The paper's names for these."""
PARTITION_SHARE = 0.3
"""The paper's partition of 600 MB as a share of memory."""


def _told(value, place):
    return Published(value, MCSD, place, STATED)


DUO = _told(2.0, "3.5.2")
"""Both jobs "can achieve a 2X speedup" over the sequential approach."""
PARTITIONED = _told(6.0, "3.5.2")
"""The elapsed time with partitions "is only 1/6 of the traditional one"."""
SMALL = _told(1.0, "3.5.2")
"""Below half of memory "the traditional parallel approach provides almost the same performance"."""
LINEAR = _told(1.0, "3.5.2")

TRADITIONAL = _told(2.0, "3.5.3")
"""The average over a traditional storage node."""
WHOLE, HOST = _told(16.0, "Figure 3.10, caption"), _told(18.0, "Figure 3.10, caption")
"""At the largest size: "16 to 18 times more"."""
MATCH = _told(2.0, "3.5.3")
"""String match, in the text: "both averagely 2X"."""

TABLE_41 = (
    ("word count", 2, 40.50, 85.71),
    ("word count", 3, 50.91, 139.54),
    ("string match", 2, 17.76, 17.62),
    ("string match", 3, 20.61, 21.00),
)
"""The job, the place of the size in `SIZES`, seconds with and without partitions."""


def table_41(value, kind=DERIVED):
    """A figure of Table 4.1."""
    return Published(value, DISSERTATION, "Table 4.1", kind)
