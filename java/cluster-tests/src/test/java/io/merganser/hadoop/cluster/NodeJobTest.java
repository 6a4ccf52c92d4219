package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.cluster.NodeJob.Maps;
import io.merganser.hadoop.defer.DeferRules;
import io.merganser.workloads.puma.WordCount;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.apache.hadoop.mapreduce.lib.reduce.IntSumReducer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** A job on YARN whose maps run on the node, and whose reducers fetch what the node has made. */
class NodeJobTest {
  private static final long BLOCK_BYTES = 8 << 20;

  private static NodeOnHdfs setup;
  private static ClusterUnderTest cluster;

  @BeforeAll
  static void start() throws Exception {
    setup = new NodeOnHdfs("node-job", 1, BLOCK_BYTES);
    cluster = new ClusterUnderTest(setup.folder().resolve("cluster"));
    cluster.addNode(Node.Kind.best());
  }

  @AfterAll
  static void stop() throws Exception {
    try {
      if (cluster != null) {
        Leaks.assertNone(cluster);
      }
    } finally {
      if (cluster != null) {
        cluster.close();
      }
      if (setup != null) {
        setup.close();
      }
    }
  }

  /** Words that hardly ever repeat, so that a map of 9 MiB of memory spills often. */
  private static byte[] text() {
    Random random = new Random(4);
    StringBuilder text = new StringBuilder();
    while (text.length() < 2 * BLOCK_BYTES) {
      text.append(Long.toString(random.nextLong(), 36)).append(random.nextInt(9) == 0 ? '\n' : ' ');
    }
    return text.toString().getBytes(StandardCharsets.US_ASCII);
  }

  @Test
  void spillsOfTheNodeAreMergedWhenTheyAreFetched() throws Exception {
    Outcome outcome = sameAsStock("spills", false);
    String counters = Outcome.group(outcome.counters(), DeferRules.COUNTERS);
    assertTrue(outcome.counter(DeferRules.COUNTERS, DeferRules.DEFERRED) > 0, counters);
  }

  @Test
  void spillsOfTheNodeAreMergedByTheTaskIfTheJobCompresses() throws Exception {
    Outcome outcome = sameAsStock("compressed", true);
    String counters = Outcome.group(outcome.counters(), DeferRules.COUNTERS);
    assertTrue(outcome.counter(DeferRules.COUNTERS, "MAPS_STOCK_COMPRESSED") > 0, counters);
    assertTrue(
        outcome.counter(TaskCounter.MAP_OUTPUT_MATERIALIZED_BYTES)
            < outcome.counter(TaskCounter.MAP_OUTPUT_BYTES),
        "not compressed");
  }

  /** Runs a job with all maps on the node, and the same job with none. */
  private static Outcome sameAsStock(String name, boolean compress) throws Exception {
    setup.hdfs().write(name, text());
    List<org.apache.hadoop.fs.Path> input = List.of(setup.hdfs().path(name));
    NodeJob words =
        new NodeJob(
            setup.folder(), WordCount.WordMapper.class, IntSumReducer.class, IntWritable.class);
    words.with("merganser.node.memory-bytes", 9 << 20);
    words.with(MRJobConfig.MAP_OUTPUT_COMPRESS, compress);
    Path output = setup.folder().resolve(name);
    Job job = words.prepare(cluster.stockJob(), Maps.NODE, setup.node().socket(), input, output);
    Outcome outcome = Outcome.of(job);
    assertTrue(outcome.succeeded(), outcome::why);
    String counters = Outcome.group(outcome.counters(), DeferRules.COUNTERS);
    long maps = outcome.maps().size();
    assertEquals(maps, outcome.counter(DeferRules.COUNTERS, "MAPS_ON_NODE"), counters);
    assertEquals(0, outcome.failedFetches());
    NodeJob.Done stock = words.run(Maps.STOCK, setup.node().socket(), input);
    assertEquals(stock.digests(), Output.digests(output));
    for (TaskCounter counter :
        List.of(
            TaskCounter.MAP_INPUT_RECORDS,
            TaskCounter.MAP_OUTPUT_RECORDS,
            TaskCounter.MAP_OUTPUT_BYTES)) {
      assertEquals(stock.counter(counter), outcome.counter(counter), counter.name());
    }
    // The tasks read the ends of lines, and little else.
    long read = outcome.counter("org.apache.hadoop.mapreduce.FileSystemCounter", "HDFS_BYTES_READ");
    assertTrue(read < maps * (64 << 10), read + " bytes were read by " + maps + " tasks");
    assertTrue(outcome.counter(DeferRules.COUNTERS, "NODE_BYTES_READ") > 2 * BLOCK_BYTES);
    return outcome;
  }
}
