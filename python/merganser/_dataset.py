"""Data sets of pyarrow over views, which read the range of keys that a filter needs.

    DuckDB, Polars ─► scanner(columns, filter) ─► comparisons of the first key ─► a range of rows ─► batches ─► filter

An expression of pyarrow shows its parts only as text. So the text is read, an expression is made of what was
understood, and only if that is equal to the filter are its bounds used. The range is at most too wide, since pyarrow
applies the whole filter to what is read. A filter that isn't understood reads all rows.
"""

from __future__ import annotations

import decimal
import itertools
import json
import re
from typing import TYPE_CHECKING, Any, Callable, Iterator, List, NamedTuple, Optional, Tuple

import pyarrow
import pyarrow.compute
import pyarrow.dataset

from ._errors import BadKey, Error

if TYPE_CHECKING:
    from ._view import View

# Expressions that are tried at most, since a literal does not show its type.
_TRIES = 512
_OPERATORS = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
}
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"|[^()"]+')


class _NotUnderstood(Exception):
    """A filter with other parts than those that are read here."""


class _Comparison(NamedTuple):
    column: str
    operator: str
    # The values that the text may stand for.
    literals: List[pyarrow.Scalar]


class _Filter:
    """A filter that was read: comparisons, and a function that makes the expression of one literal for each."""

    def __init__(self, text: str, schema: pyarrow.Schema) -> None:
        self.text, self.at, self.schema = text, 0, schema
        self.comparisons: List[_Comparison] = []
        # Those that every row has to fulfil.
        self.required: List[int] = []
        self.columns: List[str] = []
        self.make = self._expression(True)
        if self.at != len(text):
            raise _NotUnderstood

    def _take(self, word: str) -> bool:
        found = self.text.startswith(word, self.at)
        self.at += len(word) if found else 0
        return found

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise _NotUnderstood

    def _column(self, end: str) -> str:
        # A name can have any letters, so the longest that fits is taken.
        names: List[str] = sorted(self.schema.names, key=len, reverse=True)
        for name in names:
            if self._take(f"{name}{end}"):
                self.columns.append(name)
                return name
        raise _NotUnderstood

    def _expression(self, required: bool) -> Callable[[Any], pyarrow.compute.Expression]:
        for function in ["is_valid", "invert"]:
            if self._take(f"{function}("):
                if function == "is_valid":
                    column = self._column(")")
                    return lambda literals: pyarrow.compute.field(column).is_valid()
                inner = self._expression(False)
                self._expect(")")
                return lambda literals: ~inner(literals)
        self._expect("(")
        if self.text[self.at] == "(" or self.text.startswith(("is_valid(", "invert("), self.at):
            return self._both(required)
        return self._comparison(required)

    def _both(self, required: bool) -> Callable[[Any], pyarrow.compute.Expression]:
        count = len(self.required)
        one = self._expression(required)
        is_and = self._take(" and ")
        if not is_and:
            self._expect(" or ")
            del self.required[count:]
        other = self._expression(required and is_and)
        self._expect(")")
        if is_and:
            return lambda literals: one(literals) & other(literals)
        return lambda literals: one(literals) | other(literals)

    def _comparison(self, required: bool) -> Callable[[Any], pyarrow.compute.Expression]:
        column = self._column(" ")
        operator = next((sign for sign in _OPERATORS if self._take(f"{sign} ")), None)
        found = _LITERAL.match(self.text, self.at)
        if operator is None or not found:
            raise _NotUnderstood
        self.at = found.end()
        self._expect(")")
        number = len(self.comparisons)
        literals = list(_literals(found[0], self.schema.field(column).type))
        self.comparisons.append(_Comparison(column, operator, literals))
        if required:
            self.required.append(number)
        return lambda values: _OPERATORS[operator](pyarrow.compute.field(column), values[number])


def _literals(text: str, column: pyarrow.DataType) -> Iterator[pyarrow.Scalar]:
    """Values that a literal of this text can be, the likely ones first."""
    if pyarrow.types.is_dictionary(column):
        column = column.value_type
    if text.startswith('"'):
        try:
            value = json.loads(text)
        except ValueError:
            raise _NotUnderstood from None
        types = [column, pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()]
    else:
        value = text
        types = [column, pyarrow.int64(), pyarrow.int32(), pyarrow.float64(), pyarrow.bool_(), pyarrow.date32()]
        types += [pyarrow.timestamp(unit) for unit in ["us", "ns", "s", "ms"]]
    seen = []
    for data_type in types:
        if data_type in seen:
            continue
        seen.append(data_type)
        try:
            yield pyarrow.scalar(value, pyarrow.string()).cast(data_type)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
            continue
    if re.fullmatch(r"-?\d+\.\d+", text):
        yield pyarrow.scalar(decimal.Decimal(text))


def _bounds(
    filter: pyarrow.compute.Expression, schema: pyarrow.Schema, key: str
) -> Tuple[List[Tuple[str, Any]], List[str]]:
    """What a filter asks of the column ``key``: operators and values; and the columns that it reads."""
    read = _Filter(str(filter), schema)
    choices = [comparison.literals for comparison in read.comparisons]
    for literals in itertools.islice(itertools.product(*choices), _TRIES):
        if read.make(literals).equals(filter):
            wanted = [number for number in read.required if read.comparisons[number].column == key]
            return [(read.comparisons[number].operator, literals[number].as_py()) for number in wanted], read.columns
    raise _NotUnderstood


def _plain(schema: pyarrow.Schema) -> pyarrow.Schema:
    """The schema without views of strings and bytes, as Polars makes them: pyarrow has no filters for them."""
    plain = {pyarrow.string_view(): pyarrow.large_string(), pyarrow.binary_view(): pyarrow.large_binary()}
    fields = [field.with_type(plain.get(field.type, field.type)) for field in schema]
    return pyarrow.schema(fields, schema.metadata)


class ViewDataset(pyarrow.dataset.Dataset):  # type: ignore[misc, unused-ignore]  # pyarrow has no types
    """A view as a data set: ``scanner`` reads the columns and the range of keys that it is asked for."""

    # The base class has a data set of C++, which this one hasn't: whatever would use that is replaced or refused.
    def __init__(self, view: View, filter: Optional[pyarrow.compute.Expression] = None) -> None:
        self._view, self._filter = view, filter

    def __reduce__(self) -> Tuple[Any, ...]:
        return ViewDataset, (self._view, self._filter)

    def __repr__(self) -> str:
        return f"<merganser.ViewDataset of {self._view!r}>"

    @property
    def schema(self) -> pyarrow.Schema:
        return _plain(self._view.schema)

    @property
    def partition_expression(self) -> pyarrow.compute.Expression:
        return pyarrow.compute.scalar(True)

    def scanner(
        self,
        columns: Any = None,
        filter: Optional[pyarrow.compute.Expression] = None,
        **options: Any,
    ) -> pyarrow.dataset.Scanner:
        """Reads ``columns``, a list of names or a dictionary of expressions, of the rows that ``filter`` keeps."""
        if self._filter is not None:
            filter = self._filter if filter is None else self._filter & filter
        view, of_filter = (self._view, []) if filter is None else _narrowed(self._view, filter)
        if of_filter is not None and not isinstance(columns, dict) and columns is not None:
            has = view.columns
            unknown = [name for name in columns if name not in has]
            if unknown:
                raise BadKey(f"{view.path}: has no column {unknown[0]}; it has {', '.join(has)}")
            wanted = set(columns) | set(of_filter)
            view = view.select([name for name in has if name in wanted])
        reader = pyarrow.RecordBatchReader.from_stream(view)
        plain = _plain(reader.schema)
        if plain != reader.schema:
            reader = reader.cast(plain)
        passed = {name: options[name] for name in ["batch_size", "use_threads", "memory_pool"] if name in options}
        return pyarrow.dataset.Scanner.from_batches(reader, columns=columns, filter=filter, **passed)

    def filter(self, expression: pyarrow.compute.Expression) -> ViewDataset:
        both = expression if self._filter is None else self._filter & expression
        return ViewDataset(self._view, both)

    def count_rows(self, filter: Optional[pyarrow.compute.Expression] = None, **options: Any) -> int:
        if filter is None and self._filter is None:
            return len(self._view)
        count: int = self.scanner(columns=[], filter=filter, **options).count_rows()
        return count

    def head(self, num_rows: int, columns: Any = None, filter: Any = None, **options: Any) -> pyarrow.Table:
        return self.scanner(columns=columns, filter=filter, **options).head(num_rows)

    def to_batches(self, columns: Any = None, filter: Any = None, **options: Any) -> Iterator[pyarrow.RecordBatch]:
        yield from self.scanner(columns=columns, filter=filter, **options).to_batches()

    def to_table(self, columns: Any = None, filter: Any = None, **options: Any) -> pyarrow.Table:
        return self.scanner(columns=columns, filter=filter, **options).to_table()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.scanner().to_reader().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self._view.__arrow_c_schema__()

    def _refused(self, *arguments: Any, **options: Any) -> Any:
        raise Error("a data set of a view has scanners, filters and tables, but not this; use to_table() first")

    get_fragments = _get_fragments = _scan_options = _scanner_options = _refused
    replace_schema = join = join_asof = sort_by = take = _refused


def _narrowed(view: View, filter: pyarrow.compute.Expression) -> Tuple[View, Optional[List[str]]]:
    """The part of the view that has all rows that ``filter`` keeps, and the columns of the filter; None if it is not known."""
    first = view._opened.first_key
    try:
        bounds, columns = _bounds(filter, _plain(view.schema), first[0] if first else "")
    except (_NotUnderstood, ValueError, pyarrow.ArrowException, IndexError):
        return view, None
    for operator, value in bounds:
        low = value if operator in ("==", ">=", ">") else None
        high = value if operator in ("==", "<=", "<") else None
        if value is None or operator == "!=":
            continue
        try:
            view = view._between(low, high, False)
        except BadKey:
            # A value of another kind is compared by pyarrow.
            continue
    return view, columns
