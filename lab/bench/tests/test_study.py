"""The parts of the study on emulated disks that need no disk and no cluster."""

import io
import json
import tempfile
import time
import unittest
from argparse import Namespace
from contextlib import redirect_stderr
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from harness import build, emulated, machine

from hadoop import history, study as command
from hadoop.config import ACTIVE, STOCK
from hadoop.ssd import cell as measuring
from hadoop.ssd import cells, image, jobs, memory, phases
from hadoop.ssd.rounds import Rounds, file_name, gathered, summary

GOLDEN = Path(__file__).resolve().parent / "golden"
ALL = list(cells.FIGURES)


class Cells(unittest.TestCase):
    def test_each_cell_is_measured_once_and_every_figure_has_all_of_its_cells(self):
        every = cells.cells_of(ALL, 0.1)
        self.assertEqual(len(every), len(set(every)))
        self.assertEqual(len(every), len({cell.name for cell in every}))
        for name, (_, cells_of) in cells.FIGURES.items():
            self.assertEqual(set(cells.cells_of([name], 0.1)), set(cells_of(0.1)), name)

    def test_the_most_telling_come_first_and_in_pairs(self):
        first = cells.cells_of(ALL, 0.1)[:6]
        self.assertEqual([cell.device for cell in first], [*cells.DEVICES] * 3)
        self.assertEqual([cell.sort_mb for cell in first], [100, 100, 64, 64, 192, 192])
        self.assertEqual({(cell.job, cell.block_mb) for cell in first}, {("sort", 64)})

    def test_the_two_cells_of_a_ratio_follow_each_other_in_every_round(self):
        every = cells.cells_of(ALL, 0.1, rounds=3)
        one_round = len(cells.cells_of(ALL, 0.1))
        self.assertEqual([cell.round for cell in every], [1] * one_round + [2] * one_round + [3] * one_round)
        self.assertEqual(len(set(every)), len({cell.name for cell in every}))
        for pair in zip(every[::2], every[1::2]):
            first, second = pair if pair[0].round % 2 else pair[::-1]
            self.assertEqual((first.device, second.device), (cells.HDD, cells.SSD), "they take turns to be the first")
            self.assertEqual(replace(first, device=cells.SSD), second)
        self.assertEqual([len(pair) for pair in cells.in_pairs(every)], [2] * (len(every) // 2))
        self.assertEqual([len(pair) for pair in cells.in_pairs(every[1:4])], [1, 2])

    def test_the_sweep_of_the_join_comes_last(self):
        swept = cells.FIGURES["settings-join"][1](0.1)
        self.assertEqual((len(swept), {(cell.job, cell.paper_gb) for cell in swept}), (18, {("join", 15)}))
        others = set(cells.cells_of([name for name in ALL if name != "settings-join"], 0.1))
        alone = [cell for cell in swept if cell not in others]
        self.assertEqual(set(cells.cells_of(ALL, 0.1)[-len(alone):]), set(alone))

    def test_what_the_command_chooses_is_measured_on_both_disks(self):
        def says(block, sort_mb, defer):
            names = ("dfs.blocksize", "mapreduce.task.io.sort.mb", "mapreduce.task.io.sort.factor", "merganser.shuffle.defer")
            return {"advice": dict(zip(names, (str(block << 20), str(sort_mb), "10", defer)))}

        told = {cells.HDD: says(128, 192, "false"), cells.SSD: says(256, 32, "true")}
        every = cells.cells_of([cells.ADVISED], 0.05, 4, told=told)
        self.assertEqual([cell.device for cell in every], [*cells.DEVICES] * 2)
        decided = [(cell.flavour, cell.block_mb, cell.sort_mb, cell.factor) for cell in every[::2]]
        self.assertEqual(decided, [("stock", 128, 192, 10), (ACTIVE, 256, 32, 10)])
        self.assertLessEqual(set(every), set(cells.cells_of(ALL, 0.05, 4, told=told)))
        alike = {device: says(128, 192, "false") for device in cells.DEVICES}
        self.assertEqual(len(cells.cells_of([cells.ADVISED], 0.05, 4, told=alike)), 2, "each cell once")
        self.assertEqual(cells.cells_of([cells.ADVISED], 0.05, 4), [], "not known")

    def test_memory_is_the_papers_whatever_the_data(self):
        ten, twenty = (cells.Cell("sort", size, cells.HDD, 0.1) for size in (10, 20))
        self.assertEqual((ten.data_bytes, twenty.data_bytes), (10**9, 2 * 10**9))
        self.assertEqual((ten.cache_bytes, twenty.cache_bytes), (320_000_000, 320_000_000))
        self.assertEqual({cell.cache_bytes for cell in cells.FIGURES["traces"][1](0.1)}, {3_200_000_000})

    def test_names_tell_all_that_decides_a_cell(self):
        cell = cells.Cell("sort", 10, cells.HDD, 0.1)
        others = [
            replace(cell, job="join"), replace(cell, paper_gb=5), replace(cell, device=cells.SSD), replace(cell, scale=0.2),
            replace(cell, flavour=ACTIVE), replace(cell, sort_mb=64), replace(cell, block_mb=32), replace(cell, factor=10),
            replace(cell, least_segment="5"), replace(cell, slower=2), replace(cell, round=2),
        ]  # fmt: skip
        self.assertEqual(len(others), len(asdict(cell)))
        self.assertEqual(len({one.name for one in [cell, *others]}), len(others) + 1)


class Jobs(unittest.TestCase):
    def test_words_have_no_open_names(self):
        named = jobs.values(10**9, Path("/l"), ["/a", "/b", "/c"])
        for name in jobs.JOBS:
            words = [*jobs.job_words(name, named), *jobs.job_settings(name, named).values()]
            self.assertFalse([word for word in words if "{" in str(word)], name)
        self.assertEqual(jobs.job_words("join", named)[-4:], ["/a", "/b", "/c", "/output"])

    def test_writers_make_the_bytes_in_four_files(self):
        for size in (4, 10**9, 10**9 + 3):
            _, _, settings = jobs.writer("random", size, "/i", "/l")
            total, each = (int(settings[f"mapreduce.randomwriter.{name}"]) for name in ("totalbytes", "bytespermap"))
            self.assertEqual((total, total // each), (size, jobs.WRITERS))

    def test_a_text_for_grep_has_lines_and_one_for_join_has_not(self):
        _, lines, _ = jobs.writer("lines", 100, "/i", "/l")
        _, pairs, _ = jobs.writer("text", 100, "/i", "/l")
        self.assertEqual((lines, pairs), (["-outFormat", jobs.TEXT_OUTPUT, "/i"], ["/i"]))

    def test_equal_inputs_share_an_image(self):
        sort = cells.Cell("sort", 10, cells.HDD, 0.1)
        same = [replace(sort, device=cells.SSD), replace(sort, sort_mb=64), replace(sort, flavour=ACTIVE)]
        self.assertEqual({image.name_of(one) for one in same}, {image.name_of(sort)})
        others = [replace(sort, block_mb=32), replace(sort, paper_gb=5), replace(sort, job="grep")]
        self.assertEqual(len({image.name_of(one) for one in [sort, *others]}), 4)


class Settings(unittest.TestCase):
    def test_the_papers_settings_reach_the_job(self):
        cell = cells.Cell("sort", 10, cells.HDD, 0.1, sort_mb=192)
        chosen = measuring.settings(cell, jobs.values(1, "/l"))
        self.assertEqual(chosen["mapreduce.task.io.sort.mb"], 192)
        self.assertEqual(chosen["mapreduce.task.io.sort.factor"], 200)
        self.assertIn("-Xmx352m", chosen["mapreduce.map.java.opts"])
        self.assertFalse([name for name in chosen if "collector" in name or "merganser" in name])

    def test_a_bound_for_segments_reaches_an_active_job(self):
        cell = cells.Cell("sort", 10, cells.HDD, 0.1, flavour=ACTIVE, least_segment="7")
        chosen = measuring.settings(cell, jobs.values(1, "/l"))
        self.assertEqual(chosen["merganser.shuffle.defer.min-segment-bytes"], "7")
        self.assertIn("mapreduce.job.map.output.collector.class", chosen)

    def test_a_sort_that_loses_records_fails(self):
        told = history.parse((GOLDEN / "terasort.jhist").read_text())
        cell = cells.Cell("sort", 10, cells.HDD, 0.1)
        told.counters["tasks"] = {"MAP_OUTPUT_RECORDS": 7, "REDUCE_OUTPUT_RECORDS": 7}
        measuring.check(cell, [told])
        told.counters["tasks"]["REDUCE_OUTPUT_RECORDS"] = 6
        with self.assertRaisesRegex(measuring.Invalid, "records of map output, but"):
            measuring.check(cell, [told])
        measuring.check(replace(cell, job="wordcount"), [told])
        with self.assertRaisesRegex(measuring.Invalid, "ended as FAILED"):
            measuring.check(cell, [replace(told, state="FAILED")])


class Phases(unittest.TestCase):
    def test_bins_belong_to_the_phase_of_their_middle(self):
        flow = {"bytes": [1, 2, 4, 8, 16], "requests_per_bin": [1, 1, 1, 1, 1], "in_order_per_bin": [1, 0, 1, 0, 1]}
        report = {"activity": {"bin_ns": 1_000_000_000, "reads": flow, "writes": flow}}
        # The emulation began at 10 s; bins have their middles at 10.5 s, 11.5 s and so on.
        found = phases.split(report, 10_000, {"maps": (11_000, 12_600), "shuffle": (12_600, 12_600), "reduce": (12_600, 99_000)})
        self.assertEqual(found["maps"]["reads"], {"requests": 2, "in_order": 1, "bytes": 6})
        self.assertEqual(found["shuffle"]["reads"]["requests"], 0)
        self.assertEqual(found["reduce"]["writes"], {"requests": 2, "in_order": 1, "bytes": 24})
        self.assertEqual(found["maps"]["seconds"], 1.6)

    def test_bins_of_a_disk_that_is_twice_as_slow_are_twice_as_long(self):
        flow = {"bytes": [1, 2, 4], "requests_per_bin": [1, 1, 1], "in_order_per_bin": [0, 0, 0]}
        report = {"activity": {"bin_ns": 1_000_000_000, "reads": flow, "writes": flow}}
        found = phases.split(report, 10_000, {"maps": (10_000, 12_000), "shuffle": (12_000, 12_000), "reduce": (12_000, 16_000)}, 2)
        self.assertEqual([found[name]["reads"]["bytes"] for name in phases.PHASES], [1, 0, 6])
        self.assertEqual([found[name]["seconds"] for name in phases.PHASES], [1, 0, 2])

    def test_phases_of_a_history_follow_one_another(self):
        told = history.parse((GOLDEN / "terasort.jhist").read_text())
        end = told.submitted_ms + round(told.elapsed_s * 1000)
        spans = list(phases.spans(told, end).values())
        self.assertEqual((spans[0][0], spans[-1][1]), (told.submitted_ms, end))
        for before, after in zip(spans, spans[1:]):
            self.assertEqual(before[1], after[0])
        self.assertTrue(all(start <= stop for start, stop in spans))


    def test_points_are_thinned_evenly_and_left_out_unless_they_are_drawn(self):
        activity = {"requests_per_point": 2, "points": list(range(9000))}
        self.assertEqual(measuring._thinned(activity, 4000), {"each": 6, "list": list(range(0, 9000, 3))})
        self.assertEqual(measuring._thinned(activity, 0)["list"], [])
        few = {"requests_per_point": 1, "points": [1, 2]}
        self.assertEqual(measuring._thinned(few, 4000), {"each": 1, "list": [1, 2]})
        self.assertEqual(measuring._thinned({"requests_per_point": 1, "points": []}, 4000)["list"], [])


class Memory(unittest.TestCase):
    def test_the_limit_is_what_processes_take_and_the_cache(self):
        with tempfile.TemporaryDirectory() as folder:
            group = Path(folder)
            (group / "memory.usage_in_bytes").write_text(str(900 << 20))
            (group / "memory.stat").write_text(f"cache 1\ntotal_cache {300 << 20}\ntotal_rss 5\n")
            (group / "memory.limit_in_bytes").write_text("")
            with memory.cache_of(group, 64 << 20) as held:
                self.assertEqual((group / "memory.oom_control").read_text(), "1")
                deadline = time.monotonic() + 20
                while not (group / "memory.limit_in_bytes").read_text() and time.monotonic() < deadline:
                    time.sleep(0.01)
                self.assertEqual((group / "memory.limit_in_bytes").read_text(), str((600 + 64) << 20))
            self.assertEqual((group / "memory.limit_in_bytes").read_text(), "-1")
            self.assertEqual(held.processes_peak_bytes, 600 << 20)


    def test_a_limit_that_the_kernel_refused_is_set_again(self):
        with tempfile.TemporaryDirectory() as folder:
            group = Path(folder)
            (group / "memory.usage_in_bytes").write_text("0")
            (group / "memory.stat").write_text("total_cache 0\n")
            held = memory.CacheLimit.__new__(memory.CacheLimit)
            held._group, held._cache_bytes, held._limit, held.processes_peak_bytes = group, 64 << 20, None, 0
            with mock.patch.object(Path, "write_text", side_effect=OSError("busy")), self.assertRaises(OSError):
                held._move()
            held._move()
            self.assertEqual((group / "memory.limit_in_bytes").read_text(), str(64 << 20))


class Emulations(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = Path(held.name)

    def ended(self, valid, returncode):
        """An emulation that left a report."""
        def begun(*_, **__):
            (self.folder / "door" / "disk").touch()
            (self.folder / "r.json").write_text(json.dumps({"valid": valid}))
            return SimpleNamespace(returncode=returncode, pid=0)

        with mock.patch.object(emulated.subprocess, "Popen", begun):
            return emulated.Emulation(Path("m"), "830", self.folder / "i", self.folder / "door", self.folder / "r.json")

    def test_a_disk_that_failed_leaves_no_result(self):
        with self.assertRaisesRegex(emulated.EmulationError, "the emulated disk failed"):
            self.ended(valid=True, returncode=2).report()

    def test_a_late_run_fails_too_and_has_a_result(self):
        self.assertEqual(self.ended(valid=False, returncode=2).report(), {"valid": False})

    def test_a_run_that_was_good_has_a_result(self):
        self.assertEqual(self.ended(valid=True, returncode=0).report(), {"valid": True})

    def test_an_emulation_has_the_processor_that_was_left_to_it(self):
        def words(here):
            with mock.patch.object(emulated, "CPUS", [0, 3]), mock.patch.object(emulated.subprocess, "Popen") as popen, \
                    mock.patch.object(emulated.os, "sched_getaffinity", return_value=here):
                popen.side_effect = lambda *_, **__: (self.folder / "door" / "disk").touch() or SimpleNamespace(pid=0)
                emulated.Emulation(Path("m"), "830", self.folder / "i", self.folder / "door", self.folder / "r.json", slower=3)
            (self.folder / "door" / "disk").unlink()
            return " ".join(popen.call_args.args[0])

        self.assertIn("--slower 3 --cpu 3", words({0}))
        self.assertNotIn("--cpu", words({0, 3}))

    def test_nothing_else_runs_on_the_processor_of_the_emulation(self):
        mask = self.folder / "mask"
        mask.write_text("f\n")
        with mock.patch.object(emulated, "CPUS", [0, 1, 3]), mock.patch.object(emulated, "WRITEBACK_CPUS", mask), \
                mock.patch.object(emulated.os, "sched_setaffinity") as moved, mock.patch.object(emulated.os, "setpriority"):
            with emulated.own_cpu_left():
                moved.assert_called_once_with(0, [0, 1])
                self.assertEqual(mask.read_text(), "3")
            self.assertEqual(moved.call_args.args, (0, [0, 1, 3]))
        self.assertEqual(mask.read_text(), "f\n")

    def test_the_disk_of_an_earlier_emulation_is_not_taken(self):
        (self.folder / "door").mkdir()
        (self.folder / "door" / "disk").touch()
        with self.assertRaisesRegex(emulated.EmulationError, "an earlier emulation is still there"):
            self.ended(valid=True, returncode=0)


class Copies(unittest.TestCase):
    def test_a_copy_has_memory_for_what_earlier_cells_wrote_and_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            path, mib = Path(folder) / "f", image.PIECE_BYTES
            with open(path, "wb") as file:
                file.truncate(64 * mib)
                file.seek(5 * mib)
                file.write(b"x" * 5000)
            self.assertEqual(image.data_of(path), [(5 * mib, 6 * mib)])
            before = path.read_bytes()
            image.fill(path, [(5 * mib, 6 * mib), (10 * mib, 11 * mib)])
            self.assertEqual(image.data_of(path), [(5 * mib, 6 * mib), (10 * mib, 11 * mib)])
            self.assertEqual(path.read_bytes(), before)

    def test_what_cells_wrote_is_noted_by_input(self):
        with tempfile.TemporaryDirectory() as folder:
            copy, cell = Path(folder) / "copy", cells.Cell("sort", 10, cells.HDD, 0.1)
            images = image.Images(Path(folder), None, None, 1, None)
            for piece in (3, 7):
                with open(copy, "wb") as file:
                    file.truncate(16 * image.PIECE_BYTES)
                    file.seek(piece * image.PIECE_BYTES)
                    file.write(b"x")
                images.note(cell, copy)
            starts = [start // image.PIECE_BYTES for start, _ in images._written(replace(cell, sort_mb=64))]
            self.assertEqual(starts, [3, 7])
            self.assertEqual(images._written(replace(cell, block_mb=32)), [])


def measured(elapsed_s, valid=True, **more):
    """The parts of a result that are looked at here."""
    share = 0.001 if valid else 0.02
    return {"elapsed_s": elapsed_s, "valid": valid, "lag": {"late_share": share, "time_share": 0.001}, "cell_s": 9.0, **more}


class Results(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.kept = Rounds(Path(held.name) / "r")
        self.cell = cells.Cell("sort", 10, cells.HDD, 0.1)

    def written(self, scale=0.1, slower=1):
        command.write(self.kept, Namespace(scale=scale, slower=slower, json=None), {}, {})
        return json.loads((self.kept.folder / file_name(scale, slower)).read_text())

    def test_what_was_measured_is_kept_and_a_torn_file_is_not_there(self):
        self.assertIsNone(self.kept.get(self.cell))
        self.assertFalse(self.kept.folder.exists(), "asking makes no folder")
        self.kept.put(self.cell, measured(7.0))
        self.assertEqual(self.kept.get(self.cell)["elapsed_s"], 7.0)
        self.assertIsNone(self.kept.get(replace(self.cell, sort_mb=64)))
        other = replace(self.cell, sort_mb=192)
        self.assertEqual(len(self.kept.all([other, self.cell])), 1)
        path = next(self.kept.folder.glob("*.json"))
        path.write_text(path.read_text()[:-20])
        self.assertIsNone(self.kept.get(self.cell))

    def test_a_result_of_other_parameters_under_the_name_does_not_count(self):
        self.kept.put(self.cell, measured(7.0))
        path = next(self.kept.folder.glob("*.json"))
        found = json.loads(path.read_text())
        found["cell"]["factor"] = 10
        path.write_text(json.dumps(found))
        self.assertIsNone(self.kept.get(self.cell))

    def test_files_without_rounds_are_the_first_round(self):
        self.kept.put(self.cell, measured(7.0))
        path = next(self.kept.folder.glob("*.json"))
        found = json.loads(path.read_text())
        del found["cell"]["round"]
        path.write_text(json.dumps(found))
        self.assertEqual(self.kept.get(self.cell)["elapsed_s"], 7.0)
        self.assertIsNone(self.kept.get(replace(self.cell, round=2)))
        self.kept.put(replace(self.cell, round=2), measured(9.0))
        entry = summary(self.kept.rounds(self.cell))
        self.assertEqual([one["round"] for one in entry["rounds"]], [1, 2])
        self.assertNotIn("round", entry["cell"])

    def test_an_entry_has_the_median_round_and_all_times(self):
        for number, seconds in ((1, 12.0), (2, 10.0), (3, 15.0), (11, 11.0)):
            self.kept.put(replace(self.cell, round=number), measured(seconds, device_joules=seconds * 2))
        self.kept.put(replace(self.cell, slower=2), measured(99.0))
        (entry,), late = gathered(self.kept, [self.cell, replace(self.cell, sort_mb=64)])
        # The faster one of the two in the middle, with all of its own figures.
        self.assertEqual((entry["elapsed_s"], entry["device_joules"]), (11.0, 22.0))
        self.assertEqual([one["elapsed_s"] for one in entry["rounds"]], [12.0, 10.0, 15.0, 11.0])
        self.assertEqual((entry["spread"], late), (5 / 11, []))

    def test_late_attempts_are_kept_apart_and_none_is_lost(self):
        for seconds in (3.0, 4.0, 5.0):
            self.kept.put(self.cell, measured(seconds, valid=False))
        self.assertIsNone(self.kept.get(self.cell))
        self.assertEqual([one["elapsed_s"] for one in self.kept.late(self.cell)], [3.0, 4.0, 5.0])
        self.assertEqual(sorted(path.suffix for path in self.kept.folder.iterdir()), [""], "nothing late is next to the results")
        self.assertTrue((self.kept.apart / "README.md").exists())
        study = self.written()
        self.assertEqual((study["cells"], study["not_valid"][0]["attempts"]), ([], 3))
        self.assertNotIn("elapsed_s", study["not_valid"][0])
        # Another round is not late for that, and a cell with a valid round is not in the list.
        self.assertEqual(self.kept.late(replace(self.cell, round=2)), [])
        self.kept.put(replace(self.cell, round=2), measured(6.0))
        study = self.written()
        self.assertEqual((study["cells"][0]["elapsed_s"], study["not_valid"]), (6.0, []))

    def test_an_older_late_file_makes_room_for_a_valid_one(self):
        self.kept.put(self.cell, measured(7.0))
        path = next(self.kept.folder.glob("*.json"))
        path.write_text(path.read_text().replace('"valid": true', '"valid": false'))
        self.assertIsNone(self.kept.get(self.cell))
        self.assertEqual(len(self.kept.late(self.cell)), 1)
        self.kept.put(self.cell, measured(8.0))
        self.assertEqual(self.kept.get(self.cell)["elapsed_s"], 8.0)
        self.assertEqual([one["elapsed_s"] for one in self.kept.late(self.cell)], [7.0])

    def test_a_run_with_another_scale_or_clock_leaves_what_is_there(self):
        for scale, slower, seconds in ((0.1, 1, 7.0), (0.05, 1, 8.0), (0.05, 4, 9.0)):
            self.kept.put(replace(self.cell, scale=scale, slower=slower), measured(seconds))
            self.written(scale, slower)
        files = sorted(path.name for path in self.kept.folder.glob("study-*"))
        self.assertEqual(files, ["study-x0.05-slower1.json", "study-x0.05-slower4.json", "study-x0.1-slower1.json"])
        for name, seconds in zip(files, (8.0, 9.0, 7.0)):
            (entry,) = json.loads((self.kept.folder / name).read_text())["cells"]
            self.assertEqual(entry["elapsed_s"], seconds)

    def test_the_golden_file_that_the_comparisons_read_has_the_form_of_ours(self):
        golden = json.loads((GOLDEN / "study.json").read_text())
        decided = {name for name in asdict(self.cell) if name != "round"}
        self.assertEqual({tuple(sorted(one["cell"])) for one in golden["cells"]}, {tuple(sorted(decided))})
        every = [{name: value for name, value in asdict(cell).items() if name != "round"} for cell in cells.cells_of(ALL, golden["scale"])]
        late = [one["cell"] for one in golden["not_valid"]]
        self.assertEqual([one["cell"] for one in golden["cells"]], [cell for cell in every if cell not in late])
        self.assertTrue(late and all(cell in every for cell in late))
        report = {
            "valid": True, "lag": {"late_share": 0.0, "time_share": 0.0},
            "results": {"elapsed_ns": 2_000_000_000, "joules": 10.0},
            "activity": {"reads": {"requests": 1, "in_order": 0}, "writes": {"requests": 1, "in_order": 0},
                         "requests_per_point": 1, "points": []},
        }  # fmt: skip
        made = {*measuring._of_report(report), "cell", "elapsed_s", "phases", "points", "rounds", "spread"}
        self.assertLessEqual(set(golden["cells"][0]), made)
        for one in golden["cells"]:
            seconds = sorted(entry["elapsed_s"] for entry in one["rounds"])
            self.assertEqual(one["elapsed_s"], seconds[(len(seconds) - 1) // 2])
        self.assertGreater(max(len(one["rounds"]) for one in golden["cells"]), 1)
        self.kept.put(self.cell, measured(1.0))
        self.kept.put(replace(self.cell, device=cells.SSD), measured(1.0, valid=False))
        written = self.written()
        self.assertLessEqual(set(golden), set(written))
        self.assertLessEqual(set(golden["cells"][0]["rounds"][0]), set(written["cells"][0]["rounds"][0]))
        self.assertEqual(set(golden["not_valid"][0]), set(written["not_valid"][0]))

    def test_every_kept_result_is_valid(self):
        folders = sorted((command.BENCH / "results").glob("*-study"))
        self.assertTrue(folders)
        for folder in folders:
            for path in folder.glob("*.json"):
                one = json.loads(path.read_text())
                for result in one.get("cells", [one]):
                    self.assertTrue(result["valid"], path)
                    self.assertLess(max(result["lag"]["late_share"], result["lag"]["time_share"]), 0.01, path)


class Builds(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = Path(held.name)
        for name in ("m", "p"):
            (self.folder / name).write_text(name)

    def here(self):
        return build.describe(merganser=self.folder / "m", plugin=self.folder / "p")

    def test_a_build_is_its_files_and_another_commit_alone_is_not_another_build(self):
        kept = self.here()
        self.assertEqual(set(kept), {"commit", "merganser", "plugin"})
        self.assertEqual(build.told({**kept, "commit": "other"}, self.here(), ["merganser", "plugin"]), "")
        (self.folder / "p").write_text("q")
        self.assertEqual(build.told(kept, self.here(), ["merganser"]), "", "a file that does not matter")
        self.assertEqual(build.told({**kept, "commit": "abc"}, self.here(), ["merganser", "plugin"]), "of another build (abc)")
        self.assertEqual(build.told(None, self.here(), ["merganser"]), "its build was not recorded")
        (self.folder / "p").unlink()
        self.assertEqual(build.told(kept, self.here(), ["plugin"]), "", "what is not there can't be compared")

    def test_the_programs_of_other_commands_belong_to_the_build(self):
        alone = self.here()["merganser"]
        (self.folder / "m-lab").write_bytes(b"a model")
        self.assertNotEqual(self.here()["merganser"], alone)
        (self.folder / "m-lab").write_bytes(b"another model")
        (self.folder / "m-lab.d").write_bytes(b"no program")
        with_lab = self.here()["merganser"]
        (self.folder / "m-lab.d").unlink()
        self.assertEqual(self.here()["merganser"], with_lab)

    def test_cells_say_whether_they_are_kept_and_of_another_build(self):
        kept, cell, here = Rounds(self.folder / "r"), cells.Cell("sort", 10, cells.HDD, 0.1), self.here()
        self.assertIn("missing, about", command.state_of(cell, kept, here))
        kept.put(cell, measured(5.0, valid=False, build=here))
        self.assertIn("NOT VALID", command.state_of(cell, kept, here))
        kept.put(cell, measured(5.0, build=here))
        self.assertEqual(command.state_of(cell, kept, here), f"{cell.name}: 5.0 s; the cell took 9 s")
        self.assertIn("; of another build", command.state_of(cell, kept, {**here, "merganser": "x"}))
        self.assertNotIn("build", command.state_of(cell, kept, {**here, "plugin": "x"}), "stock Hadoop has no plugin")
        active = replace(cell, flavour=ACTIVE)
        kept.put(active, measured(5.0, build=here))
        self.assertIn("; of another build", command.state_of(active, kept, {**here, "plugin": "x"}))


class Command(unittest.TestCase):
    def test_what_makes_no_sense_is_refused(self):
        for words in (["nothing"], ["size", "--scale", "0"], ["size", "--scale", "2"], ["size", "--minutes", "0"], ["size", "--slower", "0"],
                      ["size", "--rounds", "0"]):
            with self.assertRaises(SystemExit), redirect_stderr(io.StringIO()):
                command.arguments(words)
        self.assertEqual(command.arguments(["all"]).figure, ALL)

    def test_class_paths_hold_in_every_folder(self):
        jars = command.jars_of(Namespace(jars=Path("some/jars"), plugin=Path("a.jar"), dir=Path("work")))
        self.assertTrue(all(Path(one).is_absolute() for one in jars.classpath(ACTIVE).split(":")))

    def test_a_run_on_another_day_continues_this_machines_results(self):
        described = {"cpu": "Xeon", "cores": 2, "memory_bytes": 24 << 30}
        with tempfile.TemporaryDirectory() as folder:
            results = Path(folder)
            today = results / machine.results_folder(described, "-study")
            self.assertEqual(machine.kept_results(results, described, "-study"), today)
            slug = machine.slug(described)
            for name in (f"2020-01-01-{slug}-study", f"2020-01-02-{slug}-study", "2020-01-03-other-study", f"2020-01-04-{slug}"):
                (results / name).mkdir()
            self.assertEqual(machine.kept_results(results, described, "-study"), results / f"2020-01-02-{slug}-study")

    def test_the_sorts_of_the_sweep_are_predicted_at_every_scale(self):
        done = SimpleNamespace(returncode=0, stdout="{}")
        for scale in (0.1, 1):
            with mock.patch.object(command.subprocess, "run", return_value=done):
                predicted = command.predicted(Path("m"), cells.cells_of(["settings"], scale))
            self.assertEqual(set(predicted), set(cells.DEVICES))

    def test_the_words_of_the_advice_are_those_that_a_test_of_the_command_says(self):
        golden = json.loads((GOLDEN / "advise-job.json").read_text())
        words = {cell.device: command.advice_words(cell, 1) for cell in cells.cells_of(["settings"], 0.05, 4)}
        self.assertEqual(words, golden)

    def test_a_pair_of_cells_begins_together_or_not_at_all(self):
        with tempfile.TemporaryDirectory() as folder:
            kept, began = Rounds(Path(folder) / "r"), []
            every = cells.cells_of(["cpu-bound"], 0.05, rounds=2)
            args = Namespace(memory_dir=Path(folder), merganser=Path("m"), plugin=Path("p"), dir=Path(folder), timeout=1, jars=Path(folder),
                             make_inputs=False, scale=0.05, slower=1, minutes=1, path_us=40, json=None)  # fmt: skip
            with (
                mock.patch.object(command, "predicted", return_value={}), mock.patch.object(command, "memory_bytes", return_value=0),
                mock.patch.object(command.emulated, "own_cpu_left"), mock.patch.object(command, "say"),
                mock.patch.object(command.one, "measure", side_effect=lambda cell, _: began.append(cell) or measured(1.0)),
                mock.patch.object(command, "Budget") as budget,
            ):
                # There is room for three cells, and the third would be the first of a pair.
                budget.return_value.has_room = lambda *pair: len(began) + len(pair) <= 3
                self.assertEqual(command.run(args, every, kept, {}), [])
            self.assertEqual(began, every[:2])
            self.assertEqual(set(kept.get(every[0])["build"]), {"commit", "merganser", "plugin"})
            study = json.loads((kept.folder / file_name(0.05, 1)).read_text())
            self.assertEqual(len(study["cells"]), 2)

    def test_a_disk_that_does_not_fit_in_memory_is_refused(self):
        every = cells.cells_of(ALL, command.SCALE)
        self.assertEqual(command.memory_bytes(every), 16 * 10**9, "as lab/bench/README.md says")
        args, free = Namespace(memory_dir=Path("/m")), SimpleNamespace(free=10**9)
        with mock.patch.object(command.shutil, "disk_usage", return_value=free):
            with self.assertRaisesRegex(emulated.EmulationError, "/m: 16.0 GB must be free, and 1.0 GB are"):
                command.run(args, every, None, {})

    def test_no_cell_begins_that_would_end_too_late(self):
        cell = cells.Cell("sort", 10, cells.HDD, 0.1)
        self.assertTrue(command.Budget(None).has_room(cell))
        budget = command.Budget(10)
        self.assertTrue(budget.has_room(cell))
        budget.took(cell, 601)
        self.assertFalse(budget.has_room(cell))
        self.assertTrue(budget.has_room(replace(cell, device=cells.SSD)))
        self.assertFalse(command.Budget(0.1).has_room(cell))
        self.assertFalse(budget.has_room(replace(cell, device=cells.SSD), cell))

    def test_a_late_cell_is_called_not_valid(self):
        cell = cells.Cell("sort", 10, cells.HDD, 0.1, flavour=STOCK)
        result = {"valid": False, "elapsed_s": 5.0, "cell_s": 9.0, "lag": {"late_share": 0.02, "time_share": 0.001}}
        self.assertIn("NOT VALID: 2.00 % late, 0.10 % of the time", command.line_of(cell, result))
        self.assertNotIn("NOT VALID", command.line_of(cell, {**result, "valid": True}))


if __name__ == "__main__":
    unittest.main()
