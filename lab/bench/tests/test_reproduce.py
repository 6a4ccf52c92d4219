"""Experiments of papers with whole processes: the command, small runs with a stand-in for merganser, and their tables."""

import json
import os
import shutil
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
from papers.ppblast import bed, data, elapsed, formatting, model, speedup
from papers.ppblast import partition as partitions
from papers.ppblast import published as ppblast
from papers.ppblast.runs import Hits, Parts, Whole
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

    def prints_its_figures(self, name, *more, is_compared=True, **env):
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
        compared = [row for row in rows if row["ratio"] is not None]
        self.assertEqual(bool(compared), is_compared)
        for row in compared:
            self.assertAlmostEqual(row["ratio"], row["ours"] / row["paper"])
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
        # Without Phoenix, nothing is measured that the paper has.
        told = self.prints_its_figures("mcsd-partition", is_compared=False, PHOENIX_DIR="")
        self.assertEqual({run["memory_limit_bytes"] for run in told["runs"]}, {128 * 2**20})
        self.assertFalse([run for run in told["runs"] if " pipeline " in run["command"]], "Phoenix is not there")

    def phoenix(self):
        """A folder like a checkout of Phoenix, with scripts for its programs."""
        count = """tr -s ' ' '\\n' < "$1" | sort | uniq -c | awk '{print $2, "-", $1}'"""
        for version in (contest.PHOENIX.phoenix, contest.PHOENIX_PLUS_PLUS.phoenix):
            for part, script in (("src", ""), ("tests/word_count", count), ("tests/string_match", "grep -c ferrari \"$1\" || true")):
                folder = self.folder / "phoenix" / version / part
                folder.mkdir(parents=True)
                (folder / "Makefile").write_text("all:\n\ttrue\n")
                program = folder / folder.name
                program.write_text(f"#!/bin/sh\necho Running...\n{script}\n")
                program.chmod(0o755)
        return self.folder / "phoenix"

    def test_i43_every_experiment_of_mcsd_runs_with_its_controls_and_with_mcsd_itself(self):
        try:
            limits.need_swap("this test")
        except limits.NoSwap as missing:
            self.skipTest(str(missing))
        phoenix = str(self.phoenix())
        for name in ("mcsd-single", "mcsd-pairs", "mcsd-partition", "ppblast-wordcount"):
            with self.subTest(name):
                told = self.prints_its_figures(name, PHOENIX_DIR=phoenix)
                titles = {section["title"]: section["rows"] for section in told["sections"]}
                if name == "mcsd-pairs":
                    continue
                (mcsd,) = (rows for title, rows in titles.items() if "by merganser pipeline" in title)
                self.assertTrue(all(row["ours"] for row in mcsd), mcsd)
                self.assertTrue([run for run in told["runs"] if " pipeline " in run["command"]])
        ran = self.run_one("--quiet", "mcsd-partition", PHOENIX_DIR=phoenix, BREAK="pipeline")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("broken on purpose", ran.stderr)

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
        (size, job, who): share * {contest.SEQUENTIAL: 20, contest.PHOENIX: 60 if share > 0.5 else 10, contest.PHOENIX_PARTS: 15}.get(who, 10)
        for size, share in enumerate(mcsd.SHARES)
        for job in contest.JOBS
        for who in (
            contest.SEQUENTIAL, contest.DUO, contest.DUO_PARTS, contest.DUO_WHOLE, contest.PHOENIX, contest.PHOENIX_PARTS,
        )
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

    def test_i43_phoenix_in_partitions_is_run_by_the_pipeline(self):
        controls = {"phoenix-2.0": Path("/p h")}
        arena = contest.Contest(SimpleNamespace(folder=Path("f"), merganser="m"), None, controls, 2**30, 2**30)
        words = arena.words(contest.COUNT, contest.PHOENIX_PARTS)
        self.assertEqual(words[3:5], ("m", "pipeline"))
        # Without a unit it would be a number of partitions.
        self.assertEqual(words[words.index("--partitions") + 1], "314572K")
        stage = words[words.index("--stage") + 1]
        self.assertTrue(stage.startswith("map:'/p h/tests/word_count/word_count' {in} 1000000000 > {dir}/said && awk "), stage)
        self.assertTrue(stage.endswith("'$2 == \"-\" {print $1 \"\\t\" $3}' {dir}/said > {out}"), stage)

    def test_a_text_is_cut_between_lines(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"some words\n" * 1000)
            file.flush()
            contest.cut(Path(file.name), 5000)
            self.assertEqual(Path(file.name).stat().st_size, 5000 // 11 * 11)

    def test_statements_are_compared_where_they_hold(self):
        outcome = single.outcome(lab(), self.SECONDS, [])
        self.assertEqual([len(one.rows) for one in outcome.sections], [2 * 4 * 5, 8, 8, 8, 2])
        self.assertTrue(all(row.ratio == 1 for row in section(outcome, "one core").rows))
        compared = [row.paper and row.paper.value for row in section(outcome, "Phoenix 2.0").rows]
        self.assertEqual(compared, [1, 1, None, 6, 1, 1, None, None])
        mcsd_itself = section(outcome, "without over with partitions")
        self.assertEqual([row.paper and row.paper.value for row in mcsd_itself.rows], compared)
        self.assertEqual(ours(mcsd_itself), [10 / 15, 10 / 15, 10 / 15, 4] * 2)
        alone = contest.Seconds({key: value for key, value in self.SECONDS.items() if key[2] is not contest.PHOENIX})
        self.assertEqual(ours(section(single.outcome(lab(), alone, []), "Phoenix 2.0")), [None])

    def test_quotients_are_those_of_the_table(self):
        outcome = partition.outcome(lab(), self.SECONDS, [])
        # The table compares Phoenix with itself; ours next to it is another program.
        itself = section(outcome, "without over with partitions")
        self.assertEqual([round(row.paper.value, 1) for row in itself.rows], [2.1, 2.7, 1.0, 1.0])
        self.assertEqual(ours(itself)[1], 4)
        others = [section(outcome, begins) for begins in ("Phoenix 2.0 over ours", "ours without")]
        self.assertEqual([ours(one) for one in others], [[1, 6, 1, 6], [1] * 4])
        self.assertEqual({row.paper for one in others for row in one.rows}, {None})

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


def whole(megabytes):
    """A whole database of this size in the paper, by lines that cross."""
    return Whole(megabytes / 100, megabytes / 200 + 6, megabytes / 400 + 3, Hits(10, ""))


def parts(megabytes, count, serial=False):
    """The same in partitions: each has a fixed part of half a second per stage."""
    stages = [megabytes / 100 / count + 0.5, (megabytes / 200 + 6) / count + 0.5]
    pipelined, serially = model.pipelined(count, stages), count * sum(stages)
    seconds = serially if serial else pipelined
    told = {
        "stage_seconds": stages, "measured_seconds": seconds, "unpipelined_seconds": serially, "pipelined_seconds": pipelined,
        "recurrence_seconds": seconds, "ahead_seconds": seconds * 1.1 if count > 2 else None, "first_stage_seconds": stages[0],
        "second_stage_seconds": stages[1], "second_stage_as_printed_seconds": stages[1] + 1,
    }  # fmt: skip
    return Parts(count, seconds, told, Hits(10, ""))


class PpBlast(unittest.TestCase):
    TEXT = b">a x\nMK\nV\n>b\nLL\n>c\nAAAA\n"

    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = Path(held.name)
        self.file = self.folder / "some.fa"

    def test_all_ways_run_with_a_built_merganser_and_blast(self):
        built = next((one for kind in ("debug", "release") if (one := reproduce.REPOSITORY / "target" / kind / "merganser").exists()), None)
        wings = built and all(built.with_name(f"merganser-{wing}").exists() for wing in ("near", "lab"))
        if not wings or not shutil.which("blastp") or len(os.sched_getaffinity(0)) < 2:
            self.skipTest("it needs a build of merganser, BLAST+ and two processors")
        words = ["ppblast-format", "--merganser", built, "--dir", self.folder, "--size", "1MB", "--json", self.folder / "j"]
        ran = subprocess.run([sys.executable, BENCH / "reproduce.py", *words], capture_output=True, text=True, timeout=300)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertTrue(all(row["ours"] for one in json.loads((self.folder / "j").read_text())["sections"] for row in one["rows"]))

    def test_without_blast_a_sentence_says_what_to_install(self):
        words = [sys.executable, BENCH / "reproduce.py", "ppblast-elapsed", "--dir", self.folder, "--merganser", sys.executable]
        ran = subprocess.run(words, capture_output=True, text=True, timeout=60, env={**os.environ, "PATH": str(self.folder)})
        self.assertEqual(ran.returncode, 1)
        self.assertTrue(ran.stderr.startswith("reproduce: ppblast-elapsed needs makeblastdb and blastp"), ran.stderr)
        self.assertIn("apt-get install ncbi-blast+", ran.stderr)

    def test_memory_follows_the_database_down_to_a_least(self):
        found = [bed.sizes(size, mb) for size, mb in ((None, 2000), (None, 1750), (2**30, 2000), (2**20, 2000))]
        self.assertEqual(found, [(128 << 20, 128 << 20), (128 << 20, 112 << 20), (1 << 30, 1 << 30), (128 << 20, 1 << 20)])

    def test_a_database_is_cut_between_records_at_every_place(self):
        for size in range(len(self.TEXT) + 3):
            self.file.write_bytes(self.TEXT)
            data.cut(self.file, size)
            expected = self.TEXT[: 10 if size < 16 else 16 if size < 24 else None]
            self.assertEqual(self.file.read_bytes(), expected, size)
        self.assertEqual(data.count(self.file), 9)

    def test_texts_are_told_apart_by_their_letters(self):
        for text, letters in (
            (b"id\tname\n", None), (b"", None), (b">nothing\n", None), (b">p\nMKVLAG\n", "protein"), (b">d\nACGTNacgta\nGGR\n>x\nMMM\n", "dna"),
        ):  # fmt: skip
            self.assertEqual(data.letters_of(text), letters, text)

    def test_hits_are_the_same_in_any_order(self):
        hits = Hits.of(b"a\t1\nb\t2\n")
        self.assertEqual((hits, hits), (Hits.of(b"b\t2\na\t1\n"), Hits.of(b"b\t2\n", b"a\t1\n")))
        for other in (b"a\t1\nb\t3\n", b"a\t1\n", b"a\t1\nb\t2\nb\t2\n"):
            self.assertNotEqual(hits, Hits.of(other))

    def test_lines_are_found_again_and_meet(self):
        line = model.fitted([(x, 3 + 2 * x) for x in (1, 2, 5)])
        self.assertAlmostEqual(line.meets(model.Line(9, 0.5)), 4)
        self.assertIsNone(line.meets(model.Line(7, line.slope)))
        self.assertIsNone(model.fitted([(1, 2), (1, 3)]))

    def test_the_hard_disks_row_is_fitted_and_the_ssds_is_predicted(self):
        reorder = model.Reorder.fitted(0.012)
        self.assertTrue(550 < reorder.cache_mb < 700 and 8e3 < reorder.gap_bytes < 12e3, reorder)
        for megabytes, hdd, ssd in ppblast.FORMAT:
            self.assertTrue(0.4 < reorder.seconds(megabytes, 0.012) / hdd < 1.1)
            self.assertTrue(0.8 < reorder.seconds(megabytes, 0.0002) / ssd < 1.05)

    def test_the_paper_says_what_its_text_says(self):
        counts = [[ppblast.count_of(size, partition) for size in ppblast.SIZES] for partition in ppblast.PARTITIONS]
        self.assertEqual(counts, [[4, 5, 6, 7, 8], [2, 3, 3, 4, 4], [2, 2, 2, 3, 3]])
        self.assertEqual([ppblast.name_of(size) for size in (500, 1000, 1250)], ["500 MB", "1 GB", "1.25 GB"])
        self.assertEqual([round(one.value, 2) for one in ppblast.DISK_OVER_SSD.values()], [1.06, 2.25, 2.83, 3.25, 3.75, 4.18])
        # Overlap alone can't give the average of any number of partitions.
        self.assertTrue(all(2 * n / (n + 1) < ppblast.SPEEDUP_MEAN.value for column in counts for n in column))

    def test_formatting_fitted_predicted_and_measured_is_apart(self):
        def cost(seconds):
            return SimpleNamespace(wall_s=seconds, cpu_s=seconds)

        times = [
            formatting.Times(mb, round(mb * 1e5), cost(mb / 100), round(mb * 1.2e5), cost(mb / 1000), round(mb * 1e5), round(mb * 1e5), cost(mb / 100))
            for mb, *_ in ppblast.FORMAT
        ]  # fmt: skip
        disks = model.Speed(100e6, 100e6, 0.012), model.Speed(500e6, 250e6, 0.0002)
        outcome = formatting.outcome(lab(), times, (100_000_000, cost(2.0), 25_000_000), disks, [])
        self.assertEqual([len(one.rows) for one in outcome.sections], [6, 6, 18, 5, 5, 12, 4])
        growth, ordered, disk, rates = outcome.sections[3:]
        self.assertTrue(all(abs(own - 1) < 1e-9 for own in ours(growth)))
        self.assertEqual([round(one.rows[-1].paper.value, 2) for one in (growth, ordered)], [1.24, 4.86])
        # 4.7: 0.5 s for reading 50 MB, 0.6 for writing 60, and 5 of computing, against 0.1, 0.24 and 5.
        self.assertAlmostEqual(ours(disk)[1], 6.1 / 5.34)
        self.assertEqual((ours(rates)[1], ours(rates)[3]), (50, 0.25))
        self.assertTrue(outcome.chart().startswith("<svg "))

    def test_the_three_ways_are_apart_and_their_quotients_multiply(self):
        points = [
            elapsed.Point(mb, whole(mb), parts(mb, count, serial=True), parts(mb, count))
            for mb in ppblast.SIZES if (count := ppblast.count_of(mb, 500))
        ]  # fmt: skip
        outcome = elapsed.outcome(lab(), points, [])
        seconds, gain, causes, saved, crossing = outcome.sections
        self.assertEqual((len(seconds.rows), len(saved.rows)), (25, 6))
        products = [a * b for a, b in zip(ours(causes)[::2], ours(causes)[1::2])]
        self.assertAlmostEqual(ours(gain)[0], sum(products) / 5)
        # x/100 meets x/200 + 6 at 1,200.
        self.assertAlmostEqual(ours(crossing)[-1], 1200)
        self.assertTrue(outcome.differs[0].startswith("Formatting and search take equally long at 1200"))
        apart = [elapsed.Point(p.megabytes, Whole(p.whole.format_s, 3 * p.whole.format_s + 1, 1, p.whole.hits), p.serial, p.pipelined) for p in points]
        said = elapsed.outcome(lab(), apart, []).differs[0]
        self.assertIn("do not cross between 0 and 2500 MB here; formatting takes longer at 0 of 5", said)

    def test_predictions_stand_next_to_what_was_measured(self):
        points = [
            speedup.Point(mb, whole(mb), [parts(mb, ppblast.count_of(mb, one)) for one in ppblast.PARTITIONS], serial)
            for mb in ppblast.SIZES for serial in [parts(mb, 8, serial=True) if mb == 2000 else None]
        ]  # fmt: skip
        outcome = speedup.outcome(lab(), points, [])
        bound = section(outcome, "overlap alone")
        # 1 GB: 4 and 2 partitions; 1.25 GB: 5, 3, 2; and so on.
        self.assertEqual(len(bound.rows), 2 + 3 + 3 + 3 + 3)
        self.assertTrue(all(row.ours <= row.paper.value + 1e-9 for row in bound.rows))
        for begins in ("seconds: Equation 4.5", "seconds: the recurrence"):
            self.assertTrue(all(abs(row.ratio - 1) < 1e-9 for row in section(outcome, begins).rows))
        self.assertEqual(len(section(outcome, "seconds: predicted").rows), 14 - 3)
        # 2 GB: 20 + 16 s, in eight partitions 8 (2.5 + 0.5) + 2 + 0.5, and one after the other 8 (2.5 + 0.5 + 2 + 0.5).
        for own, expected in zip(ours(section(outcome, "this project")), (1, 1 / 1.1, 44 / 26.5, 36 / 26.5, 3 / 2.5), strict=True):
            self.assertAlmostEqual(own, expected)

    def test_the_optimum_of_the_model_is_found_again(self):
        sweep = [parts(2000, count) for count in partitions.COUNTS]
        points = [
            partitions.Point(mb, one, parts(mb, ppblast.count_of(mb, one))) for mb in partitions.SWEPT_MB for one in ppblast.PARTITIONS
        ]
        outcome = partitions.outcome(lab(), points, sweep, 2e8, [])
        _, best, by_count, optimum = outcome.sections
        for row, n in zip(by_count.rows, partitions.COUNTS):
            self.assertAlmostEqual(row.paper.value, 20 + 0.5 * n + 16 / n + 0.5, places=5)
        # 20 s of formatting and 16 s of searching, half a second per partition and stage: n* = sqrt(16 / 0.5).
        self.assertAlmostEqual(optimum.rows[0].paper.value, 32**0.5, places=5)
        self.assertIn(optimum.rows[0].ours, (4, 8))
        self.assertAlmostEqual(optimum.rows[2].ours, 0.5)
        self.assertTrue(outcome.differs[0].endswith("partitions, inside of the range that was measured."))
        self.assertEqual(len(best.rows), 3)
        few = partitions.outcome(lab(), [], [parts(2000, 1)] * 7, 2e8, [])
        self.assertFalse(few.sections[3].rows)
        self.assertTrue(all(row.paper is None for row in few.sections[2].rows))


if __name__ == "__main__":
    unittest.main()
