"""Arguments that all functions share: memory, threads, temporary folders, progress."""

from __future__ import annotations

import os
import re
import sys
import time
import warnings
from pathlib import Path
from typing import Any, Callable, List, Optional, Union

PathLike = Union[str, "os.PathLike[str]"]
#: Bytes, or a text such as "512MB" or "2G"; sizes of files, too.
Memory = Union[int, str, None]
#: True for a line on standard error, or a function of (phase, done, total) in bytes.
ProgressArgument = Union[bool, Callable[[str, int, Optional[int]], Any]]

_SIZE = re.compile(r"(\d+)(?:\.(\d{1,9}))?\s*([kmgt]?)(i?b)?", re.IGNORECASE | re.ASCII)

# The default is a quarter of the memory that is available: a sort is rarely alone on a machine.
_SHARE = 4
# Assumed where the system does not say.
_UNKNOWN_BYTES = 1 << 30


def memory_bytes(memory: Memory) -> int:
    """The limit in bytes, at most what the machine has."""
    if memory is None:
        return max(_least_bytes("MemAvailable:") // _SHARE >> 20, 1) << 20
    found = bytes_of("memory", memory)
    machine = _least_bytes("MemTotal:")
    if found <= machine:
        return found
    # No sort has more than all of it, and the system ends a process that tries.
    less = machine // 8 * 7 >> 20 << 20
    what = f"memory: {memory} is more than the {machine >> 20} MiB that this machine or its control group has"
    warnings.warn(f"{what}; {less >> 20} MiB are used", stacklevel=4)
    return less


def bytes_of(name: str, size: Union[int, str]) -> int:
    """A size in bytes. A letter is a power of 1024, a letter with B one of 1000, as for the command."""
    if isinstance(size, int) and not isinstance(size, bool):
        found = size
    elif isinstance(size, str):
        match = _SIZE.fullmatch(size.strip())
        if not match:
            raise ValueError(f"{name}: {size!r} is no size; give bytes, or a text such as '512MB' or '2G'")
        whole, part, letter, unit = match.groups()
        base = 1000 if letter and (unit or "").lower() == "b" else 1024
        factor = base ** " kmgt".index(letter.lower() or " ")
        found = int(whole) * factor + (int(part) * factor // 10 ** len(part) if part else 0)
    else:
        raise TypeError(f"{name}: bytes or a text such as '512MB', not {type(size).__name__}")
    if not 0 < found < 1 << 63:
        raise ValueError(f"{name}: {size!r} is no size; give at least 1 byte")
    return found


def _least_bytes(name: str) -> int:
    """The bytes behind `name` of the system, or the limit of this process's control groups if that is less."""
    limits = []
    for line in _text("/proc/meminfo").splitlines():
        if line.startswith(name):
            limits.append(int(line.split()[1]) * 1024)
    for line in _text("/proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        if not controllers:
            mount, name = Path("/sys/fs/cgroup"), "memory.max"
        elif "memory" in controllers.split(","):
            mount, name = Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"
        else:
            continue
        folder = mount / group.lstrip("/")
        for above in [folder, *folder.parents]:
            if above.is_relative_to(mount):
                limit = _text(above / name).strip()
                limits += [int(limit)] if limit.isdigit() else []
    return min(limits, default=_UNKNOWN_BYTES)


def _text(path: Union[str, Path]) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def count(name: str, value: Optional[int], least: int, default: int) -> int:
    """A number of threads, rows and the like."""
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}: a whole number, not {type(value).__name__}")
    if not least <= value < 1 << 63:
        raise ValueError(f"{name}: at least {least}, not {value}")
    return value


def thread_count(threads: Optional[int]) -> int:
    """As many threads as the process may run at once, unless it is said."""
    return count("threads", threads, 1, len(os.sched_getaffinity(0)))


def path_of(name: str, path: PathLike) -> str:
    """The text of a path."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"{name}: a path, not {type(path).__name__}")
    text = os.fspath(path)
    if not isinstance(text, str):
        text = os.fsdecode(text)
    if not text:
        raise ValueError(f"{name}: the path is empty")
    return text


def temp_folders(temp: Union[PathLike, List[PathLike], None], beside: Optional[str]) -> List[str]:
    """Folders for temporary files: as said, $TMPDIR, or the folder of the result, which needs as much space anyway."""
    if isinstance(temp, (str, os.PathLike)):
        return [path_of("temp", temp)]
    if temp is not None:
        folders = [path_of("temp", folder) for folder in temp]
        if not folders:
            raise ValueError("temp: names no folder")
        return folders
    default = os.environ.get("TMPDIR")
    if default:
        return [default]
    return ["/tmp"] if beside is None else [os.path.dirname(beside.rstrip("/")) or "."]


class _Line:
    """One line on standard error that is written again and again, if that is a terminal."""

    def __init__(self) -> None:
        self.written = 0.0
        self.phase = ""

    def __call__(self, phase: str, done: int, total: Optional[int]) -> None:
        now = time.monotonic()
        if sys.stderr is None or (phase == self.phase and now - self.written < 0.2):
            return
        self.written, self.phase = now, phase
        of = f" of {total / 1e6:,.0f} MB, {min(100 * done // total, 100)} %" if total else " MB"
        sys.stderr.write(f"\r\x1b[Kmerganser: {phase} {done / 1e6:,.0f}{of}")
        sys.stderr.flush()

    def end(self) -> None:
        if self.phase and sys.stderr is not None:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def progress_of(progress: ProgressArgument) -> Optional[Callable[[str, int, Optional[int]], Any]]:
    """The function that is called about every 50 ms."""
    if progress is None or progress is False:
        return None
    if progress is True:
        return _Line() if sys.stderr is not None and sys.stderr.isatty() else None
    if not callable(progress):
        raise TypeError(f"progress: True or a function, not {type(progress).__name__}")
    return progress
