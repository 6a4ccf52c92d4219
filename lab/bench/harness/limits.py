"""Limits for a job: memory for its processes, bandwidth for a disk.

Both use the version 1 control groups. Their memory limit counts the page cache, so a program cannot
use the rest of the machine's memory to look fast. If they are not available (not root, or only
version 2 is mounted), a job runs without limits, and its result says so.
"""

import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

MEMORY_ROOT = Path("/sys/fs/cgroup/memory")
THROTTLE_ROOT = Path("/sys/fs/cgroup/blkio")


class NoSwap(Exception):
    """A group of little memory with swap can't be made here; the text says what is missing."""


def need_swap(who):
    """Refuses a machine on which a memory group with a swap file can't be made."""
    if os.geteuid() != 0:
        raise NoSwap(f"{who} needs root, to make a control group of memory and a swap file")
    if not (MEMORY_ROOT / "memory.limit_in_bytes").exists():
        raise NoSwap(f"{who} needs the memory controller of control groups of version 1 at {MEMORY_ROOT}")
    for tool in ("mkswap", "swapon", "swapoff", "taskset"):
        if not shutil.which(tool):
            raise NoSwap(f"{who} needs the command {tool} of util-linux")


@contextmanager
def swap(folder, size_bytes):
    """A file of `size_bytes` in `folder` that the system swaps to."""
    path = Path(folder) / "swap"
    with open(path, "xb") as file:
        os.chmod(path, 0o600)
        os.posix_fallocate(file.fileno(), 0, size_bytes)
    try:
        subprocess.run(["mkswap", path], check=True, capture_output=True, timeout=60)
        subprocess.run(["swapon", path], check=True, capture_output=True, timeout=60)
        yield
    finally:
        # It may not be in use yet.
        subprocess.run(["swapoff", path], check=False, capture_output=True, timeout=600)
        path.unlink()


def _leave(group):
    """Removes a control group; its last process may need a moment to leave it."""
    for _ in range(200):
        try:
            group.rmdir()
            return
        except OSError:
            time.sleep(0.01)


@contextmanager
def memory(limit_bytes):
    """A control group that allows `limit_bytes`, or None where one cannot be made."""
    if limit_bytes is None or not os.access(MEMORY_ROOT / "memory.limit_in_bytes", os.W_OK):
        yield None
        return
    group = Path(tempfile.mkdtemp(prefix="merganser-bench-", dir=MEMORY_ROOT))
    try:
        (group / "memory.limit_in_bytes").write_text(str(limit_bytes))
        yield group
    finally:
        _leave(group)


def can_throttle():
    """Whether a throttled disk can be made here."""
    return os.geteuid() == 0 and (THROTTLE_ROOT / "blkio.throttle.read_bps_device").exists()


@contextmanager
def throttled_disk(folder, size_bytes, read_bytes_s, write_bytes_s, name="throttled"):
    """An ext4 file system of `size_bytes` on a loop device that moves no more than the given bytes per
    second each way. Yields the folder it is mounted on, and removes everything afterwards. Several at a
    time need different names.

    It is a loop device, because buffered writes are not limited by a throttle on the real device.
    """
    image = Path(folder) / f"{name}.img"
    mounted_on = Path(folder) / name
    loop = None
    number = None

    def throttle(read, write):
        for direction, rate in (("read", read), ("write", write)):
            (THROTTLE_ROOT / f"blkio.throttle.{direction}_bps_device").write_text(f"{number} {rate}\n")

    try:
        with open(image, "wb") as file:
            file.truncate(size_bytes)
        loop = subprocess.run(
            ["losetup", "-f", "--show", "--direct-io=on", str(image)],
            check=True, capture_output=True, text=True, timeout=60,
        ).stdout.strip()
        number = Path(f"/sys/class/block/{os.path.basename(loop)}/dev").read_text().strip()
        # mkfs writes all tables now. If the kernel wrote them later, they would be counted as a job's writes.
        subprocess.run(
            ["mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", loop], check=True, timeout=120
        )
        mounted_on.mkdir()
        subprocess.run(["mount", loop, str(mounted_on)], check=True, timeout=60)
        throttle(read_bytes_s, write_bytes_s)
        yield mounted_on
    finally:
        if number:
            throttle(0, 0)
        if mounted_on.exists():
            subprocess.run(["umount", str(mounted_on)], check=False, timeout=120)
            mounted_on.rmdir()
        if loop:
            subprocess.run(["losetup", "-d", loop], check=False, timeout=60)
        image.unlink(missing_ok=True)
