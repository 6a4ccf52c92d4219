"""The demonstration's text: taken from archives, cut to size, every line ended."""

import io
import tarfile
import tempfile
import unittest
from pathlib import Path
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
            mock.patch.object(demo.emulated, "make_file_system", refused),
        ):
            self.assertEqual(demo.on_emulated_disks(data), ["No sort on emulated disks: losetup: no loop device."])
