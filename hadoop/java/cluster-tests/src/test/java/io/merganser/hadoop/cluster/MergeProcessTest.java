package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.config.Keys;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The merge process ends. The NodeManager merges by itself, and no reducer notices it. */
class MergeProcessTest {
  private ClusterUnderTest cluster;
  private Runner runner;

  @BeforeEach
  void start() throws Exception {
    Path folder = ClusterUnderTest.folder("merge-process");
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
  void killedInTheMiddleOfASegment() throws Exception {
    Assumptions.assumeTrue(MergeProcess.binary().isPresent(), "no merganser was built");
    Node node = cluster.addNode(Node.Kind.PROCESS);
    // One reducer, and segments much larger than all buffers between the process and this test.
    Shape shape = Shape.gated("sort with large segments", 2, 6_000, 1);
    GatedJob job = new GatedJob(cluster, runner, shape, cluster.activeJob());
    TaskAttemptID map = job.done().get(0);

    byte[] whole;
    try (Fetch fetch = new Fetch(node, job.job(), map, 0)) {
      assertEquals(200, fetch.status());
      whole = fetch.read((int) fetch.length());
      assertEquals(fetch.length(), whole.length);
    }
    try (Fetch fetch = new Fetch(node, job.job(), map, 0)) {
      byte[] start = fetch.read(100_000);
      assertFalse(
          Leaks.openBelow(node.merges().orElseThrow().pid(), node.localDir()).isEmpty(),
          "the process should be in the middle of the segment");
      node.merges().orElseThrow().kill();
      byte[] rest = fetch.read(whole.length - start.length);
      byte[] both = new byte[whole.length];
      System.arraycopy(start, 0, both, 0, start.length);
      System.arraycopy(rest, 0, both, start.length, rest.length);
      assertArrayEquals(whole, both);
    }

    Outcome outcome = job.finishRight();
    assertEquals(0, outcome.failedFetches());
    assertEquals(List.of(), GatedJob.rerun(outcome));
  }

  @Test
  @Tag("slow")
  void killedWhileReducersFetch() throws Exception {
    Assumptions.assumeTrue(MergeProcess.binary().isPresent(), "no merganser was built");
    Node node = cluster.addNode(Node.Kind.PROCESS);
    Shape shape = Shape.gated("sort with large segments", 3, 6_000, 2);
    GatedJob job = new GatedJob(cluster, runner, shape, cluster.activeJob());
    MergeProcess merges = node.merges().orElseThrow();
    job.open();
    long end = System.nanoTime() + 60_000_000_000L;
    while (Leaks.openBelow(merges.pid(), node.localDir()).isEmpty()) {
      assertTrue(System.nanoTime() < end, "no reducer came");
      Thread.sleep(1);
    }
    merges.kill();

    Outcome outcome = job.finishRight();
    assertEquals(0, outcome.failedFetches());
    assertEquals(List.of(), GatedJob.rerun(outcome));
  }

  @Test
  void neverThere() throws Exception {
    cluster.addNode(
        Node.Kind.JAVA.with(Map.of(Keys.SOCKET, cluster.folder().resolve("none").toString())));
    Shape shape = Shape.gated("sort", 2, 800, 2);
    GatedJob job = new GatedJob(cluster, runner, shape, cluster.activeJob());
    Outcome outcome = job.finishRight();
    assertEquals(0, outcome.failedFetches());
    assertEquals(List.of(), GatedJob.rerun(outcome));
    MapOutputs.assertWrittenOnce(outcome.maps().get(0), job.job().getConfiguration());
  }
}
