"""Shared by the DuckDB peers: their arguments, a connection, and texts in SQL."""

import argparse

import duckdb

# A separator that occurs in no input makes a whole line one column.
NO_SEPARATOR = "\x01"


def text(value):
    """`value` as an SQL string."""
    return "'" + str(value).replace("'", "''") + "'"


def arguments(parser=None):
    """The arguments INPUT OUTPUT --memory BYTES --temp FOLDER --threads N, after those of `parser`."""
    parser = parser or argparse.ArgumentParser()
    parser.add_argument("input")
    parser.add_argument("output")
    parser.add_argument("--memory", type=int, required=True)
    parser.add_argument("--temp", required=True)
    parser.add_argument("--threads", type=int, required=True)
    return parser.parse_args()


def connect(args):
    """A database in memory within the limits of `args`."""
    return duckdb.connect(config={
        "memory_limit": f"{args.memory}B",
        "temp_directory": args.temp,
        "threads": args.threads,
        "preserve_insertion_order": False,
    })  # fmt: skip
