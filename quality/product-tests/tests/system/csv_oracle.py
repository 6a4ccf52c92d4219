"""Random csv through the command, judged by Python's module csv.

usage: csv_oracle.py MERGANSER SEED CASES FOLDER [map]

Two things differ from Python on purpose, and the model says so: only a newline ends a row (a carriage return elsewhere
is a letter), and a quote that is never closed is an error.
"""

import collections
import csv
import io
import json
import os
import random
import re
import subprocess
import sys

MARK = b"\xef\xbb\xbf"
# Letters of private use for bytes that Python's reader would not take as letters.
RETURN, NUL = "\ue000", "\ue001"


class Refused(Exception):
    """The command has to refuse the input."""


def hide(text):
    """A carriage return that does not end a row is a letter; the last byte may end one."""
    return re.sub("\r(?!\n|$(?!\n))", RETURN, text).replace("\0", NUL)


def show(text):
    return text.replace(RETURN, "\r").replace(NUL, "\0").encode("latin-1")


def read(text):
    """Rows as (bytes of the row, values)."""
    lines = text.split("\n")
    lines = [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    reader, at, rows = csv.reader(iter(lines)), 0, []
    for values in reader:
        raw = "".join(lines[at : reader.line_num])
        rows.append((show(raw), [show(value) for value in values or [""]]))
        at = reader.line_num
    return rows


def rows_of(data):
    """All rows of an input, the last one complete."""
    text = hide(data.removeprefix(MARK).decode("latin-1"))
    if not text:
        return []
    rows = read(text)
    if len(read(text + "\nZ\n")) != len(rows) + 1 and not text.endswith("\n"):
        raise Refused("a quote is never closed")
    if text.endswith("\n") and read(text + "Z\n")[-1][0] != b"Z\n":
        raise Refused("a quote is never closed")
    if len(rows) == 1 and not rows[0][0].endswith(b"\n") and len(read(text.replace(RETURN, "\n"))) > 1:
        raise Refused("rows end with carriage returns alone")
    raw, values = rows[-1]
    if not raw.endswith(b"\n"):
        crlf = len(rows) > 1 and rows[-2][0].endswith(b"\r\n") and not raw.endswith(b"\r")
        rows[-1] = (raw + (b"\r\n" if crlf else b"\n"), values)
    return rows


FIELDS = [
    b"", b"1", b"2", b"10", b"1", b"x", b"plain", b'3.5" disk', b'5.25"', b'"quoted"', b'"a,b"', b'"two\nlines"',
    b'"two\r\nlines"', b'"say ""hi"""', b'""', b'"1"', b'"2"x', b'"a"b"c', b"\xff\x80", b"a\rb", b'"r\r"', b"\0",
    b'x"y"z', b'"""', b'"',
]  # fmt: skip


def made_up(chance):
    """A file and whether it has a header."""
    header = chance.random() < 0.6
    width = chance.randint(1, 5)
    end = chance.choice([b"\n", b"\n", b"\r\n", b"\r\n", b"\r"] if chance.random() < 0.2 else [b"\n", b"\r\n"])
    mixed = chance.random() < 0.2
    # A quote that opens and is never closed ends most files in an error, so most files have none.
    fields = FIELDS if chance.random() < 0.2 else FIELDS[:-2]
    rows = [[b"c%d" % n if chance.random() < 0.8 else b'"c%d"' % n for n in range(width)]] if header else []
    for _ in range(chance.choice([0, 1, 2, 5, 20, 60])):
        count = width if chance.random() < 0.95 else chance.randint(1, width + 1)
        if chance.random() < 0.1:
            letters = [chance.choice(b'",\n\r\0a1') for _ in range(chance.randint(0, 12))]
            rows.append([bytes(letters)])
        else:
            rows.append([chance.choice(fields) for _ in range(count)])
    data = b""
    for row in rows:
        data += b",".join(row) + (chance.choice([b"\n", b"\r\n"]) if mixed else end)
    if data and chance.random() < 0.3:
        data = data.rstrip(b"\r\n")
    if chance.random() < 0.2:
        data = MARK + data
    return data, header, width


def column_of(number, head):
    """The column, from 0, that the command takes a number from 1 for: one with that name comes first."""
    names = head[0][1] if head else []
    named = [n for n, name in enumerate(names) if name == b"%d" % number]
    if len(named) > 1:
        raise Refused("several columns have that name")
    return named[0] if named else number - 1


class Case:
    def __init__(self, binary, folder, maps, chance):
        self.binary, self.folder, self.maps, self.chance = binary, folder, maps, chance
        self.data, self.header, self.width = made_up(chance)
        self.path = os.path.join(folder, "in.csv")
        with open(self.path, "wb") as file:
            file.write(self.data)
        self.flags = ["--header"] if self.header else []

    def run(self, *words, data=None):
        done = subprocess.run(
            [self.binary, *words],
            input=data,
            stdin=subprocess.DEVNULL if data is None else None,
            capture_output=True,
            timeout=60,
        )
        self.last = (words, done)
        return done

    def expect(self, condition, why):
        if not condition:
            words, done = self.last
            raise AssertionError(
                f"{why}\n command {words}\n input  {self.data!r}\n exit {done.returncode}\n"
                f" output {done.stdout!r}\n stderr {done.stderr!r}"
            )

    def refused(self, done, why):
        self.expect(done.returncode == 2 and done.stdout == b"", why)
        self.expect(done.stderr.count(b"\n") == 1, "one sentence")

    def check(self):
        try:
            rows = rows_of(self.data)
        except Refused as why:
            self.refused(self.run("sort", "--format", "csv", *self.flags, "--key", "1", self.path), str(why))
            return "refused"
        number = 1 + self.chance.randrange(self.width + (self.chance.random() < 0.1))
        head = self.header and rows[:1] or []
        rows = rows[len(head) :]
        if self.header and not head:
            return "empty"
        key = ["--format", "csv", *self.flags, "--key", str(number)]
        try:
            column = column_of(number, head)
        except Refused as why:
            self.refused(self.run("sort", *key, self.path), str(why))
            return "refused"
        known = len(head[0][1]) if head else max([len(values) for _, values in rows] or [number])
        if column >= known:
            self.refused(self.run("sort", *key, self.path), "there is no such column")
            return "beyond"
        mark = MARK if self.data.startswith(MARK) else b""
        self.sort(number, column, mark, head, rows)
        if self.maps:
            self.map(number, column, mark, head, rows)
        return "read"

    def sort(self, number, column, mark, head, rows):
        down = self.chance.random() < 0.3
        name = str(number)
        if head and column < len(head[0][1]) and self.chance.random() < 0.5:
            text = head[0][1][column]
            if re.fullmatch(b"c[0-9]", text) and head[0][1].count(text) == 1:
                name = text.decode()
        key = ["--format", "csv", *self.flags, "--key", name + (":r" if down else "")]
        value = lambda row: row[1][column] if column < len(row[1]) else b""
        in_order = sorted(rows, key=value, reverse=down)
        expected = mark + b"".join(raw for raw, _ in head + in_order)
        way = self.chance.choice(["sort", "stream", "view", "merge"])
        if way == "stream":
            done = self.run("sort", *key, data=self.data)
        elif way == "view":
            view = os.path.join(self.folder, "v.view")
            subprocess.run(["rm", "-rf", view], check=True)
            done = self.run("sort", *key, self.path, "--view", view)
            self.expect(done.returncode == 0, "a view is made")
            done = self.run("cat", view)
        else:
            done = self.run("sort", *key, self.path)
        self.expect(done.returncode == 0, "it is sorted")
        self.expect(done.stdout == expected, f"expected {expected!r}")
        ordered = all(
            (value(a) >= value(b)) if down else (value(a) <= value(b)) for a, b in zip(rows, rows[1:])
        )
        done = self.run("verify", *key, self.path, "--json")
        self.expect(done.returncode == (0 if ordered else 1), f"in order: {ordered}")
        told = json.loads(done.stdout)
        self.expect(told["records"] == len(rows), f"{len(rows)} records")
        checksum = told["checksum"]
        done = self.run("verify", *key, "-", "--json", data=expected)
        self.expect(done.returncode == 0, "the result is in order")
        self.expect(json.loads(done.stdout)["checksum"] == checksum, "the same records")
        if way == "merge":
            done = self.run("sort", "-m", *key, "-", data=expected)
            self.expect(done.stdout == expected, "merged alone, it stays")

    def map(self, number, column, mark, head, rows):
        wanted = self.chance.choice(["x", "plain", '3.5" disk', "a,b", "", "two\nlines", "1", 'ab"c'])
        where = json.dumps({"column": number, "op": "=", "value": wanted})
        short = any(column >= len(values) for _, values in rows)
        done = self.run("map", "filter", "--format", "csv", *self.flags, "--where", where, self.path)
        if short:
            self.expect(done.returncode == 2, "a row is too short")
            return
        kept = [raw for raw, values in rows if values[column] == wanted.encode()]
        expected = (mark if head else b"") + b"".join(raw for raw, _ in head) + b"".join(kept)
        self.expect(done.returncode == 0 and done.stdout == expected, f"expected {expected!r}")

        names = head[0][1] if head else []
        others = [n for n in range(self.width) if b"%d" % (n + 1) not in names]
        others = [n for n in others if all(n < len(values) for _, values in head + rows)][:2]
        columns = ",".join(str(n) for n in [number] + [n + 1 for n in others])
        others = [column] + others
        done = self.run("map", "project", "--format", "csv", *self.flags, "--columns", columns, self.path)
        self.expect(done.returncode == 0, "it is projected")
        found = [values for _, values in rows_of(done.stdout)] if done.stdout else []
        wanted = [[values[n] for n in others] for _, values in head + rows]
        self.expect(found == wanted, f"expected {wanted!r}")

        values = [values[column] for _, values in rows]
        if any(value != value.strip() for value in values):
            return
        counts = collections.Counter(int(value) for value in values if re.fullmatch(b"[0-9]+", value))
        done = self.run(
            "map", "histogram", "--format", "csv", *self.flags, "--column", str(number), "--invalid", "skip", self.path
        )
        expected = b"".join(b"%d\t%d\n" % pair for pair in sorted(counts.items()))
        self.expect(done.returncode == 0 and done.stdout == expected, f"expected {expected!r}")


def main():
    binary, seed, cases, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    maps = sys.argv[5:] == ["map"]
    ends = collections.Counter()
    failed = 0
    for number in range(cases):
        case = Case(binary, folder, maps, random.Random(seed + number))
        try:
            ends[case.check()] += 1
        except Exception as why:
            failed += 1
            print(f"seed {seed + number}: {type(why).__name__}: {why}", file=sys.stderr)
            if failed >= 3:
                break
    print(f"{cases} files from seed {seed}: {dict(ends)}, {failed} differ", file=sys.stderr)
    sys.exit(failed > 0)


main()
