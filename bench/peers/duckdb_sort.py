"""DuckDB as a peer: sorts a text file with one record per line to another file.

    python duckdb_sort.py lines|csv INPUT OUTPUT --memory BYTES --temp FOLDER --threads N

`lines` orders whole lines; `csv` orders headerless, unquoted rows by their second column as text and
then their first as a number. Quoting is off on both sides, so that lines come out as they went in.
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
    parser.add_argument("kind", choices=["lines", "csv"])
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
    })
    separator = NO_SEPARATOR if args.kind == "lines" else ","
    style = {"header": "false", "delim": text(separator), "quote": "''", "escape": "''"}
    if args.kind == "lines":
        columns, order = "{'line': 'VARCHAR'}", "line"
    else:
        with open(args.input) as rows:
            width = rows.readline().count(separator) + 1
        names = ["id BIGINT", "name VARCHAR"] + [f"c{i} VARCHAR" for i in range(2, width)]
        columns = "{" + ", ".join("{!r}: {!r}".format(*name.split()) for name in names) + "}"
        order = "name, id"
    reading = ", ".join(f"{key} = {value}" for key, value in style.items())
    writing = ", ".join(f"{key} {value}" for key, value in style.items())
    rows = f"read_csv({text(args.input)}, columns = {columns}, auto_detect = false, {reading})"
    db.execute(f"COPY (SELECT * FROM {rows} ORDER BY {order}) TO {text(args.output)} (FORMAT csv, {writing})")


main()
