"""A file system on an emulated disk, and on a plain file for work that is not measured. Needs root.

    image (a file in memory) ─► merganser emulate ─► DOOR/disk ─► loop device ─► ext4 on MOUNT
                                 the model's time                  direct I/O

The loop device passes requests on as they come, several at a time. Its queue is set as the paper's kernel had it
(Fedora 14): read-ahead of 128 KiB, requests of at most 512 KiB. Its scheduler, CFQ, is gone from Linux;
mq-deadline takes its place.
"""

import json
import mmap
import os
import random
import signal
import statistics
import subprocess
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

COMMAND_TIMEOUT_S, UNMOUNT_TIMEOUT_S = 120, 300
BUSY_TRIES, BUSY_WAIT_S = 20, 0.25
START_TIMEOUT_S, END_TIMEOUT_S = 60, 120
READ_AHEAD_KB, REQUEST_KB, SCHEDULER = 128, 512, "mq-deadline"
COMPLETES_WHERE_SUBMITTED = 2
"""The processor that submitted a request handles its end, as it would handle a disk's interrupt; not that of the emulation."""
PRIORITY = 20
"""The priority of the emulation, as a real-time process: answers must not wait for the threads of Hadoop."""
THREAD_PRIORITIES = {"pacer": 30, "storage": 25}
"""Threads that must not wait for others of the emulation, by name: the one that keeps the time, and those that move data.
Dozens of requests may arrive at once. The first of them must not wait for its data until the last has arrived."""
SHARED_SPIN_US = 200
"""The thread that keeps the time stays awake for so long before each event. A kernel that is busy for a program wakes
no other thread, for hundreds of microseconds."""
OWN_SPIN_US = 5
"""The same on a processor that only the emulation uses. While this thread is awake, those that copy data wait."""
CPUS = sorted(os.sched_getaffinity(0))
NICE = 10
WRITEBACK_CPUS = Path("/sys/devices/virtual/workqueue/writeback/cpumask")
JOURNAL_MB, INODE_EVERY_BYTES = 128, 65536
PATH_READS = 1000


class EmulationError(Exception):
    """A disk could not be emulated, or its file system not be used; the text names the command."""


def own_cpu():
    """The processor that this process has left to the emulation, if it has."""
    return None if CPUS[-1] in os.sched_getaffinity(0) else CPUS[-1]


@contextmanager
def own_cpu_left():
    """Keeps this process, all that it starts meanwhile, and the kernel's writing of dirty pages off the last
    processor, which is the emulation's. In the kernel, a thread may not give way to one of higher priority.
    The programs get a lower priority than the kernel's threads, which carry requests to the disk."""
    if len(CPUS) == 1:
        yield
        return
    os.sched_setaffinity(0, CPUS[:-1])
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    before = WRITEBACK_CPUS.read_text() if WRITEBACK_CPUS.exists() else None
    try:
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
        if before:
            WRITEBACK_CPUS.write_text(f"{sum(1 << cpu for cpu in CPUS[:-1]):x}")
        yield
    finally:
        if before:
            WRITEBACK_CPUS.write_text(before)
        os.setpriority(os.PRIO_PROCESS, 0, nice)
        os.sched_setaffinity(0, CPUS)


def _run(*words, timeout_s=COMMAND_TIMEOUT_S):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=timeout_s, check=False)
    if done.returncode != 0:
        raise EmulationError(f"{' '.join(map(str, words))}: {done.stderr.strip() or f'exit {done.returncode}'}")
    return done.stdout.strip()


def make_file_system(image, size_bytes):
    """Makes an empty ext4 in a new sparse file."""
    with open(image, "wb") as file:
        file.truncate(size_bytes)
    # Tables of inodes stay holes: with `noinit_itable`, no thread of the kernel fills them during a measurement.
    _run(
        "mkfs.ext4", "-q", "-F", "-i", INODE_EVERY_BYTES, "-J", f"size={JOURNAL_MB}",
        "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard", image,
    )  # fmt: skip


@contextmanager
def _loop(path, direct):
    loop = _run("losetup", "-f", "--show", f"--direct-io={'on' if direct else 'off'}", path)
    try:
        queue = Path("/sys/block") / os.path.basename(loop) / "queue"
        if direct:
            for name, value in (("read_ahead_kb", READ_AHEAD_KB), ("max_sectors_kb", REQUEST_KB), ("scheduler", SCHEDULER),
                                ("rq_affinity", COMPLETES_WHERE_SUBMITTED)):  # fmt: skip
                (queue / name).write_text(str(value))
        yield loop
    finally:
        subprocess.run(["losetup", "-d", loop], check=False, timeout=COMMAND_TIMEOUT_S)


@contextmanager
def _mounted(loop, where):
    where.mkdir(parents=True, exist_ok=True)
    _run("mount", "-o", "noinit_itable", loop, where)
    try:
        yield where
    finally:
        _unmount(where)


def _unmount(where):
    """Unmounts. Dirty pages are written at the speed of the disk; processes that were killed need a moment to end."""
    for _ in range(BUSY_TRIES):
        done = subprocess.run(["umount", str(where)], capture_output=True, text=True, timeout=UNMOUNT_TIMEOUT_S, check=False)
        if done.returncode == 0:
            return
        time.sleep(BUSY_WAIT_S)
    # The next disk needs the folder.
    subprocess.run(["umount", "-l", str(where)], check=False, timeout=COMMAND_TIMEOUT_S)
    raise EmulationError(f"{where} was still in use: {done.stderr.strip()}")


@contextmanager
def plain(image, where):
    """The file system of an image, at the speed of this machine."""
    with _loop(image, direct=False) as loop, _mounted(loop, where):
        yield where


def _raise_threads(process):
    """Gives the threads of an emulation that others must not delay their priorities."""
    for task in Path(f"/proc/{process}/task").glob("*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            priority = THREAD_PRIORITIES.get((task / "comm").read_text().strip())
            if priority:
                os.sched_setscheduler(int(task.name), os.SCHED_FIFO, os.sched_param(priority))


class Emulation:
    """`merganser emulate` on an image. Its report, JSON or a page, is there when it has ended."""

    def __init__(self, merganser, device, image, door, report, path_us=0, slower=1):
        door.mkdir(parents=True, exist_ok=True)
        self.path = door / "disk"
        if self.path.exists():
            raise EmulationError(f"{self.path}: an earlier emulation is still there; end it first")
        self._report = report
        report.unlink(missing_ok=True)
        cpu = own_cpu()
        words = [
            "chrt", "-f", str(PRIORITY), str(merganser), "emulate", "--device", device, "--file", str(image), "--existing",
            "--filled", "--mount", str(door), "--report", str(report), "--path-us", str(path_us), "--slower", str(slower),
            *(["--spin-us", str(SHARED_SPIN_US)] if cpu is None else ["--cpu", str(cpu), "--spin-us", str(OWN_SPIN_US)]),
        ]  # fmt: skip
        self._log = report.with_suffix(".log")
        with open(self._log, "wb") as out:
            self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self.path.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.end()
                raise EmulationError(f"no disk is emulated: {self.said()}")
            time.sleep(0.02)
        _raise_threads(self._process.pid)

    def said(self):
        """The end of what it printed: the last line of its results tells the lag."""
        return self._log.read_text(errors="replace").strip()[-2000:]

    def end(self):
        """Ends it, and waits."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()

    def report(self):
        """The report as data, when it has ended. A run that was not valid has one, too."""
        try:
            found = json.loads(self._report.read_text())
        except (OSError, ValueError) as error:
            raise EmulationError(f"the emulation left no report: {error}\n{self.said()}") from error
        # A run that is not valid fails, too. If a valid one fails, a request failed, or the end was not orderly.
        if found["valid"] and self._process.returncode != 0:
            raise EmulationError(f"the emulated disk failed: {self.said()}")
        return found


@contextmanager
def emulated(merganser, device, image, folder, where, path_us=0, slower=1, report="emulate.json"):
    """The file system of an image on an emulated disk, mounted at `where`. Yields the emulation."""
    with ExitStack() as stack:
        emulation = Emulation(merganser, device, image, folder / "door", folder / report, path_us, slower)
        stack.callback(emulation.end)
        loop = stack.enter_context(_loop(emulation.path, direct=True))
        stack.enter_context(_mounted(loop, where))
        yield emulation


def path_us(merganser, folder, memory):
    """Microseconds that a request takes through loop device and FUSE when the model takes none."""
    image = memory / "path.img"
    with open(image, "wb") as file:
        file.truncate(1 << 30)
    try:
        emulation = Emulation(merganser, "null", image, folder / "door", folder / "path.json")
        try:
            with _loop(emulation.path, direct=True) as loop:
                return _read_us(loop, 1 << 30)
        finally:
            emulation.end()
    finally:
        image.unlink(missing_ok=True)


def _read_us(device, size_bytes):
    """The median time of a read of 4 KiB, one at a time: other programs of the machine delay some."""
    places, took = random.Random(1), []
    file = os.open(device, os.O_RDONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, 4096) as page:
            for _ in range(PATH_READS):
                started = time.monotonic()
                os.preadv(file, [page], places.randrange(size_bytes // 4096) * 4096)
                took.append(time.monotonic() - started)
    finally:
        os.close(file)
    return round(statistics.median(took) * 1e6)
