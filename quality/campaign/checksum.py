"""CRC32C, and its place in merganser's small files."""

import json


def _table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _table()


def crc32c(content):
    """The CRC32C (Castagnoli) of some bytes."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc = _TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def sealed(value):
    """A manifest, a journal or a resume point: JSON, a newline, and a line with the checksum."""
    text = json.dumps(value, indent=2).encode() + b"\n"
    return text + b"crc32c %08x\n" % crc32c(text)


def read_sealed(content):
    """The JSON of such a file."""
    return json.loads(content[: content.rindex(b"crc32c ")])
