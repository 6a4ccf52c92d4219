"""The whole harness on small data, with a stand-in for merganser."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
STAND_IN = BENCH / "tests" / "stand_in.py"

# Throttled disks need loop devices, and a test of the harness must not make any.
NAMES = [
    "gensort-file", "gensort-view", "lines-file", "csv-file", "read-view-4k", "read-view-100", "random-reads", "one-pass",
]  # fmt: skip


class Run(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = Path(held.name)
        for name in ("merganser", "raw_io", "view_reads"):
            program = self.folder / name
            program.write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} {name} "$@"\n')
            program.chmod(0o755)

    def run_bench(self, *words, broken=None):
        return subprocess.run(
            [
                sys.executable, BENCH / "run.py", "--scale", "0.0001", "--peers", "gnu", "--warm",
                "--merganser", self.folder / "merganser", "--examples", self.folder,
                "--dir", self.folder / "work", "--results", self.folder / "results", *words,
            ],
            capture_output=True, text=True, timeout=600, env={**os.environ, **({"BREAK": broken} if broken else {})},
        )  # fmt: skip

    def result(self, name):
        return json.loads((self.folder / "results" / f"{name}.json").read_text())

    def test_every_scenario_gives_all_its_figures(self):
        ran = self.run_bench(*NAMES, "--pairs", "2")
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        for name in NAMES:
            result = self.result(name)
            self.assertEqual(len(result["rounds"]), 2)
            for claim in result["claims"]:
                if any(peer in claim["what"] for peer in ("DuckDB", "STXXL")):
                    continue
                self.assertEqual(len(claim["figures"]), 2, f"{name}: {claim['what']}")
            self.assertIn("GNU coreutils", result["versions"]["gnu"])
        page = (self.folder / "results" / "README.md").read_text()
        self.assertTrue(all(f"## {name}:" in page for name in NAMES))
        self.assertEqual(page.count("Versions: merganser "), len(NAMES))

    def test_scenarios_of_map_give_their_figures(self):
        names = ["map-words", "map-cores", "map-match", "map-packed", "map-spill"]
        ran = self.run_bench(*names, "--pairs", "1")
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        for name in names:
            for claim in self.result(name)["claims"]:
                if any(peer in claim["what"] for peer in ("DuckDB", "Phoenix", "ripgrep")):
                    continue
                self.assertEqual(len(claim["figures"]), 1, f"{name}: {claim['what']}")

    def test_a_row_of_the_grid(self):
        ran = self.run_bench("grid-100B-quarter-s*", "grid-1MiB-double-equal-view", "--pairs", "1")
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        cells = [f"grid-100B-quarter-{k}-{r}" for k in ("skewed", "sorted") for r in ("file", "view", "stream")]
        for name in [*cells, "grid-1MiB-double-equal-view"]:
            result = self.result(name)
            self.assertEqual(list(result["rounds"][0]), ["merge", "distribute", "auto"])
            self.assertEqual([len(claim["figures"]) for claim in result["claims"]], [1, 1], name)

    def test_rounds_alternate(self):
        said = self.run_bench("gensort-view", "--pairs", "2").stdout
        turns = [line.split()[2] for line in said.splitlines() if line.startswith("  round")]
        self.assertEqual(turns, ["view", "file", "view", "file"])

    def test_data_goes_when_nobody_needs_it_any_more(self):
        self.run_bench("gensort-view", "--pairs", "1")
        self.assertEqual([path.name for path in (self.folder / "work").iterdir()], ["temp"])

    def test_a_peer_that_fails_is_left_out(self):
        peer = self.folder / "peers" / "sort"
        peer.parent.mkdir()
        # The stand-in for merganser sorts with GNU sort, too, but never with --parallel.
        peer.write_text(
            f'#!/bin/sh\ncase "$*" in *--parallel*) echo error: out of ideas >&2; exit 3;; esac\nexec {shutil.which("sort")} "$@"\n'
        )
        peer.chmod(0o755)
        path = f"{peer.parent}:{os.environ['PATH']}"
        with unittest.mock.patch.dict(os.environ, {"PATH": path}):
            ran = self.run_bench("lines-file", "--pairs", "2")
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertEqual(ran.stdout.count("gnu left out: exit 3"), 1, ran.stdout)
        result = self.result("lines-file")
        self.assertIn("out of ideas", result["errors"]["gnu"])
        self.assertEqual([list(one) for one in result["rounds"]], [["merganser"]] * 2)
        page = (self.folder / "results" / "README.md").read_text()
        self.assertIn("Left out, gnu: `error: out of ideas`", page)
        self.assertIn("| GNU sort's time over ours | at least 4 | not measured |", page)

    def test_a_wrong_result_fails(self):
        ran = self.run_bench("lines-file", "--pairs", "1", broken="result")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("results differ", ran.stdout)
        self.assertFalse((self.folder / "results").exists())

    def test_a_failing_merganser_fails(self):
        ran = self.run_bench("lines-file", "--pairs", "1", broken="exit")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("broken on purpose", ran.stdout)

    def test_too_small_a_disk_is_refused_before_anything_is_written(self):
        ran = self.run_bench("gensort-file", "--scale", "1000000")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("must be free", ran.stdout)

    def test_an_unknown_scenario_is_refused(self):
        self.assertEqual(self.run_bench("fastest").returncode, 2)
