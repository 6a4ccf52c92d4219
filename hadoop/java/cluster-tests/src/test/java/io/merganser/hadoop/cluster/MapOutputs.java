package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapreduce.Counters;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.hadoop.mapreduce.TaskCounter;

/** Checks, by the counters of a map task, how its output was written. */
final class MapOutputs {
  /** Bytes of records, with the metadata of each, that fit in a buffer of 1 MB. */
  private static final long SPILL_BYTES = (1 << 20) * 8 / 10;

  private static final int SORT_BYTES_PER_RECORD = 16;

  private MapOutputs() {}

  /** Whether the task, with a buffer of 1 MB, must have spilled more than once. */
  static boolean spilledOften(Counters map) {
    return bytes(map) > 2 * SPILL_BYTES;
  }

  private static long bytes(Counters map) {
    return value(map, TaskCounter.MAP_OUTPUT_BYTES)
        + SORT_BYTES_PER_RECORD * value(map, TaskCounter.MAP_OUTPUT_RECORDS);
  }

  /** Checks that the task wrote its output once: its spills, and hardly anything else. */
  static void assertWrittenOnce(Counters map, Configuration job) {
    assertEquals(
        value(map, TaskCounter.MAP_OUTPUT_RECORDS),
        value(map, TaskCounter.SPILLED_RECORDS),
        "records that were spilled");
    long written = written(map);
    long once = value(map, TaskCounter.MAP_OUTPUT_MATERIALIZED_BYTES);
    // Each spill has a trailer per partition, and so have the manifest and the index.
    long spills = bytes(map) / (SPILL_BYTES / 2) + 2;
    long overhead = 200 * spills * job.getInt(MRJobConfig.NUM_REDUCES, 1) + 8192 + settings(job);
    assertTrue(
        written <= once + overhead,
        () -> "wrote " + written + " bytes for an output of " + once + " in one copy");
  }

  /** Bytes of the job's settings. Every task writes a copy of them, with some of its own. */
  private static long settings(Configuration job) {
    ByteArrayOutputStream xml = new ByteArrayOutputStream();
    try {
      job.writeXml(xml);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return xml.size() + xml.size() / 4;
  }

  private static long written(Counters map) {
    return map.findCounter("file", org.apache.hadoop.mapreduce.FileSystemCounter.BYTES_WRITTEN)
        .getValue();
  }

  static long value(Counters counters, TaskCounter name) {
    return counters.findCounter(name).getValue();
  }
}
