"""The doors of the servers: how each is started, what strangers send to it, and what an honest client must still get.

A door has `words` (the command), `files(trial)` (what is served), `address(process)`, `hostile(chance)` (the bytes of one
hostile connection, piece by piece) and `honest(trial)`, which raises Wrong if the answer is not right. docs/formats.md
describes the protocols.
"""

import json
import random
import re
import socket
import struct
import time

import checksum
import serving
from case import Wrong

LINES = b"".join(b"%05d the same words\n" % (n * 7919 % 4000) for n in range(4000))
SORTED = b"".join(sorted(LINES.splitlines(True)))
WAIT_S = 10
ODD_NUMBERS = [0, 1, 2, 255, 65535, 65536, 1 << 20, (1 << 20) + 1, (1 << 31) - 1, (1 << 32) - 1]
ODD_PATHS = ["/etc/passwd", "../../etc/passwd", "words", "", "/", "v.view", "a" * 5000, "w\0rds", "./words", "/proc/self/mem"]


# Below those that the kernel gives: a connection could get such a port again before the node listens.
LISTENED_PORTS = range(15_000, 20_000)


def free_port():
    """A port on which nothing listens."""
    for port in random.sample(LISTENED_PORTS, len(LISTENED_PORTS)):
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no free port")


def odd(chance, bits=32):
    """A number that is often at an edge."""
    return (chance.choice(ODD_NUMBERS) if chance.random() < 0.6 else chance.getrandbits(bits)) & ((1 << bits) - 1)


def changed(chance, message):
    """The message with some bytes changed, cut or doubled."""
    message = bytearray(message)
    for _ in range(chance.choice([0, 1, 1, 2, 8])):
        if message:
            message[chance.randrange(len(message))] = chance.getrandbits(8)
    if chance.random() < 0.2:
        del message[chance.randrange(len(message) + 1) :]
    if chance.random() < 0.1:
        message *= 2
    return bytes(message)


def text16(text):
    """A text behind its length."""
    text = text.encode()
    return struct.pack(">H", len(text) & 0xFFFF) + text


class Local:
    """A door at a socket in the file system."""

    memory_bytes = 64 << 20

    def __init__(self, trial):
        self.path = trial.setup.own / "door"
        self.path.unlink(missing_ok=True)

    def open(self, process):
        """Waits until it takes connections."""
        return serving.appears(process, self.path.exists)

    def connect(self):
        """A new connection."""
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(WAIT_S)
        client.connect(str(self.path))
        return client


class View(Local):
    """`export --nbd` of a view."""

    def words(self, trial):
        (trial.folder / "words").write_bytes(LINES)
        trial.run(["sort", "words", "--view", "v.view"])
        return ["export", "--nbd", self.path, "v.view"]

    def hostile(self, chance):
        """Options and requests that lie."""
        pieces = [struct.pack(">I", chance.choice([1, 3, 0, odd(chance)]))]
        for _ in range(chance.choice([0, 1, 2, 20])):
            body = chance.randbytes(chance.choice([0, 1, 9, 70, 4096]))
            length = len(body) if chance.random() < 0.7 else odd(chance)
            option = chance.choice([2, 3, 5, 6, 7, 8, 9, 10, 11, odd(chance)])
            pieces.append(struct.pack(">QII", serving.OPTION_MAGIC, option, length) + body)
        pieces.append(struct.pack(">QII", serving.OPTION_MAGIC, serving.EXPORT_NAME, 0))
        for _ in range(chance.choice([0, 3, 30, 200])):
            kind = chance.choice([0, 0, 0, 1, 3, 4, 5, 6, 7, 9, odd(chance, 16)])
            length = odd(chance)
            body = chance.randbytes(min(length, 5000)) if kind == 1 else b""
            pieces.append(struct.pack(">IHHQQI", 0x25609513, odd(chance, 16), kind, 7, odd(chance, 64), length) + body)
        return [changed(chance, piece) if chance.random() < 0.1 else piece for piece in pieces]

    def honest(self, trial):
        with self.connect() as client:
            if serving.read_device(client, len(SORTED)) != SORTED:
                raise Wrong("the view is not what was served")


class Volume(View):
    """`array serve`, which takes writes."""

    def words(self, trial):
        trial.run(["array", "create", "vol.json", "--data", "d0,d1", "--buffer", "b0", "--size", "4M", "--quiet"])
        return ["array", "serve", "vol.json", "--nbd", self.path, "--memory", "64M"]

    def honest(self, trial):
        with self.connect() as client:
            serving.read_device(client, 4096)


class Framed(Local):
    """A protocol of heads and frames: the shuffle's and the maps'."""

    magic, kinds = b"MGSH", [1, 2]

    def request(self, chance, body, kind):
        """A request; some lie about their length."""
        length = len(body) if chance.random() < 0.8 else odd(chance)
        version = chance.choice([1, 1, 1, 2, 3, odd(chance, 16)])
        return self.magic + struct.pack(">HHI", version, kind, length) + body

    def hostile(self, chance):
        """Requests one after the other."""
        pieces = []
        for _ in range(chance.choice([1, 1, 3, 50])):
            kind = chance.choice([*self.kinds, *self.kinds, odd(chance, 16)])
            pieces.append(changed(chance, self.request(chance, self.body(chance), kind)))
        return pieces

    def honest(self, trial):
        """Hello."""
        with self.connect() as client:
            client.sendall(self.magic + struct.pack(">HHI", 1, 2, 0))
            kind, length = struct.unpack(">BI", serving.exactly(client, 5))
            serving.exactly(client, length)
            if kind != 4:
                raise Wrong(f"hello is answered by a frame of type {kind}")


class Shuffle(Framed):
    """`hadoop serve --shuffle`."""

    def words(self, trial):
        self.folder = trial.folder / "local"
        self.folder.mkdir()
        (self.folder / "spill").write_bytes(LINES)
        return ["hadoop", "serve", "--shuffle", self.path, "--local-dir", self.folder, "--memory", "64M"]

    def body(self, chance):
        count = chance.choice([0, 1, 2, 60, 4096])
        parts = [struct.pack(">QQ", odd(chance, 64), odd(chance, 64)), text16(chance.choice(["text", "i32", "x" * 300, ""]))]
        parts.append(struct.pack(">I", count if chance.random() < 0.7 else odd(chance)))
        for _ in range(count):
            path = chance.choice([f"{self.folder}/spill", *ODD_PATHS])
            parts += [text16(path), struct.pack(">QQQ", odd(chance, 64), odd(chance, 64), odd(chance, 64))]
        return b"".join(parts)


class Maps(Framed):
    """`hadoop serve --hdfs`, which takes modules that jobs bring."""

    magic, kinds = b"MGHN", [1, 2, 3, 4]

    def words(self, trial):
        (trial.folder / "data/current").mkdir(parents=True)
        return ["hadoop", "serve", "--hdfs", self.path, "--hdfs-data-dir", "data", "--memory", "64M", "--job-ssdlets"]

    def body(self, chance):
        if chance.random() < 0.2:
            return b"\0asm\1\0\0\0" + chance.randbytes(chance.choice([0, 10, 100_000]))
        ranges = chance.choice([0, 1, 3, 256])
        parts = [text16("attempt_1"), b"\1", text16(chance.choice(["wordcount", "match", "", "x" * 200])), text16("{}")]
        parts += [text16(chance.choice(["BP-1", "..", "a/b", ""])), struct.pack(">I", ranges)]
        parts += [struct.pack(">5Q", *(odd(chance, 64) for _ in range(5))) for _ in range(ranges)]
        tail = chance.randbytes(chance.choice([0, 1, 3000]))
        parts += [struct.pack(">QQI", odd(chance, 64), odd(chance, 64), len(tail)), tail, b"\1"]
        parts += [text16(chance.choice(["", "\n", "ab"])), struct.pack(">II", odd(chance), odd(chance))]
        parts += [bytes([1, 1, 1, 2, 1, 0]), struct.pack(">QI", odd(chance, 64), chance.choice([0, 100, 30000]))]
        return b"".join(parts)


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
CALLS = ["DoAction", "DoGet", "DoPut", "GetFlightInfo", "ListFlights", "ListActions", "DoExchange", "Handshake", "Nothing"]


def frame(kind, flags, stream, body=b"", length=None):
    """A frame of HTTP/2."""
    return struct.pack(">I", len(body) if length is None else length)[1:] + struct.pack(">BBI", kind, flags, stream) + body


def headers(call):
    """A block of headers without a table and without Huffman codes."""
    fields = [(":method", "POST"), (":scheme", "http"), (":path", f"/arrow.flight.protocol.FlightService/{call}"),
              (":authority", "localhost"), ("content-type", "application/grpc"), ("te", "trailers")]  # fmt: skip
    return b"".join(b"\0" + short(name) + short(value) for name, value in fields)


def short(text):
    """A text of less than 127 bytes, as HPACK has it."""
    return bytes([len(text)]) + text.encode()


def proto(number, content):
    """A field of bytes of a protocol buffer."""
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def varint(number):
    """A number in groups of seven bits."""
    groups = []
    while True:
        groups.append(number & 127 | (128 if number > 127 else 0))
        number >>= 7
        if not number:
            return bytes(groups)


class Node:
    """`serve --data`: Arrow Flight."""

    memory_bytes = 64 << 20

    def __init__(self, _trial):
        self.address = ("127.0.0.1", free_port())

    def words(self, trial):
        (trial.folder / "data").mkdir()
        (trial.folder / "data/words").write_bytes(LINES)
        trial.run(["sort", "data/words", "--view", "data/v.view"])
        return ["serve", "--data", "data", "--listen", "%s:%d" % self.address, "--memory", "64M", "-T", "."]

    def open(self, process):
        """Waits until it takes connections."""
        return serving.appears(process, self.reachable)

    def reachable(self):
        try:
            self.connect().close()
            return True
        except OSError:
            return False

    def connect(self):
        """A new connection."""
        return socket.create_connection(self.address, WAIT_S)

    def hostile(self, chance):
        """Calls with odd bodies, floods, or frames of any kind."""
        begin = PREFACE + frame(SETTINGS, 0, 0)
        way = chance.choice(["calls"] * 6 + ["frames", "flood", "continuation", "garbage"])
        if way == "garbage":
            return [chance.randbytes(chance.choice([1, 100, 20000]))]
        if way == "flood":
            stream = iter(range(1, 1000, 2))
            one = {
                "ping": lambda: frame(PING, 0, 0, bytes(8)),
                "settings": lambda: frame(SETTINGS, 0, 0),
                "reset": lambda: frame(HEADERS, 4, (n := next(stream)), headers("DoAction")) + frame(RESET, 0, n, bytes(4)),
                "window": lambda: frame(WINDOW, 0, 0, struct.pack(">I", 1)),
            }[chance.choice(["ping", "settings", "reset", "window"])]
            return [begin, b"".join(one() for _ in range(400))]
        if way == "continuation":
            more = frame(CONTINUATION, 0, 1, b"\0" + short("x" * 100) + short("y" * 100)) * 2000
            return [begin + frame(HEADERS, 0, 1, headers("DoGet")), more]
        if way == "frames":
            frames = (frame(odd(chance, 8), odd(chance, 8), odd(chance, 31), chance.randbytes(chance.choice([0, 8, 500])),
                            odd(chance, 24) if chance.random() < 0.3 else None) for _ in range(30))  # fmt: skip
            return [begin, *frames]
        pieces = [begin]
        for number in range(chance.choice([1, 1, 5, 40])):
            stream, call = 2 * number + 1, chance.choice(CALLS)
            message = self.message(chance, call)
            head = b"\0" + struct.pack(">I", len(message) if chance.random() < 0.9 else odd(chance))
            pieces.append(frame(HEADERS, 4, stream, headers(call)) + frame(DATA, 1, stream, head + message[:16000]))
        return pieces

    def message(self, chance, call):
        """The body of a call."""
        if call == "DoAction":
            action = chance.choice(["list", "open", "set", "status", "cancel", "close", "stat", "upload", "odd"])
            body = json.dumps(self.fields(chance)).encode()
            if action == "upload":
                body = b"\0asm\1\0\0\0" + chance.randbytes(300)
            return proto(1, action.encode()) + proto(2, changed(chance, body))
        if call == "DoGet":
            return proto(1, changed(chance, json.dumps(self.fields(chance)).encode()))
        return changed(chance, proto(1, chance.randbytes(20)) + proto(2, b"x"))

    def fields(self, chance):
        """Fields of a request; any may be odd."""
        known = {
            "ssdlet": chance.choice(["wordcount", "match", "filter", "nothing"]),
            "args": chance.choice([{}, {"keys": ["a"] * 2000}, {"where": "x > 1"}, {"regex": "(a*)*{100}"}, [], "x"]),
            "session": chance.choice([0, 1, 2, "a", -1, 1 << 63]),
            "ranges": [{"path": chance.choice(ODD_PATHS), "start": odd(chance, 40)}] * chance.choice([0, 1, 500]),
            "run": chance.choice([True, None]),
            "path": chance.choice(ODD_PATHS),
            "view": chance.choice(["v.view", "v.view/", "../v.view", "words"]),
            "records": chance.choice([[0, 10], [odd(chance, 40), None], [9, 1], {}, [0.5, 1]]),
            "memory": odd(chance, 40),
            "offset": odd(chance, 40),
        }
        return {name: known[name] for name in known if chance.random() < 0.35}

    def honest(self, trial):
        ended = trial.run(["map", "wordcount", "words", "--on", "%s:%d" % self.address, "--top", "1"])
        if ended.code or not re.match(rb"(same|the|words)\t4000\n", ended.out):
            raise Wrong(f"a client is answered {ended.out[:60]!r}, status {ended.code}: {'; '.join(ended.lines)[:200]}")


MAGIC = b"MGsf"


class Calls:
    """`serve --log-folder`: calls through files (smartFAM). A hostile connection is a file."""

    memory_bytes = 64 << 20

    def __init__(self, _trial):
        self.count = 0

    def words(self, trial):
        (trial.folder / "data").mkdir()
        (trial.folder / "data/words").write_bytes(LINES)
        self.folder = trial.folder / "calls"
        self.folder.mkdir()
        return ["serve", "--data", "data", "--log-folder", self.folder, "--memory", "64M", "-T", "."]

    def open(self, process):
        """Waits for the folders of modules."""
        return serving.appears(process, (self.folder / "wordcount").is_dir)

    def connect(self):
        """A new client."""
        self.count += 1
        return Log(self.folder / "wordcount" / f"stranger{self.count}.req")

    def hostile(self, chance):
        """Requests and garbage, end to end."""
        pieces = []
        for _ in range(chance.choice([1, 3, 30])):
            fields = {"args": chance.choice([{}, [], {"rule": 1}]), "inputs": [chance.choice(ODD_PATHS)] * chance.choice([1, 99])}
            pieces.append(changed(chance, framed(odd(chance, 64), json.dumps(fields).encode())))
        return pieces

    def honest(self, trial):
        # A name of its own: the node removes the answers of a client that has left, maybe only now.
        self.count += 1
        log = Log(self.folder / "wordcount" / f"honest{self.count}.req")
        answers = log.path.with_suffix(".res")
        log.sendall(framed(1, json.dumps({"args": {}, "inputs": ["words"]}).encode()))
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            content = answers.read_bytes() if answers.exists() else b""
            if len(content) > 20:
                if b'"inline"' not in content and b'"file"' not in content:
                    raise Wrong(f"a call is answered {content[20:200]!r}")
                log.path.unlink()
                return
            time.sleep(0.01)
        raise Wrong(f"a call is not answered within {WAIT_S} s")


class Log:
    """A file of requests, with the face of a connection."""

    def __init__(self, path):
        self.path = path

    def sendall(self, piece):
        with open(self.path, "ab") as file:
            file.write(piece)

    def settimeout(self, _seconds):
        """There is nothing to wait for."""

    def recv(self, _length):
        return b""

    def close(self):
        """The client ends."""
        self.path.unlink(missing_ok=True)


def framed(number, body):
    """A frame of smartFAM."""
    head = MAGIC + struct.pack("<IQ", len(body), number)
    return head + struct.pack("<I", checksum.crc32c(head + body)) + body


DOORS = {"view": View, "volume": Volume, "shuffle": Shuffle, "maps": Maps, "node": Node, "calls": Calls}
