package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.defer.DeferRules;
import io.merganser.hadoop.reduce.ReduceCounter;
import org.apache.hadoop.mapreduce.Counters;
import org.apache.hadoop.mapreduce.MRJobConfig;

/** Runs a shape and checks its output and counters. */
final class ShapeCheck {
  private ShapeCheck() {}

  /** Runs the shape with the plugin switched on, where all nodes have our service. */
  static void active(ClusterUnderTest cluster, Runner runner, Shape shape) throws Exception {
    Runner.Prepared prepared = runner.prepare(shape, cluster.activeJob());
    Outcome outcome = Outcome.of(prepared.job());
    assertTrue(outcome.succeeded(), outcome::why);
    assertEquals(runner.expected(shape), Output.digests(prepared.output()));
    assertEquals(0, outcome.failedFetches());
    boolean deferred = shape.way().equals(DeferRules.DEFERRED);
    String counters = Outcome.group(outcome.counters(), DeferRules.COUNTERS);
    assertTrue(outcome.counter(DeferRules.COUNTERS, shape.way()) > 0, counters);
    if (!deferred) {
      assertEquals(0, outcome.counter(DeferRules.COUNTERS, DeferRules.DEFERRED), counters);
    }
    for (Counters map : outcome.maps()) {
      if (map.findCounter(DeferRules.COUNTERS, DeferRules.DEFERRED).getValue() > 0) {
        MapOutputs.assertWrittenOnce(map, prepared.job().getConfiguration());
      } else {
        assertTrue(!deferred || !MapOutputs.spilledOften(map), "a map that spilled often merged");
      }
    }
    if (prepared.job().getConfiguration().get(MRJobConfig.REDUCE_MEMORY_TOTAL_BYTES) != null) {
      String saved = ReduceCounter.ON_DISK_PASSES_SAVED.name();
      assertTrue(outcome.counter(DeferRules.COUNTERS, saved) > 0, counters);
    }
  }

  /** Runs the shape as a job that uses nothing of the plugin. */
  static void stock(ClusterUnderTest cluster, Runner runner, Shape shape) throws Exception {
    Runner.Prepared prepared = runner.prepare(shape, cluster.stockJob());
    Outcome outcome = Outcome.of(prepared.job());
    assertTrue(outcome.succeeded(), outcome::why);
    assertEquals(runner.expected(shape), Output.digests(prepared.output()));
    assertEquals(0, outcome.failedFetches());
    assertEquals("", Outcome.group(outcome.counters(), DeferRules.COUNTERS));
  }
}
