"""The memory of a node within its limit, while strangers do their worst in every call of the protocol at once."""

import json
import pathlib
import random
import socket
import threading
import time
import unittest

from node import TOKEN, Node, leave_out

try:
    import pyarrow
    import pyarrow.flight as flight
except ImportError as missing:
    leave_out(f"{missing}; .ci/setup flight installs the clients")

MIB = 1 << 20
MEMORY = 96 * MIB
# What the docs allow in addition to --memory.
OVERHEAD = 64 * MIB
SECONDS = 20


def leb(number):
    out = b""
    while True:
        byte, number = number & 127, number >> 7
        out += bytes([byte | (128 if number else 0)])
        if not number:
            return out


def guest(functions, body, salt):
    """A guest that is large for the compiler."""

    def section(kind, content):
        return bytes([kind]) + leb(len(content)) + content

    def name(text):
        return leb(len(text)) + text

    declared = {
        "abi": 1,
        "name": "x",
        "about": salt,
        "input": "lines",
        "memory": MIB,
        "output": {"keyed": {"key": "text", "value": "i64", "combine": "sum"}},
    }
    exports = [(b"memory", b"\2\0"), (b"mgs_abi", b"\0\0"), (b"mgs_buffer", b"\0\1"), (b"mgs_chunk", b"\0\2")]
    bodies = [b"\0\x41\1\x0b", b"\0\x41\x80\x80\4\x0b", b"\0\x41\0\x0b", *[b"\0" + body + b"\x0b"] * functions]
    return b"".join(
        [
            b"\0asm\1\0\0\0",
            section(1, b"\4\x60\0\1\x7f\x60\1\x7f\1\x7f\x60\2\x7f\x7f\1\x7f\x60\0\0"),
            section(3, leb(functions + 3) + b"\0\1\2" + b"\3" * functions),
            section(5, b"\1\0\2"),
            section(7, b"\4" + b"".join(name(called) + kind for called, kind in exports)),
            section(10, leb(len(bodies)) + b"".join(leb(len(body)) + body for body in bodies)),
            section(0, name(b"merganser.ssdlet") + json.dumps(declared).encode()),
        ]
    )


class Worst:
    """Clients that do their worst until `over`; each call may be refused, and none may end the node."""

    def __init__(self, address):
        self.address, self.over, self.done, self.lock = address, threading.Event(), {}, threading.Lock()
        self.random = random.Random(7)

    def options(self, seconds=15):
        return flight.FlightCallOptions(
            headers=[(b"authorization", f"Bearer {TOKEN}".encode())], timeout=seconds
        )

    def connect(self):
        # Each on a connection of its own.
        own = [("grpc.use_local_subchannel_pool", 1)]
        return flight.connect(f"grpc+tcp://{self.address}", generic_options=own)

    def act(self, client, name, body):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        (answer,) = client.do_action(flight.Action(name, body), self.options())
        return json.loads(answer.body.to_pybytes())

    def again(self, what):
        """Repeats `what`, and counts how often it was answered and refused."""
        while not self.over.is_set():
            try:
                what()
                kind = "answered"
            except (pyarrow.ArrowException, KeyError, OSError):
                kind = "refused"
                time.sleep(0.05)
            with self.lock:
                key = (what.__name__, kind)
                self.done[key] = self.done.get(key, 0) + 1

    def upload(self):
        functions, body = self.random.choice([(3000, b""), (200_000, b""), (1, b"\x10\3" * 50_000), (40, b"\x10\3" * 900)])
        self.act(self.connect(), "upload", guest(functions, body, str(self.random.random())))

    def match(self):
        keys = [f"{self.random.getrandbits(960):x}" for _ in range(3900)]
        self.act(self.connect(), "open", {"ssdlet": "match", "args": {"keys": keys}})

    def regex(self):
        pattern = "[a-z]\\w{%d}" % self.random.randrange(100, 500)
        self.act(self.connect(), "open", {"ssdlet": "match", "args": {"regex": pattern}})

    def values(self):
        self.act(self.connect(), "open", {"ssdlet": "match", "args": {"keys": [1] * 300_000}})

    def ranges(self):
        client = self.connect()
        session = self.act(client, "open", {"ssdlet": "wordcount"})["session"]
        for _ in range(2):
            ranges = [{"path": "lines", "start": n, "length": 1} for n in range(32_700)]
            self.act(client, "set", {"session": session, "ranges": ranges})
        self.act(client, "set", {"session": session, "ranges": [], "run": True})

    def slow_view(self):
        reader = self.connect().do_get(flight.Ticket(b'{"view":"v.view"}'), self.options(30))
        reader.read_chunk()
        self.over.wait(8)

    def slow_rows(self):
        client = self.connect()
        session = self.act(client, "open", {"ssdlet": "wordcount"})["session"]
        self.act(client, "set", {"session": session, "ranges": [{"path": "lines"}], "run": True})
        ticket = flight.Ticket(json.dumps({"session": session, "text": "binary"}).encode())
        client.do_get(ticket, self.options(30)).read_chunk()
        self.over.wait(8)
        self.act(client, "close", {"session": session})

    def put(self):
        client = self.connect()
        session = self.act(client, "open", {"ssdlet": "wordcount"})["session"]
        path = flight.FlightDescriptor.for_path(session, "b")
        schema = pyarrow.schema([("bytes", pyarrow.binary())])
        writer, _ = client.do_put(path, schema, self.options(10))
        batch = pyarrow.record_batch([pyarrow.array([b"x" * (3 * MIB)])], schema=schema)
        for _ in range(3):
            writer.write_batch(batch)
            self.over.wait(1)
        writer.close()
        self.act(client, "close", {"session": session})

    def silent(self):
        host, port = self.address.rsplit(":", 1)
        streams = [socket.create_connection((host, int(port)), timeout=5) for _ in range(60)]
        for stream in streams[::2]:
            stream.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
        self.over.wait(1)
        for stream in streams:
            stream.close()

    def resets(self):
        """Streams that are begun and reset at once, without the token."""
        host, port = self.address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=5) as stream:
            stream.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
            headers = b"\x83\x86\x44\x01/\x41\x01a"
            for number in range(1, 20_001, 2):
                begun = len(headers).to_bytes(3, "big") + b"\1\4" + number.to_bytes(4, "big") + headers
                stream.sendall(begun + b"\0\0\4\3\0" + number.to_bytes(4, "big") + b"\0\0\0\x08")


class Limits(unittest.TestCase):
    def test_memory_stays_within_its_limit(self):
        words = "".join(f"word{n} {n * 2654435761 % 1000003}\n" for n in range(200_000)).encode()
        with Node({"lines": words}, "--memory", str(MEMORY), "--ssdlets", ".", "--allow-upload") as node:
            node.run("sort", "data/lines", "--view", "data/v.view", "--memory", "16M", "--quiet")
            worst = Worst(node.address)
            calls = [worst.upload, worst.match, worst.regex, worst.values, worst.ranges]
            calls += [worst.slow_view, worst.slow_rows, worst.put, worst.silent, worst.resets]
            # Two clients of each kind, and more of those that only wait.
            calls = 2 * calls + 4 * [worst.slow_view, worst.slow_rows]
            threads = [threading.Thread(target=worst.again, args=[call], daemon=True) for call in calls]
            for thread in threads:
                thread.start()
            status = pathlib.Path(f"/proc/{node.process.pid}/status")
            resident, until = [], time.monotonic() + SECONDS
            while time.monotonic() < until:
                lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
                resident.append(int(lines["VmHWM"].split()[0]) << 10)
                time.sleep(0.2)
            worst.over.set()
            for thread in threads:
                thread.join(timeout=30)
            told = f"{max(resident) / MIB:.0f} MiB of {(MEMORY + OVERHEAD) / MIB:.0f}; {worst.done}"
            print(told)
            # It answers a client that does no harm.
            rest = worst.connect()
            self.assertTrue(worst.act(rest, "list", {})["ssdlets"], told)
            self.assertLessEqual(max(resident), MEMORY + OVERHEAD, told)
            answered = {what for what, kind in worst.done if kind == "answered"}
            self.assertLessEqual({"slow_view", "put", "silent"}, answered, told)


if __name__ == "__main__":
    unittest.main()
