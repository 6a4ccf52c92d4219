"""A node in a process of its own, for tests: `merganser serve --data`."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOKEN = "0123456789abcdef0123456789abcdef"


def leave_out(why):
    """Leaves the tests of a file out, and says so. In CI (the variable CI is set) that is a failure."""
    if "CI" in os.environ:
        raise RuntimeError(f"{why}; in CI all clients are tested")
    print(f"SKIPPED: {why}", file=sys.stderr)
    raise unittest.SkipTest(why)


def command():
    """The command merganser: MERGANSER, or the newest build."""
    if "MERGANSER" in os.environ:
        return os.environ["MERGANSER"]
    builds = [ROOT / "target" / kind / "merganser" for kind in ("release", "debug")]
    builds = [build for build in builds if build.exists()]
    if not builds:
        raise FileNotFoundError("no merganser: build it, or name it in MERGANSER")
    return str(max(builds, key=lambda build: build.stat().st_mtime))


class Node:
    """A node with the files that it is given."""

    def __init__(self, files, *more):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        (self.path / "data").mkdir()
        (self.path / "token").write_text(TOKEN)
        (self.path / "token").chmod(0o600)
        for name, content in files.items():
            (self.path / "data" / name).write_bytes(content)
        self.more = more

    def __enter__(self):
        words = ["serve", "--data", "data", "--listen", "127.0.0.1:0", "--token-file", "token"]
        self.process = subprocess.Popen(
            [command(), *words, *self.more], cwd=self.path, stderr=subprocess.PIPE, text=True
        )
        told = self.process.stderr.readline()
        found = re.search(r"sessions for clients of (\S+):", told)
        assert found, told
        self.address = found[1]
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=30) == 0, self.process.stderr.read()
        self.process.stderr.close()
        self.folder.cleanup()

    def run(self, *words):
        """The output of a command in the node's folder."""
        return subprocess.run([command(), *words], cwd=self.path, check=True, capture_output=True).stdout
