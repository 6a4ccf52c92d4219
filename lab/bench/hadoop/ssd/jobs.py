"""The programs of the study: Hadoop's own examples and its DFSIO."""

from dataclasses import dataclass

EXAMPLES = "org.apache.hadoop.examples.ExampleDriver"
DFSIO = "org.apache.hadoop.fs.TestDFSIO"
DFSIO_FILES = 10
BYTES = "org.apache.hadoop.io.BytesWritable"
TEXT = "org.apache.hadoop.io.Text"
TUPLE = "org.apache.hadoop.mapreduce.lib.join.TupleWritable"
SEQUENCE_INPUT = "org.apache.hadoop.mapreduce.lib.input.SequenceFileInputFormat"
SEQUENCE_OUTPUT = "org.apache.hadoop.mapreduce.lib.output.SequenceFileOutputFormat"
TEXT_OUTPUT = "org.apache.hadoop.mapreduce.lib.output.TextOutputFormat"
# Words of RandomTextWriter's list; the paper does not name the one that it looked for.
GREPPED = "un[a-z]*"
WRITERS = 4
"""Map tasks, and so files, of an input."""


@dataclass(frozen=True)
class Study:
    """A job of the paper."""

    about: str
    program: tuple
    words: tuple
    """`{in}`, `{in2}`, `{in3}` and `{out}` are folders in HDFS."""
    inputs: tuple = ()
    """The writer of each input: `random`, `text`, `lines` (the same text, not in a sequence file) or `dfsio`."""
    passes: float = 1.0
    """About how often the data moves, compared with a sort: for the guess of the time."""
    settings: tuple = ()
    """Pairs of a name and a value; `{bytes}` is the data's size, `{share}` that of one of the writers."""
    counted: bool = False
    """Whether the reducers get as many records as the maps: then the counters are checked."""


_WRITE = (
    ("mapreduce.randomwriter.totalbytes", "{bytes}"),
    ("mapreduce.randomwriter.bytespermap", "{share}"),
    ("mapreduce.randomtextwriter.totalbytes", "{bytes}"),
    ("mapreduce.randomtextwriter.bytespermap", "{share}"),
)
_DFSIO_WORDS = ("-nrFiles", str(DFSIO_FILES), "-size", "{mb_per_file}MB", "-resFile", "{log}")

JOBS = {
    "sort": Study(
        "Sort of random bytes, keys of 10 to 1,000 and values of up to 20,000",
        (EXAMPLES, "sort"), ("-r", "1", "-outKey", BYTES, "-outValue", BYTES, "{in}", "{out}"), ("random",), counted=True,
    ),
    "join": Study(
        "outer join of three texts",
        (EXAMPLES, "join"),
        ("-r", "1", "-inFormat", SEQUENCE_INPUT, "-outFormat", SEQUENCE_OUTPUT, "-outKey", TEXT, "-outValue", TUPLE,
         "-joinOp", "outer", "{in}", "{in2}", "{in3}", "{out}"),
        ("text", "text", "text"), counted=True,
    ),
    "random-writer": Study("RandomWriter", (EXAMPLES, "randomwriter"), ("{out}",), passes=0.3, settings=_WRITE),
    "grep": Study("Grep for a word of the text", (EXAMPLES, "grep"), ("{in}", "{out}", GREPPED), ("lines",), passes=0.3),
    "dfsio-write": Study("DFSIO, writing", (DFSIO,), ("-write", *_DFSIO_WORDS), passes=0.3),
    "dfsio-read": Study("DFSIO, reading", (DFSIO,), ("-read", *_DFSIO_WORDS), ("dfsio",), passes=0.3),
    "wordcount": Study("WordCount", (EXAMPLES, "wordcount"), ("{in}", "{out}"), ("lines",), passes=1.0),
    "wordmean": Study("mean length of words", (EXAMPLES, "wordmean"), ("{in}", "{out}"), ("lines",), passes=1.0),
    "aggregate-words": Study(
        "words counted by Hadoop's aggregators", (EXAMPLES, "aggregatewordcount"), ("{in}", "{out}", "1", "textinputformat"),
        ("lines",), passes=1.0,
    ),
}  # fmt: skip
"""By name. Bayes and LDA of Figure 7 are Mahout's and CloudSuite's; two other jobs that compute take their place."""

WRITER_OF = {
    "random": (EXAMPLES, "randomwriter"),
    "text": (EXAMPLES, "randomtextwriter"),
    "lines": (EXAMPLES, "randomtextwriter"),
    "dfsio": (DFSIO,),
}


def values(data_bytes, log, places=(), output="/output"):
    """The values of the names in words and settings."""
    named = {"in": places[0] if places else "", "in2": places[1] if len(places) > 1 else "", "in3": places[-1] if places else ""}
    return {
        **named,
        "out": output,
        "bytes": data_bytes,
        "share": max(1, data_bytes // WRITERS),
        "mb_per_file": max(1, round(data_bytes / DFSIO_FILES / 2**20)),
        "log": str(log),
    }


def filled(words, named):
    """Words with the values of their names."""
    return [word.format(**named) for word in words]


def job_words(job, named):
    """The words of a job's command line."""
    return filled(JOBS[job].words, named)


def job_settings(job, named):
    """The settings that only this job has."""
    return {key: value.format(**named) for key, value in JOBS[job].settings}


def writer(kind, data_bytes, place, log):
    """The program, words and settings that make one input of `data_bytes` at `place`."""
    named = values(data_bytes, log, output=place)
    settings = {key: value.format(**named) for key, value in _WRITE}
    if kind == "dfsio":
        return WRITER_OF[kind], filled(JOBS["dfsio-write"].words, named), {}
    if kind == "lines":
        return WRITER_OF[kind], ["-outFormat", TEXT_OUTPUT, place], settings
    return WRITER_OF[kind], [place], settings
