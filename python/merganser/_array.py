"""Arrays of numpy as fixed-length records, and their fields as keys."""

from __future__ import annotations

import re
from typing import Any, List, Optional, Tuple

from ._errors import BadKey

# numpy's kinds of types that have an order as keys, and the engine's letter for them.
_LETTERS = {"i": "i", "u": "u", "f": "f", "b": "u"}
_PLACE = re.compile(r"\d+:\d+(:.*)?")


def records_of(array: Any, keys: Optional[List[str]]) -> Tuple[bytes, str, List[str]]:
    """The bytes of an array, the format of its records, and the engine's keys.

    >>> import numpy as np
    >>> records_of(np.array([(2, 0.5)], dtype=[("key", "<i4"), ("weight", "<f8")]), ["weight:r", "key"])[1:]
    ('fixed:12', ['4:8:f64le:r', '0:4:i32le'])
    """
    import numpy

    array = numpy.ascontiguousarray(array)
    if array.ndim != 1 or array.dtype.hasobject or array.dtype.itemsize == 0:
        raise BadKey(f"inputs: an array of one dimension with values of a fixed length, not {array.ndim} of {array.dtype}")
    if keys is None and array.dtype.names:
        raise BadKey(f"keys: name the fields to sort by; the array has {', '.join(array.dtype.names)}")
    found = [_key(array.dtype, key) for key in ([""] if keys is None else keys)]
    return array.tobytes(), f"fixed:{array.dtype.itemsize}", found


def _key(dtype: Any, key: str) -> str:
    """The engine's key of a field, such as `key:r`; of the whole value if there are no fields."""
    if _PLACE.fullmatch(key):
        return key
    name, descending = (key[:-2], ":r") if key.endswith(":r") else (key, "")
    if dtype.names:
        if name not in dtype.names:
            raise BadKey(f"keys: the array has no field {name!r}; it has {', '.join(dtype.names)}")
        of_field, offset = dtype.fields[name][:2]
    elif name:
        raise BadKey(f"keys: the array has no fields, so {key!r} is no key; give [':r'] for its greatest values first")
    else:
        of_field, offset = dtype, 0
    place = f"{offset}:{of_field.itemsize}"
    if of_field.kind in "SV" and of_field.names is None and of_field.subdtype is None:
        return place + descending
    letter = _LETTERS.get(of_field.kind)
    if letter is None or of_field.itemsize > 8 or (letter == "f" and of_field.itemsize < 4):
        raise BadKey(f"keys: {name or 'the array'!s} is of type {of_field}, which has no order here")
    # numpy says | for one byte, and = for the order of this machine, which is the lowest byte first.
    order = "" if of_field.itemsize == 1 else "be" if of_field.byteorder == ">" else "le"
    return f"{place}:{letter}{8 * of_field.itemsize}{order}{descending}"
