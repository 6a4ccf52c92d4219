"""`make install`: what is where, what works, and what is removed again."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The programs of the build of the tests.
BUILT = Path(os.environ.get("BUILT", ROOT / "target/debug"))


def make(target, **variables):
    words = ["make", "--no-print-directory", target, *(f"{name}={value}" for name, value in variables.items())]
    kept = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS")}
    return subprocess.run(words, cwd=ROOT, env=kept, capture_output=True, text=True, stdin=subprocess.DEVNULL)


class Install(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name) / "root"
        self.built = Path(folder.name) / "built"
        self.built.mkdir()
        self.build("merganser")

    def build(self, *programs):
        for program in programs:
            shutil.copy(BUILT / program, self.built)

    def install(self, **variables):
        done = make("install", FROM=self.built, DESTDIR=self.root, **variables)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def files(self):
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*") if not path.is_dir()}

    def test_the_core_alone_is_whole(self):
        self.install(PREFIX="/usr")
        files = self.files()
        for there in (
            "usr/bin/merganser",
            "usr/share/man/man1/merganser.1",
            "usr/share/man/man1/merganser-sort.1",
            "usr/share/bash-completion/completions/merganser",
            "usr/share/zsh/site-functions/_merganser",
            "usr/share/fish/vendor_completions.d/merganser.fish",
            "usr/share/doc/merganser/LICENSE",
            "usr/share/doc/merganser/NOTICE",
            "usr/share/doc/merganser/README.md",
            "usr/share/doc/merganser/docs/core/guide.md",
        ):
            self.assertIn(there, files)
        self.assertFalse([name for name in files if not name.startswith("usr/") or "array" in name or "libexec" in name])
        script = (self.root / "usr/share/bash-completion/completions/merganser").read_text()
        self.assertIn("materialize", script)
        self.assertNotIn("salvage", script)

    def test_a_program_is_found_where_it_is_installed(self):
        self.build("merganser-array")
        self.install()
        bin = self.root / "usr/local/bin/merganser"
        help = subprocess.run([bin, "array", "--help"], capture_output=True, text=True)
        self.assertEqual((help.returncode, help.stderr), (0, ""))
        self.assertIn("salvage", help.stdout)
        files = self.files()
        self.assertIn("usr/local/libexec/merganser/merganser-array", files)
        self.assertIn("usr/local/share/man/man1/merganser-array-serve.1", files)
        self.assertIn("usr/local/share/doc/merganser/docs/array/array.md", files)
        for name in files:
            mode = (self.root / name).stat().st_mode & 0o777
            self.assertEqual(mode, 0o755 if "/bin/" in name or "/libexec/" in name else 0o644, name)

    def test_what_was_installed_is_removed_and_nothing_else(self):
        self.build("merganser-array")
        other = self.root / "usr/local/share/man/man1/merganser-mine.1"
        other.parent.mkdir(parents=True)
        other.write_text("")
        self.install()
        # With fewer programs, the others of the earlier installation go.
        self.install(ONLY="merganser")
        self.assertFalse([name for name in self.files() if "array" in name])
        done = make("uninstall", DESTDIR=self.root)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual(self.files(), {"usr/local/share/man/man1/merganser-mine.1"})
        self.assertFalse((self.root / "usr/local/libexec/merganser").exists())
        self.assertFalse((self.root / "usr/local/share/doc/merganser").exists())
        again = make("uninstall", DESTDIR=self.root)
        self.assertEqual(again.returncode, 2)
        self.assertIn("nothing was installed", again.stderr)

    def refused(self, sentence, **variables):
        before = self.files()
        done = make("install", FROM=self.built, DESTDIR=self.root, **variables)
        self.assertEqual(done.returncode, 2)
        self.assertIn(sentence, done.stderr)
        self.assertEqual(self.files(), before)

    def test_mistakes_are_one_sentence_and_change_nothing(self):
        old = self.built / "merganser-array"
        old.write_text("#!/bin/sh\necho merganser-array 0.0.1\n")
        old.chmod(0o755)
        self.refused("merganser-array is version 0.0.1, and")
        self.refused("merganser-lab is not there: build it first", ONLY="merganser merganser-lab")
        self.refused("merganser is needed by all others", ONLY="merganser-array")
        self.refused("PREFIX is 'usr'", PREFIX="usr", ONLY="merganser")
        first = self.root / "usr/local/bin/merganser-array"
        first.parent.mkdir(parents=True)
        first.write_text("")
        self.refused("/usr/local/bin/merganser-array would run in the place of the new merganser-array")
        (self.built / "merganser").unlink()
        self.refused("merganser is not there: build it first with 'make build'")


if __name__ == "__main__":
    unittest.main()
