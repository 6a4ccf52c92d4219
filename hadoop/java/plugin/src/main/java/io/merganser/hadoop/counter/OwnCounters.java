package io.merganser.hadoop.counter;

import org.apache.hadoop.mapreduce.counters.LimitExceededException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Adds to job counters in the group {@value #GROUP}. Hadoop limits the number of counters ({@code
 * mapreduce.job.counters.max}). A job that is at the limit without this plugin must not fail with
 * it, so what can't be counted is logged.
 */
public final class OwnCounters {
  /** The group of all counters of this plugin. */
  public static final String GROUP = "Merganser";

  private static final Logger LOG = LoggerFactory.getLogger(OwnCounters.class);

  private OwnCounters() {}

  /** Adds to a counter of a task, which is made if it isn't there. */
  @FunctionalInterface
  public interface Adder {
    /** Adds to the counter {@code name} of {@code group}. */
    void add(String group, String name, long amount);
  }

  /** Adds to the counter {@code name}, unless the job has as many counters as it may have. */
  public static void add(Adder adder, String name, long amount) {
    try {
      adder.add(GROUP, name, amount);
    } catch (LimitExceededException e) {
      LOG.warn("{} is not counted", name, e);
    }
  }
}
