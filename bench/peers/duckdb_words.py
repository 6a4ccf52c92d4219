"""DuckDB as a peer: counts the words of a text file.

    python duckdb_words.py INPUT OUTPUT --memory BYTES --temp FOLDER --threads N

Writes one row a word: the word, a tab, how often it occurs; sorted by the bytes of words.
"""

import argparse

import duckdb

# A separator that occurs in no input makes a whole line one column.
NO_SEPARATOR = "\x01"


def text(value):
    """`value` as an SQL string."""
    return "'" + str(value).replace("'", "''") + "'"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("input")
    parser.add_argument("output")
    parser.add_argument("--memory", type=int, required=True)
    parser.add_argument("--temp", required=True)
    parser.add_argument("--threads", type=int, required=True)
    args = parser.parse_args()

    db = duckdb.connect(config={
        "memory_limit": f"{args.memory}B",
        "temp_directory": args.temp,
        "threads": args.threads,
        "preserve_insertion_order": False,
    })  # fmt: skip
    lines = (
        f"read_csv({text(args.input)}, columns = {{'line': 'VARCHAR'}}, auto_detect = false, header = false, "
        f"delim = {text(NO_SEPARATOR)}, quote = '', escape = '')"
    )
    words = f"SELECT unnest(string_split(line, ' ')) AS word FROM {lines}"
    counts = f"SELECT word, count(*) FROM ({words}) WHERE word <> '' GROUP BY word ORDER BY word"
    db.execute(f"COPY ({counts}) TO {text(args.output)} (FORMAT csv, header false, delim '\t', quote '', escape '')")


main()
