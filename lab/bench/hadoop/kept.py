"""Results on disk: one JSON file per cell, written whole."""

import json
import os
from dataclasses import MISSING, asdict, fields


def _decided(cell, written):
    """All that decides the cell of a file. A field that is younger than the file has its default."""
    defaults = {field.name: field.default for field in fields(cell) if field.default is not MISSING}
    return {**defaults, **written}


class Kept:
    """A folder of results, made with the first of them."""

    def __init__(self, folder):
        self.folder = folder

    def path(self, cell):
        """Where a cell's result is."""
        return self.folder / f"{cell.name}.json"

    def get(self, cell):
        """The result of a cell, or None. One that can't be read counts as missing."""
        return read(self.path(cell), cell)

    def put(self, cell, result):
        """Keeps a result."""
        write_whole(self.path(cell), {"cell": asdict(cell), **result})

    def all(self, cells):
        """The results of these cells, as far as they are there, in their order."""
        return [found for found in map(self.get, cells) if found]


def read(path, cell):
    """The result of a cell in a file; None if it can't be read, or is another cell's."""
    try:
        result = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return of_cell([result], cell)


def of_cell(results, cell):
    """The first of these results that is a cell's, or None."""

    def fits(result):
        of = result.get("cell") if isinstance(result, dict) else None
        return isinstance(of, dict) and _decided(cell, of) == asdict(cell)

    return next(filter(fits, results), None)


def write_whole(path, value):
    """Writes a JSON file, which is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(value, indent=1) + "\n")
    os.replace(unfinished, path)
