"""A small store on 127.0.0.1 that speaks as much of S3 as is needed here, and misbehaves where a test says so.

Its objects are also plain files: http://127.0.0.1:PORT/bucket/key. A test gives `on_request`, which gets each request before it
is answered, and may return one of the faults below."""

import dataclasses
import hashlib
import http.server
import re
import threading
import time
import urllib.parse
import xml.sax.saxutils


class Fault:
    """What happens instead of the answer."""


@dataclasses.dataclass
class Status(Fault):
    """An error of the store."""

    code: int
    body: bytes = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


@dataclasses.dataclass
class Cut(Fault):
    """The connection ends in the middle of the body, which was announced as a whole, after this number of bytes."""

    after: int


@dataclasses.dataclass
class Lie(Fault):
    """The answer has other headers than the right ones; with `shorter`, the body is so much shorter, and says so."""

    headers: dict = dataclasses.field(default_factory=dict)
    shorter: int = 0


class Whole(Fault):
    """The range is ignored, and all of the object is sent with the status 200."""


class AnswerLost(Fault):
    """The request is done, and the connection ends before the answer."""


@dataclasses.dataclass
class Request:
    method: str
    key: str
    query: dict
    range: tuple | None


class ObjectServer(http.server.ThreadingHTTPServer):
    """Use it as a context; `url` is its address."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.objects = {}
        self.uploads = {}
        self.lock = threading.Lock()
        self.requests = []
        self.on_request = lambda request: None
        self.knows_conditions = True
        self.started = 0

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, address):
        """Clients end connections as they like."""

    def put(self, key, body):
        with self.lock:
            self.objects[key] = bytes(body)

    def environment(self):
        return {
            "AWS_ACCESS_KEY_ID": "AKIATESTTESTTEST",
            "AWS_SECRET_ACCESS_KEY": "a-secret-of-the-test",
            "AWS_SESSION_TOKEN": "a-token-of-the-test",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.url,
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
            "AWS_CONFIG_FILE": "/dev/null",
            "MERGANSER_RETRY_SECONDS": "2",
        }


def tag(body):
    return f'"{hashlib.md5(body).hexdigest()}"'


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # A body that follows its headers in a packet of its own would wait for the client.
    wbufsize = 1 << 16

    def log_message(self, *_):
        pass

    def parsed(self):
        path, _, query = self.path.partition("?")
        key = urllib.parse.unquote(path.removeprefix("/bucket").lstrip("/"))
        query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        asked = asked and (int(asked[1]), int(asked[2]) + 1)
        return Request(self.command, key, query, asked)

    def answer(self, code, body=b"", headers=None, fault=None):
        headers = {"Content-Length": str(len(body)), **(headers or {})}
        if isinstance(fault, Lie):
            body = body[: len(body) - fault.shorter]
            headers = {**headers, "Content-Length": str(len(body)), **fault.headers}
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: fault.after] if isinstance(fault, Cut) else body)
        self.wfile.flush()
        self.close_connection |= isinstance(fault, Cut)

    def handled(self):
        request = self.parsed()
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append(request)
        fault = self.server.on_request(request)
        if isinstance(fault, Status):
            return self.answer(fault.code, fault.body)
        store = self.server
        if request.method in ("GET", "HEAD") and request.query.get("list-type"):
            return self.answer(200, self.listed(request.query))
        if request.method in ("GET", "HEAD"):
            return self.read(request, fault)
        with store.lock:
            answer = self.written(request, body)
        if isinstance(fault, AnswerLost):
            self.close_connection = True
            return None
        return self.answer(*answer)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handled

    def read(self, request, fault):
        body = self.server.objects.get(request.key)
        if body is None:
            return self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        headers = {"ETag": tag(body), "Last-Modified": "Sat, 28 Nov 2026 00:00:00 GMT"}
        condition = self.headers.get("If-Match")
        if self.server.knows_conditions and condition and condition != headers["ETag"]:
            return self.answer(412)
        if not request.range or isinstance(fault, Whole):
            return self.answer(200, body, headers, fault)
        start, end = request.range
        if start >= len(body):
            return self.answer(416)
        part = body[start:end]
        headers["Content-Range"] = f"bytes {start}-{start + len(part) - 1}/{len(body)}"
        return self.answer(206, part, headers, fault)

    def listed(self, query):
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        contents, folders = [], []
        for key in sorted(self.server.objects):
            rest = key.removeprefix(prefix) if key.startswith(prefix) else None
            if rest and delimiter and delimiter in rest:
                folder = prefix + rest.split(delimiter)[0] + delimiter
                if folder not in folders:
                    folders.append(folder)
            elif rest is not None:
                contents.append(key)
        escaped = xml.sax.saxutils.escape
        text = ["<ListBucketResult><IsTruncated>false</IsTruncated>"]
        for key in contents:
            body = self.server.objects[key]
            text.append(
                f"<Contents><Key>{escaped(key)}</Key><LastModified>2026-11-28T00:00:00.000Z</LastModified>"
                f"<ETag>{escaped(tag(body))}</ETag><Size>{len(body)}</Size></Contents>"
            )
        text += [f"<CommonPrefixes><Prefix>{escaped(folder)}</Prefix></CommonPrefixes>" for folder in folders]
        return "".join([*text, "</ListBucketResult>"]).encode()

    def written(self, request, body):
        store, query = self.server, request.query
        upload = store.uploads.get(query.get("uploadId"))
        if request.method == "POST" and "uploads" in query:
            store.started += 1
            name = f"upload-{store.started}"
            store.uploads[name] = (request.key, {})
            return 200, f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId></InitiateMultipartUploadResult>".encode()
        if "uploadId" in query and (upload is None or upload[0] != request.key):
            return 404, b"<Error><Code>NoSuchUpload</Code></Error>"
        if request.method == "PUT" and upload:
            upload[1][int(query["partNumber"])] = body
            return 200, b"", {"ETag": tag(body)}
        if request.method == "POST" and upload:
            parts = [upload[1][number] for number in sorted(upload[1])]
            named = re.findall(r"<ETag>(.*?)</ETag>", body.decode())
            if [xml.sax.saxutils.unescape(name, {"&quot;": '"'}) for name in named] != [tag(part) for part in parts]:
                return 400, b"<Error><Code>InvalidPart</Code></Error>"
            if any(len(part) < 5 << 20 for part in parts[:-1]):
                return 400, b"<Error><Code>EntityTooSmall</Code></Error>"
            store.objects[request.key] = b"".join(parts)
            del store.uploads[query["uploadId"]]
            made = tag(store.objects[request.key]).replace('"', "&quot;")
            return 200, f"<CompleteMultipartUploadResult><ETag>{made}</ETag></CompleteMultipartUploadResult>".encode()
        if request.method == "DELETE" and upload:
            del store.uploads[query["uploadId"]]
            return 204, b""
        if request.method == "PUT":
            store.objects[request.key] = body
            return 200, b"", {"ETag": tag(body)}
        return 400, b"<Error><Code>NotImplemented</Code></Error>"


def slow(seconds):
    """The answer comes later, which is no fault."""
    time.sleep(seconds)
