package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.manifest.Manifest;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.mapreduce.Counters;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Nodes of different kinds in one cluster, as during an upgrade. */
class MixedNodesTest {
  /** Room for four tasks, so that the six maps of a job and its master need both nodes. */
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

  /** A newer node reads the manifests of all older tasks. */
  @Test
  @Tag("slow")
  void aNodeWithANewerPlugin() throws Exception {
    cluster.addNode(Node.Kind.best().with(SMALL));
    Node newer = cluster.addNode(Node.Kind.ofVersion(Manifest.VERSION + 1).with(SMALL));
    GatedJob job = job();
    int onNewer = 0;
    for (var attempt : job.done()) {
      assertFalse(job.spills(attempt).isEmpty(), attempt + " defers on either node");
      onNewer += job.nodeOf(attempt) == newer ? 1 : 0;
    }
    assertTrue(onNewer > 0 && onNewer < job.done().size(), onNewer + " maps on the newer node");
    Outcome outcome = job.finishRight();
    assertEquals(0, outcome.failedFetches());
    assertEquals(List.of(), GatedJob.rerun(outcome));
    for (Counters map : outcome.maps()) {
      MapOutputs.assertWrittenOnce(map, job.job().getConfiguration());
    }
  }

  private GatedJob job() throws Exception {
    return new GatedJob(cluster, runner, Shape.gated("sort", 6, 800, 2), cluster.activeJob());
  }

  private void assertSomeDefer() throws Exception {
    GatedJob job = job();
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
