"""The block device under a folder, and the bytes that it has read and written so far."""

import os
from dataclasses import dataclass
from pathlib import Path

SECTOR_BYTES = 512  # the unit of sysfs, whatever the device's own sector is


@dataclass(frozen=True)
class Traffic:
    """Bytes that a device has moved; the difference of two counts is the traffic between them."""

    read_bytes: int
    written_bytes: int

    def __sub__(self, earlier):
        return Traffic(self.read_bytes - earlier.read_bytes, self.written_bytes - earlier.written_bytes)


def of_folder(folder):
    """The sysfs folder of the block device that holds `folder`, or None without a block device
    (an overlay, tmpfs, a network file system)."""
    number = os.stat(folder).st_dev
    node = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if node.exists():
        return node.resolve()
    # Some file systems show a made-up number; the mount table then names the real device.
    best = ("", None)
    real = os.path.realpath(folder)
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, tail = line.partition(" - ")
        mounted_on = fields.split()[4]
        source = tail.split()[1]
        inside = real == mounted_on or real.startswith(mounted_on.rstrip("/") + "/")
        if inside and len(mounted_on) >= len(best[0]):
            best = (mounted_on, source)
    if best[1] and best[1].startswith("/dev/"):
        node = Path("/sys/class/block") / os.path.basename(os.path.realpath(best[1]))
        if node.exists():
            return node.resolve()
    return None


def traffic(node):
    """The bytes that the device at the sysfs folder `node` has moved since it appeared."""
    fields = (node / "stat").read_text().split()
    return Traffic(int(fields[2]) * SECTOR_BYTES, int(fields[6]) * SECTOR_BYTES)


def name(node):
    """Name and model of the device, as the results show it."""
    if node is None:
        return "no block device"
    for folder in (node, node.parent):  # a partition's model is its disk's
        model = folder / "device" / "model"
        if model.exists():
            return f"{node.name} ({model.read_text().strip()})"
    return node.name
