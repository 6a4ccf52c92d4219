"""Figures 3 and 4: what the disk sees of a sort of 1 GB and of a join of 3 x 1 GB, and which share of it is in order."""

from functools import partial

from papers import svg
from papers.outcome import SAYS, Outcome, Section

from ...ssd.cells import Cell
from ...ssd.phases import PHASES
from ..published import RANDOM_READS, READ_KIB
from .study import DEVICES, cell_row, gain_row

TRACES = (("sort", 1, "Figure 3"), ("join", 3, "Figure 4"))
"""Job, GB, and the figure. They are not scaled."""
NOTHING = {"requests": 0, "in_order": 0, "bytes": 0}


def _share(flow):
    return 100 * flow["in_order"] / flow["requests"] if flow["requests"] else 0.0


def _kibibytes(flow):
    return flow["bytes"] / flow["requests"] / 1024 if flow["requests"] else 0.0


def _flow(one, phase, kind="reads"):
    return one["phases"].get(phase, {}).get(kind, NOTHING)


def _all_reads(one):
    return {name: sum(phase["reads"][name] for phase in one["phases"].values()) for name in NOTHING}


FIGURES = (
    ("reads", lambda one, phase: _flow(one, phase)["requests"]),
    ("reads in order, percent", lambda one, phase: _share(_flow(one, phase))),
    ("mean read, KiB", lambda one, phase: _kibibytes(_flow(one, phase))),
    ("writes in order, percent", lambda one, phase: _share(_flow(one, phase, "writes"))),
)


def outcome(study):
    """The figures of a study."""
    sections, says, drawn = [], Section(SAYS), None
    for job, gigabytes, figure in TRACES:
        for device, of in DEVICES:
            one = study.get(Cell(job, gigabytes, device, 1.0))
            section = Section(f"{job} of {gigabytes} GB, {of} ({figure})")
            for phase in PHASES:
                for what, of_phase in FIGURES:
                    cell_row(section, f"{phase}: {what}", one, partial(of_phase, phase=phase))
            usable = one if one and one["valid"] else None
            gain_row(section, "all reads: mean, KiB", usable and _kibibytes(_all_reads(usable)), READ_KIB)
            sections.append(section)
            # A reduce that read nothing, because all was in the page cache, says nothing.
            read = usable and _flow(usable, "reduce")
            random = _share(read) < 50 if read and read["requests"] else None
            says.holds(f"{job}, {of}: the reduce's reads are not sequential", RANDOM_READS, random)
            drawn = drawn or usable
    differs = [
        *study.differs(),
        "The paper does not say on which disk its traces were taken, and has no shares.",
        "A read or write is in order if it begins where the last one of its kind ended.",
    ]
    chart = _plot(drawn) if drawn else partial(svg.bars, "No valid trace", "", [])
    return Outcome([*sections, says], differs, chart, study.machine)


def _plot(one):
    def of_kind(kind):
        return [(at_ns / 1e9, offset / 1e9) for at_ns, letter, offset in one["points"]["list"] if letter == kind]

    cell = one["cell"]
    title = f"{cell['job']} of {cell['paper_gb']:g} GB on {cell['device']}"
    series = [("reads", of_kind("R")), ("writes", of_kind("W"))]
    return partial(svg.plane, title, ("seconds", "first byte, GB"), series, joined=False)
