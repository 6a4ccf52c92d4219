"""The programs that are compared, and their command lines for the same work."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
REPOSITORY = BENCH.parent.parent

# GNU sort compares bytes only in this locale; all other programs always do.
GNU = ("env", "LC_ALL=C")

GENSORT_RECORD_BYTES = 100
GENSORT_ORDER = ("--format", f"fixed:{GENSORT_RECORD_BYTES}", "--key", "0:10")
WIDE_RECORD_BYTES = 4096
WIDE_ORDER = ("--format", f"fixed:{WIDE_RECORD_BYTES}", "--key", "0:10")
LINES_ORDER = ("--format", "lines")
CSV_ORDER = ("--format", "csv", "--key", "2", "--key", "1:n")
CSV_GNU_ORDER = ("-t,", "-k2,2", "-k1,1n")

PEERS = ("gnu", "stxxl", "duckdb", "ripgrep", "phoenix")
PHOENIX = "phoenix++-1.0"
"""Phoenix++'s folder in a checkout of Phoenix."""


class MissingTool(Exception):
    """A program that a scenario needs is missing; the text says how to get it."""


def cores():
    """Cores this process may use; every program gets as many threads."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Tools:
    """The paths of the programs. A peer that is None is left out of its scenarios."""

    merganser: Path
    examples: Path
    gnu: str | None
    stxxl: Path | None
    duckdb: Path | None
    ripgrep: str | None = None
    phoenix: Path | None = None

    @staticmethod
    def find(merganser, examples, peers, folder):
        """Finds the programs, and builds the small ones into `folder`."""
        if not os.access(merganser, os.X_OK):
            raise MissingTool(f"{merganser} is not there: `make build` makes it")
        python = BENCH / ".venv" / "bin" / "python"
        return Tools(
            merganser=merganser,
            examples=examples,
            gnu=shutil.which("sort") if "gnu" in peers else None,
            stxxl=_build_stxxl(folder) if "stxxl" in peers else None,
            duckdb=python if "duckdb" in peers and python.exists() else None,
            ripgrep=shutil.which("rg") if "ripgrep" in peers else None,
            phoenix=_build_phoenix(folder) if "phoenix" in peers else None,
        )

    def versions(self):
        """The versions of the peers that take part, by name, and of Merganser's sources; for the results."""
        found = {"merganser": sources()}
        if self.gnu:
            found["gnu"] = _said(self.gnu, "--version")
        if self.stxxl:
            found["stxxl"] = _said("dpkg-query", "-W", "-f", "${Version}", "libstxxl-dev")
        if self.duckdb:
            found["duckdb"] = _said(self.duckdb, "-c", "import duckdb; print(duckdb.__version__)")
        if self.ripgrep:
            found["ripgrep"] = _said(self.ripgrep, "--version")
        if self.phoenix:
            found["phoenix"] = _said("git", "-C", os.environ["PHOENIX_DIR"], "describe", "--always") or PHOENIX
        return found

    def example(self, name):
        """One of the workspace's example programs."""
        path = self.examples / name
        if not os.access(path, os.X_OK):
            raise MissingTool(f"{path} is not there: `cargo build --release --workspace --examples` makes it")
        return path

    def merganser_sort(self, source, order, memory_bytes, temp, result):
        """`result` is `("-o", FILE)` or `("--view", FOLDER)`."""
        return (
            self.merganser, "sort", source, *order, *result,
            "--memory", memory_bytes, "--temp-dir", temp, "--threads", cores(),
        )  # fmt: skip

    def gnu_sort(self, source, order, memory_bytes, temp, output):
        """GNU sort with the same memory, on all cores."""
        return (*GNU, self.gnu, *order, "-S", f"{memory_bytes}b", f"--parallel={cores()}", "-T", temp, "-o", output, source)

    def stxxl_sort(self, source, memory_bytes, temp, output):
        """STXXL on 100-byte records; its one temporary file is as large as the input."""
        room = os.path.getsize(source) * 21 // 20 + 256 * 2**20
        quiet = ("env", "STXXLLOGFILE=/dev/null", "STXXLERRLOGFILE=/dev/null")  # otherwise it logs into the current folder
        return (*quiet, self.stxxl, source, output, memory_bytes, temp / "stxxl.disk", room)

    def duckdb_sort(self, kind, source, memory_bytes, temp, output):
        """DuckDB's COPY of an ORDER BY."""
        return (
            self.duckdb, BENCH / "peers" / "duckdb_sort.py", kind, source, output,
            "--memory", memory_bytes, "--temp", temp, "--threads", cores(),
        )  # fmt: skip

    def raw_read(self, source):
        """The disk's own speed: reads `source` from end to end with direct I/O, and does nothing else."""
        return (self.example("raw_io"), "read", source)

    def raw_write(self, path, size):
        """Writes as many bytes to `path` with direct I/O, and syncs them."""
        return (self.example("raw_io"), "write", path, "--bytes", size)

    def two_pass_floor(self, source):
        """The lower bound for any external sort in two passes: copies `source`, and then the copy."""
        return (self.example("raw_io"), "passes", source)


def sources():
    """The commit of the sources, with `-dirty` after it if a tracked file differs. Results don't count: each run changes them."""
    commit = _said("git", "-C", REPOSITORY, "describe", "--always")
    changed = _said("git", "-C", REPOSITORY, "status", "--porcelain", "--untracked-files=no", "--", ".", ":!lab/bench/results")
    return f"{commit}-dirty" if commit and changed else commit


def _said(*words):
    """The first line that a command prints, or None if it can't be run."""
    try:
        ran = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60)
    except OSError:
        return None
    return ran.stdout.partition("\n")[0].strip() or None


def _build_stxxl(folder):
    """Compiles the STXXL peer, or returns None if its headers or a compiler are missing."""
    source = BENCH / "peers" / "stxxl" / "sort100.cpp"
    program = folder / "sort100"
    compiler = shutil.which("g++")
    if compiler is None or not Path("/usr/include/stxxl").exists():
        return None
    subprocess.run(
        [compiler, "-O3", "-march=native", "-std=c++14", "-Wno-deprecated-declarations",
         "-o", str(program), str(source), "-lstxxl", "-fopenmp"],
        check=True, timeout=300,
    )  # fmt: skip
    return program


def _build_phoenix(folder):
    """Phoenix++'s word count from the checkout that PHOENIX_DIR names; None without it."""
    if not os.environ.get("PHOENIX_DIR"):
        return None
    return build_phoenix(folder, PHOENIX, ["word_count"]) / "tests" / "word_count" / "word_count"


def build_phoenix(folder, version, tests):
    """Copies the sources of a version of Phoenix from the checkout that PHOENIX_DIR names, and compiles the library and these
    tests. Returns the folder."""
    sources = folder / version
    shutil.rmtree(sources, ignore_errors=True)
    shutil.copytree(Path(os.environ["PHOENIX_DIR"]) / version, sources, ignore=shutil.ignore_patterns("lib", "*.o", "*.a"))
    # Otherwise the library is copied to a file of that name.
    (sources / "lib").mkdir()
    # The sources are of 2007 to 2011 and have errors that were warnings then.
    for part in ("src", *(f"tests/{test}" for test in tests)):
        subprocess.run(
            ["make", "-C", sources / part, "CC=gcc -w -fcommon", "CXX=g++ -w -fpermissive"],
            stdout=subprocess.DEVNULL, check=True, timeout=300,
        )  # fmt: skip
    return sources
