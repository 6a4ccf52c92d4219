"""A figure of a paper, with its place in the paper, how the paper has it, and how ours was found."""

from dataclasses import dataclass

GIVEN, DERIVED, STATED = "given", "derived", "stated"
"""The paper prints the figure; it follows from figures that the paper prints; the text says it in words, and 1 means that
it holds."""

MEASURED, PREDICTED, FITTED, COMPUTED = "measured", "predicted", "fitted", "computed"
"""Our figure was measured on real devices; on emulated ones, with no parameter that was fitted to the paper; with a
parameter that was fitted to this figure; or follows from the paper's figures alone."""


@dataclass(frozen=True)
class Published:
    """A figure of a paper."""

    value: float
    paper: str
    place: str
    """The figure, table or chapter."""
    kind: str = GIVEN
    """How the paper has it."""
    ours: str = MEASURED
    """How our figure next to it was found."""

    @property
    def source(self):
        """The paper and the place."""
        return f"{self.paper}, {self.place}"
