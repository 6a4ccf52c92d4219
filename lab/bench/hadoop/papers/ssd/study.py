"""The cells that study.py measured, as a comparison looks them up."""

import json
from dataclasses import fields, replace

from papers.outcome import CompareError

from .. import measured
from ...ssd.cells import HDD, SSD, Cell

DEVICES = ((HDD, "HDD"), (SSD, "SSD"))
_DECIDING = [field.name for field in fields(Cell) if field.name not in ("slower", "round")]
"""The fields that decide a cell in a file: all cells have the same clock there, and one entry has all rounds."""
_MEASURED = ("elapsed_s", "device_joules", "device_seconds")
_FLOW = ("requests", "in_order", "bytes")


class Study:
    """All that was measured. A cell's entry is that of the file; one that has late attempts alone is not valid."""

    def __init__(self, told):
        self.scale, self.slower = told["scale"], told.get("slower", 1)
        self.machine, self.predicted = told.get("machine", {}), told.get("predicted", {})
        late = [{**one, "valid": False} for one in told.get("not_valid", [])]
        self._entries = {}
        for one in [*map(_checked, told["cells"]), *late]:
            one["lag"]["late_share"] + one["lag"]["time_share"]
            cell = Cell(**{name: one["cell"][name] for name in _DECIDING})
            self._entries.setdefault(cell, one)
        for advice in self.predicted.values():
            for one in advice["combinations"]:
                one["sort_mb"] + one["factor"] + one["block_mb"] + one["defer"] + one["seconds"]

    def measured(self):
        """When, how often and with which build it was measured, in lines."""
        return measured.cells(self._entries.values(), self.scale)

    def stock(self, job, paper_gb, device=HDD, **more):
        """A cell of this study's scale, with the paper's defaults where nothing else is given."""
        return Cell(job, paper_gb, device, self.scale, **more)

    def get(self, cell):
        """A cell's entry, or None if it was not measured."""
        return self._entries.get(cell)

    def seconds(self, cell):
        """The seconds of a cell, or None if it was not measured or is not valid."""
        one = self.get(cell)
        return one["elapsed_s"] if one and one["valid"] else None

    def both(self, cell):
        """The entries of a cell on the hard disk and on the SSD."""
        return [self.get(replace(cell, device=device)) for device in (HDD, SSD)]

    def gain(self, cell):
        """How many times as fast a cell is on the SSD, if both were measured and are valid."""
        hdd, ssd = (self.seconds(replace(cell, device=device)) for device in (HDD, SSD))
        return ratio(hdd, ssd)

    def with_rounds(self, what, cell):
        """A ratio's name, with the ratios of the rounds that both devices have, if there are several."""
        hdd, ssd = ({one["round"]: one["elapsed_s"] for one in (entry or {}).get("rounds", ())} for entry in self.both(cell))
        ratios = [seconds / ssd[number] for number, seconds in hdd.items() if number in ssd]
        return _with_range(what, ratios, 2)

    def _rounds_told(self):
        """How often cells were measured, in a sentence."""
        counts = [max(len(one.get("rounds", ())), 1) for one in self._entries.values() if one["valid"]]
        least, most = min(counts, default=1), max(counts, default=1)
        if most == 1:
            return "Each cell was measured once."
        if least == most:
            return f"Each cell was measured {most} times; figures are those of its median round."
        return (
            f"Cells were measured up to {most} times, some once; figures are those of a cell's median round (of two, the faster "
            "one)."
        )

    def differs(self):
        """How the machine and the method differ from the paper's."""
        clock = "The disks are emulated in real time."
        if self.slower != 1:
            clock = (
                f"The disks are emulated {self.slower} times as slow, and all times are divided by {self.slower}. So, next to these "
                f"disks, the processor counts as {self.slower} times as fast as it is, and Hadoop's fixed waits (heartbeats, for "
                f"example) are {self.slower} times as short."
            )
        return [
            "Theirs: Hadoop 0.20.2, four cores of 3.3 GHz, 3.2 GB, a WD 500 GB disk and a Samsung 830. Here: Hadoop 3.4.2 on "
            f"this machine, both disks emulated from their data sheets; the data are {self.scale:.3f} of the paper's (traces: "
            "all of it), blocks, sort buffers and heaps are not scaled.",
            "HDFS and local folders are on one emulated disk of 64 GiB, ext4 on a loop device. Page cache is held to 3.2 GB "
            "times the scale, in addition to what processes take; the paper's cache was smaller by the memory of its daemons "
            "and tasks. So the hard disk looks better here.",
            f"Times on the devices are predictions: no parameter is fitted to the paper's ratios. {self._rounds_told()}",
            f"{clock} The emulation has a processor of its own where there are two, and Hadoop has the others. A cell with more "
            "than 1 % of late answers is shown as not valid.",
        ]


def _checked(one):
    """Reads what the comparisons read of an entry."""
    sum(one[name] for name in _MEASURED)
    for phase in one["phases"].values():
        sum(phase[kind][name] for kind in ("reads", "writes") for name in _FLOW)
    for at_ns, _, offset in one["points"]["list"]:
        at_ns + offset
    sum(told["round"] + told["elapsed_s"] for told in one.get("rounds", ()))
    return {**one, "valid": bool(one["valid"])}


def read(path):
    """Reads the results that study.py wrote. Fails if the file is something else."""
    text = path.read_text()
    try:
        told = json.loads(text)
        name = told["study"]
        study = Study(told) if name == "ssd-hadoop" else None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        missing = " is missing" if isinstance(error, KeyError) else ""
        raise CompareError(f"{path}: no file of lab/bench/hadoop/study.py: {error}{missing}") from error
    if study is None:
        raise CompareError(f"{path}: is of the study '{name}', not ssd-hadoop")
    return study


def ratio(one, other):
    """A ratio, if there are both figures."""
    return None if one is None or other is None else one / other


def _with_range(what, figures, digits):
    """A name, with the number of figures, the least and the largest, if there are several."""
    if len(figures) < 2:
        return what
    return f"{what}; {len(figures)} rounds, {min(figures):.{digits}f} to {max(figures):.{digits}f}"


def seconds_row(section, what, one):
    """Adds the seconds of an entry, and those of all rounds if there are several."""
    rounds = [told["elapsed_s"] for told in (one or {}).get("rounds", ())]
    cell_row(section, _with_range(what, rounds, 1), one, lambda one: one["elapsed_s"])


def cell_row(section, what, one, figure):
    """Adds a figure of an entry, or the reason why it is missing."""
    if one is None:
        section.row(f"{what}: not measured")
    elif one["valid"]:
        section.row(what, figure(one))
    else:
        late = 100 * max(one["lag"]["late_share"], one["lag"]["time_share"])
        section.row(f"{what}: not valid, {late:.1f} % late")


def gain_row(section, what, ours, paper=None):
    """Adds a ratio of two cells, next to the paper's if it has one."""
    section.row(what if ours is not None or paper else f"{what}: no two valid cells", ours, paper)
