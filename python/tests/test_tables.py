"""Tables that pyarrow, DuckDB and Polars write: sorted, read back by them, and compared with a sort in Python."""

import contextlib
import datetime
import decimal
import json
import math
import os
import pathlib
import random
import resource
import signal
import subprocess
import tempfile
import time
import unittest
from urllib.parse import unquote

from node import command, leave_out

try:
    import duckdb
    import polars
    import pyarrow
    import pyarrow.dataset
    import pyarrow.feather
    import pyarrow.ipc
    import pyarrow.parquet
except ImportError as missing:
    leave_out(f"{missing}; .ci/setup flight installs the clients")

CASES = int(os.environ.get("TABLE_CASES", "40"))
SEED = int(os.environ.get("TABLE_SEED", "20261128"))


def run(*words, cwd, status=0):
    """The output of a command, which must end with `status`."""
    ended = subprocess.run([command(), *map(str, words)], cwd=cwd, capture_output=True, timeout=120)
    told = ended.stderr.decode()
    assert ended.returncode == status, f"{words}: {ended.returncode}: {told}"
    return ended.stdout if status == 0 else told


def text(drawn):
    words = ["", "a", "ab", "b", "a\0b", "ß", "zz", "a much longer text than twelve bytes"]
    return drawn.choice(words) if drawn.random() < 0.7 else "".join(drawn.choices("abc\0é", k=drawn.randrange(20)))


def number(low, high):
    return lambda drawn: drawn.choice([low, high, 0, 1]) if drawn.random() < 0.3 else drawn.randrange(max(low, -50), min(high, 50))


def real(drawn):
    return drawn.choice([0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, -1.5]) if drawn.random() < 0.4 else drawn.gauss(0, 9)


def instant(drawn):
    return datetime.datetime(2026, 1, 1) + datetime.timedelta(microseconds=drawn.randrange(10**12))


# Types with an order, and their values.
ORDERED = {
    pyarrow.int8(): number(-128, 127),
    pyarrow.int32(): number(-(2**31), 2**31 - 1),
    pyarrow.int64(): number(-(2**63), 2**63 - 1),
    pyarrow.uint16(): number(0, 2**16 - 1),
    pyarrow.uint64(): number(0, 2**64 - 1),
    pyarrow.float32(): lambda drawn: pyarrow.scalar(real(drawn), pyarrow.float32()).as_py(),
    pyarrow.float64(): real,
    pyarrow.bool_(): lambda drawn: drawn.random() < 0.5,
    pyarrow.string(): text,
    pyarrow.large_string(): text,
    pyarrow.string_view(): text,
    pyarrow.binary(): lambda drawn: text(drawn).encode(),
    pyarrow.binary(3): lambda drawn: bytes(drawn.choices(b"\0ab\xff", k=3)),
    pyarrow.dictionary(pyarrow.int32(), pyarrow.string()): text,
    pyarrow.date32(): lambda drawn: datetime.date(2026, 1, 1) + datetime.timedelta(days=drawn.randrange(-20000, 20000)),
    pyarrow.time64("us"): lambda drawn: datetime.time(drawn.randrange(24), drawn.randrange(60), 1, drawn.randrange(10**6)),
    pyarrow.timestamp("us"): instant,
    pyarrow.timestamp("ms", "Europe/Paris"): lambda drawn: instant(drawn).replace(microsecond=0, tzinfo=datetime.timezone.utc),
    pyarrow.decimal128(12, 2): lambda drawn: decimal.Decimal(drawn.randrange(-(10**11), 10**11)).scaleb(-2),
    pyarrow.decimal256(50, 3): lambda drawn: decimal.Decimal(drawn.randrange(-(10**40), 10**40)).scaleb(-3),
}
# Types that are carried along.
CARRIED = {
    pyarrow.list_(pyarrow.string()): lambda drawn: [None if drawn.random() < 0.2 else text(drawn) for _ in range(drawn.randrange(4))],
    pyarrow.large_list(pyarrow.int64()): lambda drawn: [drawn.randrange(9) for _ in range(drawn.randrange(4))],
    pyarrow.list_(pyarrow.float32(), 2): lambda drawn: [1.0, float(drawn.randrange(9))],
    pyarrow.struct([("x", pyarrow.int32()), ("y", pyarrow.list_(pyarrow.string()))]): lambda drawn: {"x": drawn.randrange(9), "y": [text(drawn)]},
    pyarrow.map_(pyarrow.string(), pyarrow.int64()): lambda drawn: [(str(i), drawn.randrange(9)) for i in range(drawn.randrange(3))],
    pyarrow.null(): lambda drawn: None,
}


def column(drawn, of, values, rows):
    share = drawn.choice([0, 0, 0.1, 0.9])
    return pyarrow.array([None if drawn.random() < share else values(drawn) for _ in range(rows)], of)


def table(drawn):
    """A random table: its first columns have an order."""
    rows = drawn.choice([0, 1, 30, 700])
    ordered = drawn.sample(list(ORDERED), drawn.randrange(1, 6))
    carried = drawn.sample(list(CARRIED), drawn.randrange(0, 4))
    kinds = [(of, ORDERED[of]) for of in ordered] + [(of, CARRIED[of]) for of in carried]
    columns = [column(drawn, of, values, rows) for of, values in kinds]
    names = [f"c{place}" for place in range(len(kinds))]
    return pyarrow.table(columns, names=names), len(ordered)


def keys(drawn, ordered):
    chosen = drawn.sample(range(ordered), drawn.randrange(1, min(ordered, 3) + 1))
    return [(f"c{place}", drawn.random() < 0.5, drawn.random() < 0.5) for place in chosen]


def rank(value):
    """A value as it is compared: text by its bytes, one NaN behind all numbers."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value


def in_order(rows, by):
    """The rows, sorted as they should be."""
    for name, descending, last in reversed(by):
        nulls = [row for row in rows if row[name] is None]
        others = [row for row in rows if row[name] is not None]
        others.sort(key=lambda row: rank(row[name]), reverse=descending)
        rows = others + nulls if last else nulls + others
    return rows


def typed(by):
    words = []
    for name, descending, last in by:
        words += ["--key", name + (":r" if descending else "") + (":last" if last else "")]
    return words


def shown(rows):
    """Rows that can be compared: with NaN and the sign of zero."""
    return [{name: repr(value) for name, value in row.items()} for row in rows]


class Tables(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.folder = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.addCleanup(self.stack.close)

    def write(self, drawn, whole, folder):
        """Writes a table in one to three files, in ways of pyarrow's."""
        folder.mkdir()
        cuts = sorted(drawn.randrange(whole.num_rows + 1) for _ in range(drawn.randrange(3)))
        for place, (start, end) in enumerate(zip([0, *cuts], [*cuts, whole.num_rows])):
            part = whole.slice(start, end - start)
            kind = drawn.choice(["parquet", "parquet", "parquet", "arrow"])
            if kind == "parquet":
                pyarrow.parquet.write_table(
                    part,
                    folder / f"{place}.parquet",
                    compression=drawn.choice(["none", "snappy", "zstd", "gzip", "lz4", "brotli"]),
                    row_group_size=drawn.choice([7, 100, 10000]),
                    use_dictionary=drawn.random() < 0.5,
                    data_page_version=drawn.choice(["1.0", "2.0"]),
                    version=drawn.choice(["2.4", "2.6"]),
                )
            else:
                with pyarrow.ipc.new_file(folder / f"{place}.arrow", part.schema) as file:
                    file.write_table(part.unify_dictionaries(), max_chunksize=drawn.choice([5, 1000]))

    def test_random_tables_are_sorted_as_python_sorts_them(self):
        for case in range(CASES):
            drawn = random.Random(SEED + case)
            whole, ordered = table(drawn)
            by = keys(drawn, ordered)
            with self.subTest(case=case, seed=SEED, keys=by, schema=str(whole.schema)):
                folder = self.folder / str(case)
                self.write(drawn, whole, folder)
                more = ["--memory", drawn.choice(["12M", "64M"]), "--threads", drawn.choice(["1", "2", "5"])]
                run("sort", folder, "-o", f"{folder}.parquet", *typed(by), *more, cwd=self.folder)
                sorted_ = pyarrow.parquet.read_table(f"{folder}.parquet")
                expected = in_order(whole.to_pylist(), by)
                self.assertEqual(shown(sorted_.to_pylist()), shown(expected))
                for found, own in zip(sorted_.schema, whole.schema):
                    if pyarrow.types.is_time64(own.type) or "Paris" in str(own.type):
                        continue
                    first = pyarrow.parquet.read_schema(sorted(folder.glob("*"))[0]) if (folder / "0.parquet").exists() else whole.schema
                    self.assertEqual(found.type, first.field(own.name).type)
                run("verify", f"{folder}.parquet", *typed(by), cwd=self.folder)
                sums = [json.loads(run("verify", place, "--json", cwd=self.folder))["checksum"] for place in (folder, f"{folder}.parquet")]
                self.assertEqual(*sums)
                run("sort", folder, "--view", f"{folder}.view", *typed(by), *more, cwd=self.folder)
                stream = run("cat", f"{folder}.view", "--output-format", "arrows", cwd=self.folder)
                read = pyarrow.ipc.open_stream(stream).read_all()
                self.assertEqual(shown(read.to_pylist()), shown(expected))
                start, end = sorted(drawn.randrange(whole.num_rows + 1) for _ in range(2))
                part = run("cat", f"{folder}.view", "--records", f"{start}..{end}", "--output-format", "arrows", cwd=self.folder)
                self.assertEqual(shown(pyarrow.ipc.open_stream(part).read_all().to_pylist()), shown(expected[start:end]))

    def test_files_of_duckdb_and_polars_keep_their_types(self):
        query = """select range as id, 'n' || (range * 7 % 13) as name, (range % 5)::decimal(9, 2) as price,
            uuid() as token, '{"a": 1}'::json as note, interval '1 day' as span, [range, null] as list,
            map {'k': range} as pairs, {'x': range, 'y': 'z'} as pair, range::timestamp_s as at, 'b'::blob as raw,
            (range % 3 = 0)::boolean as flag, range::hugeint as huge, range::utinyint as tiny
            from range(0, 200) where range < 200"""
        query = query.replace("range::timestamp_s", "make_timestamp(range * 1000000)").replace("range::utinyint", "(range % 200)::utinyint")
        place = self.folder / "duck.parquet"
        duckdb.sql(f"copy ({query}) to '{place}' (format parquet, row_group_size 50)")
        run("sort", place, "-o", "duck-sorted.parquet", "--key", "name", "--key", "id:r", cwd=self.folder)
        named = "select name, type, converted_type, logical_type, type_length, repetition_type from parquet_schema('{}')"
        result = self.folder / "duck-sorted.parquet"
        # The root has no repetition, which DuckDB writes all the same.
        types = [duckdb.sql(named.format(file)).fetchall()[1:] for file in (place, result)]
        self.assertEqual(*types)
        ordered = f"select * from '{place}' order by name, id desc"
        self.assertEqual(duckdb.sql(ordered).fetchall(), duckdb.sql(f"select * from '{result}'").fetchall())

        # A view knows these types, too; and of some columns, and with one more.
        run("sort", place, "--view", "duck.view", "--key", "name", "--key", "id:r", cwd=self.folder)
        run("cat", "duck.view", "-o", "duck-read.parquet", cwd=self.folder)
        read = self.folder / "duck-read.parquet"
        self.assertEqual(duckdb.sql(named.format(read)).fetchall()[1:], types[0])
        self.assertEqual(duckdb.sql(ordered).fetchall(), duckdb.sql(f"select * from '{read}'").fetchall())
        run("cat", "duck.view", "--columns", "note,token", "-o", "duck-part.parquet", cwd=self.folder)
        part = duckdb.sql(f"describe select * from '{self.folder / 'duck-part.parquet'}'").fetchall()
        self.assertEqual([column[:2] for column in part], [("note", "JSON"), ("token", "UUID")])

        frame = polars.DataFrame({
            "text": ["b", None, "a", "b"],
            "kind": polars.Series(["x", "y", "x", None], dtype=polars.Categorical),
            "day": [datetime.date(2026, 1, day) for day in (4, 3, 2, 1)],
            "list": [[1], [], None, [2, 3]],
            "nested": [{"a": 1, "b": [1.5]}, {"a": 2, "b": []}, {"a": None, "b": None}, {"a": 4, "b": [2.5]}],
            "span": [datetime.timedelta(seconds=second) for second in (1, 2, 3, 4)],
        })
        frame.write_parquet(self.folder / "p.parquet")
        frame.write_ipc(self.folder / "p.arrow")
        expected = frame.sort(["text", "day"], nulls_last=True, maintain_order=True)
        for form in ("parquet", "arrow"):
            run("sort", f"p.{form}", "-o", f"sorted.{form}", "--key", "text:last", "--key", "day:last", cwd=self.folder)
            read = polars.read_parquet if form == "parquet" else polars.read_ipc
            self.assertTrue(read(self.folder / f"sorted.{form}").equals(expected), form)

    def test_what_the_first_file_says_is_kept(self):
        schema = pyarrow.schema([pyarrow.field("a", pyarrow.int64(), nullable=False, metadata={"unit": "m"})], metadata={"geo": "{}"})
        whole = pyarrow.table({"a": [3, 1, 2]}, schema=schema)
        pyarrow.parquet.write_table(whole, self.folder / "in.parquet", compression="zstd", use_dictionary=False)
        run("sort", "in.parquet", "-o", "out.parquet", "--key", "a:r", cwd=self.folder)
        read = pyarrow.parquet.ParquetFile(self.folder / "out.parquet")
        self.assertEqual(read.read().column("a").to_pylist(), [3, 2, 1])
        self.assertEqual(read.schema_arrow.field("a").metadata[b"unit"], b"m")
        self.assertFalse(read.schema_arrow.field("a").nullable)
        self.assertEqual(read.metadata.metadata[b"geo"], b"{}")
        chunk = read.metadata.row_group(0)
        self.assertEqual(chunk.column(0).compression, "ZSTD")
        self.assertNotIn("RLE_DICTIONARY", chunk.column(0).encodings)
        self.assertEqual(chunk.sorting_columns, (pyarrow.parquet.SortingColumn(0, True, True),))
        self.assertTrue(chunk.column(0).has_offset_index and chunk.column(0).has_column_index)
        self.assertEqual((chunk.column(0).statistics.min, chunk.column(0).statistics.max), (1, 3))

    def test_equal_rows_are_dropped_counted_and_merged(self):
        numbers = [5, 1, 5, 3, 1, 5]
        pyarrow.parquet.write_table(pyarrow.table({"n": numbers, "at": list(range(6))}), self.folder / "in.parquet", row_group_size=2)
        def rows(name):
            return pyarrow.parquet.read_table(self.folder / name).to_pylist()
        run("sort", "in.parquet", "--distinct", "--key", "n", "-o", "first.parquet", cwd=self.folder)
        self.assertEqual(rows("first.parquet"), [{"n": 1, "at": 1}, {"n": 3, "at": 3}, {"n": 5, "at": 0}])
        run("sort", "in.parquet", "--count", "--key", "n:r", "-o", "count.parquet", cwd=self.folder)
        self.assertEqual([(row["n"], row["count"]) for row in rows("count.parquet")], [(5, 3), (3, 1), (1, 2)])
        run("sort", "in.parquet", "--top", "2", "--key", "n:r", "-o", "top.parquet", cwd=self.folder)
        self.assertEqual([row["at"] for row in rows("top.parquet")], [0, 2])
        run("sort", "in.parquet", "--count", "--key", "n", "--view", "count.view", cwd=self.folder)
        csv = run("cat", "count.view", "--columns", "n,count", cwd=self.folder).decode()
        self.assertEqual(csv, "n,count\n1,2\n3,1\n5,3\n")
        orders = set()
        for seed in (1, 1, 2):
            run("sort", "in.parquet", "--shuffle", "--seed", seed, "-o", "mixed.parquet", cwd=self.folder)
            mixed = tuple(row["at"] for row in rows("mixed.parquet"))
            self.assertEqual(sorted(mixed), list(range(6)))
            orders.add(mixed)
        self.assertEqual(len(orders), 2)
        for part, numbers in (("a", [1, 3, 3]), ("b", [2, 3, 9])):
            pyarrow.parquet.write_table(pyarrow.table({"n": numbers, "of": [part] * 3}), self.folder / f"{part}.parquet")
        run("sort", "-m", "a.parquet", "b.parquet", "-o", "merged.parquet", "--key", "n", cwd=self.folder)
        self.assertEqual([(row["n"], row["of"]) for row in rows("merged.parquet")], [(1, "a"), (2, "b"), (3, "a"), (3, "a"), (3, "b"), (9, "b")])
        told = run("sort", "-m", "in.parquet", "-o", "merged.parquet", "--key", "n", cwd=self.folder, status=2)
        self.assertIn("in.parquet: row 2 is out of order", told)
        self.assertEqual(len(rows("merged.parquet")), 6)
        told = run("verify", "in.parquet", "--key", "n", cwd=self.folder, status=1)
        self.assertIn("row 2 should be before", told)

    def test_keys_of_a_view_are_typed_as_values(self):
        names = [f"n{number % 40:02}" for number in range(1000)]
        whole = pyarrow.table({"name": names, "amount": [number % 7 - 3.5 for number in range(1000)], "id": list(range(1000))})
        pyarrow.parquet.write_table(whole, self.folder / "in.parquet")
        def ids(*words):
            lines = run("cat", *words, "--columns", "id", "--output-format", "jsonl", cwd=self.folder).decode().splitlines()
            return [json.loads(line)["id"] for line in lines]
        for key, ordered in (("name", sorted(range(1000), key=lambda at: names[at])), ("name:r", sorted(range(1000), key=lambda at: names[at], reverse=True))):
            run("sort", "in.parquet", "--view", "name.view", "--key", key, cwd=self.folder)
            low, high = ("n07", "n09") if key == "name" else ("n09", "n07")
            expected = [at for at in ordered if names[at] in ({"n07", "n08"} if key == "name" else {"n09", "n08"})]
            self.assertEqual(ids("name.view", "--from-key", low, "--to-key", high), expected)
            self.assertEqual(ids("name.view", "--from-key", low, "--head", "3"), expected[:3])
            subprocess.run(["rm", "-r", self.folder / "name.view"], check=True)
        run("sort", "in.parquet", "--view", "amount.view", "--key", "amount", cwd=self.folder)
        found = ids("amount.view", "--from-key", "-1.5", "--to-key", "0.5")
        self.assertEqual(found, [at for wanted in (2, 3) for at in range(wanted, 1000, 7)])
        told = run("cat", "amount.view", "--from-key", "much", cwd=self.folder, status=2)
        self.assertIn('"much" is no value of column amount, which is of type Float64', told)

    def test_the_bytes_of_a_view_are_no_file(self):
        pyarrow.parquet.write_table(pyarrow.table({"n": [2, 1], "l": [[1], [2]]}), self.folder / "in.parquet")
        run("sort", "in.parquet", "--view", "n.view", "--key", "n", cwd=self.folder)
        for words in (["materialize", "n.view", "-o", "out"], ["materialize", "n.view", "-o", "out", "--consume"], ["mount", "n.view", "."]):
            told = run(*words, cwd=self.folder, status=2)
            self.assertIn("n.view: is a view of a table, whose bytes no program reads; merganser cat VIEW", told)
        self.assertEqual(sorted(os.listdir(self.folder)), ["in.parquet", "n.view"])
        self.assertEqual(run("cat", "n.view", cwd=self.folder), b'{"n":1,"l":[2]}\n{"n":2,"l":[1]}\n')
        self.assertEqual(run("cat", "n.view", "--columns", "n", cwd=self.folder), b"n\n1\n2\n")
        self.assertIn("verified", run("info", "n.view", "--verify", cwd=self.folder).decode())
        run("verify", "n.view", cwd=self.folder)
        told = run("cat", "n.view", "--output-format", "csv", cwd=self.folder, status=2)
        self.assertRegex(told, "column l is of type List.*, which csv can't hold; take --output-format jsonl")

    def folders(self, root):
        """The rows of the files of each folder, in the order of their names."""
        rows = {}
        for file in sorted(self.folder.joinpath(root).rglob("*.parquet")):
            folder = str(file.parent.relative_to(self.folder / root))
            rows.setdefault(folder, []).extend(pyarrow.parquet.ParquetFile(file).read().to_pylist())
        return rows

    def test_folders_are_read_as_those_of_hive(self):
        texts = {
            pyarrow.string(): str,
            pyarrow.dictionary(pyarrow.int32(), pyarrow.string()): str,
            pyarrow.int32(): str,
            pyarrow.uint64(): str,
            pyarrow.bool_(): lambda value: str(value).lower(),
            pyarrow.date32(): str,
            pyarrow.decimal128(12, 2): str,
            pyarrow.timestamp("us"): lambda value: value.isoformat(),
            pyarrow.timestamp("ms", "Europe/Paris"): lambda value: value.astimezone(datetime.timezone.utc).replace(tzinfo=None).isoformat() + "Z",
        }
        null = "__HIVE_DEFAULT_PARTITION__"
        for case in range(CASES // 2):
            drawn = random.Random(SEED + case)
            rows = drawn.choice([1, 40, 600])
            kinds = drawn.sample(list(texts), drawn.randrange(1, 3))
            few = {of: [None if drawn.random() < 0.2 else ORDERED[of](drawn) for _ in range(4)] for of in kinds}
            columns = {f"p{place}": pyarrow.array([drawn.choice(few[of]) for _ in range(rows)], of) for place, of in enumerate(kinds)}
            columns |= {"at": list(range(rows)), "s": [text(drawn) for _ in range(rows)], "r": [real(drawn) for _ in range(rows)]}
            whole = pyarrow.table(columns)
            by = [("s", drawn.random() < 0.5, False), ("r", False, True)][: drawn.randrange(3)]
            with self.subTest(case=case, seed=SEED, keys=by, schema=str(whole.schema)):
                folder = self.folder / str(case)
                self.write(drawn, whole, folder)
                names = list(columns)[: len(kinds)]
                size = drawn.choice([[], ["--file-size", "64K"]])
                more = ["--row-group-rows", drawn.choice(["10", "1000"]), "--threads", drawn.choice(["1", "3"])]
                run("sort", folder, "-o", f"{case}.out/", "--partition-by", ",".join(names), *size, *more, *typed(by), cwd=self.folder)

                def named(row):
                    values = [null if row[name] is None else texts[of](row[name]) for name, of in zip(names, kinds)]
                    return tuple(values)

                def of_folder(name):
                    pairs = [part.split("=", 1) for part in name.split("/")]
                    self.assertEqual([unquote(column) for column, _ in pairs], names)
                    return tuple(unquote(value) for _, value in pairs)

                expected = {}
                for row in in_order(whole.to_pylist(), by):
                    expected.setdefault(named(row), []).append({name: row[name] for name in ("at", "s", "r")})
                found = {of_folder(name): rows for name, rows in self.folders(f"{case}.out").items()}
                self.assertEqual({key: shown(rows) for key, rows in found.items()}, {key: shown(rows) for key, rows in expected.items()})

                # Other programs, which take all columns of folders as text.
                at = {row["at"]: named(row) for row in whole.to_pylist()}
                place = self.folder / f"{case}.out"
                schema = pyarrow.schema([(name, pyarrow.string()) for name in names])
                read = pyarrow.dataset.dataset(place, partitioning=pyarrow.dataset.partitioning(schema, flavor="hive")).to_table()
                frame = polars.read_parquet(place, hive_partitioning=True, hive_schema={name: polars.String for name in names}, try_parse_hive_dates=False)
                duck = duckdb.sql(f"select * from read_parquet('{place}/**/*.parquet', hive_partitioning=true, hive_types_autocast=false)")
                for rows in (read.to_pylist(), frame.to_dicts(), duck.to_arrow_table().to_pylist()):
                    self.assertEqual({row["at"]: tuple(row[name] if row[name] is not None else null for name in names) for row in rows}, at)

                # And this one: numbers are numbers of 64 bits, others are texts.
                run("sort", place, "-o", f"{case}.back.parquet", "--key", "at", cwd=self.folder)
                back = pyarrow.parquet.ParquetFile(self.folder / f"{case}.back.parquet").read()
                self.assertEqual(back.column_names, ["at", "s", "r", *names])
                self.assertEqual(shown(back.select(["at", "s", "r"]).to_pylist()), shown(whole.select(["at", "s", "r"]).to_pylist()))
                for name, of in zip(names, kinds):
                    values = [value for value in back.column(name).to_pylist()]
                    wanted = [None if value is None else texts[of](value) for value in whole.column(name).to_pylist()]
                    self.assertEqual([None if value is None else str(value) for value in values], wanted)
                    known = [value for value in wanted if value is not None]
                    is_number = known and all(value.lstrip("-").isdigit() and str(int(value)) == value and abs(int(value)) < 2**63 for value in known)
                    self.assertEqual(back.schema.field(name).type, pyarrow.int64() if is_number else pyarrow.string())

    def test_folders_of_other_programs_are_columns(self):
        whole = pyarrow.table({
            "at": list(range(60)),
            "country": [["FR", "DE", "a b/c:d"][at % 3] for at in range(60)],
            "year": [2023 + at % 2 for at in range(60)],
        })
        pyarrow.parquet.write_table(whole, self.folder / "whole.parquet")
        expected = sorted(whole.to_pylist(), key=lambda row: (-row["year"], row["country"], row["at"]))
        duckdb.sql(f"copy (from '{self.folder}/whole.parquet') to '{self.folder}/duck' (format parquet, partition_by (country, year))")
        pyarrow.dataset.write_dataset(
            whole, self.folder / "arrow", format="parquet",
            partitioning=pyarrow.dataset.partitioning(pyarrow.schema([("country", pyarrow.string()), ("year", pyarrow.int64())]), flavor="hive"),
        )
        by = ["--key", "year:r", "--key", "country", "--key", "at"]
        for writer in ("duck", "arrow"):
            for place in (writer, f"{writer}/country=*/*/*.parquet"):
                run("sort", place, "-o", "out.parquet", *by, cwd=self.folder)
                found = pyarrow.parquet.ParquetFile(self.folder / "out.parquet").read()
                self.assertEqual(found.to_pylist(), expected, place)
                self.assertEqual(str(found.schema.field("year").type), "int64")
            run("sort", writer, "--view", f"{writer}.view", *by, cwd=self.folder)
            csv = run("cat", f"{writer}.view", "--columns", "year,at", "--from-key", "2024", cwd=self.folder).decode().splitlines()
            self.assertEqual(csv[1:], [f"{row['year']},{row['at']}" for row in expected])
        run("verify", "out.parquet", *by, cwd=self.folder)
        told = run("sort", "duck", "--no-hive", "-o", "out.parquet", "--key", "year", cwd=self.folder, status=2)
        self.assertIn("has no column year; it has at", told)
        self.assertIn("country", run("info", "duck", cwd=self.folder).decode())
        self.assertNotIn("country", run("info", "duck", "--no-hive", cwd=self.folder).decode())

        # A column that is in a file, too, is that of the file.
        both = self.folder / "both/country=XX"
        both.mkdir(parents=True)
        pyarrow.parquet.write_table(whole, both / "x.parquet")
        run("sort", "both", "-o", "out.parquet", *by, cwd=self.folder)
        self.assertEqual(pyarrow.parquet.ParquetFile(self.folder / "out.parquet").read().to_pylist(), expected)
        (self.folder / "mixed/a=1").mkdir(parents=True)
        pyarrow.parquet.write_table(whole, self.folder / "mixed/a=1/x.parquet")
        pyarrow.parquet.write_table(whole, self.folder / "mixed/y.parquet")
        told = run("sort", "mixed", "-o", "out.parquet", "--key", "at", cwd=self.folder, status=2)
        self.assertEqual(told, "merganser: mixed/y.parquet: its folders do not name column a, as those of mixed/a=1/x.parquet do; --no-hive leaves such columns out\n")
        run("sort", "mixed", "--no-hive", "-o", "out.parquet", "--key", "at", cwd=self.folder)

    def test_a_table_that_is_not_there_is_named(self):
        for words in (["sort", "missing.parquet", "-o", "out", "--key", "name"], ["verify", "missing.arrow"], ["info", "missing.arrows"]):
            told = run(*words, cwd=self.folder, status=2)
            self.assertIn(f"{words[1]}: No such file or directory", told)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_file_of_arrow_has_one_dictionary_for_all_batches(self):
        rows = 30_000
        words = [f"w{n * 7919 % rows // 40:04}" for n in range(rows)]
        table = pyarrow.table(
            {
                "n": [n * 7919 % rows for n in range(rows)],
                "word": pyarrow.array([None if n % 11 == 0 else word for n, word in enumerate(words)]).dictionary_encode(),
                "few": pyarrow.array([n % 3 for n in range(rows)]).dictionary_encode(),
                "none": pyarrow.array([None] * rows, pyarrow.string()).dictionary_encode(),
            }
        )
        expected = table.take(pyarrow.compute.sort_indices(table["n"]))
        with pyarrow.ipc.new_stream(self.folder / "in.arrows", table.schema) as writer:
            writer.write_table(table, max_chunksize=1000)
        run("sort", "in.arrows", "--view", "v.view", "--key", "n", cwd=self.folder)
        run("sort", "in.arrows", "-o", "out.arrow", "--key", "n", "--memory", "16M", cwd=self.folder)
        (self.folder / "cat.arrow").write_bytes(run("cat", "v.view", "--output-format", "arrow", cwd=self.folder))
        for name in ("out.arrow", "cat.arrow"):
            file = pyarrow.ipc.open_file(self.folder / name)
            self.assertGreater(file.num_record_batches, 3)
            found = file.read_all()
            found.validate(full=True)
            self.assertEqual((found.schema, found.to_pylist()), (table.schema, expected.to_pylist()))
            # Readers may begin anywhere.
            self.assertEqual(file.get_batch(2).to_pylist(), expected.slice(2 * 8192, 8192).to_pylist())
            frame = polars.read_ipc(self.folder / name)
            self.assertEqual(frame["word"].to_list(), expected["word"].to_pylist())
        run("sort", "out.arrow", "-o", "back.arrow", "--key", "word", "--key", "n", cwd=self.folder)
        self.assertEqual(pyarrow.ipc.open_file(self.folder / "back.arrow").read_all().num_rows, rows)
        # Arrow does not say how many rows there are before they are read.
        self.assertNotIn("rows", run("info", "out.arrow", cwd=self.folder).decode())
        self.assertIsNone(json.loads(run("info", "out.arrow", "--json", cwd=self.folder))["rows"])

        one = pyarrow.table({"n": [1], "l": pyarrow.array([["a"]], pyarrow.list_(pyarrow.dictionary(pyarrow.int32(), pyarrow.string())))})
        with pyarrow.ipc.new_file(self.folder / "inner.arrow", one.schema) as writer:
            writer.write_table(one)
        told = run("sort", "inner.arrow", "-o", "no.arrow", "--key", "n", cwd=self.folder, status=2)
        self.assertIn("column l has dictionaries in lists or structs", told)
        small = pyarrow.table({"c": pyarrow.array([f"{n}" for n in range(100)]).dictionary_encode().cast(pyarrow.dictionary(pyarrow.int8(), pyarrow.string()))})
        other = pyarrow.table({"c": pyarrow.array([f"{n}" for n in range(100, 200)]).dictionary_encode().cast(pyarrow.dictionary(pyarrow.int8(), pyarrow.string()))})
        for name, part in (("a", small), ("b", other)):
            with pyarrow.ipc.new_file(self.folder / f"{name}.arrow", part.schema) as writer:
                writer.write_table(part)
        told = run("sort", "a.arrow", "b.arrow", "-o", "no.arrow", "--key", "c", cwd=self.folder, status=2)
        self.assertIn("column c has more different values than its indices of type Int8 can name; take --output-format parquet or csv", told)
        run("sort", "a.arrow", "b.arrow", "-o", "yes.parquet", "--key", "c", cwd=self.folder)
        self.assertEqual(pyarrow.parquet.ParquetFile(self.folder / "yes.parquet").metadata.num_rows, 200)
        long = pyarrow.table({"c": pyarrow.array([f"{n:0200}" for n in range(60_000)]).dictionary_encode()})
        pyarrow.parquet.write_table(long, self.folder / "long.parquet")
        told = run("sort", "long.parquet", "-o", "no.arrow", "--key", "c", cwd=self.folder, status=2)
        self.assertEqual(
            told,
            "merganser: column c has more different values than one dictionary of a file of Arrow takes; take --output-format arrows, whose batches have dictionaries of their own\n",
        )
        run("sort", "long.parquet", "-o", "yes.arrows", "--key", "c", cwd=self.folder)
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("no")], [])

    def test_files_of_a_size_are_in_order_by_their_names(self):
        drawn = random.Random(SEED)
        whole = pyarrow.table({"n": [drawn.randrange(10**6) for _ in range(60000)], "s": [text(drawn) for _ in range(60000)]})
        pyarrow.parquet.write_table(whole, self.folder / "in.parquet")
        for words in (["--key", "n"], ["--shuffle", "--seed", "7"]):
            run("sort", "in.parquet", "-o", "out", "--file-size", "100K", "--memory", "16M", *words, cwd=self.folder)
            files = sorted(self.folder.joinpath("out").iterdir())
            self.assertEqual([file.name for file in files], [f"part-{number:05}.parquet" for number in range(len(files))])
            self.assertGreater(len(files), 3)
            for file in files:
                self.assertLessEqual(file.stat().st_size, 100 << 10)
            for file in files[:-1]:
                self.assertGreater(file.stat().st_size, 70 << 10)
            run("sort", "in.parquet", "-o", "one.parquet", "--memory", "16M", *words, cwd=self.folder)
            one = pyarrow.parquet.read_table(self.folder / "one.parquet")
            self.assertEqual(pyarrow.parquet.read_table(self.folder / "out").to_pylist(), one.to_pylist())
            subprocess.run(["rm", "-r", self.folder / "out"], check=True)
        (self.folder / "out").mkdir()
        run("sort", "in.parquet", "-o", "out/", "--file-size", "64K", "--key", "n", cwd=self.folder)
        self.assertEqual(sorted(os.listdir(self.folder)), ["in.parquet", "one.parquet", "out"])

    def test_folders_are_refused_before_anything_is_written(self):
        pyarrow.parquet.write_table(pyarrow.table({"n": [1], "s": ["a"], "x": [0.5], "l": [[1]]}), self.folder / "in.parquet")
        (self.folder / "full").mkdir()
        (self.folder / "full/kept").write_text("kept")
        (self.folder / "file").write_text("kept")
        refused = [
            (["-o", "full", "--file-size", "1M"], "full: exists, and is no empty folder; move it away or give -o another name"),
            (["-o", "file", "--partition-by", "s"], "file: exists, and is no empty folder; move it away or give -o another name"),
            (["--partition-by", "s"], "--partition-by: makes files in a folder; name it with -o DIR"),
            (["--view", "out", "--file-size", "1M"], "--file-size: makes files in a folder; name it with -o DIR"),
            (["-o", "out", "--file-size", "1M", "--output-format", "arrow"], "--file-size: files in a folder are of Parquet; take --output-format parquet"),
            (["-o", "out", "--file-size", "1000"], "--file-size: give at least 64K"),
            (["-o", "out", "--partition-by", "s", "--top", "3"], "--partition-by: --top keeps the first rows of one order, and each folder has its own"),
            (["-o", "out", "--partition-by", "s", "-m"], "--partition-by: the files that -m merges are not in the order of these columns; leave out -m"),
            (["-o", "out", "--partition-by", "s", "--distinct"], "--partition-by: rows with equal keys may be in several folders; add --key s, too"),
            (["-o", "out", "--partition-by", "a,b,c,d,e,f,g"], "--partition-by: name at most 6 columns"),
            (["-o", "out", "--partition-by", "none"], "in.parquet: has no column none; it has n, s, x, l"),
            (["-o", "out", "--partition-by", "x"], "in.parquet: column x is of type Float64, whose values can't name folders"),
            (["-o", "out", "--partition-by", "l"], "in.parquet: column l is of type List(Int64, field: 'element'), which has no order"),
        ]
        for words, sentence in refused:
            told = run("sort", "in.parquet", "--key", "n", *words, cwd=self.folder, status=2)
            self.assertEqual(told, f"merganser: {sentence}\n")
            self.assertEqual(sorted(os.listdir(self.folder)), ["file", "full", "in.parquet"])
        pyarrow.parquet.write_table(pyarrow.table({"n": [1]}), self.folder / "one.parquet")
        told = run("sort", "one.parquet", "-o", "out", "--partition-by", "n", cwd=self.folder, status=2)
        self.assertEqual(told, "merganser: one.parquet: all its columns would name folders, and none would be in a file\n")

    def test_a_folder_appears_whole_or_not_at_all(self):
        rows = 300_000
        whole = pyarrow.table({"n": list(range(rows)), "p": [at % 40 for at in range(rows)], "s": [str(at * 7919 % rows) * 5 for at in range(rows)]})
        pyarrow.parquet.write_table(whole, self.folder / "in.parquet")
        words = [command(), "sort", "in.parquet", "-o", "out", "--partition-by", "p", "--file-size", "64K", "--key", "s", "--memory", "16M", "--threads", "1"]
        grown = self.folder / ".out.unfinished/files"

        def interrupted(end):
            running = subprocess.Popen(words, cwd=self.folder, stderr=subprocess.PIPE)
            until = time.monotonic() + 60
            while running.poll() is None and time.monotonic() < until:
                if grown.is_dir() and len(os.listdir(grown)) > 3:
                    self.assertFalse((self.folder / "out").exists())
                    running.send_signal(end)
                    break
                time.sleep(0.001)
            told = running.communicate(timeout=60)[1].decode()
            self.assertNotEqual(running.returncode, 0, told)
            return told

        interrupted(signal.SIGTERM)
        self.assertEqual(os.listdir(self.folder), ["in.parquet"])
        interrupted(signal.SIGKILL)
        self.assertEqual(sorted(os.listdir(self.folder)), [".out.unfinished", "in.parquet"])
        told = json.loads(run("recover", ".", "--json", cwd=self.folder))["leftovers"]
        self.assertEqual([(left["kind"], left["only_copy"]) for left in told], [("files", False)])
        self.assertEqual(told[0]["what"], "a folder of tables that was not finished; its inputs are whole")
        self.assertGreater(told[0]["bytes"], 8192)
        # A file that can't grow is a disk that is full.
        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
        ended = subprocess.run([*words, "--memory", "256M"], cwd=self.folder, capture_output=True, preexec_fn=small_files, timeout=60)
        told = ended.stderr.decode()
        self.assertEqual(ended.returncode, 2, told)
        self.assertRegex(told, r"^merganser: .*left by a killed command, removed\nmerganser: \S*files/p=0/part-00000.parquet: File too large", told)
        self.assertEqual(os.listdir(self.folder), ["in.parquet"])
        subprocess.run(words, cwd=self.folder, check=True, timeout=60)
        self.assertEqual(len(os.listdir(self.folder / "out")), 40)

    def test_many_files_are_merged_or_sorted_and_their_order_is_checked(self):
        count = 400
        (self.folder / "in").mkdir()
        for file in range(count):
            numbers = [file * 7919 % 1000 + row * 1000 for row in range(20)]
            pyarrow.parquet.write_table(pyarrow.table({"n": numbers, "of": [file] * 20}), self.folder / f"in/{file:05}.parquet", row_group_size=7)
        expected = sorted(((file * 7919 % 1000 + row * 1000, file) for file in range(count) for row in range(20)))
        # Where all readers fit, and where they don't.
        for memory, merged in (("16G", True), ("24M", False)):
            run("sort", "-m", "in", "-o", "out.parquet", "--key", "n", "--memory", memory, "--report", "report.json", cwd=self.folder)
            self.assertEqual(json.loads((self.folder / "report.json").read_text())["sort"]["merged"], merged)
            out = pyarrow.parquet.read_table(self.folder / "out.parquet")
            self.assertEqual(list(zip(out["n"].to_pylist(), out["of"].to_pylist())), expected)
        # A row group apart, and within one.
        for place, row in ((7, 8), (16, 17)):
            numbers = list(range(20))
            numbers[place], numbers[0] = -1, -2
            pyarrow.parquet.write_table(pyarrow.table({"n": numbers, "of": [0] * 20}), self.folder / "in/00250.parquet", row_group_size=7)
            for memory in ("16G", "24M"):
                for threads in ("1", "3"):
                    told = run("sort", "-m", "in", "-o", "out.parquet", "--key", "n", "--memory", memory, "--threads", threads, cwd=self.folder, status=2)
                    self.assertEqual(told, f"merganser: in/00250.parquet: row {row} is out of order\n")
        self.assertEqual(out.num_rows, pyarrow.parquet.read_table(self.folder / "out.parquet").num_rows)

    def test_damaged_and_other_files_are_one_sentence(self):
        whole = pyarrow.table({"n": list(range(5000)), "s": [f"text {number}" for number in range(5000)]})
        place = self.folder / "in.parquet"
        pyarrow.parquet.write_table(whole, place, row_group_size=1000)
        good = place.read_bytes()
        drawn = random.Random(SEED)
        refused = 0
        for case in range(60):
            bad = bytearray(good)
            if case % 2:
                bad[drawn.randrange(4, len(bad))] ^= 1 << drawn.randrange(8)
            else:
                del bad[drawn.randrange(4, len(bad)):]
            place.write_bytes(bad)
            ended = subprocess.run([command(), "sort", "in.parquet", "-o", "out.parquet", "--key", "s", "--quiet"], cwd=self.folder, capture_output=True, timeout=60)
            told = ended.stderr.decode()
            if ended.returncode:
                refused += 1
                self.assertEqual(ended.returncode, 2, told)
                self.assertEqual(len(told.splitlines()), 1, told)
                self.assertIn("in.parquet", told)
                self.assertFalse((self.folder / "out.parquet").exists())
            else:
                (self.folder / "out.parquet").unlink()
            self.assertEqual([name for name in os.listdir(self.folder) if name != "in.parquet"], [])
        self.assertGreater(refused, 30)
        place.write_bytes(good)
        other = pyarrow.table({"n": ["a"], "s": ["b"]})
        pyarrow.parquet.write_table(other, self.folder / "other.parquet")
        told = run("sort", "in.parquet", "other.parquet", "-o", "out.parquet", "--key", "s", cwd=self.folder, status=2)
        self.assertIn("other.parquet: column n is of type Utf8, and in.parquet has Int64", told)
        told = run("sort", "in.parquet", "-o", "out.parquet", "--key", "none", cwd=self.folder, status=2)
        self.assertIn("in.parquet: has no column none; it has n, s", told)
        told = run("sort", "in.parquet", "-o", "out.parquet", cwd=self.folder, status=2)
        self.assertIn("--key: name the columns to sort by", told)


if __name__ == "__main__":
    unittest.main()
