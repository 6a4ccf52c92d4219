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
from harness import limits
from papers.lab import ExperimentError
from papers.mcsd import contest, pairs, partition, single
from papers.mcsd import published as mcsd
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

    def prints_its_figures(self, name, *more, **env):
        j, p = self.folder / "j", self.folder / "p.svg"
        ran = self.run_one(name, "--json", j, "--plot", p, *more, **env)
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

    def test_jobs_in_little_memory_print_their_figures(self):
        try:
            limits.need_swap("this test")
        except limits.NoSwap as missing:
            self.skipTest(str(missing))
        told = self.prints_its_figures("mcsd-pairs", PHOENIX_DIR="")
        self.assertTrue(all(run["memory_limit_bytes"] == 128 * 2**20 for run in told["runs"] if " match " in run["command"]))
        self.assertTrue(any(" & " in run["command"] for run in told["runs"]))

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


class McSD(unittest.TestCase):
    SECONDS = contest.Seconds({
        (size, job, who): share * {contest.SEQUENTIAL: 20, contest.PHOENIX: 60 if share > 0.5 else 10}.get(who, 10)
        for size, share in enumerate(mcsd.SHARES)
        for job in contest.JOBS
        for who in (contest.SEQUENTIAL, contest.DUO, contest.DUO_PARTS, contest.DUO_WHOLE, contest.PHOENIX)
    })  # fmt: skip
    """A control that grows beyond half of memory; Phoenix++ is not there."""

    def test_memory_follows_the_data_down_to_a_least(self):
        found = [contest.sizes(size) for size in (None, 640 * contest.MIB, contest.MIB)]
        self.assertEqual(found, [(512 << 20, 320 << 20), (1024 << 20, 640 << 20), (128 << 20, 1 << 20)])

    def test_our_command_is_told_its_partition(self):
        arena = contest.Contest(SimpleNamespace(folder=Path("f"), merganser="m"), None, {}, 2**30, 2**30)
        words = [arena.words(contest.COUNT, who) for who in (contest.DUO_PARTS, contest.DUO_WHOLE, contest.DUO)]
        self.assertEqual([one[one.index("--partition-size") + 1] for one in words], [322122547, "none", "auto"])
        self.assertIn(("--memory", 2**29), list(zip(words[0], words[0][1:])))

    def test_a_text_is_cut_between_lines(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"some words\n" * 1000)
            file.flush()
            contest.cut(Path(file.name), 5000)
            self.assertEqual(Path(file.name).stat().st_size, 5000 // 11 * 11)

    def test_statements_are_compared_where_they_hold(self):
        outcome = single.outcome(lab(), self.SECONDS, [])
        self.assertEqual([len(one.rows) for one in outcome.sections], [2 * 4 * 4, 8, 8, 2])
        self.assertTrue(all(row.ratio == 1 for row in section(outcome, "one core").rows))
        compared = [row.paper and row.paper.value for row in section(outcome, "Phoenix 2.0").rows]
        self.assertEqual(compared, [1, 1, None, 6, 1, 1, None, None])
        alone = contest.Seconds({key: value for key, value in self.SECONDS.items() if key[2] is not contest.PHOENIX})
        self.assertEqual(ours(section(single.outcome(lab(), alone, []), "Phoenix 2.0")), [None])

    def test_quotients_are_those_of_the_table(self):
        outcome = partition.outcome(lab(), self.SECONDS, [])
        control = section(outcome, "Phoenix 2.0")
        self.assertEqual([round(row.paper.value, 1) for row in control.rows], [2.1, 2.7, 1.0, 1.0])
        self.assertEqual(ours(control)[1], 6)
        self.assertEqual(ours(section(outcome, "ours without")), [1] * 4)

    def test_speed_ups_are_compared_where_the_paper_has_a_number(self):
        seconds = {
            (size, job, way): {contest.DUO_PARTS: 2.0, contest.PHOENIX: 32.0}.get(way.job, 4.0)
            for size in range(4) for job in contest.JOBS for way in (pairs.MCSD, *pairs.RIVALS)
        }  # fmt: skip
        count = pairs.outcome(lab(), seconds, []).sections[0]
        self.assertEqual(len(count.rows), 5 * 4)
        self.assertEqual([row.ratio for row in count.rows if row.ratio], [1, 1, 1, 1, 1, 16 / 18])
        self.assertEqual(sum(row.what.endswith("(paper: figure only)") for row in count.rows), 6)
        alone = {key: None if key[2].job is contest.PHOENIX else value for key, value in seconds.items()}
        rows = pairs.outcome(lab(), alone, []).sections[0].rows
        self.assertEqual(sum(row.paper is not None and row.ours is None for row in rows), 2)

    def test_a_matrix_has_a_header_of_whole_lines(self):
        head = pairs.matrix(3, 1)[:128]
        self.assertTrue(head.startswith(b"\x93NUMPY") and head.endswith(b"\n"))
        self.assertEqual(len(pairs.matrix(3, 1)), 128 + 9 * 8)


if __name__ == "__main__":
    unittest.main()
