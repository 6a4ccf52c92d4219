"""The commit that --version says: with git, from an archive that git made, and as a packager gives it."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def identity(root, *words, **variables):
    kept = {name: value for name, value in os.environ.items() if name not in ("SOURCE_DATE_EPOCH", "MERGANSER_COMMIT")}
    done = subprocess.run([root / "packaging/identity", *words], env=kept | variables, check=True, capture_output=True, text=True)
    return done.stdout


def git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True).stdout


@unittest.skipUnless((ROOT / ".git").exists(), "the sources are no checkout")
class Identity(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.unpacked = Path(folder.name)
        subprocess.run(["tar", "-x", "-C", folder.name], check=True, input=git("archive", "HEAD", "packaging", ".gitattributes"))

    def test_an_archive_says_what_the_checkout_says(self):
        [commit, date] = identity(ROOT).split()
        archived = identity(self.unpacked)
        self.assertEqual(archived.split(), [commit.removesuffix("-dirty"), date])
        self.assertEqual(commit[:10], git("rev-parse", "HEAD").decode()[:10])
        self.assertEqual(identity(ROOT, "--epoch"), identity(self.unpacked, "--epoch"))

    def test_the_date_may_be_given(self):
        self.assertTrue(identity(self.unpacked, SOURCE_DATE_EPOCH="86400").endswith(" 1970-01-02\n"))
        self.assertEqual(identity(self.unpacked, "--epoch", SOURCE_DATE_EPOCH="86400"), "86400\n")

    def test_so_may_both(self):
        self.assertEqual(identity(ROOT, MERGANSER_COMMIT="abc 2026-01-01"), "abc 2026-01-01\n")

    def test_of_other_sources_nothing_is_known(self):
        (self.unpacked / "packaging/commit").write_bytes((ROOT / "packaging/commit").read_bytes())
        self.assertEqual((identity(self.unpacked), identity(self.unpacked, "--epoch")), ("", "0\n"))


if __name__ == "__main__":
    unittest.main()
