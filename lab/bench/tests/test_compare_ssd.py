"""The comparisons of Hadoop on emulated disks with the paper's figures."""

import json
import tempfile
import unittest
from dataclasses import asdict, replace
from pathlib import Path

from hadoop.config import ACTIVE, STOCK
from hadoop.papers.ssd import beyond, energy, jobs, settings, size, traces
from hadoop.papers.ssd.study import Study, cell_row, gain_row, read, seconds_row
from hadoop.ssd.cells import BLOCK_MB_SWEPT, HDD, SORT_MB_SWEPT, SSD, Cell
from papers.outcome import Section

from .test_compare import ours, rows

SORT_ON_HDD = Cell("sort", 10, HDD, 0.1)
SORT_ON_SSD = replace(SORT_ON_HDD, device=SSD)
SECONDS = [[120.0, 119.0, 118.0], [110.0, 100.0, 90.0], [130.0, 120.0, 108.0]]


def measured(cell, elapsed_s, *others):
    """A valid entry, the median of rounds that took these seconds if there are others."""
    one = {
        "cell": asdict(cell), "elapsed_s": elapsed_s, "valid": True, "lag": {"late_share": 0.0, "time_share": 0.0},
        "device_joules": 10 * elapsed_s, "device_seconds": 2 * elapsed_s, "phases": {}, "points": {"each": 1, "list": []},
    }  # fmt: skip
    if others:
        one["rounds"] = [{"round": number, "elapsed_s": seconds} for number, seconds in enumerate((elapsed_s, *others), 1)]
    return one


def late(cell, elapsed_s):
    """The same, late."""
    return {**measured(cell, elapsed_s), "valid": False, "lag": {"late_share": 0.025, "time_share": 0.0}}


def study(*cells, **more):
    """A study at a tenth."""
    return Study({"study": "ssd-hadoop", "scale": 0.1, "slower": 1, "cells": list(cells), **more})


def told(section):
    """The names and our figures of a table."""
    return [(row.what, row.ours) for row in section.rows]


class Cells(unittest.TestCase):
    def test_a_cell_that_was_late_is_in_no_ratio_and_is_told(self):
        good = study(measured(SORT_ON_HDD, 90.0), measured(SORT_ON_SSD, 30.0))
        self.assertEqual(good.gain(SORT_ON_HDD), 3.0)
        bad = study(measured(SORT_ON_HDD, 90.0), late(SORT_ON_SSD, 30.0))
        self.assertIsNone(bad.gain(SORT_ON_HDD))
        section = Section("t")
        cell_row(section, "ssd", bad.get(SORT_ON_SSD), lambda one: one["elapsed_s"])
        cell_row(section, "other", None, lambda one: one["elapsed_s"])
        gain_row(section, "gain", bad.gain(SORT_ON_HDD))
        expected = [("ssd: not valid, 2.5 % late", None), ("other: not measured", None), ("gain: no two valid cells", None)]
        self.assertEqual(told(section), expected)

    def test_rounds_are_counted_and_their_range_is_told(self):
        once = study(measured(SORT_ON_HDD, 90.0), measured(SORT_ON_SSD, 30.0))
        self.assertEqual(once.with_rounds("sort", SORT_ON_HDD), "sort")
        self.assertTrue(once.differs()[2].endswith("Each cell was measured once."))
        several = study(measured(SORT_ON_HDD, 90.0, 84.0, 99.0), measured(SORT_ON_SSD, 30.0, 40.0))
        # Of the rounds that both have.
        self.assertEqual(several.with_rounds("sort", SORT_ON_HDD), "sort; 2 rounds, 2.10 to 3.00")
        self.assertIn("up to 3 times", several.differs()[2])
        section = Section("t")
        seconds_row(section, "HDD", several.get(SORT_ON_HDD))
        seconds_row(section, "SSD", once.get(SORT_ON_SSD))
        self.assertEqual(told(section), [("HDD; 3 rounds, 84.0 to 99.0", 90.0), ("SSD", 30.0)])
        twice = study(measured(SORT_ON_HDD, 90.0, 84.0), measured(SORT_ON_SSD, 30.0, 40.0))
        self.assertIn("Each cell was measured 2 times", twice.differs()[2])

    def test_late_attempts_alone_are_told_and_no_figure_is_made_of_them(self):
        entry = {"cell": asdict(SORT_ON_SSD), "lag": {"late_share": 0.0, "time_share": 0.031}, "attempts": 2}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "s.json"
            path.write_text(json.dumps({"study": "ssd-hadoop", "scale": 0.1, "cells": [], "not_valid": [entry]}))
            found = read(path)
        section = Section("t")
        seconds_row(section, "SSD", found.get(SORT_ON_SSD))
        self.assertEqual(told(section), [("SSD: not valid, 3.1 % late", None)])
        self.assertTrue(found.differs()[2].endswith("Each cell was measured once."))

    def test_a_slower_clock_is_told(self):
        self.assertTrue(study().differs()[3].startswith("The disks are emulated in real time."))
        self.assertIn("emulated 4 times as slow", study(slower=4).differs()[3])

    def test_the_largest_ratio_is_that_of_valid_cells(self):
        five, twenty = ([replace(cell, paper_gb=size) for cell in (SORT_ON_HDD, SORT_ON_SSD)] for size in (5, 20))
        found = size.outcome(
            study(
                measured(five[0], 30.0), measured(five[1], 20.0), measured(SORT_ON_HDD, 90.0), measured(SORT_ON_SSD, 45.0),
                measured(twenty[0], 200.0), late(twenty[1], 20.0),
            )
        )  # fmt: skip
        self.assertEqual(rows(found, 0), [("sort", 3.0, 2.0), ("join", 2.3, None)])
        self.assertEqual(rows(found, 1)[2], ("sort, 10 GB", 1235 / 479, 2.0))
        self.assertIn("sort, 20 GB, SSD: not valid, 2.5 % late", [what for what, _, _ in rows(found, 2)])

    def test_gaps_are_judged_and_missing_ones_are_not(self):
        for hdd, no_gap in ((52.0, 1.0), (56.0, 0.0)):
            words = [Cell("wordcount", 10, device, 0.1) for device in (HDD, SSD)]
            one = study(measured(words[0], hdd), measured(words[1], 50.0))
            self.assertEqual(ours(jobs.cpu_bound(one), 1), [no_gap, None, None])
            self.assertEqual(ours(jobs.outcome(one, jobs.CPU_BOUND, "Figure 7", gap=True), 1)[0], 1 - no_gap)


class Traces(unittest.TestCase):
    ON_HDD = Cell("sort", 1, HDD, 1.0)

    def measured(self, **phases):
        flows = {
            phase: {"reads": dict(zip(("requests", "in_order", "bytes"), flow)), "writes": traces.NOTHING} for phase, flow in phases.items()
        }
        return {**measured(self.ON_HDD, 60.0), "phases": flows}

    def test_shares_are_those_of_a_phase_and_the_mean_is_that_of_all(self):
        one = self.measured(maps=(10, 9, 2000 << 10), reduce=(30, 3, 3000 << 10))
        one["points"] = {"each": 1, "list": [[1_000_000_000, "R", 5], [2, "W", 7]]}
        found = traces.outcome(study(one))
        self.assertIn("sort of 1 GB on wd5000aakx", found.chart())
        by_name = {what: figure for what, _, figure in rows(found, 0)}
        self.assertEqual(by_name["maps: reads in order, percent"], 90.0)
        self.assertEqual(by_name["reduce: reads in order, percent"], 10.0)
        self.assertEqual(by_name["reduce: mean read, KiB"], 100.0)
        self.assertEqual(rows(found, 0)[-1], ("all reads: mean, KiB", 128.0, 125.0))
        self.assertEqual(ours(found, 4), [1.0, None, None, None])

    def test_a_reduce_that_read_nothing_leaves_the_statement_open(self):
        found = traces.outcome(study(self.measured(reduce=(0, 0, 0))))
        self.assertIn(("reduce: reads", None, 0), rows(found, 0))
        self.assertIsNone(ours(found, 4)[0])


class Settings(unittest.TestCase):
    def sweep(self, job=settings.SORT, seconds=SECONDS):
        """Entries with these seconds by block and buffer on the hard disk, and 50 everywhere on the SSD."""
        return [
            measured(Cell(*job, device, 0.1, block_mb=block, sort_mb=sort), on_hdd if device == HDD else 50.0)
            for block, row in zip(BLOCK_MB_SWEPT, seconds)
            for sort, on_hdd in zip(SORT_MB_SWEPT, row)
            for device in (HDD, SSD)
        ]

    def predicted(self):
        def combination(block_mb, sort_mb, defer, seconds):
            return {"sort_mb": sort_mb, "factor": 200, "block_mb": block_mb, "defer": defer, "seconds": seconds}

        # The last two are not in the sweep.
        combinations = [
            combination(64.0, 100.0, False, 80.0), combination(128.0, 192.0, False, 70.0), combination(128.0, 192.0, True, 10.0),
            combination(512.0, 192.0, False, 20.0),
        ]  # fmt: skip
        advice = {
            "mapreduce.task.io.sort.mb": "32", "mapreduce.task.io.sort.factor": "10", "dfs.blocksize": "268435456",
            "merganser.shuffle.defer": "true",
        }  # fmt: skip
        return {HDD: {"advice": advice, "combinations": combinations}}

    def test_statements_and_advice_are_held_against_the_sweep(self):
        found = settings.outcome(study(*self.sweep(), predicted=self.predicted()))
        self.assertEqual(ours(found, 0)[:3], [1.0, 1.0, 1.0])
        choice = [(what, figure) for what, _, figure in rows(found, 3)]
        self.assertEqual(choice[0], ("HDD: blocks of 128 MiB, buffer of 192 MB", 1.2))
        self.assertEqual(choice[1:], [("HDD: within a tenth of the best", 0.0), ("SSD: no prediction", None)])
        self.assertEqual(len(rows(found, 4)), 2, "the sweep's own")

    def test_what_the_command_itself_chooses_is_held_against_the_best_of_the_sweep(self):
        name = "HDD: active, blocks of 256 MiB, buffer of 32 MB, fan-in of 10"
        found = settings.outcome(study(*self.sweep(), predicted=self.predicted()))
        self.assertEqual(rows(found, 5), [(f"{name}: not measured", None, None)])
        own = replace(SORT_ON_HDD, flavour=ACTIVE, factor=10, block_mb=256, sort_mb=32)
        found = settings.outcome(study(measured(own, 99.0), *self.sweep(), predicted=self.predicted()))
        self.assertEqual(rows(found, 5), [(name, None, 1.1)])

    def test_an_older_file_has_no_choice_of_the_command(self):
        predicted = self.predicted()
        del predicted[HDD]["advice"]
        self.assertEqual(rows(settings.outcome(study(*self.sweep(), predicted=predicted)), 5), [])

    def test_the_join_is_judged_by_its_own_sweep_and_drawn_if_it_was_measured(self):
        self.assertNotIn("join, HDD", settings.outcome(study(*self.sweep())).chart())
        found = settings.outcome(study(*self.sweep(settings.JOIN, [[100.0] * 3, [90.0] * 3, [100.0] * 3])))
        self.assertIn("join, HDD", found.chart())
        self.assertIsNone(ours(found, 0)[0], "no sort")
        self.assertTrue(found.sections[6].title.startswith("join: "))
        self.assertEqual(ours(found, 6)[:3], [1.0, 1.0, 1.0])
        self.assertEqual(ours(found, 7)[3], 90.0)

    def test_a_larger_buffer_and_another_block_are_judged(self):
        slower = [[120.0, 119.0, 118.0], [110.0, 100.0, 104.0], [130.0, 120.0, 99.0]]
        self.assertEqual(ours(settings.outcome(study(*self.sweep(seconds=slower))), 0)[:3], [0.0, 0.0, 1.0])

    def test_a_late_cell_leaves_the_statements_open(self):
        found = settings.outcome(study(late(SORT_ON_HDD, 1.0), measured(SORT_ON_SSD, 50.0)))
        self.assertEqual(ours(found, 0), [None] * 5)
        self.assertIn("blocks of 64 MiB, buffer of 100 MB: not valid, 2.5 % late", [what for what, _, _ in rows(found, 1)])


class Energy(unittest.TestCase):
    def test_two_thousand_follow_from_neither_reading(self):
        # 9.36 Wh a sort: 18.72 kWh in 2,000 sorts of a node, 1.87 dollars.
        self.assertAlmostEqual(energy.sorts_to_repay(180_000, energy.PAPER_SAVED_KWH), 192_308, delta=1)
        found = energy.outcome()
        self.assertEqual(len(found.sections), 3)
        self.assertAlmostEqual(rows(found, 0)[0][1], 53.9, delta=0.01)
        papers = [paper for _, paper, _ in rows(found, 1)]
        self.assertEqual([round(paper, 1) for paper in papers], [2000.0, 192_307.7, 192.3, 9.6, 0.0, 18_720.0])
        self.assertIn("192,308 or 192 sorts repay them", " ".join(found.differs))

    def test_i43_without_results_nothing_is_ours(self):
        for section in range(3):
            self.assertEqual(set(ours(energy.outcome(), section)), {None})

    def test_i43_the_statements_are_judged_by_our_energies(self):
        join = replace(SORT_ON_HDD, job="join", paper_gb=15)

        def judged(*seconds):
            cells = (SORT_ON_HDD, SORT_ON_SSD, join, replace(join, device=SSD))
            return energy.outcome(study(*map(measured, cells, seconds)))

        # Energies are in proportion to seconds: 10 Wh in 60 s at the paper's size.
        self.assertEqual(ours(judged(60.0, 30.0, 60.0, 30.0), 2), [0.0, 0.0, 1.0])
        self.assertEqual(ours(judged(60.0, 30.0, 60.0, 40.0), 2)[2], 0.0, "the join saves a third")
        # 0.9 Wh saved: 1,000 sorts per 90 dollars of all nodes.
        found = judged(60.0, 54.6, 60.0, 30.0)
        self.assertAlmostEqual(ours(found, 1)[2], 2000)
        self.assertEqual(ours(found, 2), [0.0, 1.0, 0.0])
        # A sort that saves nothing never repays.
        self.assertEqual(ours(judged(60.0, 60.0, 60.0, 30.0), 1)[1:3], [float("inf")] * 2)

    def test_ours_is_at_the_papers_size_and_never_that_of_a_late_cell(self):
        # 5 W of the device: 60 W for 60 s are 1 Wh, 10 at the paper's size.
        found = energy.outcome(study(measured(SORT_ON_HDD, 60.0), late(SORT_ON_SSD, 10.0)))
        expected = [("Sort, HDD", 18.49, 10.0), ("Sort, SSD: not valid, 2.5 % late", None, None), ("Sort, SSD", 9.13, None)]
        self.assertEqual(rows(found, 3)[:3], expected)
        self.assertIsNone(rows(found, 3)[3][2])


class Beyond(unittest.TestCase):
    def cell(self, device, flavour, job="sort", paper_gb=10):
        return Cell(job, paper_gb, device, 0.1, flavour, sort_mb=64, block_mb=128)

    def test_the_part_of_the_gain_is_that_of_the_hard_disk(self):
        found = beyond.outcome(
            study(
                measured(self.cell(HDD, STOCK), 100.0), measured(self.cell(HDD, ACTIVE), 70.0), measured(self.cell(SSD, STOCK), 40.0)
            )
        )  # fmt: skip
        gains = rows(found, 0)
        self.assertEqual(gains[0][1:], (1235 / 479, 2.5))
        self.assertAlmostEqual(gains[1][2], 100 / 70)
        self.assertEqual([gains[index][2] for index in (2, 3, 7)], [None, 50.0, None], "no join was measured")

    def test_the_join_has_gains_of_its_own(self):
        join = {"job": "join", "paper_gb": 15}
        found = beyond.outcome(
            study(
                measured(self.cell(HDD, STOCK), 1.0),
                measured(self.cell(HDD, STOCK, **join), 100.0), measured(self.cell(HDD, ACTIVE, **join), 80.0),
                measured(self.cell(SSD, STOCK, **join), 20.0), measured(self.cell(SSD, ACTIVE, **join), 16.0),
            )
        )  # fmt: skip
        self.assertEqual(ours(found, 0)[4:], [5.0, 1.25, 1.25, 25.0])
        self.assertEqual(len(rows(found, 1)), 10, "a join has no bound for segments")

    def test_an_ssd_that_is_not_faster_has_no_gain_to_share(self):
        found = beyond.outcome(
            study(
                measured(self.cell(HDD, STOCK), 40.0), measured(self.cell(HDD, ACTIVE), 30.0), measured(self.cell(SSD, STOCK), 40.0)
            )
        )  # fmt: skip
        what, _, share = rows(found, 0)[3]
        self.assertIsNone(share)
        self.assertTrue(what.endswith("the SSD is not faster"), what)
