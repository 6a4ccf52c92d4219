"""The twenty slowest tests of a run, from what a test program prints."""

import importlib.machinery
import importlib.util
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SLOWEST = Path(__file__).resolve().parents[1] / "slowest"


def _load():
    loader = importlib.machinery.SourceFileLoader("slowest", str(SLOWEST))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("slowest", loader))
    loader.exec_module(module)
    return module


class Slowest(unittest.TestCase):
    def test_the_next_test_begins_when_one_has_ended(self):
        # Two at once: b runs all the time, and next to it a, c and d in turn.
        ends = {"a": 11.0, "c": 14.0, "b": 19.0, "d": 20.0}
        self.assertEqual(_load().times(10.0, ends, 2), {"a": 1.0, "b": 9.0, "c": 3.0, "d": 6.0})

    def test_one_at_a_time(self):
        self.assertEqual(_load().times(0.0, {"a": 1.0, "b": 5.0}, 1), {"a": 1.0, "b": 4.0})

    def test_more_threads_than_tests(self):
        self.assertEqual(_load().times(0.0, {"b": 1.0, "a": 5.0}, 8), {"a": 5.0, "b": 1.0})

    def test_what_programs_print_is_read(self):
        tests = _load().Tests(1)
        for now, line in enumerate(
            [
                "     Running unittests src/lib.rs (target/one-0123456789abcdef)",
                "",
                "running 3 tests",
                "test sum::adds ... ok",
                "a line of a test's own",
                "test sum::is_slow - should panic ... ok",
                "test sum::needs_root ... ignored, it needs root",
                "",
                "test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 3.00s",
                "     Running tests/it/main.rs (target/killed-0123456789abcdef)",
                "running 2 tests",
                "test a ... FAILED",
                "error: test failed, to rerun pass `-p one --test it`",
            ]
        ):
            tests.line(line, now)
        self.assertEqual(
            tests.slowest(2),
            [
                "     2.0 s  target/one-0123456789abcdef sum::is_slow",
                "     1.0 s  target/one-0123456789abcdef sum::adds",
                "   unknown  target/killed-0123456789abcdef: it did not print how each test ended",
            ],
        )

    def test_a_program_is_named_by_its_sources(self):
        with tempfile.TemporaryDirectory() as folder:
            program = f"{folder}/it-0123456789abcdef"
            Path(f"{program}.d").write_text(f"{program}: core/one/tests/it/main.rs core/one/tests/it/a.rs\n")
            self.assertEqual(_load().source(program), "core/one/tests/it/main.rs")

    def test_the_command_s_lines_and_status_are_passed_on(self):
        script = "echo out; echo err >&2; exit 3"
        ran = subprocess.run([sys.executable, SLOWEST, "20", "sh", "-c", script], capture_output=True, text=True)
        self.assertEqual((ran.returncode, ran.stdout), (3, "out\nerr\nThe 20 slowest tests:\n"))


if __name__ == "__main__":
    unittest.main()
