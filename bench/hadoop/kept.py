"""Results on disk: one JSON file per cell, written whole, and all of them together as `study.json`."""

import json
import os
from dataclasses import asdict


class Kept:
    """A folder of results, made with the first of them."""

    def __init__(self, folder):
        self.folder = folder

    def _path(self, cell):
        return self.folder / f"{cell.name}.json"

    def get(self, cell):
        """The result of a cell, or None. One that can't be read counts as missing."""
        try:
            result = json.loads(self._path(cell).read_text())
        except (OSError, ValueError):
            return None
        return result if isinstance(result, dict) and result.get("cell") == asdict(cell) else None

    def put(self, cell, result):
        """Keeps a result. A file is there whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self._path(cell)
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps({"cell": asdict(cell), **result}, indent=1) + "\n")
        os.replace(unfinished, path)

    def all(self, cells):
        """The results of these cells, as far as they are there, in their order."""
        return [found for found in map(self.get, cells) if found]
