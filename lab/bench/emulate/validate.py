#!/usr/bin/env python3
"""Compares fio on an emulated disk with the same workload in virtual time.

    python3 lab/bench/emulate/validate.py --merganser target/release/merganser [--quick] [--priority] > table.md

For each device, pattern, size and depth: fio runs on `merganser emulate`, then `merganser simulate run`
plays the requests that fio issued, in their order and with as many in flight, so that both go to the same
places. The last ones to end don't count: as many as were in flight. The table has mean and 99th percentile of
both, their ratio, and the late requests of the emulation. A row is "missed" if one of its ratios is more than 5 %
away from 1, and "not valid" if the machine was too slow. If there is such a row, the exit status is 1.

The last table is the cost of the path: a model that takes no time (`--device null`), through FUSE, through a
loop device (root), and through NBD (fio needs its engine `nbd`). `--nbd` compares through NBD instead of FUSE.

`--priority` runs both programs as real-time processes (chrt, needs root), for machines that are not idle.
`--cpu N` gives the emulation processor N, and fio the others. `--awake` keeps those awake: a processor that sleeps
wakes fio late. `--slower N` emulates disks that are N times as slow; fio's times are then divided by N.
"""

import argparse
import atexit
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.signals import end_orderly  # noqa: E402

SPAN = "1G"
BAND = 0.05
"""How far from 1 the ratio of a measured time and the model's may be."""
PATTERNS = ("randread", "randwrite", "randrw", "read", "write")
"""By fio's names."""
KINDS = {"read": "R", "write": "W"}
"""Of requests: fio's word, and that of a trace."""
FULL = [(p, s, d) for p in PATTERNS for s in ("4k", "128k", "1m") for d in (1, 8, 32)]
QUICK = [("randread", "4k", 1), ("randread", "4k", 8), ("randrw", "64k", 4), ("read", "128k", 1), ("write", "1m", 4)]


def with_priority(priority, command):
    return (["chrt", "-r", str(priority)] if priority else []) + command


def fio_cpus(args):
    """The processors of fio: all but that of the emulation."""
    return [cpu for cpu in sorted(os.sched_getaffinity(0)) if cpu != args.cpu]


@contextlib.contextmanager
def awake(cpus):
    """Keeps processors from sleeping: a process of the lowest priority on each, which gives way to every other."""
    spinning = [
        subprocess.Popen(["chrt", "-i", "0", "taskset", "-c", str(cpu), sys.executable, "-c", "while True: pass"])
        for cpu in cpus
    ]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


class Disk:
    """An emulated disk in a folder of its own: a file, or a socket of NBD."""

    def __init__(self, args, options, filled=True, nbd=False):
        self.folder = tempfile.TemporaryDirectory()
        self.report = os.path.join(self.folder.name, "report.json")
        mount = os.path.join(self.folder.name, "m")
        os.mkdir(mount)
        socket = os.path.join(self.folder.name, "s")
        self.path = socket if nbd else os.path.join(mount, "disk")
        self.target = (
            ["--ioengine=nbd", f"--uri=nbd+unix:///disk?socket={socket}"]
            if nbd
            else ["--ioengine=libaio", f"--filename={self.path}"]
        )
        door = ["--nbd", socket] if nbd else ["--mount", mount]
        command = [args.merganser, "emulate", *door, "--report", self.report]
        command += ["--slower", str(args.slower), *([] if args.cpu is None else ["--cpu", str(args.cpu)])]
        command += ["--memory-backed", "--size", SPAN, *(["--filled"] if filled else []), *options]
        self.process = subprocess.Popen(
            with_priority(20 if args.priority else 0, command),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        # No mount of an interrupted run stays, and the folder is not removed before.
        atexit.register(self.stop)
        for _ in range(600):
            if os.path.exists(self.path):
                return
            time.sleep(0.05)
        sys.exit("the disk is not there: " + " ".join(command))

    def stop(self):
        """Ends the emulation in order, if it has not ended, and waits for it."""
        self.process.terminate()
        self.process.wait()

    def end(self):
        self.stop()
        with open(self.report) as file:
            report = json.load(file)
        self.folder.cleanup()
        return report


def fio(args, target, pattern, size, depth, log=None):
    """Runs fio, and returns what it says. The latency of each request, and where it went, are in files whose names begin
    with `log`."""
    cpus = ",".join(map(str, fio_cpus(args)))
    command = [*([] if args.cpu is None else ["taskset", "-c", cpus]), "fio", "--name=x", *target, "--direct=1"]
    command += [f"--rw={pattern}", f"--bs={size}", f"--iodepth={depth}", f"--size={SPAN}"]
    command += ["--time_based", f"--runtime={args.seconds}", "--output-format=json"]
    command += [f"--write_lat_log={log}", f"--write_iolog={log}_issued"] if log else []
    if pattern == "randrw":
        command.append("--rwmixread=70")
    done = subprocess.run(with_priority(10 if args.priority else 0, command), check=True, stdout=subprocess.PIPE)
    # The engine nbd says first that it is connected.
    return json.loads(done.stdout[done.stdout.index(b"{") :])["jobs"][0]


def of_kinds(times, depth):
    """The times of reads and of writes, sorted, of pairs of a kind and a time in the order in which requests ended.

    The last `depth` don't count: at its end, fio waits for all that are in flight, and takes the end of the last one
    for the end of each. Of the simulator's, the same number is left out: the last ones have waited longest."""
    counted = times[: max(len(times) - depth, 1)]
    return {kind: sorted(time for one, time in counted if one == kind) for kind in KINDS}


def seen_by_fio(log, slower):
    """The kind of each request, and its nanoseconds in the time of the disk, as they ended."""
    with open(f"{log}_lat.1.log", encoding="ascii") as file:
        rows = [line.split(", ") for line in file]
    return [(list(KINDS)[int(row[2])], int(row[1]) / slower) for row in rows]


def mean_and_p99(nanoseconds):
    """The mean and the 99th percentile of sorted times."""
    at = min(len(nanoseconds) - 1, -(-99 * len(nanoseconds) // 100) - 1)
    return sum(nanoseconds) / len(nanoseconds), nanoseconds[at]


def write_trace(log, path):
    """Makes a trace of the requests that fio issued."""
    with open(f"{log}_issued", encoding="ascii") as file:
        issued = [fields[-3:] for fields in map(str.split, file) if len(fields) > 3 and fields[-3] in KINDS]
    lines = ["# merganser trace 1", *(f"0 {KINDS[kind]} {offset} {size}" for kind, offset, size in issued)]
    with open(path, "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")


def simulated(args, device, trace, depth):
    """Plays a trace in virtual time, with `depth` requests in flight: the kind and the nanoseconds of each, as they ended."""
    played = f"{trace}.played"
    command = [args.merganser, "simulate", "run", "--device", device, f"--filled={SPAN}", "--latencies", played]
    command += ["--trace", trace, "--depth", str(depth)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with open(played, encoding="ascii") as file:
        rows = [line.split() for line in file if not line.startswith("#")]
    words = {letter: kind for kind, letter in KINDS.items()}
    rows.sort(key=lambda row: int(row[0]) + int(row[4]))
    return [(words[row[1]], int(row[4])) for row in rows]


def has_nbd():
    """Whether this fio can be a client of NBD."""
    return "nbd" in subprocess.run(["fio", "--enghelp"], capture_output=True, text=True, check=True).stdout.split()


def judged(ratios, valid):
    """The word of a row: whether all its ratios are within the band, in a run that counts."""
    if not valid:
        return "not valid"
    return "met" if all(abs(ratio - 1) <= BAND for ratio in ratios) else "missed"


def path_times(args):
    """The time of the way to the model and back, for a request and for each MiB that it reads or writes: the means of
    single requests to a model that takes no time."""
    disk = Disk(args, ["--device", "null"], filled=False, nbd=args.nbd)
    took = {}
    for pattern, size in (("write", "1m"), ("randwrite", "1m"), ("randread", "1m"), ("randread", "4k")):
        job = fio(args, disk.target, pattern, size, 1)
        took[pattern, size] = job["read" if "read" in pattern else "write"]["lat_ns"]["mean"] / 1e3
    disk.end()
    fixed = took["randread", "4k"]
    a_mib = [max(round(took[pattern, "1m"] - fixed), 0) for pattern in ("randread", "randwrite")]
    return round(fixed), ",".join(map(str, a_mib))


def compare(args, device, pattern, size, depth):
    """Prints the rows of a workload. Returns what they say."""
    path = ["--path-us", str(args.path_us), "--path-us-per-mib", args.path_us_per_mib]
    disk = Disk(args, ["--device", device, *path], nbd=args.nbd)
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "x")
        fio(args, disk.target, pattern, size, depth, log)
        seen = seen_by_fio(log, args.slower)
        report = disk.end()
        trace = os.path.join(folder, "trace")
        write_trace(log, trace)
        model = simulated(args, device, trace, depth)
    if len(seen) != len(model):
        sys.exit(f"{device}, {pattern}: fio says that {len(model)} requests were issued, and that {len(seen)} have ended")
    seen, model = of_kinds(seen, depth), of_kinds(model, depth)
    late = report["lag"]["late"] / max(1, report["lag"]["requests"]) * 100
    said = []
    for kind in KINDS:
        if not (seen[kind] and model[kind]):
            continue
        mean, p99 = mean_and_p99(seen[kind])
        want, want99 = mean_and_p99(model[kind])
        said.append(judged((mean / want, p99 / want99), report["valid"]))
        print(
            f"| {device} | {pattern} {kind} {size}, {depth} | {len(seen[kind])} | {mean / 1e3:.0f} | {want / 1e3:.0f} | {mean / want:.3f} "
            f"| {p99 / 1e3:.0f} | {want99 / 1e3:.0f} | {p99 / want99:.3f} "
            f"| {late:.2f} | {said[-1]} |",
            flush=True,
        )
    return said


def compare_all(args):
    """Prints the rows of all workloads. Returns what they say."""
    if args.path_us is None:
        args.path_us, a_mib = path_times(args)
        args.path_us_per_mib = args.path_us_per_mib or a_mib
    args.path_us_per_mib = args.path_us_per_mib or "0"
    print(f"path: {args.path_us} us, and {args.path_us_per_mib} us for each MiB of reads and of writes\n")
    print("| device | workload | requests | mean, us | virtual | ratio | p99, us | virtual | ratio | late, % | within 5 % |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    said = []
    for device in filter(None, args.devices.split(",")):
        for pattern, size, depth in QUICK if args.quick else FULL:
            said += compare(args, device, pattern, size, depth)
    return said


def overhead(args):
    args.slower = 1
    print("\n| path, a model that takes no time | requests per second | MB/s | mean latency, us |\n|---|---|---|---|")
    for door in ("FUSE", "FUSE and loop", "NBD"):
        if door == "NBD" and not has_nbd():
            print("| NBD: this fio has no engine nbd | | | |")
            continue
        disk = Disk(args, ["--device", "null"], filled=False, nbd=door == "NBD")
        target, loop = disk.target, None
        if door == "FUSE and loop":
            made = subprocess.run(
                ["losetup", "--find", "--show", "--direct-io=on", disk.path],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            if made.returncode:
                print(f"| {door}: no loop device: {made.stderr.decode().strip()} | | | |")
                disk.end()
                continue
            loop = made.stdout.decode().strip()
            target = ["--ioengine=libaio", f"--filename={loop}"]
        for pattern, size, depth in (("randread", "4k", 1), ("randread", "4k", 32), ("read", "1m", 4), ("write", "1m", 4)):
            job = fio(args, target, pattern, size, depth)
            seen = job["read"] if "read" in pattern else job["write"]
            print(
                f"| {door}, {pattern} {size}, {depth} | {seen['iops']:.0f} | {seen['bw_bytes'] / 1e6:.0f} "
                f"| {seen['lat_ns']['mean'] / 1e3:.0f} |",
                flush=True,
            )
        if loop:
            subprocess.run(["losetup", "--detach", loop], check=True)
        disk.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--merganser", default="target/release/merganser")
    parser.add_argument("--devices", default="barracuda,830,jasmine")
    parser.add_argument("--seconds", type=int, default=20, help="of each run of fio")
    parser.add_argument("--path-us", type=int, help="see merganser emulate --help [measured]")
    parser.add_argument("--path-us-per-mib", metavar="N|R,W", help="the same [measured, or 0 with --path-us]")
    parser.add_argument("--cpu", type=int, metavar="N", help="give the emulation processor N, and fio the others")
    parser.add_argument("--slower", type=int, default=1, metavar="N", help="emulate disks that are N times as slow")
    parser.add_argument("--quick", action="store_true", help="five workloads instead of 45")
    parser.add_argument("--nbd", action="store_true", help="through NBD instead of FUSE")
    parser.add_argument("--priority", action="store_true", help="real-time priorities; needs root")
    parser.add_argument("--awake", action="store_true", help="keep fio's processors awake")
    parser.add_argument("--no-overhead", action="store_true")
    args = parser.parse_args()
    if args.slower < 1:
        parser.error("--slower must be at least 1")
    if args.nbd and not has_nbd():
        sys.exit("--nbd: this fio has no engine nbd")
    # Else SIGTERM would leave the processes that keep processors awake.
    end_orderly()
    with awake(fio_cpus(args) if args.awake else []):
        said = compare_all(args)
    if said:
        print(f"\n{said.count('met')} of {len(said)} rows met, {said.count('missed')} missed, {said.count('not valid')} not valid")
    if not args.no_overhead:
        overhead(args)
    sys.exit(0 if said.count("met") == len(said) else 1)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
