package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.merganser.hadoop.defer.DeferRules;
import io.merganser.hadoop.defer.StockReason;
import java.nio.file.Path;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.mapreduce.TaskCompletionEvent;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** A slow map task: its second attempt overtakes the first and merges by itself. */
class SpeculationTest {
  @Test
  @Tag("slow")
  void theSecondAttemptWins() throws Exception {
    Path folder = ClusterUnderTest.folder("speculation");
    Shape shape =
        Shape.sort4KiB(
            "sort with a slow attempt",
            DeferRules.DEFERRED,
            3,
            job -> {
              job.setMapperClass(Jobs.SlowFirstAttempt.class);
              job.getConfiguration().set(Jobs.Gated.LAST, Input.name(2));
            });
    try (Runner runner = new Runner(folder);
        ClusterUnderTest cluster = new ClusterUnderTest(folder.resolve("cluster"))) {
      cluster.addNode(Node.Kind.best());
      JobConf conf = cluster.activeJob();
      conf.setBoolean(MRJobConfig.MAP_SPECULATIVE, true);
      conf.setLong(MRJobConfig.SPECULATIVE_RETRY_AFTER_NO_SPECULATE, 500);
      conf.setLong(MRJobConfig.SPECULATIVE_RETRY_AFTER_SPECULATE, 500);
      conf.setDouble(MRJobConfig.SPECULATIVECAP_TOTAL_TASKS, 1);
      conf.setDouble(MRJobConfig.SPECULATIVECAP_RUNNING_TASKS, 1);
      Runner.Prepared prepared = runner.prepare(shape, conf);
      Outcome outcome = Outcome.of(prepared.job());
      assertTrue(outcome.succeeded(), outcome::why);
      assertEquals(runner.expected(shape), Output.digests(prepared.output()));
      assertTrue(
          outcome.attempts().stream()
              .filter(TaskCompletionEvent::isMapTask)
              .anyMatch(
                  e ->
                      e.getTaskAttemptId().getId() == 1
                          && e.getStatus() == TaskCompletionEvent.Status.SUCCEEDED),
          () -> "attempts: " + outcome.attempts());
      assertTrue(outcome.counter(DeferRules.COUNTERS, StockReason.RETRY.counter()) > 0);
      assertEquals(0, outcome.failedFetches());
      Leaks.assertNone(cluster);
    }
  }
}
