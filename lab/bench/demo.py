#!/usr/bin/env python3
"""Shows Merganser on data several times larger than the memory it is given: `make demo`.

Two data sets, 1 GB of the Sort Benchmark's records and the lines of a kernel's source, are each sorted
by GNU sort, by `merganser sort -o` and by `merganser sort --view`, with the same memory. The view is
read through a mount; view, file and GNU sort's file must be the same bytes, and in order.

With --disks (`make demo-disks`), the records are sorted on an emulated hard disk and on an emulated SSD
instead: a page of each shows what the disk saw, and how late the emulation was. That needs root, FUSE, and
memory for the disk. As in the Hadoop study, the emulation has a processor of its own, the time of the way to
it is measured, and the clock may be slower: the seconds are those of the disk, and processor and memory count
as that much faster.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness import emulated, measure
from harness.measure import Job, JobError
from harness.signals import end_orderly
from harness.tools import GENSORT_ORDER, GNU, REPOSITORY, cores

MIB = 2**20
GB = 10**9

FOLDER = REPOSITORY / "demo"
MERGANSER = REPOSITORY / "target/demo/merganser"

DISK_BYTES = 6 * GB
GENSORT_RECORDS = 10_000_000
TEXT_BYTES = 600 * 10**6
MEMORY_BYTES = 128 * MIB
SMALLEST_MEMORY_BYTES = 32 * MIB
# Memory that a job's processes may use in addition. It covers the page cache, which could otherwise hold all the data.
OVERHEAD_BYTES = 128 * MIB

SOURCE_SUFFIXES = (".c", ".h", ".S", ".rs", ".py", ".rst", ".md", ".txt", ".dts", ".dtsi", ".json")
FETCH_TIMEOUT_S = 300
MOUNT_TIMEOUT_S = 30

# Each with how many times as slow its clock is. A request of the SSD takes about as long as a thread needs to wake up: in
# real time, the machine is too slow for it (docs/lab/ssd-hadoop.md, "Other speeds of the clock").
DEVICES = {"barracuda": 2, "830": 4}
# Input, runs and result, and room for the file system.
EMULATED_BYTES = 5 * GB
IN_MEMORY = Path("/dev/shm")


class Failed(Exception):
    """The demonstration can't continue, or a check failed; the text gives the reason."""


@dataclass(frozen=True)
class DataSet:
    """Data to sort, and how."""

    name: str
    path: Path
    order: tuple
    memory_bytes: int


def say(text=""):
    """Prints text for the user."""
    print(text, flush=True)


def run(*words, timeout_s=600):
    """Runs a command that must succeed, and returns what it printed."""
    ran = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=timeout_s)
    if ran.returncode != 0:
        raise Failed(f"{' '.join(map(str, words))}: {ran.stderr.strip() or f'exit {ran.returncode}'}")
    return ran.stdout.strip()


# --- data ---------------------------------------------------------------------------------------


def gensort():
    """Printable records of the Sort Benchmark, so that GNU sort can read them too."""
    path = FOLDER / "gensort.txt"
    if not path.exists():
        say(f"making {GENSORT_RECORDS * 100 / GB:g} GB of 100-byte records")
        partial = path.with_suffix(".partial")
        run(MERGANSER, "generate", "--format", "ascii", "--records", GENSORT_RECORDS, "-o", partial)
        partial.rename(path)
    return DataSet("gensort", path, GENSORT_ORDER, MEMORY_BYTES)


def text():
    """Lines of real text: a kernel's source from apt. If apt has none, sources that are on this machine."""
    path = FOLDER / "text.txt"
    if not path.exists():
        partial = path.with_suffix(".partial")
        fill(partial, kernel_files())
        if partial.stat().st_size == 0:
            say("no kernel source from apt: taking the sources and word lists that are on this machine")
            fill(partial, local_files())
        partial.rename(path)
    size = path.stat().st_size
    memory = min(MEMORY_BYTES, max(SMALLEST_MEMORY_BYTES, size // 5 // MIB * MIB))
    return DataSet("text", path, ("--format", "lines"), memory)


def fill(path, contents):
    """Writes the contents of files one after the other until there is enough, and ends the last line of each."""
    with open(path, "wb") as out:
        for content in contents:
            out.write(content if content.endswith(b"\n") else content + b"\n")
            if out.tell() >= TEXT_BYTES:
                break


def kernel_files():
    """The source files of the kernel package that apt knows, straight from its archive."""
    package = kernel_package()
    if package is None:
        return
    say(f"fetching {package} for its text")
    for old in FOLDER.glob("linux-source-*.deb"):
        old.unlink()
    fetched = subprocess.run(
        ["apt-get", "-qq", "download", package], cwd=FOLDER, capture_output=True, timeout=FETCH_TIMEOUT_S
    )
    archives = list(FOLDER.glob("linux-source-*.deb"))
    if fetched.returncode != 0 or len(archives) != 1:
        return
    try:
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archives[0]], stdout=subprocess.PIPE) as unpack:
            try:
                yield from nested_files(unpack.stdout)
            finally:
                unpack.kill()  # it may have more to say than was asked for
    finally:
        archives[0].unlink()


def kernel_package():
    """The name of the newest package with a kernel's source, or None."""
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        return None

    def known():
        listed = subprocess.run(
            ["apt-cache", "search", "--names-only", r"^linux-source-[0-9.]+$"], capture_output=True, text=True, timeout=60
        ).stdout
        return sorted(re.findall(r"^(linux-source-[0-9.]+) ", listed, re.MULTILINE), key=version)

    packages = known()
    if not packages and os.geteuid() == 0:
        subprocess.run(["apt-get", "-qq", "update"], capture_output=True, timeout=FETCH_TIMEOUT_S)
        packages = known()
    return packages[-1] if packages else None


def version(package):
    """The numbers in a package's name, to order by."""
    return [int(number) for number in re.findall(r"\d+", package)]


def nested_files(stream):
    """Contents of the source files in the tar archive within the tar archive `stream`."""
    with tarfile.open(fileobj=stream, mode="r|") as outer:
        for member in outer:
            if not re.search(r"\.tar\.(xz|bz2|gz)$", member.name) or not member.isfile():
                continue
            with tarfile.open(fileobj=outer.extractfile(member), mode="r|*") as inner:
                for file in inner:
                    if file.isfile() and file.size and file.name.endswith(SOURCE_SUFFIXES):
                        yield inner.extractfile(file).read()
            return


def local_files():
    """Contents of text that a machine with a Rust toolchain has anyway."""
    cargo = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    for top in (Path("/usr/share/dict"), cargo / "registry" / "src", Path("/usr/include")):
        for folder, _, names in sorted(os.walk(top)):
            for name in sorted(names):
                path = Path(folder) / name
                is_text = path.suffix in SOURCE_SUFFIXES or top.name == "dict"
                if is_text and path.is_file() and not path.is_symlink() and path.stat().st_size:
                    yield path.read_bytes()


# --- sorting and comparing ----------------------------------------------------------------------


@contextmanager
def mounted(view, memory):
    """The view as a regular file, for as long as the block lasts."""
    point = FOLDER / "mount"
    point.mkdir(exist_ok=True)
    server = subprocess.Popen([MERGANSER, "mount", view, point, "--memory", str(memory)], stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + MOUNT_TIMEOUT_S
        while not os.path.ismount(point):
            if server.poll() is not None:
                raise Failed(f"the mount ended: {server.stderr.read().strip()}")
            if time.monotonic() > deadline:
                raise Failed(f"nothing was mounted on {point} within {MOUNT_TIMEOUT_S} s")
            time.sleep(0.02)
        (file,) = point.iterdir()
        yield file
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(MOUNT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            subprocess.run(["umount", "-l", point], check=False, timeout=60)
            server.kill()
            server.wait()
        point.rmdir()


def same(one, other):
    """Compares two files byte by byte."""
    run("cmp", one, other)
    say(f"  equal: {one.name} and {other.name}")


def show(data):
    """Sorts one data set in each way, proves the results equal and valid, and returns the table's rows."""
    size = data.path.stat().st_size
    memory = data.memory_bytes
    say(f"\n{data.name}: {size / GB:.2f} GB with {memory // MIB} MiB of memory, {size / memory:.1f} times as much data")
    temp = FOLDER / "temp"
    gnu, file, view = FOLDER / f"{data.name}.gnu", FOLDER / f"{data.name}.sorted", FOLDER / f"{data.name}.view"
    clean = [temp, gnu, file, view]
    rows = []

    def measured(what, *words):
        cost = measure.run(Job((words,)), FOLDER, memory + OVERHEAD_BYTES)
        say(f"  {what}: {cost.wall_s:.1f} s")
        rows.append((data.name, what, cost))

    try:
        discard(clean)
        temp.mkdir()
        ours = (MERGANSER, "sort", data.path, *data.order, "--memory", memory, "--temp-dir", temp)
        measured(
            "GNU sort -o", *GNU, "sort", "-S", f"{memory}b", f"--parallel={cores()}", "-T", temp, "-o", gnu, data.path
        )
        measured("merganser sort -o", *ours, "-o", file)
        measured("merganser sort --view", *ours, "--view", view)
        if os.path.exists("/dev/fuse"):
            with mounted(view, memory) as sorted_file:
                measured("the view read through its mount", "cat", sorted_file)
                same(sorted_file, file)
                same(sorted_file, gnu)
        else:
            say("  /dev/fuse is not there: the view is read with merganser cat, not through a mount")
            copy = FOLDER / f"{data.name}.copy"
            clean.append(copy)
            measured("merganser cat of the view", MERGANSER, "cat", view, "--memory", memory)
            run("sh", "-c", 'exec "$0" cat "$1" > "$2"', MERGANSER, view, copy)
            same(copy, file)
            same(copy, gnu)
        say(f"  verified {file.name}: {one_line(run(MERGANSER, 'verify', *data.order, file))}")
        say(f"  verified {view.name}: {one_line(run(MERGANSER, 'verify', view))}")
    finally:
        discard(clean)
    return rows


def without_disks():
    """Why no disk can be emulated here, or None."""
    if os.geteuid() != 0:
        return "that needs root"
    if not os.path.exists("/dev/fuse"):
        return "/dev/fuse is not there"
    missing = [name for name in ("losetup", "mkfs.ext4", "chrt") if not shutil.which(name)]
    if missing:
        return f"{missing[0]} is not installed"
    if not IN_MEMORY.is_dir() or shutil.disk_usage(IN_MEMORY).free < EMULATED_BYTES:
        return f"{IN_MEMORY} has less than {EMULATED_BYTES / GB:g} GB for it"
    if available_bytes() < EMULATED_BYTES:
        return f"less than {EMULATED_BYTES / GB:g} GB of memory are available for it"
    return None


def available_bytes():
    """Memory that programs can still get."""
    found = re.search(r"^MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def give_memory(image):
    """Gives every page of a file in memory its memory. A page that the kernel must find first makes a write late."""
    with open(image, "r+b") as file:
        for place in range(0, os.fstat(file.fileno()).st_size, MIB):
            os.pwrite(file.fileno(), os.pread(file.fileno(), MIB, place), place)


def on_emulated_disks(data):
    """Sorts a data set on each emulated disk. Returns lines about it; a page for each disk is in the folder."""
    reason = without_disks()
    if reason:
        return [f"No sort on emulated disks: {reason}."]
    lines = []
    try:
        with emulated.own_cpu_left(), tempfile.TemporaryDirectory(prefix="merganser-demo-", dir=IN_MEMORY) as memory:
            path_us = emulated.path_us(MERGANSER, FOLDER, Path(memory))
            say(f"\na request takes {path_us} us to an emulated disk and back")
            for device, slower in DEVICES.items():
                lines.append(on_emulated_disk(data, device, slower, path_us, Path(memory) / "disk.img"))
    except (emulated.EmulationError, OSError) as error:
        # E.g. a container without loop devices. The results so far are valid.
        return [*lines, f"No sort on emulated disks: {error}."]
    return lines


def on_emulated_disk(data, device, slower, path_us, image):
    """Sorts a data set on one emulated disk, whose clock is `slower`. Returns a line about it."""
    clock = f"clock {slower} times as slow as the wall's" if slower > 1 else "real time"
    say(f"{data.name} on an emulated {device}, with {data.memory_bytes // MIB} MiB of memory; {clock}")
    mount = FOLDER / "disk"
    emulated.make_file_system(image, EMULATED_BYTES)
    with emulated.plain(image, mount) as disk:
        shutil.copyfile(data.path, disk / "input")
    give_memory(image)
    with emulated.emulated(MERGANSER, device, image, FOLDER, mount, path_us, slower, f"{device}.html") as emulation:
        temp, result = mount / "temp", mount / "sorted"
        temp.mkdir()
        words = (MERGANSER, "sort", mount / "input", *data.order, "--memory", data.memory_bytes, "--temp-dir", temp)
        cost = measure.run(Job(((*words, "-o", result),)), mount, data.memory_bytes + OVERHEAD_BYTES)
        run(MERGANSER, "verify", *data.order, result)
    image.unlink()
    mount.rmdir()
    (FOLDER / "door").rmdir()
    lag = lag_of(emulation.said())
    seconds = cost.durable_s / slower
    say(f"  {seconds:.1f} s of the disk until the result was on it; {lag}")
    return f"Sorted on an emulated {device} in {seconds:.1f} s of the disk ({clock}; {lag}): {FOLDER / device}.html"


def lag_of(said):
    """The lag, and whether the run is valid, from what `merganser emulate` printed."""
    lag = re.search(r"^lag +(.*?);", said, re.MULTILINE)
    valid = "" if "THIS RUN IS NOT VALID" not in said else "NOT VALID, the machine was too slow: "
    return valid + (lag[1] if lag else "no lag was reported")


def discard(paths):
    """Removes files and folders that exist."""
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def one_line(said):
    """Several lines as one."""
    return "; ".join(line.strip() for line in said.splitlines() if line.strip())


def table(rows):
    """Prints the table of costs."""
    def mb(count):
        return "-" if count is None else f"{count / 10**6:.0f}"

    lines = [("data", "what", "seconds", "read MB", "written MB", "peak RSS MiB")]
    for name, what, cost in rows:
        lines.append((name, what, f"{cost.wall_s:.1f}", mb(cost.device_read_bytes), mb(cost.device_written_bytes),
                      f"{cost.rss_peak_bytes / MIB:.0f}"))  # fmt: skip
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for line in lines:
        left, right = line[:2], line[2:]
        cells = [cell.ljust(width) for cell, width in zip(left, widths)]
        cells += [cell.rjust(width) for cell, width in zip(right, widths[2:])]
        say("  ".join(cells))


def main(with_disks):
    """Make the data, show each set, print the table; or sort the records on emulated disks."""
    FOLDER.mkdir(exist_ok=True)
    held = sum(path.stat().st_size for path in FOLDER.iterdir() if path.is_file())
    free = shutil.disk_usage(FOLDER).free
    if free + held < DISK_BYTES:
        raise Failed(f"{DISK_BYTES / GB:g} GB must be free in {FOLDER}, and {free / GB:.1f} GB are")
    records = gensort()
    if with_disks:
        say("\n".join(on_emulated_disks(records)))
        return
    rows = [row for data in (records, text()) for row in show(data)]

    say()
    table(rows)
    say("\nread, written: bytes the disk moved, what was still in memory at the end included.")
    if any(cost.memory_limit_bytes is None for *_, cost in rows):
        say("Not root, or without version 1 control groups: the page cache was not limited, so much of what a sort")
        say("reads and writes again never reached the disk. As root each job is held to its memory and "
            f"{OVERHEAD_BYTES // MIB} MiB.")  # fmt: skip
    say(f"The view, the file and GNU sort's file are the same bytes. Data is kept in {FOLDER}; `make clean` removes it.")


if __name__ == "__main__":
    end_orderly()
    try:
        main(with_disks=sys.argv[1:] == ["--disks"])
    except (Failed, JobError, emulated.EmulationError, OSError, subprocess.TimeoutExpired) as error:
        sys.exit(f"demo: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
