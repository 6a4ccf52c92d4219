"""Figure 5: a sort and a join by the size of the data, on both devices."""

from functools import partial

from papers import svg
from papers.outcome import Outcome, Section

from ...ssd.cells import PAPER_SIZES
from ..published import JOIN, JOIN_GAIN_MOST, SORT, SORT_GAIN_MOST
from .study import gain_row, seconds_row

JOBS = (("sort", 1.0, SORT_GAIN_MOST, SORT.gain), ("join", 1.5, JOIN_GAIN_MOST, JOIN.gain))
"""Job, its data over the sort's, the largest ratio of the text, and the ratio of Table 2's times."""


def outcome(study):
    """The figures of a study."""
    best = Section("HDD's seconds over SSD's, the largest (4.2)")
    gains = Section("HDD's seconds over SSD's, by data of the paper (Figure 5)")
    seconds, series = Section("seconds"), []
    for job, times, paper_best, paper_ten in JOBS:
        cells = {size: study.stock(job, size * times) for size in PAPER_SIZES}
        found = [gain for gain in map(study.gain, cells.values()) if gain is not None]
        gain_row(best, job, max(found, default=None), paper_best)
        for size, cell in cells.items():
            name = study.with_rounds(f"{job}, {size * times:g} GB", cell)
            gain_row(gains, name, study.gain(cell), paper_ten if size == 10 else None)
        for device, of in enumerate(("HDD", "SSD")):
            points = []
            for size, cell in cells.items():
                one = study.both(cell)[device]
                seconds_row(seconds, f"{job}, {size * times:g} GB, {of}", one)
                if one and one["valid"]:
                    points.append((size * times, one["elapsed_s"]))
            series.append((f"{job}, {of}", False, points))
    differs = [
        *study.differs(),
        "The text has no values of Figure 5's axis. The paper's ratios at 10 and 15 GB are those of Table 2's times.",
    ]
    chart = partial(svg.lines, "Sort and join by data", ("data in the paper, GB", "seconds"), series)
    return Outcome([best, gains, seconds], differs, chart, study.machine)
