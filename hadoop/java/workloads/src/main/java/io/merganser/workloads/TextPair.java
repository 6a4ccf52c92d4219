package io.merganser.workloads;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.Objects;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.WritableComparable;
import org.apache.hadoop.io.WritableComparator;
import org.apache.hadoop.io.WritableUtils;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Partitioner;

/**
 * Two texts, ordered by the first, then by the second, grouped and partitioned by the first: a
 * secondary sort.
 */
public final class TextPair implements WritableComparable<TextPair> {
  final Text first = new Text();
  final Text second = new Text();

  /** Makes a job sort, group and partition its map outputs by pairs. */
  static void use(Job job) {
    job.setMapOutputKeyClass(TextPair.class);
    job.setSortComparatorClass(Order.class);
    job.setGroupingComparatorClass(First.class);
    job.setPartitionerClass(ByFirst.class);
    // Tells Merganser the order of serialized keys in Order; stock Hadoop ignores it.
    job.getConfiguration().set("merganser.shuffle.order." + Order.class.getName(), "text,text");
  }

  void set(Text newFirst, String newSecond) {
    first.set(newFirst);
    second.set(newSecond);
  }

  @Override
  public void write(DataOutput out) throws IOException {
    first.write(out);
    second.write(out);
  }

  @Override
  public void readFields(DataInput in) throws IOException {
    first.readFields(in);
    second.readFields(in);
  }

  @Override
  public int compareTo(TextPair other) {
    int byFirst = first.compareTo(other.first);
    return byFirst != 0 ? byFirst : second.compareTo(other.second);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof TextPair pair && compareTo(pair) == 0;
  }

  @Override
  public int hashCode() {
    return Objects.hash(first, second);
  }

  /** The bytes of a serialized text. */
  private static int textBytes(byte[] bytes, int start) {
    try {
      int length = WritableComparator.readVInt(bytes, start);
      return WritableUtils.decodeVIntSize(bytes[start]) + length;
    } catch (IOException e) {
      throw new IllegalArgumentException("no text begins at " + start, e);
    }
  }

  private static int compareTexts(
      byte[] a, int aStart, int aBytes, byte[] b, int bStart, int bBytes) {
    int aSize = WritableUtils.decodeVIntSize(a[aStart]);
    int bSize = WritableUtils.decodeVIntSize(b[bStart]);
    return WritableComparator.compareBytes(
        a, aStart + aSize, aBytes - aSize, b, bStart + bSize, bBytes - bSize);
  }

  /** Both texts. */
  public static final class Order extends WritableComparator {
    /** Used by Hadoop. */
    public Order() {
      super(TextPair.class);
    }

    @Override
    public int compare(byte[] a, int aStart, int aLength, byte[] b, int bStart, int bLength) {
      int aFirst = textBytes(a, aStart);
      int bFirst = textBytes(b, bStart);
      int byFirst = compareTexts(a, aStart, aFirst, b, bStart, bFirst);
      return byFirst != 0
          ? byFirst
          : compareTexts(
              a, aStart + aFirst, aLength - aFirst, b, bStart + bFirst, bLength - bFirst);
    }
  }

  /** Compares the first text alone, for the groups of a reducer. */
  public static final class First extends WritableComparator {
    /** Used by Hadoop. */
    public First() {
      super(TextPair.class);
    }

    @Override
    public int compare(byte[] a, int aStart, int aLength, byte[] b, int bStart, int bLength) {
      return compareTexts(a, aStart, textBytes(a, aStart), b, bStart, textBytes(b, bStart));
    }
  }

  /** Sends all pairs with the same first text to one reducer. */
  public static final class ByFirst extends Partitioner<TextPair, Text> {
    @Override
    public int getPartition(TextPair key, Text value, int partitions) {
      return (key.first.hashCode() & Integer.MAX_VALUE) % partitions;
    }
  }
}
