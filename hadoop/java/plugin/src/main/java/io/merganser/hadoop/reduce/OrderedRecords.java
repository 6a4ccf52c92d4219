package io.merganser.hadoop.reduce;

import java.io.IOException;
import org.apache.hadoop.io.DataInputBuffer;
import org.apache.hadoop.io.RawComparator;
import org.apache.hadoop.mapred.RawKeyValueIterator;
import org.apache.hadoop.util.Progress;

/**
 * Passes on the records of a merge, and fails at the first key that is smaller than the key before
 * it. Records that pass are in order, so all values of a key are in one group, whatever order the
 * merge used.
 */
public final class OrderedRecords implements RawKeyValueIterator {
  private final RawKeyValueIterator records;
  private final RawComparator<?> comparator;
  private final String advice;
  private byte[] last = new byte[0];
  private int lastLength = -1;

  /**
   * @param comparator the order in which the keys must be
   * @param advice ends the message if they aren't: what to correct
   */
  public OrderedRecords(RawKeyValueIterator records, RawComparator<?> comparator, String advice) {
    this.records = records;
    this.comparator = comparator;
    this.advice = advice;
  }

  @Override
  public boolean next() throws IOException {
    if (!records.next()) {
      return false;
    }
    DataInputBuffer key = records.getKey();
    int start = key.getPosition();
    int length = key.getLength() - start;
    if (lastLength >= 0
        && comparator.compare(last, 0, lastLength, key.getData(), start, length) > 0) {
      throw new IOException(
          "the merged keys are not in the order of "
              + comparator.getClass().getName()
              + ": "
              + advice);
    }
    // The array of the key is valid until the next record only.
    if (length > last.length) {
      last = new byte[Math.max(length, (int) Math.min(2L * last.length, Integer.MAX_VALUE - 8))];
    }
    System.arraycopy(key.getData(), start, last, 0, length);
    lastLength = length;
    return true;
  }

  @Override
  public DataInputBuffer getKey() throws IOException {
    return records.getKey();
  }

  @Override
  public DataInputBuffer getValue() throws IOException {
    return records.getValue();
  }

  @Override
  public Progress getProgress() {
    return records.getProgress();
  }

  @Override
  public void close() throws IOException {
    records.close();
  }
}
