"""The jobs: the seven of the paper's 3.4, and a search."""

from dataclasses import dataclass

EXAMPLES = "org.apache.hadoop.examples.ExampleDriver"
WORKLOADS = "io.merganser.workloads.Workloads"
GREPPED = "mqba"
"""A word of `generate text`, about one per line."""


@dataclass(frozen=True)
class Job:
    """A program. `{in}` and `{out}` among its words are paths in HDFS."""

    program: tuple
    reads: str
    """The kind of its input: `text`, `reviews` or `triples`."""
    words: tuple = ("{in}", "{out}")


def _puma(name, reads):
    return Job((WORKLOADS, f"puma-{name}"), reads)


JOBS = {
    "wordcount": Job((EXAMPLES, "wordcount"), "text"),
    "term-vector": _puma("term-vector", "text"),
    "inverted-index": _puma("inverted-index", "text"),
    "histogram-movies": _puma("histogram-movies", "reviews"),
    "histogram-ratings": _puma("histogram-ratings", "reviews"),
    "sequence-count": _puma("sequence-count", "text"),
    "ranked-inverted-index": _puma("ranked-inverted-index", "triples"),
    "grep": Job((EXAMPLES, "grep"), "text", ("{in}", "{out}", GREPPED)),
}
"""By name."""


def words_of(job, source, output):
    """The words of a job's command line. `source`: its files; only the word count takes several."""
    named = {"{in}": source, "{out}": [output]}
    return [one for word in JOBS[job].words for one in named.get(word, [word])]
