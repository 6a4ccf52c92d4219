"""A node and clients that are not ours: pyarrow, DuckDB, Polars."""

import json
import unittest

from node import TOKEN, Node, leave_out

try:
    import duckdb
    import polars
    import pyarrow
    import pyarrow.flight as flight
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


if __name__ == "__main__":
    unittest.main()
