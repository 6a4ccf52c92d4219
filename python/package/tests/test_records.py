"""Lines, csv and fixed-length records."""

import gzip
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest

import merganser as mg


def test_keys_are_those_of_gnu_sort():
    rng = random.Random(1)
    lines = [f"{rng.choice('abc')} {rng.randint(0, 99)} {rng.random()}" for _ in range(5000)]
    Path("in.txt").write_text("\n".join(lines) + "\n")
    for keys, options, flags in [
        (["2,2n"], "", ["-k2,2n"]),
        (["1,1", "2,2nr"], "", ["-k1,1", "-k2,2nr"]),
        (None, "r", ["-r"]),
        (["3g"], "", ["-k3g"]),
    ]:
        report = mg.sort("in.txt", "out.txt", keys=keys, options=options)
        gnu = subprocess.run(["sort", *flags, "in.txt"], env={"LC_ALL": "C"}, capture_output=True, check=True)
        assert Path("out.txt").read_bytes() == gnu.stdout and report.rows == 5000
        view = mg.sort_view("in.txt", f"{report.rows}-{len(flags)}-{options}-{len(keys or '')}-{flags[0]}.view", keys=keys, options=options)
        assert b"".join(line + b"\n" for line in view.lines()) == gnu.stdout


def test_unique_stable_separator_and_compressed_files():
    with gzip.open("in.gz", "wt") as file:
        file.write("b:1\na:2\nb:0\na:1\n")
    assert mg.sort("in.gz", "out.txt", keys=["1,1"], separator=":", unique=True).result_rows == 2
    assert Path("out.txt").read_text() == "a:2\nb:1\n"
    mg.sort("in.gz", "out.txt.gz", keys=["1,1"], separator=":", stable=True)
    assert gzip.open("out.txt.gz").read() == b"a:2\na:1\nb:1\nb:0\n"


def test_csv_with_a_header():
    Path("in.csv").write_text('name,qty\npear,10\n"fig, dry",9\n')
    mg.sort("in.csv", "out.csv", format="csv", header=True, keys=["qty:n"])
    assert Path("out.csv").read_text() == 'name,qty\n"fig, dry",9\npear,10\n'
    with pytest.raises(mg.BadKey, match="nothing"):
        mg.sort("in.csv", "no.csv", format="csv", header=True, keys=["nothing"])


def test_merge_of_lines():
    Path("a").write_text("1\n3\n")
    Path("b").write_text("2\n4\n")
    assert mg.merge(["a", "b"], "all", keys=["1,1n"]) == mg.SortReport(4, 4, 0, True)
    assert Path("all").read_text() == "1\n2\n3\n4\n"


def test_slices_of_lines():
    lines = [f"{n:05} {'x' * (n % 50)}" for n in range(30_000)]
    random.Random(2).shuffle(lines)
    Path("in.txt").write_text("\n".join(lines) + "\n")
    view = mg.sort_view("in.txt", "v.view", memory="3MB", threads=1)
    expected = [line.encode() for line in sorted(lines)]
    assert len(view) == 30_000 and list(view) == expected
    for part in [slice(0, 0), slice(0, 1), slice(29_999, None), slice(12_345, 12_350), slice(-3, -1)]:
        assert list(view[part]) == expected[part]
    assert view[17] == expected[17] and view[-1] == expected[-1]
    assert list(view[3:5].lines("ascii")) == sorted(lines)[3:5]
    with pytest.raises(mg.Error, match="records, which have no columns"):
        view.__arrow_c_stream__()
    with pytest.raises(mg.BadKey, match="only those of a fixed length"):
        view.to_numpy()


def test_numpy_has_fixed_length_records():
    rng = np.random.default_rng(3)
    record = np.dtype([("key", "<i4"), ("value", "<f8")])
    records = np.empty(10_000, record)
    records["key"], records["value"] = rng.integers(-100, 100, 10_000), rng.random(10_000)
    records.tofile("in.bin")
    view = mg.sort_view("in.bin", "v.view", format="fixed:12", keys=["0:4:i32le"])
    found = view.to_numpy(record)
    assert np.array_equal(found, records[np.argsort(records["key"], kind="stable")])
    assert np.array_equal(view[10:20].to_numpy(record), found[10:20])
    assert view.to_numpy().dtype.itemsize == 12 and len(view[0]) == 12
    with pytest.raises(mg.BadKey, match="has 4 bytes, and a record of v.view 12"):
        view.to_numpy("<u4")


def test_arrays_are_inputs():
    rng = np.random.default_rng(4)
    record = np.dtype([("key", "<i4"), ("weight", "<f8"), ("big", ">u2"), ("name", "S3")])
    records = np.zeros(5000, record)
    records["key"], records["weight"] = rng.integers(-9, 9, 5000), rng.random(5000) - 0.5
    records["big"], records["name"] = rng.integers(0, 999, 5000), rng.choice([b"a", b"bb", b"ccc"], 5000)
    for keys, order in {
        "key": [records["key"]],
        "weight:r": [-records["weight"]],
        "key,big:r": [-records["big"].astype(int), records["key"]],
        "name,weight": [records["weight"], records["name"]],
    }.items():
        mg.sort(records[::1], "out.bin", keys=keys.split(","))
        expected = records[np.lexsort(order)]
        assert np.array_equal(np.fromfile("out.bin", record), expected), keys
    for number, dtype in enumerate(["<i2", ">i8", "u1", "<f4", ">f8", "?", "S2"]):
        numbers = (rng.integers(0, 99, 1000) - (50 if np.dtype(dtype).kind in "if" else 0)).astype(dtype)
        view = mg.sort_view(numbers, f"{number}.view")
        assert np.array_equal(view.to_numpy(dtype), np.sort(numbers)), dtype
    numbers = np.arange(100, dtype="<i8")[::3]
    assert mg.sort_view(numbers, "r.view", keys=[":r"]).to_numpy("<i8").tolist() == numbers.tolist()[::-1]
    # The first bytes of gzip, which are numbers here.
    assert len(mg.sort_view(np.frombuffer(b"\x1f\x8b\x08\x00" * 3, "<u4"), "z.view")) == 3
    for array, arguments, sentence in [
        (records, {}, "keys: name the fields to sort by; the array has key, weight, big, name"),
        (records, {"keys": ["size"]}, "the array has no field 'size'"),
        (records, {"by": "key"}, "by: names columns, and an array has records"),
        (numbers, {"keys": ["x"]}, "the array has no fields"),
        (numbers, {"format": "lines"}, "format: is for files"),
        (numbers.reshape(2, 17), {}, "an array of one dimension"),
        (np.array([object()]), {}, "an array of one dimension"),
        (np.array([1j]), {}, "complex128, which has no order here"),
        (np.array(["a"]), {}, "which has no order here"),
        (np.array(["2024-01-01"], "M8[s]"), {}, "which has no order here"),
    ]:
        with pytest.raises(mg.BadKey, match=sentence):
            mg.sort(array, "no.bin", **arguments)
    with pytest.raises(mg.BadKey, match="takes tables; an array has records"):
        mg.shuffle(numbers, "no.bin")
