#!/usr/bin/env python3
"""Measures how fast `merganser simulate array` plays requests: requests for each second of processor time.

    python3 lab/bench/volume/simulate.py --merganser target/release/merganser [--rounds 3] [--requests 1000000]

The traces are made here: requests of 4 KiB at random pages of 4 GiB, a third of the writes repeat a content. A
run takes its processor time (user and system), less that of a trace of one request, which makes the devices
and fills the SSDs. Prints a table of medians; the bar is 0.5 million.
"""

import argparse
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile

PAGE, PAGES = 4096, 1 << 20
BAR = 0.5e6
# Name, share of reads, mean nanoseconds between requests.
LOADS = [("writes", 0.0, 500_000), ("half reads", 0.5, 500_000), ("reads", 0.9, 200_000)]


def trace(path, requests, reads, gap_ns):
    rng, at, contents = random.Random(5), 0, 0
    with open(path, "w", encoding="ascii") as out:
        out.write("# merganser trace 1\n")
        for _ in range(requests):
            at += int(rng.expovariate(1 / gap_ns))
            offset = rng.randrange(PAGES) * PAGE
            if rng.random() < reads:
                out.write(f"{at} R {offset} {PAGE}\n")
            else:
                again = contents > 0 and rng.random() < 1 / 3
                contents += not again
                content = 1 + rng.randrange(contents) if again else contents
                out.write(f"{at} W {offset} {PAGE} {content:x}\n")


def seconds(args, config, migration, path):
    def used():
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        return now.ru_utime + now.ru_stime

    before = used()
    command = [args.merganser, "simulate", "array", "--config", config, "--migration", migration]
    subprocess.run([*command, "--trace", path], check=True, stdout=subprocess.DEVNULL)
    return used() - before


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--merganser", required=True, type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--config", nargs="+", default=["hcdd", "hybrid", "ssds", "hdds"])
    args = parser.parse_args()
    least = float("inf")
    print("| configuration | load | million requests per second |\n|---|---|---:|")
    with tempfile.TemporaryDirectory() as folder:
        one = os.path.join(folder, "one")
        trace(one, 1, 0.0, 1)
        for name, reads, gap_ns in LOADS:
            path = os.path.join(folder, "trace")
            trace(path, args.requests, reads, gap_ns)
            for config in args.config:
                rates = []
                for _ in range(args.rounds):
                    spent = seconds(args, config, "idle", path) - seconds(args, config, "idle", one)
                    rates.append(args.requests / max(spent, 1e-3))
                rate = statistics.median(rates)
                print(f"| `{config}` | {name} | {rate / 1e6:.2f} |", flush=True)
                least = min(least, rate)
    sys.exit(0 if least >= BAR else 1)


if __name__ == "__main__":
    main()
