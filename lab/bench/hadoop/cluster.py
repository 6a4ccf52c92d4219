"""A small Hadoop: NameNode, DataNode, ResourceManager, JobHistoryServer and NodeManagers, each a JVM of its own.

    with Cluster(folder, jars, nodes=1) as cluster:
        cluster.start_node(0, ACTIVE, merganser="target/release/merganser")
        done = cluster.run(cluster.example("terasort"), ["-D", "..", "/in", "/out"], ACTIVE)
        cluster.kill_node(0)             # as `kill -9` would
        cluster.start_node(0, ACTIVE)    # on the same ports, with its recovery store

Everything is kept below `folder`: configuration, logs of daemons and containers, HDFS. Every process leads
a session of its own and is ended by its id; all waits are bounded.
"""

import os
import random
import re
import signal
import socket
import subprocess
import time
import urllib.request
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from . import config
from .config import ACTIVE, STOCK

START_TIMEOUT_S = 90
STOP_TIMEOUT_S = 20
LOG_BYTES_SHOWN = 3000
LISTENED_PORTS = range(15_000, 32_000)

DAEMON_HEAP_MB = 192
DAEMONS = {
    "namenode": "org.apache.hadoop.hdfs.server.namenode.NameNode",
    "datanode": "org.apache.hadoop.hdfs.server.datanode.DataNode",
    "resourcemanager": "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager",
    "history": "org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer",
    "nodemanager": "org.apache.hadoop.yarn.server.nodemanager.NodeManager",
}
EXAMPLES = "org.apache.hadoop.examples.ExampleDriver"
WORKLOADS = "io.merganser.workloads.Workloads"


class ClusterError(Exception):
    """A daemon or a job failed; the text names it and ends with its log."""


def free_ports(count):
    """Free ports, below the range that the kernel picks ports of."""
    found = []
    for port in random.sample(LISTENED_PORTS, len(LISTENED_PORTS)):
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise ClusterError(f"{count} ports from {LISTENED_PORTS.start} to {LISTENED_PORTS.stop} are not free")


def _tail(path):
    try:
        return path.read_bytes()[-LOG_BYTES_SHOWN:].decode(errors="replace")
    except OSError:
        return ""


class Process:
    """One program of the cluster, with its log."""

    def __init__(self, name, words, log, group=None, env=None):
        self.name, self.log = name, log
        words = [str(word) for word in words]
        if group is not None:
            # The shell enters the control group and then becomes the program: nothing runs outside of it.
            words = ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', str(group / "cgroup.procs"), *words]
        with open(log, "ab") as out:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
                env={**os.environ, **(env or {})},
            )  # fmt: skip

    @property
    def pid(self):
        """Its process id."""
        return self._process.pid

    def running(self):
        """Whether it has not ended."""
        return self._process.poll() is None

    def wait_until(self, ready, what):
        """Waits until `ready()`; fails when the process ends before, or after a minute and a half."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while not ready():
            if not self.running():
                raise ClusterError(f"{self.name} ended before {what}:\n{_tail(self.log)}")
            if time.monotonic() > deadline:
                raise ClusterError(f"{self.name}: not {what} after {START_TIMEOUT_S} s:\n{_tail(self.log)}")
            time.sleep(0.1)

    def kill(self):
        """Ends it as a power failure would."""
        if self.running():
            self._process.kill()
        self._process.wait()

    def stop(self):
        """Asks it to end, and kills it after 20 s."""
        if self.running():
            self._process.terminate()
            try:
                self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.kill()
        else:
            self._process.wait()


def _status(pid, key):
    try:
        found = re.search(rf"^{key}:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


@dataclass(frozen=True)
class Done:
    """A job, or jobs, that one client ran."""

    job_ids: tuple
    wall_s: float
    """From the client's start to its end."""
    said: str
    """All that it printed."""


class Cluster:
    """Daemons that run as long as the `with` block. NodeManagers are started by `start_node`."""

    def __init__(
        self, folder, jars, nodes=1, local_dirs=None, block_bytes=128 << 20, group=None, recovery=False, more=None, hdfs=None,
        data_dirs=None, hdfs_more=None,
    ):  # fmt: skip
        """`local_dirs`: a tuple of folders for each node; `group`: a memory control group that all run in;
        `more`: additional settings of NodeManagers; `hdfs`: where HDFS keeps its files, `folder` by default;
        `data_dirs`: a folder for each DataNode, one in `hdfs` by default; `hdfs_more`: additional settings of HDFS."""
        self.folder = Path(folder).resolve()
        self.hdfs_folder = Path(hdfs).resolve() if hdfs else self.folder
        self.data_dirs = tuple(map(Path, data_dirs or [self.hdfs_folder / "datanode"]))
        self.jars = jars
        self.group = group
        self._block_bytes = block_bytes
        self._hdfs_more = dict(hdfs_more or {})
        for name in ("logs", "conf", "tmp"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        ports = free_ports(10 + 5 * nodes)
        self.ports = config.Ports(*ports[:10])
        self.nodes = []
        for index in range(nodes):
            place = self.folder / f"node-{index}"
            place.mkdir(exist_ok=True)
            dirs = tuple(map(Path, local_dirs[index])) if local_dirs else (place / "local",)
            node_ports = config.NodePorts(*ports[10 + 5 * index : 15 + 5 * index])
            self.nodes.append(config.Node(f"node-{index}", place, dirs, node_ports, recovery, more=dict(more or {})))
        self.running = {}
        """Processes by name: namenode, datanode, datanode-1, resourcemanager, history, node-0, merge-0, map, ..."""

    def __enter__(self):
        with ExitStack() as stack:
            stack.callback(self.stop)
            self._start()
            stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stop()

    # Daemons

    def _sites(self, flavour=STOCK, node=None, merge_socket=None, data_dir=None):
        application = self.jars.classpath(flavour)
        yarn = config.yarn_site(self.ports, application)
        mapred = config.mapred_site(self.ports, application)
        if node is not None:
            yarn.update(config.node_site(node, flavour, merge_socket))
            mapred.update(config.node_mapred_site(node))
        return {
            "core": config.core_site(self.ports, self.folder),
            "hdfs": {
                **config.hdfs_site(self.ports, self.hdfs_folder, self._block_bytes, data_dir or self.data_dirs[0]),
                **self._hdfs_more,
            },
            "yarn": yarn,
            "mapred": mapred,
        }

    def _java(self, conf, flavour, heap_mb, *words):
        classpath = f"{conf}:{self.jars.classpath(flavour)}"
        if self.jars.workloads:
            classpath += f":{self.jars.workloads}"
        return (
            "java", f"-Xmx{heap_mb}m", "-XX:+UseSerialGC", config.JAVA_17, f"-Dhadoop.log.dir={self.folder}/logs",
            f"-Djava.io.tmpdir={self.folder}/tmp", "-cp", classpath, *words,
        )  # fmt: skip

    def _daemon(self, name, kind, conf, flavour=STOCK, heap_mb=DAEMON_HEAP_MB):
        words = self._java(conf, flavour, heap_mb, DAEMONS[kind])
        self.running[name] = Process(name, words, self.folder / "logs" / f"{name}.log", self.group)
        return self.running[name]

    def _start(self):
        conf = self.folder / "conf" / "cluster"
        config.write(conf, **self._sites())
        self.conf = conf
        if not (self.hdfs_folder / "namenode").exists():
            # An existing name space is kept, because the blocks of the DataNode belong to it.
            format_words = self._java(conf, STOCK, DAEMON_HEAP_MB, DAEMONS["namenode"], "-format", "-nonInteractive")
            formatted = subprocess.run(format_words, capture_output=True, text=True, timeout=START_TIMEOUT_S, check=False)
            if formatted.returncode != 0:
                raise ClusterError(f"the NameNode can't be formatted:\n{formatted.stderr[-LOG_BYTES_SHOWN:]}")
        self._daemon("namenode", "namenode", conf)
        self._daemon("datanode", "datanode", conf)
        for index, data_dir in enumerate(self.data_dirs[1:], 1):
            more = self.folder / "conf" / f"datanode-{index}"
            config.write(more, **self._sites(data_dir=data_dir))
            self._daemon(f"datanode-{index}", "datanode", more)
        self._daemon("resourcemanager", "resourcemanager", conf)
        self._listening("namenode", self.ports.namenode)
        self.running["datanode"].wait_until(self._hdfs_is_ready, "ready to write")
        self._listening("resourcemanager", self.ports.rm_tracker)
        self._daemon("history", "history", conf)
        self._listening("history", self.ports.history)

    def _listening(self, name, port):
        self.running[name].wait_until(lambda: answers(port), f"listening on {port}")

    def _hdfs_is_ready(self):
        if not answers(self.ports.namenode_http):
            return False
        url = f"http://127.0.0.1:{self.ports.namenode_http}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystem*"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                text = answer.read().decode()
        except OSError:
            return False
        live = re.search(r'"NumLiveDataNodes"\s*:\s*(\d+)', text)
        return live is not None and int(live[1]) >= len(self.data_dirs) and '"FSState" : "Operational"' in text

    # Nodes

    def start_node(self, index=0, flavour=STOCK, merganser=None, memory_mb=256, heap_mb=256):
        """Starts a NodeManager and, for an active one with `merganser`'s path, its merge process before it."""
        node = self.nodes[index]
        for place in node.local_dirs:
            place.mkdir(parents=True, exist_ok=True)
        merge_socket = None
        if flavour == ACTIVE and merganser:
            merge_socket = self.start_merge(index, merganser, memory_mb)
        conf = self.folder / "conf" / node.name
        config.write(conf, **self._sites(flavour, node, merge_socket))
        self._daemon(node.name, "nodemanager", conf, flavour, heap_mb)
        self._listening(node.name, node.ports.shuffle)
        self.running[node.name].wait_until(lambda: self._registered(node), "registered")

    def _registered(self, node):
        url = f"http://127.0.0.1:{self.ports.rm_http}/ws/v1/cluster/nodes?states=running"
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": "application/json"}), timeout=5) as answer:
                return f":{node.ports.address}" in answer.read().decode()
        except OSError:
            return False

    def start_merge(self, index, merganser, memory_mb=256):
        """Starts the merge process of a node; the path of its socket."""
        node = self.nodes[index]
        name = f"merge-{index}"
        path = node.folder / "merge.sock"
        path.unlink(missing_ok=True)
        # Stock Hadoop leaves its outputs in the cache too, because its native library is not installed.
        words = [merganser, "hadoop", "serve", "--shuffle", path, "--memory", f"{memory_mb}M", "--keep-cache"]
        for place in node.local_dirs:
            words += ["--local-dir", place]
        self.running[name] = Process(name, words, self.folder / "logs" / f"{name}.log", self.group)
        self.running[name].wait_until(path.exists, f"listening on {path}")
        return path

    def start_map(self, merganser, maps=1, memory_mb=256):
        """Starts the process that runs map tasks next to the DataNodes of this machine; the path of its socket."""
        path = self.folder / "map.sock"
        path.unlink(missing_ok=True)
        words = [merganser, "hadoop", "serve", "--hdfs", path, "--memory", f"{memory_mb}M", "--maps", maps]
        for data_dir in self.data_dirs:
            words += ["--hdfs-data-dir", data_dir]
        self.running["map"] = Process("map", words, self.folder / "logs" / "map.log", self.group)
        self.running["map"].wait_until(path.exists, f"listening on {path}")
        return path

    def stop_node(self, index=0):
        """Stops a NodeManager, and its merge process after it."""
        for name in (f"node-{index}", f"merge-{index}"):
            if name in self.running:
                self.running.pop(name).stop()

    def kill_node(self, index=0):
        """Kills a NodeManager; its containers keep running, as after a real crash."""
        self.running.pop(f"node-{index}").kill()

    def kill_merge(self, index=0):
        """Kills the merge process of a node."""
        self.running.pop(f"merge-{index}").kill()

    def stop(self):
        """Stops everything that was started, containers last."""
        for name in list(reversed(self.running)):
            self.running.pop(name).stop()
        self._end_containers()

    def _end_containers(self):
        """Ends processes that NodeManagers left behind in this cluster's containers."""
        places = [str(place) for node in self.nodes for place in node.local_dirs]
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                works_in = os.readlink(entry / "cwd")
            except OSError:
                continue
            if any(works_in.startswith(f"{place}/usercache/") for place in places):
                try:
                    os.kill(int(entry.name), signal.SIGKILL)
                except ProcessLookupError:
                    pass

    # Jobs

    def example(self, name):
        """One of Hadoop's example programs, as words."""
        return (EXAMPLES, name)

    def workload(self, name):
        """One of Merganser's own, as words."""
        return (WORKLOADS, name)

    def submit(self, program, words, flavour=STOCK, settings=None, heap_mb=384, name="client"):
        """Starts a client; settings become `-D` options. The process, whose log it writes."""
        classpath = self.jars.classpath(flavour)
        options = {
            "mapreduce.application.classpath": classpath,
            "yarn.application.classpath": classpath,
            **(settings or {}),
        }
        defines = [word for key, value in options.items() for word in ("-D", f"{key}={value}")]
        log = self.folder / "logs" / f"{name}.log"
        log.unlink(missing_ok=True)
        return Process(name, self._java(self.conf, flavour, heap_mb, *program, *defines, *words), log, self.group)

    def run(self, program, words, flavour=STOCK, settings=None, timeout_s=600, heap_mb=384):
        """Runs a client to its end; fails when it does, or after `timeout_s`."""
        started = time.monotonic()
        client = self.submit(program, words, flavour, settings, heap_mb)
        try:
            while client.running():
                if time.monotonic() - started > timeout_s:
                    raise ClusterError(f"{' '.join(program)}: not done after {timeout_s:.0f} s:\n{_tail(client.log)}")
                time.sleep(0.05)
        finally:
            client.stop()
        wall_s = time.monotonic() - started
        said = client.log.read_text(errors="replace")
        if client._process.returncode != 0:
            raise ClusterError(f"{' '.join(program)} failed:\n{said[-LOG_BYTES_SHOWN:]}")
        ids = re.findall(r"Running job: (job_\d+_\d+)|Submitting tokens for job: (job_\d+_\d+)", said)
        return Done(tuple(dict.fromkeys(one or two for one, two in ids)), wall_s, said)

    def hdfs(self, *words, timeout_s=120):
        """`hdfs dfs WORDS`; what it printed."""
        words = self._java(self.conf, STOCK, DAEMON_HEAP_MB, "org.apache.hadoop.fs.FsShell", *words)
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=timeout_s, check=False)
        if done.returncode != 0:
            raise ClusterError(f"{' '.join(map(str, words[7:]))}: {done.stderr[-LOG_BYTES_SHOWN:]}")
        return done.stdout

    def history(self, job_id, timeout_s=20):
        """A job's history file (.jhist), as text."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                listed = self.hdfs("-ls", "-R", "/history")
                found = re.findall(rf"(/history/\S*{job_id}\S*\.jhist)$", listed, re.MULTILINE)
                if found:
                    return self.hdfs("-cat", found[-1])
            except ClusterError:
                # It is moved from one folder to another while we look.
                if time.monotonic() > deadline:
                    raise
            if time.monotonic() > deadline:
                raise ClusterError(f"{job_id} left no history below /history")

    def resident_bytes(self, name):
        """The peak resident memory of the process with this name; 0 when it is not running."""
        return _status(self.running[name].pid, "VmHWM") if name in self.running else 0

    def cpu_seconds(self, name):
        """Processor seconds that a process has used; 0 when it is not running."""
        if name not in self.running:
            return 0
        try:
            fields = Path(f"/proc/{self.running[name].pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def task_logs(self, job_id):
        """The syslog files of a job's containers on all nodes."""
        application = job_id.replace("job_", "application_")
        return [path for node in self.nodes for path in sorted(node.folder.glob(f"containers/{application}/*/syslog"))]


def answers(port, host="127.0.0.1"):
    """Whether something listens there."""
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:
        return False
