"""Sorts tables and files that are larger than memory, within the limit that you set.

>>> import merganser as mg
>>> mg.sort("in/*.parquet", "out.parquet", by="name, qty desc nulls last", memory="512MB")
SortReport(rows=6, result_rows=6, runs=0, merged=False)

A view is ready after one pass over the data, and is read in any part:

>>> view = mg.sort_view("in/*.parquet", "by-name.view", by="name")
>>> len(view), view.columns
(6, ['name', 'qty'])
>>> view[0]
{'name': 'adam', 'qty': 2}
>>> len(view.between("adam", "berta"))
3

Everything that speaks Arrow goes in and out: ``pa.table(view)``, ``pl.DataFrame(view)``, ``duckdb.sql("from view")``. What
isn't a table, such as lines, has ``keys`` instead of ``by``:

>>> mg.sort("big.txt", "sorted.txt", keys=["2,2n"])
SortReport(rows=3, result_rows=3, runs=0, merged=False)

Results are complete or not there. Ctrl-C ends a sort within a moment, and the interpreter's lock is free meanwhile. Errors
are ``merganser.Error`` and its kinds; what the system refuses is ``OSError``.
"""

from ._errors import BadKey, Cancelled, Damaged, DiskFull, Error, MemoryLimit
from ._merganser import ArrowRows, __version__
from ._sort import SortReport, distinct, merge, shuffle, sort, sort_view, top
from ._view import View, open_view

__all__ = [
    "ArrowRows",
    "BadKey",
    "Cancelled",
    "Damaged",
    "DiskFull",
    "Error",
    "MemoryLimit",
    "SortReport",
    "View",
    "__version__",
    "distinct",
    "merge",
    "open_view",
    "shuffle",
    "sort",
    "sort_view",
    "top",
]
