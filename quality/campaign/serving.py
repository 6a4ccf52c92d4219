"""Reading a view through `mount` and through `export --nbd`: for each, the bytes, or None where a read failed."""

import os
import signal
import socket
import struct
import subprocess
import time

from case import Wrong

WAIT_S = 10
CHUNK_BYTES = 1 << 16
NBD_MAGIC, OPTION_MAGIC = 0x4E42444D41474943, 0x49484156454F5054
EXPORT_NAME, READ, DISCONNECT = 1, 0, 2
NO_ZEROES = 2


def mounted(trial, view, size):
    """The whole file that a mount shows."""
    place = trial.root / "mountpoint"
    place.mkdir(exist_ok=True)
    process = trial.start(["mount", view, place])
    trial.cleanup.append(lambda: subprocess.run(["umount", "-l", place], capture_output=True))
    content = None
    try:
        if appears(process, lambda: os.path.ismount(place)):
            try:
                name = next(iter(os.listdir(place)))
                with open(place / name, "rb") as file:
                    content = file.read(size + 1)
            except OSError as error:
                trial.say(f"  reading failed: {error}")
    finally:
        process.signal(signal.SIGTERM)
        trial.finish(process, expected_signal=True)
    return content


def exported(trial, view, size):
    """The whole device that an NBD export shows."""
    # The path of a socket is short.
    path = trial.setup.own / "nbd"
    path.unlink(missing_ok=True)
    process = trial.start(["export", "--nbd", path, view])
    content = None
    try:
        if appears(process, path.exists):
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(WAIT_S)
                client.connect(str(path))
                content = read_device(client, size)
                if content is None:
                    trial.say("  a read failed")
    except TimeoutError:
        raise Wrong(f"an NBD read is not answered within {WAIT_S} s") from None
    except (ConnectionError, struct.error) as error:
        trial.say(f"  the connection ended: {error}")
    finally:
        process.signal(signal.SIGTERM)
        trial.finish(process, expected_signal=True)
    return content


def appears(process, there):
    """Waits until a file exists, or the process has ended."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        if process.ended_within(0.002):
            return False
        if there():
            return True
    raise Wrong(f"neither served nor ended after {WAIT_S} s")


def read_device(client, size):
    """Negotiates the default export and reads `size` bytes; None if a read fails or the size is another."""
    magic, option, _flags = struct.unpack(">QQH", exactly(client, 18))
    if (magic, option) != (NBD_MAGIC, OPTION_MAGIC):
        raise Wrong("no NBD greeting")
    client.sendall(struct.pack(">I", 1 | NO_ZEROES))
    client.sendall(struct.pack(">QII", OPTION_MAGIC, EXPORT_NAME, 0))
    exported_size, _flags = struct.unpack(">QH", exactly(client, 10))
    content = b""
    while exported_size >= size and len(content) < size:
        length = min(CHUNK_BYTES, size - len(content))
        client.sendall(struct.pack(">IHHQQI", 0x25609513, 0, READ, 1, len(content), length))
        magic, error, _handle = struct.unpack(">IIQ", exactly(client, 16))
        if magic != 0x67446698:
            raise Wrong("no NBD reply")
        if error:
            return None
        content += exactly(client, length)
    client.sendall(struct.pack(">IHHQQI", 0x25609513, 0, DISCONNECT, 2, 0, 0))
    return content if exported_size == size else None


def exactly(client, length):
    """Exactly this number of bytes."""
    parts = b""
    while len(parts) < length:
        part = client.recv(length - len(parts))
        if not part:
            raise ConnectionError("closed by the server")
        parts += part
    return parts
