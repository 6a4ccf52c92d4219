package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * A NodeManager that keeps deferred outputs goes away and comes back with recovery on: it knows its
 * jobs again, and finds their manifests where they were.
 */
class NodeManagerTest {
  private ClusterUnderTest cluster;
  private Runner runner;

  @BeforeEach
  void start() throws Exception {
    Path folder = ClusterUnderTest.folder("nodemanager");
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
  void killedBeforeReducersCome() throws Exception {
    Node node = cluster.addNode(Node.Kind.best().inOwnJvm());
    GatedJob job =
        new GatedJob(cluster, runner, Shape.gated("sort", 3, 800, 2), cluster.activeJob());
    node.killNodeManager();
    node.startNodeManager();

    Outcome outcome = job.finishRight();
    assertEquals(List.of(), GatedJob.rerun(outcome));
    assertEquals(0, outcome.failedFetches());
  }

  @Test
  @Tag("slow")
  void stoppedBeforeReducersCome() throws Exception {
    Node node = cluster.addNode(Node.Kind.best());
    GatedJob job =
        new GatedJob(cluster, runner, Shape.gated("sort", 3, 800, 2), cluster.activeJob());
    node.stopNodeManager();
    node.startNodeManager();

    Outcome outcome = job.finishRight();
    assertEquals(List.of(), GatedJob.rerun(outcome));
    assertEquals(0, outcome.failedFetches());
  }

  @Test
  @Tag("slow")
  void killedWhileReducersFetch() throws Exception {
    Node node = cluster.addNode(Node.Kind.JAVA.inOwnJvm());
    GatedJob job =
        new GatedJob(
            cluster,
            runner,
            Shape.gated("sort with large segments", 3, 6_000, 2),
            cluster.activeJob());
    long pid = node.process().orElseThrow().pid();
    job.open();
    long end = System.nanoTime() + 60_000_000_000L;
    while (Leaks.openBelow(pid, node.localDir()).isEmpty()) {
      assertTrue(System.nanoTime() < end, "no reducer came");
      Thread.sleep(1);
    }
    node.killNodeManager();
    node.startNodeManager();

    // Reducers come back by themselves for as long as they do to a stock node that restarts.
    Outcome outcome = job.finishRight();
    assertEquals(List.of(), GatedJob.rerun(outcome));
  }
}
