"""Kills of `array serve` while a client of NBD writes: at a random request, in the middle of several, or at the Nth sync or
write of the server. A write that was answered must be there (with --write-back: one that was flushed), each other page holds
one of its versions, and at the end `array check` finds nothing.
"""

import json
import random
import signal
import socket
import struct

import serving
import shim
from case import SURVIVED, Case, Lost, Wrong

WEIGHT = 4
SMOKE = 12
NEEDS_ROOT = False

PAGE = 4096
PAGES = 1024
WRITE, FLUSH, TRIM = 1, 3, 4
REPLY_MAGIC = 0x67446698
KINDS = {
    "durable": ([], []),
    "cached": ([], ["--write-back"]),
    "plain": (["--no-dedup"], ["--write-back"]),
    "straight": (["--no-buffer"], []),
    "straight-cached": (["--no-buffer"], ["--write-back"]),
    "compared": (["--hash", "sha1", "--compare"], []),
}
"""By name: options of `create` and of `serve`."""


def cases(_setup, seed):
    """Endless: each kind of volume in turn."""
    chance = random.Random(f"volumes {seed}")
    number = 0
    while True:
        for name in chance.sample(sorted(KINDS), len(KINDS)):
            number += 1
            yield Case.of("array", name, n=number, seed=seed)


def run(case, trial):
    """Makes a volume, kills its server a few times, and checks it."""
    chance = trial.chance
    create, serve = KINDS[case.scenario]
    words = ["array", "create", "vol.json", "--quiet", "--size", PAGES * PAGE, "--data", "ssd0,ssd1", *create]
    if "--no-buffer" not in create:
        words += ["--buffer", "hdd0,hdd1", "--buffer-size", "6M"]
    if trial.run(map(str, words)).code:
        raise Wrong("a volume can't be made")
    serve = [*serve, "--memory", "1M", "--migration", chance.choice(["idle", "immediate", "high-water"])]
    model = Model(durable="--write-back" not in serve)
    for _ in range(chance.choice([2, 3, 4])):
        round_of(trial, serve, model)
    # A last look, in a server that ends in order.
    round_of(trial, serve, model, quietly=True)
    ended = trial.run(["array", "check", "vol.json", "--json", "--quiet"])
    found = json.loads(ended.out) if ended.out else {}
    if ended.code or found.get("problems") or found.get("pages_leaked"):
        raise Wrong(f"check: status {ended.code}, {found.get('problems')} problems, {found.get('pages_leaked')} pages leaked")
    return SURVIVED


class Model:
    """The contents that each page may have, by their seeds, the newest last; 0 is zeros."""

    def __init__(self, durable):
        self.durable = durable
        self.versions = {}

    def begin(self, page, seed):
        """A write has been sent."""
        self.versions.setdefault(page, [0]).append(seed)

    def answered(self, page):
        """It was answered, and no other is under way."""
        if self.durable:
            self.versions[page] = self.versions[page][-1:]

    def flushed(self):
        """A flush was answered, and no write is under way."""
        for page, versions in self.versions.items():
            self.versions[page] = versions[-1:]

    def found(self, page, content):
        """A page was read after the server's end. From now on it has this content."""
        for seed in reversed(self.versions[page]):
            if content == content_of(seed):
                self.versions[page] = [seed]
                return
        raise Lost(f"page {page} holds none of its {len(self.versions[page])} versions")


def content_of(seed):
    """A page; some seeds are common, so that pages are shared."""
    return bytes(PAGE) if seed == 0 else random.Random(seed).randbytes(PAGE)


def round_of(trial, serve, model, quietly=False):
    """Serves the volume, reads what is known about it, and writes until it is killed."""
    chance = trial.chance
    # The path of a socket is short.
    path = trial.setup.own / "array"
    path.unlink(missing_ok=True)
    env = None
    at_call = not quietly and chance.random() < 0.5
    if at_call:
        how = chance.choices(["kill", "late", "torn"], [3, 1, 1])[0]
        env = trial.setup.disturbed(trial.folder, classes=shim.CHANGES, at=chance.randrange(1, 300), do=how)
    process = trial.start(["array", "serve", "vol.json", "--nbd", path, *serve], env)
    killed_at = chance.randrange(1, 250)
    try:
        if serving.appears(process, path.exists):
            with Device(path) as device:
                for page in sorted(model.versions):
                    model.found(page, device.read(page))
                if not quietly:
                    write(chance, device, model, killed_at)
        elif not at_call:
            trial.finish(process)
            raise Lost("the volume can't be opened again")
    except TimeoutError:
        raise Wrong(f"a request is not answered within {serving.WAIT_S} s") from None
    except ConnectionError as error:
        trial.say(f"  the connection ended: {error}")
        if not at_call:
            raise Wrong(f"the server closed or refused a connection by itself: {error}") from None
    finally:
        process.signal(signal.SIGTERM if quietly else signal.SIGKILL)
        ended = trial.finish(process, expected_signal=quietly)
        trial.disturbed += ended.killed
    if at_call and not ended.killed:
        raise Lost(f"the volume can't be opened again: {'; '.join(ended.lines)[:200]}")
    if quietly and ended.code != 0:
        raise Wrong(f"SIGTERM ends it with status {ended.code}")


def write(chance, device, model, count):
    """Writes, trims and flushes; then several writes at once, which are not waited for."""
    for _ in range(count):
        page = chance.randrange(PAGES)
        action = chance.random()
        if action < 0.06:
            device.ask(FLUSH)
            model.flushed()
            continue
        seed = 0 if action < 0.12 else chance.randrange(1, 400)
        model.begin(page, seed)
        if seed:
            device.ask(WRITE, page, content_of(seed))
        else:
            device.ask(TRIM, page, length=PAGE)
        model.answered(page)
    for _ in range(chance.randrange(16)):
        page, seed = chance.randrange(PAGES), chance.randrange(1, 400)
        model.begin(page, seed)
        device.send(WRITE, page, content_of(seed))


class Device:
    """A client of the first export of a server."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(serving.WAIT_S)
        self._socket.connect(str(path))
        magic, option, _flags = struct.unpack(">QQH", serving.exactly(self._socket, 18))
        if (magic, option) != (serving.NBD_MAGIC, serving.OPTION_MAGIC):
            raise Wrong("no NBD greeting")
        hello = struct.pack(">IQII", 1 | serving.NO_ZEROES, serving.OPTION_MAGIC, serving.EXPORT_NAME, 0)
        self._socket.sendall(hello)
        size, _flags = struct.unpack(">QH", serving.exactly(self._socket, 10))
        if size != PAGES * PAGE:
            raise Wrong(f"the export has {size} bytes")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def send(self, command, page=0, content=b"", length=None):
        """Sends a request, and does not wait."""
        length = len(content) if length is None else length
        self._socket.sendall(struct.pack(">IHHQQI", 0x25609513, 0, command, 1, page * PAGE, length) + content)

    def ask(self, *request, **more):
        """Sends a request, and waits for its answer."""
        self.send(*request, **more)
        magic, error, _handle = struct.unpack(">IIQ", serving.exactly(self._socket, 16))
        if magic != REPLY_MAGIC:
            raise Wrong("no NBD reply")
        if error:
            raise Wrong(f"request {request[0]} fails with {error}")

    def read(self, page):
        """The content of a page."""
        self.ask(serving.READ, page, length=PAGE)
        return serving.exactly(self._socket, PAGE)
