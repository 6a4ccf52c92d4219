"""A local Spark that reads three nodes."""

import contextlib
import shutil
import sys
import unittest

from node import ROOT, TOKEN, Node, leave_out

try:
    import pyarrow.flight  # noqa: F401
    from pyspark.sql import SparkSession
    from pyspark.sql import functions
except ImportError as missing:
    leave_out(f"{missing}; .ci/setup flight installs the clients")
if not shutil.which("java"):
    leave_out("no java, which PySpark needs")

sys.path.insert(0, str(ROOT / "python"))


class Spark(unittest.TestCase):
    def test_three_nodes_are_read(self):
        import os

        from merganser_spark import MerganserDataSource

        os.environ["PYTHONPATH"] = str(ROOT / "python")
        os.environ["PYSPARK_PYTHON"] = sys.executable
        with contextlib.ExitStack() as stack:
            texts = [b"a b\n" * 1000, b"b c\n" * 2000, b"c d a\n" * 3000]
            nodes = [stack.enter_context(Node({"log": text})) for text in texts]
            spark = (
                SparkSession.builder.master("local[2]")
                .config("spark.ui.enabled", "false")
                .config("spark.driver.bindAddress", "127.0.0.1")
                .config("spark.driver.host", "127.0.0.1")
                .getOrCreate()
            )
            stack.callback(spark.stop)
            spark.dataSource.register(MerganserDataSource)
            wanted = {
                "nodes": ",".join(node.address for node in nodes),
                "ssdlet": "wordcount",
                "paths": "log",
                "token": TOKEN,
            }
            for more, partitions in (({}, 3), ({"split": "5000"}, 7)):
                rows = spark.read.format("merganser").options(**wanted, **more).load()
                self.assertEqual(rows.rdd.getNumPartitions(), partitions)
                counted = rows.groupBy("key").agg(functions.sum("value").alias("n"))
                found = {row["key"]: row["n"] for row in counted.collect()}
                self.assertEqual(found, {"a": 4000, "b": 3000, "c": 5000, "d": 3000})
            self.views_are_read(spark, nodes)
            # Two lines of each node are not two lines of all.
            sample = {**wanted, "ssdlet": "sample", "args": '{"count": 2}'}
            with self.assertRaisesRegex(Exception, "2 rows of its own"):
                spark.read.format("merganser").options(**sample).load().collect()
            alone = {**sample, "nodes": nodes[0].address}
            self.assertEqual(spark.read.format("merganser").options(**alone).load().count(), 2)

    def views_are_read(self, spark, nodes):
        """Views of tables and of lines, of two nodes."""
        import pyarrow
        import pyarrow.parquet

        nodes = nodes[:2]
        for at, node in enumerate(nodes):
            table = pyarrow.table(
                {
                    "name": [f"{n * 7919 % 1009:04}" for n in range(1000)],
                    "n": pyarrow.array([n * 2 + at for n in range(1000)], pyarrow.uint64()),
                    "kind": pyarrow.array(["a", None] * 500).dictionary_encode(),
                    "tags": pyarrow.array([[n % 3] for n in range(1000)], pyarrow.list_(pyarrow.uint8())),
                }
            )
            pyarrow.parquet.write_table(table, node.path / "data/t.parquet")
            node.run("sort", "data/t.parquet", "--view", "data/t.view", "--key", "name")
            node.run("sort", "data/log", "--view", "data/log.view")
        wanted = {"nodes": ",".join(node.address for node in nodes), "views": "t.view", "token": TOKEN}
        for more, partitions in (({}, 2), ({"split_rows": "600"}, 4)):
            rows = spark.read.format("merganser").options(**wanted, **more).load()
            self.assertEqual(rows.rdd.getNumPartitions(), partitions)
            self.assertEqual(dict(rows.dtypes), {"name": "string", "n": "decimal(20,0)", "kind": "string", "tags": "array<smallint>"})
            self.assertEqual(sorted(int(row["n"]) for row in rows.select("n").collect()), list(range(2000)))
            self.assertEqual(rows.where("kind is null").count(), 1000)
        part = {"from_key": "0100", "to_key": "0200", "columns": "n,name"}
        rows = spark.read.format("merganser").options(**wanted, **part).load()
        self.assertEqual(rows.columns, ["n", "name"])
        self.assertEqual({row["name"][:2] for row in rows.collect()}, {"01"})
        lines = spark.read.format("merganser").options(**{**wanted, "views": "log.view"}).load()
        self.assertEqual((lines.count(), bytes(lines.first()["record"])), (3000, b"a b\n"))


class Options(unittest.TestCase):
    def test_a_token_does_not_leave_the_machine_unencrypted(self):
        from merganser_spark import Nodes

        wanted = {"nodes": "127.0.0.1:1,[::1]:1,localhost:1", "ssdlet": "x", "paths": "a", "token": TOKEN}
        Nodes(wanted)
        with self.assertRaisesRegex(ValueError, "token: it would cross the network to host:1"):
            Nodes({**wanted, "nodes": "127.0.0.1:1,host:1"})
        Nodes({**wanted, "nodes": "host:1", "insecure": "true"})

    def test_views_and_ssdlets_have_options_of_their_own(self):
        from merganser_spark import Nodes

        self.assertEqual(Nodes({"nodes": "a:1", "views": "v"}).ticket("v"), {"view": "v"})
        for options, says in (
            ({"views": "v", "ssdlet": "x"}, "ssdlet: a view is read as it is"),
            ({"ssdlet": "x", "paths": "a", "from_key": "k"}, "from_key: is for views"),
            ({"views": "v", "from_key": "k", "split_rows": "5"}, "split_rows: a range of keys is one partition"),
            ({"views": ""}, "views: names at least one"),
            ({"views": "v", "split_rows": "-1"}, "split_rows: at least 1 row"),
        ):
            with self.assertRaisesRegex(ValueError, says):
                Nodes({"nodes": "a:1", **options})

    def test_a_guest_takes_a_text(self):
        from merganser_spark import Nodes

        wanted = {"nodes": "a:1", "ssdlet": "grep", "paths": "a"}
        self.assertEqual(Nodes({**wanted, "guest_args": "{1"}).args, "{1")
        with self.assertRaisesRegex(ValueError, "guest_args"):
            Nodes({**wanted, "guest_args": "x", "args": '{"a": 1}'})


if __name__ == "__main__":
    unittest.main()
