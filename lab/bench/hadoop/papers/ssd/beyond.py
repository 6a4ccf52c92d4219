"""Beyond the paper: Merganser's shuffle on both devices. How much of the SSD's gain does a hard disk get when map outputs are
never merged on disk?"""

from functools import partial

from papers import svg
from papers.outcome import Outcome, Section

from ...config import ACTIVE, STOCK
from ...ssd.cells import HDD, SSD
from ..published import JOIN, SORT
from .study import DEVICES, gain_row, ratio, seconds_row

SORT_MB, BLOCK_MB = 64, 128
"""Three spills per map of the sort, and as many or more of the join."""
BOUND = str(1 << 30)
"""More than any segment: nothing is deferred."""
FLAVOURS = (("stock", STOCK, ""), ("Merganser", ACTIVE, ""), ("Merganser, segments of less than 1 GiB merged", ACTIVE, BOUND))
"""A name, the flavour in study.py, and the bound for segments."""
JOBS = ((SORT, FLAVOURS), (JOIN, FLAVOURS[:2]))


def outcome(study):
    """The figures of a study."""
    gains, seconds, bars = Section("gains"), Section("seconds, buffers of 64 MB and blocks of 128 MiB"), []
    for paper, flavours in JOBS:
        job = paper.job

        def cell(device, flavour, bound="", paper=paper):
            more = {"flavour": flavour, "sort_mb": SORT_MB, "block_mb": BLOCK_MB, "least_segment": bound}
            return study.stock(paper.job, paper.gigabytes, device, **more)

        for device, of in DEVICES:
            for name, flavour, bound in flavours:
                one = study.get(cell(device, flavour, bound))
                seconds_row(seconds, f"{job}, {of}, {name}", one)
                if one and one["valid"]:
                    bars.append((f"{job}, {of}, {name}", one["elapsed_s"], flavour == STOCK))
        stock = cell(HDD, STOCK)
        gain_row(gains, study.with_rounds(f"{job}, stock: HDD's seconds over SSD's", stock), study.gain(stock), paper.gain)
        for device, of in DEVICES:
            gain = ratio(study.seconds(cell(device, STOCK)), study.seconds(cell(device, ACTIVE)))
            gain_row(gains, f"{job}, {of}: stock's seconds over Merganser's", gain)
        what = f"{job}: of the SSD's gain, a hard disk gets by deferring, percent"
        hdd, deferred, ssd = map(study.seconds, (stock, cell(HDD, ACTIVE), cell(SSD, STOCK)))
        if None in (hdd, deferred, ssd):
            gain_row(gains, what, None)
        elif hdd <= ssd:
            gains.row(f"{what}: the SSD is not faster")
        else:
            gain_row(gains, what, 100 * (hdd - deferred) / (hdd - ssd))
    chart = partial(svg.bars, "Sort and join with Merganser", "seconds", bars)
    return Outcome([gains, seconds], study.differs(), chart, study.machine)
