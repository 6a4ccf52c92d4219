"""What the JVMs of tasks took: processor, memory, reads.

Hadoop's own counters end before a task's JVM does, so a thread looks at `/proc` many times a second. The last look is at
most a period before the end of a JVM.
"""

import os
import re
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

PERIOD_S = 0.04
SERIES_S = 1.0
"""The step of a series."""
PROC = Path("/proc")
MASTER = "master"
_TICKS = os.sysconf("SC_CLK_TCK")
_NOT_YET = ("bash", "sh", "setsid")
"""The programs that a container runs before it becomes Java."""


@dataclass
class Taken:
    """Processor time, memory and reads of one process so far."""

    cpu_s: float = 0.0
    rss_peak_bytes: int = 0
    read_chars: int = 0
    """Bytes that its system calls have read, from files and sockets: `rchar`."""
    read_disk_bytes: int = 0
    """Bytes that were fetched from a disk for it: `read_bytes`."""


def kind_of(command):
    """`m` or `r` for the JVM of a task, `master` for that of a job's master, None for another program."""
    attempt = re.search(r"YarnChild\0.*?attempt_\d+_\d+_([mr])_", command, re.DOTALL)
    if attempt:
        return attempt[1]
    return MASTER if "MRAppMaster" in command else None


def cpu_s(stat):
    """Processor seconds, from the text of `/proc/PID/stat`."""
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def machine_cpu_s(stat=None):
    """Processor seconds of all programs and of the kernel since the machine was started."""
    text = (PROC / "stat").read_text() if stat is None else stat
    user, nice, system, _, _, irq, softirq = map(int, text.split("\n")[0].split()[1:8])
    return (user + nice + system + irq + softirq) / _TICKS


def taken(place):
    """The figures of the process at a folder of `/proc`."""
    numbers = dict(re.findall(r"^(\w+):\s*(\d+)", (place / "io").read_text(), re.MULTILINE))
    high = re.search(r"^VmHWM:\s*(\d+) kB", (place / "status").read_text(), re.MULTILINE)
    return Taken(
        cpu_s((place / "stat").read_text()),
        int(high[1]) * 1024 if high else 0,
        int(numbers["rchar"]),
        int(numbers["read_bytes"]),
    )


class Series:
    """The amount taken in each second, from totals that only grow."""

    def __init__(self, started_s):
        self._next_s = started_s
        self._totals, self._steps = None, defaultdict(list)

    def look(self, now_s, totals):
        """Asks for the totals by name when a step has ended. A late look ends all steps that have passed, evenly."""
        if now_s < self._next_s:
            return
        now, steps = totals(), int((now_s - self._next_s) / SERIES_S) + 1
        for name, total in now.items() if self._totals else ():
            self._steps[name] += [(total - self._totals[name]) / steps] * steps
        self._totals, self._next_s = now, self._next_s + steps * SERIES_S

    def told(self):
        """The steps by name, ready for JSON."""
        return {"every_s": SERIES_S, **{name: [round(one, 3) for one in steps] for name, steps in self._steps.items()}}


class Watch:
    """Follows the JVMs that start while it is open, and what `others` have taken, by name: functions of processor seconds."""

    def __init__(self, proc=PROC, others=None):
        self._proc = proc
        self._more, self._series = others or {}, Series(time.monotonic())
        self._others = set(self._numbers())
        self._kinds = {}
        self._taken = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    def _numbers(self):
        return [name for name in os.listdir(self._proc) if name.isdigit()]

    def _follow(self):
        self._sample()
        while not self._ended.wait(PERIOD_S):
            self.look()
            self._sample()

    def _sample(self):
        self._series.look(time.monotonic(), self._totals)

    def _totals(self):
        tasks = sum(one.cpu_s for name, one in self._taken.items() if self._kinds[name] != MASTER)
        return {"tasks": tasks, **{name: seconds() for name, seconds in self._more.items()}}

    def series(self):
        """Processor seconds that the JVMs of tasks and the others took in each second since it was opened."""
        return self._series.told()

    def look(self):
        """Looks once."""
        for name in self._numbers():
            if name not in self._others:
                try:
                    self._look_at(name)
                except (OSError, KeyError, IndexError):
                    # It ended meanwhile.
                    continue

    def _look_at(self, name):
        place = self._proc / name
        if name not in self._kinds:
            is_called = (place / "comm").read_text().strip()
            if is_called in _NOT_YET:
                return
            kind = kind_of((place / "cmdline").read_text())
            if kind is None:
                # A new process is Python or Java for a moment before it is what it will be.
                if is_called == "java":
                    self._others.add(name)
                return
            self._kinds[name] = kind
        now = taken(place)
        if now.rss_peak_bytes:
            # One that has ended and not been waited for has no memory any more.
            self._taken[name] = now

    def by_kind(self):
        """The figures of all JVMs, a list for each kind."""
        found = defaultdict(list)
        for name, one in self._taken.items():
            found[self._kinds[name]].append(one)
        return found
