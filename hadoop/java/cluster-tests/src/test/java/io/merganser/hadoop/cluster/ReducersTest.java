package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.config.Keys;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.TaskCompletionEvent;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Reducers that are killed or do not read. */
class ReducersTest {
  private ClusterUnderTest cluster;
  private Runner runner;
  private Node node;

  @BeforeEach
  void start() throws Exception {
    Path folder = ClusterUnderTest.folder("reducers");
    runner = new Runner(folder);
    cluster = new ClusterUnderTest(folder.resolve("cluster"));
    node = cluster.addNode(Node.Kind.best().with(Map.of(Keys.STALLED_SECONDS, "2")));
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
  void killedInTheMiddleOfAFetch() throws Exception {
    Shape shape = Shape.gated("sort with large segments", 3, 6_000, 1);
    GatedJob job = new GatedJob(cluster, runner, shape, cluster.activeJob());
    long pid = node.merges().map(MergeProcess::pid).orElse(ProcessHandle.current().pid());
    String reducer = job.job().getJobID().toString().replace("job_", "attempt_") + "_r_000000_0";
    job.open();
    long end = System.nanoTime() + 60_000_000_000L;
    while (Leaks.openBelow(pid, node.localDir()).isEmpty()) {
      assertTrue(System.nanoTime() < end, "no reducer came");
      Thread.sleep(1);
    }
    Containers.task(reducer).orElseThrow().destroyForcibly();

    Outcome outcome = job.finishRight();
    assertEquals(List.of(), GatedJob.rerun(outcome));
    assertTrue(
        outcome.attempts().stream()
            .anyMatch(
                e ->
                    e.getTaskAttemptId().toString().equals(reducer)
                        && e.getStatus() != TaskCompletionEvent.Status.SUCCEEDED),
        "the reducer that was killed failed");
  }

  /** As many streams as a node merges at once, of reducers that stop reading. */
  @Tag("slow")
  @Test
  void thatDoNotReadDoNotHoldUpOthers() throws Exception {
    Shape shape = Shape.gated("sort with large segments", 3, 6_000, 2);
    GatedJob job = new GatedJob(cluster, runner, shape, cluster.activeJob());
    List<Fetch> held = new ArrayList<>();
    try {
      int merges = 2 * Runtime.getRuntime().availableProcessors();
      for (int i = 0; i < merges; i++) {
        TaskAttemptID map = job.done().get(i % job.done().size());
        Fetch fetch = new Fetch(node, job.job(), map, i % 2);
        held.add(fetch);
        assertEquals(200, fetch.status());
        assertEquals(1000, fetch.read(1000).length);
      }
      Outcome outcome = job.finishRight();
      assertEquals(0, outcome.failedFetches());
    } finally {
      for (Fetch fetch : held) {
        fetch.close();
      }
    }
  }
}
