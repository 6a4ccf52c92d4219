"""The order of cases: kinds take turns by their weights, in an order that is the same for the same seed."""

import time


class Schedule:
    """The order of cases, until the time, the kills or the number of cases is reached."""

    def __init__(self, kinds, setup, seed, *, minutes=None, kills=None, counts=None):
        self.kinds = kinds
        self.cases = {name: kind.cases(setup, seed) for name, kind in kinds.items()}
        self.weights = {name: counts[name] if counts else kind.WEIGHT for name, kind in kinds.items()}
        self.given = dict.fromkeys(kinds, 0)
        self.counts = counts
        self.deadline = time.monotonic() + minutes * 60 if minutes is not None else None
        self.kills = kills

    def next(self, killed):
        """The next case, given the number of processes killed up to now; nothing at the end."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            return None
        if self.kills is not None and killed >= self.kills:
            return None
        open_kinds = [name for name in self.kinds if not self.counts or self.given[name] < self.counts[name]]
        if not open_kinds:
            return None
        # The kind that is furthest behind its share.
        name = min(open_kinds, key=lambda kind: (self.given[kind] + 0.5) / self.weights[kind])
        self.given[name] += 1
        return next(self.cases[name])
