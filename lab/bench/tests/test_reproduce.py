"""Experiments of papers with whole processes: the command, small runs with a stand-in for merganser, and their tables."""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from types import SimpleNamespace

import reproduce
from papers.lab import ExperimentError
from papers.triton import efficiency, gray_sort, minute_sort, published
from papers.triton.whole_sort import SortCost

BENCH = Path(__file__).resolve().parent.parent
STAND_IN = BENCH / "tests" / "stand_in.py"
MACHINE = {"cpu": "a processor", "cores": 2, "memory_bytes": 2**31, "file_system": "ext4", "kernel": "6"}


def lab(**options):
    """What the tables need of a lab."""
    args = SimpleNamespace(cost=None, size=None, **options)
    return SimpleNamespace(args=args, machine=MACHINE, rounds=lambda: range(1))


def section(outcome, begins):
    """The table whose title begins so."""
    (found,) = (one for one in outcome.sections if one.title.startswith(begins))
    return found


def ours(section):
    """Our figures of a table."""
    return [row.ours for row in section.rows]


class Command(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = Path(held.name)
        for name in ("merganser", "raw_io"):
            program = self.folder / name
            program.write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} {name} "$@"\n')
            program.chmod(0o755)

    def words(self, *words):
        return [
            sys.executable, BENCH / "reproduce.py", "--merganser", self.folder / "merganser", "--examples", self.folder,
            "--dir", self.folder / "work", "--size", "1MB", *words,
        ]  # fmt: skip

    def run_one(self, *words, **env):
        ran = subprocess.run(self.words(*words), capture_output=True, text=True, timeout=300, env={**os.environ, **env})
        self.assertFalse(list((self.folder / "work").glob("*")), "nothing is left")
        return ran

    def prints_its_figures(self, name, *more):
        j, p = self.folder / "j", self.folder / "p.svg"
        ran = self.run_one(name, "--json", j, "--plot", p, *more)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertTrue(ran.stdout.startswith(f"{name}: "), ran.stdout)
        told = json.loads(j.read_text())
        self.assertEqual(told["experiment"], name)
        self.assertTrue(told["differs"])
        self.assertTrue(all(run["wall_s"] > 0 for run in told["runs"]))
        rows = [row for one in told["sections"] for row in one["rows"]]
        self.assertGreater(sum(row["ours"] is not None for row in rows), 3)
        for row in rows:
            self.assertEqual(row["paper"] is not None, {"source", "kind", "ours_is"} <= set(row), row)
        compared = next(row for row in rows if row["ratio"] is not None)
        self.assertAlmostEqual(compared["ratio"], compared["ours"] / compared["paper"])
        drawn = p.read_text()
        self.assertTrue(drawn.startswith("<svg ") and drawn.endswith("</svg>\n") and "nan" not in drawn)
        return told

    def test_whole_sorts_print_their_figures_and_leave_only_the_requested_files(self):
        told = self.prints_its_figures("gray-sort", "--memory", "64M", "--rounds", "2")
        self.assertEqual(sum(" sort " in run["command"] for run in told["runs"]), 2)
        self.prints_its_figures("minute-sort")
        self.prints_its_figures("triton-efficiency", "--cost", "2000")

    def test_the_list_names_every_experiment(self):
        listed = subprocess.run(self.words("--list"), capture_output=True, text=True, timeout=60).stdout
        self.assertEqual([line.split()[0] for line in listed.splitlines()], list(reproduce.EXPERIMENTS))

    def test_what_makes_no_sense_is_refused(self):
        for words, sentence in (
            (["triton-magic"], "no experiment is called triton-magic; --list names them"),
            (["gray-sort", "--size", "999"], "--size: at least 1000 bytes"),
            (["gray-sort", "--rounds", "0"], "--rounds and --threads must be at least 1"),
            (["minute-sort", "--seconds", "nan"], "--seconds and --cost must be above 0"),
            (["gray-sort", "--plot", "x.png"], "--plot: 'x.png' does not end in .svg, the one kind of plot"),
            (["gray-sort", "--size", "many"], "'many' is no size: write 512M, 512MiB or 8GB"),
        ):
            with self.subTest(words):
                ran = subprocess.run(self.words(*words), capture_output=True, text=True, timeout=60)
                self.assertEqual(ran.returncode, 2)
                self.assertTrue(ran.stderr.rstrip().endswith(sentence), ran.stderr)

    def test_what_fails_is_one_sentence_and_leaves_nothing(self):
        for words, sentence in (
            (["gray-sort", "--size", "1000T"], "give a smaller --size or another --dir"),
            (["minute-sort", "--seconds", "0.000001"], "reproduce: --seconds: even "),
            (["gray-sort", "--merganser", "/missing"], "reproduce: /missing is not there"),
        ):
            ran = self.run_one("--quiet", *words)
            self.assertEqual((ran.returncode, len(ran.stderr.splitlines())), (1, 1), ran.stderr)
            self.assertIn(sentence, ran.stderr)
        ran = self.run_one("--quiet", "gray-sort", BREAK="exit")
        self.assertIn("exit 1", ran.stderr)
        self.assertIn("broken on purpose", ran.stderr)
        ran = self.run_one("--quiet", "gray-sort", BREAK="result")
        self.assertIn("the sorted records are not those of the data", ran.stderr)

    def test_an_interrupted_experiment_ends_its_sort_and_leaves_nothing(self):
        child = subprocess.Popen(self.words("gray-sort", "--size", "400MB"), stderr=subprocess.DEVNULL)
        work = self.folder / "work"
        begun = time.monotonic()
        while not (work.exists() and list(work.iterdir())) and time.monotonic() < begun + 60:
            time.sleep(0.01)
        child.terminate()
        self.assertEqual(child.wait(60), 130)
        self.assertFalse(list(work.iterdir()))


class Triton(unittest.TestCase):
    def test_the_papers_figures_follow_from_its_inputs(self):
        for system, (paper, _) in zip(published.GRAY, published.TABLE_13):
            self.assertAlmostEqual(paper[0], system.throughput, delta=0.1)
            for theirs, own in zip(paper[1:], system.relative):
                self.assertAlmostEqual(theirs, own, delta=0.051)
        for one in published.COMPARISONS:
            rows = efficiency.compare(one).rows
            for row, delta in zip(rows, (0.1, 0.1, 0.0005, 0.0005, 0.0005)):
                self.assertAlmostEqual(row.paper.value, row.ours, delta=delta)

    def test_the_share_of_the_disk_is_the_time_of_the_bytes_at_its_speed(self):
        here = published.System("here", 1, 2, 1, 1000, 10)
        # 4 bytes each: 2,000 MB read at 500 MB/s and as many written at 400.
        outcome = efficiency.outcome(lab(), here, 4, (500.0, 400.0))
        self.assertAlmostEqual(ours(section(outcome, "here"))[-1], (4 + 5) / 10)
        self.assertTrue(outcome.chart().startswith("<svg "))

    def test_gray_sort_is_compared_by_node_core_and_disk(self):
        here = published.System("here", 1, 2, 1, 6_000, 60)
        outcome = gray_sort.outcome(lab(), here, 4.0, [SortCost(60, 1, 1, 1)])
        self.assertAlmostEqual(ours(section(outcome, "GraySort"))[0], 0.006)
        self.assertEqual(ours(section(outcome, "the same as MB/s")), [100, 50, 100])

    def search(self, limit, bytes_max, seconds):
        found = minute_sort.Search(limit, bytes_max)
        while size := found.next():
            found.tried.append((size, seconds(size)))
        return found

    def test_a_minute_is_searched_from_both_sides(self):
        linear = self.search(60, 1_000_000, lambda size: size / 10_000)
        self.assertEqual((linear.best(), len(linear.tried)), ((582_000, 58.2), 2))
        fast = self.search(60, 1_000_000, lambda _: 0.1)
        self.assertEqual((fast.best(), len(fast.tried)), ((1_000_000, 0.1), 2))
        # Small ones are sorted in memory, larger ones are not.
        slower = self.search(60, 10_000_000, lambda size: size / (20_000 if size < 400_000 else 10_000))
        size, seconds = slower.best()
        self.assertTrue(size > 550_000 and seconds <= 60, slower.tried)
        late = self.search(1, 1_000_000, lambda size: size + 5)
        self.assertTrue(late.best() is None and len(late.tried) <= minute_sort.ATTEMPTS)
        with self.assertRaisesRegex(ExperimentError, "take longer than 1 seconds"):
            minute_sort.outcome(lab(), late, 1)
        self.assertIn("the size limit ended the search", minute_sort.outcome(lab(), fast, 1).differs[-1])


if __name__ == "__main__":
    unittest.main()
