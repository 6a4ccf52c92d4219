"""The preload shim, which is compiled once, and its environment."""

import subprocess
from pathlib import Path

CHANGES = "myw"
"""Changes of names and sizes, syncs, writes."""
NAMES = "my"
"""The same without writes, which the shim does not see with io_uring."""
ALL = "mywroa"
"""All calls that can fail."""


def build(folder):
    """Compiles the shim; gives its path."""
    library = Path(folder) / "fault.so"
    source = Path(__file__).with_name("fault.c")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl", "-lpthread"], check=True)
    return library


def disturb(library, under, *, classes=CHANGES, at=0, do="", error=0, on=False, ring=False, log=None, sticky=False):
    """The environment that disturbs a process."""
    variables = {
        "LD_PRELOAD": str(library),
        "FAULT_UNDER": str(under),
        "FAULT_CLASSES": classes,
        "FAULT_AT": str(at),
        "FAULT_DO": do,
        "FAULT_ERRNO": str(error),
        "FAULT_ON": "1" if on else "0",
        "FAULT_RING": "1" if ring else "0",
        "FAULT_STICKY": "1" if sticky else "0",
    }
    if log:
        variables["FAULT_LOG"] = str(log)
    return variables
