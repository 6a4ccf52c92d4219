"""What the jobs read. It is made once and kept in HDFS, in the driver's folder.

    /input/text-BYTES/part-m-0000N       by `generate text`, a file per map
    /input/reviews-BYTES/part-m-0000N    lines MOVIE:USER_RATING,USER_RATING,...
    /input/triples-BYTES/part-r-00000    the output of sequence-count on a text
    /device-N/part-m-000NN               texts on the disk of one DataNode
"""

import os
import random
import shutil

from . import web
from .jobs import JOBS, WORKLOADS
from .pairs import DEVICE_BYTES, DEVICE_FILES, DEVICES, OWN

LINE_BYTES = 850
"""The mean of `generate text`."""
TRIPLES_OVER_TEXT = 6.6
"""Bytes that sequence-count writes over bytes that it reads, for this text."""
USERS, MOVIE_REVIEWS, CHUNK_BYTES = 100_000, (5, 200), 8 << 20


def source(pair):
    """The files that a pair reads."""
    if pair.disk != OWN:
        return on_devices(pair.devices, pair.files)
    part = "part-r" if JOBS[pair.job].reads == "triples" else "part-m"
    return [f"{folder_of(pair)}/{part}-{number:05}" for number in range(pair.files)]


def folder_of(pair):
    """The folder of a pair's input."""
    return f"/input/{JOBS[pair.job].reads}-{pair.file_bytes}"


def on_devices(devices, files):
    """The files in turns from one disk and the next, so that maps that run at once read different disks."""
    return [f"/device-{n % devices}/part-m-{n // devices:05}" for n in range(files)]


def make(cluster, pair, files, timeout_s):
    """Makes the input of a pair, with at least `files` files, if it is missing. Returns whether it was."""
    folder, kind = folder_of(pair), JOBS[pair.job].reads
    there = [name for name in web.files(cluster, folder) if "/part-" in name]
    if len(there) >= (1 if kind == "triples" else files):
        return False
    web.remove(cluster, folder)
    if kind == "text":
        text(cluster, folder, pair.file_bytes, files, timeout_s)
    elif kind == "reviews":
        _reviews(cluster, folder, pair.file_bytes, files)
    else:
        _triples(cluster, folder, pair.file_bytes, timeout_s)
    return True


def text(cluster, folder, file_bytes, files, timeout_s):
    """Writes files of text."""
    settings = {"merganser.workloads.maps": files, "mapreduce.job.running.map.limit": 2}
    rows = max(1, file_bytes // LINE_BYTES) * files
    cluster.run((WORKLOADS, "generate"), ["text", rows, folder], settings=settings, timeout_s=timeout_s)


def reviews(seed, size_bytes):
    """Lines of reviews, up to a number of bytes."""
    numbers, lines, left = random.Random(seed), [], size_bytes
    while True:
        count = numbers.randint(*MOVIE_REVIEWS)
        line = f"{len(lines)}:" + ",".join(f"{numbers.randrange(USERS)}_{numbers.randint(1, 5)}" for _ in range(count)) + "\n"
        left -= len(line)
        if left < 0:
            return "".join(lines).encode()
        lines.append(line)


def _reviews(cluster, folder, file_bytes, files):
    local = cluster.folder / "reviews"
    shutil.rmtree(local, ignore_errors=True)
    local.mkdir()
    try:
        for number in range(files):
            # The same movies again and again: the histograms are those of many movies all the same.
            chunk = reviews(number, min(file_bytes, CHUNK_BYTES))
            with open(local / f"part-m-{number:05}", "wb") as to:
                for _ in range(max(1, file_bytes // len(chunk))):
                    to.write(chunk)
        cluster.hdfs("-mkdir", "-p", folder)
        cluster.hdfs("-put", *sorted(local.iterdir()), folder)
    finally:
        shutil.rmtree(local)


def _triples(cluster, folder, file_bytes, timeout_s):
    of = f"{folder}-text"
    web.remove(cluster, of)
    text(cluster, of, round(file_bytes / TRIPLES_OVER_TEXT), 1, timeout_s)
    settings = {"mapreduce.job.reduces": 1}
    cluster.run((WORKLOADS, "puma-sequence-count"), [of, folder], settings=settings, timeout_s=timeout_s)
    web.remove(cluster, of)


def device_files(index):
    """Files that the disk of a DataNode has, for all numbers of disks together."""
    return max(-(-(DEVICE_FILES - index) // devices) for devices in DEVICES if index < devices)


def make_on_device(cluster, index, first, timeout_s):
    """Fills the disk of the only DataNode of a cluster. `first`: a local copy of the text, made with the first disk."""
    folder = f"/device-{index}"
    if not first.exists():
        text(cluster, f"{folder}-text", DEVICE_BYTES, 1, timeout_s)
        first.write_bytes(web.read(cluster, f"{folder}-text/part-m-00000"))
        web.remove(cluster, f"{folder}-text")
    local = cluster.folder / f"device-{index}"
    shutil.rmtree(local, ignore_errors=True)
    local.mkdir()
    try:
        for number in range(device_files(index)):
            os.link(first, local / f"part-m-{number:05}")
        cluster.hdfs("-put", local, "/", timeout_s=timeout_s)
    finally:
        shutil.rmtree(local)
