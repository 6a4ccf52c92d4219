"""DuckDB as a peer: sorts a text file with one record per line to another file.

    python duckdb_sort.py lines|csv INPUT OUTPUT --memory BYTES --temp FOLDER --threads N

`lines` orders whole lines; `csv` orders headerless, unquoted rows by their second column as text and
then their first as a number. Quoting is off on both sides, so that lines come out as they went in.
"""

import argparse

from duckdb_peer import NO_SEPARATOR, arguments, connect, text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["lines", "csv"])
    args = arguments(parser)
    db = connect(args)
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
