"""A database that is formatted and searched, in several ways.

    whole       format ────────────► search ──────────►                         native mpiBLAST
    serial      format, search, format, search, ...                             partitions alone
    pipelined   format, format, format, ...          on the first processor     pp-mpiBLAST
                        search, search, search, ...  on the second one

Partitions go through `merganser pipeline`. All ways search with the number of letters of the whole database, so that e-values, and
with them the hits, are the same.
"""

import hashlib
import json
import shutil
from dataclasses import dataclass

from . import data
from .published import CONTRADICTIONS

QUERY_LETTERS = 1400
"""Letters of all queries together: with these, a search takes about as long as formatting."""
FORMAT = "makeblastdb -in - -dbtype prot -title t -out db"


@dataclass(frozen=True)
class Hits:
    """The lines that searches print, in any order."""

    lines: int
    digest: str

    @staticmethod
    def of(*texts):
        """Those of all texts."""
        lines = sorted(line for text in texts for line in text.split(b"\n") if line)
        return Hits(len(lines), hashlib.sha256(b"\n".join(lines)).hexdigest())


@dataclass(frozen=True)
class Whole:
    """A whole database: seconds of makeblastdb, of the search on the compute node, by two threads on both nodes, and by two processes
    of mpirun on both, each with half of the database."""

    format_s: float
    search_s: float
    both_s: float
    hits: Hits
    ranks_s: float | None = None
    ranks_hits: Hits | None = None

    @property
    def seconds(self):
        """With as many compute nodes as the pipeline has."""
        return self.format_s + self.search_s

    @property
    def both_seconds(self):
        """With as many nodes as the pipeline has in all."""
        return self.format_s + self.both_s


@dataclass(frozen=True)
class Parts:
    """A database in partitions: their number, seconds of the command with the merge, its report's model, and hits."""

    count: int
    seconds: float
    model: dict
    hits: Hits

    @property
    def stages(self):
        """The mean seconds of formatting and of searching a partition."""
        return self.model["stage_seconds"]

    @property
    def measured(self):
        """Seconds to the end of the last stage."""
        return self.model["measured_seconds"]


class Runs:
    """The searches of a bed."""

    def __init__(self, bed):
        self.bed, self.folder = bed, bed.lab.folder
        self.queries = data.write_queries(bed.lab, self.folder / "queries.fa", QUERY_LETTERS)
        self.hits = self.folder / "hits"
        self.mpirun = bed.lab.told("mpirun", "--version").splitlines()[0] if shutil.which("mpirun") else None
        self.others = []
        """Ways that found something else."""

    def search(self):
        """The command of every search. More hits than a family has members, so that no list overflows."""
        return f'blastp -query "$QUERIES" -dbsize {self.bed.letters} -evalue 1e-5 -max_target_seqs 5000 -outfmt 6'

    def whole(self):
        """The whole database, the median of the rounds."""
        return self.bed.median(self._whole, lambda one: one.seconds + one.both_seconds)

    def _whole(self):
        bed, folder = self.bed, self.folder / "whole"
        folder.mkdir()
        format_s = bed.shell(bed.storage, f"cd whole && exec {FORMAT} < ../database.fa", cold=[bed.database]).wall_s
        search = f"cd whole && exec {self.search()} -db db -out ../hits -num_threads"
        alone = bed.shell(bed.compute, f"{search} 1").wall_s
        hits = Hits.of(self.hits.read_bytes())
        both = bed.shell(bed.both, f"{search} 2").wall_s
        shutil.rmtree(folder)
        return Whole(format_s, alone, both, hits, *self._ranks())

    def _ranks(self):
        """Searches the two halves of a formatted database by two processes, as mpiBLAST does with its fragments."""
        if not self.mpirun:
            return None, None
        bed, folder = self.bed, self.folder / "halves"
        folder.mkdir()
        # A volume ends when its sequences have half of all letters. Formatting is that of the whole database, and is not timed again.
        half = max(bed.letters * 51 // 100, 2**20)
        bed.shell(bed.storage, f"cd halves && exec {FORMAT} -max_file_sz {half} < ../database.fa")
        rank = (
            'cd halves; i=0; for volume in db*.phr; do if [ $((i % 2)) = "$OMPI_COMM_WORLD_RANK" ]; then '
            f'{self.search()} -db "${{volume%.phr}}" -out "hits.$i" || exit 1; fi; i=$((i + 1)); done'
        )
        mpirun = ("mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", 2)
        seconds = bed.run(bed.both, *mpirun, "sh", "-c", rank).wall_s
        hits = Hits.of(*(path.read_bytes() for path in folder.glob("hits.*")))
        shutil.rmtree(folder)
        return seconds, hits

    def parts(self, count, serial=False):
        """Partitions, in two pools or one after the other; the median of the rounds."""
        return self.bed.median(lambda: self._parts(count, serial), lambda one: one.seconds)

    def _parts(self, count, serial):
        bed, report = self.bed, self.folder / "report.json"
        # A result from before would be replaced only at the end.
        self.hits.unlink(missing_ok=True)
        first = ("--stage", f"format:cd {{dir}} && exec taskset --cpu-list {bed.storage} {FORMAT}")
        second = ("--stage", f"search:cd {{format.dir}} && exec taskset --cpu-list {bed.compute} {self.search()} -db db")
        if serial:
            stages = (*first, *second, "--pool", "all:1", "--in-flight", 1)
        else:
            stages = (*first, "--pool", "storage:1", *second, "--pool", "compute:1")
        # The pipeline itself, which cuts partitions, runs on the storage node.
        cost = bed.run(
            bed.storage, bed.lab.merganser, "pipeline", "--quiet", "--format", "fasta", "--retries", 0, "--partitions", count, *stages,
            "--report", report, "-o", self.hits, bed.database, cold=[bed.database],
        )  # fmt: skip
        told = json.loads(report.read_text())["pipeline"]
        # Records that are longer than a partition make fewer partitions.
        return Parts(told["partitions"], cost.wall_s, told["model"], Hits.of(self.hits.read_bytes()))

    def compare(self, whole, parts, database):
        """Notes which ways found other hits than the whole search did."""
        ways = [(f"{one.count} partitions", one.hits) for one in parts]
        if whole.ranks_hits:
            ways.insert(0, ("two ranks", whole.ranks_hits))
        for name, hits in ways:
            if hits != whole.hits:
                self.others.append(
                    f"{database} in {name} gave {hits.lines} lines of hits and the whole database {whole.hits.lines}; they are not the same."
                )

    def differs(self):
        """Sentences that hold for all experiments that search."""
        ranks = (
            f"\"Two ranks\" stands for mpiBLAST: {self.mpirun} runs blastp twice, each on half of the formatted database. The compute nodes "
            "of the other ways are one processor."
            if self.mpirun
            else "There is no mpirun, which stands for mpiBLAST's own search; `apt-get install openmpi-bin` installs it on Debian and Ubuntu."
        )
        return [
            *self.bed.differs(),
            f"{self.queries} queries with {QUERY_LETTERS} letters or a little more. All ways search with the number of letters of the whole "
            "database, e-values up to 1e-5 and room for 5,000 hits per query.",
            ranks,
            *(self.others or ["All ways found the same lines of hits."]),
            CONTRADICTIONS,
        ]
