"""Runs one job and counts what it cost.

    settle the disk, drop the caches ── start ── ... ── last process ends ── settle ── count
                                          │  wall_s                │   settle_s │
                                          └── device bytes, peak disk ──────────┘

Dirty pages of a program reach the device while the disk settles. These bytes are counted for the program.
The seconds of settling are kept apart, so that a comparison can choose.
"""

import os
import resource
import shlex
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from . import device, limits
from .tools import REPOSITORY

POLLS_HZ = 20
STDERR_BYTES_SHOWN = 2000


class JobError(Exception):
    """A job failed; the text names the command and the way it ended."""


@dataclass(frozen=True)
class Job:
    """Processes whose outputs feed each other, like a shell's pipeline."""

    pipeline: tuple
    """The words of each process. The memory of the last process counts as the memory of the program."""
    output: Path | None = None
    """The file for the last process's standard output; None discards it."""
    capture: bool = False
    """Keep the last one's standard output as text instead (for programs that print figures)."""
    alongside: tuple | None = None
    """The words of a program that starts just before them and is waited for, too. It is in no memory group, and its
    processor time is not counted."""

    def command_line(self):
        """The pipeline as a shell command of the repository's folder: results name no folder of one machine."""
        line = " | ".join(shlex.join(_of_repository(word) for word in words) for words in self.pipeline)
        if self.alongside:
            line = f"{shlex.join(_of_repository(word) for word in self.alongside)} & {line}"
        if self.capture:
            return line
        return f"{line} > {shlex.quote(_of_repository(self.output or '/dev/null'))}"


def _of_repository(word):
    """A word of a command, without the repository's folder in front."""
    return str(word).removeprefix(f"{REPOSITORY}/")


@dataclass
class Cost:
    """The cost of a job. A figure that could not be measured is None."""

    command: str
    wall_s: float
    settle_s: float
    cpu_s: float
    rss_peak_bytes: int
    device_read_bytes: int | None
    device_written_bytes: int | None
    disk_peak_bytes: int
    """The most bytes in use on the file system at one time, minus the bytes in use at the start."""
    memory_limit_bytes: int | None
    memory_peak_bytes: int | None
    """The peak of the control group, page cache included."""
    caches_dropped: bool
    text: str | None = None

    @property
    def durable_s(self):
        """Seconds until everything the job wrote was on the device."""
        return self.wall_s + self.settle_s

    @property
    def device_bytes(self):
        """Read and written together."""
        return self.device_read_bytes + self.device_written_bytes


def settle(cold):
    """Writes back dirty pages and, when `cold` and root, drops the page cache. Returns whether it was dropped."""
    os.sync()
    if not cold:
        return False
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
    except OSError:
        return False
    return True


def used_bytes(folder):
    """Bytes in use on the file system of `folder`."""
    stat = os.statvfs(folder)
    return (stat.f_blocks - stat.f_bfree) * stat.f_frsize


class _Watch:
    """Polls, from a thread, the bytes in use on a file system and a process's peak RSS."""

    def __init__(self, folder):
        self.pid = None
        """The process to watch, once it has started."""
        self.rss_peak_bytes = 0
        self._folder = folder
        self._start = self._peak = used_bytes(folder)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self):
        while not self._ended.wait(1 / POLLS_HZ):
            self._look()
            if self.pid is not None:
                self.rss_peak_bytes = max(self.rss_peak_bytes, _rss_high_water(self.pid))

    def _look(self):
        self._peak = max(self._peak, used_bytes(self._folder))

    def end(self):
        """Stops polling. Returns the most bytes in use, minus the bytes in use at the start."""
        self._ended.set()
        self._thread.join()
        self._look()
        return self._peak - self._start


def _rss_high_water(pid):
    """The peak resident memory of the program `pid`; 0 once it has ended."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def _rss_peak(usage, watch):
    """A process's peak RSS in bytes.

    The kernel's figure at the end is exact, but it is at least the memory of this process when it forked.
    Below that, the polled figure is better: it misses at most the growth since the last poll.
    """
    at_end = usage.ru_maxrss * 1024
    here = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return at_end if at_end > here else watch.rss_peak_bytes or at_end


def _start(words, group, **streams):
    words = [str(word) for word in words]
    if group is not None:
        # The shell enters the group and then becomes the program, so nothing runs outside of it.
        words = ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', str(group / "cgroup.procs"), *words]
    return subprocess.Popen(words, start_new_session=True, **streams)


def _kill(processes):
    for process in processes:
        if process.returncode is None:
            try:
                # Each process leads a group of its own, so this ends it and its children, and no other process.
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def run(job, folder, memory_limit_bytes=None, timeout_s=1800, cold=True, group=None):
    """Runs `job` with the disk of `folder` watched, and returns its `Cost`.

    `group` is a memory group of the caller's, for jobs that share one; otherwise each has a group of its own.
    Without `cold` the page cache stays as it is: for tests, since it slows down the whole machine.
    Raises `JobError` when a process fails, or is still running after `timeout_s` (it is ended then).
    """
    if group is not None:
        return _run(job, Path(folder), group, limits.limit_of(group), timeout_s, cold)
    with limits.memory(memory_limit_bytes) as group:
        return _run(job, Path(folder), group, memory_limit_bytes, timeout_s, cold)


def _run(job, folder, group, memory_limit_bytes, timeout_s, cold):
    node = device.of_folder(folder)
    stderr_path = folder / ".stderr"
    stdout_path = folder / ".stdout"
    caches_dropped = settle(cold)
    watch = _Watch(folder)
    processes = []
    beside = []
    usages = []
    try:
        with open(stderr_path, "wb") as stderr, open(stdout_path if job.capture else job.output or os.devnull, "wb") as stdout:
            before = device.traffic(node) if node else None
            started = time.monotonic()
            if job.alongside:
                beside.append(_start(job.alongside, None, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr))
            feed = subprocess.DEVNULL
            for index, words in enumerate(job.pipeline):
                last = index + 1 == len(job.pipeline)
                process = _start(words, group, stdin=feed, stdout=stdout if last else subprocess.PIPE, stderr=stderr)
                if feed is not subprocess.DEVNULL:
                    feed.close()  # the child has it; held here, a closed pipe would never be noticed
                feed = process.stdout
                processes.append(process)
            watch.pid = processes[-1].pid
            overdue = threading.Timer(timeout_s, lambda: _kill(processes + beside))
            overdue.daemon = True
            overdue.start()
            try:
                for process in processes:
                    _, status, usage = os.wait4(process.pid, 0)
                    process.returncode = os.waitstatus_to_exitcode(status)
                    usages.append(usage)
                for process in beside:
                    process.wait()
            finally:
                overdue.cancel()
            ended = time.monotonic()
            settle(cold)
            settled = time.monotonic()
            after = device.traffic(node) if node else None
        limit = memory_limit_bytes if group else None
        _check(job, processes + beside, stderr_path, ended - started >= timeout_s, timeout_s, limit)
        moved = after - before if node else None
        return Cost(
            command=job.command_line(),
            wall_s=ended - started,
            settle_s=settled - ended,
            cpu_s=sum(usage.ru_utime + usage.ru_stime for usage in usages),
            rss_peak_bytes=_rss_peak(usages[-1], watch),
            device_read_bytes=moved.read_bytes if moved else None,
            device_written_bytes=moved.written_bytes if moved else None,
            disk_peak_bytes=watch.end(),
            memory_limit_bytes=memory_limit_bytes if group else None,
            memory_peak_bytes=limits.peak_of(group) if group else None,
            caches_dropped=caches_dropped,
            text=stdout_path.read_text() if job.capture else None,
        )
    finally:
        _kill(processes + beside)
        for process in processes + beside:
            if process.returncode is None:
                process.wait()
        watch.end()
        stderr_path.unlink(missing_ok=True)
        stdout_path.unlink(missing_ok=True)


def _check(job, processes, stderr_path, overdue, timeout_s, limit):
    if overdue:
        raise JobError(f"ended after {timeout_s:.0f} s: {job.command_line()}")
    for words, process in zip((*job.pipeline, job.alongside), processes):
        code = process.returncode
        if code == 0:
            continue
        how = f"signal {-code}" if code < 0 else f"exit {code}"
        if code == -signal.SIGKILL and limit is not None:
            how += f" (more memory than {limit} bytes?)"
        said = stderr_path.read_bytes()[-STDERR_BYTES_SHOWN:].decode(errors="replace").strip()
        raise JobError(f"{how}: {shlex.join(str(word) for word in words)}\n{said}".rstrip())
