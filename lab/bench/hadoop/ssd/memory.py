"""A page cache of a fixed size.

The paper's machine had 3.2 GB for daemons, tasks and cache together. Java processes do not shrink with the data, so a
group with the paper's ratio of memory to data would have no room for them. Here the processes have what they take,
and the *page cache* of their control group is held to the paper's ratio: the limit follows what the group uses in
addition to its cache. So the cache is larger than the paper's was, and a hard disk looks better than there.
"""

import threading
import time
from contextlib import contextmanager

PERIOD_S = 0.05
SLACK_BYTES = 1 << 20
"""Smaller changes of the limit are not made."""


def _pages_of_files(group):
    for line in (group / "memory.stat").read_text().splitlines():
        name, _, value = line.partition(" ")
        if name == "total_cache":
            return int(value)
    return 0


class CacheLimit:
    """Moves the limit of a control group, so that its page cache has at most `cache_bytes`."""

    def __init__(self, group, cache_bytes):
        self._group, self._cache_bytes = group, cache_bytes
        self._ended = threading.Event()
        self.processes_peak_bytes = 0
        self._limit = None
        # Until the limit follows, a process that needs memory waits. It would be killed otherwise.
        (group / "memory.oom_control").write_text("1")
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self):
        while not self._ended.wait(PERIOD_S):
            try:
                self._move()
            except OSError:
                # The cache can't shrink now, because its pages wait for the disk.
                continue

    def _move(self):
        used = int((self._group / "memory.usage_in_bytes").read_text())
        others = max(0, used - _pages_of_files(self._group))
        self.processes_peak_bytes = max(self.processes_peak_bytes, others)
        limit = others + self._cache_bytes
        if self._limit is None or abs(limit - self._limit) > SLACK_BYTES:
            (self._group / "memory.limit_in_bytes").write_text(str(limit))
            self._limit = limit

    def end(self):
        """Lifts the limit. The processes have ended before, while the limit still followed them."""
        self._ended.set()
        self._thread.join()
        for _ in range(100):
            try:
                (self._group / "memory.limit_in_bytes").write_text("-1")
                return
            except OSError:
                time.sleep(PERIOD_S)


@contextmanager
def cache_of(group, cache_bytes):
    """Holds the page cache of a group to `cache_bytes`. Yields the `CacheLimit`, which knows the processes' peak."""
    held = CacheLimit(group, cache_bytes)
    try:
        yield held
    finally:
        held.end()
