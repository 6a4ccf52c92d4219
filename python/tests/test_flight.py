"""A node and clients that are not ours: pyarrow, DuckDB, Polars."""

import json
import re
import unittest

from node import TOKEN, Node, leave_out

try:
    import duckdb
    import polars
    import pyarrow
    import pyarrow.flight as flight
    import pyarrow.parquet
except ImportError as missing:
    leave_out(f"{missing}; .ci/setup flight installs the clients")


def options(token=TOKEN):
    headers = [(b"authorization", f"Bearer {token}".encode())] if token else []
    return flight.FlightCallOptions(headers=headers)


def act(client, name, body):
    action = flight.Action(name, json.dumps(body).encode())
    (answer,) = client.do_action(action, options())
    return json.loads(answer.body.to_pybytes())


def reader(client, ticket):
    return client.do_get(flight.Ticket(json.dumps(ticket).encode()), options())


class Sessions(unittest.TestCase):
    def test_a_stranger_runs_a_program(self):
        with Node({"a.txt": b"b a\nb\n", "b.txt": b"c\n"}) as node:
            client = flight.connect(f"grpc+tcp://{node.address}")
            self.assertIn("open", [action.type for action in client.list_actions(options())])
            names = [ssdlet["name"] for ssdlet in act(client, "list", {})["ssdlets"]]
            self.assertIn("wordcount", names)
            session = act(client, "open", {"ssdlet": "wordcount"})["session"]
            act(client, "set", {"session": session, "ranges": [{"path": "a.txt"}]})
            act(client, "set", {"session": session, "ranges": [{"path": "b.txt"}], "run": True})
            expected = [("a", 1), ("b", 2), ("c", 1)]
            table = reader(client, {"session": session}).read_all()
            self.assertEqual(table.schema.field("key").type, pyarrow.string())
            self.assertEqual(list(zip(*table.to_pydict().values())), expected)
            rest = reader(client, {"session": session, "offset": 2}).read_all()
            self.assertEqual(rest.to_pydict(), {"key": ["c"], "value": [1]})
            self.assertEqual(act(client, "status", {"session": session})["state"], "done")

            counted = reader(client, {"session": session}).to_reader()
            found = duckdb.sql("select key, value from counted order by key").fetchall()
            self.assertEqual(found, expected)
            frame = polars.from_arrow(reader(client, {"session": session}).read_all())
            self.assertEqual(frame["value"].sum(), 4)
            act(client, "close", {"session": session})
            with self.assertRaisesRegex(KeyError, "no open session"):
                act(client, "status", {"session": session})

    def test_a_blob_is_put_and_read(self):
        with Node({}) as node:
            client = flight.connect(f"grpc+tcp://{node.address}")
            session = act(client, "open", {"ssdlet": "wordcount"})["session"]
            schema = pyarrow.schema([("record", pyarrow.binary())])
            place = flight.FlightDescriptor.for_path(session, "part")
            writer, answers = client.do_put(place, schema, options())
            writer.write_table(pyarrow.table({"record": [b"x y\n", b"x\n"]}, schema))
            writer.done_writing()
            self.assertEqual(json.loads(answers.read().to_pybytes()), {"name": "part", "bytes": 6})
            writer.close()
            act(client, "set", {"session": session, "ranges": [{"blob": "part"}], "run": True})
            table = reader(client, {"session": session}).read_all()
            self.assertEqual(table.to_pydict(), {"key": ["x", "y"], "value": [2, 1]})

    def test_strangers_without_the_token_and_paths_outside_are_refused(self):
        with Node({"a.txt": b"a\n"}) as node:
            client = flight.connect(f"grpc+tcp://{node.address}")
            for token in (None, "0123456789abcdef0123456789abcdeF"):
                with self.assertRaises(flight.FlightUnauthenticatedError):
                    list(client.do_action(flight.Action("list", b""), options(token)))
            session = act(client, "open", {"ssdlet": "wordcount"})["session"]
            for path in ("../token", "/etc/passwd"):
                with self.assertRaises(flight.FlightUnauthorizedError):
                    act(client, "set", {"session": session, "ranges": [{"path": path}]})


class Views(unittest.TestCase):
    def test_a_view_is_what_cat_prints(self):
        lines = b"".join(b"%d\n" % (n * 7919 % 100_003) for n in range(100_003))
        with Node({"lines": lines}) as node:
            node.run("sort", "data/lines", "--view", "data/lines.view")
            client = flight.connect(f"grpc+tcp://{node.address}")
            (info,) = client.list_flights(options=options())
            self.assertEqual((info.total_records, info.total_bytes), (100_003, len(lines)))
            whole = client.do_get(info.endpoints[0].ticket, options()).read_all()
            self.assertEqual(b"".join(whole["record"].to_pylist()), node.run("cat", "data/lines.view"))
            for ticket, words in (
                ({"records": [5, 90_000]}, ["--records", "5..90000"]),
                ({"bytes": [3, 400_000]}, ["--bytes", "3..400000"]),
                ({"keys": {"from": "2", "to": "31"}}, ["--from-key", "2", "--to-key", "31"]),
            ):
                part = reader(client, {"view": "lines.view", **ticket}).read_all()
                self.assertEqual(
                    b"".join(part["record"].to_pylist()), node.run("cat", "data/lines.view", *words)
                )
            streamed = reader(client, {"view": "lines.view"}).to_reader()
            (count,) = duckdb.sql("select count(*) from streamed").fetchone()
            self.assertEqual(count, 100_003)

    def test_a_view_of_a_table_has_its_columns(self):
        rows = 20_000
        colours = pyarrow.array([["red", "green", None][n % 3] for n in range(rows)]).dictionary_encode()
        table = pyarrow.table(
            {
                "name": [f"{n * 7919 % 10_007:05}" for n in range(rows)],
                "n": pyarrow.array([None if n % 7 == 0 else n for n in range(rows)], pyarrow.int32()),
                "colour": colours,
                "tags": [[str(n), None] if n % 2 else [] for n in range(rows)],
                "seen": pyarrow.array([str(n) * 4 for n in range(rows)], pyarrow.string_view()),
            }
        )
        with Node({}) as node:
            pyarrow.parquet.write_table(table, node.path / "data/t.parquet")
            node.run("sort", "data/t.parquet", "--view", "data/t.view", "--key", "name", "--key", "n:last")
            expected = pyarrow.ipc.open_file(node.run("cat", "data/t.view", "--output-format", "arrow")).read_all()
            client = flight.connect(f"grpc+tcp://{node.address}")
            (info,) = client.list_flights(options=options())
            self.assertEqual((info.total_records, info.schema), (rows, expected.schema))
            whole = client.do_get(info.endpoints[0].ticket, options())
            self.assertEqual(whole.schema, expected.schema)
            found = whole.read_all()
            self.assertEqual((found.schema, found.to_pylist()), (table.schema, expected.to_pylist()))
            names = [row["name"] for row in expected.to_pylist()]
            for ticket, start, end in (
                ({"records": [5, 19_000]}, 5, 19_000),
                ({"records": [19_999, None]}, 19_999, rows),
                ({"records": [7, 7]}, 7, 7),
                ({"keys": {"from": "00100", "to": "02000"}}, names.index("00100"), names.index("02000")),
                ({"keys": {"to": "001"}}, 0, names.index("00100")),
                ({"keys": {"from": "x"}}, rows, rows),
            ):
                part = reader(client, {"view": "t.view", "columns": ["n", "name"], **ticket}).read_all()
                self.assertEqual(part.to_pylist(), expected.select(["n", "name"]).slice(start, end - start).to_pylist(), ticket)
            streamed = reader(client, {"view": "t.view"}).to_reader()
            (count,) = duckdb.sql("select count(n) from streamed").fetchone()
            self.assertEqual(count, rows - table["n"].null_count)
            for ticket, says in (
                ({"bytes": [0, 5]}, "t.view: bytes: it is a table; ask for records, or for keys"),
                ({"columns": ["n", "none"]}, "t.view: has no column none; it has name, n, colour, tags, seen"),
                ({"records": [20_001, None]}, "the view has 20000"),
                ({"keys": {"from": "2", "to": "1"}}, 'keys: "to" comes before "from"'),
            ):
                with self.assertRaisesRegex(pyarrow.lib.ArrowInvalid, re.escape(says)):
                    reader(client, {"view": "t.view", **ticket}).read_all()
            node.run("sort", "data/t.parquet", "--view", "data/n.view", "--key", "n")
            with self.assertRaisesRegex(pyarrow.lib.ArrowInvalid, '"x" is no value of column n, which is of type Int32'):
                reader(client, {"view": "n.view", "keys": {"from": "x"}}).read_all()
            (node.path / "data/lines").write_bytes(b"b\na\n")
            node.run("sort", "data/lines", "--view", "data/lines.view")
            with self.assertRaisesRegex(pyarrow.lib.ArrowInvalid, "lines.view: columns: it has records"):
                reader(client, {"view": "lines.view", "columns": ["record"]}).read_all()

    def test_long_rows_and_many_columns_of_a_table(self):
        with Node({}, "--memory", "256M") as node:
            wide = pyarrow.table({f"c{at:03}": pyarrow.array([None] * 3000 + [at], pyarrow.int64()) for at in range(500)})
            pyarrow.parquet.write_table(wide, node.path / "data/wide.parquet")
            node.run("sort", "data/wide.parquet", "--view", "data/wide.view", "--key", "c000:last")
            long = pyarrow.table({"n": [1, 2, 3], "s": ["x" * 1_500_000, "y", "z" * 1_900_000]})
            pyarrow.parquet.write_table(long, node.path / "data/long.parquet")
            node.run("sort", "data/long.parquet", "--view", "data/long.view", "--key", "n")
            longer = pyarrow.table({"n": [1, 2], "s": ["x", "y" * 3_000_000]})
            pyarrow.parquet.write_table(longer, node.path / "data/longer.parquet")
            node.run("sort", "data/longer.parquet", "--view", "data/longer.view", "--key", "n")
            client = flight.connect(f"grpc+tcp://{node.address}")
            found = reader(client, {"view": "wide.view"}).read_all()
            self.assertEqual((found.num_rows, found.slice(0, 1).to_pylist()), (3001, wide.slice(3000).to_pylist()))
            self.assertEqual(reader(client, {"view": "long.view"}).read_all().to_pylist(), long.to_pylist())
            with self.assertRaisesRegex(pyarrow.lib.ArrowInvalid, "longer.view: a row has .* read the view where it is"):
                reader(client, {"view": "longer.view"}).read_all()


if __name__ == "__main__":
    unittest.main()
