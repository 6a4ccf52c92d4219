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
import zlib
from pathlib import Path


def parsed(words):
    """Options with their values, and the other words."""
    options, others, words = {}, [], list(words)
    while words:
        word = words.pop(0)
        if word in ("--quiet", "--json", "--skew"):
            continue
        if word.startswith("-") and word != "-":
            options[word] = words.pop(0)
        else:
            others.append(word)
    return options, others


def generate(args):
    kind, records = args.get("--format", "ascii"), int(args["--records"])
    out = open(args["-o"], "w") if "-o" in args else sys.stdout
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
        out.write(text + "\n")


def sort(source, args):
    if os.environ.get("BREAK") == "exit":
        sys.exit("stand-in: broken on purpose")
    order = ["-t,", "-k2,2", "-k1,1n"] if args.get("--format") == "csv" else []
    if "--report" in args:
        told = {"device_read_bytes": 100, "device_written_bytes": 300, "peak_rss_bytes": 10**6, "memory_limit_bytes": 10**8}
        Path(args["--report"]).write_text(json.dumps(told))
    if "-o" not in args and "--view" not in args:
        subprocess.run(["sort", source], check=True, env={**os.environ, "LC_ALL": "C"})
        return
    out = Path(args["-o"]) if "-o" in args else Path(args["--view"]) / "sorted"
    out.parent.mkdir(exist_ok=True)
    subprocess.run(["sort", "-S", "16M", *order, "-o", out, source], check=True, env={**os.environ, "LC_ALL": "C"})
    if os.environ.get("BREAK") == "result":
        os.truncate(out, out.stat().st_size - 1)


def verify(path):
    """Says how many records there are and their checksum; fails if they are not in order."""
    lines = Path(path).read_bytes().splitlines(keepends=True)
    print(json.dumps({"records": len(lines), "checksum": sum(map(zlib.crc32, lines))}))
    sys.exit(lines != sorted(lines))


def map_words(ssdlet, source, args):
    """Counts words, or finds the lines with one of the keys."""
    if ssdlet == "matrix":
        Path(args["-o"]).write_bytes(b"product")
        return
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


def pipeline(source, args):
    """Runs one stage over all of its input, then the merge command. BREAK=pipeline makes it fail."""
    if os.environ.get("BREAK") == "pipeline":
        sys.exit("stand-in: broken on purpose")
    folder = Path(args["-o"] + ".work")
    folder.mkdir()
    _, stage = args["--stage"].split(":", 1)
    for command, places in ((stage, {"in": source, "out": folder / "0", "dir": folder}), (args["--merge"], {"outs": folder / "0"})):
        for name, path in places.items():
            command = command.replace("{" + name + "}", str(path))
        with open(args["-o"], "wb") as out:
            subprocess.run(["/bin/sh", "-c", command], check=True, stdout=out)
    shutil.rmtree(folder)


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
        generate(parsed(words[1:])[0])
    elif words[0] == "sort":
        args, (source,) = parsed(words[1:])
        sort(source, args)
    elif words[0] == "verify" and "--json" in words:
        verify(parsed(words[1:])[1][0])
    elif words[0] == "pipeline":
        args, (source,) = parsed(words[1:])
        pipeline(source, args)
    elif words[0] == "map":
        args, (ssdlet, source, *_) = parsed(words[1:])
        map_words(ssdlet, source, args)
    elif words[0] == "cat":
        pour(Path(words[1]) / "sorted")


main()
