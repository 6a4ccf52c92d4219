"""The names that merganser gives to its helper files. Everything here follows docs/formats.md."""

import json
import re

MANIFEST = "manifest"
JOURNAL = "sort-journal"
MARKER = "consumed-into"
NOTE = "work-note"
"""It has no meaning in a view that has its name. Its removal may fail, which is not told."""

NOTICES = re.compile(
    r"^merganser: (every record is in .*|.*left by .* removed|.*nothing is left to do"
    r"|.*stays, since it holds files that are no part of the view|.*reading [0-9]+ bytes at offset [0-9]+ failed: .*)$"
)
"""Lines on stderr that are allowed in addition to the one sentence of a failure."""


def unfinished(result):
    """The folder in which a view, or a sort that consumes its inputs, is made."""
    return f".{result}.unfinished"


def claimed(name):
    """An input while its bytes are given back."""
    return f".{name}.merganser-consumed"


def partial(result):
    """An output that is being copied out of a view."""
    return f"{unfinished(result)}/partial"


def resume(result):
    """How far that copy is."""
    return f"{unfinished(result)}/resume"


def is_run(name):
    """Whether a file of a view holds records."""
    return name.endswith((".run", ".buckets"))


def is_small(name):
    """Whether a helper file is text with a checksum, and not records."""
    return name in (MANIFEST, JOURNAL, MARKER, "resume")


def files_of_view(manifest):
    """The names that the folder of a finished view has, by its manifest's bytes."""
    text = manifest[: manifest.rindex(b"crc32c ")]
    buckets = json.loads(text)["buckets"]
    return {MANIFEST} | {segment["run"] for bucket in buckets for segment in bucket["segments"]}
