"""One figure for several rounds."""


def median(figures):
    """The median; of two middle figures, the lower one, so that it is a figure that was measured."""
    figures = sorted(figures)
    return figures[(len(figures) - 1) // 2]


def mean(figures):
    """The arithmetic mean."""
    return sum(figures) / len(figures)
