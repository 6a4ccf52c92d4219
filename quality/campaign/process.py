"""One process: started, signalled, waited for within a bound."""

import os
import select
import signal
import subprocess
import time
from dataclasses import dataclass

PATIENCE_S = 12
"""After this long a command hangs. A command of the campaign takes a small part of a second."""


@dataclass
class Ended:
    """How a process ended."""

    code: int
    """Exit status, or the negative number of the signal that ended it."""
    out: bytes
    err: str
    hung: bool
    seconds: float

    @property
    def killed(self):
        """Whether SIGKILL ended it."""
        return self.code == -signal.SIGKILL and not self.hung

    @property
    def lines(self):
        """What it said, line by line."""
        return self.err.splitlines()


class Process:
    """A process that runs. Its output goes to memory, so that a full disk or pipe does not change it."""

    def __init__(self, words, folder, environment, user=None, patience_s=PATIENCE_S):
        self._files = [os.memfd_create("stdout"), os.memfd_create("stderr")]
        self.patience_s = patience_s
        self.started = time.monotonic()
        more = {"user": user, "group": user, "extra_groups": []} if user is not None else {}
        self._child = subprocess.Popen(
            [os.fspath(word) for word in words], cwd=folder, env=environment,
            stdin=subprocess.DEVNULL, stdout=self._files[0], stderr=self._files[1], **more,
        )  # fmt: skip
        self._handle = os.pidfd_open(self._child.pid)
        self._ended = None

    @property
    def id(self):
        """Its number while it has not been waited for."""
        return self._child.pid

    def ended_within(self, seconds):
        """Waits at most this long; whether the process has ended."""
        if self._ended:
            return True
        poll = select.poll()
        poll.register(self._handle, select.POLLIN)
        return bool(poll.poll(max(0, seconds) * 1000))

    def signal(self, number):
        """Sends a signal, if the process is still there. It is not waited for yet, so the id is its own."""
        if not self._ended:
            os.kill(self._child.pid, number)

    def wait(self):
        """Waits for the end; a process that takes too long is killed and counts as hanging."""
        if self._ended:
            return self._ended
        hung = not self.ended_within(self.patience_s)
        if hung:
            self.signal(signal.SIGKILL)
        code = self._child.wait()
        os.close(self._handle)
        out, err = (self._content(fd) for fd in self._files)
        self._ended = Ended(code, out, err.decode(errors="replace"), hung, time.monotonic() - self.started)
        return self._ended

    @staticmethod
    def _content(fd):
        with os.fdopen(fd, "rb") as file:
            file.seek(0)
            return file.read()
