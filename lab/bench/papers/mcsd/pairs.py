"""McSD 3.5.3, Figures 3.10 and 3.11: a product of matrices on the host, and word count or string match on the storage node.

    McSD             host: product     node: job on two cores, partitions   at the same time
    traditional      host: product     node: job on one core                at the same time
    no partition     host: product     node: job on two cores, original     at the same time
    host only        host: product, then the job on two cores, original
"""

import array
import random
from dataclasses import dataclass
from functools import partial

from .. import svg
from ..outcome import Outcome, Section
from . import published
from .contest import DUO, DUO_PARTS, DUO_WHOLE, JOBS, MATCH, PHOENIX, SEQUENTIAL, Contestant, contest
from .published import SHARES, SIZES

SIDE = 1536
"""Rows and columns of the matrices, without --size: their product takes about as long as a job."""
SIDE_SMALL, SMALL_BYTES = 64, 64 * 2**20
"""The same for data below this."""


@dataclass(frozen=True)
class Way:
    """A way to do both."""

    name: str
    job: Contestant
    at_once: bool = True
    paper: tuple = ()
    """The paper's speed-up of McSD over it: word count at 1.25 GB, string match on average."""


MCSD = Way("McSD", DUO_PARTS)
RIVALS = (
    Way("traditional node: ours, one core", SEQUENTIAL, paper=(published.TRADITIONAL, published.TRADITIONAL)),
    Way("node without partitions: Phoenix 2.0", PHOENIX, paper=(published.WHOLE, published.MATCH)),
    Way("host only: Phoenix 2.0", PHOENIX, at_once=False, paper=(published.HOST, published.MATCH)),
    Way("node without partitions: ours", DUO_WHOLE),
    Way("host only: ours", DUO, at_once=False),
)


def run(lab):
    """Measures all ways at all sizes."""
    side = SIDE_SMALL if lab.args.size and lab.args.size < SMALL_BYTES else SIDE
    factors = [lab.folder / name for name in ("a.npy", "b.npy")]
    for seed, path in enumerate(factors):
        path.write_bytes(matrix(side, seed))
    multiply = (
        lab.merganser, "map", "matrix", "--quiet", "--threads", 1, "--memory", "64M", "-o", lab.folder / "c.npy", *factors,
    )  # fmt: skip
    seconds = {}
    with contest(lab, "mcsd-pairs") as arena:

        def once(way, job, contestant):
            if way.at_once:
                return arena.run(job, contestant, alongside=multiply)
            return lab.measure(*multiply, cold=[arena.text]).wall_s + arena.run(job, contestant)

        for size in reversed(range(len(SHARES))):
            arena.cut(size)
            for job in JOBS:
                for way in (MCSD, *RIVALS):
                    seconds[size, job, way] = arena.seconds(job, way.job, partial(once, way))
        differs = arena.differs()
    differs.append(
        f"The product is of two matrices of {side} × {side} f64, which the paper doesn't tell. Host and node are one machine with two "
        "cores, so they share its processors; the paper's are two machines."
    )
    return outcome(lab, seconds, differs)


def matrix(side, seed):
    """A square matrix as NumPy saves it."""
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({side}, {side}), }}"
    rng = random.Random(seed)
    elements = array.array("d", (rng.random() for _ in range(side**2)))
    return b"\x93NUMPY\x01\x00\x76\x00" + text.ljust(117).encode() + b"\n" + elements.tobytes()


def outcome(lab, found, differs):
    """The figures of these seconds, by place of the size, job and way."""
    sections, series = [], []
    for place, (job, figure) in enumerate(zip(JOBS, ("Figure 3.10", "Figure 3.11"))):
        gain = Section(f"product and {job.name}: over McSD's, measured ({figure})")
        for rival in RIVALS:
            points = []
            for size, name in enumerate(SIZES):
                slow, fast = found[size, job, rival], found[size, job, MCSD]
                if not slow or not fast:
                    continue
                points.append((SHARES[size] * 100, slow / fast))
                if rival.paper and has_figure(size, job, rival):
                    gain.row(f"{name}, {rival.name}", slow / fast, rival.paper[place])
                else:
                    gain.row(f"{name}, {rival.name}" + (" (paper: figure only)" if rival.paper else ""), slow / fast)
            if points:
                series.append((f"{job.name}, {rival.name}", False, points))
            elif rival.paper:
                gain.row(rival.name, None, rival.paper[place])
        sections.append(gain)
    seconds = Section("seconds of both, measured (paper: no figure)")
    for (size, job, way), own in found.items():
        if own:
            seconds.row(f"{job.name}, {SIZES[size]}, {way.name}", own)
    chart = partial(
        svg.lines, "A product of matrices and a job, speed-up of McSD", ("data, percent of memory", "times as long as McSD"), series
    )
    return Outcome([*sections, seconds], [
        *differs,
        "For word count without partitions the paper gives 16 to 18 times (caption of Figure 3.10), and averages of 6.8 and 17.4 above "
        "a threshold (text). For string match its caption of Figure 3.11 says 1.5 over the traditional node, its text 2.",
    ], chart, lab.machine)  # fmt: skip


def has_figure(size, job, rival):
    """Whether the paper gives a number for this point, or only a plot."""
    return size == len(SHARES) - 1 or job is MATCH or rival.job is SEQUENTIAL
