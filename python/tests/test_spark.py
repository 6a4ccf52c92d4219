"""A local Spark that reads three nodes."""

import contextlib
import shutil
import sys
import unittest

try:
    import pyarrow.flight  # noqa: F401
    from pyspark.sql import SparkSession
    from pyspark.sql import functions
except ImportError as missing:
    raise unittest.SkipTest(f"{missing}; .ci/setup flight installs the clients")
if not shutil.which("java"):
    raise unittest.SkipTest("no java, which PySpark needs")

from node import ROOT, TOKEN, Node

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


if __name__ == "__main__":
    unittest.main()
