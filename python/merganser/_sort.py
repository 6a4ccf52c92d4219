"""Sorts: of tables, by columns; and of lines and other records, by keys as GNU sort writes them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from . import _merganser
from ._array import records_of
from ._errors import BadKey
from ._merganser import ArrowRows
from ._order import By, keys_of
from ._settings import (
    Memory,
    PathLike,
    ProgressArgument,
    bytes_of,
    count as count_of,
    memory_bytes,
    path_of,
    progress_of,
    temp_folders,
    thread_count,
)
from ._view import View

#: A path, a pattern, a list of them, a table (any object with ``__arrow_c_stream__``), or an array of numpy.
Inputs = Union[PathLike, Sequence[PathLike], Any]
Cancel = Callable[[], bool]
#: Names of columns: a list, or a text such as "country, year".
Columns = Union[str, Sequence[str], None]


@dataclass(frozen=True)
class SortReport:
    """What a sort did.

    ``rows`` were read and ``result_rows`` written. ``runs`` were written to disk because memory was full; 0 means that
    all rows fitted. ``merged`` says whether inputs in order were merged, and nothing was written but the result.
    """

    rows: int
    result_rows: int
    runs: int
    merged: bool


def sort(
    inputs: Inputs,
    output: PathLike,
    *,
    by: Optional[By] = None,
    keys: Optional[Sequence[str]] = None,
    output_format: Optional[str] = None,
    compression: Optional[str] = None,
    row_group_rows: Optional[int] = None,
    partition_by: Columns = None,
    file_size: Memory = None,
    hive: bool = True,
    format: Optional[str] = None,
    separator: Optional[str] = None,
    header: bool = False,
    options: str = "",
    stable: bool = False,
    unique: bool = False,
    memory: Memory = None,
    threads: Optional[int] = None,
    temp: Union[PathLike, List[PathLike], None] = None,
    progress: ProgressArgument = False,
    cancel: Optional[Cancel] = None,
) -> SortReport:
    """Sorts ``inputs`` into the file ``output``.

    ``inputs`` is a path, a folder, a pattern such as ``"in/*.parquet"``, a list of these, or a table: any object with
    ``__arrow_c_stream__``, such as a table of pyarrow, a frame of Polars or pandas, a relation of DuckDB, or a view. An array of
    numpy has records of a fixed length: its ``keys`` are fields, such as ``["key", "weight:r"]``, or ``[":r"]`` for numbers from
    the greatest on.

    A table has ``by``: columns, the first decides first, as SQL writes them (``"name, qty desc nulls last"``) or as a list
    (``["name", ("qty", "descending", "at_end")]``). Nulls come first unless it is said. NaN is the greatest number.
    Rows with equal keys keep their order. ``output_format`` is parquet, arrow, arrows, csv or jsonl; without it the name of
    ``output`` decides, or else the format of the first input. ``compression`` of Parquet is none, snappy, lz4, zstd or
    gzip; without it each column is packed as in the first input.

    With ``partition_by`` or ``file_size``, ``output`` is a new folder of Parquet, which appears whole or not at all: one folder for
    each value of these columns, as in ``country=FR/year=2026/part-00000.parquet``, and files of at most this size
    (``"256MB"``), in order by their names. Folders of inputs that are named so are columns, unless ``hive`` is False.

    Other files have ``keys``, as ``merganser sort --key`` takes them. ``format`` is lines, csv, fixed:BYTES and the like;
    ``options`` are GNU sort's letters, ``stable`` its -s and ``unique`` its -u. Compressed inputs are decompressed.

    ``memory`` is a limit in bytes, or a text (``"512MB"``, ``"2G"``) for all that grows with the data; by default a quarter of
    what is available. ``temp`` is a folder, or several, for temporary files. ``progress`` is True for a line on a terminal, or a
    function of (phase, bytes done, bytes in all or None), called in this thread. ``cancel`` is a function that is asked
    about every 50 ms whether to stop.

    A file ``output`` is replaced when the result is complete, and stays as it was after any error.

    Raises BadKey for columns and keys that make no sense, MemoryLimit, DiskFull, Damaged, Cancelled, OSError.

    >>> import merganser as mg
    >>> mg.sort("in/*.parquet", "out.parquet", by=["name", ("qty", "descending", "at_end")], memory="512MB")
    SortReport(rows=6, result_rows=6, runs=0, merged=False)
    >>> mg.sort("big.txt", "sorted.txt", keys=["2,2n"])
    SortReport(rows=3, result_rows=3, runs=0, merged=False)
    >>> mg.sort("in/", "by-name", by="qty desc nulls last", partition_by="name", file_size="256MB")
    SortReport(rows=6, result_rows=6, runs=0, merged=False)
    >>> print(open("sorted.txt").read(), end="")
    fig 1
    pear 2
    apple 10
    """
    given = _Given(inputs, by, keys)
    path = path_of("output", output)
    shared = _shared(memory, threads, temp, path, progress, cancel)
    of_tables = {
        "output_format": output_format,
        "compression": compression,
        "row_group_rows": row_group_rows,
        "partition_by": _columns(partition_by),
        "file_size": file_size,
        "hive": hive,
    }
    of_records = {
        "format": format,
        "separator": separator,
        "header": header,
        "options": options,
        "stable": stable,
        "unique": unique,
    }
    if given.is_table(of_tables, of_records):
        return _sort_table(given, {"output": path, **of_tables}, shared)
    return _sort_records(given, {"output": path, **of_records}, shared)


def sort_view(
    inputs: Inputs,
    view: PathLike,
    *,
    by: Optional[By] = None,
    keys: Optional[Sequence[str]] = None,
    presorted: bool = False,
    packed: Optional[str] = None,
    hive: bool = True,
    format: Optional[str] = None,
    separator: Optional[str] = None,
    header: bool = False,
    options: str = "",
    stable: bool = False,
    memory: Memory = None,
    threads: Optional[int] = None,
    temp: Union[PathLike, List[PathLike], None] = None,
    progress: ProgressArgument = False,
    cancel: Optional[Cancel] = None,
) -> View:
    """Sorts ``inputs`` into the view ``view``, a new folder, and opens it.

    It is ready after one pass over the data: its sorted runs are merged when they are read. The arguments are those of
    ``sort``. ``packed`` is off, lz4 or zstd; a packed view of a table takes less space and more time.

    With ``presorted``, ``inputs`` are files of Parquet that are each in order already. The view holds no rows then: it names the files,
    which have to stay as they are, and merges them when it is read. A row that is out of order is an error. Other tables are
    copied into the view.

    A view never replaces anything: an existing name is a FileExistsError.

    >>> import merganser as mg, pyarrow as pa
    >>> view = mg.sort_view(pa.table({"id": [3, 1, 2]}), "by-id.view", by="id")
    >>> pa.table(view)["id"].to_pylist()
    [1, 2, 3]
    >>> for name in ["a", "b"]:
    ...     report = mg.sort(f"in/{name}.parquet", f"sorted-{name}.parquet", by="name")
    >>> len(mg.sort_view(["sorted-a.parquet", "sorted-b.parquet"], "both.view", by="name", presorted=True))
    6
    """
    given = _Given(inputs, by, keys)
    path = path_of("view", view)
    shared = _shared(memory, threads, temp, path, progress, cancel)
    of_tables = {"packed": packed, "hive": hive}
    of_records = {
        "format": format,
        "separator": separator,
        "header": header,
        "options": options,
        "stable": stable,
    }
    if given.is_table(of_tables, of_records):
        _sort_table(given, {"view": path, "sorted_inputs": presorted, **of_tables}, shared)
    elif presorted:
        raise BadKey("presorted: only files of Parquet can stay where they are; leave it out for lines and records")
    else:
        _sort_records(given, {"view": path, **of_records}, shared)
    return View(path, shared["memory"], shared["threads"])


def merge(
    inputs: Inputs,
    output: PathLike,
    *,
    by: Optional[By] = None,
    keys: Optional[Sequence[str]] = None,
    output_format: Optional[str] = None,
    compression: Optional[str] = None,
    row_group_rows: Optional[int] = None,
    file_size: Memory = None,
    hive: bool = True,
    format: Optional[str] = None,
    separator: Optional[str] = None,
    header: bool = False,
    options: str = "",
    stable: bool = False,
    unique: bool = False,
    memory: Memory = None,
    threads: Optional[int] = None,
    temp: Union[PathLike, List[PathLike], None] = None,
    progress: ProgressArgument = False,
    cancel: Optional[Cancel] = None,
) -> SortReport:
    """Merges ``inputs``, which are each in order already, into the file ``output``.

    Nothing is written but the result. For tables, a row that is out of order is an error. The arguments are those of ``sort``.

    >>> import merganser as mg
    >>> for name in ["a", "b"]:
    ...     report = mg.sort(f"in/{name}.parquet", f"sorted-{name}.parquet", by="name")
    >>> mg.merge(["sorted-a.parquet", "sorted-b.parquet"], "merged.parquet", by="name")
    SortReport(rows=6, result_rows=6, runs=0, merged=True)
    """
    given = _Given(inputs, by, keys)
    path = path_of("output", output)
    shared = _shared(memory, threads, temp, path, progress, cancel)
    of_tables = {
        "output_format": output_format,
        "compression": compression,
        "row_group_rows": row_group_rows,
        "file_size": file_size,
        "hive": hive,
    }
    of_records = {
        "format": format,
        "separator": separator,
        "header": header,
        "options": options,
        "stable": stable,
        "unique": unique,
    }
    if given.is_table(of_tables, of_records):
        return _sort_table(given, {"output": path, "sorted_inputs": True, **of_tables}, shared)
    return _sort_records(given, {"output": path, "sorted_inputs": True, **of_records}, shared)


def shuffle(
    inputs: Inputs,
    output: PathLike,
    *,
    seed: int = 0,
    output_format: Optional[str] = None,
    compression: Optional[str] = None,
    row_group_rows: Optional[int] = None,
    partition_by: Columns = None,
    file_size: Memory = None,
    hive: bool = True,
    memory: Memory = None,
    threads: Optional[int] = None,
    temp: Union[PathLike, List[PathLike], None] = None,
    progress: ProgressArgument = False,
    cancel: Optional[Cancel] = None,
) -> SortReport:
    """Writes the rows of a table to ``output`` in a random order, the same for the same seed and the same files.

    >>> import merganser as mg
    >>> mg.shuffle("in/*.parquet", "shuffled.parquet", seed=7)
    SortReport(rows=6, result_rows=6, runs=0, merged=False)
    """
    given = _Given(inputs, None, None)
    path = path_of("output", output)
    seed = count_of("seed", seed, 0, 0)
    shared = _shared(memory, threads, temp, path, progress, cancel)
    job = {
        "output": path,
        "seed": seed,
        "output_format": output_format,
        "compression": compression,
        "row_group_rows": row_group_rows,
        "partition_by": _columns(partition_by),
        "file_size": file_size,
        "hive": hive,
    }
    given.expect_table("shuffle")
    return _sort_table(given, job, shared)


def distinct(
    inputs: Inputs,
    output: Optional[PathLike] = None,
    *,
    by: Optional[By] = None,
    count: bool = False,
    output_format: Optional[str] = None,
    compression: Optional[str] = None,
    row_group_rows: Optional[int] = None,
    partition_by: Columns = None,
    file_size: Memory = None,
    hive: bool = True,
    memory: Memory = None,
    threads: Optional[int] = None,
    temp: Union[PathLike, List[PathLike], None] = None,
    progress: ProgressArgument = False,
    cancel: Optional[Cancel] = None,
) -> Union[SortReport, ArrowRows]:
    """Keeps the first of rows with equal keys; without ``by``, of equal rows. The result is sorted.

    With ``count`` it has one more column, ``count``, with how many there were. Without ``output`` the rows are returned, as
    those of ``top``.

    >>> import merganser as mg, pyarrow as pa
    >>> rows = mg.distinct("in/*.parquet", by="name", count=True)
    >>> pa.table(rows).select(["name", "count"]).to_pylist()[0]
    {'name': 'adam', 'count': 2}
    """
    given = _Given(inputs, by, None)
    given.expect_table("distinct")
    path = None if output is None else path_of("output", output)
    shared = _shared(memory, threads, temp, path, progress, cancel)
    job = {
        "output": path,
        "equal": "count" if count else "first",
        "output_format": output_format,
        "compression": compression,
        "row_group_rows": row_group_rows,
        "partition_by": _columns(partition_by),
        "file_size": file_size,
        "hive": hive,
    }
    return _some_rows(given, job, shared)


def top(
    inputs: Inputs,
    rows: int,
    output: Optional[PathLike] = None,
    *,
    by: By,
    output_format: Optional[str] = None,
    compression: Optional[str] = None,
    row_group_rows: Optional[int] = None,
    hive: bool = True,
    memory: Memory = None,
    threads: Optional[int] = None,
    temp: Union[PathLike, List[PathLike], None] = None,
    progress: ProgressArgument = False,
    cancel: Optional[Cancel] = None,
) -> Union[SortReport, ArrowRows]:
    """The first ``rows`` rows of a table in the order ``by``.

    Without ``output`` they are returned, for ``pa.table``, ``pl.DataFrame`` and DuckDB. They are in memory, and take as much as
    ``memory`` says in addition to the sort, or it is a MemoryLimit.

    >>> import merganser as mg, pyarrow as pa
    >>> pa.table(mg.top("in/*.parquet", 2, by="qty desc nulls last")).to_pylist()
    [{'name': 'carla', 'qty': 9}, {'name': 'berta', 'qty': 7}]
    """
    given = _Given(inputs, by, None)
    given.expect_table("top")
    rows = count_of("rows", rows, 0, 0)
    path = None if output is None else path_of("output", output)
    shared = _shared(memory, threads, temp, path, progress, cancel)
    job = {
        "output": path,
        "top": rows,
        "output_format": output_format,
        "compression": compression,
        "row_group_rows": row_group_rows,
        "hive": hive,
    }
    return _some_rows(given, job, shared)


class _Given:
    """Inputs and their order, as they were given."""

    def __init__(self, inputs: Inputs, by: Optional[By], keys: Optional[Sequence[str]]) -> None:
        if by is not None and keys is not None:
            raise BadKey("by and keys: give one of them: by for columns of tables, keys for lines and other records")
        self.by = None if by is None else keys_of(by)
        self.keys = None if keys is None else _keys(keys)
        self.table: Any = None
        self.array: Optional[bytes] = None
        self.array_format = ""
        self.paths: List[str] = []
        if hasattr(inputs, "__arrow_c_stream__"):
            self.table = inputs
        elif hasattr(inputs, "__array_interface__"):
            if by is not None:
                raise BadKey("by: names columns, and an array has records: give keys, as in keys=['field:r']")
            self.array, self.array_format, self.keys = records_of(inputs, self.keys)
        elif isinstance(inputs, (str, os.PathLike)):
            self.paths = [path_of("inputs", inputs)]
        elif isinstance(inputs, Sequence) and not isinstance(inputs, (bytes, bytearray)):
            self.paths = [path_of("inputs", path) for path in inputs]
            if not self.paths:
                raise ValueError("inputs: names no file")
        else:
            what = "a path, a list of paths, or a table with __arrow_c_stream__"
            raise TypeError(f"inputs: {what}, not {type(inputs).__name__}")

    def has_tables(self) -> bool:
        """Whether the inputs are tables: by their first bytes."""
        return self.table is not None or (self.array is None and _merganser.is_table(self.paths[0]))

    def is_table(self, of_tables: Dict[str, Any], of_records: Dict[str, Any]) -> bool:
        """The same. Arguments of the other kind are refused."""
        is_table = self.has_tables()
        what = f"{self.paths[0]}: is" if self.paths else "the input is"
        for name in ["format", "separator", "header", "options"]:
            if self.array is not None and of_records[name]:
                raise BadKey(f"{name}: is for files; the type of an array says what its records are")
        if is_table:
            if self.keys is not None:
                raise BadKey(f"keys: are for lines and other records; {what} a table: give by, as in by='name, qty desc'")
            if self.by is None:
                # Folders alone are an order.
                if not of_tables.get("partition_by"):
                    raise BadKey("by: name the columns to sort by, as in by='name, qty desc'")
                self.by = []
        elif self.by is not None:
            raise BadKey(f"by: names columns; {what} neither Parquet nor Arrow: give keys, as in keys=['2,2n']")
        for name, value in (of_records if is_table else of_tables).items():
            if not (value is True if name == "hive" else value in (None, False, "", [])):
                kind = "lines and other records" if is_table else "tables"
                raise BadKey(f"{name}: is for {kind}; {what} {'a table' if is_table else 'no table'}")
        return is_table

    def expect_table(self, function: str) -> None:
        """Refuses what is no table."""
        if not self.has_tables():
            what = f"{self.paths[0]}: is neither Parquet nor Arrow" if self.paths else "an array has records"
            raise BadKey(f"{function}: takes tables; {what}")


def _columns(columns: Columns) -> List[str]:
    if columns is None:
        return []
    names = columns.split(",") if isinstance(columns, str) else list(columns)
    if not all(isinstance(name, str) for name in names):
        raise TypeError("partition_by: names of columns, as in partition_by=['country', 'year']")
    names = [name.strip() for name in names] if isinstance(columns, str) else names
    if not names or "" in names:
        raise BadKey("partition_by: a name is empty")
    return names


def _keys(keys: Sequence[str]) -> List[str]:
    if isinstance(keys, str) or not all(isinstance(key, str) for key in keys):
        raise TypeError("keys: a list of texts, as in keys=['2,2n']")
    return list(keys)


def _shared(
    memory: Memory,
    threads: Optional[int],
    temp: Union[PathLike, List[PathLike], None],
    beside: Optional[str],
    progress: ProgressArgument,
    cancel: Optional[Cancel],
) -> Dict[str, Any]:
    """The arguments of every job."""
    if cancel is not None and not callable(cancel):
        raise TypeError(f"cancel: a function, not {type(cancel).__name__}")
    return {
        "memory": memory_bytes(memory),
        "threads": thread_count(threads),
        "temp": temp_folders(temp, beside),
        "progress": progress_of(progress),
        "cancel": cancel,
    }


def _done(job: Dict[str, Any], run: Callable[[Dict[str, Any]], Dict[str, Any]]) -> Dict[str, Any]:
    """Runs a job, and ends the line of its progress."""
    try:
        return run(job)
    finally:
        end = getattr(job["progress"], "end", None)
        if end is not None:
            end()


def _sort_table(given: _Given, asked: Dict[str, Any], shared: Dict[str, Any]) -> SortReport:
    """A sort of a table into a file or a view."""
    done = _table_done(given, asked, shared)
    return SortReport(done["rows"], done["result_rows"], done["runs"], done["merged"])


def _some_rows(given: _Given, asked: Dict[str, Any], shared: Dict[str, Any]) -> Union[SortReport, ArrowRows]:
    """A sort of a table into a file, or into memory if none is named."""
    if asked["output"] is not None:
        return _sort_table(given, asked, shared)
    for name in ["output_format", "compression", "row_group_rows", "partition_by", "file_size"]:
        if asked.get(name):
            raise BadKey(f"{name}: is for a file; name one with output")
    rows: ArrowRows = _table_done(given, asked, shared)["result"]
    return rows


def _table_done(given: _Given, asked: Dict[str, Any], shared: Dict[str, Any]) -> Dict[str, Any]:
    rows = asked.get("row_group_rows")
    size = asked.get("file_size")
    job = {
        "paths": given.paths,
        "table": given.table,
        "output": asked.get("output"),
        "view": asked.get("view"),
        "keys": given.by,
        "seed": asked.get("seed"),
        "equal": asked.get("equal", "all"),
        "top": asked.get("top"),
        "sorted_inputs": asked.get("sorted_inputs", False),
        "format": asked.get("output_format"),
        "compression": asked.get("compression"),
        "row_group_rows": None if rows is None else count_of("row_group_rows", rows, 1, 1),
        "partition_by": asked.get("partition_by", []),
        "file_size": None if size is None else bytes_of("file_size", size),
        "hive": bool(asked["hive"]),
        "packed": asked.get("packed") or "off",
        **shared,
    }
    return _done(job, _merganser.sort_table)


def _sort_records(given: _Given, asked: Dict[str, Any], shared: Dict[str, Any]) -> SortReport:
    job = {
        "paths": given.paths,
        "array": given.array,
        "output": asked.get("output"),
        "view": asked.get("view"),
        "format": given.array_format or asked.get("format") or "lines",
        "keys": given.keys or [],
        "options": asked.get("options", ""),
        "separator": asked.get("separator"),
        "header": asked.get("header", False),
        "stable": asked.get("stable", False),
        "unique": asked.get("unique", False),
        "top": asked.get("top"),
        "sorted_inputs": asked.get("sorted_inputs", False),
        **shared,
    }
    done = _done(job, _merganser.sort_records)
    return SortReport(done["records"], done["records"], done["runs"], done["merged"])
