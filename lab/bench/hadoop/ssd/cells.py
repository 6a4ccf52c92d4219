"""The measurements of the study, the most telling first.

A *cell* is one job on one device with one set of parameters. Several figures share a cell: the sort of "10 GB" is in
Figures 5 and 8, in Table 2, and in the row of 64 MB blocks of Figure 6.
"""

from dataclasses import dataclass, replace

from ..config import ACTIVE, STOCK
from .jobs import JOBS

GB = 10**9
HDD, SSD = "wd5000aakx", "830"
"""The models of the paper's disks (4)."""
DEVICES = (HDD, SSD)

PAPER_MEMORY_BYTES = 3.2 * GB
SORT_MB, FACTOR, BLOCK_MB = 100, 200, 64
"""The paper's defaults (Table 1), with the fan-in of 4.3."""
SORT_MB_SWEPT, BLOCK_MB_SWEPT = (64, 100, 192), (32, 64, 128)
"""The paper's text has no values of Figure 6's axes. With 64 MB blocks, these are two spills, one, and one."""
ADVISED = "settings-advised"
"""The figure whose cells are what `hadoop advise --job` chooses today."""
PAPER_SIZES = (2.5, 5, 10, 20)
"""GB; the text of Figure 5 has no values of its axis, but names 10 and 20."""


@dataclass(frozen=True)
class Cell:
    """One measurement."""

    job: str
    paper_gb: float
    """The job's data in the paper, in GB of 10^9 bytes."""
    device: str
    scale: float
    """Data here over data in the paper."""
    flavour: str = STOCK
    sort_mb: int = SORT_MB
    factor: int = FACTOR
    block_mb: int = BLOCK_MB
    least_segment: str = ""
    """`merganser.shuffle.defer.min-segment-bytes`; empty for the plugin's default."""
    slower: int = 1
    """The disk is emulated that many times as slow; times are divided by it."""
    round: int = 1

    @property
    def data_bytes(self):
        """The data here."""
        return round(self.paper_gb * GB * self.scale)

    @property
    def cache_bytes(self):
        """The page cache that the cell may use: as large, compared with the data, as all memory of the paper's machine."""
        return round(PAPER_MEMORY_BYTES * self.scale)

    @property
    def name(self):
        """A name for files: all that decides the cell."""
        parts = [self.job, f"{self.paper_gb:g}gb", f"x{self.scale:g}", self.device, self.flavour]
        parts += [f"sort{self.sort_mb}", f"block{self.block_mb}"]
        parts += [f"factor{self.factor}"] * (self.factor != FACTOR)
        parts += [f"segment{self.least_segment}"] * bool(self.least_segment)
        parts += [f"slower{self.slower}"] * (self.slower != 1)
        return "-".join(parts + [f"round{self.round}"] * (self.round != 1))

    @property
    def alike(self):
        """The fields that are equal for cells that take about as long."""
        return self.job, self.device, self.data_bytes

    @property
    def expected_s(self):
        """A guess of its seconds, for the time budget, until one like it was measured."""
        rate = 6e6 if self.device == HDD else 16e6
        return 60 + self.slower * self.data_bytes * JOBS[self.job].passes / rate


def _both(**more):
    return lambda scale: [Cell(device=device, scale=scale, **more) for device in DEVICES]


def _sort(scale):
    return _both(job="sort", paper_gb=10)(scale)


def _traces(scale):
    # Figures 3 and 4 have 1 GB and 3 x 1 GB in 3.2 GB of memory: not scaled. The paper does not say which disk it is.
    del scale
    return [Cell(job, gigabytes, device, 1.0) for job, gigabytes in (("sort", 1), ("join", 3)) for device in DEVICES]


def _sizes(scale):
    tens = [*_sort(scale), *_both(job="join", paper_gb=15)(scale)]
    others = [
        cell
        for gigabytes in PAPER_SIZES
        if gigabytes != 10
        for job, times in (("sort", 1), ("join", 1.5))
        for cell in _both(job=job, paper_gb=gigabytes * times)(scale)
    ]
    return tens + others


def _swept(job, paper_gb, scale):
    first = [cell for sort_mb in (SORT_MB, *SORT_MB_SWEPT) for cell in _both(job=job, paper_gb=paper_gb, sort_mb=sort_mb)(scale)]
    rest = [
        cell
        for block_mb in (128, 32)
        for sort_mb in SORT_MB_SWEPT
        for cell in _both(job=job, paper_gb=paper_gb, sort_mb=sort_mb, block_mb=block_mb)(scale)
    ]
    return list(dict.fromkeys(first + rest))


def _settings(scale):
    return _swept("sort", 10, scale)


def _settings_join(scale):
    # "5GB join" (4.3): Table 2 calls it "5GB X 3".
    return _swept("join", 15, scale)


def _advised(told, scale):
    """The cells of the command's choice for each device, on both. `told` is its output, by device."""
    cells = []
    for device in DEVICES:
        if device not in told:
            continue
        advice = told[device]["advice"]
        chosen = {
            "flavour": ACTIVE if advice["merganser.shuffle.defer"] == "true" else STOCK,
            "sort_mb": int(advice["mapreduce.task.io.sort.mb"]),
            "factor": int(advice["mapreduce.task.io.sort.factor"]),
            "block_mb": int(advice["dfs.blocksize"]) >> 20,
        }
        cells += _both(job="sort", paper_gb=10, **chosen)(scale)
    return cells


def _cpu_bound(scale):
    return [cell for job in ("wordcount", "wordmean", "aggregate-words") for cell in _both(job=job, paper_gb=10)(scale)]


def _io_bound(scale):
    jobs = (("sort", 10), ("random-writer", 10), ("grep", 10), ("dfsio-write", 10), ("dfsio-read", 10), ("join", 15))
    return [cell for job, gigabytes in jobs for cell in _both(job=job, paper_gb=gigabytes)(scale)]


def _energy(scale):
    return [*_sort(scale), *_both(job="join", paper_gb=15)(scale)]


def _beyond(scale):
    # Three spills per map, so that there is a merge to leave out.
    stock = _both(job="sort", paper_gb=10, sort_mb=64, block_mb=128)(scale)
    deferred = [replace(cell, flavour=ACTIVE) for cell in stock]
    # Segments have 43 MB; with this bound, none is deferred.
    merged = [replace(cell, flavour=ACTIVE, least_segment=str(1 << 30)) for cell in stock]
    join = _both(job="join", paper_gb=15, sort_mb=64, block_mb=128)(scale)
    return [*stock, *deferred, *merged, *join, *(replace(cell, flavour=ACTIVE) for cell in join)]


FIGURES = {
    "size": ("Figure 5: sort and join by the size of the data", _sizes),
    "settings": ("Table 1, Figure 6: io.sort.mb and dfs.blocksize for the sort", _settings),
    "settings-join": ("Figure 6: the same for the join", _settings_join),
    ADVISED: ("what `hadoop advise --job` chooses for the sort, for each disk", lambda _scale: []),
    "traces": ("Figures 3 and 4: what the disk sees of a sort and of a join", _traces),
    "io-bound": ("Figure 8: jobs that wait for the disk", _io_bound),
    "cpu-bound": ("Figure 7: jobs that wait for the processor", _cpu_bound),
    "energy": ("Table 2: energy of a sort and of a join", _energy),
    "beyond": ("the same sort and join with Merganser's shuffle", _beyond),
}
"""By name: the part of the paper, and its cells for a scale."""


def in_pairs(cells):
    """Cells in lists of those that differ in nothing but the device and follow each other."""
    pairs = []
    for cell in cells:
        if pairs and replace(pairs[-1][0], device=cell.device) == cell:
            pairs[-1].append(cell)
        else:
            pairs.append([cell])
    return pairs


def cells_of(figures, scale, slower=1, rounds=1, told=None):
    """All cells of these figures, each once per round, in the order in which they should be measured: a round of all before
    the next. The two cells of a ratio are next to each other. Odd rounds begin with the hard disk, others with the SSD.

    `told` is what `hadoop advise --job --json` says, by device; without it, the figure of its choice has no cells."""
    advised = _advised(told or {}, scale) if ADVISED in figures else []
    wanted = {cell for name in figures for cell in FIGURES[name][1](scale)} | set(advised)
    telling = [
        *_sort(scale), *_settings(scale)[:6], *_traces(scale)[:2], *_both(job="join", paper_gb=15)(scale), *_io_bound(scale)[:8],
        *_cpu_bound(scale)[:2], *_beyond(scale)[:4], *_settings(scale), *_io_bound(scale), *_cpu_bound(scale), *_traces(scale),
        *_beyond(scale), *advised, *_sizes(scale), *_settings_join(scale),
    ]  # fmt: skip
    pairs = in_pairs([replace(cell, slower=slower) for cell in dict.fromkeys(telling) if cell in wanted])
    return [
        replace(cell, round=number)
        for number in range(1, rounds + 1)
        for pair in pairs
        for cell in (pair if number % 2 else pair[::-1])
    ]
