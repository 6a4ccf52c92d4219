package io.merganser.hadoop.order;

import java.util.Arrays;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.WritableComparator;

/**
 * Longs as unsigned numbers: an order of keys that a job of a test registers rightly or wrongly.
 */
public final class UnsignedLongs extends WritableComparator {
  /** Used by Hadoop. */
  public UnsignedLongs() {
    super(LongWritable.class);
  }

  @Override
  public int compare(byte[] a, int ai, int an, byte[] b, int bi, int bn) {
    return Arrays.compareUnsigned(a, ai, ai + an, b, bi, bi + bn);
  }
}
