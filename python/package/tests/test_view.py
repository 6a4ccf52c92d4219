"""Views of tables: slices, ranges, streams."""

import datetime
import decimal
import math
import pickle
import threading

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import merganser as mg
from conftest import ORDERED, random_table, rank


@pytest.fixture
def numbers():
    return mg.sort_view(pa.table({"n": range(50_000), "half": [n // 2 for n in range(50_000)]}), "n.view", by="n")


def test_slices_and_rows(numbers):
    expected = list(range(50_000))
    assert len(numbers) == 50_000 and numbers.path == "n.view" and numbers.order == "n"
    for index in [0, 7, 8191, 8192, 49_999, -1, -50_000]:
        assert numbers[index] == {"n": expected[index], "half": expected[index] // 2}
    parts = [slice(10, 20), slice(-3, None), slice(None, 2), slice(20, 10), slice(None), slice(49_990, 10**9), slice(8000, 8300)]
    for part in parts:
        assert pa.table(numbers[part])["n"].to_pylist() == expected[part], part
        assert len(numbers[part]) == len(expected[part])
    assert numbers[100:200][10:20][-1] == {"n": 119, "half": 59}
    assert [row["n"] for row in numbers[5:8]] == [5, 6, 7]
    for wrong in [50_000, -50_001]:
        with pytest.raises(IndexError, match="of a view of 50000"):
            numbers[wrong]
    with pytest.raises(IndexError):
        numbers[3:3][0]
    with pytest.raises(ValueError, match="every 2th"):
        numbers[::2]
    with pytest.raises(TypeError):
        numbers["n"]
    assert "n.view" in repr(numbers) and "50000 rows" in repr(numbers)


def test_columns(numbers):
    assert numbers.columns == ["n", "half"]
    assert numbers.schema == pa.schema([("n", pa.int64()), ("half", pa.int64())])
    part = numbers.select(["half"])[10:12]
    assert part.columns == ["half"] and part.schema.names == ["half"]
    assert pa.table(part).to_pydict() == {"half": [5, 5]}
    assert pa.table(numbers.select(["half", "n"])[:1]).schema.names == ["half", "n"]
    assert sum(batch.num_rows for batch in numbers.to_batches(columns=["half"])) == 50_000
    assert numbers.to_batches(columns=["n"]).schema.names == ["n"]
    for wrong in [["x"], ["n", "n"]]:
        with pytest.raises(mg.BadKey):
            numbers.select(wrong)
    with pytest.raises(TypeError):
        numbers.select("n")
    # No columns are still rows.
    assert pa.RecordBatchReader.from_stream(numbers.select([])).read_next_batch().num_rows > 0


def test_every_library_reads_it_again_and_again(numbers):
    for _ in range(3):
        assert pa.table(numbers).num_rows == 50_000
        assert pl.DataFrame(numbers)["n"].sum() == sum(range(50_000))
        assert duckdb.sql("select sum(n), count(*) from numbers where n between 10 and 20").fetchall() == [(165, 11)]
        assert pd.DataFrame.from_arrow(numbers[:10])["n"].tolist() == list(range(10))
    assert duckdb.sql("select count(*) from numbers a join numbers b using (n) join numbers c using (n)").fetchall() == [(50_000,)]


def test_streams_cost_nothing_before_their_first_batch(numbers):
    threads = lambda: len(list(__import__("os").scandir("/proc/self/task")))
    before, read = threads(), numbers.rows_read
    made = [numbers.__arrow_c_stream__() for _ in range(200)]
    assert threads() <= before and numbers.rows_read == read
    del made
    three = [pa.RecordBatchReader.from_stream(numbers) for _ in range(3)]
    rows = [0, 0, 0]
    try:
        while True:
            for number, reader in enumerate(three):
                rows[number] += reader.read_next_batch().num_rows
    except StopIteration:
        pass
    assert rows[0] == 50_000 and sum(rows) > 100_000
    assert numbers.rows_read - read >= sum(rows)


def test_several_streams_share_a_small_memory():
    table = pa.concat_tables([random_table(1, 5000)] * 20)
    mg.sort_view(table, "v.view", by="text", memory="12MB")
    view = mg.open_view("v.view", memory="64MB")
    parts = [pa.RecordBatchReader.from_stream(view[start:]) for start in [0, 20_000, 40_000, 60_000]]
    firsts = [part.read_next_batch()["text"][0].as_py() for part in parts]
    # A fifth one has no memory before another ends.
    del parts
    assert firsts == [view[start]["text"] for start in [0, 20_000, 40_000, 60_000]]


def test_a_stream_that_is_left_gives_its_memory_back():
    table = pa.concat_tables([random_table(1, 5000)] * 20)
    mg.sort_view(table, "v.view", by="text", memory="12MB")
    view = mg.open_view("v.view", memory="12MB")
    for _ in range(30):
        assert pa.RecordBatchReader.from_stream(view).read_next_batch().num_rows > 0


@pytest.mark.parametrize("name", ORDERED)
@pytest.mark.parametrize("words", ["", " desc", " nulls last", " desc nulls last"])
def test_between_of_every_type(name, words):
    table = random_table(3, 300)
    view = mg.sort_view(table, "v.view", by=name + words)
    values = [value for value in table[name].to_pylist() if value is not None]
    distinct = sorted({rank(value): value for value in values}.items(), key=lambda item: item[0])
    distinct = [value for _, value in distinct]
    low, high = distinct[len(distinct) // 3], distinct[2 * len(distinct) // 3]
    for a, b in [(low, high), (low, None), (None, high), (None, None), (high, low), (low, low)]:
        is_in = lambda value: (a is None or rank(a) <= rank(value)) and (b is None or rank(value) <= rank(b))
        expected = [value for value in values if is_in(value)]
        found = pa.table(view.between(a, b))[name].to_pylist()
        assert sorted(map(rank, found)) == sorted(map(rank, expected)), (a, b)


def test_between_wants_values_of_the_column(numbers):
    assert len(numbers.between(10, 19)) == 10
    assert len(numbers.between(10, 10**9)) == 49_990
    assert numbers[:15].between(10, 19)[-1]["n"] == 14 and len(numbers[30:].between(10, 19)) == 0
    for wrong in ["10", 1.5, True, b"1", datetime.date(2024, 1, 1), decimal.Decimal("1.5"), 10**30, object()]:
        with pytest.raises(mg.BadKey, match="is no value of column n, which is of type Int64"):
            numbers.between(wrong, None)
    seconds = pa.table({"at": pa.array([0, 1, 2], pa.timestamp("s")), "day": pa.array([0, 1, 2], pa.date32())})
    view = mg.sort_view(seconds, "at.view", by="at")
    moment = datetime.datetime(1970, 1, 1, 0, 0, 1)
    assert len(view.between(moment, None)) == 2
    assert len(view.between(datetime.date(1970, 1, 1), None)) == 3
    with pytest.raises(mg.BadKey):
        view.between(moment.replace(microsecond=500_000), None)
    days = mg.sort_view(seconds, "day.view", by="day")
    assert len(days.between(datetime.date(1970, 1, 2), None)) == 2
    with pytest.raises(mg.BadKey):
        days.between(moment, None)
    cents = mg.sort_view(pa.table({"p": pa.array([decimal.Decimal("1.25"), decimal.Decimal("1.30")])}), "p.view", by="p")
    assert len(cents.between(decimal.Decimal("1.25"), decimal.Decimal("1.3"))) == 2
    with pytest.raises(mg.BadKey):
        cents.between(decimal.Decimal("1.255"), None)
    zones = pa.table({"z": pa.array([0, 10**6], pa.timestamp("us", "Europe/Berlin"))})
    zoned = mg.sort_view(zones, "z.view", by="z")
    assert len(zoned.between(datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.timezone.utc), None)) == 1
    shuffled = mg.sort_view(pa.table({"f": [1.0, math.nan]}), "f.view", by="f")
    assert len(shuffled.between(1, None)) == 2 and len(shuffled.between(None, 1.0)) == 1


def test_parts_and_pickles(numbers):
    part = pickle.loads(pickle.dumps(numbers.select(["n"])[10:20]))
    assert pa.table(part).to_pydict() == {"n": list(range(10, 20))}


def test_threads_share_a_view(numbers):
    sums = []

    def read():
        for _ in range(3):
            sums.append(pa.compute.sum(pa.table(numbers)["n"]).as_py())

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [sum(range(50_000))] * 12


def test_views_of_merged_rows_and_packed_views():
    for packed in ["off", "lz4", "zstd"]:
        view = mg.sort_view(pa.table({"n": [3, 1, 2]}), f"{packed}.view", by="n", packed=packed)
        assert pa.table(view)["n"].to_pylist() == [1, 2, 3]
    empty = mg.sort_view(pa.table({"n": pa.array([], pa.int32())}), "empty.view", by="n")
    assert len(empty) == 0 and pa.table(empty).schema == empty.schema and len(empty.between(1, 2)) == 0
