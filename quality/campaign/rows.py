"""Lines as a table in a file of Parquet, and what a sort of it must give.

    in.parquet    n      the number of the line, from 0
                  part   one of a few texts, for folders
                  text   the line

The file has no packing, no nulls and one row group, so a few structures of Thrift are all it takes.
"""

import struct

PARTS = 3
HEADER = b"n,part,text\n"
INT64, BYTES, UTF8 = 2, 6, 0


def table(content):
    """A file of Parquet with these lines, and its rows as csv, sorted by text."""
    lines = content.splitlines()
    parts = [part_of(number) for number in range(len(lines))]
    columns = [
        (b"n", INT64, struct.pack(f"<{len(lines)}q", *range(len(lines)))),
        (b"part", BYTES, texts(parts)),
        (b"text", BYTES, texts(lines)),
    ]
    order = sorted(range(len(lines)), key=lambda number: lines[number])
    return parquet(columns, len(lines)), HEADER + b"".join(row(number, lines[number]) for number in order)


def folders(in_order):
    """The same rows as those of folders: part after part."""
    rows = in_order[len(HEADER) :].splitlines(keepends=True)
    by_part = sorted(rows, key=lambda row: row.split(b",")[1])
    return HEADER + b"".join(by_part)


def with_part_second(lines):
    """Rows whose last column is the part, which their folder names."""
    cells = (line.split(b",") for line in lines.splitlines())
    return b"".join(b"%s,%s,%s\n" % (number, part, text) for number, text, part in cells)


def part_of(number):
    """The part of a row. One of them has a character that is escaped in the name of its folder."""
    return b"p/%d" % (number % PARTS)


def row(number, line):
    """A row as csv."""
    return b"%d,%s,%s\n" % (number, part_of(number), line)


def texts(values):
    """Texts as Parquet has them in a page."""
    return b"".join(struct.pack("<I", len(value)) + value for value in values)


def parquet(columns, count):
    """A file with these columns: names, types and values."""
    body, chunks, schema = b"PAR1", [], [struct_of((4, "text", b"schema"), (5, "int", len(columns)))]
    for name, kind, values in columns:
        data = struct_of((1, "int", count), (2, "int", 0), (3, "int", 3), (4, "int", 3))
        page = struct_of((1, "int", 0), (2, "int", len(values)), (3, "int", len(values)), (5, "struct", data)) + values
        chunk = struct_of(
            (1, "int", kind), (2, "ints", [0]), (3, "texts", [name]), (4, "int", 0), (5, "long", count),
            (6, "long", len(page)), (7, "long", len(page)), (9, "long", len(body)),
        )  # fmt: skip
        chunks.append(struct_of((2, "long", len(body)), (3, "struct", chunk)))
        converted = [(6, "int", UTF8)] if kind == BYTES else []
        schema.append(struct_of((1, "int", kind), (3, "int", 0), (4, "text", name), *converted))
        body += page
    group = struct_of((1, "structs", chunks), (2, "long", len(body) - 4), (3, "long", count))
    end = struct_of((1, "int", 1), (2, "structs", schema), (3, "long", count), (4, "structs", [group]))
    return body + end + struct.pack("<I", len(end)) + b"PAR1"


TYPES = {"int": 5, "long": 6, "text": 8, "ints": 9, "texts": 9, "structs": 9, "struct": 12}


def struct_of(*fields):
    """A structure of Thrift in its compact form: numbers of fields, kinds and values."""
    written, last = b"", 0
    for number, kind, value in fields:
        written += bytes([number - last << 4 | TYPES[kind]]) + value_of(kind, value)
        last = number
    return written + b"\0"


def value_of(kind, value):
    """A value of a field."""
    if kind in ("int", "long"):
        return varint(value << 1)
    if kind == "text":
        return varint(len(value)) + value
    if kind == "struct":
        return value
    one = {"ints": "int", "texts": "text", "structs": "struct"}[kind]
    head = bytes([len(value) << 4 | TYPES[one]])
    return head + b"".join(value_of(one, item) for item in value)


def varint(number):
    """A number that is not negative, in groups of seven bits."""
    written = b""
    while number > 127:
        written += bytes([number & 127 | 128])
        number >>= 7
    return written + bytes([number])
