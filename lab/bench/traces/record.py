#!/usr/bin/env python3
"""Records the traces of lab/papers/traces: a compile and a word count, with the hash of each written page.

    cargo fetch
    python3 lab/bench/traces/record.py --merganser target/release/merganser --sources DIR --text DIR --out DIR
    python3 lab/bench/traces/record.py --merganser target/release/merganser --kernel DIR --size 3G --out DIR

Needs root (FUSE, a loop device, mkfs.ext4), gcc, make and zstd, and 2 GB in --work. --sources is the folder `zstd/lib`
of the crate zstd-sys, and --text a folder of texts, such as the sources of all crates (~/.cargo/registry/src).
--kernel is a source tree of Linux with its `.config`; it needs flex, bison and bc, and 3 GB more. What has no option is
not recorded. All programs run on ext4 on a disk that `merganser emulate --device wd5000aakx` emulates: it records their
requests below the page cache.

1. On the same disk without a model (`--device null`), so that this takes no modelled time: mkfs.ext4, the
   sources, and a text for the word count.
2. compile: `make`: each source twice, as zstd's own Makefile does, for an archive and for a shared library.
3. kernel: `make` in the tree of Linux.
4. word count: `merganser map wordcount`, with so little memory that it spills to the disk; its rows, too.

Before each recording the file system is mounted anew, so its pages are read from the disk. A recording ends
after a sync. Contents are numbered in the order in which they are first written, so that the traces are
small: the page of zeros has number 0. Numbers of one trace mean nothing in another.
"""

import argparse
import glob
import os
import shutil
import signal
import subprocess
import sys
import time

# The hash of 4096 zeros (docs/formats.md).
ZEROS = "b6fb73fc46938c981e2b0b4b1ef282ad"
TEXT_BYTES = 48 << 20
MEMORY = "16M"


def run(*command, **more):
    return subprocess.run([str(word) for word in command], check=True, **more)


class Disk:
    """ext4 on an emulated disk."""

    def __init__(self, args, device, trace=None, fresh=False):
        self.door = os.path.join(args.work, "door")
        self.files = os.path.join(args.work, "files")
        for folder in (self.door, self.files):
            os.makedirs(folder, exist_ok=True)
        command = [args.merganser, "emulate", "--device", device, "--file", os.path.join(args.work, "disk.img")]
        command += ["--size", args.size, "--mount", self.door, *(["--trace", trace] if trace else [])]
        self.server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        disk = os.path.join(self.door, "disk")
        for _ in range(200):
            if os.path.exists(disk):
                break
            time.sleep(0.05)
        loop = ["losetup", "--find", "--show", "--direct-io=on", disk]
        self.loop = run(*loop, capture_output=True, text=True).stdout.strip()
        if fresh:
            # No thread of the kernel writes tables later.
            lazy = "lazy_itable_init=0,lazy_journal_init=0"
            run("mkfs.ext4", "-q", "-F", "-E", lazy, self.loop)
        run("mount", self.loop, self.files)

    def end(self):
        run("sync", "--file-system", self.files)
        run("umount", self.files)
        run("losetup", "-d", self.loop)
        time.sleep(1)
        self.server.send_signal(signal.SIGTERM)
        # 2: its answers were late. The trace has what programs asked for, whenever it was answered.
        if self.server.wait() not in (0, 2):
            sys.exit("the emulation failed")


MAKEFILE = """
SOURCES := $(wildcard common/*.c compress/*.c decompress/*.c dictBuilder/*.c legacy/*.c)
STATIC := $(SOURCES:%.c=static/%.o)
SHARED := $(SOURCES:%.c=shared/%.o)
CFLAGS := -O2 -g -DZSTD_DISABLE_ASM -DZSTD_LEGACY_SUPPORT=4 -I. -Icommon
all: libzstd.a libzstd.so
libzstd.a: $(STATIC)
\tar rcs $@ $^
libzstd.so: $(SHARED)
\tgcc -shared -o $@ $^
static/%.o: %.c
\t@mkdir -p $(@D)
\tgcc $(CFLAGS) -c -o $@ $<
shared/%.o: %.c
\t@mkdir -p $(@D)
\tgcc $(CFLAGS) -fPIC -c -o $@ $<
"""


def text(folder, to):
    """The texts of a folder, one after the other, in the order of their names."""
    written = 0
    with open(to, "wb") as out:
        for name in sorted(glob.glob(os.path.join(folder, "**", "*.rs"), recursive=True)):
            if written >= TEXT_BYTES:
                return
            with open(name, "rb") as source:
                written += out.write(source.read())


def number(trace, to):
    """Writes the trace with numbers for hashes."""
    numbers = {ZEROS: 0}
    with open(trace, encoding="ascii") as lines, open(to, "w", encoding="ascii") as out:
        for line in lines:
            fields = line.split()
            # The time that a request took is the emulation's, not the program's.
            if fields and fields[-1].startswith("+"):
                fields.pop()
            if not line.startswith("#") and len(fields) == 5:
                hashes = [numbers.setdefault(text, len(numbers)) for text in fields[4].split(",")]
                fields[4] = ",".join(f"{hash:x}" for hash in hashes)
            out.write((line.strip() if line.startswith("#") else " ".join(fields)) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--merganser", required=True, type=os.path.abspath)
    parser.add_argument("--sources", type=os.path.abspath)
    parser.add_argument("--text", type=os.path.abspath)
    parser.add_argument("--kernel", type=os.path.abspath)
    parser.add_argument("--out", required=True, type=os.path.abspath)
    parser.add_argument("--work", default="record-traces", type=os.path.abspath)
    parser.add_argument("--device", default="wd5000aakx")
    parser.add_argument("--size", default="1G", help="of the disk")
    args = parser.parse_args()
    if not (args.sources or args.text or args.kernel):
        parser.error("give --sources, --text or --kernel")
    os.makedirs(args.work)
    os.makedirs(args.out, exist_ok=True)

    disk = Disk(args, "null", fresh=True)
    jobs = {}
    make = ["make", f"-j{os.cpu_count()}"]
    if args.sources:
        tree = os.path.join(disk.files, "tree")
        shutil.copytree(args.sources, tree)
        with open(os.path.join(tree, "Makefile"), "w", encoding="ascii") as makefile:
            makefile.write(MAKEFILE)
        jobs["compile"] = (make, "tree")
    if args.kernel:
        shutil.copytree(args.kernel, os.path.join(disk.files, "linux"), symlinks=True)
        jobs["kernel"] = (make, "linux")
    if args.text:
        text(args.text, os.path.join(disk.files, "text"))
        words = [args.merganser, "map", "wordcount", "text", "-o", "words", "--memory", MEMORY, "--temp-dir", "."]
        jobs["wordcount"] = (words, ".")
    disk.end()

    for name, (command, folder) in jobs.items():
        trace = os.path.join(args.work, f"{name}.full")
        disk = Disk(args, args.device, trace=trace)
        log = os.path.join(args.work, f"{name}.log")
        with open(log, "w", encoding="utf-8") as out:
            run(*command, cwd=os.path.join(disk.files, folder), stdout=out, stderr=out)
        disk.end()
        small = os.path.join(args.work, f"{name}.trace")
        number(trace, small)
        run("zstd", "-19", "-q", "-f", small, "-o", os.path.join(args.out, f"{name}.trace.zst"))
    shutil.rmtree(args.work)


if __name__ == "__main__":
    main()
