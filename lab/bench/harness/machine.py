"""A description of the machine that the results were measured on."""

import datetime
import os
import platform
import re
from pathlib import Path

from . import device


def _first(path, pattern, default):
    try:
        found = re.search(pattern, Path(path).read_text(), re.MULTILINE)
    except OSError:
        return default
    return found.group(1).strip() if found else default


def file_system(folder):
    """Type of the file system that holds `folder`."""
    best = ("", "unknown")
    real = os.path.realpath(folder)
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mounted_on, kind = line.split()[:3]
        inside = real == mounted_on or real.startswith(mounted_on.rstrip("/") + "/")
        if inside and len(mounted_on) >= len(best[0]):
            best = (mounted_on, kind)
    return best[1]


def describe(folder):
    """The machine, and the disk under `folder`, as a dict for the results."""
    return {
        "cpu": _first("/proc/cpuinfo", r"^model name\s*:\s*(.*)$", platform.machine()),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": int(_first("/proc/meminfo", r"^MemTotal:\s*(\d+) kB", "0")) * 1024,
        "kernel": platform.release(),
        "system": _first("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)', platform.system()),
        "disk": device.name(device.of_folder(folder)),
        "file_system": file_system(folder),
    }


def slug(machine):
    """A short name of the machine for a folder of results, such as `xeon-2-cores-24-gib`."""
    cpu = re.sub(r"\((R|TM)\)|CPU|Processor|@.*|Intel|AMD", " ", machine["cpu"], flags=re.IGNORECASE)
    words = re.findall(r"[a-z0-9.]+", cpu.lower())[:3]
    gib = round(machine["memory_bytes"] / 2**30)
    return "-".join([*words, f"{machine['cores']}-cores", f"{gib}-gib"])


def kept_results(results, machine, suffix):
    """The newest folder of this machine in `results` whose name ends so, else one of today. So a run after midnight continues too."""
    earlier = sorted(results.glob(f"????-??-??-{slug(machine)}{suffix}"))
    return earlier[-1] if earlier else results / results_folder(machine, suffix)


def results_folder(machine, suffix=""):
    """The name of the folder for the results of today, such as `2026-11-23-xeon-2-cores-24-gib`."""
    return f"{datetime.date.today().isoformat()}-{slug(machine)}{suffix}"
