"""The comparison of emulated disks with virtual time: what it prints, and when it fails."""

import contextlib
import io
import os
import shutil
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from emulate import validate

WORDS = ("--quick", "--path-us", "0", "--no-overhead", "--devices", "830")


def times(mean, p99):
    """The times of a hundred reads."""
    return [("read", (100 * mean - 2 * p99) / 98)] * 98 + [("read", p99)] * 2


def log_of(times):
    """What fio writes down of requests that ended in this order."""
    return "".join(f"{at}, {round(time)}, {0 if kind == 'read' else 1}, 4096, 0, 0\n" for at, (kind, time) in enumerate(times))


class Rows(unittest.TestCase):
    def ran(self, seen, valid=True, words=()):
        """Runs all of it with a stand-in for each program; gives the exit status and the lines."""
        args = ["validate.py", *WORDS, *words]
        report = {"valid": valid, "lag": {"late": 1, "requests": 100}}

        def fio(_args, _target, _pattern, _size, depth, log):
            Path(f"{log}_lat.1.log").write_text(log_of([*seen, *[("read", 9e9)] * depth]))

        def simulated(_args, _device, _trace, depth):
            return [*times(1e6, 2e6), *[("read", 7e9)] * depth]

        with (
            mock.patch.object(validate.sys, "argv", args),
            mock.patch.object(validate, "Disk", return_value=SimpleNamespace(target=[], end=lambda: report)),
            mock.patch.object(validate, "fio", fio),
            mock.patch.object(validate, "write_trace"),
            mock.patch.object(validate, "simulated", simulated),
            contextlib.redirect_stdout(io.StringIO()) as out,
            self.assertRaises(SystemExit) as ended,
        ):
            validate.main()
        return ended.exception.code, out.getvalue().splitlines()

    def test_times_within_the_band_are_met(self):
        status, lines = self.ran(times(1.049e6, 1.91e6))
        self.assertEqual(status, 0)
        self.assertEqual(sum(line.endswith("| 1.00 | met |") for line in lines), len(validate.QUICK))
        self.assertIn("5 of 5 rows met, 0 missed, 0 not valid", lines)

    def test_a_time_beyond_the_band_is_missed(self):
        for seen in (times(1.051e6, 2e6), times(0.949e6, 2e6), times(1e6, 2.11e6), times(1e6, 1.89e6)):
            status, lines = self.ran(seen)
            self.assertEqual(status, 1, seen)
            self.assertEqual(sum(line.endswith("| missed |") for line in lines), len(validate.QUICK), seen)

    def test_a_run_that_is_not_valid_shows_nothing(self):
        status, lines = self.ran(times(1e6, 2e6), valid=False)
        self.assertEqual(status, 1)
        self.assertIn("0 of 5 rows met, 0 missed, 5 not valid", lines)

    def test_times_of_a_slower_disk_are_divided(self):
        status, _ = self.ran(times(4e6, 8e6), words=("--slower", "4"))
        self.assertEqual(status, 0)

    def test_requests_that_got_lost_end_the_comparison(self):
        status, _ = self.ran(times(1e6, 2e6)[1:])
        self.assertIn("fio says that 101 requests were issued, and that 100 have ended", status)


class Latencies(unittest.TestCase):
    def test_the_requests_that_end_together_do_not_count(self):
        with tempfile.TemporaryDirectory() as folder:
            lines = [f"{at}, {1000 + at}, {at % 2}, 4096, 0, 0" for at in range(200)] + ["200, 9000000, 0, 4096, 0, 0"] * 8
            Path(folder, "x_lat.1.log").write_text("\n".join(lines))
            seen = validate.of_kinds(validate.seen_by_fio(f"{folder}/x", 2), 8)
        reads, writes = seen["read"], seen["write"]
        self.assertEqual((len(reads), len(writes), max(reads)), (100, 100, 1198 / 2))
        self.assertEqual(validate.mean_and_p99(reads), (1099 / 2, 1196 / 2))

    def test_of_the_simulator_too_the_last_to_end_do_not_count(self):
        def run(command, **_how):
            played = command[command.index("--latencies") + 1]
            # The first request ends last.
            Path(played).write_text("# merganser trace 1\n# x\n0 R 0 4096 +900\n1 W 0 4096 +20\n2 R 0 4096 +30\n")

        args = SimpleNamespace(merganser="merganser")
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(validate.subprocess, "run", run):
            times = validate.simulated(args, "830", f"{folder}/trace", 1)
        self.assertEqual(times, [("write", 20), ("read", 30), ("read", 900)])
        self.assertEqual(validate.of_kinds(times, 1), {"read": [30], "write": [20]})


class Paths(unittest.TestCase):
    def test_a_mib_takes_what_it_takes_longer_than_4_kib(self):
        took = {("read", "4k"): 45, ("read", "1m"): 245, ("write", "1m"): 445}

        def fio(_args, _target, pattern, size, depth):
            self.assertEqual(depth, 1)
            kind = "read" if "read" in pattern else "write"
            return {kind: {"lat_ns": {"mean": took[kind, size] * 1e3}}}

        disk = SimpleNamespace(target=[], end=lambda: None)
        with mock.patch.object(validate, "Disk", return_value=disk), mock.patch.object(validate, "fio", fio):
            self.assertEqual(validate.path_times(SimpleNamespace(nbd=False)), (45, "200,400"))
            took["read", "1m"] = took["write", "1m"] = 40
            self.assertEqual(validate.path_times(SimpleNamespace(nbd=False)), (45, "0,0"))


class Traces(unittest.TestCase):
    def test_the_simulator_gets_the_requests_in_the_order_in_which_fio_issued_them(self):
        with tempfile.TemporaryDirectory() as folder:
            issued = "fio version 3 iolog\n0 /m/disk add\n0 /m/disk open\n"
            issued += "3 /m/disk write 8192 4096\n5 /m/disk read 0 4096\n9 /m/disk read 4096 4096\n9 /m/disk close\n"
            Path(folder, "x_issued").write_text(issued)
            validate.write_trace(f"{folder}/x", f"{folder}/trace")
            trace = Path(folder, "trace").read_text().splitlines()
        self.assertEqual(trace, ["# merganser trace 1", "0 W 8192 4096", "0 R 0 4096", "0 R 4096 4096"])


class Engines(unittest.TestCase):
    def engines(self, *names):
        listed = SimpleNamespace(stdout="Available IO engines:\n" + "".join(f"\t{name}\n" for name in names))
        return mock.patch.object(validate.subprocess, "run", return_value=listed)

    def test_without_the_engine_nbd_its_rows_are_left_out(self):
        job = {"iops": 1, "bw_bytes": 1e6, "lat_ns": {"mean": 1e3}}
        disk = mock.Mock(side_effect=lambda *_, **how: SimpleNamespace(target=[], path="p", end=lambda: None, nbd=how["nbd"]))
        with (
            self.engines("libaio"),
            mock.patch.object(validate, "Disk", disk),
            mock.patch.object(validate, "fio", return_value={"read": job, "write": job}),
            contextlib.redirect_stdout(io.StringIO()) as out,
        ):
            # There is no loop device either.
            validate.subprocess.run.return_value.returncode = 1
            validate.subprocess.run.return_value.stderr = b"none here"
            validate.overhead(SimpleNamespace(slower=1))
        self.assertIn("| NBD: this fio has no engine nbd | | | |", out.getvalue().splitlines())
        self.assertFalse(any(call.kwargs["nbd"] for call in disk.call_args_list))

    def test_the_words_of_the_engine_before_the_data_are_passed_over(self):
        said = SimpleNamespace(stdout=b'fio: connected to NBD server\n{"jobs": [{"read": 1}]}\n')
        args = SimpleNamespace(cpu=None, seconds=1, priority=False)
        with mock.patch.object(validate.subprocess, "run", return_value=said):
            self.assertEqual(validate.fio(args, [], "read", "4k", 1), {"read": 1})

    def test_a_comparison_through_nbd_needs_the_engine(self):
        with (
            self.engines("libaio"),
            mock.patch.object(validate.sys, "argv", ["validate.py", "--nbd"]),
            self.assertRaisesRegex(SystemExit, "this fio has no engine nbd"),
        ):
            validate.main()
        with self.engines("libaio", "nbd"):
            self.assertTrue(validate.has_nbd())


class Awake(unittest.TestCase):
    @unittest.skipUnless(shutil.which("chrt") and shutil.which("taskset"), "no chrt, no taskset")
    def test_a_process_of_the_lowest_priority_runs_on_each_processor_meanwhile(self):
        cpu = min(os.sched_getaffinity(0))
        started = []

        def start(*words, **more):
            started.append(popen(*words, **more))
            return started[-1]

        popen = validate.subprocess.Popen
        with mock.patch.object(validate.subprocess, "Popen", start), validate.awake([cpu]):
            (process,) = started
            deadline = validate.time.monotonic() + 20
            while os.sched_getscheduler(process.pid) != os.SCHED_IDLE or os.sched_getaffinity(process.pid) != {cpu}:
                self.assertLess(validate.time.monotonic(), deadline)
                validate.time.sleep(0.01)
            self.assertIsNone(process.poll())
        self.assertIsNotNone(process.poll())

    def test_no_processor_is_kept_awake_unasked(self):
        with mock.patch.object(validate.subprocess, "Popen") as popen, validate.awake([]):
            popen.assert_not_called()
