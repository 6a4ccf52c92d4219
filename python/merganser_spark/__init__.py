"""Spark reads what SSDlets on Merganser nodes give.

    spark.dataSource.register(MerganserDataSource)
    spark.read.format("merganser").options(
        nodes="a:7443,b:7443", ssdlet="wordcount", paths="logs/2026.txt"
    ).load().groupBy("key").sum("value")

Every (node, range) is a partition of Spark. Its task opens a session on the node, has the SSDlet run
over the range, and takes the rows as Arrow batches; only rows cross the network. A task that fails is
tried again by Spark, on the same node, because the data is there. Values of one key come from each
partition that has the key: group by `key` to combine them.

Options (docs/near/serve.md):
    nodes    HOST:PORT, with commas between them
    ssdlet   name of the SSDlet, or sha256:DIGITS for an uploaded one
    paths    files below each node's data folder, with commas between them, or a JSON list
    args     the arguments of a built-in SSDlet, a JSON object
    guest_args          the arguments of a guest, as the text that it takes
    split    bytes of a range, for files of lines; without it, a partition is one file of one node
    token, token_file   what the nodes want to see
    ca_file  the authority of the nodes' certificates (PEM); with it, connections are encrypted
    insecure true: send the token over the network without encryption
    memory, threads     what each run may use
"""

import ipaddress
import json
from dataclasses import dataclass
from typing import Iterator, Optional

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

__all__ = ["MerganserDataSource"]


@dataclass
class NodeRange(InputPartition):
    """A range of a file of a node: what one task of Spark reads."""

    node: str
    path: str
    start: int
    length: Optional[int]


class MerganserDataSource(DataSource):
    """The data source `merganser`."""

    @classmethod
    def name(cls) -> str:
        return "merganser"

    def schema(self):
        """The columns of the SSDlet, as the first node describes them."""
        import pyarrow.flight as flight
        from pyspark.sql.pandas.types import from_arrow_schema

        nodes = Nodes(self.options)
        with nodes.connect(nodes.names[0]) as client:
            opened = nodes.open(client)
            session = opened["session"]
            try:
                if opened.get("rows_most") is not None and not nodes.is_one_partition():
                    refuse("ssdlet", f"each partition would give {opened['rows_most']} rows of its own")
                ticket = json.dumps({"session": session}).encode()
                descriptor = flight.FlightDescriptor.for_command(ticket)
                return from_arrow_schema(client.get_flight_info(descriptor, nodes.call).schema)
            finally:
                nodes.act(client, "close", {"session": session})

    def reader(self, schema) -> DataSourceReader:
        return MerganserReader(dict(self.options))


class MerganserReader(DataSourceReader):
    """Plans in the driver, reads in tasks."""

    def __init__(self, options):
        self.options = options

    def partitions(self):
        nodes = Nodes(self.options)
        return [part for node in nodes.names for path in nodes.paths for part in nodes.ranges(node, path)]

    def read(self, partition: NodeRange) -> Iterator:
        nodes = Nodes(self.options)
        wanted = {"path": partition.path, "start": partition.start}
        if partition.length is not None:
            wanted["length"] = partition.length
        with nodes.connect(partition.node) as client:
            session = nodes.open(client)["session"]
            try:
                nodes.act(client, "set", {"session": session, "ranges": [wanted], "run": True})
                ticket = nodes.flight.Ticket(json.dumps({"session": session}).encode())
                for chunk in client.do_get(ticket, nodes.call):
                    if chunk.data is not None and chunk.data.num_rows:
                        yield chunk.data
            finally:
                nodes.act(client, "close", {"session": session})


class Nodes:
    """The options, checked, and calls to the nodes that they name."""

    def __init__(self, options):
        import pyarrow.flight

        self.flight = pyarrow.flight
        self.names = split(options.get("nodes"), "nodes")
        self.paths = split(options.get("paths"), "paths")
        self.ssdlet = options.get("ssdlet") or refuse("ssdlet", "names the program to run")
        self.args = json.loads(options.get("args") or "{}")
        if options.get("guest_args") is not None:
            if self.args:
                refuse("guest_args", "is for guests, and args for built-in SSDlets; give one of them")
            self.args = options["guest_args"]
        self.split = int(options["split"]) if options.get("split") else None
        if self.split is not None and self.split < 1:
            refuse("split", "at least 1 byte")
        self.limits = {name: int(options[name]) for name in ("memory", "threads") if options.get(name)}
        token = options.get("token")
        if options.get("token_file"):
            with open(options["token_file"], encoding="ascii") as file:
                token = file.read().strip()
        headers = [(b"authorization", f"Bearer {token}".encode())] if token else []
        self.call = pyarrow.flight.FlightCallOptions(headers=headers)
        self.roots = None
        if options.get("ca_file"):
            with open(options["ca_file"], "rb") as file:
                self.roots = file.read()
        if token and not self.roots and options.get("insecure") != "true":
            for name in self.names:
                if not is_this_machine(name):
                    refuse("token", f"it would cross the network to {name} unencrypted; give ca_file, or insecure")

    def connect(self, node):
        scheme = "grpc+tls" if self.roots else "grpc+tcp"
        extra = {"tls_root_certs": self.roots} if self.roots else {}
        return self.flight.connect(f"{scheme}://{node}", **extra)

    def act(self, client, name, body):
        action = self.flight.Action(name, json.dumps(body).encode())
        (answer,) = client.do_action(action, self.call)
        return json.loads(answer.body.to_pybytes())

    def open(self, client):
        kind, name = "ssdlet", self.ssdlet
        if name.startswith("sha256:"):
            kind, name = "sha256", name.removeprefix("sha256:")
        return self.act(client, "open", {kind: name, "args": self.args, **self.limits})

    def is_one_partition(self):
        return len(self.names) == 1 and len(self.paths) == 1 and self.split is None

    def ranges(self, node, path):
        """The partitions of a file. Its size is asked for only if it is split."""
        if self.split is None:
            return [NodeRange(node, path, 0, None)]
        with self.connect(node) as client:
            size = self.act(client, "stat", {"path": path})["bytes"]
        starts = range(0, max(size, 1), self.split)
        return [NodeRange(node, path, start, self.split) for start in starts]


def is_this_machine(address):
    """Whether what is sent to HOST:PORT stays on this machine, as far as the name tells."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def split(text, option):
    """The parts of an option."""
    if text and text.lstrip().startswith("["):
        parts = json.loads(text)
    else:
        parts = [part.strip() for part in (text or "").split(",") if part.strip()]
    return parts or refuse(option, "names at least one")


def refuse(option, why):
    raise ValueError(f"option {option}: {why}")
