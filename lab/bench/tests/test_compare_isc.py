"""The comparisons of Hadoop's maps on the node with the paper's figures."""

import unittest
from dataclasses import asdict, replace

from hadoop.near.pairs import HALF_BYTES, LINE_BYTES, NODE, SLOW, STOCK, TASK_BYTES, Pair
from hadoop.papers.isc import devices, host, jobs, size, task
from hadoop.papers.isc.study import Study, elapsed_s, reach_row, task_s
from hadoop.papers.published import JOB_GAIN
from papers.outcome import Section

from .test_compare import ours, rows

TASK = Pair("wordcount", TASK_BYTES)


def run(times, **more):
    """A run with all times and amounts multiplied by a factor."""
    return {
        "elapsed_s": 10 * times, "wall_s": 12 * times, "maps_s": 8 * times, "task_s": [3 * times, 5 * times],
        "cpu_s": {"maps": 2 * times, "reduces": 1.0, "master": 1.0, "node": 1.0, "datanodes": 0.5, "machine": 6 * times},
        "read_bytes": {"hdfs": 1e3 * times, "calls": 1e6 * times}, "map_rss_bytes": 1e8 * times, "counters": {}, **more,
    }  # fmt: skip


def stocks(times, **more):
    """A run of stock Hadoop, without a node."""
    one = run(times, **more)
    one["cpu_s"]["node"] = 0.0
    return one


def study(*rounds, series=None, more=None):
    """Results with a round for each pair and two numbers. `more` has further figures of a contender's runs."""
    also = {who: {**({"series": series} if series else {}), **(more or {}).get(who, {})} for who in (STOCK, NODE)}
    pairs = [{"cell": asdict(pair), STOCK: stocks(stock, **also[STOCK]), NODE: run(node, **also[NODE])} for pair, stock, node in rounds]
    return Study({"study": "isc-hadoop", "pairs": pairs})


class Pairs(unittest.TestCase):
    def test_a_gain_is_the_median_of_the_rounds_and_not_of_other_pairs(self):
        found = study(
            (TASK, 4.0, 1.0), (replace(TASK, round=2), 9.0, 3.0), (replace(TASK, round=3), 2.0, 2.0), (replace(TASK, files=2), 100.0, 1.0)
        )
        self.assertEqual(found.gain(TASK, elapsed_s), 3.0)
        self.assertEqual(found.both(TASK, task_s), (16.0, 8.0))
        self.assertEqual(found.count(TASK), 3)
        self.assertIsNone(found.gain(Pair("grep", TASK_BYTES), elapsed_s))

    def test_the_least_heap_is_that_of_a_job_that_ended_well(self):
        pairs = [
            {"cell": asdict(replace(TASK, heap_mb=heap, only=STOCK)), STOCK: ended}
            for heap, ended in ((64, {"failed": "no heap"}), (160, run(3.0)), (128, run(2.0)))
        ]
        found = Study({"study": "isc-hadoop", "pairs": pairs})
        self.assertEqual(found.least_heap(STOCK), (128, 2e8))
        self.assertIsNone(found.least_heap(NODE))

    def test_a_target_is_held_or_missed_or_not_measured(self):
        section = Section("t")
        reach_row(section, "a", 2.0, JOB_GAIN, JOB_GAIN)
        reach_row(section, "b", 1.9, JOB_GAIN)
        reach_row(section, "c", None, JOB_GAIN, JOB_GAIN)
        expected = [("a; at least 2: held", 2.0, 2.0), ("b; at least 2: missed", None, 1.9), ("c: not measured", 2.0, None)]
        self.assertEqual([(row.what, row.paper and row.paper.value, row.ours) for row in section.rows], expected)


class Figures(unittest.TestCase):
    def test_the_constant_part_is_taken_off_both(self):
        # A task takes four times the number.
        found = task.outcome(study((TASK, 3.0, 1.0), (Pair("wordcount", LINE_BYTES), 0.5, 0.5)))
        gains = rows(found, 0)
        self.assertEqual(gains[0], ("a map task of 128 MB (10b); at least 2.5: held", 2.5, 3.0))
        self.assertEqual(gains[1][1:], (3.6, 5.0))
        self.assertIsNone(gains[2][2], "64 MB was not measured")
        self.assertEqual([row[:2] for row in rows(found, 1)[:2]], [("128 MB, stock", 15.0), ("128 MB, node", 6.0)])
        self.assertEqual(rows(found, 2), [("stock", 14.6, 100 * 2 / 12), ("node", 36.0, 50.0)])
        self.assertEqual(rows(found, 3), [("not measured", None, None)])

    def test_sizes_that_are_missing_are_told(self):
        found = size.outcome(study((replace(TASK, files=8), 1.5, 1.0)))
        self.assertEqual(rows(found, 0)[0], ("job, 256 MB: not measured", 2.0, None))
        self.assertEqual(rows(found, 0)[2], ("job, 1024 MB; at least 2: missed", 2.0, 1.5))
        self.assertEqual(rows(found, 2)[1:], [("512 MB, 0 rounds: not measured", None, None), ("1024 MB, 1 rounds", None, 1.5)])

    def test_tasks_and_the_machine_are_apart(self):
        found = study((replace(TASK, files=4), 8.0, 2.0), more={NODE: {"counters": {"NODE_BYTES_READ": 6e3}}})
        gains = {row[0]: row[1:] for row in rows(host.outcome(found), 0)}
        self.assertEqual(gains["processor seconds of map tasks' JVMs"], (None, 4.0))
        # Both have a reducer and a master of one second.
        self.assertEqual(gains["processor seconds of tasks and master"], (None, 3.0))
        self.assertIsNone(gains["the least heap of a map task: not measured"][1], "no heap was looked for")

    def test_i43_the_host_is_judged_by_its_average_use_and_by_all_that_crosses_to_it(self):
        # A shorter job with as many processors busy: 6 seconds of them in 12, whatever the number.
        pair = (replace(TASK, files=4), 8.0, 2.0)
        counted = study(pair, more={NODE: {"counters": {"NODE_BYTES_READ": 6e3}}})
        gains = {row[0]: row[1:] for row in rows(host.outcome(counted), 0)}
        self.assertEqual(gains["busy processors of the host, on average, node included; at least 3.7: missed"], (3.7, 1.0))
        # 8,000 bytes against 2,000 of the tasks and 6,000 of the node.
        self.assertEqual(gains["bytes of blocks read by tasks and node; at least 100: missed"], (100.0, 1.0))
        self.assertEqual(gains["bytes of HDFS read by map tasks alone (counter)"], (None, 4.0))
        # The node worked, and the file does not say how much it read.
        gains = {row[0]: row[1:] for row in rows(host.outcome(study(pair)), 0)}
        self.assertEqual(gains["bytes of blocks read by tasks and node: not measured"], (100.0, None))

    def test_a_file_with_series_is_drawn_over_time(self):
        pair = (replace(TASK, files=4), 8.0, 2.0)
        self.assertIn("logarithmic", host.outcome(study(pair)).chart())
        series = {"every_s": 2.0, "tasks": [1.0, 3.0], "node": [0.0, 0.0], "machine": [2.0, 2.0]}
        chart = host.outcome(study(pair, series=series)).chart
        drawn = chart.args[2]
        self.assertEqual(drawn[0], ("tasks' JVMs, stock", [(0.0, 0.5), (2.0, 0.5), (2.0, 1.5), (4.0, 1.5)]))
        self.assertEqual(len(drawn), 5)
        self.assertIn("Figure 13", chart())

    def test_scaling_is_that_of_each_contender(self):
        found = devices.outcome(study((devices.pair(SLOW, 1), 4.0, 2.0), (devices.pair(SLOW, 2), 4.0, 1.0)))
        scale = rows(found, 1)
        self.assertEqual(scale[0], ("maps, 2 DataNodes, node; at least 1.6: held", 2.0, 2.0))
        self.assertEqual(scale[1][2], 1.0)
        self.assertIsNone(scale[2][2])
        # The client starts before the job is submitted and ends after it.
        self.assertEqual(ours(found, 3)[0], 0.5)

    def test_a_job_that_loses_is_shown_as_missed(self):
        found = rows(jobs.outcome(study((Pair("grep", HALF_BYTES), 0.9, 1.0))), 0)
        self.assertEqual(found[7], ("grep; at least 2.5: missed", None, 0.9))
        self.assertEqual(found[0], ("wordcount: not measured", 2.5, None))
