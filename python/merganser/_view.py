"""Views: sorted rows or records that are read in any part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union, overload

from . import _merganser
from ._errors import BadKey
from ._settings import Memory, PathLike, memory_bytes, path_of, thread_count

if TYPE_CHECKING:
    import numpy
    import pyarrow


def open_view(view: PathLike, *, memory: Memory = None, threads: Optional[int] = None) -> View:
    """Opens the view in the folder ``view``.

    ``memory`` is a limit in bytes, or a text such as ``"512MB"``, for all streams of the view that are read at once; by
    default a quarter of what is available. ``threads`` merge.

    Raises FileNotFoundError, Damaged, MemoryLimit.

    >>> import merganser as mg
    >>> len(mg.open_view("by-name.view"))
    6
    """
    return View(path_of("view", view), memory_bytes(memory), thread_count(threads))


class View:
    """A sorted view, or a part of one.

    ``sort_view`` and ``open_view`` make it. A slice, ``between`` and ``select`` give parts, which read nothing yet. Arrow's
    libraries read it any number of times, and each stream begins with its first batch:

    >>> import merganser as mg, pyarrow as pa
    >>> view = mg.open_view("by-name.view")
    >>> pa.table(view[1:3]).to_pylist()
    [{'name': 'adam', 'qty': None}, {'name': 'berta', 'qty': 7}]
    """

    __slots__ = ("_path", "_memory", "_threads", "_opened", "_start", "_end", "_columns")

    def __init__(self, path: str, memory: int, threads: int) -> None:
        self._path, self._memory, self._threads = path, memory, threads
        self._opened = _merganser.OpenedView(path, memory, threads)
        self._start, self._end = 0, self._opened.rows
        self._columns: Optional[List[str]] = None

    def _part(self, start: int, end: int) -> View:
        part = object.__new__(View)
        for name in View.__slots__:
            setattr(part, name, getattr(self, name))
        part._start, part._end = start, max(start, end)
        return part

    def __reduce__(self) -> Tuple[Any, ...]:
        return _reopen, (self._path, self._memory, self._threads, self._start, self._end, self._columns)

    def __repr__(self) -> str:
        what = "rows" if self._opened.is_table else "records"
        return f"<merganser.View {self._path!r}: {len(self)} {what}>"

    @property
    def path(self) -> str:
        """Its folder."""
        return self._path

    @property
    def order(self) -> str:
        """Its order, as the command ``merganser sort --key`` takes it.

        >>> import merganser as mg
        >>> mg.open_view("by-name.view").order
        'name'
        """
        return self._opened.order

    @property
    def rows_read(self) -> int:
        """Rows that streams of this view and of its parts have handed out since it was opened."""
        return self._opened.rows_read

    @property
    def columns(self) -> List[str]:
        """The names of its columns.

        >>> import merganser as mg
        >>> mg.open_view("by-name.view").columns
        ['name', 'qty']
        """
        return self._opened.columns if self._columns is None else list(self._columns)

    @property
    def schema(self) -> pyarrow.Schema:
        """Its columns and types, as a schema of pyarrow.

        >>> import merganser as mg
        >>> mg.open_view("by-name.view").schema.field("qty").type
        DataType(int64)
        """
        return _pyarrow("schema").schema(self)

    def __len__(self) -> int:
        return self._end - self._start

    @overload
    def __getitem__(self, index: slice) -> View: ...

    @overload
    def __getitem__(self, index: int) -> Union[Dict[str, Any], bytes]: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[View, Dict[str, Any], bytes]:
        """A row, as a dictionary, or a record, as bytes; of a slice a view that reads these rows alone.

        >>> import merganser as mg
        >>> view = mg.open_view("by-name.view")
        >>> view[-1]
        {'name': 'carla', 'qty': 9}
        >>> len(view[2:-1])
        3
        """
        if isinstance(index, slice):
            start, end, step = index.indices(len(self))
            if step != 1:
                raise ValueError(f"a view has slices of neighbours only, not every {step}th row")
            return self._part(self._start + start, self._start + end)
        try:
            number = index.__index__()
        except AttributeError:
            raise TypeError(f"a view has rows by number and slices, not by {type(index).__name__}") from None
        number += len(self) if number < 0 else 0
        if not 0 <= number < len(self):
            raise IndexError(f"row {index} of a view of {len(self)}")
        row: Union[Dict[str, Any], bytes] = next(iter(self._part(self._start + number, self._start + number + 1)))
        return row

    def __iter__(self) -> Iterator[Any]:
        """Rows as dictionaries, or records as bytes."""
        if not self._opened.is_table:
            return iter(self._opened.each_record(self._start, self._end))
        return self._rows()

    def _rows(self) -> Iterator[Dict[str, Any]]:
        batches = self.to_batches()
        while True:
            try:
                batch = batches.read_next_batch()
            except StopIteration:
                return
            except Exception:
                # pyarrow has the sentence alone.
                self._opened.raise_failure()
                raise
            yield from batch.to_pylist()

    def select(self, columns: Sequence[str]) -> View:
        """The same rows with these columns, in this order.

        >>> import merganser as mg
        >>> mg.open_view("by-name.view").select(["qty"])[0]
        {'qty': 2}
        """
        if isinstance(columns, str):
            raise TypeError("columns: a list of names, not one name")
        names, known = list(columns), self.columns
        for name in names:
            if name not in known:
                raise BadKey(f"{self._path}: has no column {name}; it has {', '.join(known)}")
        if len(set(names)) < len(names):
            raise BadKey(f"columns: a name is twice in {', '.join(names)}")
        part = self._part(self._start, self._end)
        part._columns = names
        return part

    def between(self, low: Any = None, high: Any = None) -> View:
        """The rows whose first key column is between two values, both included, as SQL's BETWEEN has it.

        None is no bound. Rows whose key is null are never among them. The values have the type of the column: a text,
        a number, a date, bytes. NaN is greater than all other numbers.

        Raises BadKey for values that the column can't have.

        >>> import merganser as mg
        >>> [row["name"] for row in mg.open_view("by-name.view").between("adam", "berta")]
        ['adam', 'adam', 'berta']
        """
        return self._between(low, high, True)

    def _between(self, low: Any, high: Any, exact: bool) -> View:
        start, end = self._opened.range_of(low, high, exact)
        start, end = max(start, self._start), min(end, self._end)
        return self._part(start, end) if start < end else self._part(self._start, self._start)

    def to_batches(self, columns: Optional[Sequence[str]] = None) -> pyarrow.RecordBatchReader:
        """All rows, or some of their columns, as batches of pyarrow, which are read one after the other.

        >>> import merganser as mg
        >>> for batch in mg.open_view("by-name.view").to_batches(columns=["qty"]):
        ...     print(batch.num_rows, batch.schema.names)
        6 ['qty']
        """
        view = self if columns is None else self.select(columns)
        return _pyarrow("to_batches").RecordBatchReader.from_stream(view)

    def dataset(self) -> pyarrow.dataset.Dataset:
        """A data set of pyarrow. DuckDB and Polars ask it for the columns and for the range of keys that a query needs, and
        only these rows are read.

        >>> import duckdb, merganser as mg
        >>> rows = mg.open_view("by-name.view").dataset()
        >>> duckdb.sql("select sum(qty) from rows where name between 'a' and 'b'").fetchall()
        [(2,)]
        """
        _pyarrow("dataset")
        from ._dataset import ViewDataset

        return ViewDataset(self)

    def lines(self, encoding: Optional[str] = None) -> Iterator[Union[bytes, str]]:
        """The records of a view of lines, one after the other, without their ends; as texts with an ``encoding``.

        >>> import merganser as mg
        >>> view = mg.sort_view("big.txt", "lines.view")
        >>> list(view.lines("utf-8"))
        ['apple 10', 'fig 1', 'pear 2']
        """
        records = self._opened.each_record(self._start, self._end)
        if encoding is None:
            return iter(records)
        return (record.decode(encoding) for record in records)

    def to_numpy(self, dtype: Any = None) -> numpy.ndarray:
        """The records of a view of fixed-length records as an array, in memory. ``dtype`` is the type of a record, of as many
        bytes; without it, each is an opaque value.

        >>> import merganser as mg, numpy as np
        >>> np.array([3, 1, 2], dtype="<u4").tofile("numbers.bin")
        >>> view = mg.sort_view("numbers.bin", "numbers.view", format="fixed:4", keys=["0:4:u32le"])
        >>> view.to_numpy("<u4").tolist()
        [1, 2, 3]
        """
        import numpy

        name, length = self._opened.record_format
        if length is None:
            raise BadKey(f"{self._path}: has records of format {name}; only those of a fixed length make an array")
        of_record = numpy.dtype((numpy.void, length) if dtype is None else dtype)
        if of_record.itemsize != length:
            raise BadKey(f"dtype: {of_record} has {of_record.itemsize} bytes, and a record of {self._path} {length}")
        return numpy.frombuffer(self._opened.record_bytes(self._start, self._end), dtype=of_record)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """A stream of Arrow's C interface. It has the types of the table, whatever is requested."""
        return self._opened.stream(self._start, self._end, self._columns)

    def __arrow_c_schema__(self) -> Any:
        """The schema of Arrow's C interface."""
        return self._opened.schema(self._columns)


def _reopen(path: str, memory: int, threads: int, start: int, end: int, columns: Optional[List[str]]) -> View:
    """A view in another process. It must still have these rows."""
    whole = View(path, memory, threads)
    if end > len(whole):
        raise BadKey(f"{path}: has {len(whole)} rows now, and the part was of {end}")
    part = whole._part(start, end)
    part._columns = columns
    return part


def _pyarrow(what: str) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise ImportError(f"View.{what} needs pyarrow; install it with: pip install 'merganser[arrow]'") from None
    return pyarrow
