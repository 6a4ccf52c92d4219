"""One case in its folder: runs commands, keeps a log, and makes the checks that every ended command must pass."""

import os
import shlex
import shutil
import signal

import names
from case import Wrong
from process import PATIENCE_S, Process
from setup import environment

PANIC = ("panicked", "RUST_BACKTRACE", "has overflowed its stack", "memory allocation of", "fatal runtime error", "unwrap()")

STOPPED = {128 + signal.SIGTERM, 128 + signal.SIGINT}


class Trial:
    """A case's folder, its chance and what happened so far."""

    def __init__(self, setup, case, place="case"):
        self.setup = setup
        self.case = case
        self.chance = case.chance()
        self.log = []
        self.disturbed = 0
        self.killed = 0
        self.cleanup = []
        self.complaints = []
        """Faults that do not end the case, because lost records would be a worse verdict."""
        self.patience_s = PATIENCE_S
        self.root = setup.own / place
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir()
        self.root.chmod(0o755)
        self.folder = self.root / "work"
        """The folder in which commands run. After success it may hold only inputs, results and temporary folders."""
        self.folder.mkdir()

    def say(self, text):
        """A line for the log."""
        self.log.append(text)

    def start(self, words, env=None, user=None, patience_s=None):
        """Starts merganser with these words."""
        patience_s = patience_s or self.patience_s
        words = [os.fspath(word) for word in words]
        self.say("$ merganser " + shlex.join(words) + (f"   # as user {user}" if user is not None else ""))
        return Process([self.setup.merganser, *words], self.folder, env or environment(), user, patience_s)

    def finish(self, process, expected_signal=False):
        """Waits for the end of a process and checks how it ended."""
        ended = process.wait()
        said = "; ".join(ended.lines)[:500]
        self.say(f"  ended {ended.code} after {ended.seconds:.3f} s{': ' + said if said else ''}")
        self.killed += ended.killed
        self.judge(ended, expected_signal)
        return ended

    def run(self, words, env=None, user=None):
        """Runs merganser to its end."""
        return self.finish(self.start(words, env, user))

    def disturb(self, words, **what):
        """Runs merganser under the shim. Returns whether the disturbance happened, and how the command ended."""
        log = self.root / "shim.log"
        log.unlink(missing_ok=True)
        what.setdefault("under", self.folder)
        under = what.pop("under")
        process = self.start(words, self.setup.disturbed(under, log=log, **what))
        ended = self.finish(process)
        hit = log.read_text(errors="replace").splitlines() if log.exists() else []
        for line in hit[:3]:
            self.say(f"  {what.get('do')} {what.get('error') or ''} at call {line}")
        self.disturbed += bool(hit)
        return bool(hit), ended

    def judge(self, ended, expected_signal=False):
        """Checks for every end: no panic, no hang, a documented status, one sentence with an error."""
        for word in PANIC:
            if word in ended.err:
                line = next(line for line in ended.lines if word in line)
                raise Wrong(f"panic text, {'hangs' if ended.hung else f'status {ended.code}'}: {line[:200]}")
        if ended.hung:
            raise Wrong(f"hangs: not at its end after {ended.seconds:.0f} s")
        if ended.killed:
            return
        if expected_signal and (ended.code in STOPPED or ended.code in (-signal.SIGTERM, -signal.SIGINT)):
            return
        if ended.code < 0:
            raise Wrong(f"ended by signal {-ended.code}")
        if ended.code not in (0, 1, 2):
            raise Wrong(f"status {ended.code}")
        foreign = [line for line in ended.lines if not line.startswith("merganser: ")]
        if foreign:
            raise Wrong(f"status {ended.code} and a line on stderr that is no sentence: {foreign[0][:200]}")
        sentences = [line for line in ended.lines if not names.NOTICES.match(line)]
        # A server prints a sentence for each read that fails.
        served = any(" bytes at offset " in line for line in ended.lines)
        if ended.code == 2 and len(sentences) != 1 and not served:
            raise Wrong(f"status 2 and {len(sentences)} sentences on stderr instead of one")
        if ended.code == 1 and len(sentences) > 1:
            raise Wrong(f"status 1 and {len(sentences)} sentences on stderr")
        if any(ord(letter) < 32 and letter != "\n" for letter in ended.err):
            raise Wrong("control characters on stderr")

    def end(self, keep):
        """Undoes mounts, and removes the folder or keeps it; gives the place where it is kept."""
        kept = ""
        if keep:
            place = self.setup.kept / "".join(c if c.isalnum() or c in ".-=," else "_" for c in str(self.case))
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            log = "\n".join([f"case {self.case}", *self.log, ""])
            (place / "log").write_bytes(log.encode(errors="backslashreplace"))
            try:
                shutil.copytree(self.folder, place / "work", symlinks=True, ignore=_unless_plain, dirs_exist_ok=True)
            except (OSError, shutil.Error) as error:
                (place / "incomplete").write_text(f"{error}\n")
            kept = str(place)
        while self.cleanup:
            self.cleanup.pop()()
        shutil.rmtree(self.root, ignore_errors=True)
        return kept


def _unless_plain(folder, entries):
    """Names that can't or should not be copied: pipes, sockets, devices, and very large files."""
    skipped = []
    for entry in entries:
        path = os.path.join(folder, entry)
        if os.path.islink(path) or os.path.isdir(path):
            continue
        if not os.path.isfile(path) or os.path.getsize(path) > 8 << 20:
            skipped.append(entry)
    return skipped
