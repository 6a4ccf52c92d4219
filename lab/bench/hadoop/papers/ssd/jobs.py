"""Figures 7 and 8: jobs that wait for the processor, and jobs that wait for the disk."""

from functools import partial

from papers import svg
from papers.outcome import SAYS, Outcome, Section

from ..published import GAP, NO_GAP
from .study import gain_row, seconds_row

GAP_RATIO = 1.1
"""Up to this ratio there is "almost no gap"."""
CPU_BOUND = (
    ("wordcount", 10, "WordCount"),
    ("wordmean", 10, "mean length of words"),
    ("aggregate-words", 10, "aggregated word count"),
)
"""Name in study.py, GB in the paper, and its name there."""
IO_BOUND = (
    ("sort", 10, "Sort"),
    ("random-writer", 10, "RandomWriter"),
    ("grep", 10, "Grep"),
    ("dfsio-write", 10, "DFSIO, writing"),
    ("dfsio-read", 10, "DFSIO, reading"),
    ("join", 15, "Join"),
)


def cpu_bound(study):
    """Figure 7 of a study."""
    found = outcome(study, CPU_BOUND, "Figure 7", gap=False)
    found.differs.append(
        "Bayes and LDA are programs of Mahout and CloudSuite. Two other jobs of Hadoop's examples that compute take their place, "
        "and not jobs of our own: all programs of the figure are those of stock Hadoop."
    )
    return found


def io_bound(study):
    """Figure 8 of a study."""
    return outcome(study, IO_BOUND, "Figure 8", gap=True)


def outcome(study, jobs, figure, gap):
    """The ratios of these jobs; the paper has a gap for all of them, or for none."""
    gains, seconds, says, bars = Section(f"HDD's seconds over SSD's ({figure})"), Section("seconds"), Section(SAYS), []
    stated, words = (GAP, "a gap") if gap else (NO_GAP, "almost no gap")
    for job, gigabytes, name in jobs:
        cell = study.stock(job, gigabytes)
        gain = study.gain(cell)
        gain_row(gains, study.with_rounds(name, cell), gain)
        for one, device in zip(study.both(cell), ("HDD", "SSD")):
            seconds_row(seconds, f"{name}, {device}", one)
        says.holds(f"{name}: {words}", stated, None if gain is None else (gain > GAP_RATIO) == gap)
        if gain is not None:
            bars.append((name, gain, False))
    differs = [*study.differs(), f"The text has no values of {figure}. A ratio above {GAP_RATIO:g} counts as a gap."]
    chart = partial(svg.bars, f"HDD over SSD ({figure})", "times as long", bars)
    return Outcome([gains, says, seconds], differs, chart, study.machine)
