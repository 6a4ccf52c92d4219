"""Table 2: energy of a sort and of a join, the paper's arithmetic, and ours from the energy model."""

import math
from dataclasses import replace
from functools import partial

from papers import svg
from papers.outcome import SAYS, Outcome, Section, over
from papers.published import DERIVED

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
    """The paper's figures, and those of a study if there is one. Without a study, there is no figure of ours."""
    found = {row.name: _both_wh(study, row) for row in TABLE_2}
    sections = [_powers(), _repaid(_saved_kwh(*found[SORT.name])), _judged(found)]
    per_node, for_all = (sorts_to_repay(dollars, PAPER_SAVED_KWH) for dollars in (DOLLARS * NODES, DOLLARS))
    differs = [
        f"{PRICE:g} dollars per kWh and {PC_WATTS} W for the PC without its disk are assumed.",
        f"The text does not say whether 180 dollars are for each node or for all 1,000. By the paper's own Table 2, {per_node:,.0f} "
        f"or {for_all:,.0f} sorts repay them: 2,000 follow from neither.",
    ]
    if study:
        sections.append(_ours(study, found))
        differs += study.differs()
        differs.append(
            "Ours is at the paper's size: energy and time of the scaled job, divided by the scale. The start of the job, which "
            "takes some seconds with any amount of data, is divided by it, too. The device's energy is that of the model's "
            "states. The powers of both devices are assumed: wd5000aakx has those of the Seagate Barracuda 7200.12's data "
            "sheet, 830 those of its class (simulate --list=DEVICE)."
        )
    else:
        differs.append("Ours needs results: --results FILE of study.py. Without them, only the paper's arithmetic is shown.")
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


def _saved_kwh(hdd_wh, ssd_wh):
    """Kilowatt-hours that one sort on one node saves, if both energies are known."""
    return None if hdd_wh is None or ssd_wh is None else (hdd_wh - ssd_wh) / 1000


PAPER_SAVED_KWH = _saved_kwh(SORT.hdd_wh.value, SORT.ssd_wh.value)


def sorts_to_repay(dollars, saved_kwh):
    """Sorts on every node until this much is saved by all nodes together; none do if a sort saves nothing."""
    return dollars / NODES / (saved_kwh * PRICE) if saved_kwh > 0 else math.inf


def _repaid(ours_kwh):
    repaid = Section("sorts per node that repay the SSDs (4.5), by Table 2 and by our energy")

    def row(what, figure):
        ours = None if ours_kwh is None else figure(ours_kwh)
        repaid.row(what, ours, replace(REPAID_SORTS, value=figure(PAPER_SAVED_KWH), kind=DERIVED))

    def price(dollars):
        return lambda saved_kwh: over(dollars / NODES, saved_kwh * SORTS)

    repaid.row("in the text", paper=REPAID_SORTS)
    row("180 dollars per node", lambda saved_kwh: sorts_to_repay(DOLLARS * NODES, saved_kwh))
    row("180 dollars for all 1,000 nodes", lambda saved_kwh: sorts_to_repay(DOLLARS, saved_kwh))
    row("dollars per kWh for which 2,000 follow, 180 per node", price(DOLLARS * NODES))
    row("the same, 180 for all nodes", price(DOLLARS))
    row("kWh that 2,000 sorts save on 1,000 nodes", lambda saved_kwh: saved_kwh * SORTS * NODES)
    return repaid


def _judged(found):
    """The statements, by our energies. None of them is judged by the paper's own table."""
    says = Section(SAYS)
    saved_kwh = _saved_kwh(*found[SORT.name])

    def follows(dollars):
        # Within a factor of two of the price that was assumed.
        return None if saved_kwh is None else 0.5 <= sorts_to_repay(dollars, saved_kwh) / SORTS < 2

    says.holds("2,000 sorts repay 180 dollars per node", REPAID, follows(DOLLARS * NODES))
    says.holds("2,000 sorts repay 180 dollars for all nodes, and not many fewer", REPAID, follows(DOLLARS))
    ratios = [ratio(*both) for both in found.values()]
    half = None if None in ratios else all(one > HALF for one in ratios)
    says.holds("energy is about two times less (more than 1.9), both jobs", HALF_ENERGY, half)
    return says


def watt_hours(one):
    """At the paper's size."""
    device_watts = one["device_joules"] / one["device_seconds"]
    return (PC_WATTS + device_watts) * one["elapsed_s"] / 3600 / one["cell"]["scale"]


def _entries(study, row):
    return [study.get(study.stock(row.job, row.gigabytes, device)) for device in (HDD, SSD)]


def _both_wh(study, row):
    """Watt-hours on the hard disk and on the SSD; None where there is no valid cell."""
    if study is None:
        return None, None
    return tuple(watt_hours(one) if one and one["valid"] else None for one in _entries(study, row))


def _ours(study, found):
    section = Section("Wh at the paper's size (Table 2)")
    for row in TABLE_2:
        both = found[row.name]
        for one, ours, paper, of in zip(_entries(study, row), both, (row.hdd_wh, row.ssd_wh), ("HDD", "SSD")):
            if ours is None:
                cell_row(section, f"{row.name}, {of}", one, watt_hours)
            gain_row(section, f"{row.name}, {of}", ours, paper)
        gain_row(section, f"{row.name}: HDD over SSD", ratio(*both), row.saving)
    return section
