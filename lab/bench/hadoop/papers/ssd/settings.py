"""Table 1 and Figure 6: a sort and a join by sort buffer and block, and what `hadoop advise --job` makes of the sort."""

from functools import partial

from papers import svg
from papers.outcome import SAYS, Outcome, Section

from ...config import ACTIVE, STOCK
from ...ssd.cells import BLOCK_MB_SWEPT, FACTOR, HDD, SORT_MB_SWEPT, SSD
from ..published import BY_SETTINGS, WITHIN_TENTH
from .study import DEVICES, cell_row, gain_row, ratio, seconds_row

NEAR = 1.1
"""An advised cell is good if it is within this of the best."""
NOISE = 1.03
""""Larger is better" allows for the noise of one measurement."""
SORT, JOIN = ("sort", 10), ("join", 15)
"""The jobs of the figure, and their data in the paper, in GB: "5GB join", which Table 2 calls "5GB X 3"."""


def outcome(study):
    """The figures of a study."""
    tables = []
    for job in (SORT, JOIN):
        for device, of in DEVICES:
            cells = _figures(study, job, device)
            if job == SORT or any(value is not None for row in cells for value in row):
                tables.append((f"{job[0]}, {of}", cells))
    chart = partial(
        svg.heat, "Seconds of a job", [f"{block} MiB" for block in BLOCK_MB_SWEPT], [f"{sort} MB" for sort in SORT_MB_SWEPT],
        ("io.sort.mb", "dfs.blocksize"), tables,
    )  # fmt: skip
    differs = [
        *study.differs(),
        "The text has no values of Figure 6's axes; its statements are held against this sweep. The fan-in is 200, as there.",
        "The prediction assumes 352 MiB of heap for the reducer, too; it has 256 MiB.",
    ]
    return Outcome([*_swept(study, SORT), *_advised(study), *_swept(study, JOIN)], differs, chart, study.machine)


def _cell(study, job, device, block_mb, sort_mb):
    return study.stock(*job, device, block_mb=block_mb, sort_mb=sort_mb)


def _figures(study, job, device):
    """Usable seconds of a job on a device, by block and then by buffer."""
    return [[study.seconds(_cell(study, job, device, block, sort)) for sort in SORT_MB_SWEPT] for block in BLOCK_MB_SWEPT]


def _grid(study, job, device):
    """The same; None if one is missing or not valid."""
    rows = _figures(study, job, device)
    return None if any(value is None for row in rows for value in row) else rows


def _swept(study, job):
    """What the text says of a job, and its seconds."""
    sections = [_statements(study, job)]
    for device, of in DEVICES:
        seconds = Section(f"seconds of the {job[0]}, {of} (Figure 6)")
        for block in BLOCK_MB_SWEPT:
            for sort in SORT_MB_SWEPT:
                one = study.get(_cell(study, job, device, block, sort))
                seconds_row(seconds, f"blocks of {block} MiB, buffer of {sort} MB", one)
        sections.append(seconds)
    return sections


def _spread(rows):
    every = [value for row in rows for value in row]
    return max(every) / min(every)


def _statements(study, job):
    hdd, ssd = (_grid(study, job, device) for device in (HDD, SSD))
    says = Section(f"{job[0]}: {SAYS}")
    best_block = hdd and all(min(hdd[1]) <= min(row) for row in hdd)
    says.holds("HDD: blocks of 64 MiB are best", BY_SETTINGS, best_block)
    larger = hdd and all(after <= before * NOISE for row in hdd for before, after in zip(row, row[1:]))
    says.holds("HDD: a larger buffer is not slower, with any block", BY_SETTINGS, larger)
    spreads = [_spread(hdd), _spread(ssd)] if hdd and ssd else [None, None]
    says.holds("the SSD changes less than the HDD", BY_SETTINGS, spreads[1] < spreads[0] if hdd and ssd else None)
    gain_row(says, "slowest cell over the fastest, HDD", spreads[0])
    gain_row(says, "slowest cell over the fastest, SSD", spreads[1])
    return says


def _chosen(study, device, advice):
    """The cell with the settings that `hadoop advise --job` prints; None if the file is older than they are."""
    told = advice.get("advice", {})
    try:
        return study.stock(
            *SORT, device,
            flavour=ACTIVE if told["merganser.shuffle.defer"] == "true" else STOCK,
            sort_mb=int(told["mapreduce.task.io.sort.mb"]),
            factor=int(told["mapreduce.task.io.sort.factor"]),
            block_mb=int(told["dfs.blocksize"]) >> 20,
        )  # fmt: skip
    except (KeyError, ValueError):
        return None


def _in_sweep(one):
    """Whether the sweep has a combination."""
    return one["factor"] == FACTOR and not one["defer"] and one["block_mb"] in BLOCK_MB_SWEPT and one["sort_mb"] in SORT_MB_SWEPT


def _advised(study):
    """The combination of the sweep that the model of `hadoop advise --job` finds best, all of its times, and the combination
    that the command itself chooses."""
    choice = Section("measured seconds of the cell that `hadoop advise --job` takes, over the best cell's")
    every = Section("seconds of `hadoop advise --job`, over the measured ones")
    own = Section("measured seconds of what `hadoop advise --job` itself chooses, over the best cell's of the sweep")
    for device, of in DEVICES:
        advice = study.predicted.get(device)
        if advice is None:
            choice.row(f"{of}: no prediction")
            continue
        predicted = [(int(one["block_mb"]), int(one["sort_mb"]), one["seconds"]) for one in advice["combinations"] if _in_sweep(one)]
        rows = _grid(study, SORT, device)
        fastest = min(value for row in rows for value in row) if rows else None
        near = None
        if predicted:
            block, sort, _ = min(predicted, key=lambda one: one[2])
            near = ratio(study.seconds(_cell(study, SORT, device, block, sort)), fastest)
            gain_row(choice, f"{of}: blocks of {block} MiB, buffer of {sort} MB", near)
        choice.holds(f"{of}: within a tenth of the best", WITHIN_TENTH, None if near is None else near <= NEAR)
        for block, sort, seconds in predicted:
            name = f"{of}, {block} MiB, {sort} MB: {seconds:.0f} s predicted"
            one = study.get(_cell(study, SORT, device, block, sort))
            cell_row(every, name, one, lambda one, seconds=seconds: seconds / one["elapsed_s"])
        cell = _chosen(study, device, advice)
        if cell and fastest:
            name = f"{of}: {cell.flavour}, blocks of {cell.block_mb} MiB, buffer of {cell.sort_mb} MB, fan-in of {cell.factor}"
            cell_row(own, name, study.get(cell), lambda one, fastest=fastest: one["elapsed_s"] / fastest)
    return [choice, every, own]
