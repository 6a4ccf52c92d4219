"""One measured job: its output, its figures, and that no process of it is left."""

import os
import shutil
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from harness import device, limits, machine, measure
from harness.measure import Job, JobError
from harness.tools import REPOSITORY

MIB = 2**20


def run(*args, **settings):
    """Measures with the page cache left alone."""
    return measure.run(*args, cold=False, **settings)


class Measure(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = Path(held.name)

    def test_command_lines_do_not_name_the_folder_of_the_repository(self):
        job = Job(((REPOSITORY / "target/program", "/elsewhere/in"),), output=REPOSITORY / "lab/bench/out")
        self.assertEqual(job.command_line(), "target/program /elsewhere/in > lab/bench/out")

    def test_a_pipeline_is_like_the_shells(self):
        out = self.folder / "out"
        job = Job((("printf", "b\\na\\n"), ("sort",)), output=out)
        cost = run(job, self.folder)
        self.assertEqual(out.read_text(), "a\nb\n")
        self.assertEqual(cost.command, f"printf 'b\\na\\n' | sort > {out}")

    def test_memory_is_the_last_programs_and_processor_time_everybodys(self):
        # Each lives for several polls of its memory.
        spin = "import time; sum(range(3_000_000)); time.sleep(0.3)"
        hold = f"bytearray(b'x') * {100 * MIB}; {spin}"
        cost = run(Job((("python3", "-c", spin), ("python3", "-c", hold))), self.folder)
        self.assertGreater(cost.rss_peak_bytes, 100 * MIB)
        alone = run(Job((("python3", "-c", hold), ("python3", "-c", spin))), self.folder)
        self.assertLess(alone.rss_peak_bytes, 100 * MIB)
        self.assertGreater(alone.cpu_s, 0)

    def test_a_small_programs_memory_is_its_own_not_ours(self):
        ours = bytearray(b"x") * (200 * MIB)
        script = "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done; sleep 0.3"
        count = run(Job((("sh", "-c", script),)), self.folder)
        self.assertLess(count.rss_peak_bytes, len(ours) / 2)

    def test_a_job_ends_when_the_program_alongside_has_ended(self):
        job = Job((("true",),), alongside=("sleep", "0.5"))
        cost = run(job, self.folder)
        self.assertGreaterEqual(cost.wall_s, 0.5)
        self.assertEqual(cost.command, "sleep 0.5 & true > /dev/null")
        with self.assertRaisesRegex(JobError, "exit 1: false"):
            run(Job((("true",),), alongside=("false",)), self.folder)

    def unified(self):
        """Files as those of a system that has control groups of version 2 alone; a group is removed with the files in it."""
        root = self.folder / "cgroup"
        root.mkdir()
        (root / "cgroup.subtree_control").write_text("cpu memory\n")
        names = {"MEMORY_ROOT": root / "memory", "UNIFIED_ROOT": root, "_leave": shutil.rmtree}
        self.enterContext(mock.patch.multiple(limits, **names))
        return root

    def test_i43_a_job_is_in_a_group_of_version_2_where_there_is_no_other(self):
        root = self.unified()
        self.assertTrue(limits.can_limit_memory())
        with limits.memory(64 * MIB) as group:
            self.assertEqual((group.parent, (group / "memory.max").read_text()), (root, str(64 * MIB)))
            cost = run(Job((("sh", "-c", "echo $$"),), capture=True), self.folder, group=group)
            self.assertEqual((group / "cgroup.procs").read_text(), cost.text)
            self.assertEqual((cost.memory_limit_bytes, cost.memory_peak_bytes), (64 * MIB, None), "an old kernel has no peak")
            (group / "memory.peak").write_text("4096\n")
            self.assertEqual(run(Job((("true",),)), self.folder, group=group).memory_peak_bytes, 4096)
        self.assertEqual([path.name for path in root.iterdir()], ["cgroup.subtree_control"])
        self.assertEqual(run(Job((("true",),)), self.folder, 32 * MIB).memory_limit_bytes, 32 * MIB)

    def test_i43_without_the_memory_controller_there_is_no_group(self):
        root = self.unified()
        (root / "cgroup.subtree_control").write_text("cpu memory_other\n")
        self.assertFalse(limits.can_limit_memory())
        self.assertIsNone(run(Job((("true",),)), self.folder, 32 * MIB).memory_limit_bytes)

    @unittest.skipUnless(limits.can_limit_memory(), "no memory control group")
    def test_jobs_share_the_group_of_the_caller(self):
        with limits.memory(64 * MIB) as group:
            costs = [run(Job((("cat", "/proc/self/cgroup"),), capture=True), self.folder, group=group) for _ in range(2)]
            self.assertTrue(all(group.name in cost.text and cost.memory_limit_bytes == 64 * MIB for cost in costs))

    def test_printed_text_is_kept_when_asked_for(self):
        self.assertEqual(run(Job((("echo", "17"),), capture=True), self.folder).text, "17\n")

    def test_what_a_job_leaves_on_the_disk_is_in_its_peak_and_in_the_devices_count(self):
        out = self.folder / "out"
        # Others remove files of the same file system meanwhile, so here the bytes in use are those of the folder.
        with mock.patch.object(measure, "used_bytes", _bytes_below):
            cost = run(Job((("head", "-c", str(32 * MIB), "/dev/urandom"),), output=out), self.folder)
        self.assertEqual(cost.disk_peak_bytes // MIB, 32)
        if device.of_folder(self.folder):
            self.assertGreaterEqual(cost.device_written_bytes, 31 * MIB)

    def test_what_was_removed_before_the_end_is_in_the_peak(self):
        out = self.folder / "out"
        script = f"head -c {32 * MIB} /dev/zero > {out} && sleep 1 && rm {out}"
        with mock.patch.object(measure, "used_bytes", _bytes_below):
            cost = run(Job((("sh", "-c", script),)), self.folder)
        self.assertEqual(cost.disk_peak_bytes // MIB, 32)

    def test_bytes_in_use_are_those_of_the_file_system(self):
        # Others write and remove files of the same file system meanwhile, so one of several looks has to see the file.
        def grows(number):
            before = measure.used_bytes(self.folder)
            with open(self.folder / f"file-{number}", "wb") as file:
                file.write(os.urandom(8 * MIB))
                os.fsync(file.fileno())
            return measure.used_bytes(self.folder) - before >= 7 * MIB

        self.assertTrue(any(grows(number) for number in range(10)))

    def test_a_failure_names_the_command_and_what_it_said(self):
        with self.assertRaisesRegex(JobError, r"exit 2: sort nowhere\n.*nowhere"):
            run(Job((("sort", "nowhere"),)), self.folder)

    def test_a_failure_anywhere_in_a_pipeline_is_one(self):
        with self.assertRaisesRegex(JobError, "exit 1: false"):
            run(Job((("false",), ("cat",))), self.folder)

    def test_a_job_over_its_time_is_ended_with_its_children(self):
        pid_file = self.folder / "pid"
        script = f"sleep 600 & echo $! > {pid_file}; wait"
        with self.assertRaisesRegex(JobError, "ended after"):
            run(Job((("sh", "-c", script),)), self.folder, timeout_s=5)
        pid = int(pid_file.read_text())
        deadline = time.monotonic() + 10
        while _runs(pid) and time.monotonic() < deadline:
            os.sched_yield()
        self.assertFalse(_runs(pid))

    def test_nothing_is_left_in_the_folder(self):
        run(Job((("true",),)), self.folder)
        self.assertEqual(list(self.folder.iterdir()), [])

    @unittest.skipUnless(limits.can_limit_memory(), "no memory control group")
    def test_a_memory_limit_holds(self):
        hold, mkdtemp = ("python3", "-c", f"bytearray(b'x') * {256 * MIB}"), tempfile.mkdtemp
        self.assertGreater(run(Job((hold,)), self.folder, 512 * MIB).memory_peak_bytes, 200 * MIB)
        made = []
        with mock.patch.object(limits.tempfile, "mkdtemp", lambda **how: made.append(mkdtemp(**how)) or made[-1]):
            with self.assertRaisesRegex(JobError, "more memory than 67108864 bytes"):
                run(Job((hold,)), self.folder, 64 * MIB)
        self.assertEqual([os.path.exists(group) for group in made], [False])


class Machine(unittest.TestCase):
    def test_its_short_name_has_no_odd_characters(self):
        described = {"cpu": "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", "cores": 2, "memory_bytes": 24 * 2**30}
        self.assertEqual(machine.slug(described), "xeon-platinum-8481c-2-cores-24-gib")
        folder = machine.results_folder(described, "-study")
        self.assertRegex(folder, r"^\d{4}-\d\d-\d\d-xeon-platinum-8481c-2-cores-24-gib-study$")

    def test_everything_is_told(self):
        told = machine.describe(".")
        self.assertTrue(all(told.values()), told)


def _bytes_below(folder):
    """Bytes of the files in a folder."""
    found = 0
    for path in Path(folder).iterdir():
        try:
            found += path.stat().st_size
        except FileNotFoundError:
            pass  # it has just been removed
    return found


def _runs(pid):
    """Whether a process exists and has not ended. An ended process stays as a zombie until its parent waits for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
