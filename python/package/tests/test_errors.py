"""Errors of each kind: their class, their sentence, and that no result is left or harmed."""

import errno
import pickle
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import merganser as mg
from conftest import random_table

TABLE = pa.table({"name": ["b", "a"], "qty": [1, 2], "tags": [["x"], []]})


def test_the_tree():
    for kind, base in [
        (mg.MemoryLimit, mg.Error), (mg.DiskFull, OSError), (mg.Damaged, mg.Error), (mg.BadKey, ValueError), (mg.Cancelled, mg.Error),
    ]:
        assert issubclass(kind, mg.Error) and issubclass(kind, base)
        assert kind.__module__ == "merganser" and type(pickle.loads(pickle.dumps(kind("why")))) is kind
    assert not issubclass(mg.Error, (OSError, ValueError))


@pytest.mark.parametrize(
    ("by", "sentence"),
    [
        ("qty dsc", "by: 'dsc' behind column 'qty' is unknown; the words are asc, desc"),
        ("qty desc asc", "by: column 'qty' has two words for the same"),
        ("qty nulls", "by: 'nulls' behind column 'qty' is unknown"),
        ("qty desc nulls last nulls first", "two words for the same"),
        ("first name", "'name' behind column 'first' is unknown.* put a name with spaces into double quotes"),
        ("name,,qty", "has a comma without a column in front of it"),
        ("name,", "ends with a comma"),
        ('name "qty"', "'qty' follows a column without a comma"),
        ('"name', "has a quote without an end"),
        ("", "names no column"),
        ([], "names no column"),
        ([("qty", "sideways")], "'sideways' behind column 'qty' is unknown"),
        ([("qty", 1)], "is neither a column nor a column and its words"),
        ([()], "is neither a column nor"),
        ("nothing", r"Table: has no column nothing; it has name, qty, tags"),
        ("tags", "column tags is of type List.* which has no order"),
        ("name, name", "column name is twice a key"),
    ],
)
def test_orders_that_make_no_sense(by, sentence):
    with pytest.raises(mg.BadKey, match=sentence):
        mg.sort(TABLE, "out.parquet", by=by)
    assert not Path("out.parquet").exists()


def test_names_in_quotes():
    odd = pa.table({'a, "b" desc': [2, 1], "DESC": [1, 2]})
    mg.sort(odd, "out.parquet", by='"a, ""b"" desc" desc, DESC')
    assert pq.read_table("out.parquet")["DESC"].to_pylist() == [1, 2]
    mg.sort(odd, "out.parquet", by=['a, "b" desc'])
    assert pq.read_table("out.parquet")["DESC"].to_pylist() == [2, 1]


@pytest.mark.parametrize(
    ("arguments", "kind", "sentence"),
    [
        ({}, mg.BadKey, "by: name the columns to sort by"),
        ({"keys": ["1,1"]}, mg.BadKey, "keys: are for lines and other records; in/a.parquet: is a table: give by"),
        ({"by": "name", "keys": ["1,1"]}, mg.BadKey, "by and keys: give one of them"),
        ({"by": "name", "unique": True}, mg.BadKey, "unique: is for lines and other records; in/a.parquet: is a table"),
        ({"by": "name", "format": "csv"}, mg.BadKey, "format: is for lines"),
        ({"by": "name", "memory": "512 parsecs"}, ValueError, "memory: '512 parsecs' is no size"),
        ({"by": "name", "memory": 0}, ValueError, "at least 1 byte"),
        ({"by": "name", "memory": "-1"}, ValueError, "is no size"),
        ({"by": "name", "memory": 1.5}, TypeError, "memory: bytes or a text"),
        ({"by": "name", "threads": 0}, ValueError, "threads: at least 1, not 0"),
        ({"by": "name", "threads": "2"}, TypeError, "threads: a whole number"),
        ({"by": "name", "output_format": "xlsx"}, mg.BadKey, "format: \"xlsx\" is unknown; choose one of parquet"),
        ({"by": "name", "compression": "rar"}, mg.BadKey, "compression: \"rar\" is unknown"),
        ({"by": "name", "row_group_rows": 0}, ValueError, "row_group_rows: at least 1"),
        ({"by": "name", "temp": []}, ValueError, "temp: names no folder"),
        ({"by": "name", "progress": 7}, TypeError, "progress: True or a function"),
        ({"by": "name", "cancel": 7}, TypeError, "cancel: a function"),
        ({"by": 7}, TypeError, "by: a text or a list of columns, not int"),
        ({"by": "name", "memory": 1000}, mg.MemoryLimit, "a memory of 1000 bytes is too small for .*: at least [0-9]+ bytes are needed"),
    ],
)
def test_arguments_that_make_no_sense(arguments, kind, sentence):
    Path("out.parquet").write_text("old")
    with pytest.raises(kind, match=sentence):
        mg.sort("in/a.parquet", "out.parquet", **arguments)
    assert Path("out.parquet").read_text() == "old"
    assert sorted(path.name for path in Path().iterdir()) == ["big.txt", "in", "out.parquet"]


def test_sizes_are_those_of_the_command():
    from merganser._settings import memory_bytes

    for text, size in {"100": 100, "1K": 1024, "3MB": 3_000_000, "3MiB": 3 << 20, "1.5g": 3 << 29, " 10 MB ": 10**7}.items():
        assert memory_bytes(text) == size
    assert memory_bytes(12345) == 12345 and memory_bytes(None) >= 1 << 20 and memory_bytes(None) % (1 << 20) == 0
    for text in ["", "G", "1X", "1.G", "1..2", ".", "1KBB", "1e3", "0", "99999999999T", "٣"]:
        with pytest.raises(ValueError, match="is no size"):
            memory_bytes(text)
    with pytest.warns(UserWarning, match="memory: 900TB is more than the [0-9]+ MiB that this machine .* MiB are used"):
        mg.sort("in/a.parquet", "out.parquet", by="name", memory="900TB")


def test_inputs_that_make_no_sense():
    for given, kind, sentence in [
        ("none.parquet", FileNotFoundError, "none.parquet"),
        ("none/*.parquet", FileNotFoundError, r"none/\*.parquet: has no files of tables"),
        ([], ValueError, "names no file"),
        ("", ValueError, "the path is empty"),
        (7, TypeError, "a path, a list of paths, or a table with __arrow_c_stream__, not int"),
        ([TABLE], TypeError, "inputs: a path, not Table"),
        (b"bytes", TypeError, "not bytes"),
        ("big.txt", mg.BadKey, "by: names columns; big.txt: is neither Parquet nor Arrow: give keys"),
        (pa.chunked_array([[1, 2]]), mg.Error, "ChunkedArray: its stream is no table with columns"),
        (["in/a.parquet", "big.txt"], mg.Error, "big.txt: is neither Parquet nor Arrow"),
    ]:
        with pytest.raises(kind, match=sentence):
            mg.sort(given, "out.parquet", by="name")
    for call in [mg.shuffle, mg.distinct]:
        with pytest.raises(mg.BadKey, match="takes tables; big.txt"):
            call("big.txt", "out.parquet")
    with pytest.raises(mg.BadKey, match="compression: is for tables; big.txt: is no table"):
        mg.sort("big.txt", "out.txt", compression="zstd")
    with pytest.raises(TypeError, match="keys: a list of texts"):
        mg.sort("big.txt", "out.txt", keys="2,2n")
    with pytest.raises(mg.BadKey, match="key '2,x': "):
        mg.sort("big.txt", "out.txt", keys=["2,x"])
    with pytest.raises(mg.BadKey, match="format: .*parquets"):
        mg.sort("big.txt", "out.txt", format="parquets")
    with pytest.raises(mg.BadKey, match="does not say what the result is"):
        mg.sort(TABLE, "out", by="name")
    with pytest.raises(mg.Error, match="out.parquet.gz: the name says that the output is compressed"):
        mg.sort(TABLE, "out.parquet.gz", by="name", output_format="parquet")
    with pytest.raises(mg.Error, match="column tags is of type List.*, which csv can't hold"):
        mg.sort(TABLE, "out.csv", by="name")
    different = pa.table({"other": [1]})
    pq.write_table(different, "in/c.parquet")
    with pytest.raises(mg.Error, match="in/c.parquet: has 1 columns?, and in/a.parquet has 2 columns"):
        mg.sort("in/*.parquet", "out.parquet", by="name")
    assert sorted(path.name for path in Path().iterdir()) == ["big.txt", "in"]


def test_a_python_error_in_a_stream_comes_out():
    def batches():
        yield pa.record_batch({"n": [1]})
        raise RuntimeError("the source is gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), batches())
    with pytest.raises(mg.Error, match="RecordBatchReader: .*the source is gone"):
        mg.sort(reader, "out.parquet", by="n")
    assert not Path("out.parquet").exists()


def test_what_the_system_refuses():
    with pytest.raises(IsADirectoryError):
        mg.sort(TABLE, "in", by="name", output_format="parquet")
    with pytest.raises(FileNotFoundError):
        mg.sort(TABLE, "none/out.parquet", by="name")
    Path("old.view").mkdir()
    with pytest.raises(FileExistsError, match="old.view: exists already; a view never replaces anything"):
        mg.sort_view(TABLE, "old.view", by="name")
    with pytest.raises(FileNotFoundError):
        mg.open_view("none.view")
    with pytest.raises(mg.Error, match="not a sorted view"):
        mg.open_view("in")
    with pytest.raises(mg.DiskFull) as full:
        mg.sort(TABLE, "/dev/full", by="name", output_format="parquet")
    assert full.value.errno == errno.ENOSPC and "No space left" in str(full.value) and isinstance(full.value, OSError)
    with pytest.raises(mg.DiskFull):
        mg.sort("big.txt", "/dev/full")


def test_damaged_inputs():
    whole = Path("in/a.parquet").read_bytes()
    found = 0
    for at in range(4, len(whole), 7):
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        Path("damaged.parquet").write_bytes(damaged)
        try:
            mg.sort("damaged.parquet", "out.parquet", by="name")
        except mg.Error as error:
            found += isinstance(error, mg.Damaged)
            assert not Path("out.parquet").exists(), at
        else:
            # Parquet has no checksums here: some bytes are values, or notes that are not read.
            Path("out.parquet").unlink()
    assert found > 20
    Path("damaged.parquet").write_bytes(whole[:-20])
    with pytest.raises(mg.Damaged, match="damaged.parquet"):
        mg.sort("damaged.parquet", "out.parquet", by="name")


def test_damaged_views():
    table = pa.concat_tables([random_table(1, 2000)] * 20)
    mg.sort_view(table, "v.view", by="text", memory="16MB")
    [run, *_] = sorted(Path("v.view").glob("*.run"), key=lambda path: -path.stat().st_size)
    content = bytearray(run.read_bytes())
    content[len(content) // 2] ^= 1
    run.write_bytes(content)
    with pytest.raises((pa.ArrowException, OSError), match="damaged at byte"):
        pa.table(mg.open_view("v.view"))
    view = mg.open_view("v.view")
    with pytest.raises(mg.Damaged, match="damaged at byte"):
        for _ in view:
            pass
    manifest = next(path for path in Path("v.view").iterdir() if path.suffix != ".run")
    manifest.write_text(manifest.read_text()[:-30])
    with pytest.raises(mg.Error):
        mg.open_view("v.view")


def test_pandas_frames_with_odd_columns():
    with pytest.raises((mg.Error, pa.ArrowException)):
        mg.sort(pd.DataFrame({"x": [object()]}), "out.parquet", by="x")
