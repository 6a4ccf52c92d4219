package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.Map;
import org.apache.hadoop.mapreduce.Counters;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Nodes of different kinds in one cluster, as while it is upgraded. */
class MixedNodesTest {
  /** Room for four tasks, so that a job's six maps and its master need both nodes. */
  private static final Map<String, String> SMALL = Map.of(YarnConfiguration.NM_PMEM_MB, "1024");

  private ClusterUnderTest cluster;
  private Runner runner;

  @BeforeEach
  void start() throws Exception {
    Path folder = ClusterUnderTest.folder("mixed");
    runner = new Runner(folder);
    cluster = new ClusterUnderTest(folder.resolve("cluster"));
  }

  @AfterEach
  void stop() throws Exception {
    try {
      Leaks.assertNone(cluster);
    } finally {
      cluster.close();
      runner.close();
    }
  }

  @Test
  void aStockNodeAmongOurs() throws Exception {
    cluster.addNode(Node.Kind.best().with(SMALL));
    cluster.addNode(Node.Kind.STOCK.with(SMALL));
    assertSomeDefer();
  }

  @Test
  @Tag("slow")
  void aNodeWithAnOlderPlugin() throws Exception {
    cluster.addNode(Node.Kind.best().with(SMALL));
    cluster.addNode(Node.Kind.ofVersion(0).with(SMALL));
    assertSomeDefer();
  }

  private void assertSomeDefer() throws Exception {
    GatedJob job =
        new GatedJob(cluster, runner, Shape.gated("sort", 6, 800, 2), cluster.activeJob());
    int deferred = 0;
    for (var attempt : job.done()) {
      boolean ours = job.nodeOf(attempt) == cluster.nodes().get(0);
      assertEquals(ours, !job.spills(attempt).isEmpty(), attempt + " defers on our node only");
      deferred += ours ? 1 : 0;
    }
    assertTrue(deferred > 0 && deferred < job.done().size(), deferred + " maps deferred");
    Outcome outcome = job.finishRight();
    assertEquals(0, outcome.failedFetches());
    long twice =
        outcome.maps().stream()
            .filter(
                map ->
                    value(map, TaskCounter.SPILLED_RECORDS)
                        == 2 * value(map, TaskCounter.MAP_OUTPUT_RECORDS))
            .count();
    assertTrue(twice > 0 && twice < outcome.maps().size(), twice + " maps merged by themselves");
  }

  private static long value(Counters counters, TaskCounter name) {
    return MapOutputs.value(counters, name);
  }
}
