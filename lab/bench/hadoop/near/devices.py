"""Disks of DataNodes: file systems in image files that stay, mounted on loop devices that read no faster than told."""

from contextlib import ExitStack, contextmanager
from pathlib import Path

from harness import device, emulated
from harness.limits import THROTTLE_ROOT

DISK_BYTES = 8 << 30
"""Sparse: an image takes what was written."""
MB = 10**6


@contextmanager
def disk(image, where, read_mb_s=0):
    """The file system of an image, made if it is missing. `read_mb_s`: 10^6 bytes in a second; 0: not limited."""
    if not image.exists():
        image.parent.mkdir(parents=True, exist_ok=True)
        emulated.make_file_system(image, DISK_BYTES)
    with emulated.plain(image, where) as mounted:
        number = (device.of_folder(mounted) / "dev").read_text().strip()
        _throttle(number, read_mb_s * MB)
        try:
            yield mounted
        finally:
            # Loop devices stay when they are detached, and so do their rules.
            _throttle(number, 0)


def _throttle(number, bytes_s):
    Path(THROTTLE_ROOT / "blkio.throttle.read_bps_device").write_text(f"{number} {bytes_s}\n")


@contextmanager
def disks(folder, count, read_mb_s=0):
    """`count` of them."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(disk(folder / f"device-{index}.img", folder / f"device-{index}", read_mb_s))
            for index in range(count)
        ]
