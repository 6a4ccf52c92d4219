"""The jobs: their inputs, their command lines, and the checks of their outputs."""

import json
import math
import re
from dataclasses import dataclass

from .cluster import ClusterError

MIB = 2**20
KEY_BYTES = 10
TERA_RECORD_BYTES = 100
# The average length of a generated line; it decides only the number of lines.
TEXT_BYTES, USER_BYTES, VISIT_BYTES = 850, 105, 660
VISITS_PER_USER = 10


@dataclass(frozen=True)
class Workload:
    """A job. `{in}` and `{out}` in its words are folders in HDFS."""

    program: tuple
    words: tuple
    inputs: tuple
    """Kinds of input, each with its share of the bytes: `records`, `fixed`, `tera`, `text`, `users`, `visits`."""
    output: str
    """How the output is read to check it: `records`, `lines`, `fixed` or `tera`."""
    expansion: float = 1.0
    """Bytes of map output, keys and values, over bytes of input."""
    output_record_bytes: int | None = None
    """The length of a record of map output; None means the length of an input record."""
    ties: bool = False
    """Whether its output depends on the order of a key's values. Hadoop promises no order: values come in the order
    in which maps were fetched."""


EXAMPLES = "org.apache.hadoop.examples.ExampleDriver"
OURS = "io.merganser.workloads.Workloads"
BYTES = "org.apache.hadoop.io.BytesWritable"
TEXT = "org.apache.hadoop.io.Text"
KEY_VALUE_TEXT = "org.apache.hadoop.mapreduce.lib.input.KeyValueTextInputFormat"
TEXT_OUTPUT = "org.apache.hadoop.mapreduce.lib.output.TextOutputFormat"

WORKLOADS = {
    "terasort": Workload((EXAMPLES, "terasort"), ("{in}", "{out}"), (("tera", 1.0),), "tera"),
    "record-sort": Workload((OURS, "record-sort"), ("{in}", "{out}"), (("fixed", 1.0),), "fixed"),
    "sort": Workload(
        (EXAMPLES, "sort"),
        ("-r", "{reduces}", "-outKey", BYTES, "-outValue", BYTES, "{in}", "{out}"),
        (("records", 1.0),),
        "records",
    ),
    "text-sort": Workload(
        (EXAMPLES, "sort"),
        ("-r", "{reduces}", "-inFormat", KEY_VALUE_TEXT, "-outFormat", TEXT_OUTPUT, "-outKey", TEXT, "-outValue", TEXT,
         "{in}", "{out}"),
        (("text", 1.0),),
        "lines",
        output_record_bytes=TEXT_BYTES,
    ),  # fmt: skip
    "join": Workload(
        (OURS, "join"),
        ("{in}", "{in2}", "{out}"),
        (("users", 0.02), ("visits", 0.98)),
        "lines",
        output_record_bytes=VISIT_BYTES,
        ties=True,
    ),
    "inverted-index": Workload(
        (OURS, "inverted-index"), ("{in}", "{out}"), (("text", 1.0),), "lines", expansion=3.0, output_record_bytes=30
    ),
    "wordcount": Workload(
        (EXAMPLES, "wordcount"), ("{in}", "{out}"), (("text", 1.0),), "lines", expansion=1.5, output_record_bytes=11
    ),
}


def rows_of(kind, size_bytes, record_bytes):
    """The number of records of a kind that take about `size_bytes`."""
    each = {"tera": TERA_RECORD_BYTES, "text": TEXT_BYTES, "users": USER_BYTES, "visits": VISIT_BYTES}
    return max(1, round(size_bytes / each.get(kind, record_bytes)))


def input_path(kind, size_bytes, record_bytes, maps):
    """The path of an input in HDFS; its name contains all its parameters."""
    record = f"-{record_bytes}" if kind in ("records", "fixed") else ""
    return f"/input/{kind}{record}-{size_bytes}-{maps}"


def make_inputs(cluster, workload, size_bytes, record_bytes, maps, timeout_s):
    """Makes missing inputs. Returns the paths in HDFS."""
    paths = []
    visits = rows_of("visits", size_bytes * dict(workload.inputs).get("visits", 0), record_bytes)
    users = max(1, visits // VISITS_PER_USER)
    for kind, share in workload.inputs:
        part_bytes, part_maps = round(size_bytes * share), max(1, round(maps * share))
        path = input_path(kind, part_bytes, record_bytes, part_maps)
        paths.append(path)
        if _exists(cluster, f"{path}/_SUCCESS"):
            continue
        cluster.hdfs("-rm", "-r", "-f", "-skipTrash", path)
        rows = users if kind == "users" else rows_of(kind, part_bytes, record_bytes)
        settings = {
            "mapreduce.job.maps": part_maps,
            "merganser.workloads.maps": part_maps,
            "merganser.workloads.record-bytes": record_bytes,
            "merganser.workloads.users": users,
        }
        if kind == "tera":
            cluster.run(cluster.example("teragen"), [rows, path], settings=settings, timeout_s=timeout_s)
        else:
            cluster.run(cluster.workload("generate"), [kind, rows, path], settings=settings, timeout_s=timeout_s)
    return paths


def _exists(cluster, path):
    try:
        cluster.hdfs("-test", "-e", path)
    except ClusterError:
        return False
    return True


def words_of(workload, inputs, output, reduces):
    """The words of its command line."""
    values = {"in": inputs[0], "in2": inputs[-1], "out": output, "reduces": reduces}
    return [re.sub(r"\{(\w+)\}", lambda name: str(values[name[1]]), word) for word in workload.words]


SPILL_PERCENT = 0.9
ACCOUNTED_BYTES_PER_RECORD = 16


def sort_mb(map_output_bytes, record_bytes, spills):
    """The least `mapreduce.task.io.sort.mb` for which a map with this output makes `spills` spills."""
    # Lengths before keys and values take up to six bytes in memory.
    in_memory = map_output_bytes * (1 + (ACCOUNTED_BYTES_PER_RECORD + 6) / record_bytes)
    return max(1, math.ceil(1.02 * in_memory / spills / SPILL_PERCENT / MIB))


def check(cluster, workload, output, record_bytes, timeout_s):
    """A summary of an output: equal outputs have equal summaries, and (except by chance) different outputs do not.

    If values of a key come in any order, the summary covers all lines and the order of their keys, but not the order
    of lines with one key.
    """
    if workload.output == "tera":
        report = f"{output}-validated"
        try:
            cluster.run(cluster.example("teravalidate"), [output, report], timeout_s=timeout_s)
            found = cluster.hdfs("-cat", f"{report}/part-*").strip()
        finally:
            cluster.hdfs("-rm", "-r", "-f", "-skipTrash", report)
        if not re.fullmatch(r"checksum\s+[0-9a-f]+", found):
            raise ClusterError(f"TeraValidate finds the output out of order: {found[:500]}")
        return found
    settings = {"merganser.workloads.record-bytes": record_bytes}
    said = cluster.run(cluster.workload("checksum"), [workload.output, output], settings=settings, timeout_s=timeout_s).said
    files = json.loads(re.search(r"^\[\{.*\}\]$", said, re.MULTILINE)[0])
    unsorted = [one["file"] for one in files if not one["sorted"]]
    if unsorted:
        raise ClusterError(f"out of order: {', '.join(unsorted)}")
    return [{what: told for what, told in one.items() if what != "crc"} for one in files] if workload.ties else files
