"""Tests of the built wheel, as it is installed: with the pyarrow, DuckDB, Polars and pandas of today (requirements.txt)."""

import datetime
import decimal
import math
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import merganser

ROOT = Path(__file__).resolve().parents[3]
# Sources next to these tests would be tested without what the wheel has, or has not.
assert ROOT / "python" not in Path(merganser.__file__).resolve().parents, "install the wheel: make test-wheel"


def fruit(folder):
    """The files of the examples."""
    (folder / "in").mkdir()
    one = pa.table({"name": ["berta", "adam", "carla"], "qty": [7, 2, 9]})
    other = pa.table({"name": ["bruno", "adam", "bruno"], "qty": pa.array([1, None, 4], pa.int64())})
    pq.write_table(one, folder / "in/a.parquet")
    pq.write_table(other, folder / "in/b.parquet")
    (folder / "big.txt").write_text("pear 2\napple 10\nfig 1\n")


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """Each test has a folder of its own, with the files of the examples, and is in it."""
    fruit(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TMPDIR", raising=False)
    return tmp_path


def random_table(seed, rows):
    """Columns of many types with nulls, and few different values, so that keys are often equal."""
    rng = random.Random(seed)

    def column(data_type, value, nulls=0.15):
        return pa.array([None if rng.random() < nulls else value() for _ in range(rows)], data_type)

    day = datetime.date(2024, 2, 27)
    moment = datetime.datetime(2024, 2, 29, 23, 59, 59)
    text = lambda: rng.choice(["", "a", "ab", "a\0b", "b", "zebra", "Ärger", "\U0001f9ed"])
    floats = [0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan, 1e300, 5e-324]
    dictionary = column(pa.string(), lambda: rng.choice(["red", "green", "blue"])).dictionary_encode()
    columns = {
        "id": pa.array(range(rows), pa.int64()),
        "text": column(pa.string(), text),
        "full": column(pa.string(), text, 0),
        "large": column(pa.large_string(), text),
        "seen": column(pa.string_view(), text),
        "int": column(pa.int32(), lambda: rng.randint(-3, 3)),
        "small": column(pa.uint8(), lambda: rng.choice([0, 1, 127, 128, 255])),
        "float": column(pa.float64(), lambda: rng.choice(floats)),
        "half": column(pa.float32(), lambda: rng.choice([0.1, -0.1, math.nan, 2.5])),
        "flag": column(pa.bool_(), lambda: rng.random() < 0.5),
        "day": column(pa.date32(), lambda: day + datetime.timedelta(rng.randint(-3, 3))),
        "at": column(pa.timestamp("us"), lambda: moment + datetime.timedelta(microseconds=rng.randint(-3, 3))),
        "price": column(pa.decimal128(9, 2), lambda: decimal.Decimal(rng.randint(-300, 300)).scaleb(-2)),
        "bytes": column(pa.binary(), lambda: bytes(rng.choices([0, 1, 255], k=rng.randint(0, 3)))),
        "uid": column(pa.binary(2), lambda: bytes(rng.choices([0, 1, 255], k=2))),
        "colour": dictionary,
        "tags": column(pa.list_(pa.string()), lambda: [rng.choice(["x", None]) for _ in range(rng.randint(0, 3))]),
        "place": column(
            pa.struct([("city", pa.string()), ("zip", pa.int32())]), lambda: {"city": text(), "zip": rng.randint(0, 9)}
        ),
        "notes": column(pa.map_(pa.string(), pa.int32()), lambda: [("k", rng.randint(0, 9))]),
    }
    return pa.table(columns)


#: Columns of the random table that have an order.
ORDERED = [
    "text", "full", "large", "seen", "int", "small", "float", "half", "flag", "day", "at", "price", "bytes", "uid", "colour",
]


def rank(value):
    """A value as one that Python compares in the order of merganser: NaN is the greatest, and zeros are equal."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value.encode() if isinstance(value, str) else value


def sorted_ids(table, keys):
    """The ids of the rows in the order of `keys` (column, descending, nulls last), by Python's own stable sort."""
    rows = table.select(["id", *{key[0] for key in keys}]).to_pylist()
    for column, descending, last in reversed(keys):
        nulls = [row for row in rows if row[column] is None]
        values = [row for row in rows if row[column] is not None]
        values.sort(key=lambda row: rank(row[column]), reverse=descending)
        rows = values + nulls if last else nulls + values
    return [row["id"] for row in rows]
