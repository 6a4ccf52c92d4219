"""The papers' figures, each with its place in the paper, how the paper has it, and how ours was found.

Nothing of ours on Hadoop is fitted to a paper. The modelled devices have parameters that were fitted, to data sheets and to
plain reads and writes; docs/lab/device-model.md names them.
"""

from dataclasses import dataclass, replace

from papers.published import DERIVED, GIVEN, MEASURED, PREDICTED, STATED, Published

ACTIVE_SORT = "ActiveSort"
SSD = "A Case for Flash Memory SSD in Hadoop Applications"
ISC = "In-Storage Computing for Hadoop"

def _stated(paper, place, ours=MEASURED):
    return Published(1.0, paper, place, STATED, ours)


# ActiveSort on Hadoop: percent less than the original's, of the best workload.
LESS_TIME = Published(36.1, ACTIVE_SORT, "Figure 10")
LESS_WRITTEN = Published(40.4, ACTIVE_SORT, "Figure 11")
# Records a second over the original's, "in all experiments using multiple nodes".
NODES_GAIN = Published(1.5, ACTIVE_SORT, "5.4.4, Figure 17")
FASTER = _stated(ACTIVE_SORT, "5.4.1, Figure 10")
BY_MEMORY = _stated(ACTIVE_SORT, "5.4.2, Figure 15")
BY_REDUCERS = _stated(ACTIVE_SORT, "5.4.3, Figure 16")


def _ssd(value, place, kind=GIVEN, ours=PREDICTED):
    return Published(value, SSD, place, kind, ours)


@dataclass(frozen=True)
class EnergyRow:
    """A row of Table 2, for the hard disk and for the SSD."""

    name: str
    job: str
    """Its name in study.py."""
    gigabytes: float
    hdd_wh: Published
    hdd_s: Published
    ssd_wh: Published
    ssd_s: Published

    @property
    def gain(self):
        """The hard disk's seconds over the SSD's."""
        return replace(self.hdd_s, value=self.hdd_s.value / self.ssd_s.value, kind=DERIVED)

    @property
    def saving(self):
        """The hard disk's energy over the SSD's."""
        return replace(self.hdd_wh, value=self.hdd_wh.value / self.ssd_wh.value, kind=DERIVED)

    @property
    def watts(self):
        """The mean powers on the hard disk and on the SSD."""
        pairs = (self.hdd_wh, self.hdd_s), (self.ssd_wh, self.ssd_s)
        return [replace(energy, value=energy.value * 3600 / seconds.value, kind=DERIVED) for energy, seconds in pairs]


def _energy(name, job, gigabytes, *figures):
    return EnergyRow(name, job, gigabytes, *(_ssd(value, "Table 2") for value in figures))


SORT = _energy("Sort", "sort", 10, 18.49, 1235.0, 9.13, 479.0)
JOIN = _energy("Join", "join", 15, 31.85, 1768.0, 15.74, 1030.0)
TABLE_2 = (SORT, JOIN)
# The largest ratios of the hard disk's seconds over the SSD's, in the text.
SORT_GAIN_MOST, JOIN_GAIN_MOST = _ssd(3.0, "4.2"), _ssd(2.3, "4.2")
# "Generally 128 KB".
READ_KIB = _ssd(128.0, "4.2, Figures 3 and 4")
RANDOM_READS = _stated(SSD, "Figures 3 and 4", PREDICTED)
BY_SETTINGS = _stated(SSD, "Table 1 and Figure 6", PREDICTED)
# Not the paper's: the aim of our own model.
WITHIN_TENTH = _stated("Merganser", "docs/hadoop/advise-job.md", PREDICTED)
NO_GAP = _stated(SSD, "Figure 7", PREDICTED)
GAP = _stated(SSD, "Figure 8", PREDICTED)
# "When 1000 nodes mounted on SSD are more expensive about $ 180 than HDDs, sorting more than 2000 times turn can take on the
# cost advantages."
REPAID_NODES, REPAID_DOLLARS = _ssd(1000.0, "4.5"), _ssd(180.0, "4.5")
REPAID_SORTS = _ssd(2000.0, "4.5")
REPAID = _stated(SSD, "4.5", PREDICTED)
# "About two times less"; the smaller ratio is 1.9.
HALF_ENERGY = _stated(SSD, "Table 2", PREDICTED)


def _isc(value, place, kind=GIVEN):
    return Published(value, ISC, place, kind)


# Seconds of a map task of 64 MB, and its constant part in percent.
TASK_BASELINE, TASK_ISC = _isc(15.0, "Figure 10b"), _isc(6.0, "Figure 10b")
CONSTANT_BASELINE, CONSTANT_ISC = _isc(14.6, "Figure 10c"), _isc(36.0, "Figure 10c")
# Times as fast: a task, the map in it without the constant part, and a job.
TASK_GAIN, PURE_GAIN = _isc(2.5, "Figure 10b"), _isc(3.6, "Figure 10c")
JOB_GAIN = _isc(2.0, "Figures 9, 11, 12a and 15")
# Times less: the host's processor in all and during maps, its memory, and what it reads ("almost 2 orders of magnitude").
PROCESSOR_TOTAL, PROCESSOR_MAPS = _isc(3.7, "Figure 13a"), _isc(4.2, "Figure 14a")
MEMORY, READ = _isc(3.0, "Figure 14c"), _isc(100.0, "Figure 13b")


def ideal(devices):
    """The speed of this many devices over that of one, if it were linear."""
    return _isc(float(devices), "Figures 12a and 15", DERIVED)


def near_ideal(devices):
    """The least speed that counts as near to it: 0.8 of it, a bound of ours."""
    return replace(ideal(devices), value=0.8 * devices)
