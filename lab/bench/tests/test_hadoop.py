"""The parts of the Hadoop benchmarks that need no cluster: configuration, histories, charts, results."""

import io
import json
import os
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from argparse import Namespace
from contextlib import redirect_stderr
from html.parser import HTMLParser
from pathlib import Path

from harness import browser

from hadoop import chart, cluster, config, history, measure, report, run, scenarios, workloads
from hadoop.config import ACTIVE, STOCK

GOLDEN = Path(__file__).resolve().parent / "golden"
PORTS = config.Ports(*range(20_001, 20_011))
NODE = config.Node("node-0", Path("/n"), (Path("/d1"), Path("/d2")), config.NodePorts(*range(20_020, 20_025)), recovery=True)


class Configuration(unittest.TestCase):
    def test_a_stock_node_knows_nothing_of_ours(self):
        site = config.node_site(NODE, STOCK, "/n/merge.sock")
        self.assertEqual(site["yarn.nodemanager.aux-services.mapreduce_shuffle.class"], config.STOCK_SHUFFLE)
        self.assertFalse([name for name in site if "merganser" in name])

    def test_an_active_node_has_the_handler_and_the_socket_and_keeps_its_ports(self):
        site = config.node_site(NODE, ACTIVE, "/n/merge.sock")
        self.assertEqual(site["yarn.nodemanager.aux-services.mapreduce_shuffle.class"], config.ACTIVE_SHUFFLE)
        self.assertEqual(site["merganser.shuffle.socket"], "/n/merge.sock")
        self.assertEqual(site["yarn.nodemanager.recovery.enabled"], "true")
        self.assertEqual(site["yarn.nodemanager.local-dirs"], "/d1,/d2")
        self.assertEqual(site["yarn.nodemanager.address"], "127.0.0.1:20020")
        self.assertEqual(config.node_mapred_site(NODE), {"mapreduce.shuffle.port": "20023"})

    def test_a_job_can_be_active_on_one_side(self):
        self.assertEqual(config.flavour_settings(STOCK), {})
        self.assertEqual(len(config.flavour_settings(ACTIVE)), 2)
        (only,) = config.flavour_settings(ACTIVE, reduce_side=False)
        self.assertEqual(only, "mapreduce.job.map.output.collector.class")

    def test_the_plugin_is_on_active_class_paths_alone(self):
        jars = config.Jars(Path("/jars"), Path("/plugin.jar"))
        self.assertEqual(jars.classpath(STOCK), "/jars/*")
        self.assertEqual(jars.classpath(ACTIVE), "/plugin.jar:/jars/*")
        with self.assertRaises(ValueError):
            config.Jars(Path("/jars")).classpath(ACTIVE)

    def test_files_are_xml_whatever_the_values(self):
        with tempfile.TemporaryDirectory() as folder:
            config.write(Path(folder) / "conf", core={"a.b": "x < y & z", "n": 3})
            root = ElementTree.parse(Path(folder) / "conf" / "core-site.xml").getroot()
        pairs = {p.findtext("name"): p.findtext("value") for p in root}
        self.assertEqual(pairs, {"a.b": "x < y & z", "n": "3"})

    def test_ports_differ_and_are_free(self):
        ports = cluster.free_ports(20)
        self.assertEqual(len(set(ports)), 20)
        self.assertTrue(all(port in cluster.LISTENED_PORTS for port in ports))


class Processes(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.log = Path(held.name) / "log"

    def test_one_that_ends_early_is_told_with_its_log(self):
        process = cluster.Process("namenode", ["sh", "-c", "echo no such disk; exit 3"], self.log)
        with self.assertRaisesRegex(cluster.ClusterError, "(?s)namenode ended before listening.*no such disk"):
            process.wait_until(lambda: False, "listening")

    def test_one_can_be_stopped_and_killed_more_than_once(self):
        for end in ("stop", "kill"):
            process = cluster.Process("x", ["sleep", "60"], self.log)
            getattr(process, end)()
            self.assertFalse(process.running())
            getattr(process, end)()


class Histories(unittest.TestCase):
    def setUp(self):
        self.told = history.parse((GOLDEN / "terasort.jhist").read_text())

    def test_phases_follow_one_another(self):
        self.assertEqual((self.told.name, self.told.state, self.told.elapsed_s), ("TeraSort", "SUCCEEDED", 15.953))
        self.assertEqual([one.name for one in self.told.attempts], ["m 1", "m 0", "r 0"])
        self.assertEqual([bar.phase for bar in self.told.attempts[2].bars], ["shuffle", "sort", "reduce"])
        for attempt in self.told.attempts:
            for before, after in zip(attempt.bars, attempt.bars[1:]):
                self.assertEqual(before.end_ms, after.start_ms)
        self.assertAlmostEqual(self.told.phase_s("spill"), 0.664)

    def test_counters_are_found_by_name(self):
        self.assertEqual(self.told.counter("FILE_BYTES_WRITTEN"), 32083907)
        self.assertEqual(self.told.counter("NEVER_COUNTED"), 0)

    def test_attempts_that_fail_are_told_with_their_reason(self):
        lines = (GOLDEN / "terasort.jhist").read_text().splitlines()
        lost = {
            "type": "REDUCE_ATTEMPT_FAILED",
            "event": {"lost": {"attemptId": "attempt_1_0001_r_000012_1", "status": "FAILED", "error": "[2026-11-22 12:27:08.600]Killed, 137\n\tat X"}},
        }
        killed = {"type": "MAP_ATTEMPT_KILLED", "event": {"lost": {"attemptId": "attempt_1_0001_m_000003_0", "error": ""}}}
        told = history.parse("\n".join([*lines[:-1], json.dumps(lost), json.dumps(killed), lines[-1]]))
        self.assertEqual(self.told.failures, ())
        self.assertEqual(
            told.failures, (history.Failure("r 12", "FAILED", "Killed, 137"), history.Failure("m 3", "KILLED", ""))
        )

    def test_what_is_none_is_refused(self):
        whole = (GOLDEN / "terasort.jhist").read_text()
        for text, why in (
            ("", "Avro-Json"),
            ("Avro-Binary\n", "Avro-Json"),
            (whole.replace('{"type": "MAP', '{"typ": "MAP', 1), "line 4"),
            ("\n".join(whole.splitlines()[:-1]), "end is missing"),
        ):
            with self.assertRaisesRegex(history.BadHistory, why):
                history.parse(text)


class _Tags(HTMLParser):
    VOID = {"meta"}

    def __init__(self):
        super().__init__()
        self.open, self.links = [], []

    def handle_starttag(self, tag, attrs):
        self.links += [value for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


class Charts(unittest.TestCase):
    def test_a_page_is_whole_and_needs_nothing(self):
        told = history.parse((GOLDEN / "terasort.jhist").read_text())
        page = chart.page("Sort <4 KiB>", "a & b", [("Stock", told), ("Merganser", told)])
        tags = _Tags()
        tags.feed(page)
        self.assertEqual((tags.open, tags.links), ([], []))
        self.assertIn("Sort &lt;4 KiB&gt;", page)
        self.assertEqual(page.count('class="row"'), 6)
        self.assertLess(page.index("Stock: 16.0 s"), page.index("Merganser: 16.0 s"))

    @unittest.skipUnless(browser.find(), "no browser: apt-get install chromium-headless-shell")
    def test_it_fits_a_phone_and_a_desk_and_asks_for_nothing(self):
        told = history.parse((GOLDEN / "terasort.jhist").read_text())
        with tempfile.TemporaryDirectory() as folder, browser.Browser(browser.find()) as shown:
            page = Path(folder) / "chart.html"
            page.write_text(chart.page("Sort", "4 GiB", [("Stock", told), ("Merganser in map tasks only", told)]))
            for width, scheme in [(360, "light"), (360, "dark"), (1280, "light"), (1280, "dark")]:
                with self.subTest(width=width, scheme=scheme):
                    shown.open(page, width, scheme)
                    self.assertLessEqual(shown.value("document.documentElement.scrollWidth"), width)
                    self.assertEqual(shown.requests(), [page.as_uri()])
                    self.assertEqual(shown.complaints(), [])
                    if keep := os.environ.get("MERGANSER_SCREENSHOTS"):
                        shown.screenshot(Path(keep) / f"chart-{width}-{scheme}.png")

    def test_a_job_of_no_time_is_drawn(self):
        empty = history.History("job", "n", "SUCCEEDED", 0, 0.0, {}, (), ())
        self.assertIn("0.0 s", chart.page("t", "n", [("Stock", empty)]))


class Workloads(unittest.TestCase):
    def test_buffers_hold_a_spill_and_no_more(self):
        for record_bytes in (100, 4096, 32768):
            for spills in (1, 4):
                output = 64 * 2**20
                room = workloads.sort_mb(output, record_bytes, spills) * 2**20 * workloads.SPILL_PERCENT
                in_memory = output * (1 + 22 / record_bytes)
                self.assertEqual(-(-in_memory // room), spills, (record_bytes, spills))

    def test_words_are_filled_in(self):
        words = workloads.words_of(workloads.WORKLOADS["join"], ["/u", "/v"], "/o", 2)
        self.assertEqual(words, ["/u", "/v", "/o"])
        self.assertEqual(workloads.words_of(workloads.WORKLOADS["sort"], ["/i"], "/o", 3)[:2], ["-r", "3"])

    def test_every_input_has_a_name_of_its_own(self):
        paths = {
            workloads.input_path(kind, size, record, maps)
            for kind in ("records", "fixed", "tera", "text")
            for size in (1, 2)
            for record in (100, 4096)
            for maps in (1, 2)
        }
        self.assertEqual(len(paths), 2 * 8 + 2 * 4)


class Pretend(measure.Bench):
    """Runs no job: it pretends that ours takes three quarters of stock's time and two thirds of its bytes."""

    def _point(self, point, contenders):
        def one(who):
            share = 1.0 if who == STOCK else 0.75
            written = round(point.size_bytes * (3 if who == STOCK else 2))
            return {
                "elapsed_s": 100.0 * share * point.nodes,
                "wall_s": 105.0 * share,
                "settle_s": 1.0,
                "device_read_bytes": point.size_bytes,
                "device_written_bytes": written,
                "node_manager_rss_bytes": 300 * 2**20,
                "merge_rss_bytes": 0 if who == STOCK else 50 * 2**20,
                "node_manager_cpu_s": 5.0,
                "merge_cpu_s": 0.0 if who == STOCK else 2.0,
                "spills_per_map": point.spills,
                "failures": [],
                "phase_s": dict.fromkeys(chart.PHASES, 10.0),
                "counters": {"CPU_MILLISECONDS": 60_000},
                "merganser": {},
                "output": [],
            }

        told = history.parse((GOLDEN / "terasort.jhist").read_text())
        return [{who: one(who) for who in contenders}] * self.args.pairs, dict.fromkeys(contenders, told)


class Results(unittest.TestCase):
    NAMES = ("sort-4k", "terasort-4k", "join", "memory", "reducers", "nodes")

    def results(self):
        args = Namespace(size=2**30, scale=1.0, device="throttled", contenders=None, points=None, pairs=1)
        bench = Pretend(args, None, lambda text: None)
        machine = dict(cpu="a processor", cores=2, memory_bytes=2**34, kernel="6", system="Linux", disk="d", file_system="ext4")
        settings = {"date": "2026-01-01", "scale": 1.0, "device": "throttled", "machine": machine, "command": "run.py"}
        return [{**settings, **bench.scenario(name, scenarios.SCENARIOS[name])[0]} for name in self.NAMES]

    def test_the_file_that_the_comparisons_read(self):
        made, path = self.results(), GOLDEN / "hadoop.json"
        if os.environ.get("MERGANSER_BLESS"):
            report.write_json(path, made)
        self.assertEqual(json.loads(path.read_text()), made)

    def test_claims_are_judged_at_each_point(self):
        (sort, *_) = self.results()
        written, elapsed = sort["points"][0]["claims"]
        self.assertAlmostEqual(written["median"], 100 / 3)
        self.assertFalse(written["met"])
        self.assertAlmostEqual(elapsed["median"], 25)
        self.assertEqual(len(elapsed["figures"]), 1)

    def test_pages_have_a_row_for_each_claim_and_contender(self):
        results = self.results()
        with tempfile.TemporaryDirectory() as folder:
            for one in results:
                report.write(Path(folder), one, {one["scenario"]: "<html>"})
            page = (Path(folder) / "README.md").read_text()
            self.assertTrue((Path(folder) / "sort-4k-throttled.html").exists())
        claims = sum(len(point["claims"]) for one in results for point in one["points"])
        self.assertEqual(len([line for line in page.splitlines() if line.startswith("| `")]), claims)
        self.assertEqual(page.count("\n| stock |"), sum(len(one["points"]) for one in results))

    def test_pages_tell_of_attempts_that_failed(self):
        (sort, *_) = self.results()
        self.assertEqual(report.failures_list(sort["points"][0]), "")
        for number in (1, 2):
            sort["points"][0]["rounds"][0]["active"]["failures"].append(
                {"name": f"r {number}", "status": "FAILED", "reason": "Container killed on request"}
            )
        self.assertIn("\n- active, attempts failed: 2, Container killed on request", report.page_of(sort))

    def test_every_scenario_has_points_of_different_names(self):
        for name, scenario in scenarios.SCENARIOS.items():
            points = scenario.points(2**27)
            self.assertEqual(len({point.name for point in points}), len(points), name)
            self.assertTrue(all(point.reduce_heap_mb >= 256 for point in points))

    def test_a_scenario_without_the_asked_for_point_says_so(self):
        args = Namespace(size=2**20, scale=1.0, device="plain", contenders=None, points="9 KiB", pairs=1)
        with self.assertRaisesRegex(cluster.ClusterError, "9 KiB"):
            Pretend(args, None, lambda text: None).scenario("record-sweep", scenarios.SCENARIOS["record-sweep"])


class Arguments(unittest.TestCase):
    def refused(self, *words):
        said = io.StringIO()
        with redirect_stderr(said), self.assertRaises(SystemExit):
            run.arguments(words)
        return said.getvalue()

    def test_bad_ones_are_named(self):
        self.assertIn("no scenario is called fastest", self.refused("fastest"))
        self.assertIn("is no size", self.refused("sort-4k", "--size", "many"))
        self.assertIn("is no size", self.refused("sort-4k", "--size", "0"))
        self.assertIn("no contender is called tez", self.refused("sort-4k", "--contenders", "stock,tez"))
        self.assertIn("KEY=VALUE", self.refused("sort-4k", "--set", "x"))

    def test_all_and_sizes(self):
        args = run.arguments(["all", "--size", "2G", "--set", "a.b=c=d"])
        self.assertEqual(args.scenario, list(scenarios.SCENARIOS))
        self.assertEqual((args.size, args.set), (2**31, {"a.b": "c=d"}))
        self.assertEqual(run.size("4096"), 4096)

    def test_command_lines_keep_no_places(self):
        words = ["sort-4k", "--dir", "/x", "--pairs", "2", "--jars=/y", "--device", "plain"]
        self.assertEqual(report.without_paths(words), ["sort-4k", "--pairs", "2", "--device", "plain"])


if __name__ == "__main__":
    unittest.main()
