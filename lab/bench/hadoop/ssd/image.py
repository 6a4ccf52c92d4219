"""Images of file systems that have a job's input in HDFS, made once at the speed of this machine.

Each cell begins with a copy of the image that it needs. So all cells of a figure read the same blocks at the same
places, on both devices, and none finds traces of the one before.
"""

import errno
import json
import os
import subprocess

from harness import emulated

from .. import config
from ..cluster import Cluster, ClusterError
from . import jobs

COPY_TIMEOUT_S = 600
PIECE_BYTES = 1 << 20
# More than the largest job writes, and no more than a part of either disk: inputs, spills, what reducers fetch, output.
DISK_BYTES = 64 << 30


def hdfs_of(mounted):
    """Where HDFS keeps its files on the disk."""
    return mounted / "hdfs"


def name_of(cell):
    """The name of the image for a cell: all that its input depends on."""
    job = jobs.JOBS[cell.job]
    if not job.inputs:
        return f"empty-block{cell.block_mb}"
    return f"{'-'.join(job.inputs)}-{cell.data_bytes}-block{cell.block_mb}"


def input_paths(job):
    """The inputs of a job in HDFS."""
    return [f"/input{number}" for number in range(len(jobs.JOBS[job].inputs))]


def data_of(path):
    """The pieces of a sparse file that have data, as pairs of a first byte and an end, in steps of `PIECE_BYTES`."""
    pieces, place = set(), 0
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        while place < size:
            try:
                start = os.lseek(file.fileno(), place, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:
                    break
                raise
            place = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            for piece in range(start // PIECE_BYTES, -(-place // PIECE_BYTES)):
                pieces.add((piece * PIECE_BYTES, min((piece + 1) * PIECE_BYTES, size)))
    return sorted(pieces)


def fill(path, pieces):
    """Gives the holes in these pieces of a sparse file their memory. Reads there still give zeros."""
    with open(path, "r+b") as file:
        for start, end in pieces:
            # Memory that was only allocated may still have to come from the host of a virtual machine.
            os.pwrite(file.fileno(), os.pread(file.fileno(), end - start, start), start)


class Images:
    """The images in a folder."""

    def __init__(self, folder, work, jars, timeout_s, say):
        self._folder, self._work, self._jars, self._timeout_s, self._say = folder, work, jars, timeout_s, say
        folder.mkdir(parents=True, exist_ok=True)

    def made(self, cell):
        """The image of a cell, which is made if it is missing."""
        image = self._folder / f"{name_of(cell)}.img"
        if not image.exists():
            self._say(f"making the input {name_of(cell)}")
            unfinished = image.with_suffix(".unfinished")
            self._make(cell, unfinished)
            os.replace(unfinished, image)
        return image

    def copy(self, cell, to):
        """Copies the image of a cell, which is made if it is missing. The copy has memory for all that earlier cells
        with this input wrote: a page that the kernel must find first makes a write late."""
        image = self.made(cell)
        subprocess.run(["cp", "--sparse=always", str(image), str(to)], check=True, timeout=COPY_TIMEOUT_S)
        fill(to, self._written(cell))

    def note(self, cell, copy):
        """Notes what was written to the copy of a cell's image, for the next cell with this input."""
        pieces = sorted({*map(tuple, self._written(cell)), *data_of(copy)})
        self._noted(cell).write_text(json.dumps(pieces))

    def _noted(self, cell):
        return self._folder / f"{name_of(cell)}.written.json"

    def _written(self, cell):
        try:
            return json.loads(self._noted(cell).read_text())
        except (OSError, ValueError):
            return []

    def _make(self, cell, image):
        emulated.make_file_system(image, DISK_BYTES)
        inputs = jobs.JOBS[cell.job].inputs
        with emulated.plain(image, self._work / "disk") as mounted:
            cluster = Cluster(
                self._work / "making", self._jars, 1, [(self._work / "making" / "local",)], cell.block_mb << 20,
                hdfs=hdfs_of(mounted),
            )  # fmt: skip
            with cluster:
                cluster.start_node(0)
                for kind, place in zip(inputs, input_paths(cell.job)):
                    share = cell.data_bytes // len(inputs)
                    program, words, settings = jobs.writer(kind, share, place, self._work / "dfsio.log")
                    limited = {"mapreduce.job.running.map.limit": config.MAPS_AT_ONCE, **settings}
                    cluster.run(program, words, settings=limited, timeout_s=self._timeout_s)
                    if kind != "dfsio" and not cluster.hdfs("-ls", place).strip():
                        raise ClusterError(f"{place} is empty")
