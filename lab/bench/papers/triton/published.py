"""The systems of TritonSort's evaluation, and its Tables 12 to 18."""

from dataclasses import dataclass

from ..published import COMPUTED, DERIVED, Published

TRITON = "TritonSort"


def table(number, value, **how):
    """A figure of a table."""
    return Published(value, TRITON, f"Table {number}", **how)


@dataclass(frozen=True)
class System:
    """A published sort: the machine, the data and the time; or ours."""

    name: str
    nodes: float
    cores: float
    disks: float
    megabytes: float
    """MB (1,000,000 bytes) sorted."""
    seconds: float
    place: str = ""
    """The table that has it."""

    @property
    def throughput(self):
        """MB per second."""
        return self.megabytes / self.seconds

    @property
    def relative(self):
        """MB per second of a node, a core and a disk (4.4.2)."""
        return [self.throughput / count for count in (self.nodes, self.cores, self.disks)]

    def published(self, value):
        """A figure that follows from the table."""
        return Published(value, TRITON, self.place, DERIVED)


def _gray(name, nodes, cores, disks, terabytes, seconds, place="Table 12"):
    return System(name, nodes, cores, disks, terabytes * 1e6, seconds, place)


GRAY = (
    _gray("MapReduce", 4000, 32000, 48000, 1000, 21720),
    _gray("Hadoop (PB)", 3658, 29264, 14632, 1000, 58500),
    _gray("Hadoop", 3452, 27616, 13808, 100, 10380),
    _gray("DEMSort", 195, 1560, 780, 100, 10628),
    _gray("Tritonsort", 47, 376, 752, 100, 10318),
)
"""In the order of Table 12."""
HADOOP, DEMSORT, TRITONSORT = GRAY[2:]
MINUTE_HADOOP = _gray("Hadoop", 1406, 11248, 5624, 0.5, 59, "Table 18")
MINUTE_DEMSORT = _gray("DEMSort", 195, 1560, 780, 0.955, 60, "Table 17")
MINUTE_TRITONSORT = _gray("Tritonsort", 52, 416, 832, 1.014, 58, "Tables 17 and 18")

THROUGHPUTS = ("all", "a node", "a core", "a disk")
TABLE_13 = (
    ((46040.5, 11.5, 1.4, 1.0), 3.5),
    ((17094.0, 4.7, 0.6, 1.2), 3.2),
    ((9633.9, 2.8, 0.3, 0.7), 3.2),
    ((9409.1, 48.3, 6.0, 12.1), 4.1),
    ((9691.8, 206.2, 25.8, 12.9), 4.4),
)
"""For each system of `GRAY`: MB/s by `THROUGHPUTS`, and the exponent of bytes/s/$, an estimate that is an input here."""
TABLE_14 = (
    (23.9, 23.9, 8.0, 25.1),
    (9.7, 9.7, 9.7, 12.6),
    (5.8, 5.8, 5.8, 12.6),
    (100.0, 100.0, 100.0, 100.0),
    (427.4, 427.4, 106.8, 199.5),
)
"""Percent of DEMSort's, a node, a core, a disk, a dollar."""


@dataclass(frozen=True)
class Comparison:
    """Tritonsort against another system: Tables 15 to 18."""

    number: int
    title: str
    triton: System
    other: System
    throughput: tuple
    """MB/s of both."""
    ratios: tuple
    """Tritonsort's share of the other's nodes, cores and disks."""
    efficiency: tuple
    """Of cores and disks."""
    cost: tuple | None = None
    """The efficiency of cost, and the exponents of bytes/s/$ that it is computed from. Table 18's is illegible."""

    def figure(self, value):
        """A figure of its table, next to ours from its formula."""
        return table(self.number, value, ours=COMPUTED)


COMPARISONS = (
    Comparison(15, "Gray Sort, Tritonsort against DEMSort", TRITONSORT, DEMSORT, (9691.8, 9409.1),
               (0.241, 0.241, 0.964), (4.275, 1.069), (1.995, 4.4, 4.1)),
    Comparison(16, "Gray Sort, Tritonsort against Hadoop", TRITONSORT, HADOOP, (9691.8, 9633.9),
               (0.0136, 0.0136, 0.0545), (73.66, 18.41), (15.85, 4.4, 3.2)),
    Comparison(17, "Minute Sort, Tritonsort against DEMSort", MINUTE_TRITONSORT, MINUTE_DEMSORT, (17482.8, 15916.7),
               (0.267, 0.267, 1.067), (4.12, 1.03), (1.92, 4.6, 4.3)),
    Comparison(18, "Minute Sort, Tritonsort against Hadoop", MINUTE_TRITONSORT, MINUTE_HADOOP, (17482.8, 8474.6),
               (0.0370, 0.0370, 0.1479), (55.78, 13.94)),
)  # fmt: skip

MINUTE_SECONDS = Published(60.0, "Sort Benchmark", "MinuteSort's rules")
MINUTE_RUNS = Published(15.0, "Sort Benchmark", "MinuteSort's rules")
