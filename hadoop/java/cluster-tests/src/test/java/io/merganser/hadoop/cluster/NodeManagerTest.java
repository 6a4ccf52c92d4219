package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.defer.DeferRules;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.mapreduce.Counters;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.TaskID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * A NodeManager with deferred outputs ends and starts again with recovery. It knows its jobs again
 * and finds their manifests.
 */
class NodeManagerTest {
  private static final int MAPS = 5;
  private static final int RECORDS = 550;
  private static final int REDUCERS = 2;

  /** Each reducer reports the outputs that it could not read; after three, a map runs again. */
  private static final int FAILED_FETCHES_MAX = 4 * REDUCERS;

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

  /**
   * A rollback while a job runs: Hadoop's own service finds manifests in place of map outputs. It
   * sends nothing of them, and their maps run again and merge.
   */
  @Test
  @Tag("slow")
  void stoppedAndStartedWithHadoopsOwnService() throws Exception {
    Node node = cluster.addNode(Node.Kind.best());
    // Only one of five maps spills often, so that a reducer does not blame itself.
    Input input =
        Input.sequence(
            MAPS,
            RECORDS,
            new BytesWritable(),
            new BytesWritable(),
            (random, n, key, value) -> {
              int length = n < RECORDS ? 4_072 : 500;
              key.set(Input.bytes(random, 10), 0, 10);
              value.set(Input.bytes(random, length), 0, length);
            });
    Shape shape = Shape.gated("sort with one deferred map", input, MAPS, REDUCERS);
    GatedJob job = new GatedJob(cluster, runner, shape, cluster.activeJob());
    List<TaskID> deferred = new ArrayList<>();
    for (TaskAttemptID map : job.done()) {
      if (!job.spills(map).isEmpty()) {
        deferred.add(map.getTaskID());
      }
    }
    assertEquals(1, deferred.size());
    node.stopNodeManager();
    node.rollBack();
    node.startNodeManager();

    Outcome outcome = job.finishRight();
    assertEquals(
        deferred,
        GatedJob.rerun(outcome).stream().map(TaskAttemptID::getTaskID).distinct().toList());
    for (Counters map : outcome.maps()) {
      assertEquals(0, map.findCounter(DeferRules.COUNTERS, DeferRules.DEFERRED).getValue());
    }
    assertTrue(
        outcome.failedFetches() > 0 && outcome.failedFetches() <= FAILED_FETCHES_MAX,
        () -> outcome.failedFetches() + " failed fetches");
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

    // Reducers try again for the same time as with a stock node that restarts.
    Outcome outcome = job.finishRight();
    assertEquals(List.of(), GatedJob.rerun(outcome));
  }
}
