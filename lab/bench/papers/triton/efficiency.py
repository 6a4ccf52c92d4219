"""TritonSort 6.3 and 6.4, Tables 13 to 18, computed again from their inputs (Table 12), with the metrics that 4.4.2 takes from
Anderson and Tucek; and the same metrics of a sort on this machine, its disk's speed measured in the same run."""

from functools import partial

from .. import svg
from ..outcome import Outcome, Section
from ..published import COMPUTED
from .published import COMPARISONS, DEMSORT, GRAY, TABLE_13, TABLE_14, THROUGHPUTS, table
from .whole_sort import WholeSort, sorted_here

DISK_BYTES_MAX = 2**30
"""As much of the disk's speed is measured."""


def run(lab):
    """Computes all tables, and measures a sort."""
    here, moved, _ = sorted_here(lab, WholeSort(lab))
    return outcome(lab, here, moved, disk_speed(lab, min(round(here.megabytes * 1e6), DISK_BYTES_MAX)))


def disk_speed(lab, size_bytes):
    """MB per second that the disk reads and writes, with the code that sorts: from start to end, past the page cache where it can
    be, a write with a sync at its end."""
    path, raw_io = lab.folder / "disk-speed", lab.example("raw_io")
    write = lab.measure(raw_io, "write", path, "--bytes", size_bytes).wall_s
    read = lab.measure(raw_io, "read", path).wall_s
    path.unlink()
    return size_bytes / 1e6 / read, size_bytes / 1e6 / write


def outcome(lab, here, moved, speed):
    """The tables, and a sort that read and wrote `moved` bytes for each byte of data, on a disk of that speed."""
    read, write = speed
    disk = Section("here: the disk, in the same run as the sort")
    disk.row("sorted, MB", here.megabytes)
    disk.row("seconds", here.seconds)
    disk.row("raw read, MB/s", read)
    disk.row("raw write with sync, MB/s", write)
    disk.row("bytes the sort read and wrote on the disk, over the data's", moved)
    # Half of them read, half written, one after the other.
    half = moved * here.megabytes / 2
    floor = half / read + half / write
    disk.row("share of the disk used: seconds for those bytes at its speed, over the sort's", floor / here.seconds)
    bars = []
    for place, what in ((1, "a core"), (2, "a disk")):
        bars += [(f"{one.name}, {what}", one.relative[place], True) for one in GRAY]
        bars.append((f"here, {what}", here.relative[place], False))
    sections = [table_13(here, lab.args.cost), table_14(here), *map(compare, COMPARISONS), disk]
    return Outcome(sections, [
        "\"Ours\" next to a paper's figure is its own formula applied to its own inputs; rows named \"here\" are measured.",
        "Theirs: clusters of 47 to 4,000 nodes that sort 100 TB and more through a network, from hard disks. Here: one node, one "
        "disk, no network, a data set that may fit in the disk's cache. Only the orders of magnitude compare.",
        "efficiency of cores and disks is the ratio of total throughputs over the ratio of hardware, as the tables have it; the "
        "formula in 4.4.2 divides by the ratio of nodes twice, and would give 17.7 instead of Table 15's 4.275.",
        "Table 16's efficiencies are 0.3 % below what its own counts and throughputs give; Table 17's cost efficiency is 1.995 by "
        "its own powers of ten; the text next to it says 18107 MB/s where the table's data over time give 17482.8.",
        "The share of the disk is of a disk that does one thing after another; one that reads and writes at once can give more "
        "than 1. Its speed is that of processes from start to end.",
        "Cost efficiencies are powers of ten that the paper estimates; they are inputs here. Ours needs the price of this machine, "
        "--cost.",
    ], partial(svg.bars, "Throughput of sorting", "MB/s", bars), lab.machine)  # fmt: skip


def table_13(here, dollars):
    """MB per second of each system, by its formula, and of the sort here."""
    section = Section("Table 13: MB/s; bytes/s/$")
    for system, (paper, exponent) in zip(GRAY, TABLE_13):
        for what, theirs, ours in zip(THROUGHPUTS, paper, [system.throughput, *system.relative]):
            section.row(f"{system.name}, {what}", ours, table(13, theirs, ours=COMPUTED))
        section.row(f"{system.name}, a dollar (estimate)", None, table(13, 10**exponent))
    for what, ours in zip(THROUGHPUTS, [here.throughput, *here.relative]):
        section.row(f"here, {what}", ours)
    if dollars:
        section.row("here, a dollar", here.throughput * 1e6 / dollars)
    return section


def table_14(here):
    """The same as percent of DEMSort's."""
    section = Section("Table 14: percent of DEMSort's")

    def percent(system):
        return [own / base * 100 for own, base in zip(system.relative, DEMSORT.relative)]

    base = TABLE_13[GRAY.index(DEMSORT)][1]
    for system, (_, exponent), paper in zip(GRAY, TABLE_13, TABLE_14):
        ours = [*percent(system), 10 ** (exponent - base) * 100]
        for what, theirs, own in zip((*THROUGHPUTS[1:], "a dollar"), paper, ours):
            section.row(f"{system.name}, {what}", own, table(14, theirs, ours=COMPUTED))
    for what, own in zip(THROUGHPUTS[1:], percent(here)):
        section.row(f"here, {what}", own)
    return section


def compare(one):
    """Tables 15 to 18."""
    section = Section(f"Table {one.number}, {one.title}")
    rates = [one.triton.throughput, one.other.throughput]
    for system, paper, rate in zip((one.triton, one.other), one.throughput, rates):
        section.row(f"{system.name}, MB/s", rate, one.figure(paper))
    shares = [one.triton.nodes / one.other.nodes, one.triton.cores / one.other.cores, one.triton.disks / one.other.disks]
    for what, paper, share in zip(("nodes", "cores", "disks"), one.ratios, shares):
        section.row(f"ratio of {what}", share, one.figure(paper))
    for what, paper, share in zip(("cores", "disks"), one.efficiency, shares[1:]):
        section.row(f"efficiency of {what}", rates[0] / rates[1] / share, one.figure(paper))
    if one.cost:
        paper, own, others = one.cost
        section.row("efficiency of cost", 10 ** (own - others), one.figure(paper))
    return section
