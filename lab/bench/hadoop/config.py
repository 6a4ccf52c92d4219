"""The configuration of a cluster's daemons and jobs: plain dicts, and the XML files made from them."""

from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

STOCK, ACTIVE = "stock", "active"
FLAVOURS = (STOCK, ACTIVE)
"""How a node serves map outputs, and how a job makes and fetches them."""

# Hadoop 3.4 uses reflection on classes that Java 17 keeps closed.
JAVA_17 = "--add-opens=java.base/java.lang=ALL-UNNAMED"

AM_MB, TASK_MB = 512, 1024
"""The memory that YARN counts for a container; the job sets the heap."""
MAPS_AT_ONCE = REDUCES_AT_ONCE = 2
"""On one node."""

STOCK_SHUFFLE = "org.apache.hadoop.mapred.ShuffleHandler"
ACTIVE_SHUFFLE = "org.apache.hadoop.mapred.ActiveShuffleHandler"
STOCK_COLLECTOR = "org.apache.hadoop.mapred.MapTask$MapOutputBuffer"
ACTIVE_COLLECTOR = "org.apache.hadoop.mapred.DeferredMapOutputBuffer"
ACTIVE_CONSUMER = "org.apache.hadoop.mapreduce.task.reduce.ActiveShuffle"


@dataclass(frozen=True)
class Jars:
    """Where Java classes are."""

    hadoop: Path
    """A folder of jars: Hadoop, and all it needs."""
    plugin: Path | None = None
    """Merganser's jar; without it there is only stock Hadoop."""
    workloads: Path | None = None

    def classpath(self, flavour=STOCK):
        """For a JVM of this flavour."""
        parts = [f"{self.hadoop}/*"]
        if flavour == ACTIVE:
            if self.plugin is None:
                raise ValueError("an active node or job needs the plugin's jar")
            parts.insert(0, str(self.plugin))
        return ":".join(parts)


@dataclass(frozen=True)
class Ports:
    """Ports on 127.0.0.1 of the daemons that all other daemons must find."""

    namenode: int
    namenode_http: int
    rm: int
    rm_scheduler: int
    rm_tracker: int
    rm_admin: int
    rm_http: int
    history: int
    history_http: int
    history_admin: int


@dataclass(frozen=True)
class NodePorts:
    """Ports of a NodeManager. Recovery needs the same ports after a restart."""

    address: int
    localizer: int
    http: int
    shuffle: int
    collector: int


@dataclass(frozen=True)
class Node:
    """One NodeManager."""

    name: str
    folder: Path
    """Its state and logs."""
    local_dirs: tuple
    """Folders for intermediate data."""
    ports: NodePorts
    recovery: bool = False
    memory_mb: int = AM_MB + (MAPS_AT_ONCE + REDUCES_AT_ONCE) * TASK_MB
    more: dict = field(default_factory=dict)
    """Additional settings, such as `merganser.shuffle.service.merges`."""


def _here(port):
    return f"127.0.0.1:{port}"


def core_site(ports, folder):
    """core-site.xml of all daemons and jobs."""
    return {
        "fs.defaultFS": f"hdfs://{_here(ports.namenode)}",
        "hadoop.tmp.dir": str(folder / "tmp"),
        "hadoop.security.token.service.use_ip": "true",
        "hadoop.http.staticuser.user": "root",
    }


def hdfs_site(ports, folder, block_bytes, data_dir=None):
    """hdfs-site.xml: one copy of each block, blocks of a map's input. `data_dir`: where a DataNode has its blocks."""
    return {
        "dfs.replication": "1",
        "dfs.blocksize": str(block_bytes),
        "dfs.namenode.name.dir": f"file://{folder}/namenode",
        "dfs.datanode.data.dir": f"file://{data_dir or folder / 'datanode'}",
        "dfs.namenode.http-address": _here(ports.namenode_http),
        "dfs.datanode.address": "127.0.0.1:0",
        "dfs.datanode.http.address": "127.0.0.1:0",
        "dfs.datanode.ipc.address": "127.0.0.1:0",
        "dfs.namenode.safemode.extension": "0",
        "dfs.namenode.fs-limits.min-block-size": "1048576",
        "dfs.permissions.enabled": "false",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
    }


def yarn_site(ports, application_classpath):
    """yarn-site.xml of all daemons and jobs; a NodeManager adds `node_site`."""
    return {
        "yarn.resourcemanager.hostname": "127.0.0.1",
        "yarn.resourcemanager.address": _here(ports.rm),
        "yarn.resourcemanager.scheduler.address": _here(ports.rm_scheduler),
        "yarn.resourcemanager.resource-tracker.address": _here(ports.rm_tracker),
        "yarn.resourcemanager.admin.address": _here(ports.rm_admin),
        "yarn.resourcemanager.webapp.address": _here(ports.rm_http),
        "yarn.resourcemanager.scheduler.class": "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler",
        "yarn.scheduler.minimum-allocation-mb": "256",
        "yarn.scheduler.maximum-allocation-vcores": "64",
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "200",
        "yarn.nm.liveness-monitor.expiry-interval-ms": "30000",
        "yarn.application.classpath": application_classpath,
        "yarn.dispatcher.exit-on-error": "true",
    }


def node_site(node, flavour, socket=None):
    """Additional settings of a NodeManager of this flavour. `socket`: the socket of its merge process."""
    ports = node.ports
    site = {
        "yarn.nodemanager.hostname": "127.0.0.1",
        "yarn.nodemanager.address": _here(ports.address),
        "yarn.nodemanager.localizer.address": _here(ports.localizer),
        "yarn.nodemanager.webapp.address": _here(ports.http),
        "yarn.nodemanager.collector-service.address": _here(ports.collector),
        "yarn.nodemanager.local-dirs": ",".join(map(str, node.local_dirs)),
        "yarn.nodemanager.log-dirs": str(node.folder / "containers"),
        "yarn.nodemanager.resource.memory-mb": str(node.memory_mb),
        "yarn.nodemanager.resource.cpu-vcores": "64",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.heartbeat.interval-ms": "200",
        "yarn.nodemanager.container-monitor.enabled": "false",
        # A test disk may be small, so Hadoop's own check of free space is relaxed.
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.5",
        "yarn.nodemanager.delete.debug-delay-sec": "0",
        "yarn.nodemanager.log.retain-seconds": "86400",
        "yarn.nodemanager.recovery.enabled": str(node.recovery).lower(),
        "yarn.nodemanager.recovery.supervised": str(node.recovery).lower(),
        "yarn.nodemanager.recovery.dir": str(node.folder / "recovery"),
        "yarn.nodemanager.aux-services": "mapreduce_shuffle",
        "yarn.nodemanager.aux-services.mapreduce_shuffle.class": ACTIVE_SHUFFLE if flavour == ACTIVE else STOCK_SHUFFLE,
    }
    if flavour == ACTIVE and socket:
        site["merganser.shuffle.socket"] = str(socket)
    return {**site, **node.more}


def mapred_site(ports, application_classpath):
    """mapred-site.xml of all daemons and jobs; a job adds `job_settings`."""
    return {
        "mapreduce.framework.name": "yarn",
        "mapreduce.application.classpath": application_classpath,
        "mapreduce.jobhistory.address": _here(ports.history),
        "mapreduce.jobhistory.webapp.address": _here(ports.history_http),
        "mapreduce.jobhistory.admin.address": _here(ports.history_admin),
        "mapreduce.jobhistory.intermediate-done-dir": "/history/new",
        "mapreduce.jobhistory.done-dir": "/history/done",
        "mapreduce.jobhistory.jhist.format": "json",
        "yarn.app.mapreduce.am.staging-dir": "/staging",
        "yarn.app.mapreduce.am.resource.mb": str(AM_MB),
        "yarn.app.mapreduce.am.command-opts": f"-Xmx256m -XX:+UseSerialGC {JAVA_17}",
        "mapreduce.map.memory.mb": str(TASK_MB),
        "mapreduce.reduce.memory.mb": str(TASK_MB),
        # As the paper's Table 1.
        "mapreduce.map.speculative": "false",
        "mapreduce.reduce.speculative": "false",
        "mapreduce.task.io.sort.factor": "10",
        "mapreduce.map.sort.spill.percent": "0.90",
        "mapreduce.client.progressmonitor.pollinterval": "500",
        "mapreduce.client.completion.pollinterval": "500",
        "mapreduce.job.counters.limit": "500",
        "yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms": "200",
    }


def node_mapred_site(node):
    """The settings of a job that must be in mapred-site.xml, because Hadoop's default would win elsewhere."""
    return {"mapreduce.shuffle.port": str(node.ports.shuffle)}


def flavour_settings(flavour, map_side=True, reduce_side=True):
    """The settings that make a job stock or active."""
    if flavour == STOCK:
        return {}
    settings = {}
    if map_side:
        settings["mapreduce.job.map.output.collector.class"] = f"{ACTIVE_COLLECTOR},{STOCK_COLLECTOR}"
    if reduce_side:
        settings["mapreduce.job.reduce.shuffle.consumer.plugin.class"] = ACTIVE_CONSUMER
    return settings


def heap(megabytes):
    """Java options of a task with this heap."""
    return f"-Xmx{megabytes}m -XX:+UseSerialGC {JAVA_17}"


LOG4J = """\
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
"""


def xml(settings):
    """A Hadoop configuration file."""
    rows = (
        f"  <property><name>{escape(name)}</name><value>{escape(str(value))}</value></property>"
        for name, value in settings.items()
    )
    return "\n".join(['<?xml version="1.0"?>', "<configuration>", *rows, "</configuration>", ""])


def write(folder, **sites):
    """Writes `core=..., hdfs=...` as core-site.xml, hdfs-site.xml and so on."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, settings in sites.items():
        (folder / f"{name}-site.xml").write_text(xml(settings))
    (folder / "log4j.properties").write_text(LOG4J)
