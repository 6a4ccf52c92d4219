"""The surroundings that all cases share: the command, the shim, the folders, and things that are made once."""

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import data
import shim

REPOSITORY = Path(__file__).resolve().parent.parent.parent
SPARE_BYTES = 3 << 30


def environment():
    """The environment of every command, without the caller's settings."""
    return {"LC_ALL": "C", "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": "/nonexistent"}


def default_folder():
    """The folder in which cases run. It is in memory if there is room, so that no case waits for a disk."""
    memory = Path("/dev/shm")
    if memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > SPARE_BYTES:
        return memory
    return Path(tempfile.gettempdir())


@dataclass(frozen=True)
class Setup:
    """The campaign's surroundings."""

    merganser: Path
    memory: int
    """The least memory that a sort accepts, so that small inputs make several runs."""
    shim: Path
    folder: Path
    """A folder of this campaign alone, which is removed at its end."""
    kept: Path
    """The destination of the folders of lost and wrong cases."""
    seed: int

    @staticmethod
    def make(merganser, folder, kept, seed):
        """Finds the command and the least memory, and compiles the shim."""
        folder = Path(tempfile.mkdtemp(prefix="merganser-campaign-", dir=folder))
        folder.chmod(0o755)
        return Setup(merganser, least_memory(merganser, folder, seed), shim.build(folder), folder, kept, seed)

    @property
    def own(self):
        """This process's folder."""
        folder = self.folder / f"process-{os.getpid()}"
        folder.mkdir(exist_ok=True)
        return folder

    def disturbed(self, under, **what):
        """The environment of a disturbed command."""
        return environment() | shim.disturb(self.shim, under, **what)


def least_memory(merganser, folder, seed):
    """A little more than the least memory for a sort of the campaign's lines. The error text of a sort names the least."""
    least = 0
    for number in range(data.KINDS):
        path = folder / "least"
        path.write_bytes(data.lines(seed, number, "small")[0])
        words = [merganser, "sort", "--memory", "1", path, "-o", folder / "sorted"]
        said = subprocess.run(words, capture_output=True, text=True, env=environment()).stderr
        path.unlink()
        numbers = [int(number) for number in re.findall(r"\d+", said)]
        if not numbers or max(numbers) < 1 << 16:
            raise SystemExit(f"campaign: {merganser} does not say the least memory of a sort: {said}")
        least = max(least, *numbers)
    return least * 51 // 50
