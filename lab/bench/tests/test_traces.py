"""Recorded traces become small: contents get numbers, and nothing else changes."""

import tempfile
import unittest
from pathlib import Path

from traces import record


class Numbers(unittest.TestCase):
    def test_contents_are_numbered_in_the_order_of_their_first_write(self):
        other, another = "a" * 32, "b" * 31
        full = f"""# merganser trace 1
# wd5000aakx: a comment, kept
5 R 0 4096 +70
6 W 4096 8192 {other},{record.ZEROS} +80
7 W 4096 4096 {another} +81
8 W 8192 4096 {other} +82
9 F 0 0 +90
"""
        small = """# merganser trace 1
# wd5000aakx: a comment, kept
5 R 0 4096
6 W 4096 8192 1,0
7 W 4096 4096 2
8 W 8192 4096 1
9 F 0 0
"""
        with tempfile.TemporaryDirectory() as folder:
            source, to = Path(folder) / "full", Path(folder) / "small"
            source.write_text(full)
            record.number(source, to)
            self.assertEqual(to.read_text(), small)


if __name__ == "__main__":
    unittest.main()
