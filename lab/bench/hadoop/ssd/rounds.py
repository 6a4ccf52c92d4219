"""What is kept of the study: every round of every cell.

    results/<date>-<machine>-study/CELL.json                        round 1
                                   CELL-round2.json                 another round
                                   not-valid/CELL.json, CELL-2.json attempts whose emulation was late
                                   study-x0.05-slower4.json         all cells of a scale and a clock, for `compare.py`

No file takes the place of another measurement's: late attempts are numbered, and cells of another scale or clock are
in another file.
"""

from dataclasses import asdict, replace

from ..kept import Kept, read, write_whole

README = """# Not valid

Attempts whose emulation was later than the limit of docs/lab/emulate.md. No figure uses their times; `study.py` reads only how
late they were, so that it can say so.
"""


def file_name(scale, slower):
    """The name of the file with all cells of a scale and a clock."""
    return f"study-x{scale:g}-slower{slower}.json"


class Rounds(Kept):
    """A folder of results of the study."""

    @property
    def apart(self):
        """Where late attempts go."""
        return self.folder / "not-valid"

    def get(self, cell):
        """The valid result of a cell and round, or None."""
        result = super().get(cell)
        return result if result and result["valid"] else None

    def put(self, cell, result):
        """Keeps a result, a late one apart."""
        if not result["valid"]:
            self._put_apart(cell, {"cell": asdict(cell), **result})
            return
        earlier = read(self.path(cell), cell)
        if earlier and not earlier["valid"]:
            # Before there was a folder for them, late attempts were here.
            self._put_apart(cell, earlier)
        super().put(cell, result)

    def _put_apart(self, cell, result):
        self.apart.mkdir(parents=True, exist_ok=True)
        if not (self.apart / "README.md").exists():
            (self.apart / "README.md").write_text(README)
        names = (f"{cell.name}{suffix}.json" for suffix in ["", *(f"-{number}" for number in range(2, 1000))])
        write_whole(next(self.apart / name for name in names if not (self.apart / name).exists()), result)

    def late(self, cell):
        """The late attempts of a cell and round, the latest one last."""
        attempts = sorted(self.apart.glob(f"{cell.name}*.json"), key=lambda path: (len(path.stem), path.stem))
        paths = [self.path(cell), *attempts]
        return [found for found in (read(path, cell) for path in paths) if found and not found["valid"]]

    def rounds(self, cell):
        """All valid rounds of a cell, in their order."""
        numbers = {1}
        for path in self.folder.glob(f"{cell.name}-round*.json"):
            number = path.stem.removeprefix(f"{cell.name}-round")
            numbers |= {int(number)} if number.isdigit() else set()
        return self.all([replace(cell, round=number) for number in sorted(numbers)])


def summary(rounds):
    """One entry for all rounds of a cell. Its figures are those of the median round by time; of two, of the faster one."""
    median = sorted(rounds, key=lambda one: one["elapsed_s"])[(len(rounds) - 1) // 2]
    seconds = [one["elapsed_s"] for one in rounds]
    decided = {name: value for name, value in median["cell"].items() if name != "round"}
    return {
        **median,
        "cell": decided,
        "rounds": [
            {
                "round": one["cell"].get("round", 1),
                **{name: one[name] for name in ("elapsed_s", "lag", "path_us", "date", "build") if name in one},
            }
            for one in rounds
        ],
        "spread": (max(seconds) - min(seconds)) / median["elapsed_s"],
    }


def gathered(kept, cells):
    """Entries of all cells that have valid rounds, and of those that only have late attempts."""
    measured, late = [], []
    for cell in cells:
        rounds = kept.rounds(cell)
        if rounds:
            measured.append(summary(rounds))
            continue
        attempts = kept.late(cell)
        if attempts:
            decided = {name: value for name, value in asdict(cell).items() if name != "round"}
            late.append({"cell": decided, "lag": attempts[-1]["lag"], "attempts": len(attempts)})
    return measured, late
