"""Views that name files of Parquet which are in order already."""

import os
import threading
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import merganser as mg

ROWS = 60_000


@pytest.fixture
def files():
    """Rows in order of `n`, dealt out to three files; equal ones are in the order of the files."""
    numbers = list(range(ROWS))
    for file in range(3):
        mine = numbers[file::3]
        table = pa.table({"n": [n // 10 for n in mine], "place": mine, "text": [f"text {n}" for n in mine]})
        pq.write_table(table, f"{file}.parquet", row_group_size=5000, data_page_size=4096)
    return [f"{file}.parquet" for file in range(3)]


@pytest.fixture
def view(files):
    return mg.sort_view(files, "all.view", by="n", presorted=True)


def expected():
    return sorted(range(ROWS), key=lambda at: (at // 10, at % 3))


def test_it_is_read_as_any_view(view):
    assert os.listdir("all.view") == ["manifest"]
    at = expected()
    assert len(view) == ROWS and view.order == "n" and view.columns == ["n", "place", "text"]
    assert view.schema == pa.schema([("n", pa.int64()), ("place", pa.int64()), ("text", pa.string())])
    assert pa.table(view)["place"].to_pylist() == at
    for part in [slice(10, 20), slice(4095, 4097), slice(-3, None), slice(30_000, 45_000)]:
        assert pa.table(view[part])["place"].to_pylist() == at[part]
    assert view[12_345] == {"n": at[12_345] // 10, "place": at[12_345], "text": f"text {at[12_345]}"}
    assert pa.table(view.between(77, 80).select(["text"]))["text"].to_pylist() == [f"text {n}" for n in at[770:810]]
    assert pl.DataFrame(view[100:200])["place"].to_list() == at[100:200]
    assert duckdb.sql("select count(*), sum(place) from view").fetchall() == [(ROWS, sum(at))]


def test_a_query_reads_the_range_that_it_needs(view):
    rows = view.dataset()
    before = view.rows_read
    assert duckdb.sql("select count(*), min(place) from rows where n between 100 and 104").fetchall() == [(50, 1000)]
    assert view.rows_read - before == 50
    found = rows.to_table(columns=["place"], filter=pc.field("n") >= 5990)
    assert found["place"].to_pylist() == expected()[59_900:]


def test_several_threads_read_the_same_files(view):
    whole, found = pa.table(view), {}

    def read(number):
        found[number] = pa.table(view[number * 5000 :])

    threads = [threading.Thread(target=read, args=[number]) for number in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(found) == 8
    for number, part in found.items():
        assert part.to_pydict() == whole.slice(number * 5000).to_pydict()


def test_faults_are_errors_of_their_class(files, view):
    with pytest.raises(mg.Error, match="1.parquet: row 2 is out of order"):
        pq.write_table(pa.table({"n": [2, 1], "place": [0, 1], "text": ["", ""]}), "in/1.parquet")
        mg.sort_view("in/1.parquet", "other.view", by="n", presorted=True)
    assert not Path("other.view").exists()
    with pytest.raises(mg.BadKey, match="presorted"):
        mg.sort_view("big.txt", "other.view", presorted=True)
    with pytest.raises(mg.MemoryLimit, match="reading all files of the view at once"):
        mg.open_view("all.view", memory="1MB")
    whole = pa.table(view)
    Path("1.parquet").rename("kept.parquet")
    assert pa.table(view) == whole, "it is open"
    with pytest.raises(FileNotFoundError, match="1.parquet"):
        mg.open_view("all.view")
    pq.write_table(pa.table({"n": [1], "place": [0], "text": [""]}), "1.parquet")
    with pytest.raises(mg.Damaged, match="1.parquet: was changed or replaced since the view"):
        mg.open_view("all.view")
    with Path("kept.parquet").open("r+b") as file:
        file.write(b"PAR1")
    with pytest.raises(Exception, match="1.parquet: was changed while it was read"):
        pa.table(view)


def test_other_tables_are_copied(files):
    view = mg.sort_view(pq.read_table(files[0]), "own.view", by="n", presorted=True)
    assert len(os.listdir("own.view")) == 2 and len(view) == ROWS // 3
