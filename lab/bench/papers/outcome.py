"""The result of a comparison: tables of the paper's figures, ours and the ratio, as text and as JSON."""

import math
from dataclasses import dataclass, field

from .published import Published

SAYS = "what the text says: 1 holds, 0 does not"
"""The title of a table of statements."""


class CompareError(Exception):
    """A file with results that can't be compared; the text says why."""


def over(part, whole):
    """A ratio; of 0, as floating-point numbers have it."""
    if whole:
        return part / whole
    return math.nan if not part else math.copysign(math.inf, part)


@dataclass
class Row:
    """One line of a table."""

    what: str
    paper: "Published | None"
    ours: "float | None"

    @property
    def ratio(self):
        """Ours over the paper's, if there are both."""
        return None if self.paper is None or self.ours is None else over(self.ours, self.paper.value)


@dataclass
class Section:
    """One table."""

    title: str
    """Its subject, the unit, and the part of the paper that it is compared with."""
    rows: list = field(default_factory=list)

    def row(self, what, ours=None, paper=None):
        """Adds a line. Either figure may be missing."""
        self.rows.append(Row(what, paper, ours))

    def holds(self, what, stated, holds):
        """Adds a statement of the paper; `holds` is None if nothing can judge it."""
        self.row(what, None if holds is None else float(holds), stated)


@dataclass
class Outcome:
    """Tables, how the machine or the method differs from the paper's in sentences, and a function that draws."""

    sections: list
    differs: list
    chart: object
    machine: dict
    """The one that measured, as its file describes it."""
    measured: list = field(default_factory=list)
    """When, how often, with which build and on which input, in lines; of results that were read from a file."""


def figure(value):
    """At least three digits, and all digits before the point; a dash for no figure."""
    if value is None:
        return "-"
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = min(max(2 - math.floor(math.log10(abs(value))), 0), 6)
    return f"{value:.{digits}f}"


def machine_told(told):
    """A machine in one line, as the file of its results describes it."""
    try:
        gib = told["memory_bytes"] / 2**30
        return f"{told['cpu']}, {told['cores']} cores, {gib:.0f} GiB, {told['file_system']}, Linux {told['kernel']}"
    except KeyError:
        return "on a machine that the file does not describe"


def text(name, about, source, outcome):
    """The tables, for people."""
    told = machine_told(outcome.machine) if outcome.machine is not None else "the arithmetic alone; nothing was measured"
    lines = [f"{name}: {about}", f"paper: {source}", f"ours:  {told}", *(f"       {line}" for line in outcome.measured)]
    width = max(len(words) for one in outcome.sections for words in (one.title, *(row.what for row in one.rows)))
    for section in outcome.sections:
        lines += ["", f"{section.title:<{width}} {'paper':>11} {'ours':>11} {'ratio':>8}"]
        for row in section.rows:
            paper = figure(row.paper.value if row.paper else None)
            lines.append(f"{row.what:<{width}} {paper:>11} {figure(row.ours):>11} {figure(row.ratio):>8}")
    lines += ["", "ratio is ours over the paper's. What differs:", *(f"- {sentence}" for sentence in outcome.differs)]
    return "\n".join(lines) + "\n"


def as_json(name, about, source, outcome):
    """The same figures for programs, not rounded, with the source of each published one."""

    def finite(value):
        return value if value is not None and math.isfinite(value) else None

    def of(row):
        told = {"what": row.what, "paper": None, "ours": finite(row.ours), "ratio": finite(row.ratio)}
        if row.paper:
            told |= {"paper": row.paper.value, "source": row.paper.source, "kind": row.paper.kind, "ours_is": row.paper.ours}
        return told

    return {
        "experiment": name,
        "about": about,
        "source": source,
        "machine": outcome.machine,
        "measured": outcome.measured,
        "sections": [{"title": one.title, "rows": [of(row) for row in one.rows]} for one in outcome.sections],
        "differs": outcome.differs,
    }
