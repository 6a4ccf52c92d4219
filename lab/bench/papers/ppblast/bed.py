"""Two processors, a memory group, a database, and programs that are timed.

The first processor stands for the storage node, the second one for the compute nodes. All programs share the memory group, whose
ratio to the database is that of the paper's nodes.
"""

import os
import shutil
from contextlib import contextmanager

from harness import limits

from ..lab import ExperimentError
from . import data
from .published import MEMORY_MB, TEST_BED

MIB = 2**20
MEMORY_BYTES = 128 * MIB
"""Memory of the group, without --size."""
MEMORY_BYTES_LEAST = 128 * MIB
"""Less is too little for BLAST itself; then a database is no longer a large share of memory."""


def sizes(size_bytes, largest_mb):
    """Memory of the group, and bytes of the largest database, which has `largest_mb` in the paper."""
    share = largest_mb / MEMORY_MB
    largest_bytes = max(size_bytes or int(MEMORY_BYTES * share), 4096)
    return max(int(largest_bytes / share), MEMORY_BYTES_LEAST), largest_bytes


@contextmanager
def bed(lab, experiment, largest_mb):
    """All of it, with a database of proteins of the largest size."""
    if not (shutil.which("makeblastdb") and shutil.which("blastp")):
        raise ExperimentError(
            f"{experiment} needs makeblastdb and blastp of NCBI BLAST+; `apt-get install ncbi-blast+` installs them on Debian and Ubuntu"
        )
    if not shutil.which("taskset"):
        raise ExperimentError(f"{experiment} needs the command taskset of util-linux")
    processors = sorted(os.sched_getaffinity(0))[:2]
    if len(processors) < 2:
        raise ExperimentError(f"{experiment} needs two processors")
    memory_bytes, largest_bytes = sizes(lab.args.size, largest_mb)
    with limits.memory(memory_bytes) as group:
        made = Bed(lab, group, memory_bytes, processors, largest_mb, largest_bytes)
        made.make("protein")
        yield made


class Bed:
    """Runs programs on the database at the moment."""

    def __init__(self, lab, group, memory_bytes, processors, largest_mb, largest_bytes):
        self.lab, self.group, self.memory_bytes = lab, group, memory_bytes
        self.storage, self.compute = (str(one) for one in processors)
        self.both = f"{self.storage},{self.compute}"
        self.largest_mb, self.largest_bytes = largest_mb, largest_bytes
        self.blast = lab.told("blastp", "-version").splitlines()[0]
        self.database = lab.folder / "database.fa"
        self.real_bytes = self.letters = 0

    def make(self, letters):
        """Makes the database of the largest size."""
        self.lab.say("generating")
        self.real_bytes = data.write(self.lab, self.database, self.largest_bytes, letters, data.real(letters))
        self.letters = data.count(self.database)

    def cut(self, megabytes):
        """Cuts the database to a size of the paper's. Sizes only become smaller."""
        data.cut(self.database, int(self.largest_bytes * megabytes / self.largest_mb))
        self.letters = data.count(self.database)

    @property
    def bytes(self):
        """Of the database at the moment."""
        return self.database.stat().st_size

    def run(self, processors, *words, cold=()):
        """The cost of a program in the memory group, on these processors, in the folder."""
        return self.lab.measure(
            "env", f"--chdir={self.lab.folder}", f"QUERIES={self.lab.folder / 'queries.fa'}",
            "taskset", "--cpu-list", processors, *words, cold=cold, group=self.group,
        )  # fmt: skip

    def shell(self, processors, script, cold=()):
        """The same for a line of a shell."""
        return self.run(processors, "sh", "-c", script, cold=cold)

    def median(self, once, seconds):
        """The round whose seconds are the median."""
        found = sorted((once() for _ in self.lab.rounds()), key=seconds)
        return found[(len(found) - 1) // 2]

    def differs(self):
        """Sentences that hold for all experiments of this chapter."""
        found = [
            TEST_BED,
            f"Ours: one machine. Processor {self.storage} formats, as the storage node; processor {self.compute} searches, as the compute "
            f"nodes. {self.blast}, with makeblastdb in the place of mpiformatdb. mpiBLAST is neither in distributions nor maintained.",
            f"The largest database has {self.largest_bytes / MIB:.1f} MiB of proteins, {self.real_bytes / MIB:.1f} MiB of them real; the "
            "rest is generated, with families of mutated copies. Each size keeps its share of the paper's memory of 2 GB.",
        ]
        if not self.real_bytes:
            found.append(
                "There are no real sequences: Debian's mmseqs2-examples, prokka, resfinder-db and kleborate have some, installed or "
                f"unpacked in the folder that {data.VARIABLE} names."
            )
        if self.group is None:
            found.append(
                "Memory was not limited, so these figures show nothing of its size: that takes root, and the memory controller of control "
                "groups of version 1."
            )
            return found
        found.append(f"All programs share a control group of {self.memory_bytes / MIB:.0f} MiB of memory, page cache included.")
        if self.largest_bytes / self.memory_bytes < 0.95 * self.largest_mb / MEMORY_MB:
            found.append(
                f"The database is small compared with the memory, which is at least {MEMORY_BYTES_LEAST // MIB} MiB: these figures show "
                "only that the experiment runs."
            )
        return found
