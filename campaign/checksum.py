"""CRC32C, and the two ways in which merganser's small files carry it."""

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


def manifest_of(value):
    """A manifest file: JSON, a newline, and a line with the checksum."""
    text = json.dumps(value, indent=2).encode() + b"\n"
    return text + b"crc32c %08x\n" % crc32c(text)


def read_manifest(content):
    """The JSON of a manifest file."""
    return json.loads(content[: content.rindex(b"crc32c ")])


def sealed(value):
    """A journal or a resume file: JSON and the four bytes of its checksum."""
    text = json.dumps(value, separators=(",", ":")).encode()
    return text + crc32c(text).to_bytes(4, "little")


def read_sealed(content):
    """The JSON of a journal or a resume file."""
    return json.loads(content[:-4])
