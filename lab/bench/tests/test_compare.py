"""The comparisons with the papers' figures: the command, the tables, the charts, and ActiveSort's jobs on Hadoop."""

import io
import json
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random

from hadoop import compare, scenarios
from hadoop.papers import active, measured, published
from papers import svg
from papers.outcome import CompareError, Outcome, Section, as_json, figure, over, text

GOLDEN = Path(__file__).resolve().parent / "golden"
FILES = {"hadoop": GOLDEN / "hadoop.json", "ssd-hadoop": GOLDEN / "study.json", "isc-hadoop": GOLDEN / "isc.json"}


def printed(*words):
    """What the command prints, a line an entry, with single spaces."""
    said = io.StringIO()
    with redirect_stdout(said):
        compare.main([str(word) for word in words])
    return [" ".join(line.split()) for line in said.getvalue().splitlines()]


def refused(*words):
    """The sentence of a command that is refused."""
    said = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(said):
        try:
            compare.main([str(word) for word in words])
        except SystemExit as error:
            return error.code if isinstance(error.code, str) else said.getvalue().splitlines()[-1]
    raise AssertionError("it was not refused")


def rows(outcome, section):
    """The lines of a table: name, the paper's figure, ours."""
    return [(row.what, row.paper and row.paper.value, row.ours) for row in outcome.sections[section].rows]


def ours(outcome, section):
    """Our figures of a table."""
    return [row.ours for row in outcome.sections[section].rows]


GIVEN_NUMBERS = {"cell", "settings", "round", "scale", "slower", "sort_mb", "factor", "block_mb", "lag", "attempts", "each"}
"""Parts of the files that say what was measured, not how it ended."""
POWERS = (0.0, 0.01, 0.1, 1.0, 3.0)
"""How far results are changed, as powers of 10. A statement is 1 or 0: some hold if nothing differs, others if much does."""
TRIES = 100
"""Changes with each of them, at most: until every figure has changed."""


def changed(value, random, power, name=""):
    """Results with each measured number multiplied by a factor of its own."""
    if isinstance(value, dict):
        if name == "cell" and value.get("only"):
            # A search for the least heap: what it tried is its result.
            return {**value, "heap_mb": changed(value["heap_mb"], random, power)}
        return {key: changed(one, random, power, key) for key, one in value.items()} if name not in GIVEN_NUMBERS else value
    if isinstance(value, list):
        return [changed(one, random, power, name) for one in value]
    if name in GIVEN_NUMBERS or isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if power == 0.0:
        return type(value)(1)
    if value == 0:
        return random.choice((0, 1))
    return type(value)(value * 10 ** random.uniform(-power, power)) or 1


class Rows(unittest.TestCase):
    def test_i43_every_figure_of_ours_changes_with_the_results(self):
        for name, kind in compare.NAMES.items():
            random, figures, names = Random(43), {}, {}
            told = json.loads(FILES[kind].read_text())
            for power in POWERS * TRIES:
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder) / "r.json"
                    path.write_text(json.dumps(changed(told, random, power)))
                    outcome = compare.compare(name, path)
                for table, section in enumerate(outcome.sections):
                    for place, row in enumerate(section.rows):
                        if row.ours is not None:
                            figures.setdefault((table, place), set()).add(row.ours)
                            names[table, place] = f"{section.title}: {row.what}"
                if all(len(found) > 1 for found in figures.values()):
                    break
            self.assertTrue(figures, name)
            for place, found in figures.items():
                with self.subTest(f"{name}: {names[place]}"):
                    self.assertGreater(len(found), 1)


class Command(unittest.TestCase):
    def test_every_comparison_prints_its_figures_and_writes_only_the_requested_files(self):
        for name, kind in compare.NAMES.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                j, p = Path(folder) / "j", Path(folder) / "p.svg"
                lines = printed(name, "--results", FILES[kind], "--json", j, "--plot", p)
                self.assertTrue(lines[0].startswith(f"{name}: "), lines[0])
                self.assertTrue(any(line.endswith(" paper ours ratio") for line in lines), lines)
                self.assertEqual(sorted(path.name for path in Path(folder).iterdir()), ["j", "p.svg"])
                told = json.loads(j.read_text())
                self.assertEqual(told["experiment"], name)
                self.assertTrue(told["differs"])
                every = [row for section in told["sections"] for row in section["rows"]]
                self.assertGreater(sum(1 for row in every if row["ours"] is not None), 3)
                compared = [row for row in every if row["ratio"] is not None]
                self.assertTrue(compared)
                for row in compared:
                    self.assertAlmostEqual(row["ratio"], row["ours"] / row["paper"])
                for row in every:
                    self.assertEqual(row["paper"] is not None, {"source", "kind", "ours_is"} <= set(row), row)
                drawn = p.read_text()
                self.assertTrue(drawn.startswith("<svg ") and drawn.endswith("</svg>\n"))
                self.assertNotIn("nan", drawn)

    def test_the_list_names_every_comparison(self):
        self.assertEqual([line.split()[0] for line in printed("--list")], list(compare.NAMES))
        self.assertEqual(printed(), printed("--list"))

    def test_what_makes_no_sense_is_refused(self):
        self.assertIn("no comparison is called magic", refused("magic"))
        needed = refused("isc-hadoop-size")
        self.assertIn("isc-hadoop-size needs --results FILE; as root, `python3", needed)
        self.assertIn("lab/bench/hadoop/isc.py size --json FILE", needed)
        self.assertIn("run.py sort-4k terasort-4k join --json FILE", refused("hadoop-io"))
        self.assertIn("study.py size --json FILE", refused("ssd-hadoop-size"))
        plot = refused("hadoop-io", "--results", FILES["hadoop"], "--plot", "x.png")
        self.assertIn("--plot: 'x.png' does not end in .svg, the one kind of plot", plot)

    def test_files_that_are_something_else_are_refused_in_one_sentence(self):
        other = '{"study": "other", "scale": 1, "cells": [], "pairs": []}'
        for name, content, expected in (
            ("hadoop-io", "{}", "no result of lab/bench/hadoop/run.py"),
            ("hadoop-io", "nothing", "no result of lab/bench/hadoop/run.py"),
            ("hadoop-nodes", "[]", "no result of nodes; `run.py nodes --json FILE` makes one"),
            ("hadoop-io", "[]", "no result of sort-4k; `run.py sort-4k terasort-4k join --json FILE` makes one"),
            ("ssd-hadoop-size", "[]", "no file of lab/bench/hadoop/study.py"),
            ("ssd-hadoop-size", '{"study": "ssd-hadoop"}', "no file of lab/bench/hadoop/study.py: 'scale' is missing"),
            ("ssd-hadoop-size", other, "is of the study 'other', not ssd-hadoop"),
            ("ssd-hadoop-size", FILES["isc-hadoop"].read_text(), "is of the study 'isc-hadoop', not ssd-hadoop"),
            ("isc-hadoop-size", "[]", "no isc.json of lab/bench/hadoop/isc.py"),
            ("isc-hadoop-size", '{"study": "isc-hadoop", "pairs": [{"cell": {}}]}', "no isc.json of lab/bench/hadoop/isc.py"),
            ("isc-hadoop-size", FILES["ssd-hadoop"].read_text(), "is of the study 'ssd-hadoop', not isc-hadoop"),
        ):
            with self.subTest(f"{name}: {content[:30]}"), tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "r.json"
                path.write_text(content)
                said = refused(name, "--results", path)
                self.assertTrue(said.startswith(f"compare: {path}: {expected}"), said)
                self.assertNotIn("\n", said)
        self.assertEqual(refused("hadoop-io", "--results", "/missing"), "compare: /missing: No such file or directory")

    def test_a_figure_that_is_missing_or_a_text_is_refused(self):
        damaged = {
            "hadoop": lambda told: told[0]["points"][0]["rounds"][0]["active"],
            "ssd-hadoop": lambda told: told["cells"][3],
            "isc-hadoop": lambda told: told["pairs"][2]["node"],
        }
        for name in ("hadoop-io", "ssd-hadoop-size", "isc-hadoop-size"):
            kind = compare.NAMES[name]
            for damage in (lambda one: one.pop("elapsed_s"), lambda one: one.update(elapsed_s="1")):
                with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                    told, path = json.loads(FILES[kind].read_text()), Path(folder) / "r.json"
                    damage(damaged[kind](told))
                    path.write_text(json.dumps(told))
                    self.assertRegex(refused(name, "--results", path), "no (result|file|isc.json) of lab/bench/hadoop/")

    def test_published_figures_stand_next_to_ours(self):
        lines = printed("hadoop-nodes", "--results", FILES["hadoop"])
        self.assertIn("2 nodes 1.50 1.33 0.889", lines)
        self.assertIn("ours: a processor, 2 cores, 16 GiB, ext4, Linux 6", lines)
        self.assertIn("nodes: 2026-01-01, 1 round, build not recorded, input of 1,024 to 2,048 MiB", lines)
        lines = "\n".join(printed("ssd-hadoop-size", "--results", FILES["ssd-hadoop"]))
        self.assertIn("sort, 10 GB, HDD; 3 rounds, 95.0 to 108.0", lines)
        self.assertIn("sort, 20 GB, SSD: not valid, ", lines)
        self.assertIn("ours: on a machine that the file does not describe", lines)
        lines = printed("isc-hadoop-host", "--results", FILES["isc-hadoop"])
        for row in (
            "busy processors of the host, on average, node included; at least 3.7: missed 3.70 1.09 0.293",
            "processor seconds of map tasks' JVMs - 4.00 -",
            "bytes of blocks read by tasks and node; at least 100: missed 100 1.000 0.01000",
            "the least heap of a map task; at least 3: held - 6.67 -",
            "peak memory of its JVM, with its least heap; at least 3: held 3.00 3.00 1.00",
            "the whole machine, node - 38.0 -",
        ):
            self.assertIn(row, lines)

    def test_the_goals_of_the_runner_are_the_published_figures(self):
        claims = scenarios.SCENARIOS["sort-4k"].claims
        self.assertEqual([claim.at_least for claim in claims], [published.LESS_WRITTEN.value, published.LESS_TIME.value])


class Measured(unittest.TestCase):
    """Issue 43: the head of a table was that of the first scenario, and named no date, rounds, build or input."""

    def test_i43_each_scenario_has_a_line_with_its_own_input_build_and_machine(self):
        sort, join = scenario("sort-4k", [("", 4.0, 3.0)]), scenario("join", [("a", 4.0, 3.0), ("b", 4.0, 3.0)])
        sort |= {"date": "2026-01-02", "build": {"commit": "0c0ffee", "merganser": "12"}}
        join["points"][0]["rounds"] *= 3
        join["points"][0]["settings"]["size_bytes"] = 1 << 28
        expected = [
            "sort-4k: 2026-01-02, 1 round, build 0c0ffee, input of 1,024 MiB",
            "join: dates not recorded, 1 to 3 rounds, build not recorded, input of 256 to 1,024 MiB",
        ]
        self.assertEqual(measured.scenarios([sort, join]), expected)
        sort["machine"] = {"cpu": "a processor", "cores": 2, "memory_bytes": 3 << 30, "file_system": "ext4", "kernel": "6"}
        told = measured.scenarios([sort, join])
        self.assertTrue(told[0].endswith(", a processor, 2 cores, 3 GiB, ext4, Linux 6"), told)
        self.assertTrue(told[1].endswith(", on a machine that the file does not describe"), told)

    def test_i43_cells_and_pairs_have_the_dates_of_all_that_is_shown(self):
        cells = [
            {"valid": True, "date": "2026-01-03", "build": {"commit": "b"}, "rounds": [1, 2]},
            {"valid": True, "date": "2026-01-01", "build": {"commit": "a"}},
            {"valid": True},
            {"valid": False, "date": "2025-01-01"},
        ]
        expected = (
            "2026-01-01 to 2026-01-03, some dates not recorded, 1 to 2 rounds, build a, b, some not recorded, "
            "input of 0.050 of the paper's (traces: all of it)"
        )
        self.assertEqual(measured.cells(cells, 0.05), [expected])
        self.assertEqual(measured.cells(cells[3:], 0.05), ["no valid cell"])
        pair = {"cell": {"file_bytes": 64_000_000, "files": 4}, "date": "2026-01-01"}
        self.assertEqual(measured.pairs([pair], [2]), ["2026-01-01, 2 rounds, build not recorded, inputs of up to 256 MB"])
        self.assertEqual(measured.pairs([], []), ["no pair"])

    def test_i43_every_comparison_says_when_and_how_often_it_was_measured(self):
        for name, kind in compare.NAMES.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                j = Path(folder) / "j"
                lines = printed(name, "--results", FILES[kind], "--json", j)
                told = json.loads(j.read_text())["measured"]
                self.assertTrue(told)
                self.assertEqual(lines[3 : 3 + len(told)], told)
                self.assertRegex(told[0], r"(2026|dates not recorded).* rounds?, build.* inputs? of")


class Tables(unittest.TestCase):
    def test_the_table_and_the_json_say_the_same(self):
        section = Section("Table 9, seconds")
        section.row("radix", 0.1, published.Published(0.29, "P", "Table 9"))
        section.row("more", paper=published.Published(26.33, "P", "Table 9", published.DERIVED))
        section.row("less", 1234.5)
        machine = {"cpu": "a processor", "cores": 2, "memory_bytes": 3 << 30, "file_system": "ext4", "kernel": "6"}
        outcome = Outcome([section], ["All of it."], None, machine)
        expected = """n: a
paper: s
ours:  a processor, 2 cores, 3 GiB, ext4, Linux 6

Table 9, seconds       paper        ours    ratio
radix                  0.290       0.100    0.345
more                    26.3           -        -
less                       -        1234        -

ratio is ours over the paper's. What differs:
- All of it.
"""
        self.assertEqual(text("n", "a", "s", outcome), expected)
        told = as_json("n", "a", "s", outcome)["sections"][0]["rows"]
        self.assertEqual([row["ours"] for row in told], [0.1, None, 1234.5])
        self.assertEqual((told[1]["source"], told[1]["kind"], told[1]["ours_is"]), ("P, Table 9", "derived", "measured"))
        self.assertNotIn("source", told[2])

    def test_figures_have_three_digits_or_all_before_the_point(self):
        for number, expected in ((0, "0"), (0.00123, "0.00123"), (9.999, "10.00"), (46040.5, "46040"), (1.0, "1.00"), (None, "-")):
            self.assertEqual(figure(number), expected)

    def test_a_ratio_of_nothing_is_infinite_and_no_figure_for_programs(self):
        self.assertEqual((over(3, 2), over(3, 0)), (1.5, float("inf")))
        section = Section("t")
        section.row("gain", over(3, 0))
        self.assertIsNone(as_json("n", "a", "s", Outcome([section], [], None, {}))["sections"][0]["rows"][0]["ours"])


class Charts(unittest.TestCase):
    def test_lines_lie_where_their_figures_are(self):
        drawn = svg.lines("sorts", ("MB", "s"), [("radix & <tags>", True, [(100, 0), (400, 10)])])
        self.assertIn('points="70.0,380.0 740.0,50.0"', drawn)
        self.assertIn('cx="405.0"', svg.lines("t", ("MB", "s"), [("one", False, [(1, 1), (10, 5), (100, 10)])]), "logarithmic")
        self.assertIn("stroke-dasharray", drawn)
        self.assertIn("radix &amp; &lt;tags&gt;", drawn)
        self.assertEqual((drawn.count("<svg"), drawn.count("</svg>")), (1, 1))

    def test_a_bar_ten_times_as_high_is_a_power_longer(self):
        drawn = svg.bars("t", "MB/s", [("a", 1, True), ("b", 10, False), ("c", 100, False)])
        for width in ('width="1.0"', 'width="190.0"', 'width="380.0"'):
            self.assertIn(width, drawn)

    def test_points_are_where_their_figures_are(self):
        series = [("reads", [(0, 0), (100, 10)]), ("writes", [])]
        self.assertIn("M70.0 378.0h2v2h-2zM740.0 48.0h2v2h-2z", svg.plane("t", ("s", "GB"), series, joined=False))
        joined = svg.plane("t", ("s", "GB"), series, joined=True)
        self.assertIn('<path d="M70.0 380.0L740.0 50.0" fill="none" stroke=', joined)

    def test_the_largest_figure_is_the_darkest_and_a_missing_one_is_open(self):
        drawn = svg.heat("t", ["a"], ["x", "y", "z"], ("columns", "rows"), [("HDD", [[10, 20, None]])])
        self.assertIn('fill="rgb(255,255,255)"', drawn)
        self.assertIn('fill="rgb(221,126,51)"', drawn)
        self.assertEqual(drawn.count('fill="none"'), 1)

    def test_one_figure_and_none_are_drawn_too(self):
        for drawn in (
            svg.lines("", ("", ""), [("one", False, [(5, 5)])]),
            svg.lines("", ("", ""), []),
            svg.bars("", "", []),
            svg.bars("", "", [("nothing", 0, False)]),
            svg.plane("", ("", ""), [], joined=False),
            svg.heat("", ["a"], ["x"], ("", ""), []),
            svg.heat("", ["a"], ["x"], ("", ""), [("HDD", [[None]])]),
            svg.heat("", ["a"], ["x"], ("", ""), [("HDD", [[5]])]),
        ):
            self.assertTrue(drawn.endswith("</svg>\n"))
            self.assertNotRegex(drawn, "nan|inf")


def scenario(name, points):
    """A result with points of a name, and seconds and MiB of stock and ours."""

    def run(amount):
        return {"elapsed_s": amount, "device_read_bytes": amount * 2**20, "device_written_bytes": amount * 2**20}

    settings = {"size_bytes": 1 << 30, "record_bytes": 4096, "nodes": 1, "reduces_at_once": 1}
    return {
        "scenario": name,
        "device": "throttled",
        "points": [
            {"name": point, "settings": dict(settings), "rounds": [{"stock": run(stock), "active": run(active)}]}
            for point, stock, active in points
        ],
    }


class ActiveSort(unittest.TestCase):
    def test_a_file_has_one_result_or_a_list(self):
        one = scenario("sort-4k", [("", 4.0, 3.0)])
        for content in (one, [one]):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "r.json"
                path.write_text(json.dumps(content))
                (found,) = active.read(path, ["sort-4k"])
            self.assertEqual(active.both(found["points"][0], active.written), (4.0, 3.0))
            self.assertEqual(active.less(found["points"][0], active.elapsed_s), 25.0)

    def test_a_point_without_rounds_is_refused(self):
        one = scenario("sort-4k", [("", 4.0, 3.0)])
        one["points"][0]["rounds"] = []
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "r.json"
            path.write_text(json.dumps(one))
            with self.assertRaisesRegex(CompareError, "r.json: a point without rounds"):
                active.read(path, ["sort-4k"])

    def test_the_median_is_that_of_a_round(self):
        one = scenario("sort-4k", [("", 100.0, 60.0)])["points"][0]
        one["rounds"] += scenario("sort-4k", [("", 100.0, 90.0)])["points"][0]["rounds"]
        self.assertEqual(active.both(one, active.elapsed_s), (100.0, 60.0))
        self.assertAlmostEqual(active.less(one, active.elapsed_s), 10.0)

    def test_the_best_workload_stands_next_to_the_papers(self):
        found = active.elapsed(
            [scenario(name, [("", *both)]) for name, both in (("sort-4k", (100.0, 60.0)), ("terasort-4k", (100.0, 70.0)), ("join", (50.0, 55.0)))]
        )
        self.assertEqual(rows(found, 0)[0], ("the best workload", 36.1, 40.0))
        self.assertEqual(ours(found, 1), [0.0], "the join was slower")
        self.assertEqual(len(rows(found, 2)), 6)

    def test_bytes_are_held_against_stock_and_against_the_input(self):
        found = active.io([scenario(name, [("", 3072.0, 2048.0)]) for name, _ in active.WORKLOADS])
        self.assertAlmostEqual(ours(found, 0)[0], 100 / 3)
        self.assertEqual(ours(found, 1)[:2], [3.0, 2.0])

    def test_the_texts_statements_about_memory_are_judged(self):
        points = [("1 GB", 300.0, 150.0), ("2 GB", 200.0, 105.0), ("4 GB", 130.0, 100.0), ("8 GB", 99.0, 100.0)]
        self.assertEqual(ours(active.memory([scenario("memory", points)]), 1), [0.0, 1.0, 1.0])
        with self.assertRaisesRegex(CompareError, "memory: the point 'all' names no memory"):
            active.memory([scenario("memory", [("all", 1.0, 1.0)])])

    def test_steadiness_is_judged(self):
        for slowest, steady in ((110.0, 1.0), (130.0, 0.0)):
            points = [("1 at once", 200.0, 100.0), ("2 at once", 220.0, slowest)]
            found = active.reducers([scenario("reducers", points)])
            self.assertEqual(ours(found, 1), [steady, 0.0, 1.0])

    def test_several_nodes_stand_next_to_the_papers(self):
        one = scenario("nodes", [("1 node", 30.0, 20.0), ("2 nodes", 36.0, 24.0)])
        one["points"][1]["settings"]["nodes"] = 2
        self.assertEqual(rows(active.nodes([one]), 0), [("1 node", None, 1.5), ("2 nodes", 1.5, 1.5)])
