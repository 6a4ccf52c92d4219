"""Views as data sets: columns and ranges of keys that DuckDB and Polars push down."""

import datetime
import random

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import merganser as mg
from conftest import random_table

ROWS = 100_000
DAY = datetime.date(2000, 1, 1)


@pytest.fixture(scope="module")
def table():
    return pa.table(
        {
            "name": [f"name {n:06}" for n in range(ROWS)],
            "n": range(ROWS),
            "day": [DAY + datetime.timedelta(n // 10) for n in range(ROWS)],
            "other": [n % 7 for n in range(ROWS)],
        }
    )


def read(view, query):
    """The result of a query, and how many rows of the view were read for it."""
    before = view.rows_read
    found = query()
    return found, view.rows_read - before


def test_duckdb_reads_the_range_that_it_needs(table):
    view = mg.sort_view(table, "v.view", by="name")
    # By name: DuckDB looks for variables in the function that calls it, which is another one here.
    duck = duckdb.connect()
    duck.register("rows", view.dataset())
    duck.register("all_rows", table)
    queries = {
        "name between 'name 000100' and 'name 000199'": 100,
        "name >= 'name 000100' and name < 'name 000103' and other = 3": 4,
        "name = 'name 050000'": 1,
        "name > 'name 099990'": 10,
        "name < 'name 000005'": 6,
        "name <= 'x' and n < 3": ROWS,
        "name = 'na''me'": 0,
        "name is null": ROWS,
        "other = 3": ROWS,
        "name like '%77%'": ROWS,
        "name = 'name 000001' or name = 'name 000002'": ROWS,
    }
    for where, most in queries.items():
        found, count = read(view, lambda: duck.sql(f"select count(*), sum(n) from rows where {where}").fetchall())
        assert found == duck.sql(f"select count(*), sum(n) from all_rows where {where}").fetchall(), where
        assert count <= most, (where, count)


def test_polars_reads_the_range_that_it_needs(table):
    view = mg.sort_view(table, "v.view", by="day")
    rows = pl.scan_pyarrow_dataset(view.dataset())
    is_in = (pl.col("day") >= DAY + datetime.timedelta(10)) & (pl.col("day") <= DAY + datetime.timedelta(12))
    found, count = read(view, lambda: rows.filter(is_in).select(pl.col("n").sum()).collect())
    assert found.item() == sum(range(100, 130)) and count == 30
    found, count = read(view, lambda: rows.filter(is_in & (pl.col("other") == 3)).select("other", "n").collect())
    assert found["n"].to_list() == [n for n in range(100, 130) if n % 7 == 3] and count == 30
    found, count = read(view, lambda: rows.filter(pl.col("n") < 5).collect())
    assert found["n"].to_list() == [0, 1, 2, 3, 4] and count == ROWS


def test_filters_mean_what_they_mean_to_pyarrow():
    """Random filters over random tables: the same rows as of the table itself, whatever is pushed down."""
    rng = random.Random(5)
    table = random_table(7, 400)
    # pyarrow neither compares nor filters views of strings.
    number = table.schema.get_field_index("seen")
    plain = table.set_column(number, "seen", table["seen"].cast(pa.string()))
    keys = ["text", "int", "small", "float", "half", "flag", "day", "at", "price", "bytes", "uid", "colour", "large", "seen"]
    pushed = 0
    for number in range(120):
        key = rng.choice(keys)
        words = rng.choice(["", " desc", " nulls last", " desc nulls last"])
        view = mg.sort_view(table, f"{number}.view", by=key + words)

        def comparison(column):
            value = rng.choice(plain[column].drop_null())
            if pa.types.is_dictionary(value.type):
                value = pa.scalar(value.as_py())
            sign = rng.choice(["__ge__", "__gt__", "__le__", "__lt__", "__eq__"])
            return getattr(pc.field(column), sign)(value)

        def expression(depth):
            if depth == 0:
                return comparison(key if rng.random() < 0.7 else rng.choice(["int", "text", "day"]))
            kind = rng.random()
            if kind < 0.6:
                return expression(depth - 1) & expression(depth - 1)
            if kind < 0.8:
                return expression(depth - 1) | expression(depth - 1)
            if kind < 0.9:
                return ~expression(depth - 1)
            return pc.field(key).is_valid() & expression(depth - 1)

        wanted = expression(rng.randint(0, 2))
        columns = rng.choice([None, ["id"], ["id", key]])
        found, count = read(view, lambda: view.dataset().to_table(columns=columns, filter=wanted))
        expected = ds.dataset(plain).to_table(columns=columns, filter=wanted)
        assert sorted(found["id"].to_pylist()) == sorted(expected["id"].to_pylist()), (str(wanted), words)
        assert found.schema.names == expected.schema.names
        pushed += count < table.num_rows
    assert pushed > 30, pushed


def test_columns_of_polars(table):
    """Polars hands out views of strings, which pyarrow does not filter."""
    frame = pl.from_arrow(table)
    view = mg.sort_view(frame, "v.view", by="name")
    duck = duckdb.connect()
    duck.register("rows", view.dataset())
    found, count = read(view, lambda: duck.sql("select n from rows where name = 'name 000077'").fetchall())
    assert (found, count) == ([(77,)], 1)
    rows = pl.scan_pyarrow_dataset(view.dataset()).filter(pl.col("name") == "name 000078")
    found, count = read(view, lambda: rows.collect())
    assert (found["n"].to_list(), count) == ([78], 1)


def test_what_else_a_data_set_does(table):
    view = mg.sort_view(table, "v.view", by="n")
    rows = view.dataset()
    assert isinstance(rows, ds.Dataset) and rows.schema == view.schema
    assert rows.count_rows() == ROWS and rows.count_rows(filter=pc.field("n") < 10) == 10
    assert rows.head(3, columns=["n"]).to_pydict() == {"n": [0, 1, 2]}
    assert rows.to_table(columns={"twice": pc.field("n") * 2}, filter=pc.field("n") < 2).to_pydict() == {"twice": [0, 2]}
    few = rows.filter(pc.field("n") >= 10).filter(pc.field("n") < 12)
    assert few.to_table(columns=["n"]).to_pydict() == {"n": [10, 11]} and few.count_rows() == 2
    assert sum(batch.num_rows for batch in rows.to_batches()) == ROWS
    assert pa.table(view[5:7].dataset()).num_rows == 2
    for call in [rows.get_fragments, lambda: rows.take([1]), lambda: rows.sort_by("n"), lambda: rows.join(rows, "n")]:
        with pytest.raises(mg.Error, match="to_table"):
            call()
    with pytest.raises(mg.BadKey):
        rows.to_table(columns=["nothing"])
