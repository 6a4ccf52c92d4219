"""The disks for intermediate data, throttled or not. They have file systems of their own, so that their bytes
are counted apart from the bytes of HDFS."""

from contextlib import ExitStack, contextmanager
from pathlib import Path

from harness import device, limits

PAPER_READ_BYTES_S, PAPER_WRITE_BYTES_S = 140_000_000, 65_000_000
"""What ActiveSort's SSD reads and writes (5.2, Figure 8)."""
UNLIMITED = 0


@contextmanager
def disks(folder, count, size_bytes, throttled, dirty_bytes):
    """`count` mounted file systems of `size_bytes` each. At most `dirty_bytes` of one wait in the page cache
    to be written. So files that are deleted soon are written to the device anyway, as on a machine whose
    memory is as large as the data."""
    rates = (PAPER_READ_BYTES_S, PAPER_WRITE_BYTES_S) if throttled else (UNLIMITED, UNLIMITED)
    with ExitStack() as stack:
        found = []
        for index in range(count):
            mounted = stack.enter_context(limits.throttled_disk(folder, size_bytes, *rates, name=f"disk-{index}"))
            stack.enter_context(dirty_limit(mounted, dirty_bytes))
            found.append(mounted)
        yield found


@contextmanager
def dirty_limit(mounted, dirty_bytes):
    number = (device.of_folder(mounted) / "dev").read_text().strip()
    rules = Path(f"/sys/class/bdi/{number}")
    (rules / "max_bytes").write_text(str(dirty_bytes))
    # This makes the limit strict. Otherwise it applies only when the whole machine has too many dirty pages.
    (rules / "strict_limit").write_text("1")
    try:
        yield
    finally:
        # Loop devices stay when they are detached, and so do their rules.
        (rules / "strict_limit").write_text("0")
        (rules / "max_ratio").write_text("100")


def traffic(mounted):
    """Bytes that the disks have read and written so far."""
    moved = [device.traffic(device.of_folder(one)) for one in mounted]
    return sum(one.read_bytes for one in moved), sum(one.written_bytes for one in moved)
