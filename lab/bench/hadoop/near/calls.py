"""The same SSDlet outside of Hadoop: in the calling process, and called on a node over a network.

    this process            merganser map wordcount FILE
    loopback                merganser map wordcount FILE --on 127.0.0.1:PORT        one thread, as a map task has
    another host, TLS       the same, from a network namespace behind a link of 1 Gbit/s
"""

import hashlib
import json
import os
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ..cluster import ClusterError, Process, answers, free_ports
from .processes import cpu_s

MEMORY_MB = 128
TIMEOUT_S = 300
LINK_MBIT_S = 1000
NETWORK = "10.213.7."
HERE, THERE = f"{NETWORK}1", f"{NETWORK}2"


def read(path):
    """The calls that were measured; none if there is no such file."""
    try:
        return json.loads(path.read_text())
    except OSError:
        return []


def measure(bench, text, path, rounds, built, say):
    """Measures all calls over a text, in turn, and writes them to a file."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=bench.dir)))
        near = stack.enter_context(_served(bench, folder, text.parent, "127.0.0.1"))
        name, inside = stack.enter_context(_link(folder.name))
        secret = _certificates(folder, HERE)
        far = stack.enter_context(
            _served(bench, folder, text.parent, HERE, "--token-file", secret["token"], "--tls-cert", secret["cert"], "--tls-key", secret["key"])
        )
        ways = (
            ("in the calling process", (), (text,), None),
            ("on a node, over the loopback", (), (text.name, "--on", near.place), near),
            (
                f"on a node, from another host, TLS, {LINK_MBIT_S} Mbit/s",
                inside, (text.name, "--on", far.place, "--token-file", secret["token"], "--ca", secret["ca"]), far,
            ),
        )  # fmt: skip
        found = {name: {"name": name, "wall_s": [], "cpu_s": [], "node_cpu_s": [], "link_bytes": []} for name, *_ in ways}
        digests = set()
        for number in range(rounds):
            for name_of, before, words, node in ways:
                _evict(text)
                out = folder / "out"
                one = [*before, bench.merganser, "map", "wordcount", *words, "--threads", 1, "--memory", f"{MEMORY_MB}M", "-o", out, "--quiet"]
                sent, spent = _sent(name), cpu_s(Path(f"/proc/{node.pid}/stat").read_text()) if node else 0
                wall_s, taken_s = _timed(one)
                result = found[name_of]
                result["wall_s"].append(wall_s)
                result["cpu_s"].append(taken_s)
                result["node_cpu_s"].append(cpu_s(Path(f"/proc/{node.pid}/stat").read_text()) - spent if node else 0)
                result["link_bytes"].append(_sent(name) - sent)
                digests.add(hashlib.sha256(out.read_bytes()).hexdigest())
                out.unlink()
                say(f"  {name_of}, round {number + 1}: {wall_s:.2f} s, {taken_s:.2f} s of processor here")
        if len(digests) != 1:
            raise ClusterError("the calls of an SSDlet have different results")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([{**one, "build": built} for one in found.values()], indent=1) + "\n")


def _evict(path):
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _timed(words):
    """Seconds, and processor seconds, of a program that must end well."""
    started = time.monotonic()
    process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise ClusterError(f"{' '.join(map(str, words))}: exit {process.returncode}")
    return time.monotonic() - started, usage.ru_utime + usage.ru_stime


@contextmanager
def _served(bench, folder, data, host, *more):
    """A node that serves the files of a folder. Yields its process, with `place`, its address."""
    (port,) = free_ports(1)
    words = [bench.merganser, "serve", "--data", data, "--listen", f"{host}:{port}", "--memory", f"{2 * MEMORY_MB}M", *more]
    process = Process("node", words, folder / f"serve-{port}.log")
    process.place = f"{host}:{port}"
    try:
        process.wait_until(lambda: answers(port, host), f"listening on {process.place}")
        yield process
    finally:
        process.stop()


def _run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise ClusterError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")


@contextmanager
def _link(name):
    """A network namespace behind a link of 1 Gbit/s each way. Yields the name of this end, and the words that enter it."""
    space, here, there = f"merganser-{name}", f"m{os.getpid()}h", f"m{os.getpid()}t"
    _run("ip", "netns", "add", space)
    try:
        inside = ("ip", "netns", "exec", space)
        _run("ip", "link", "add", here, "type", "veth", "peer", "name", there, "netns", space)
        _run("ip", "address", "add", f"{HERE}/24", "dev", here)
        _run("ip", "link", "set", here, "up")
        _run(*inside, "ip", "address", "add", f"{THERE}/24", "dev", there)
        for end, words in ((here, ()), (there, inside)):
            _run(*words, "ip", "link", "set", end, "up")
            _run(*words, "tc", "qdisc", "add", "dev", end, "root", "tbf", "rate", f"{LINK_MBIT_S}mbit", "burst", "256kb", "latency", "50ms")
        yield here, inside
    finally:
        # The namespace takes both ends with it.
        _run("ip", "netns", "delete", space)


def _sent(interface):
    return int(Path(f"/sys/class/net/{interface}/statistics/tx_bytes").read_text())


def _certificates(folder, host):
    """An authority, a certificate for a node, and a token."""
    paths = {name: folder / name for name in ("ca", "ca-key", "cert", "key", "request", "extension", "token")}
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    _run("openssl", "req", "-x509", *curve, "-keyout", paths["ca-key"], "-out", paths["ca"], "-days", 2, "-subj", "/CN=bench")
    _run("openssl", "req", *curve, "-keyout", paths["key"], "-out", paths["request"], "-subj", f"/CN={host}")
    paths["extension"].write_text(f"subjectAltName=IP:{host}\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n")
    _run(
        "openssl", "x509", "-req", "-in", paths["request"], "-CA", paths["ca"], "-CAkey", paths["ca-key"], "-set_serial", 1,
        "-out", paths["cert"], "-days", 2, "-extfile", paths["extension"],
    )  # fmt: skip
    paths["token"].write_text("merganser-bench-token-0123456789\n")
    paths["token"].chmod(0o600)
    return paths
