"""The errors of merganser. Each has one sentence that names the file, the place and the numbers.

What the system refuses is an ``OSError`` of its usual kind: ``FileNotFoundError``, ``FileExistsError``, ``PermissionError``.
"""


class Error(Exception):
    """Any error that isn't the system's own."""

    # As users import it, in tracebacks and pickles.
    __module__ = "merganser"


class MemoryLimit(Error):
    """The memory is too small; the sentence says how much is needed at least."""

    __module__ = "merganser"


class DiskFull(Error, OSError):
    """A disk has no more room for temporary files or for the result. ``errno`` is ``ENOSPC``."""

    __module__ = "merganser"


class Damaged(Error):
    """A file holds other bytes than those that were written to it, or can't be decoded."""

    __module__ = "merganser"


class BadKey(Error, ValueError):
    """A column, key, value or option that makes no sense for these data."""

    __module__ = "merganser"


class Cancelled(Error):
    """The argument ``cancel`` asked for the end."""

    __module__ = "merganser"
