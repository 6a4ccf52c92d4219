"""Views over files of Parquet that pyarrow, DuckDB and Polars wrote in order: read back by them, and compared with a sort in Python."""

import os
import pathlib
import random
import signal
import subprocess
import tempfile
import time
import unittest

from node import command, leave_out

try:
    import duckdb
    import polars
    import pyarrow
    import pyarrow.ipc
    import pyarrow.parquet
except ImportError as missing:
    leave_out(f"{missing}; .ci/setup flight installs the clients")

CASES = int(os.environ.get("TABLE_CASES", "25"))
SEED = int(os.environ.get("TABLE_SEED", "20261128"))


def run(*words, cwd, status=0):
    """The output of a command, which must end with `status`."""
    ended = subprocess.run([command(), *map(str, words)], cwd=cwd, capture_output=True, timeout=120)
    told = ended.stderr.decode()
    assert ended.returncode == status, f"{words}: {ended.returncode}: {told}"
    if status == 0:
        return ended.stdout
    assert len(told.splitlines()) == 1, told
    return told


def order(row):
    """Nulls are first; texts are compared by their bytes."""
    return (row["key"] is not None, row["key"] or 0, row["text"].encode())


def rows_of(drawn, count, number):
    """Rows in order, many of whose keys are equal."""
    keys = [None, 0, 0, 1, 2, 3, -(2**63), 2**63 - 1, *range(100, 130)]
    texts = ["", "a", "ab", "b", "ß", "a text of more than twelve bytes"]
    rows = [
        {
            "at": number * 100_000 + at,
            "key": drawn.choice(keys),
            "text": drawn.choice(texts),
            "tags": [drawn.choice(["x", None, "a longer tag than twelve"]) for _ in range(drawn.randrange(3))],
        }
        for at in range(count)
    ]
    return sorted(rows, key=order)


SCHEMA = pyarrow.schema(
    {"at": pyarrow.int64(), "key": pyarrow.int64(), "text": pyarrow.string(), "tags": pyarrow.list_(pyarrow.string())}
)


def write(drawn, rows, path):
    """Writes rows with pyarrow, DuckDB or Polars, in one of many ways."""
    table = pyarrow.Table.from_pylist(rows, SCHEMA)
    group = drawn.choice([7, 100, 1000, 100_000])
    who = drawn.choice(["pyarrow", "pyarrow", "duckdb", "polars"])
    if who == "pyarrow":
        pyarrow.parquet.write_table(
            table,
            path,
            row_group_size=group,
            data_page_size=drawn.choice([64, 1000, 1 << 20]),
            data_page_version=drawn.choice(["1.0", "2.0"]),
            use_dictionary=drawn.random() < 0.5,
            write_page_index=drawn.random() < 0.5,
            write_statistics=drawn.random() < 0.7,
            compression=drawn.choice(["none", "snappy", "zstd", "gzip"]),
        )
    elif who == "duckdb":
        connection = duckdb.connect()
        connection.execute("set threads = 1")
        connection.register("given", table)
        connection.execute(f"copy (from given) to '{path}' (format parquet, row_group_size {max(group, 2048)})")
    else:
        polars.from_arrow(table).write_parquet(path, row_group_size=group, data_page_size=drawn.choice([64, 1 << 20]))


class SortedFiles(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name)

    def run_here(self, *words, status=0):
        return run(*words, cwd=self.folder, status=status)

    def read(self, *words):
        with pyarrow.ipc.open_stream(self.run_here("cat", *words, "--output-format", "arrows")) as reader:
            return reader.read_all().to_pylist()

    def make(self, *counts, seed=SEED):
        """Sorted files, the view `all.view` of them, and the rows that it should have."""
        drawn, expected, files = random.Random(seed), [], []
        for number, count in enumerate(counts):
            rows = rows_of(drawn, count, number)
            write(drawn, rows, self.folder / f"{number}.parquet")
            expected += rows
            files.append(f"{number}.parquet")
        self.run_here("sort", "-m", *files, "--view", "all.view", "--key", "key", "--key", "text")
        return files, sorted(expected, key=order)

    def test_files_of_others_are_read_as_python_sorts_them(self):
        for case in range(CASES):
            with self.subTest(case=case), tempfile.TemporaryDirectory() as place:
                self.folder, drawn = pathlib.Path(place), random.Random(f"{SEED} {case}")
                counts = [drawn.choice([0, 1, 30, 700, 9000]) for _ in range(drawn.randrange(1, 6))]
                files, expected = self.make(*counts, seed=f"{SEED} {case}")
                self.assertEqual(os.listdir(self.folder / "all.view"), ["manifest"])
                self.assertEqual(self.read("all.view"), expected)
                for _ in range(3):
                    start = drawn.randrange(len(expected) + 1)
                    end = min(len(expected), start + drawn.choice([1, 10, 5000]))
                    self.assertEqual(self.read("all.view", "--records", f"{start}..{end}"), expected[start:end])
                key = drawn.choice([-5, 0, 1, 2, 105, 2**63 - 1])
                found = self.read("all.view", "--from-key", key, "--to-key", key + 3 if key < 1000 else key, "--columns", "at,key")
                among = lambda row: row["key"] is not None and key <= row["key"] < key + 3 and key < 1000
                self.assertEqual(found, [{"at": row["at"], "key": row["key"]} for row in expected if among(row)])
                # Other programs read the same from a file that is written.
                self.run_here("cat", "all.view", "-o", "out.parquet")
                found = duckdb.sql(f"select * from '{self.folder}/out.parquet'").fetchall()
                self.assertEqual(found, [tuple(row.values()) for row in expected])
                self.assertEqual(polars.read_parquet(self.folder / "out.parquet")["at"].to_list(), [row["at"] for row in expected])
                metadata = pyarrow.parquet.ParquetFile(self.folder / "out.parquet").metadata
                if metadata.num_row_groups:
                    self.assertEqual([column.column_index for column in metadata.row_group(0).sorting_columns], [1, 2])
                checked = self.run_here("verify", "all.view").decode()
                self.assertEqual(checked.split()[-1], self.run_here("verify", *files).decode().split()[-1])
                self.assertIn(f"rows        {len(expected)}\n", checked)

    def test_a_view_is_made_and_read_from_other_folders(self):
        files, expected = self.make(100, 200)
        told = self.run_here("info", "all.view").decode()
        self.assertIn("files    2\norder    key, text\nrows     300\n", told)
        os.rename(self.folder / "all.view", self.folder / "moved.view")
        found = run("cat", self.folder / "moved.view", "--columns", "at", cwd="/").decode().split()
        self.assertEqual(found, ["at", *(str(row["at"]) for row in expected)])

    def test_only_files_of_parquet_stay(self):
        files, expected = self.make(100, 200)
        table = pyarrow.parquet.read_table(self.folder / "1.parquet", schema=SCHEMA)
        with pyarrow.ipc.new_file(self.folder / "1.arrow", SCHEMA) as file:
            file.write_table(table)
        keys = ["--key", "key", "--key", "text"]
        self.run_here("sort", "-m", "0.parquet", "1.arrow", "--view", "own.view", *keys)
        self.run_here("sort", "-m", *files, "--top", "7", "--view", "top.view", *keys)
        self.run_here("sort", *files, "--view", "sorted.view", *keys)
        for file in [*files, "1.arrow"]:
            (self.folder / file).unlink()
        self.assertEqual(self.read("own.view"), expected)
        self.assertEqual(self.read("top.view"), expected[:7])
        self.assertEqual(self.read("sorted.view"), expected)
        told = self.run_here("cat", "all.view", status=2)
        self.assertIn("0.parquet: No such file or directory", told)
        self.assertIn("files    2\n", self.run_here("info", "all.view").decode())

    def test_columns_of_folders_stay(self):
        for country, first in [("DE", 3), ("FR", 1)]:
            (self.folder / f"in/country={country}/year=2024").mkdir(parents=True)
            table = pyarrow.table({"n": [first, first + 1, first + 2]})
            pyarrow.parquet.write_table(table, self.folder / f"in/country={country}/year=2024/x.parquet")
        self.run_here("sort", "-m", "in", "--view", "all.view", "--key", "n")
        pairs = [(1, "FR"), (2, "FR"), (3, "DE"), (3, "FR"), (4, "DE"), (5, "DE")]
        self.assertEqual(self.read("all.view"), [{"n": n, "country": country, "year": 2024} for n, country in pairs])
        self.assertEqual(self.read("all.view", "--records", "2..4", "--columns", "country"), [{"country": "DE"}, {"country": "FR"}])
        self.run_here("sort", "-m", "in", "--view", "country.view", "--key", "country", "--key", "n:r:last", status=2)
        self.run_here("sort", "-m", "in", "--view", "country.view", "--key", "country", "--key", "n")
        self.assertEqual([row["n"] for row in self.read("country.view", "--from-key", "E")], [1, 2, 3])
        self.run_here("sort", "-m", "in", "--view", "plain.view", "--key", "n", "--no-hive")
        self.assertEqual(self.read("plain.view"), [{"n": n} for n, _ in pairs])
        # A folder that is not typed names no column, wherever the view is read.
        there = self.folder / "in/country=FR/year=2024"
        run("sort", "-m", "x.parquet", "--view", self.folder / "typed.view", "--key", "n", cwd=there)
        self.assertEqual(self.read("typed.view"), [{"n": 1}, {"n": 2}, {"n": 3}])

    def test_statistics_and_sorting_columns_are_not_believed(self):
        table = pyarrow.table({"n": [1, 2, 9, 3, 4]})
        sorting = [pyarrow.parquet.SortingColumn(0)]
        pyarrow.parquet.write_table(table, self.folder / "in.parquet", sorting_columns=sorting)
        told = self.run_here("sort", "-m", "in.parquet", "--view", "v", "--key", "n", status=2)
        self.assertEqual(told, "merganser: " + str(self.folder / "in.parquet: row 4 is out of order\n"))
        self.assertEqual(os.listdir(self.folder), ["in.parquet"])

    def test_nothing_removes_the_files(self):
        files, expected = self.make(100, 200)
        kept = {file: (self.folder / file).read_bytes() for file in files}
        for words in [["materialize", "all.view", "-o", "x", "--consume"], ["materialize", "all.view", "-o", "x"], ["export", "all.view", "--nbd", "s"], ["mount", "all.view", "."]]:
            told = self.run_here(*words, status=2)
            self.assertIn("all.view: is a view of a table", told)
        self.assertIn("cat and verify read them", self.run_here("info", "--verify", "all.view", status=2))
        self.assertIn("--key: a view has an order of its own", self.run_here("verify", "all.view", "--key", "key", status=2))
        self.assertIn("all.view", self.run_here("sort", "-m", *files, "--view", "all.view", "--key", "key", "--key", "text", status=2))
        self.run_here("recover", ".")
        # The command says that the view is no copy.
        words = ["sort", "-m", *files, "--view", "other.view", "--key", "key", "--key", "text"]
        made = subprocess.run([command(), *words], cwd=self.folder, capture_output=True, timeout=120, check=True)
        says = b"merganser: other.view: holds no rows; they stay in the inputs, so keep these files where they are\n"
        self.assertEqual(made.stderr, says)
        self.assertEqual({file: (self.folder / file).read_bytes() for file in files}, kept)
        self.assertEqual(self.read("all.view"), expected)

    def test_a_file_that_is_another_one_is_named(self):
        files, _ = self.make(100, 200)
        drawn = random.Random(SEED)
        write(drawn, rows_of(drawn, 200, 7), self.folder / "1.parquet")
        for words in [["cat", "all.view"], ["cat", "all.view", "--head", "1"], ["verify", "all.view"], ["cat", "all.view", "-o", "out.parquet"]]:
            told = self.run_here(*words, status=2)
            self.assertIn(f"{self.folder}/1.parquet: was changed or replaced since the view", told)
        self.assertFalse((self.folder / "out.parquet").exists())

    def test_memory_that_is_too_little_is_one_sentence(self):
        files, expected = self.make(*[50] * 12)
        told = self.run_here("cat", "all.view", "--memory", "1M", status=2)
        self.assertIn("reading all files of the view at once", told)
        told = self.run_here("sort", "-m", *files, "--view", "other.view", "--key", "key", "--key", "text", "--memory", "1M", status=2)
        self.assertIn("reading all files of the view at once", told)
        self.assertFalse((self.folder / "other.view").exists())
        self.assertEqual(self.read("all.view", "--memory", "16M"), expected)

    def test_a_killed_command_leaves_no_view(self):
        drawn = random.Random(SEED)
        numbers = pyarrow.table({"n": list(range(3_000_000))})
        pyarrow.parquet.write_table(numbers, self.folder / "in.parquet", compression="none")
        kept = (self.folder / "in.parquet").stat()
        words = ["sort", "-m", "in.parquet", "--view", "all.view", "--key", "n", "--quiet"]
        killed = 0
        for _ in range(8):
            process = subprocess.Popen([command(), *words], cwd=self.folder, stderr=subprocess.DEVNULL)
            time.sleep(drawn.random() * 0.5)
            process.kill()
            if process.wait() == -signal.SIGKILL:
                killed += not (self.folder / "all.view").exists()
            left = [name for name in os.listdir(self.folder) if name not in ("in.parquet", "all.view")]
            if left:
                self.assertIn(left[0], self.run_here("recover", ".").decode())
            if (self.folder / "all.view").exists():
                self.assertIn("rows     3000000\n", self.run_here("info", "all.view").decode())
                os.rename(self.folder / "all.view", self.folder.parent / (self.folder.name + ".view"))
                subprocess.run(["rm", "-r", str(self.folder.parent / (self.folder.name + ".view"))], check=True)
        self.assertGreater(killed, 0)
        self.run_here(*words)
        self.assertEqual(sorted(os.listdir(self.folder)), ["all.view", "in.parquet"])
        self.assertEqual(self.read("all.view", "--records", "2999998..3000000"), [{"n": 2999998}, {"n": 2999999}])
        now = (self.folder / "in.parquet").stat()
        self.assertEqual((now.st_size, now.st_mtime_ns, now.st_ino), (kept.st_size, kept.st_mtime_ns, kept.st_ino))


if __name__ == "__main__":
    unittest.main()
