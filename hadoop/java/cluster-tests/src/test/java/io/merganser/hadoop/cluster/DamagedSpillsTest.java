package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/**
 * A spill is damaged after its map task. The reducers notice it, and the map task runs again and
 * merges by itself.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class DamagedSpillsTest {
  private static final int REDUCERS = 2;

  /** Enough maps that a reducer which lacks one output does not blame itself. */
  private static final Shape SHAPE = Shape.gated("sort with damage", 5, 550, REDUCERS);

  /** Each reducer reports the outputs that it could not read; after three, a map runs again. */
  private static final int FAILED_FETCHES_MAX = 4 * REDUCERS;

  private ClusterUnderTest cluster;
  private Runner runner;

  /** The node that has the spills. */
  Node.Kind kind() {
    return Node.Kind.best();
  }

  @BeforeAll
  void start() throws Exception {
    Path folder = ClusterUnderTest.folder(getClass().getSimpleName());
    runner = new Runner(folder);
    cluster = new ClusterUnderTest(folder.resolve("cluster"));
    cluster.addNode(kind());
  }

  @AfterAll
  void stop() throws Exception {
    try {
      Leaks.assertNone(cluster);
    } finally {
      cluster.close();
      runner.close();
    }
  }

  @Test
  @Execution(ExecutionMode.CONCURRENT)
  void oneByteIsAnother() throws Exception {
    runWith(
        spill -> {
          try (FileChannel file =
              FileChannel.open(spill, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            long middle = file.size() / 3;
            ByteBuffer one = ByteBuffer.allocate(1);
            file.read(one, middle);
            one.put(0, (byte) (one.get(0) ^ 0x10)).rewind();
            file.write(one, middle);
          }
        });
  }

  @Tag("slow")
  @Test
  @Execution(ExecutionMode.CONCURRENT)
  void theEndIsMissing() throws Exception {
    runWith(
        spill -> {
          try (FileChannel file = FileChannel.open(spill, StandardOpenOption.WRITE)) {
            file.truncate(file.size() / 3);
          }
        });
  }

  @Tag("slow")
  @Test
  @Execution(ExecutionMode.CONCURRENT)
  void allOfItIsMissing() throws Exception {
    runWith(Files::delete);
  }

  private interface Damage {
    void to(Path spill) throws IOException;
  }

  private void runWith(Damage damage) throws Exception {
    GatedJob job = new GatedJob(cluster, runner, SHAPE, cluster.activeJob());
    TaskAttemptID victim = job.done().get(0);
    List<Path> spills = job.spills(victim);
    assertTrue(spills.size() >= 3, () -> "spills kept: " + spills);
    damage.to(spills.get(1));

    Outcome outcome = job.finishRight();

    assertEquals(
        List.of(victim.getTaskID()),
        GatedJob.rerun(outcome).stream().map(TaskAttemptID::getTaskID).distinct().toList());
    assertTrue(
        outcome.failedFetches() <= FAILED_FETCHES_MAX,
        () -> outcome.failedFetches() + " failed fetches");
  }
}
