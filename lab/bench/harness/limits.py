"""Limits for a job: memory for its processes, bandwidth for a disk.

Both use control groups. Their memory limit counts the page cache, so a program cannot use the rest of the machine's memory to look
fast. Memory is limited with version 1 or 2, whichever has the memory controller; a disk with version 1 alone. If a group can't be
made (not root, or no controller), a job runs without limits, and its result says so.

    version 1   /sys/fs/cgroup/memory/GROUP   memory.limit_in_bytes   memory.max_usage_in_bytes
    version 2   /sys/fs/cgroup/GROUP          memory.max              memory.peak (Linux 5.19)
"""

import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

MEMORY_ROOT = Path("/sys/fs/cgroup/memory")
UNIFIED_ROOT = Path("/sys/fs/cgroup")
"""Where groups of version 2 are mounted, on systems that have no others."""
THROTTLE_ROOT = Path("/sys/fs/cgroup/blkio")


class NoSwap(Exception):
    """A group of little memory with swap can't be made here; the text says what is missing."""


def need_swap(who):
    """Refuses a machine on which a memory group with a swap file can't be made."""
    if os.geteuid() != 0:
        raise NoSwap(f"{who} needs root, to make a control group of memory and a swap file")
    if not can_limit_memory():
        raise NoSwap(f"{who} needs the memory controller of control groups, of version 1 at {MEMORY_ROOT} or 2 at {UNIFIED_ROOT}")
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


def _parent():
    """The folder in which groups with a memory limit can be made, or None."""
    if os.access(MEMORY_ROOT / "memory.limit_in_bytes", os.W_OK):
        return MEMORY_ROOT
    handed_down = UNIFIED_ROOT / "cgroup.subtree_control"
    try:
        if "memory" in handed_down.read_text().split() and os.access(handed_down, os.W_OK):
            return UNIFIED_ROOT
    except OSError:
        pass
    return None


def can_limit_memory():
    """Whether jobs can be held to a limit of memory here."""
    return _parent() is not None


def _either(group, first, second):
    """The file of a group, by its name in version 1 or 2."""
    return group / (first if (group / first).exists() else second)


def limit_of(group):
    """The limit of a group that `memory` made, in bytes."""
    return int(_either(group, "memory.limit_in_bytes", "memory.max").read_text())


def peak_of(group):
    """The most memory of a group so far, page cache included; None if the kernel doesn't count it."""
    try:
        return int(_either(group, "memory.max_usage_in_bytes", "memory.peak").read_text())
    except FileNotFoundError:
        return None


@contextmanager
def memory(limit_bytes):
    """A control group that allows `limit_bytes`, or None where one cannot be made. Swap is not limited."""
    parent = _parent()
    if limit_bytes is None or parent is None:
        yield None
        return
    group = Path(tempfile.mkdtemp(prefix="merganser-bench-", dir=parent))
    try:
        (group / ("memory.limit_in_bytes" if parent == MEMORY_ROOT else "memory.max")).write_text(str(limit_bytes))
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
