package io.merganser.hadoop.service;

import java.util.function.LongSupplier;
import org.apache.hadoop.metrics2.annotation.Metric;
import org.apache.hadoop.metrics2.annotation.Metrics;
import org.apache.hadoop.metrics2.lib.MutableCounterLong;

/** The metrics of a NodeManager's merges in Hadoop's metrics system. */
@Metrics(name = MergeMetrics.NAME, about = "Merges of deferred map outputs", context = "mapred")
public final class MergeMetrics {
  /** The name of the source. */
  public static final String NAME = "MerganserShuffle";

  @Metric("Map outputs whose merge began in the merge process")
  MutableCounterLong mergesByProcess;

  @Metric("Map outputs whose merge began in Java")
  MutableCounterLong mergesByJava;

  @Metric("Merges that Java took over from the merge process")
  MutableCounterLong takeovers;

  @Metric("Bytes merged")
  MutableCounterLong mergedBytes;

  @Metric("Fetches that were asked to come again later")
  MutableCounterLong turnedAway;

  @Metric("Merges put off because their reducer did not read while others waited")
  MutableCounterLong putOff;

  @Metric("Map outputs not sent because a spill was damaged, cut short or gone")
  MutableCounterLong damaged;

  private volatile LongSupplier memory = () -> 0;
  private volatile LongSupplier running = () -> 0;
  private volatile LongSupplier waiting = () -> 0;
  private volatile LongSupplier remembered = () -> 0;

  /** Sets the sources of the gauges. */
  void watch(Admission admission, OutputCatalog outputs) {
    remembered = outputs::size;
    memory = admission::usedBytes;
    running = admission::granted;
    waiting = admission::waiting;
  }

  /** Returns the bytes that are granted to fetches now. */
  @Metric("Bytes of memory granted to fetches now")
  public long getMemoryInUse() {
    return memory.getAsLong();
  }

  /** Returns the fetches that are admitted now. */
  @Metric("Fetches admitted now")
  public long getFetchesRunning() {
    return running.getAsLong();
  }

  /** Returns the fetches that wait now. */
  @Metric("Fetches in line now")
  public long getFetchesWaiting() {
    return waiting.getAsLong();
  }

  /** Returns the map outputs whose kind or manifest is remembered. */
  @Metric("Map outputs remembered now")
  public long getOutputsRemembered() {
    return remembered.getAsLong();
  }
}
