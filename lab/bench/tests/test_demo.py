"""The demonstration's text: taken from archives, cut to size, every line ended."""

import contextlib
import io
import shutil
import tarfile
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import demo


def tar(mode, files):
    """A tar archive of `files`, name to contents."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode=mode) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return held.getvalue()


class Text(unittest.TestCase):
    def test_sources_are_found_in_the_archive_within_the_package(self):
        inner = tar("w:xz", {"linux/main.c": b"int main;\n", "linux/logo.ppm": b"P6", "linux/empty.h": b""})
        package = tar("w", {"./usr/share/doc/copyright": b"text", "./usr/src/linux-source-6.1.tar.xz": inner})
        self.assertEqual(list(demo.nested_files(io.BytesIO(package))), [b"int main;\n"])

    def test_every_file_ends_its_last_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "text"
            demo.fill(path, [b"one", b"two\n"])
            self.assertEqual(path.read_bytes(), b"one\ntwo\n")

    def test_no_more_is_taken_than_is_wanted(self):
        def contents():
            yield b"12345\n"
            raise AssertionError("asked for more")

        with tempfile.TemporaryDirectory() as folder, mock.patch.object(demo, "TEXT_BYTES", 6):
            demo.fill(Path(folder) / "text", contents())

    def test_the_newest_package_is_the_one_with_the_largest_numbers(self):
        names = ["linux-source-6.12", "linux-source-6.1", "linux-source-6.9"]
        self.assertEqual(sorted(names, key=demo.version)[-1], "linux-source-6.12")


class Disks(unittest.TestCase):
    SAID = (
        "device        830: Samsung SSD 830 (8 GB)\n"
        "lag           3 of 4,000 requests late (0.07 %), 0.10 % of the busy time; answers came 2 us after the model\n"
    )

    def test_the_lag_is_told(self):
        self.assertEqual(demo.lag_of(self.SAID), "3 of 4,000 requests late (0.07 %), 0.10 % of the busy time")

    def test_a_run_that_is_not_valid_is_called_so(self):
        said = demo.lag_of(self.SAID + "merganser: THIS RUN IS NOT VALID: 1.2 % of the requests were late")
        self.assertTrue(said.startswith("NOT VALID, the machine was too slow: 3 of 4,000"))
        self.assertEqual(demo.lag_of("merganser: no such file"), "no lag was reported")

    def test_a_machine_without_disks_says_why(self):
        with mock.patch.object(demo.os, "geteuid", return_value=1000):
            self.assertEqual(demo.on_emulated_disks(None), ["No sort on emulated disks: that needs root."])

    def test_a_disk_that_cannot_be_emulated_ends_only_its_part(self):
        data = demo.DataSet("records", Path("records"), (), demo.MIB)
        refused = mock.Mock(side_effect=demo.emulated.EmulationError("losetup: no loop device"))
        with (
            tempfile.TemporaryDirectory() as folder,
            mock.patch.object(demo, "IN_MEMORY", Path(folder)),
            mock.patch.object(demo, "without_disks", return_value=None),
            mock.patch.object(demo, "say"),
            mock.patch.object(demo.emulated, "own_cpu_left", contextlib.nullcontext),
            mock.patch.object(demo.emulated, "path_us", return_value=40),
            mock.patch.object(demo.emulated, "make_file_system", refused),
        ):
            self.assertEqual(demo.on_emulated_disks(data), ["No sort on emulated disks: losetup: no loop device."])

    def test_a_disk_has_a_processor_a_measured_path_and_a_clock(self):
        events, asked = [], []

        @contextlib.contextmanager
        def own_cpu_left():
            events.append("own processor")
            yield
            events.append("all processors")

        def path_us(*_):
            events.append("path")
            return 40

        @contextlib.contextmanager
        def emulation(_, device, image, folder, mount, path, slower, report):
            # Every page has its memory before the disk is there.
            stat = image.stat()
            self.assertEqual(stat.st_blocks * 512, stat.st_size)
            asked.append((device, path, slower, report))
            events.append(device)
            (folder / "door").mkdir(exist_ok=True)
            mount.mkdir()
            yield SimpleNamespace(said=lambda: self.SAID)
            shutil.rmtree(mount)
            mount.mkdir()

        def make(image, size_bytes):
            with open(image, "wb") as file:
                file.truncate(size_bytes)

        with tempfile.TemporaryDirectory() as held:
            folder = Path(held)
            (folder / "records").write_bytes(b"x")
            data = demo.DataSet("records", folder / "records", (), demo.MIB)
            with (
                mock.patch.object(demo, "IN_MEMORY", folder),
                mock.patch.object(demo, "FOLDER", folder),
                mock.patch.object(demo, "EMULATED_BYTES", 4 * demo.MIB),
                mock.patch.object(demo, "DEVICES", {"barracuda": 1, "830": 4}),
                mock.patch.object(demo, "without_disks", return_value=None),
                mock.patch.object(demo, "say"),
                mock.patch.object(demo, "run"),
                mock.patch.object(demo.measure, "run", return_value=SimpleNamespace(durable_s=40.0)),
                mock.patch.object(demo.emulated, "own_cpu_left", own_cpu_left),
                mock.patch.object(demo.emulated, "path_us", path_us),
                mock.patch.object(demo.emulated, "make_file_system", make),
                mock.patch.object(demo.emulated, "plain", lambda *_: contextlib.nullcontext(folder)),
                mock.patch.object(demo.emulated, "emulated", emulation),
            ):
                lines = demo.on_emulated_disks(data)
        self.assertEqual(events, ["own processor", "path", "barracuda", "830", "all processors"])
        self.assertEqual(asked, [("barracuda", 40, 1, "barracuda.html"), ("830", 40, 4, "830.html")])
        # The wall's 40 s are 10 s of a disk with a clock that is four times as slow.
        self.assertTrue(lines[0].startswith("Sorted on an emulated barracuda in 40.0 s of the disk (real time; 3 of 4,000"), lines)
        self.assertTrue(
            lines[1].startswith("Sorted on an emulated 830 in 10.0 s of the disk (clock 4 times as slow as the wall's; 3 of"), lines
        )
