"""The parts of the measurements with the node that need no cluster."""

import io
import json
import os
import tempfile
import unittest
from argparse import Namespace
from contextlib import redirect_stderr
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from hadoop import history, isc as command
from hadoop.config import Jars, NodePorts, Ports, hdfs_site
from hadoop.near import calls, inputs, jobs, pair as measuring, pairs, processes, web
from hadoop.near.pairs import CONTENDERS, NODE, OWN, STOCK, Pair
from hadoop.kept import Kept

GOLDEN = Path(__file__).resolve().parent / "golden"
ALL = list(pairs.FIGURES)
TASK = Pair("wordcount", pairs.TASK_BYTES)


class Pairs(unittest.TestCase):
    def test_each_pair_is_measured_once_a_round_and_the_least_heap_once(self):
        every = pairs.pairs_of(ALL, 3)
        self.assertEqual(len(every), len(set(every)))
        self.assertEqual(len(every), len({pair.name for pair in every}))
        self.assertEqual([pair.round for pair in every], sorted(pair.round for pair in every))
        self.assertEqual({pair.round for pair in every if pair.only}, {1})
        self.assertEqual(sum(replace(pair, round=1) == TASK for pair in every), 3)
        for name, (_, pairs_of) in pairs.FIGURES.items():
            self.assertEqual(set(pairs.pairs_of([name], 1)), set(pairs_of()), name)

    def test_contenders_begin_in_turn(self):
        self.assertEqual(TASK.contenders, (STOCK, NODE))
        self.assertEqual(replace(TASK, round=2).contenders, (NODE, STOCK))
        self.assertEqual(replace(TASK, only=NODE).contenders, (NODE,))

    def test_names_tell_all_that_decides_a_pair(self):
        device = Pair("wordcount", 5, 12, 2, pairs.SLOW)
        others = [
            replace(device, job="grep"), replace(device, file_bytes=6), replace(device, files=3), replace(device, devices=3),
            replace(device, disk=pairs.FAST), replace(device, heap_mb=7), replace(device, only=NODE), replace(device, round=2),
        ]  # fmt: skip
        self.assertEqual(len(others), len(asdict(device)))
        self.assertEqual(len({one.name for one in [device, *others]}), len(others) + 1)


class Inputs(unittest.TestCase):
    def test_maps_that_run_at_once_read_different_disks(self):
        for devices in pairs.DEVICES:
            files = inputs.on_devices(devices, pairs.DEVICE_FILES)
            self.assertEqual(len(set(files)), pairs.DEVICE_FILES)
            for first in range(0, len(files), devices):
                at_once = files[first : first + devices]
                self.assertEqual(len({name.split("/")[1] for name in at_once}), devices)
            for name in files:
                _, folder, part = name.split("/")
                self.assertLess(int(part[-5:]), inputs.device_files(int(folder.removeprefix("device-"))))

    def test_a_job_gets_its_files_and_only_the_word_count_gets_several(self):
        source = inputs.source(replace(TASK, files=2))
        self.assertEqual(source, ["/input/text-128000000/part-m-00000", "/input/text-128000000/part-m-00001"])
        self.assertEqual(jobs.words_of("wordcount", source, "/o"), [*source, "/o"])
        self.assertEqual(jobs.words_of("grep", ["/i"], "/o"), ["/i", "/o", jobs.GREPPED])
        self.assertEqual(inputs.source(Pair("ranked-inverted-index", 7)), ["/input/triples-7/part-r-00000"])
        several = {pair.job for pair in pairs.pairs_of(ALL, 1) if pair.files > 1}
        self.assertEqual(several, {"wordcount"})

    def test_reviews_are_lines_of_at_most_so_many_bytes(self):
        made = inputs.reviews(1, 5000)
        self.assertLess(4000, len(made))
        self.assertLessEqual(len(made), 5000)
        self.assertEqual(made, inputs.reviews(1, 5000))
        for line in made.decode().splitlines():
            self.assertRegex(line, r"^\d+:\d+_[1-5](,\d+_[1-5])*$")


class Processes(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.proc = Path(held.name)

    def process(self, number, comm, command, ticks=0, resident_kb=1, read=0):
        place = self.proc / str(number)
        place.mkdir(exist_ok=True)
        (place / "comm").write_text(comm + "\n")
        (place / "cmdline").write_text("\0".join(command.split()))
        (place / "stat").write_text(f"{number} (a) b) S " + "0 " * 10 + f"{ticks} {ticks} 0 0\n")
        (place / "status").write_text(f"Name:\ta\nVmHWM:\t   {resident_kb} kB\n" if resident_kb else "Name:\ta\n")
        (place / "io").write_text(f"rchar: {read}\nwchar: 1\nread_bytes: {read // 2}\ncancelled_write_bytes: 0\n")

    def test_jvms_are_told_apart_and_the_last_look_counts(self):
        child = "/bin/java -Xmx1m org.apache.hadoop.mapred.YarnChild 127.0.0.1 1 attempt_17_0001_{}_000000_0 2"
        self.process(1, "java", child.format("m"), ticks=5)
        watch = processes.Watch(self.proc)
        self.process(2, "bash", child.format("m"), ticks=7)
        self.process(3, "java", child.format("r"), ticks=100, resident_kb=3)
        self.process(4, "java", "java org.apache.hadoop.hdfs.server.datanode.DataNode")
        self.process(5, "java", "java org.apache.hadoop.mapreduce.v2.app.MRAppMaster")
        watch.look()
        self.assertEqual({kind: len(found) for kind, found in watch.by_kind().items()}, {"r": 1, "master": 1})
        # The shell becomes the JVM of a map, under the same number.
        self.process(2, "java", child.format("m"), ticks=100, resident_kb=7, read=64)
        watch.look()
        # It ends, and has no memory any more.
        self.process(2, "java", "", ticks=0, resident_kb=0)
        watch.look()
        (one,) = watch.by_kind()["m"]
        ticks = os.sysconf("SC_CLK_TCK")
        self.assertEqual(one, processes.Taken(200 / ticks, 7 * 1024, 64, 32))

    def test_a_series_has_what_was_taken_in_each_second(self):
        series = processes.Series(100.0)
        for now, tasks, machine in ((100.0, 5.0, 50.0), (100.5, 5.4, 50.6), (101.02, 6.0, 51.5), (101.9, 7.0, 53.0), (104.1, 9.0, 57.5)):
            series.look(now, lambda: {"tasks": tasks, "machine": machine})
        # From the third look on, three seconds had passed without one.
        self.assertEqual(series.told(), {"every_s": 1.0, "tasks": [1.0, 1.0, 1.0, 1.0], "machine": [1.5, 2.0, 2.0, 2.0]})
        self.assertEqual(processes.Series(1.0).told(), {"every_s": 1.0})

    def test_the_series_is_of_the_tasks_and_not_of_the_master(self):
        child = "/bin/java org.apache.hadoop.mapred.YarnChild 127.0.0.1 1 attempt_17_0001_{}_000000_0 2"
        watch = processes.Watch(self.proc, {"node": lambda: 3.0})
        self.process(1, "java", child.format("m"), ticks=100)
        self.process(2, "java", child.format("r"), ticks=50)
        self.process(3, "java", "java org.apache.hadoop.mapreduce.v2.app.MRAppMaster", ticks=900)
        watch.look()
        self.assertEqual(watch._totals(), {"tasks": 300 / os.sysconf("SC_CLK_TCK"), "node": 3.0})

    def test_the_machines_time_leaves_out_idle_and_waiting(self):
        ticks = os.sysconf("SC_CLK_TCK")
        text = "cpu  100 20 30 4000 500 6 7 0 0 0\ncpu0 1 2 3 4 5 6 7\n"
        self.assertEqual(processes.machine_cpu_s(text), 163 / ticks)


class Measuring(unittest.TestCase):
    def setUp(self):
        self.told = history.parse((GOLDEN / "terasort.jhist").read_text())
        self.maps = sum(one.name.startswith("m") for one in self.told.attempts)
        self.pair = replace(TASK, files=self.maps)

    def test_only_the_nodes_settings_name_the_node(self):
        stock, node = (measuring.settings(self.pair, who, "/s") for who in CONTENDERS)
        self.assertFalse([key for key in stock if "merganser" in key or "collector" in key or "inputformat" in key])
        added = {key: node[key] for key in set(node) - set(stock)}
        self.assertEqual({key: value for key, value in node.items() if key in stock}, stock, "all else is the same")
        self.assertEqual(added["merganser.node.socket"], "/s")
        self.assertEqual(len(added), 3)
        self.assertEqual(measuring.settings(replace(self.pair, only=STOCK), STOCK, "/s")["mapreduce.map.maxattempts"], 1)

    def test_times_of_maps_are_those_of_the_history(self):
        found = measuring.of_history([self.told])
        self.assertEqual(len(found["task_s"]), self.maps)
        self.assertGreaterEqual(found["maps_s"], max(found["task_s"]))
        self.assertLess(found["maps_s"], found["elapsed_s"])
        self.assertEqual(measuring.of_history([self.told, self.told])["elapsed_s"], 2 * found["elapsed_s"])

    def test_a_map_that_ran_on_the_host_makes_a_pair_invalid(self):
        measuring.check(self.pair, STOCK, self.told, self.maps)
        self.told.counters["Merganser"] = {"MAPS_ON_NODE": self.maps - 1, "MAPS_ON_HOST_BUSY": 1}
        with self.assertRaisesRegex(measuring.Invalid, "maps were on the node: MAPS_ON_HOST_BUSY"):
            measuring.check(self.pair, NODE, self.told, self.maps)
        self.told.counters["Merganser"]["MAPS_ON_NODE"] = self.maps
        measuring.check(self.pair, NODE, self.told, self.maps)
        with self.assertRaisesRegex(measuring.Invalid, "map tasks were seen"):
            measuring.check(self.pair, NODE, self.told, self.maps - 1)
        with self.assertRaisesRegex(measuring.Invalid, "maps instead of"):
            measuring.check(TASK if self.maps > 1 else replace(TASK, files=2), STOCK, self.told, self.maps)
        with self.assertRaisesRegex(measuring.ClusterError, "ended as KILLED"):
            measuring.check(self.pair, STOCK, replace(self.told, state="KILLED"), self.maps)

    def measured(self, pair, digests):
        cluster, runs = SimpleNamespace(data_dirs=()), iter(digests)
        def run(pair, who, *_):
            found = next(runs)
            if isinstance(found, Exception):
                raise found
            return {"elapsed_s": 1.0}, found

        with mock.patch.object(measuring, "_run", run):
            return measuring.measure(pair, None, cluster)

    def test_outputs_must_be_the_same_bytes(self):
        self.assertEqual(self.measured(TASK, ["a", "a"])["output_sha256"], "a")
        with self.assertRaisesRegex(measuring.Invalid, "the outputs differ"):
            self.measured(TASK, ["a", "b"])

    def test_a_heap_that_is_too_small_is_a_result_and_another_failure_is_not(self):
        error = measuring.ClusterError("wordcount failed:\nlog")
        self.assertEqual(self.measured(replace(TASK, only=STOCK), [error])[STOCK], {"failed": "wordcount failed:"})
        with self.assertRaises(measuring.ClusterError):
            self.measured(TASK, [error, "a"])

    def test_a_digest_is_of_all_parts_and_their_names(self):
        def digest(found):
            with (
                mock.patch.object(web, "files", lambda *_: dict.fromkeys(found)),
                mock.patch.object(web, "read", lambda _, path: found[path]),
            ):
                return measuring.digest(None, "/o")

        parts = {"/o/part-r-00000": b"a", "/o/part-r-00001": b"b"}
        backwards = dict(reversed(parts.items()))
        self.assertEqual(digest(parts), digest({"/o/_SUCCESS": b"", **backwards}))
        others = [{"/o/part-r-00000": b"b", "/o/part-r-00001": b"a"}, {"/o/part-r-00000": b"ab"}, {}]
        self.assertEqual(len({digest(one) for one in [parts, *others]}), 4)


class Sites(unittest.TestCase):
    def test_each_datanode_has_its_own_folder(self):
        ports = Ports(*range(10))
        self.assertEqual(hdfs_site(ports, Path("/f"), 1)["dfs.datanode.data.dir"], "file:///f/datanode")
        self.assertEqual(hdfs_site(ports, Path("/f"), 1, Path("/d"))["dfs.datanode.data.dir"], "file:///d")


class Command(unittest.TestCase):
    def test_what_makes_no_sense_is_refused(self):
        for words in (["nothing"], ["size", "--rounds", "0"], ["size", "--minutes", "0"]):
            with self.assertRaises(SystemExit), redirect_stderr(io.StringIO()):
                command.arguments(words)
        self.assertEqual(command.arguments(["all"]).figure, ALL)

    def test_the_golden_file_that_the_comparisons_read_has_the_form_of_ours(self):
        golden = json.loads((GOLDEN / "isc.json").read_text())
        every = [asdict(pair) for pair in pairs.pairs_of(ALL, 1)]
        self.assertEqual([one["cell"] for one in golden["pairs"]], every)
        with tempfile.TemporaryDirectory() as folder:
            kept = Kept(Path(folder) / "pairs")
            kept.put(TASK, {STOCK: {}, NODE: {}})
            args = Namespace(results=Path(folder) / "r", json=Path(folder) / "more.json")
            command.write(kept, args, pairs.pairs_of(ALL, 1), {})
            written = json.loads((Path(folder) / "r" / "isc.json").read_text())
            self.assertEqual(written, json.loads((Path(folder) / "more.json").read_text()))
        self.assertEqual(set(golden), set(written))
        self.assertEqual(len(written["pairs"]), 1)
        told = history.parse((GOLDEN / "terasort.jhist").read_text())
        for one in golden["pairs"]:
            for who in {STOCK, NODE} & set(one):
                if "failed" not in one[who]:
                    self.assertLessEqual(set(measuring.of_history([told])), set(one[who]))

    def test_what_an_earlier_call_wrote_is_not_lost_when_its_pairs_are_not_here(self):
        with tempfile.TemporaryDirectory() as folder:
            args = Namespace(results=Path(folder) / "r", json=None)
            every = pairs.pairs_of(ALL, 2)
            first = Kept(Path(folder) / "first")
            for pair in (TASK, replace(TASK, round=2)):
                first.put(pair, {"told": "first"})
            (first.folder / "calls.json").write_text('[{"name": "a call"}]')
            command.write(first, args, every, {})
            # A checkout that has measured a pair that is there, and one that is not.
            second, other = Kept(Path(folder) / "second"), Pair("grep", pairs.HALF_BYTES)
            for pair in (TASK, other):
                second.put(pair, {"told": "second"})
            command.write(second, args, every, {})
            written = json.loads((Path(folder) / "r" / "isc.json").read_text())
            found = {(one["cell"]["job"], one["cell"]["round"]): one["told"] for one in written["pairs"]}
            self.assertEqual(found, {("wordcount", 1): "second", ("grep", 1): "second", ("wordcount", 2): "first"})
            self.assertEqual(written["calls"], [{"name": "a call"}])

    def test_pairs_say_whether_they_are_of_another_build(self):
        here = {"commit": "c", "merganser": "1", "plugin": "2", "workloads": "3"}
        run = {"elapsed_s": 2.0, "task_s": [2.0], "cpu_s": {"maps": 3.0, "machine": 9.0}, "map_rss_bytes": 1}
        with tempfile.TemporaryDirectory() as folder:
            kept, alone = Kept(Path(folder)), replace(TASK, only=STOCK)
            self.assertIn("missing", command.state_of(TASK, kept, here))
            kept.put(TASK, {STOCK: run, NODE: run, "build": here})
            kept.put(alone, {STOCK: run, "build": here})
            self.assertNotIn("build", command.state_of(TASK, kept, here))
            for name in ("merganser", "plugin", "workloads"):
                self.assertTrue(command.state_of(TASK, kept, {**here, name: "x"}).endswith("; of another build (c)"), name)
            self.assertNotIn("build", command.state_of(alone, kept, {**here, "merganser": "x"}))
            kept.put(TASK, {STOCK: run, NODE: run})
            self.assertTrue(command.state_of(TASK, kept, here).endswith("; its build was not recorded"))

    def test_a_result_is_told_in_a_line(self):
        taken = {"maps": 3.0, "machine": 9.0}
        run = {"elapsed_s": 20.0, "task_s": [2.0, 4.0], "cpu_s": taken, "map_rss_bytes": 100 << 20}
        said = command.line_of(replace(TASK, only=STOCK), {STOCK: run})
        self.assertIn("stock 20.0 s, task 3.00 s, maps' JVMs 3.0 s of processor, machine 9.0 s, RSS 100 MiB", said)
        said = command.line_of(TASK, {STOCK: run, NODE: {"failed": "x"}})
        self.assertIn("node failed", said)


if __name__ == "__main__":
    unittest.main()
