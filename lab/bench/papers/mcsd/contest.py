"""Programs that do a job on data of a share of memory, timed in a memory group with a swap file.

The controls are Phoenix 2.0, which McSD extends, and Phoenix++ 1.0, from the checkout that PHOENIX_DIR names. Phoenix holds two to
four times its input: without swap the system would end it, with swap it becomes slow, as on the paper's machine.
"""

import os
import shlex
from contextlib import contextmanager
from dataclasses import dataclass

from harness import data, limits, tools
from harness.measure import JobError

from ..lab import ExperimentError
from ..statistics import median
from .published import PARTITION_SHARE, SHARES

MIB = 2**20
MEMORY_BYTES = 512 * MIB
"""Memory of the group, without --size."""
MEMORY_BYTES_LEAST = 128 * MIB
"""Less is too little for any program; then data is no longer a large share of memory."""
SWAP = 3
"""Swap over the memory: Phoenix 2.0 holds up to 4.3 times its input."""
VOCABULARY = 20_000
"""Distinct words. Phoenix 2.0 keeps words in sorted arrays, so its time grows with them. The paper doesn't say how many its text
has; a small vocabulary is the case that favours Phoenix."""


@dataclass(frozen=True)
class Work:
    """A job on the data."""

    name: str
    map: tuple
    """The SSDlet, and its words."""
    phoenix: str
    """Phoenix's program."""
    stage: str = "{program} {{in}} > {{out}}"
    """A partition by Phoenix's program, for `merganser pipeline`."""
    merge: str = "cat {outs}"
    """McSD's Merge: the result from those of the partitions."""


COUNT = Work(
    "word count", ("wordcount", "--rule", "letters", "--order", "value"), "word_count",
    # The program prints as many words as it is told, as "WORD - 12", and lines about itself.
    """{program} {{in}} 1000000000 > {{dir}}/said && awk '$2 == "-" {{print $1 "\\t" $3}}' {{dir}}/said > {{out}}""",
    """awk '{n[$1] += $2} END {for (word in n) print word "\\t" n[word]}' {outs} | sort -k2,2nr""",
)  # fmt: skip
# The texts that Phoenix's program has built in.
_KEYS = ("Helloworld", "howareyou", "ferrari", "whotheman")
MATCH = Work("string match", ("match", *(word for key in _KEYS for word in ("--key", key))), "string_match")
JOBS = (COUNT, MATCH)


@dataclass(frozen=True)
class Contestant:
    """A program that does a job."""

    name: str
    cores: int = 2
    partition: str | float = "auto"
    """Our --partition-size, or a number: its share of memory."""
    phoenix: str | None = None
    """The folder of Phoenix's sources, for a control."""
    by_pipeline: bool = False
    """Phoenix over one partition after the other, cut and joined by `merganser pipeline`: McSD itself."""


SEQUENTIAL = Contestant("ours, one core", cores=1)
DUO = Contestant("ours, two cores")
DUO_PARTS = Contestant("ours, two cores, partitions of 0.3 of memory", partition=PARTITION_SHARE)
DUO_WHOLE = Contestant("ours, two cores, no partition", partition="none")
PHOENIX = Contestant("Phoenix 2.0, two cores", phoenix="phoenix-2.0")
PHOENIX_PARTS = Contestant(
    "Phoenix 2.0, two cores, in partitions of 0.3 of memory", partition=PARTITION_SHARE, phoenix="phoenix-2.0", by_pipeline=True
)
PHOENIX_PLUS_PLUS = Contestant("Phoenix++ 1.0, two cores", phoenix=tools.PHOENIX)


class Seconds(dict):
    """Seconds by place of the size, job and contestant; None if a control failed or is not here."""

    def ratio(self, size, job, slow, fast):
        """How many times as long `slow` took as `fast`, if both were measured."""
        slow, fast = self.get((size, job, slow)), self.get((size, job, fast))
        return slow / fast if slow and fast else None


def sizes(size_bytes):
    """Memory of the group, and bytes of the largest data."""
    data_bytes = max(size_bytes or int(MEMORY_BYTES * SHARES[-1]), 4096)
    return max(int(data_bytes / SHARES[-1]), MEMORY_BYTES_LEAST), data_bytes


@contextmanager
def contest(lab, experiment):
    """Data, memory group and swap of an experiment."""
    limits.need_swap(experiment)
    memory_bytes, data_bytes = sizes(lab.args.size)
    controls = {}
    for version in (PHOENIX.phoenix, PHOENIX_PLUS_PLUS.phoenix) if os.environ.get("PHOENIX_DIR") else ():
        lab.say(f"building {version}")
        controls[version] = tools.build_phoenix(lab.folder, version, [job.phoenix for job in JOBS])
    with limits.swap(lab.folder, SWAP * memory_bytes), limits.memory(memory_bytes) as group:
        lab.say("generating")
        arena = Contest(lab, group, controls, memory_bytes, data_bytes)
        data.make_words(lab.merganser, arena.text, data_bytes, VOCABULARY)
        yield arena


class Contest:
    """Runs contestants on a text that becomes smaller."""

    def __init__(self, lab, group, controls, memory_bytes, data_bytes):
        self.lab, self.group, self.controls = lab, group, controls
        self.memory_bytes, self.data_bytes = memory_bytes, data_bytes
        self.text = lab.folder / "text"
        self.joined = lab.folder / "joined"

    def cut(self, size):
        """Cuts the text after a line, to a size given by its place in `SHARES`. Sizes only become smaller."""
        cut(self.text, int(self.data_bytes * SHARES[size] / SHARES[-1]))

    def measure(self, places, contestants):
        """Seconds of all contestants at the sizes, the largest first."""
        seconds = Seconds()
        for size in sorted(places, reverse=True):
            self.cut(size)
            for job in JOBS:
                for contestant in contestants:
                    seconds[size, job, contestant] = self.seconds(job, contestant)
        return seconds

    def seconds(self, job, contestant, once=None):
        """The median of the rounds; None for a control that is not here, or failed in one of them. `once` measures in another way."""
        if contestant.phoenix and contestant.phoenix not in self.controls:
            return None
        try:
            return median([(once or self.run)(job, contestant) for _ in self.lab.rounds()])
        except JobError:
            # A failure of the pipeline is ours.
            if contestant.phoenix and not contestant.by_pipeline:
                return None
            raise

    def run(self, job, contestant, alongside=None):
        """Seconds of a contestant from start to end, with the text not in the page cache."""
        self.joined.unlink(missing_ok=True)
        words = ("taskset", "--cpu-list", f"0-{contestant.cores - 1}", *self.words(job, contestant))
        seconds = self.lab.measure(*words, cold=[self.text], group=self.group, alongside=alongside).wall_s
        if contestant.by_pipeline and job is COUNT:
            self.check()
        return seconds

    def check(self):
        """Fails unless the words of Phoenix's partitions are counted as ours."""
        ours = self.lab.told(*self.words(COUNT, DUO), worst=0).splitlines()
        if sorted(ours) != sorted(self.joined.read_text().splitlines()):
            raise ExperimentError("word count: Phoenix in partitions and `merganser map` count other words")

    def words(self, job, contestant):
        """The command of a contestant. Half of the memory of the group is ours, the rest is for the page cache."""
        cores, partition = contestant.cores, contestant.partition
        if isinstance(partition, float):
            partition = int(self.memory_bytes * partition)
        if contestant.phoenix:
            program = self.controls[contestant.phoenix] / "tests" / job.phoenix / job.phoenix
            threads = ("env", f"MR_NUMTHREADS={cores}", f"MAPRED_NPROCESSORS={cores}")
            if not contestant.by_pipeline:
                return (*threads, program, self.text)
            stage = job.stage.format(program=shlex.quote(str(program)))
            return (
                *threads, self.lab.merganser, "pipeline", self.text, "--quiet", "--partitions", f"{partition >> 10}K",
                "--stage", f"map:{stage}", "--pool", "node:1", "--merge", job.merge, "-o", self.joined,
            )  # fmt: skip
        ssdlet, *more = job.map
        return (
            self.lab.merganser, "map", ssdlet, self.text, *more, "--quiet", "--memory", self.memory_bytes // 2,
            "--threads", cores, "--partition-size", partition, "--temp-dir", self.lab.folder,
        )  # fmt: skip

    def differs(self):
        """The differences from the paper that all its experiments have."""
        memory, size = self.memory_bytes // MIB, self.data_bytes // MIB
        found = [
            f"Theirs: 2 GB of memory, a Core2 Duo E4400 and gcc 4.4. Ours: a memory group of {memory} MiB with a swap file, on two "
            f"processors of the machine above; the largest text has {size} MiB.",
            f"The text: {VOCABULARY} distinct words by Zipf's law, which the paper doesn't tell. Phoenix 2.0 slows down with more. All "
            "programs count words of letters, in upper case.",
            "Ours reads its input piece by piece and never holds all of it, so \"no partition\" costs it nothing as long as the counts "
            "fit. The paper's gain is that of partitions over Phoenix 2.0, which holds two to four times its input; Phoenix 2.0 is "
            "therefore the control. Phoenix 2.0 in partitions, cut and joined by `merganser pipeline`, is McSD itself.",
            "Phoenix's string match compares each word with four texts after changing all its bytes; ours searches lines for the same "
            "four texts. The paper describes a file of keys.",
        ]  # fmt: skip
        if not self.controls:
            found.append("The rows of Phoenix 2.0, whole and in partitions, and of Phoenix++ were skipped: PHOENIX_DIR names no folder with their sources.")
        if self.data_bytes < self.memory_bytes * 0.6:
            found.append(
                f"The text is small compared with the memory group, which has at least {MEMORY_BYTES_LEAST // MIB} MiB: these figures "
                "show only that the experiment runs."
            )
        return found


def cut(path, size_bytes):
    """Cuts a text after the last line that ends within `size_bytes`."""
    start = max(size_bytes - 4096, 0)
    with open(path, "r+b") as file:
        file.seek(start)
        file.truncate(start + file.read(size_bytes - start).rfind(b"\n") + 1)
