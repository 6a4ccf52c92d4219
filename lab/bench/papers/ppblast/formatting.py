"""Table 4.3 and one half of Figure 4.6: the time of formatting by the size of the database, on hard disks and on an SSD.

Today's makeblastdb keeps the order of the input, so the table's reason is gone with formatdb. Three answers, each in sections of its
own:

- fitted and predicted: a model of formatdb's reads in order of length, on modelled disks;
- measured: makeblastdb, and `merganser sort` by length before it, which is the same reorder as an external sort;
- computed: Equation 4.7 from what was measured, with the bandwidths of the modelled disks.
"""

import json
import shutil
from dataclasses import dataclass
from functools import partial

from .. import svg
from ..outcome import Outcome, Section
from ..published import DERIVED
from . import model
from .bed import MIB, bed
from .published import DISK_OVER_SSD, FITTED_DISK, FORMAT, PREDICTED_SSD, name_of, table_43

LARGEST_MB, _, LARGEST_SSD = FORMAT[-1]


@dataclass(frozen=True)
class Times:
    """Measurements of one size. The sort's bytes are those that it read from and wrote to devices."""

    megabytes: float
    bytes: int
    format: object
    """The cost of makeblastdb, from the database as it is."""
    formatted_bytes: int
    sort: object
    """The cost of the sort by length."""
    sort_read_bytes: int
    sort_written_bytes: int
    sorted: object
    """The cost of makeblastdb, from its result."""

    @property
    def reordered_s(self):
        """Seconds of the sort and of makeblastdb after it."""
        return self.sort.wall_s + self.sorted.wall_s

    def on(self, disk):
        """Equation 4.7 for makeblastdb on a disk."""
        return disk.first_stage(self.bytes, self.formatted_bytes, self.format.cpu_s)

    def reordered_on(self, disk):
        """The same with the sort before it."""
        read, written = self.sort_read_bytes + self.bytes, self.sort_written_bytes + self.formatted_bytes
        return disk.first_stage(read, written, self.sort.cpu_s + self.sorted.cpu_s)


def run(lab):
    """Measures all sizes of the table."""
    with bed(lab, "ppblast-format", LARGEST_MB) as here:
        lab.say("modelled disks")
        speeds = model.speed(lab, model.DISK), model.speed(lab, model.SSD)
        measured = []
        for megabytes, *_ in reversed(FORMAT):
            here.cut(megabytes)
            measured.insert(0, here.median(partial(measure, here, megabytes), lambda one: one.format.wall_s + one.reordered_s))
        differs = here.differs()
        here.make("dna")
        dna = here.median(lambda: format_database(here, "nucl"), lambda one: one[0].wall_s)
        differs.append(
            f"DNA was measured at the largest size, {here.bytes // MIB} MiB: the real genes that are installed, and generated sequences."
        )
        return outcome(lab, measured, (here.bytes, *dna), speeds, differs)


def format_database(here, kind, database=None):
    """Formats a database. Returns the cost, and the bytes of the result."""
    folder, database = here.lab.folder / "formatted", database or here.database
    folder.mkdir()
    cold = [database] if database == here.database else []
    cost = here.shell(here.storage, f"exec makeblastdb -in - -dbtype {kind} -title t -out formatted/db < {database.name}", cold=cold)
    size = sum(path.stat().st_size for path in folder.iterdir())
    shutil.rmtree(folder)
    return cost, size


def measure(here, megabytes):
    """All of one size."""
    cost, formatted_bytes = format_database(here, "prot")
    result, report = here.lab.folder / "sorted.fa", here.lab.folder / "report.json"
    # Half of the group is the sort's own, the rest is for the page cache.
    sort = here.run(
        here.storage, here.lab.merganser, "sort", "--quiet", "--format", "fasta", "--key", "length:r", "--threads", 1,
        "--memory", here.memory_bytes // 2, "--temp-dir", ".", "--report", report, "-o", result, here.database, cold=[here.database],
    )  # fmt: skip
    told = json.loads(report.read_text())
    after, _ = format_database(here, "prot", result)
    result.unlink()
    return Times(
        megabytes, here.bytes, cost, formatted_bytes, sort, told["device_read_bytes"], told["device_written_bytes"], after
    )


def outcome(lab, measured, dna, speeds, differs):
    """The figures; `dna` is the bytes of a database, the cost of formatting it, and the bytes of the result."""
    disk, ssd = speeds
    reorder = model.Reorder.fitted(disk.random_s)
    fitted = Section("formatdb on hard disks, seconds, fitted to the same row (Table 4.3)")
    predicted = Section("formatdb on the SSD, seconds, predicted (Table 4.3)")
    for megabytes, *_ in FORMAT:
        fitted.row(name_of(megabytes), reorder.seconds(megabytes, disk.random_s), FITTED_DISK[megabytes])
        predicted.row(name_of(megabytes), reorder.seconds(megabytes, ssd.random_s), PREDICTED_SSD[megabytes])
    seconds = Section("seconds here, measured; the paper's row is the SSD's and of more data")
    growth = Section("time over data, against 500 MB; 1 is linear, measured (paper: SSD; Table 4.3)")
    ordered = Section("the same with the reorder, a sort by length, measured (paper: hard disks; Table 4.3)")
    disks = Section("hard disk over SSD: Equation 4.7 with measured bytes and processor time (Table 4.3)")
    first, (first_mb, first_hdd, first_ssd) = measured[0], FORMAT[0]
    for one, (megabytes, hdd, paper_ssd) in zip(measured, FORMAT):
        name = name_of(megabytes)
        seconds.row(f"{name}, makeblastdb", one.format.wall_s, table_43(paper_ssd))
        seconds.row(f"{name}, sort by length", one.sort.wall_s)
        seconds.row(f"{name}, makeblastdb after it", one.sorted.wall_s)
        if megabytes > first_mb:
            data, theirs = one.bytes / first.bytes, megabytes / first_mb
            growth.row(name, one.format.wall_s / first.format.wall_s / data, table_43(paper_ssd / first_ssd / theirs, DERIVED))
            ordered.row(name, one.reordered_s / first.reordered_s / data, table_43(hdd / first_hdd / theirs, DERIVED))
        disks.row(name, one.reordered_on(disk) / one.reordered_on(ssd), DISK_OVER_SSD[megabytes])
        disks.row(f"{name}, without the sort", one.on(disk) / one.on(ssd))
    rates = Section("makeblastdb, measured at the largest size (paper: SSD)")
    largest, (dna_bytes, dna_cost, dna_formatted) = measured[-1], dna
    theirs = table_43(LARGEST_MB / LARGEST_SSD, DERIVED)
    rates.row("protein, MB/s", largest.bytes / 1e6 / largest.format.wall_s, theirs)
    rates.row("DNA, MB/s", dna_bytes / 1e6 / dna_cost.wall_s, theirs)
    rates.row("protein, formatted over FASTA, bytes", largest.formatted_bytes / largest.bytes)
    rates.row("DNA, formatted over FASTA, bytes", dna_formatted / dna_bytes)
    lines = (
        ("paper, hard disks", True, [hdd for _, hdd, _ in FORMAT]),
        ("paper, SSD", True, [paper_ssd for *_, paper_ssd in FORMAT]),
        ("formatdb on a modelled hard disk, fitted", False, [row.ours for row in fitted.rows]),
        ("formatdb on a modelled SSD, predicted", False, [row.ours for row in predicted.rows]),
        ("makeblastdb here, of less data", False, [one.format.wall_s for one in measured]),
        ("sort by length and makeblastdb here", False, [one.reordered_s for one in measured]),
    )
    series = [(name, dashed, list(zip([row[0] for row in FORMAT], values))) for name, dashed, values in lines]
    chart = partial(svg.lines, "Formatting a database by its size", ("MB, of a machine with 2 GB", "seconds"), series)
    sections = [fitted, predicted, seconds, growth, ordered, disks, rates]
    return Outcome(sections, [*differs, *reasons(reorder, disk, ssd)], chart, lab.machine)


def reasons(reorder, disk, ssd):
    """How the answers were found."""
    return [
        "makeblastdb keeps the order of its input and reads it once, so the growth of the table's hard disks, whose reason is formatdb's "
        "reorder by length, does not exist with it. The reorder is shown as a sort by length before it, which reads and writes in "
        "order, too.",
        f"The disks of the first two tables and of \"hard disk over SSD\" are modelled ({model.DISK} and {model.SSD}): a random read takes "
        f"{disk.random_s * 1e3:.1f} and {ssd.random_s * 1e3:.3f} ms, reads in order {disk.read_rate / 1e6:.0f} and "
        f"{ssd.read_rate / 1e6:.0f} MB/s, writes {disk.write_rate / 1e6:.0f} and {ssd.write_rate / 1e6:.0f} MB/s. Seconds that are "
        "measured are of this machine's own disk.",
        f"Fitted: {reorder.cache_mb:.0f} MB of the 2 GB keep the database, and beyond them one read at a random place misses per "
        f"{reorder.gap_bytes / 1e3:.1f} KB. With these two numbers and the time of a random read, the SSD's row is predicted. Four disks "
        "as RAID 0 read no faster for a program that waits for each read, so one is modelled.",
        "The SSD's times of the table include moving the data there from the disks (4.5.2).",
    ]
