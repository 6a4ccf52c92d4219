#!/usr/bin/env python3
"""Measures a hybrid volume through NBD against `nbdkit file` on the same disk, in the same minutes.

    python3 lab/bench/volume/nbd.py --merganser target/release/merganser [--dir DIR] [--size 512M] [--minutes 5]

Needs fio with its engine `nbd`, and nbdkit. DIR is on the disk to measure (default: the current folder); it
needs four times --size. Each round runs servers in turn, each on a fresh volume. Those with a write cache, as
nbdkit's plugin `file` has one: nbdkit, and `merganser array serve --write-back` without deduplication, with it and
unique data, with it and half of the blocks duplicates, and without it and with a buffer that holds all writes. And
those that answer when a write is durable: nbdkit with the filter `fua` (fuamode=force), and `array serve` without
deduplication, with it, and with a large buffer. The other buffers are of the default size, a sixteenth of the volume
and at least 64 MiB. fio writes every block of 64 KiB once, in random order, 16 in flight, and flushes at the
end. Seconds are those of fio, flush included. Between runs all dirty pages are written back.

A bar is a median over the rounds of the ratio in each round. Rounds stop when the next one would pass
--minutes; fewer than three are said. Prints a table, and exits 1 if a bar is missed.

| bar | least or most |
|---|---|
| without deduplication, over nbdkit, either buffer | 0.8 |
| with it, unique data, over nbdkit | 0.5 |
| bytes written to the data members per byte, half duplicates | 0.55 |
| most resident memory with --memory 64M, MiB | 128 |
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

RSS_MIB = 64 + 64
UNIQUE, HALF = ["--refill_buffers=1"], ["--dedupe_percentage=50"]
PLAIN, HELD = ["--no-dedup"], ["--no-dedup", "--buffer-size", "{twice}"]
CACHED = ["--write-back"]
FORCED = ["--filter=fua"], ["fuamode=force"]
SERVERS = {
    # name: options of `array create`, of `array serve`, and of fio. Of nbdkit: None, and its filter with a setting.
    "nbdkit": (None, ([], []), UNIQUE),
    "plain": (PLAIN, CACHED, UNIQUE),
    "unique": ([], CACHED, UNIQUE),
    "half": ([], CACHED, HALF),
    "held": (HELD, CACHED, UNIQUE),
    "nbdkit-fua": (None, FORCED, UNIQUE),
    "durable": (PLAIN, [], UNIQUE),
    "durable-unique": ([], [], UNIQUE),
    "durable-held": (HELD, [], UNIQUE),
}


def need(programs):
    missing = [name for name in programs if not shutil.which(name)]
    if missing:
        sys.exit(f"not installed: {', '.join(missing)}")
    engines = subprocess.run(["fio", "--enghelp"], capture_output=True, text=True, check=True).stdout
    if "nbd" not in engines.split():
        sys.exit("this fio has no engine nbd")


class Server:
    """A server on a fresh volume in a folder of its own."""

    def __init__(self, args, name, create, serve):
        self.folder = tempfile.mkdtemp(prefix="array-nbd-", dir=args.dir)
        self.socket = os.path.join(self.folder, "s")
        self.volume = os.path.join(self.folder, "vol.json")
        if create is None:
            plain = os.path.join(self.folder, "plain")
            with open(plain, "wb") as file:
                file.truncate(args.bytes)
            # Not for long paths: a socket's name has 107 bytes.
            options, settings = serve
            command = ["nbdkit", "-f", "-U", self.socket, *options, "file", plain, *settings]
            self.uri = f"nbd+unix:///?socket={self.socket}"
        else:
            members = ["--data", os.path.join(self.folder, "ssd"), "--buffer", os.path.join(self.folder, "hdd")]
            create = [part.replace("{twice}", str(2 * args.bytes)) for part in create]
            make = [args.merganser, "array", "create", self.volume, "--size", str(args.bytes), *members, *create]
            subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
            command = [args.merganser, "array", "serve", self.volume, "--nbd", self.socket, "--memory", "64M", *serve]
            self.uri = f"nbd+unix:///volume?socket={self.socket}"
        os.sync()
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        for _ in range(400):
            if os.path.exists(self.socket):
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        sys.exit(f"{name}: no socket")

    def peak_mib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            line = next(line for line in file if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(120)

    def remove(self):
        shutil.rmtree(self.folder)
        os.sync()


def drained(args, volume):
    """Bytes written to the data members per byte that fio wrote, once all pages have moved."""
    report = [args.merganser, "array", "report", volume, "--json"]
    facts = json.loads(subprocess.run(report, check=True, capture_output=True).stdout)
    facts = {**facts, **facts.get("counters", {})}
    # Pages that are still in the buffer have not been written, so they don't count.
    moved = facts["pages_stored"] + facts["pages_duplicate"]
    return facts["data_bytes_written"] / max(1, 4096 * moved)


def run(args, name):
    create, serve, more = SERVERS[name]
    server = Server(args, name, create, serve)
    try:
        fio = ["fio", "--name=w", "--ioengine=nbd", f"--uri={server.uri}", "--rw=randwrite", "--bs=64k"]
        fio += [f"--size={args.bytes}", "--iodepth=16", "--end_fsync=1", "--output-format=json", *more]
        started = time.monotonic()
        subprocess.run(fio, check=True, capture_output=True, cwd=server.folder)
        result = {"seconds": time.monotonic() - started, "peak_mib": server.peak_mib()}
        server.end()
        if name == "half":
            result["bytes"] = drained(args, server.volume)
        return result
    finally:
        if server.process.poll() is None:
            server.end()
        server.remove()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--merganser", required=True, type=os.path.abspath)
    parser.add_argument("--dir", default=".", type=os.path.abspath)
    parser.add_argument("--size", default="512M")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    args.bytes = int(args.size[:-1]) << {"M": 20, "G": 30}[args.size[-1]]
    need(["fio", "nbdkit"])

    began, rounds = time.monotonic(), []
    while len(rounds) < args.rounds:
        spent = time.monotonic() - began
        if rounds and spent + spent / len(rounds) > args.minutes * 60:
            break
        # Another server is first in each round.
        names = list(SERVERS)
        turn = len(rounds) % len(names)
        order = names[turn:] + names[:turn]
        runs = {name: run(args, name) for name in order}
        rounds.append(runs)
        seconds = ", ".join(f"{name} {runs[name]['seconds']:.2f}" for name in names)
        print(f"round {len(rounds)}: {seconds} s", file=sys.stderr)

    def median(of):
        return statistics.median(of(runs) for runs in rounds)

    def over(name, peer="nbdkit"):
        return median(lambda runs: runs[peer]["seconds"] / runs[name]["seconds"])

    peak = max(runs[name]["peak_mib"] for runs in rounds for name in SERVERS if not name.startswith("nbdkit"))
    rows = [
        ("without deduplication, over nbdkit", over("plain"), 0.8, True),
        ("the same with a buffer for all writes", over("held"), 0.8, True),
        ("with it, unique data, over nbdkit", over("unique"), 0.5, True),
        ("with it, half duplicates, over nbdkit", over("half"), None, True),
        ("durable, without deduplication, over nbdkit with fua", over("durable", "nbdkit-fua"), None, True),
        ("durable, with it, unique data, over nbdkit with fua", over("durable-unique", "nbdkit-fua"), None, True),
        ("durable, buffer for all writes, over nbdkit with fua", over("durable-held", "nbdkit-fua"), None, True),
        ("durable, without deduplication, over nbdkit", over("durable"), None, True),
        ("durable, with it, unique data, over nbdkit", over("durable-unique"), None, True),
        ("durable, buffer for all writes, over nbdkit", over("durable-held"), None, True),
        ("bytes to the data members per byte, half duplicates", median(lambda r: r["half"]["bytes"]), 0.55, False),
        ("most resident memory, MiB", peak, RSS_MIB, False),
    ]
    rate = median(lambda runs: args.bytes / 1e6 / runs["nbdkit"]["seconds"])
    print(f"{len(rounds)} rounds of {args.size}, nbdkit {rate:.0f} MB/s\n")
    print("| figure | measured | bar | |\n|---|---:|---:|---|")
    missed = len(rounds) < 3
    for what, value, bar, least in rows:
        met = bar is None or (value >= bar if least else value <= bar)
        missed |= not met
        judged = "-" if bar is None else "met" if met else "missed"
        print(f"| {what} | {value:.3f} | {bar if bar is not None else '-'} | {judged} |")
    if len(rounds) < 3:
        print("\nfewer than three rounds: give more --minutes or a smaller --size")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
