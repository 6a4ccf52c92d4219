package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapreduce.Counters;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** One job of each shape, on nodes that are ours: stock Hadoop's output, by the way it must go. */
class ShapesTest {
  private static Path folder;
  private static Runner runner;
  private static ClusterUnderTest cluster;

  @BeforeAll
  static void start() throws Exception {
    folder = Path.of("target", "shapes").toAbsolutePath();
    ClusterUnderTest.delete(folder);
    runner = new Runner(folder);
    cluster = new ClusterUnderTest(folder.resolve("cluster"));
    cluster.addNode(Node.Kind.STOCK);
    cluster.addNode(Node.Kind.STOCK);
  }

  @AfterAll
  static void stop() throws Exception {
    cluster.close();
    ClusterUnderTest.delete(folder);
  }

  static List<Shape> shapes() {
    return Shape.all();
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("shapes")
  @Execution(ExecutionMode.CONCURRENT)
  void stock(Shape shape) throws Exception {
    JobConf conf = cluster.stockJob();
    Runner.Prepared prepared = runner.prepare(shape, conf);
    Outcome outcome = Outcome.of(prepared.job());
    assertTrue(outcome.succeeded(), outcome::why);
    assertEquals(runner.expected(shape), Output.digests(prepared.output()));
    for (Counters map : outcome.maps()) {
      System.err.println(
          shape
              + " records "
              + MapOutputs.value(map, TaskCounter.MAP_OUTPUT_RECORDS)
              + " spilled "
              + MapOutputs.value(map, TaskCounter.SPILLED_RECORDS)
              + " "
              + Outcome.group(map, "org.apache.hadoop.mapreduce.FileSystemCounter"));
    }
  }
}
