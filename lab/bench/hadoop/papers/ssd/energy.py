"""Table 2: energy of a sort and of a join, the paper's arithmetic, and ours from the energy model."""

from functools import partial

from papers import svg
from papers.outcome import SAYS, Outcome, Section

from ...ssd.cells import HDD, SSD
from ..published import HALF_ENERGY, REPAID, REPAID_DOLLARS, REPAID_NODES, REPAID_SORTS, SORT, TABLE_2
from .study import cell_row, gain_row, ratio

PRICE = 0.10
"""Dollars per kWh, assumed: the paper names no price."""
PC_WATTS = 55
"""The PC without its disk, assumed: between the paper's means of 54 and 69 W. It is the same on both devices."""
NODES, DOLLARS, SORTS = REPAID_NODES.value, REPAID_DOLLARS.value, REPAID_SORTS.value
HALF = 1.9
""""About two times less"."""


def outcome(study=None):
    """The paper's figures, and those of a study if there is one."""
    sections = [_powers(), _repaid(), _judged()]
    differs = [
        f"{PRICE:g} dollars per kWh and {PC_WATTS} W for the PC without its disk are assumed.",
        "The text does not say whether 180 dollars are for each node or for all 1,000.",
    ]
    if study:
        sections.append(_ours(study))
        differs += study.differs()
        differs.append(
            "Ours is at the paper's size: energy and time of the scaled job, divided by the scale. The start of the job, which "
            "takes some seconds with any amount of data, is divided by it, too. The device's energy is that of the model's "
            "states. The powers of both devices are assumed: wd5000aakx has those of the Seagate Barracuda 7200.12's data "
            "sheet, 830 those of its class (simulate --list=DEVICE)."
        )
    else:
        differs.append("Ours needs results: --results FILE of study.py. Without them, only the paper's arithmetic is done.")
    bars = [
        (f"{row.name}, {of}", energy.value, True) for row in TABLE_2 for of, energy in (("HDD", row.hdd_wh), ("SSD", row.ssd_wh))
    ]
    return Outcome(sections, differs, partial(svg.bars, "Energy (Table 2)", "Wh", bars), study and study.machine)


def _powers():
    powers = Section("implied by Table 2")
    for row in TABLE_2:
        for of, watts in zip(("HDD", "SSD"), row.watts):
            powers.row(f"{row.name}, {of}: mean power, W", paper=watts)
        powers.row(f"{row.name}: energy, HDD over SSD", paper=row.saving)
        powers.row(f"{row.name}: time, HDD over SSD", paper=row.gain)
    return powers


def _saved_kwh():
    """Kilowatt-hours that one sort on one node saves."""
    return (SORT.hdd_wh.value - SORT.ssd_wh.value) / 1000


def sorts_to_repay(dollars):
    """Sorts on every node until this much is saved by all nodes together."""
    return dollars / NODES / (_saved_kwh() * PRICE)


def _repaid():
    repaid = Section("sorts per node that repay the SSDs (4.5)")
    repaid.row("180 dollars per node", sorts_to_repay(DOLLARS * NODES), REPAID_SORTS)
    repaid.row("180 dollars for all 1,000 nodes", sorts_to_repay(DOLLARS), REPAID_SORTS)

    def price(dollars):
        return dollars / NODES / (_saved_kwh() * SORTS)

    repaid.row("dollars per kWh for which 2,000 follow, 180 per node", price(DOLLARS * NODES))
    repaid.row("the same, 180 for all nodes", price(DOLLARS))
    repaid.row("kWh that 2,000 sorts save on 1,000 nodes", _saved_kwh() * SORTS * NODES)
    return repaid


def _judged():
    says = Section(SAYS)

    def follows(dollars):
        # Within a factor of two of the price that was assumed.
        return 0.5 <= sorts_to_repay(dollars) / SORTS < 2

    says.holds("2,000 sorts repay 180 dollars per node", REPAID, follows(DOLLARS * NODES))
    says.holds("2,000 sorts repay 180 dollars for all nodes, and not many fewer", REPAID, follows(DOLLARS))
    half = all(row.ssd_wh.value * HALF < row.hdd_wh.value for row in TABLE_2)
    says.holds("energy is about two times less (1.9)", HALF_ENERGY, half)
    return says


def watt_hours(one):
    """At the paper's size."""
    device_watts = one["device_joules"] / one["device_seconds"]
    return (PC_WATTS + device_watts) * one["elapsed_s"] / 3600 / one["cell"]["scale"]


def _ours(study):
    section = Section("Wh at the paper's size (Table 2)")
    for row in TABLE_2:
        found = []
        for device, paper, of in ((HDD, row.hdd_wh, "HDD"), (SSD, row.ssd_wh, "SSD")):
            one = study.get(study.stock(row.job, row.gigabytes, device))
            ours = watt_hours(one) if one and one["valid"] else None
            if ours is None:
                cell_row(section, f"{row.name}, {of}", one, watt_hours)
            gain_row(section, f"{row.name}, {of}", ours, paper)
            found.append(ours)
        gain_row(section, f"{row.name}: HDD over SSD", ratio(*found), row.saving)
    return section
