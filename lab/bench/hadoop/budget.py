"""The time that is left for cells, and how long they take."""

import time


class Budget:
    """Says whether a cell would end in time: as long as one like it took, or as long as it expects itself."""

    def __init__(self, minutes):
        self._end = None if minutes is None else time.monotonic() + 60 * minutes
        self._took = {}

    def has_room(self, *cells):
        """Whether these cells would end in time, one after the other."""
        if self._end is None:
            return True
        expected = sum(self._took.get(cell.alike, cell.expected_s) for cell in cells)
        return time.monotonic() + expected <= self._end

    def took(self, cell, seconds):
        """Notes how long a cell took."""
        self._took[cell.alike] = seconds
