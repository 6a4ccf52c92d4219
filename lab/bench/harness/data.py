"""The inputs of the scenarios, from fixed seeds; all but the words are made by `merganser generate`."""

import itertools
import os
import random
import subprocess

from . import tools

SAMPLE_RECORDS = 50_000
GENERATE_TIMEOUT_S = 1800

# Rows without quotes, so that a program that splits lines at commas sees the same fields as one that
# reads csv: the number, the name, and three more.
PLAIN_ROWS = ("awk", "-F,", "NF == 5 && $1 ~ /^[0-9]+$/ && !/\"/")


def run(words):
    """Runs one command, not measured, that must succeed."""
    _pipe([words], os.devnull)


def _pipe(pipeline, output):
    """Runs a pipeline into the file `output`."""
    processes, feed = [], subprocess.DEVNULL
    try:
        with open(output, "wb") as file:
            for index, words in enumerate(pipeline):
                last = index + 1 == len(pipeline)
                process = subprocess.Popen(
                    [str(word) for word in words], stdin=feed, stdout=file if last else subprocess.PIPE
                )
                if feed is not subprocess.DEVNULL:
                    feed.close()
                feed = process.stdout
                processes.append(process)
            for process in processes:
                if process.wait(GENERATE_TIMEOUT_S) != 0:
                    raise subprocess.CalledProcessError(process.returncode, process.args)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()


def ascii_words(merganser, records, record_bytes=tools.GENSORT_RECORD_BYTES):
    """The command that prints `records` printable gensort records."""
    return (merganser, "generate", "--format", "ascii", "--records", records, "--record-size", record_bytes)


def make_ascii(merganser, path, size_bytes, record_bytes=tools.GENSORT_RECORD_BYTES):
    """A file of about `size_bytes` of gensort's printable records, which end with a line feed."""
    _pipe([ascii_words(merganser, max(1, size_bytes // record_bytes), record_bytes)], path)


FIXED_KEYS = ("uniform", "skewed", "sorted", "equal")
"""How the keys of records of one length are spread; the key is a record's first bytes."""
FIXED_KEY_BYTES = 10


def make_fixed(merganser, path, size_bytes, record_bytes, keys):
    """A file of about `size_bytes` of binary records of one length."""
    records = max(2, size_bytes // record_bytes)
    if keys == "equal":
        with open(path, "wb") as file:
            block = b"k" * record_bytes * max(1, 2**20 // record_bytes)
            left = records * record_bytes
            while left > 0:
                left -= file.write(block[:left])
        return
    skew = ("--skew",) if keys == "skewed" else ()
    words = ("--records", records, "--record-size", record_bytes, *skew)
    _pipe([(merganser, "generate", "--format", "gensort", *words)], path)
    if keys == "sorted":
        unsorted = path.with_suffix(".unsorted")
        path.rename(unsorted)
        key = f"0:{min(record_bytes, FIXED_KEY_BYTES)}"
        run((merganser, "sort", unsorted, "--format", f"fixed:{record_bytes}", "--key", key, "-o", path))
        unsorted.unlink()


def _make_sized(pipeline_of, path, size_bytes):
    """A file of about `size_bytes` from a pipeline that takes a number of records of unknown length."""
    _pipe(pipeline_of(SAMPLE_RECORDS), path)
    record_bytes = os.path.getsize(path) / SAMPLE_RECORDS
    _pipe(pipeline_of(max(1, round(size_bytes / record_bytes))), path)


def make_lines(merganser, path, size_bytes):
    """A file of about `size_bytes` of text lines of 20 to 119 bytes."""
    _make_sized(lambda records: [(merganser, "generate", "--format", "lines", "--records", records)], path, size_bytes)


def make_csv(merganser, path, size_bytes):
    """A file of about `size_bytes` of csv rows without header or quotes."""
    _make_sized(
        lambda records: [(merganser, "generate", "--format", "csv", "--records", records), PLAIN_ROWS], path, size_bytes
    )


VOCABULARY = 50_000
WORD_BLOCK_BYTES = 32 * 2**20


def make_words(merganser, path, size_bytes, distinct=VOCABULARY):
    """A file of `size_bytes` or a little less of lower-case words, 5 letters each on average, with 12 or so to a line.

    Their frequencies follow Zipf's law with exponent 1 over a vocabulary of `distinct` words. The text repeats after 32 MiB:
    no compressor of the scenarios looks back so far. One word occurs once, so that a search finds it.
    """
    del merganser
    rng = random.Random(15)
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = set()
    while len(vocabulary) < distinct:
        vocabulary.add("".join(rng.choices(letters, k=max(2, round(rng.gauss(5, 1.7))))))
    vocabulary = sorted(vocabulary)
    rng.shuffle(vocabulary)
    weights = list(itertools.accumulate(1 / rank for rank in range(1, distinct + 1)))
    block_bytes = min(WORD_BLOCK_BYTES, size_bytes)
    block = bytearray()
    while len(block) < block_bytes:
        words = rng.choices(vocabulary, cum_weights=weights, k=12 * 1024)
        block += "".join(" ".join(words[at : at + 12]) + "\n" for at in range(0, len(words), 12)).encode()
    block = bytes(block[: block.rindex(b"\n", 0, block_bytes) + 1])
    with open(path, "wb") as file:
        for _ in range(max(1, size_bytes // len(block))):
            file.write(block)
        file.write(b"qzxqzx\n")
