"""The lines that the package was made for, as users write them."""

from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import merganser as mg


def test_the_example():
    mg.sort("in/*.parquet", "out.parquet", by=["name", ("qty", "descending", "at_end")], memory="512MB", progress=True)
    assert pq.read_table("out.parquet")["qty"].to_pylist() == [2, None, 7, 4, 1, 9]
    paths = ["in/a.parquet", "in/b.parquet"]
    table = pq.read_table("in")
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    for number, paths_or_table_or_reader in enumerate([paths, table, reader]):
        v = mg.sort_view(paths_or_table_or_reader, f"{number}.view", by="name, qty desc nulls last")
        assert len(v) == 6
        assert v.schema == table.schema
        assert [row["name"] for row in v[1:3]] == ["adam", "berta"] and len(v[10:20]) == 0
        assert pa.table(v.between("adam", "berta")).num_rows == 3
        assert v.dataset().to_table(columns=["qty"]).num_rows == 6
        assert [batch.num_columns for batch in v.to_batches(columns=["qty"])] == [1]
        assert pa.table(v)["qty"].to_pylist() == [2, None, 7, 4, 1, 9]
        assert pl.DataFrame(v).shape == (6, 2)
        found = duckdb.sql("select * from v where name between 'a' and 'b'").fetchall()
        assert found == [("adam", 2), ("adam", None)]
    for name in ["a", "b"]:
        mg.sort(f"in/{name}.parquet", f"{name}.parquet", by="name")
    mg.merge(["a.parquet", "b.parquet"], "merged.parquet", by="name")
    mg.shuffle("in/*.parquet", "shuffled.parquet", seed=7)
    mg.distinct("in/*.parquet", "distinct.parquet", by="name")
    assert pa.table(mg.top(paths, 100, by="name")).num_rows == 6
    mg.sort("big.txt", "sorted.txt", keys=["2,2n"])
    assert Path("sorted.txt").read_text() == "fig 1\npear 2\napple 10\n"
    assert list(mg.sort_view("big.txt", "lines.view", keys=["2,2n"]).lines()) == [b"fig 1", b"pear 2", b"apple 10"]
