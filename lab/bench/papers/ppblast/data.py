"""Databases and queries: real sequences where Debian's packages with some are installed, and generated ones.

| package | files | letters |
|---|---|---|
| mmseqs2-examples | 20,000 proteins of UniProt, and 500 queries | protein |
| prokka | proteins of three genera of bacteria | protein |
| resfinder-db | resistance genes | dna |
| kleborate | alleles of Klebsiella | dna |

They are looked for below `/` and below the folder that SEQUENCES_DIR names, into which the packages may have been unpacked. All of
them together have some ten megabytes; the rest is made by `merganser generate`, with families whose members are known.
"""

import gzip
import mmap
import os
import re
import shutil
from pathlib import Path

VARIABLE = "SEQUENCES_DIR"
PLACES = {
    "protein": ("usr/share/doc/mmseqs2/example-data/DB.fasta.gz", "usr/share/prokka/db/genus"),
    "dna": ("usr/share/resfinder/db", "usr/lib/python3/dist-packages/kleborate/data"),
}
"""A file, or a folder of such files, below the root."""
QUERIES = "usr/share/doc/mmseqs2/example-data/QUERY.fasta.gz"
LEAST_BYTES = {"protein": 300, "dna": 1000}
"""Fewer than the mean of generated records, so that enough of them are made."""
GROUPS = 4096
"""Generated records among which queries are looked for."""


def _roots():
    unpacked = os.environ.get(VARIABLE)
    return [*([Path(unpacked)] if unpacked else []), Path("/")]


def real(letters):
    """The files of real sequences that are here, in a fixed order."""
    found = []
    for path in (root / place for root in _roots() for place in PLACES[letters]):
        # prokka's have no suffix; its indexes for BLAST have other ones.
        inside = sorted(path.iterdir()) if path.is_dir() else [path]
        found += [one for one in inside if one.is_file() and (one == path or one.suffix in ("", ".fsa", ".fasta", ".fa"))]
    return found


def _text(path):
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def letters_of(text):
    """The letters of a text in FASTA, dna or protein, by its first sequence; None for other texts."""
    first = text[1:].split(b"\n>", 1)[0].partition(b"\n")[2].replace(b"\n", b"").upper()
    if not text.startswith(b">") or not first:
        return None
    # Nine of ten: proteins have these letters, too.
    bases = sum(first.count(base) for base in b"ACGTN")
    return "dna" if bases * 10 >= len(first) * 9 else "protein"


def write(lab, path, size_bytes, letters, files):
    """Writes a database of `size_bytes`, or at most a record less: the real files, then generated records. Returns how many bytes
    are real. A file that is not FASTA, or has other letters, is left out."""
    with open(path, "wb") as out:
        for file in files:
            text = _text(file)
            if out.tell() < size_bytes and letters_of(text) == letters:
                out.write(text if text.endswith(b"\n") else text + b"\n")
        real_bytes = min(out.tell(), size_bytes)
        if real_bytes < size_bytes:
            with open(_generated(lab, letters, (size_bytes - real_bytes) // LEAST_BYTES[letters] + 1024), "rb") as made:
                shutil.copyfileobj(made, out)
    cut(path, size_bytes)
    return real_bytes


def _generated(lab, letters, records):
    path = lab.folder / "generated.fa"
    lab.told(lab.merganser, "generate", "--format", "fasta", "--alphabet", letters, "--records", records, "-o", path)
    return path


def cut(path, size_bytes):
    """Cuts a database before the first record that ends after `size_bytes`. At least one record stays."""
    with open(path, "r+b") as file:
        if os.path.getsize(path) <= size_bytes:
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            end = text.rfind(b"\n>", 0, size_bytes + 1)
            end = text.find(b"\n>") if end < 0 else end
        if end >= 0:
            file.truncate(end + 1)


def count(path):
    """The letters of a database."""
    with open(path, "rb") as file:
        return sum(len(line.strip()) for line in file if not line.startswith(b">"))


def write_queries(lab, path, letters):
    """Writes proteins that have about this many letters together: half of them UniProt's queries where they are here, the rest the first
    copies of generated families. Returns how many there are."""
    queries, left = [], letters
    file = next((root / QUERIES for root in _roots() if (root / QUERIES).is_file()), None)
    for record in re.split(rb"(?<=\n)(?=>)", _text(file)) if file else ():
        if len(record) > left - letters // 2:
            break
        queries.append(record)
        left -= len(record)
    made = _generated(lab, "protein", GROUPS)
    records = re.split(rb"(?<=\n)(?=>)", made.read_bytes())
    for line, record in zip((made.parent / f"{made.name}.truth.tsv").read_text().splitlines()[1:], records):
        _, _, copies, copy, length, *_ = line.split("\t")
        if left > 0 and int(copies) > 1 and copy == "0" and int(length) <= letters:
            queries.append(record)
            left -= int(length)
    path.write_bytes(b"".join(queries))
    return len(queries)
