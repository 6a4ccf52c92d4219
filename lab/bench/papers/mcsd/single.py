"""McSD 3.5.2, Figures 3.8 and 3.9: word count and string match alone, by the size of the data."""

from functools import partial

from .. import svg
from ..outcome import Outcome, Section
from . import published
from .contest import COUNT, DUO, DUO_WHOLE, JOBS, PHOENIX, PHOENIX_PARTS, PHOENIX_PLUS_PLUS, SEQUENTIAL, contest
from .published import SHARES, SIZES

CONTESTANTS = (SEQUENTIAL, DUO, DUO_WHOLE, PHOENIX, PHOENIX_PARTS, PHOENIX_PLUS_PLUS)
LARGEST = len(SHARES) - 1


def run(lab):
    """Measures all sizes."""
    with contest(lab, "mcsd-single") as arena:
        return outcome(lab, arena.measure(range(len(SHARES)), CONTESTANTS), arena.differs())


def outcome(lab, found, differs):
    """The figures of these seconds."""
    seconds = Section("seconds, measured (Figures 3.8 and 3.9; paper: figure only)")
    duo = Section("one core over two cores, measured (3.5.2)")
    mcsd = Section("without over with partitions, Phoenix 2.0 by merganser pipeline, measured (3.5.2)")
    original = Section("Phoenix 2.0 over ours with partitions, measured (3.5.2)")
    growth = Section("time over data, 1.25 GB over 500 MB; 1 is linear, measured (3.5.2)")
    series = []
    for job in JOBS:
        for size, name in enumerate(SIZES):
            for contestant in CONTESTANTS:
                if own := found.get((size, job, contestant)):
                    seconds.row(f"{job.name}, {name} of 2 GB, {contestant.name}", own)
            if gain := found.ratio(size, job, SEQUENTIAL, DUO):
                duo.row(f"{job.name}, {name}", gain, published.DUO)
            theirs = published.SMALL if SHARES[size] < 0.5 else None
            if job is COUNT and size == LARGEST:
                theirs = published.PARTITIONED
            if gain := found.ratio(size, job, PHOENIX, PHOENIX_PARTS):
                mcsd.row(f"{job.name}, {name}", gain, theirs)
            if gain := found.ratio(size, job, PHOENIX, DUO):
                original.row(f"{job.name}, {name}", gain, theirs)
        large, small = (found.get((size, job, DUO)) for size in (LARGEST, 0))
        if large and small:
            growth.row(job.name, large / small / (SHARES[-1] / SHARES[0]), published.LINEAR)
        for contestant in CONTESTANTS:
            points = [(share * 100, found.get((size, job, contestant))) for size, share in enumerate(SHARES)]
            points = [point for point in points if point[1]]
            if points:
                series.append((f"{job.name}, {contestant.name}", False, points))
    for rows in (mcsd, original):
        if not rows.rows:
            rows.row("word count, 1.25 GB", None, published.PARTITIONED)
    chart = partial(svg.lines, "Word count and string match by the size of the data", ("data, percent of memory", "seconds"), series)
    return Outcome([seconds, duo, mcsd, original, growth], [
        *differs,
        "The paper says 1/6 here, 16 to 18 times in the caption of its Figure 3.10, 6.8 and 17.4 times in the text on that figure, and "
        "2.7 times in Table 4.1, all for word count at 1.25 GB. Its Figure 3.9 is captioned with time and described as speed-up, which "
        "Figure 3.8 has.",
        "Theirs compares partitions of Phoenix with Phoenix alone. Ours is another program, so \"almost the same\" below half of memory "
        "is compared with its speed, too.",
        "The paper has a quad-core host as well; here are two cores.",
    ], chart, lab.machine)  # fmt: skip
