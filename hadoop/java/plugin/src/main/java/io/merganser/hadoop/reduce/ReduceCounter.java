package io.merganser.hadoop.reduce;

import io.merganser.hadoop.counter.OwnCounters;
import org.apache.hadoop.mapred.Reporter;

/** Job counters of the reduce side, in the group {@value OwnCounters#GROUP}. */
public enum ReduceCounter {
  /** Reduce tasks that merged their files with the native library. */
  REDUCE_MERGE_NATIVE,
  /** Reduce tasks that merged their files with our merge in Java. */
  REDUCE_MERGE_JAVA,
  /** Reduce tasks that merged their files with Hadoop's merge. */
  REDUCE_MERGE_STOCK,
  /** Reduce tasks whose registered order of keys is malformed, or isn't the comparator's. */
  REDUCE_STOCK_WRONG_ORDER,
  /** Merges from files to a file that stock Hadoop would have run and this task didn't. */
  ON_DISK_PASSES_SAVED;

  /** Adds to the counter of the task of {@code reporter}. */
  public void add(Reporter reporter, long amount) {
    OwnCounters.add(reporter::incrCounter, name(), amount);
  }
}
