"""Spark reads what SSDlets on Merganser nodes give, and views that the nodes have.

    spark.dataSource.register(MerganserDataSource)
    spark.read.format("merganser").options(
        nodes="a:7443,b:7443", ssdlet="wordcount", paths="logs/2026.txt"
    ).load().groupBy("key").sum("value")
    spark.read.format("merganser").options(
        nodes="a:7443,b:7443", views="by-name.view", from_key="adam", to_key="berta", columns="name,qty"
    ).load()

Every (node, range) is a partition of Spark. Its task opens a session on the node, has the SSDlet run
over the range, and takes the rows as Arrow batches; only rows cross the network. A task that fails is
tried again by Spark, on the same node, because the data is there. Values of one key come from each
partition that has the key: group by `key` to combine them. Every (node, view) is a partition, too, or a range of its rows.

Options (docs/near/serve.md):
    nodes    HOST:PORT, with commas between them
    ssdlet   name of the SSDlet, or sha256:DIGITS for an uploaded one
    paths    files below each node's data folder, with commas between them, or a JSON list
    args     the arguments of a built-in SSDlet, a JSON object
    guest_args          the arguments of a guest, as the text that it takes
    split    bytes of a range, for files of lines; without it, a partition is one file of one node
    views    instead of ssdlet and paths: views below each node's data folder, with commas between them, or a JSON list
    columns  of views of tables: the names of those that are wanted, with commas between them, or a JSON list
    from_key, to_key    of views: no key is below the first, and every key is below the second
    split_rows          of views: rows of a partition; without it, a partition is one view of one node
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
class NodeView(InputPartition):
    """A part of a view of a node: what one task of Spark reads."""

    node: str
    ticket: dict


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
        """The columns of the SSDlet or of the first view, as the first node describes them."""
        import pyarrow.flight as flight
        from pyspark.sql.pandas.types import from_arrow_schema

        nodes = Nodes(self.options)
        with nodes.connect(nodes.names[0]) as client:
            if nodes.views:
                return from_arrow_schema(plain_schema(nodes.look(client, nodes.ticket(nodes.views[0])).schema))
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
        if nodes.views:
            return [part for node in nodes.names for view in nodes.views for part in nodes.parts(node, view)]
        return [part for node in nodes.names for path in nodes.paths for part in nodes.ranges(node, path)]

    def read(self, partition: InputPartition) -> Iterator:
        nodes = Nodes(self.options)
        if isinstance(partition, NodeView):
            with nodes.connect(partition.node) as client:
                rows = client.do_get(nodes.flight.Ticket(json.dumps(partition.ticket).encode()), nodes.call)
                schema = plain_schema(rows.schema)
                for chunk in rows:
                    if chunk.data is not None and chunk.data.num_rows:
                        yield chunk.data.cast(schema)
            return
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
        self.views = split(options["views"], "views") if options.get("views") is not None else []
        self.columns = split(options["columns"], "columns") if options.get("columns") is not None else None
        self.keys = {end: options[f"{end}_key"] for end in ("from", "to") if options.get(f"{end}_key") is not None}
        self.split_rows = int(options["split_rows"]) if options.get("split_rows") else None
        if self.split_rows is not None and self.split_rows < 1:
            refuse("split_rows", "at least 1 row")
        if self.split_rows and self.keys:
            refuse("split_rows", "a range of keys is one partition; leave it out with from_key and to_key")
        for name in ("columns", "from_key", "to_key", "split_rows"):
            if not self.views and options.get(name) is not None:
                refuse(name, "is for views; name them in views")
        for name in ("ssdlet", "paths", "args", "guest_args", "split"):
            if self.views and options.get(name) is not None:
                refuse(name, "a view is read as it is; leave it out with views")
        self.paths = [] if self.views else split(options.get("paths"), "paths")
        self.ssdlet = options.get("ssdlet")
        if not self.ssdlet and not self.views:
            refuse("ssdlet", "names the program to run")
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

    def ticket(self, view, records=None):
        """The ticket for a view, or for a range of its rows."""
        keys = {"keys": self.keys} if self.keys else {}
        columns = {"columns": self.columns} if self.columns else {}
        rows = {"records": records} if records else {}
        return {"view": view, **keys, **columns, **rows}

    def look(self, client, ticket):
        """The columns and the number of rows that a ticket gives."""
        descriptor = self.flight.FlightDescriptor.for_command(json.dumps(ticket).encode())
        return client.get_flight_info(descriptor, self.call)

    def parts(self, node, view):
        """The partitions of a view. Its rows are counted only if it is split."""
        if self.split_rows is None:
            return [NodeView(node, self.ticket(view))]
        with self.connect(node) as client:
            rows = self.look(client, self.ticket(view)).total_records
        starts = range(0, max(rows, 1), self.split_rows)
        return [NodeView(node, self.ticket(view, [start, start + self.split_rows])) for start in starts]

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


def plain_schema(schema):
    """The columns of `schema` with types that Spark has. Values stay what they are."""
    import pyarrow as pa

    return pa.schema([field.with_type(plain_type(field.type)) for field in schema])


def plain_type(data_type):
    """The type of Spark's that holds the values of `data_type`."""
    import pyarrow as pa

    larger = {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20, 0),
        pa.float16(): pa.float32(),
        pa.date64(): pa.date32(),
        pa.string_view(): pa.string(),
        pa.binary_view(): pa.binary(),
    }
    if pa.types.is_dictionary(data_type):
        return plain_type(data_type.value_type)
    if pa.types.is_fixed_size_binary(data_type):
        return pa.binary()
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type) or pa.types.is_fixed_size_list(data_type):
        return pa.list_(data_type.value_field.with_type(plain_type(data_type.value_type)))
    if pa.types.is_struct(data_type):
        return pa.struct([field.with_type(plain_type(field.type)) for field in data_type])
    if pa.types.is_map(data_type):
        return pa.map_(plain_type(data_type.key_type), plain_type(data_type.item_type))
    return larger.get(data_type, data_type)


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
