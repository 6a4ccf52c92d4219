package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.cluster.NodeJob.Maps;
import io.merganser.hadoop.defer.DeferRules;
import io.merganser.workloads.puma.WordCount;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.mapreduce.lib.reduce.IntSumReducer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** A local dir on a small file system, if this user may mount one. */
@Tag("slow")
class DiskFullTest {
  /** The output of a map of this size is about 12 MB. */
  private static final int NODE_BLOCK_BYTES = 8 << 20;

  private Path folder;
  private Path disk;
  private ClusterUnderTest cluster;
  private Runner runner;

  @BeforeEach
  void start() throws Exception {
    folder = ClusterUnderTest.folder("disk-full");
    disk = Files.createDirectories(folder.resolve("disk"));
    Assumptions.assumeTrue(
        run("mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", disk.toString()),
        "mounting a small file system is not allowed here");
    runner = new Runner(folder);
    cluster = new ClusterUnderTest(folder.resolve("cluster"));
  }

  @AfterEach
  void stop() throws Exception {
    if (cluster != null) {
      cluster.close();
      runner.close();
      assertTrue(run("umount", disk.toString()));
    }
  }

  /** Two outputs of 3 MB and their copies fit, as for stock Hadoop; two of 15 MB do not. */
  @Test
  void failsAsStockHadoopAndLeavesNothing() throws Exception {
    cluster.addNode(Node.Kind.best().on(disk));
    Shape tooLarge =
        new Shape(
            "sort of too much", DeferRules.DEFERRED, Shape.sorted(2, 3_700, 4_072), Shape::sort);
    Outcome stock = run(tooLarge, cluster.stockJob());
    Outcome active = run(tooLarge, cluster.activeJob());
    assertFalse(stock.succeeded());
    assertFalse(active.succeeded());
    assertTrue(saysWhy(stock), stock::why);
    assertTrue(saysWhy(active), active::why);
    Leaks.assertNone(cluster);

    ShapeCheck.active(
        cluster, runner, Shape.sort4KiB("sort of little", DeferRules.DEFERRED, 2, job -> {}));
    Leaks.assertNone(cluster);
  }

  /** The node's spills and the tasks' own ones need the same room, which isn't there. */
  @Test
  void aJobWithANodeFailsAsStockHadoopAndLeavesNothing() throws Exception {
    cluster.addNode(Node.Kind.best().on(disk));
    try (NodeOnHdfs setup = new NodeOnHdfs("disk-full-node", 1, NODE_BLOCK_BYTES)) {
      Outcome stock = run(setup, "large", Maps.STOCK, 4 * NODE_BLOCK_BYTES);
      Outcome active = run(setup, "large", Maps.NODE, 4 * NODE_BLOCK_BYTES);
      assertFalse(stock.succeeded());
      assertFalse(active.succeeded());
      assertTrue(saysWhy(stock), stock::why);
      assertTrue(saysWhy(active), active::why);
      Leaks.assertNone(cluster);

      Outcome small = run(setup, "small", Maps.NODE, NODE_BLOCK_BYTES / 4);
      assertTrue(small.succeeded(), small::why);
      assertEquals(1, small.counter(DeferRules.COUNTERS, "MAPS_ON_NODE"));
      Path output = folder.resolve("small-NODE");
      assertTrue(run(setup, "small", Maps.STOCK, NODE_BLOCK_BYTES / 4).succeeded());
      assertEquals(Output.digests(folder.resolve("small-STOCK")), Output.digests(output));
      Leaks.assertNone(cluster);
    }
  }

  /** Counts words that hardly ever repeat: a map hands out more bytes than it reads. */
  private Outcome run(NodeOnHdfs setup, String name, Maps maps, int bytes) throws Exception {
    Random random = new Random(6);
    StringBuilder text = new StringBuilder();
    while (text.length() < bytes) {
      text.append(Long.toString(random.nextLong(), 36)).append(random.nextInt(9) == 0 ? '\n' : ' ');
    }
    text.setLength(bytes);
    setup.hdfs().write(name, text.toString().getBytes(StandardCharsets.US_ASCII));
    JobConf conf = cluster.stockJob();
    oneAttempt(conf);
    Job job =
        new NodeJob(folder, WordCount.WordMapper.class, IntSumReducer.class, IntWritable.class)
            .prepare(
                conf,
                maps,
                setup.node().socket(),
                List.of(setup.hdfs().path(name)),
                folder.resolve(name + "-" + maps));
    return Outcome.of(job);
  }

  private Outcome run(Shape shape, JobConf conf) throws Exception {
    oneAttempt(conf);
    return Outcome.of(runner.prepare(shape, conf).job());
  }

  private static void oneAttempt(JobConf conf) {
    conf.setInt(MRJobConfig.MAP_MAX_ATTEMPTS, 1);
    conf.setInt(MRJobConfig.REDUCE_MAX_ATTEMPTS, 1);
  }

  private static boolean saysWhy(Outcome outcome) {
    return List.of("No space left on device", "Could not find any valid local directory").stream()
        .anyMatch(outcome.why()::contains);
  }

  private static boolean run(String... command) throws IOException, InterruptedException {
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    process.getInputStream().readAllBytes();
    return process.waitFor(10, TimeUnit.SECONDS) && process.exitValue() == 0;
  }
}
