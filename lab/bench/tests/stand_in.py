"""Stands in for merganser and the example programs, so that the harness is tested without them.

    python stand_in.py merganser|raw_io|view_reads WORDS...

It sorts with GNU sort, and a "view" is a folder with the sorted file in it. The variable BREAK makes it
misbehave: `result` loses the last byte of what it sorts, `exit` makes `sort` fail.
"""

import collections
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path


def generate(args):
    kind, records = args["--format"], int(args["--records"])
    rng = random.Random(1)
    width = int(args.get("--record-size", 100))
    for number in range(records):
        if kind == "ascii":
            text = f"{rng.getrandbits(60):020d}".ljust(width - 2, "x") + "\r"
        elif kind == "lines":
            text = " ".join(rng.choices(["merganser", "run", "view", "fence"], k=rng.randint(4, 9)))
        else:
            name = rng.choice(["ann", "bob", '"quoted, name"'])
            text = f"{records - number},{name},here,{rng.random():.3f},note"
        sys.stdout.write(text + "\n")


def sort(source, args):
    if os.environ.get("BREAK") == "exit":
        sys.exit("stand-in: broken on purpose")
    order = ["-t,", "-k2,2", "-k1,1n"] if args.get("--format") == "csv" else []
    if "-o" not in args and "--view" not in args:
        subprocess.run(["sort", source], check=True, env={**os.environ, "LC_ALL": "C"})
        return
    out = Path(args["-o"]) if "-o" in args else Path(args["--view"]) / "sorted"
    out.parent.mkdir(exist_ok=True)
    subprocess.run(["sort", "-S", "16M", *order, "-o", out, source], check=True, env={**os.environ, "LC_ALL": "C"})
    if os.environ.get("BREAK") == "result":
        os.truncate(out, out.stat().st_size - 1)


def map_words(ssdlet, words):
    """Counts words, or finds the lines with one of the keys."""
    args, source = dict(zip(words[1::2], words[2::2])), words[0]
    file = sys.stdin.buffer if source == "-" else open(source, "rb")
    if source.endswith(("gz", "zst")):
        unpack = {"gz": ["zcat"], "zst": ["zstd", "-q", "-d", "-c"]}[source.rsplit(".", 1)[1]]
        file = subprocess.Popen([*unpack, source], stdout=subprocess.PIPE).stdout
    if ssdlet == "wordcount":
        rows = [b"%s\t%d\n" % row for row in sorted(collections.Counter(file.read().split()).items())]
    else:
        keys = Path(args["--keys"]).read_bytes().split() if "--keys" in args else [args["--key"].encode()]
        rows = [line for line in file if any(key in line for key in keys)]
    with open(args["-o"], "wb") if "-o" in args else sys.stdout.buffer as out:
        out.writelines(rows)


def pour(path):
    with open(path, "rb") as file:
        shutil.copyfileobj(file, sys.stdout.buffer)


def main():
    program, *words = sys.argv[1:]
    if program == "raw_io" and words[0] == "write":
        Path(words[1]).write_bytes(b"raw")
    elif program == "raw_io":
        pour(words[1])
    elif program == "view_reads":
        print(json.dumps({"reads": 10, "p50_us": 200.0}))
    elif words[0] == "generate":
        generate(dict(zip(words[1::2], words[2::2])))
    elif words[0] == "sort":
        sort(words[1], dict(zip(words[2::2], words[3::2])))
    elif words[0] == "map":
        map_words(words[1], [word for word in words[2:] if word != "--quiet"])
    elif words[0] == "cat":
        pour(Path(words[1]) / "sorted")


main()
