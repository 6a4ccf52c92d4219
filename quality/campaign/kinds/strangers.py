"""Hostile clients of every server: garbage, requests that lie, floods, clients that leave early or stay silent. Meanwhile and
afterwards an honest client is served, the memory of the server stays within its limit and 64 MiB, and SIGTERM ends it in order.
"""

import json
import random
import re
import select
import signal
import struct
from pathlib import Path

from case import SURVIVED, Case, Wrong
from doors import DOORS

WEIGHT = 2
SMOKE = 6
NEEDS_ROOT = False

CLIENTS = 60
SILENT_MOST = 12
OVER_MEMORY_BYTES = 64 << 20
ANSWER_S = 0.02


def cases(_setup, seed):
    """Endless: each door in turn."""
    chance = random.Random(f"strangers {seed}")
    number = 0
    while True:
        for name in chance.sample(sorted(DOORS), len(DOORS)):
            number += 1
            yield Case.of("stranger", name, n=number, seed=seed)


def run(case, trial):
    """Serves, lets strangers in, and looks at what is left."""
    door = DOORS[case.scenario](trial)
    process = trial.start(door.words(trial), patience_s=20)
    try:
        if not door.open(process):
            raise Wrong("the server ends at its start")
        door.honest(trial)
        silent = []
        for number in range(CLIENTS):
            visit(trial, door, silent)
            if number % 20 == 19:
                door.honest(trial)
        for client in silent:
            client.close()
        door.honest(trial)
        if process.ended_within(0):
            raise Wrong("the server has ended")
        check_memory(process, door)
    except TimeoutError:
        raise Wrong("an honest client gets no answer") from None
    except (ConnectionError, struct.error) as error:
        raise Wrong(f"an honest client is refused or cut off: {error}") from None
    finally:
        process.signal(signal.SIGTERM)
        ended = process.wait()
        trial.say("  " + "; ".join(ended.lines)[-2000:])
    trial.disturbed += CLIENTS
    check_end(ended)
    if case.scenario == "volume":
        checked = trial.run(["array", "check", "vol.json", "--json", "--quiet"])
        if checked.code or json.loads(checked.out).get("problems"):
            raise Wrong(f"check: status {checked.code}, {checked.out[:200]!r}")
    return SURVIVED


def visit(trial, door, silent):
    """One hostile client: it sends its pieces, and leaves, reads a little or stays."""
    chance = trial.chance
    try:
        client = door.connect()
        client.settimeout(1)
    except OSError as error:
        # A place may be taken by the silent ones. The honest client tells whether that is a fault.
        trial.say(f"  not let in: {error}")
        return
    try:
        for piece in door.hostile(chance):
            client.sendall(piece)
        if chance.random() < 0.5 and select.select([client], [], [], ANSWER_S)[0]:
            client.recv(1 << 16)
    except (OSError, TypeError):
        pass  # The server may close the connection of a stranger, and a file can't be waited for.
    if chance.random() < 0.2 and len(silent) < SILENT_MOST:
        silent.append(client)
    else:
        client.close()


def check_memory(process, door):
    """The peak of the server's memory is within its limit and what is documented beyond it."""
    status = Path(f"/proc/{process.id}/status").read_text()
    peak = int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) << 10
    if peak > door.memory_bytes + OVER_MEMORY_BYTES:
        raise Wrong(f"the server took {peak >> 20} MiB with a limit of {door.memory_bytes >> 20} MiB")


def check_end(ended):
    """No panic, no hang, and an end in order. A server says a line for each event, so sentences are not counted."""
    if ended.hung:
        raise Wrong("SIGTERM does not end the server")
    if "panicked" in ended.err or "RUST_BACKTRACE" in ended.err:
        raise Wrong(f"panic text: {next(line for line in ended.lines if 'panicked' in line)[:200]}")
    if ended.code not in (0, 143, -signal.SIGTERM):
        raise Wrong(f"status {ended.code}: {'; '.join(ended.lines[-2:])[:200]}")
