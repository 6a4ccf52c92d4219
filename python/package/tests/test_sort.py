"""Sorts of tables against Polars, DuckDB, pyarrow and Python's own sort."""

import random
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import merganser as mg
from conftest import ORDERED, random_table, sorted_ids


def shown(table):
    """Rows as text: unlike values, NaN is equal to NaN there, and 0.0 is not -0.0."""
    return repr(table.to_pylist())


@pytest.mark.parametrize("seed", range(12))
def test_random_tables_by_random_keys(seed):
    rng = random.Random(seed)
    table = random_table(seed, rng.choice([0, 1, 500]))
    keys = [(column, rng.random() < 0.5, rng.random() < 0.5) for column in rng.sample(ORDERED, rng.randint(1, 3))]
    if seed % 2:
        by = ", ".join(f"{name}{' desc' if down else ''} nulls {'last' if last else 'first'}" for name, down, last in keys)
    else:
        place = {True: "at_end", False: "at_start"}
        by = [(name, "descending" if down else "ascending", place[last]) for name, down, last in keys]
    report = mg.sort(table, "out.arrow", by=by)
    found = pa.ipc.open_file("out.arrow").read_all()
    rows = table.to_pylist()
    expected = [rows[number] for number in sorted_ids(table, keys)]
    assert report == mg.SortReport(table.num_rows, table.num_rows, 0, False)
    assert found.schema.equals(table.schema)
    assert shown(found) == repr(expected), by


@pytest.mark.parametrize("seed", range(4))
def test_the_order_is_that_of_polars_and_duckdb(seed):
    rng = random.Random(seed)
    columns = ["text", "int", "float", "flag", "day", "at", "price", "colour"]
    keys = [(column, rng.random() < 0.5, rng.random() < 0.5) for column in rng.sample(columns, 2)]
    table = random_table(seed, 400)
    table = table.set_column(table.schema.get_field_index("colour"), "colour", table["colour"].cast(pa.string()))
    words = [f"{name} {'desc' if down else 'asc'} nulls {'last' if last else 'first'}" for name, down, last in keys]
    view = mg.sort_view(table, "v.view", by=", ".join(words))
    ids = pa.table(view)["id"].to_pylist()
    names, down, last = zip(*keys)
    frame = pl.from_arrow(table.select(["id", *names]))
    frame = frame.sort(names, descending=list(down), nulls_last=list(last), maintain_order=True)
    assert ids == frame["id"].to_list(), words
    given = table
    duck = duckdb.sql(f"select id from (select id, {', '.join(names)} from given) order by {', '.join(words)}, id")
    assert ids == [row[0] for row in duck.fetchall()], words


def test_little_memory_changes_nothing():
    table = pa.concat_tables([random_table(seed, 3000) for seed in range(20)])
    table = table.set_column(0, "id", pa.array(range(table.num_rows)))
    pq.write_table(table.drop_columns(["seen"]), "in.parquet", row_group_size=1000)
    whole = mg.sort("in.parquet", "whole.parquet", by="text, float desc")
    spilled = mg.sort("in.parquet", "spilled.parquet", by="text, float desc", memory="8MB", threads=2)
    assert whole.runs == 0 and spilled.runs > 1
    found = pq.read_table("spilled.parquet")
    assert found["id"].to_pylist() == sorted_ids(table, [("text", False, False), ("float", True, False)])
    assert shown(found.slice(0, 999)) == shown(pq.read_table("whole.parquet").slice(0, 999))
    assert not [path for path in Path().iterdir() if path.name.startswith(".")]
    order = pq.ParquetFile("spilled.parquet").metadata.row_group(0).sorting_columns
    assert [(column.descending, column.nulls_first) for column in order] == [(False, True), (True, True)]


def test_every_kind_of_input():
    table = pa.table({"name": ["b", None, "a"], "qty": [1, 2, 3]})
    pq.write_table(table, "one.parquet")
    frame = pl.DataFrame({"name": ["b", None, "a"], "qty": [1, 2, 3]})
    view = mg.sort_view(table, "given.view", by="qty")
    given = table
    relation = duckdb.sql("from given")
    inputs = {
        "path": "one.parquet",
        "Path": Path("one.parquet"),
        "list": ["one.parquet"],
        "pattern": "on[e].parquet",
        "table": table,
        "batch": table.to_batches()[0],
        "reader": pa.RecordBatchReader.from_batches(table.schema, table.to_batches()),
        "chunks": pa.concat_tables([table.slice(0, 1), table.slice(1)]),
        "polars": frame,
        "pandas": pd.DataFrame({"name": ["b", None, "a"], "qty": [1, 2, 3]}),
        "duckdb": relation,
        "view": view,
        "part": view[0:3],
    }
    for what, given in inputs.items():
        mg.sort(given, "out.parquet", by="name nulls last")
        rows = pq.read_table("out.parquet").to_pylist()
        assert [(row["name"], row["qty"]) for row in rows] == [("a", 3), ("b", 1), (None, 2)], what
    folder = Path("folder")
    folder.mkdir()
    pq.write_table(table, folder / "x.parquet")
    mg.sort(folder, "out.parquet", by="name")
    assert pq.read_table("out.parquet").num_rows == 3


def test_a_stream_is_read_batch_by_batch():
    batches = 0

    def made():
        nonlocal batches
        for number in range(50):
            batches += 1
            yield pa.record_batch({"n": pa.array(range(50_000 * number, 50_000 * (number + 1)))})

    schema = pa.schema([("n", pa.int64())])
    report = mg.sort(pa.RecordBatchReader.from_batches(schema, made()), "out.parquet", by="n desc", memory="10MB")
    assert batches == 50 and report.rows == 2_500_000 and report.runs > 1
    found = pq.read_table("out.parquet")["n"]
    assert found[0].as_py() == 2_499_999 and found[-1].as_py() == 0 and len(found) == 2_500_000


@pytest.mark.parametrize("name", ["out.parquet", "out.arrow", "out.arrows", "out.csv", "out.jsonl"])
def test_formats_by_name_and_by_word(name):
    mg.sort("in/*.parquet", name, by="name")
    word = name.split(".")[1]
    mg.sort("in/*.parquet", "other", by="name", output_format=word)
    assert Path("other").read_bytes() == Path(name).read_bytes()
    assert len(Path(name).read_bytes()) > 40
    mg.sort("in/*.parquet", "as-input", by="name")
    assert Path("as-input").read_bytes()[:4] == b"PAR1"


def test_parquet_as_it_is_asked_for():
    mg.sort("in/*.parquet", "out.parquet", by="name", compression="zstd", row_group_rows=2)
    metadata = pq.ParquetFile("out.parquet").metadata
    assert metadata.num_row_groups == 3 and metadata.row_group(0).column(0).compression == "ZSTD"


def test_the_output_may_be_the_input():
    mg.sort("in/a.parquet", "in/a.parquet", by="name")
    assert pq.read_table("in/a.parquet")["name"].to_pylist() == ["adam", "berta", "carla"]


def test_merge():
    for name in ["a", "b"]:
        mg.sort(f"in/{name}.parquet", f"{name}.parquet", by="name desc")
    report = mg.merge(["a.parquet", "b.parquet"], "all.parquet", by="name desc")
    assert report == mg.SortReport(6, 6, 0, True)
    mg.sort("in/*.parquet", "sorted.parquet", by="name desc")
    assert pq.read_table("all.parquet").equals(pq.read_table("sorted.parquet"))
    with pytest.raises(mg.Error, match="in/b.parquet: row 2 is out of order"):
        mg.merge(["in/b.parquet"], "no.parquet", by="name")
    assert not Path("no.parquet").exists()


def test_shuffle():
    numbers = pa.table({"n": range(1000)})
    found = []
    for seed in [7, 7, 8]:
        mg.shuffle(numbers, "out.parquet", seed=seed)
        found.append(pq.read_table("out.parquet")["n"].to_pylist())
    assert found[0] == found[1] != found[2] and sorted(found[0]) == list(range(1000)) != found[0]


def test_distinct_and_top():
    table = pa.table({"k": [2, 1, 2, None, 1, None], "v": [1, 2, 3, 4, 5, 6]})
    rows = mg.distinct(table, by="k", count=True)
    assert len(rows) == 3
    expected = [{"k": None, "v": 4, "count": 2}, {"k": 1, "v": 2, "count": 2}, {"k": 2, "v": 1, "count": 2}]
    assert pa.table(rows).to_pylist() == pl.DataFrame(rows).to_dicts() == expected
    assert duckdb.sql("select sum(v) from rows").fetchall() == [(7,)]
    assert mg.distinct(table, "out.parquet").result_rows == 6
    assert mg.distinct(pa.concat_tables([table, table]), "out.parquet") == mg.SortReport(12, 6, 0, False)
    best = mg.top(table, 2, by="v desc")
    assert pa.table(best)["v"].to_pylist() == [6, 5] and pa.schema(best) == table.schema
    assert len(mg.top(table, 0, by="v")) == 0 and len(mg.top(table, 100, by="v")) == 6
    numbers = pa.table({"n": range(2_000_000)})
    with pytest.raises(mg.MemoryLimit, match="too small for a result without an output"):
        mg.top(numbers, 10**6, by="n", memory="5MB")
    assert len(mg.top(numbers, 10**5, by="n", memory="5MB")) == 10**5
    for call in [lambda: mg.top(table, 1, by="v", compression="zstd"), lambda: mg.distinct(table, output_format="csv")]:
        with pytest.raises(mg.BadKey, match="is for a file; name one with output"):
            call()
    assert mg.top(table, 2, "top.csv", by="v").result_rows == 2
    assert Path("top.csv").read_text() == "k,v\n2,1\n1,2\n"


def test_folders_of_files():
    rng = random.Random(11)
    rows = 80_000
    table = pa.table(
        {
            "country": [rng.choice(["FR", "DE", None]) for _ in range(rows)],
            "year": [rng.choice([2024, 2025]) for _ in range(rows)],
            "n": rng.sample(range(10**9), rows),
        }
    )
    report = mg.sort(table, "out/", by="n", partition_by="country, year", file_size="64K", memory="32MB")
    assert report.result_rows == rows
    folders = sorted(str(path.relative_to("out")) for path in Path("out").glob("*/*"))
    countries = ["country=DE", "country=FR", "country=__HIVE_DEFAULT_PARTITION__"]
    assert folders == [f"{country}/year={year}" for country in countries for year in (2024, 2025)]
    for folder in folders:
        files = sorted(Path("out", folder).iterdir())
        assert len(files) > 1 and all(file.stat().st_size <= 64 << 10 for file in files)
        found = pa.concat_tables(pq.ParquetFile(file).read() for file in files)
        assert found.column_names == ["n"] and found["n"].to_pylist() == sorted(found["n"].to_pylist())
    # Folders are columns again, here and elsewhere.
    mg.sort("out", "back.parquet", by="n")
    expected = table.sort_by("n").to_pylist()
    assert pq.ParquetFile("back.parquet").read().select(table.column_names).to_pylist() == expected
    found = duckdb.sql("select country, year, n from read_parquet('out/*/*/*.parquet', hive_partitioning = true) order by n")
    # DuckDB reads the word for null as a text.
    assert [(None if row[0] == "__HIVE_DEFAULT_PARTITION__" else row[0], *row[1:]) for row in found.fetchall()] == [
        tuple(row.values()) for row in expected
    ]
    mg.sort("out", "plain.parquet", by="n", hive=False)
    assert pq.ParquetFile("plain.parquet").read().column_names == ["n"]
    # Folders alone are an order; a list has names with commas.
    mg.sort(table.rename_columns(["a,b", "year", "n"]), "listed", partition_by=["a,b"])
    assert sorted(path.name for path in Path("listed").iterdir())[0] == "a%2Cb=DE"
    mg.distinct(table, "known", by="country, year", partition_by=["country"], count=True)
    assert pa.table(mg.top("known", 9, by="year"))["count"].to_pylist() != []
    mg.shuffle("back.parquet", "mixed", seed=3, file_size=100_000)
    assert len(list(Path("mixed").iterdir())) > 2
    mg.merge(["back.parquet", "back.parquet"], "merged", by="n", file_size="100K")
    assert sum(pq.ParquetFile(file).metadata.num_rows for file in Path("merged").iterdir()) == 2 * rows


def test_folders_that_cannot_be():
    table = pa.table({"n": [2, 1], "s": ["a", "b"]})
    Path("full").mkdir()
    Path("full/kept").touch()
    for error, says, job in [
        (FileExistsError, "full: exists, and is no empty folder", lambda: mg.sort(table, "full", by="n", file_size="1M")),
        (mg.BadKey, "file_size: give at least '64K'", lambda: mg.sort(table, "out", by="n", file_size=1000)),
        (mg.BadKey, "partition_by: rows with equal keys", lambda: mg.distinct(table, "out", by="n", partition_by="s")),
        (mg.BadKey, "partition_by: a name is empty", lambda: mg.sort(table, "out", partition_by="s,,n")),
        (mg.BadKey, "partition_by: name at most 6", lambda: mg.sort(table, "out", partition_by=list("abcdefg"))),
        (mg.BadKey, "no column none", lambda: mg.sort(table, "out", partition_by="none")),
        (mg.BadKey, "out.csv: files in a folder are of Parquet", lambda: mg.sort(table, "out.csv", partition_by="s")),
        (mg.BadKey, "file_size: is for a file", lambda: mg.distinct(table, by="n", file_size="1M")),
        (mg.BadKey, "partition_by: is for tables", lambda: mg.sort("big.txt", "out", keys=["1"], partition_by="s")),
        (mg.BadKey, "hive: is for tables", lambda: mg.sort("big.txt", "out", keys=["1"], hive=False)),
        (TypeError, "partition_by: names of columns", lambda: mg.sort(table, "out", partition_by=[1])),
        (ValueError, "file_size: 'x' is no size", lambda: mg.sort(table, "out", by="n", file_size="x")),
    ]:
        with pytest.raises(error) as caught:
            job()
        assert says in str(caught.value)
    assert sorted(path.name for path in Path().iterdir()) == ["big.txt", "full", "in"]
