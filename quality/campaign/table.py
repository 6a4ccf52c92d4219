"""The table at the end, and its JSON."""

from collections import Counter, defaultdict

from case import LOST, REFUSED, SURVIVED, WRONG

COLUMNS = ["kind", "cases", "disturbed", "refused", "survived", "lost", "wrong"]


class Tally:
    """The verdicts so far."""

    def __init__(self):
        self.verdicts = defaultdict(Counter)
        self.disturbed = Counter()
        self.killed = 0
        self.skipped = {}
        self.failures = []

    def add(self, outcome):
        """Counts a case."""
        kind = outcome.case.kind
        self.killed += outcome.killed
        self.disturbed[kind] += outcome.disturbed
        if outcome.verdict == "skipped":
            self.skipped[kind] = outcome.reason
            return
        self.verdicts[kind][outcome.verdict] += 1
        if outcome.verdict in (LOST, WRONG):
            self.failures.append(outcome)

    @property
    def bad(self):
        """How many cases were lost or wrong."""
        return len(self.failures)

    def rows(self):
        """A row for each kind, and their sum."""
        rows = []
        for kind, verdicts in self.verdicts.items():
            counted = [verdicts[verdict] for verdict in (REFUSED, SURVIVED, LOST, WRONG)]
            rows.append([kind, sum(verdicts.values()), self.disturbed[kind], *counted])
        rows.append(["all", *(sum(row[i] for row in rows) for i in range(1, len(COLUMNS)))])
        return rows

    def text(self):
        """The table in Markdown."""
        lines = ["| " + " | ".join(COLUMNS) + " |", "|---" + "|---:" * (len(COLUMNS) - 1) + "|"]
        for row in self.rows():
            lines.append("| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else cell for cell in row) + " |")
        return "\n".join(lines)

    def groups(self):
        """Failures that look alike, the most frequent first: how often, verdict, kind, scenario's action, reason, an id."""
        groups = defaultdict(list)
        for outcome in self.failures:
            groups[group_of(outcome)].append(outcome)
        return sorted(((len(group), *key, str(group[0].case)) for key, group in groups.items()), reverse=True)

    def alike(self, outcome):
        """How many failures look like this one."""
        return sum(group_of(other) == group_of(outcome) for other in self.failures)

    def data(self):
        """All of it as plain data."""
        return {
            "kinds": [dict(zip(COLUMNS, row)) for row in self.rows()],
            "killed": self.killed,
            "skipped": self.skipped,
            "failures": [
                {"id": str(o.case), "verdict": o.verdict, "reason": o.reason, "kept": o.kept, "log": o.log}
                for o in self.failures
            ],
        }


def group_of(outcome):
    """A key that failures that look alike have in common."""
    return outcome.verdict, outcome.case.kind, outcome.case.scenario.split(".")[0], shape(outcome.reason)


def shape(reason):
    """A reason without its numbers."""
    return "".join("#" if letter.isdigit() else letter for letter in reason[:160])
