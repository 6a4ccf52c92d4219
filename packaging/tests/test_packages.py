"""`make dist`: what is in the packages, that the same programs give the same bytes, and README's commands after an installation."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import fresh_root

ROOT = Path(__file__).resolve().parents[2]
BUILT = Path(os.environ.get("BUILT", ROOT / "target/debug"))
# Those whose commands are in the README. They make packages of 50 MB from the build of the tests.
PROGRAMS = ("merganser", "merganser-tables", "merganser-near")
EPOCH = "1700000000"


def pack(built, to, *programs):
    kept = {name: value for name, value in os.environ.items() if name != "MAINTAINER"}
    return subprocess.run(
        [ROOT / "packaging/dist", built, to, *programs], env=kept | {"SOURCE_DATE_EPOCH": EPOCH, "FAST": "1"},
        capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )


def output(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def has(*programs):
    """Whether programs are there; continuous integration has them all."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing and os.environ.get("CI"):
        raise AssertionError(f"{', '.join(missing)} is missing: `.ci/setup packages` installs it")
    return not missing


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not has("dpkg-deb", "dpkg-shlibdeps", "rpmbuild"):
            raise unittest.SkipTest("the tools that make packages are missing")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.dir = Path(folder.name)
        cls.built = cls.dir / "built"
        cls.built.mkdir()
        for program in PROGRAMS:
            # Smaller, so that less is packed.
            subprocess.run(["strip", "-o", cls.built / program, BUILT / program], check=True)
        cls.made = cls.dir / "made"
        done = pack(cls.built, cls.made, *PROGRAMS)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done.stderr
        cls.names = sorted(path.name for path in cls.made.iterdir())

    def made_of(self, program, end):
        [path] = [path for path in self.made.iterdir() if re.match(re.escape(program) + r"[_-]\d", path.name) and path.name.endswith(end)]
        return path

    def test_each_program_has_an_archive_two_packages_and_a_bill(self):
        self.assertEqual(len(self.names), 4 * len(PROGRAMS) + 1, self.names)
        for program in PROGRAMS:
            for end in (".tar.gz", ".deb", ".rpm", ".cdx.json"):
                self.made_of(program, end)
        sums = dict(reversed(line.split()) for line in (self.made / "SHA256SUMS").read_text().splitlines())
        self.assertEqual(sorted([*sums, "SHA256SUMS"]), self.names)
        for name, digest in sums.items():
            self.assertEqual(hashlib.sha256((self.made / name).read_bytes()).hexdigest(), digest)

    def test_the_same_programs_give_the_same_bytes(self):
        """Packed elsewhere, at another time, with other modes of files."""
        first, again = self.dir / "first", self.dir / "again"
        (self.dir / "elsewhere").mkdir(mode=0o700)
        copy = self.dir / "elsewhere/merganser"
        shutil.copyfile(self.built / "merganser", copy)
        copy.chmod(0o700)
        os.utime(copy, (1, 1))
        # Packed before: one of this kind, which goes, and one for other machines, which stays.
        again.mkdir()
        for old in ("merganser-lab_0.0.9_amd64.deb", "merganser-0.1.0-x86_64-linux-musl.tar.gz"):
            (again / old).write_text("")
        for built, to in ((self.built, first), (copy.parent, again)):
            done = pack(built, to, "merganser")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        names = sorted(path.name for path in first.iterdir())
        self.assertEqual(len(names), 5)
        self.assertEqual(sorted(path.name for path in again.iterdir()), sorted([*names, "merganser-0.1.0-x86_64-linux-musl.tar.gz"]))
        self.assertIn("-musl.tar.gz\n", (again / "SHA256SUMS").read_text())
        for name in names:
            if name != "SHA256SUMS":
                self.assertEqual((again / name).read_bytes(), (first / name).read_bytes(), name)

    def test_an_archive_is_a_prefix_whose_programs_find_one_another(self):
        to = self.dir / "unpacked"
        to.mkdir()
        for program in PROGRAMS:
            words = ["tar", "-x", "-z", "-C", to, "--strip-components=1", "-f", self.made_of(program, ".tar.gz")]
            subprocess.run(words, check=True)
        said = output(to / "bin/merganser", "--version")
        self.assertTrue(said.endswith("other programs: merganser-tables, merganser-near\n"), said)
        listed = output("tar", "-t", "-v", "--numeric-owner", "-f", self.made_of("merganser", ".tar.gz"))
        self.assertTrue(all(" 0/0 " in line and " 2023-11-14 " in line for line in listed.splitlines()), listed)
        unit = (to / "lib/systemd/system/merganser-node.service").read_text()
        self.assertIn("ExecStart=/usr/local/bin/merganser serve", unit)

    def test_packages_of_two_kinds_have_the_same_files(self):
        for program in PROGRAMS:
            deb, rpm = self.made_of(program, ".deb"), self.made_of(program, ".rpm")
            listed = output("dpkg-deb", "-c", deb).splitlines()
            in_deb = {re.split(r"\s\./", line)[1] for line in listed if not line.startswith("d")}
            # Debian alone has some files, and other places for some.
            in_deb = {name for name in in_deb if not re.match(rf"usr/share/(lintian|doc/{program}/(copyright|changelog.gz))", name)}
            in_deb = {name.replace("vendor-completions", "site-functions") for name in in_deb}
            in_deb = {("usr/" + name if name.startswith("lib/") else name).removesuffix(".gz") for name in in_deb}
            in_rpm = set(output("rpm", "-qlp", rpm).splitlines())
            folders = {"/usr/share/doc/merganser", "/usr/share/doc/merganser/docs", "/usr/share/doc/merganser/licences", "/usr/libexec/merganser"}
            in_rpm = {name.lstrip("/") for name in in_rpm - folders}
            self.assertEqual(in_rpm - in_deb, {"usr/share/doc/merganser/LICENSE"} & in_rpm)
            self.assertEqual(in_deb - in_rpm, set())
            needs = output("rpm", "-qRp", rpm)
            self.assertEqual("merganser = 0" in needs, program != "merganser", needs)
            self.assertIn("libc.so.6", needs)

    def test_a_bill_lists_what_is_linked_and_no_more(self):
        bill = json.loads(self.made_of("merganser", ".cdx.json").read_text())
        parts = {part["name"]: part for part in bill["components"]}
        self.assertIn("merganser-sort", parts)
        self.assertIn("Apache-2.0", parts["clap"]["licenses"][0]["expression"])
        self.assertRegex(parts["clap"]["hashes"][0]["content"], "^[0-9a-f]{64}$")
        # Of tests, and of other programs.
        self.assertFalse({"tempfile", "proptest", "arrow-array", "wasmtime"} & set(parts))
        self.assertEqual(bill["metadata"]["timestamp"], "2023-11-14T22:13:20Z")
        refs = {part["bom-ref"] for part in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
        self.assertEqual({entry["ref"] for entry in bill["dependencies"]}, refs)
        texts = output("tar", "-x", "-O", "-f", self.made_of("merganser", ".tar.gz"), "--wildcards", "*/licences/merganser.txt")
        self.assertIn("\nclap ", texts)
        self.assertIn("Permission is hereby granted", texts)

    def test_units_are_understood(self):
        if not has("systemd-analyze"):
            self.skipTest("systemd-analyze is missing")
        for unit in sorted((ROOT / "packaging/systemd").glob("*/*.service")):
            copy = self.dir / unit.name.replace("@.", "@volume.")
            copy.write_text(unit.read_text().replace("@bindir@", str(self.built)))
            said = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], capture_output=True, text=True)
            self.assertEqual((said.returncode, said.stderr), (0, ""), unit.name)

    def test_options_of_units_exist_and_pages_show_those_of_the_units(self):
        pages = {"shuffle": "hadoop/hadoop.md", "map": "hadoop/hadoop-node.md", "node": "near/serve.md", "array-vol": "array/array.md"}
        for unit in sorted((ROOT / "packaging/systemd").glob("*/*.service")):
            text = unit.read_text()
            name = re.search(r"EnvironmentFile=/etc/merganser/(.*)\.conf", text)[1].replace("%i", "vol")
            page = (ROOT / "docs" / pages.pop(name)).read_text(encoding="utf-8")
            self.assertIn(f"systemctl enable --now {unit.stem}", page)
            command = re.search(r"ExecStart=@bindir@/(.*)", text)[1].replace("%i", "vol")
            for options in (re.search(r"# OPTIONS=(.*)", text)[1], re.search(rf"'OPTIONS=(.*)' > /etc/merganser/{name}.conf", page)[1]):
                # With --help at its end, a command line is parsed and does nothing.
                words = command.replace("$OPTIONS", options).split()
                said = subprocess.run([BUILT / words[0], *words[1:], "--help"], capture_output=True, text=True)
                self.assertEqual((said.returncode, said.stderr), (0, ""), words)
        self.assertEqual(pages, {})

    def test_images_are_made_of_what_is_packed(self):
        for name, tried in (("Dockerfile", "merganser_0.1.0_amd64.deb"), ("Dockerfile.scratch", "merganser-0.1.0-x86_64-linux-musl.tar.gz")):
            text = (ROOT / "packaging/docker" / name).read_text()
            [pattern] = re.findall(r"/packages/(\S*(?:deb|gz))", text)
            pattern = pattern.replace("${program}", "merganser")
            self.assertTrue(Path(tried).match(pattern), pattern)
            # It names one file, whatever else was packed.
            matching = [made for made in self.names if Path(made.replace("-gnu", "-musl")).match(pattern)]
            self.assertEqual(len(matching), 1, matching)

    def test_lintian_finds_no_errors(self):
        if not has("lintian"):
            self.skipTest("lintian is missing")
        words = ["lintian", "--fail-on", "error", "--allow-root"]
        said = subprocess.run([*words, *map(str, sorted(self.made.glob("*.deb")))], capture_output=True, text=True)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "only root can change its root")
    def test_the_commands_of_the_readme_in_a_fresh_root(self):
        root = self.dir / "root"
        fresh_root.make(root)
        first = fresh_root.dpkg(root, "--install", self.made_of("merganser-near", ".deb"))
        self.assertIn("merganser-near depends on merganser", first.stderr)
        done = fresh_root.dpkg(root, "--install", *(self.made_of(program, ".deb") for program in PROGRAMS))
        self.assertEqual(done.returncode, 0, done.stderr)
        for program in PROGRAMS:
            self.assertEqual(fresh_root.dpkg(root, "--verify", program).stdout, "")
        page = (ROOT / "README.md").read_text(encoding="utf-8")
        blocks = page.split("```")[1::2]
        commands = [line for block in blocks for line in block.splitlines() if re.match(r"merganser |\$ ", line)]
        commands = [re.split(r"   +", line.removeprefix("$ "))[0] for line in commands]
        self.assertGreater(len(commands), 8)
        self.run_in(root, "merganser generate --format lines --records 2000 -o big.txt && mkdir in")
        shutil.copy(ROOT / "quality/product-tests/tests/command/kept/table.parquet", root / "tmp/in/")
        mounts = 0
        for command in commands:
            if "mount" not in command:
                self.run_in(root, command)
            elif Path("/dev/fuse").exists():
                mounts += 1
                # It works until it is unmounted.
                shown = "until cmp sorted.txt /mnt/big 2>/dev/null; do sleep 0.1; kill -0 $pid; done"
                self.run_in(root, f"set -e; {command} & pid=$!; {shown}; kill $pid; wait $pid || true; [ -z \"$(ls /mnt)\" ]")
        self.assertEqual(mounts, int(Path("/dev/fuse").exists()))
        self.assertIn("other programs: merganser-tables, merganser-near", self.run_in(root, "merganser --version"))
        gone = fresh_root.dpkg(root, "--purge", *reversed(PROGRAMS))
        self.assertEqual(gone.returncode, 0, gone.stderr)
        self.assertFalse([path for path in (root / "usr").rglob("*merganser*")])

    def run_in(self, root, command):
        running = fresh_root.shell(root, command)
        try:
            out, err = running.communicate(timeout=30)
        finally:
            running.kill()
        self.assertEqual(running.returncode, 0, f"{command}: {err}")
        return out


if __name__ == "__main__":
    unittest.main()
