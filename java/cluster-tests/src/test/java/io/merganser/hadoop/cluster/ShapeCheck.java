package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.hadoop.mapreduce.Counters;

/** Runs a shape with ours switched on, and checks all that must hold of it. */
final class ShapeCheck {
  private ShapeCheck() {}

  /** Runs the shape on nodes that all are ours. */
  static void active(ClusterUnderTest cluster, Runner runner, Shape shape) throws Exception {
    Runner.Prepared prepared = runner.prepare(shape, cluster.activeJob());
    Outcome outcome = Outcome.of(prepared.job());
    assertTrue(outcome.succeeded(), outcome::why);
    assertEquals(runner.expected(shape), Output.digests(prepared.output()));
    assertEquals(0, outcome.failedFetches());
    int partitions = prepared.job().getNumReduceTasks();
    int often = 0;
    for (Counters map : outcome.maps()) {
      if (MapOutputs.spilledOften(map)) {
        often++;
        if (shape.way() == Shape.Way.DEFERRED) {
          MapOutputs.assertWrittenOnce(map, partitions);
        } else if (prepared.job().getCombinerClass() == null
            && prepared.job().getConfiguration().getInt("mapreduce.task.io.sort.mb", 0) == 1) {
          MapOutputs.assertMerged(map);
        }
      }
    }
    assertTrue(often > 0 || shape.way() == Shape.Way.STOCK, "a map spilled more than once");
  }

  /** Runs the shape as a job that knows nothing of ours. */
  static void stock(ClusterUnderTest cluster, Runner runner, Shape shape) throws Exception {
    Runner.Prepared prepared = runner.prepare(shape, cluster.stockJob());
    Outcome outcome = Outcome.of(prepared.job());
    assertTrue(outcome.succeeded(), outcome::why);
    assertEquals(runner.expected(shape), Output.digests(prepared.output()));
    assertEquals(0, outcome.failedFetches());
  }
}
